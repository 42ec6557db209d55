"""The stages of a run in order, each from an opened run and the stage before to what stands in the lake. The flow is apart."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from flows.executors.base import FanOut
from flows.observability.progress import Reporter
from rubrics.model import Rubric
from schemas.benchmark import Judge
from schemas.records import PlannedPart
from schemas.tables import REPLIES, SAMPLES, SCORES
from tasks.context import StageContext
from tasks.ingest.prefect_tasks import open_samples
from tasks.ingest.samples import IngestResult, ShardResult, find_shards, finish, write_part
from tasks.judge.prefect_tasks import take_replies
from tasks.lake.writing import Staging, stage
from tasks.ledger.import_replies.importing import ImportResult, import_replies
from tasks.ledger.ledger import opened
from tasks.ledger.snapshot import LastSnapshot, TakenPart, grouped, note, snapshot_id, still_holds
from tasks.plan.anchors import anchor_sources, anchors_of, read_anchors
from tasks.plan.checks import check_something_to_ask, plan_id, summarise
from tasks.plan.dataset import is_planned, new_stagings, staged_judgements
from tasks.plan.prefect_tasks import plan_questions
from tasks.validate.parse import reading_id
from tasks.validate.prefect_tasks import ReadShard, read_replies


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan that stands in the lake, and the parts it has."""

    plan_id: str
    parts: tuple[PlannedPart, ...]

    @property
    def n_requests(self) -> int:
        """Distinct requests."""
        return sum(part.n_requests for part in self.parts)


def ingest(
    run: StageContext,
    fan_out: FanOut,
    reporter: Reporter,
    checkpoints: Collection[str] | None = None,
    anchor_set: str | None = None,
) -> IngestResult:
    """Every source into one dataset of the lake, and behind them the anchors of `anchor_set`."""
    reporter.start("ingest", 0)
    staging = stage(run.lake, SAMPLES)
    calls = ({"context": run, "shard": shard} for shard in find_shards(run.benchmark, staging, checkpoints))
    results: list[ShardResult] = []
    try:
        for written in fan_out(open_samples, calls):
            reporter.advance("ingest", written.n_rows)
            results.append(written)
        if anchor_set is not None:
            results.append(write_part(staging, len(results), [read_anchors(run.lake, anchor_set)]))
        return finish(staging, results)
    finally:
        staging.discard()
        reporter.finish("ingest")


def plan(run: StageContext, dataset_id: str, fan_out: FanOut, reporter: Reporter) -> Plan:
    """What every sample is asked, by every rubric and judge. Raises NothingToJudgeError where none can be asked by a rubric.

    Every key is computed each time; requests are rendered and written only for a plan that is not in the lake yet.
    """
    reporter.start("plan", len(run.rubrics) * len(run.benchmark.judges))
    judgements, requests = new_stagings(run.lake)
    try:
        parts = _planned(run, dataset_id, fan_out, (judgements, None), reporter)
        staged = staged_judgements(judgements)
        summary = summarise(staged)
        for rubric in run.rubrics.values():
            mine = summary.filter(summary["rubric_id"] == rubric.id)
            if summary.is_empty() or not mine.is_empty():  # of some checkpoints alone, a rubric may have no sample
                check_something_to_ask(mine, run.rubrics, _with_first_row(run, dataset_id, run.sources_for(rubric.id)))
        key = plan_id(staged, run.rubrics.values(), dataset_id=dataset_id)
        if not is_planned(run.lake, key):
            _planned(run, dataset_id, fan_out, (None, requests))
            requests.commit(key)
            judgements.commit(key)
    finally:
        judgements.discard()
        requests.discard()
    reporter.finish("plan")
    return Plan(key, tuple(parts))


def _planned(
    run: StageContext, dataset_id: str, fan_out: FanOut, stagings: tuple[Staging | None, Staging | None],
    reporter: Reporter | None = None,
) -> list[PlannedPart]:  # fmt: skip
    """Plan every rubric with every judge, in an order that is the plan's own: parts are found again by their number.

    Anchors in the dataset come last, asked on the occasion of the run date.
    """
    n_parts = run.lake.n_parts(SAMPLES, dataset_id)
    calls = (
        {
            "lake": run.lake,
            "dataset_id": dataset_id,
            "rubric": rubric,
            "judge": judge,
            "sources": sources,
            "stagings": stagings,
            "first_index": number * n_parts,
            "occasion": occasion,
        }
        for number, (rubric, judge, sources, occasion) in enumerate(_choices(run, dataset_id))
    )
    parts: list[PlannedPart] = []
    for planned in fan_out(plan_questions, calls):
        parts += planned
        if reporter:
            reporter.advance("plan")
    return parts


def _choices(run: StageContext, dataset_id: str) -> list[tuple[Rubric, Judge, list[str], str]]:
    """What is asked with what, of which sources, on which occasion."""
    pairs = [(run.rubrics[rubric_id], judge) for rubric_id in sorted(run.rubrics) for judge in _by_model(run.benchmark.judges)]
    choices = [(rubric, judge, run.sources_for(rubric.id), "") for rubric, judge in pairs]
    anchored = anchor_sources(run.lake, dataset_id)
    for rubric, judge in pairs if anchored else []:
        names = [anchors_of(name) for name in run.sources_for(rubric.id)]
        if anchored.intersection(names) and not judge.recorded:
            choices.append((rubric, judge, names, run.run_date.isoformat()))
    return choices


def _by_model(judges: Sequence[Judge]) -> list[Judge]:
    return sorted(judges, key=lambda judge: judge.model)


def _with_first_row(run: StageContext, dataset_id: str, sources: Sequence[str]) -> list[str]:
    """The sources' names, each with the file and row it begins at: what a person must open to see what is missing."""
    rows = run.lake.scan(SAMPLES, dataset_id).filter(pl.col("source").is_in(list(sources))).select("source", "source_key")
    first = rows.unique("source", keep="first", maintain_order=True).collect()
    return [f"{source} (its first row: {key})" for source, key in first.iter_rows()]


def import_recorded(run: StageContext, dataset_id: str, planned: Plan, replies: Path) -> ImportResult:
    """Replies recorded elsewhere into the ledger."""
    with opened(run.ledger_url) as ledger:
        return import_replies(run.benchmark, run.lake, planned.plan_id, ledger, replies, dataset_id=dataset_id)


def take_snapshot(run: StageContext, planned: Plan, fan_out: FanOut, reporter: Reporter) -> str:
    """The replies as the ledger holds them now, into the lake: everything downstream is derived from this alone."""
    with opened(run.ledger_url) as ledger:
        state = ledger.state()  # before anything is read: what is stored meanwhile makes it another
    before = still_holds(run.lake, planned.plan_id, state)
    if before is not None:
        return before.snapshot_id
    reporter.start("snapshot", len(planned.parts))
    staging = stage(run.lake, REPLIES)
    common = {"lake": run.lake, "plan_id": planned.plan_id, "ledger_url": run.ledger_url, "staging": staging}
    found: list[TakenPart] = []
    try:
        for taken in fan_out(take_replies, (common | {"indices": indices} for indices in _indices(planned))):
            found += taken
            reporter.advance("snapshot", len(taken))
        key = staging.commit(snapshot_id(part.digest for part in found))
    finally:
        staging.discard()
        reporter.finish("snapshot")
    if state is not None:
        note(run.lake, planned.plan_id, LastSnapshot(key, state, all(part.is_answered for part in found)))
    return key


def _indices(planned: Plan) -> list[list[int]]:
    return [[part.index for part in parts] for parts in grouped(planned.parts)]


def read(run: StageContext, planned: Plan, snapshot: str, code: str, fan_out: FanOut, reporter: Reporter) -> str:
    """The snapshot's replies read into scores. A reading that stands in the lake is not made again."""
    key = reading_id(snapshot, run.rubrics, code)
    if run.lake.is_complete(SCORES, key):
        return key
    reporter.start("read", len(planned.parts))
    staging = stage(run.lake, SCORES)
    context = run.having(plan_id=planned.plan_id, snapshot_id=snapshot)
    try:
        some = _indices(planned)
        calls = ({"context": context, "shard": ReadShard(indices, staging)} for indices in some)
        for indices, _ in zip(some, fan_out(read_replies, calls), strict=True):
            reporter.advance("read", len(indices))
        return staging.commit(key)
    finally:
        staging.discard()
        reporter.finish("read")
