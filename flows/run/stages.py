"""The stages of a run in order: each from the run's context and the stage before to what stands in the lake. No Prefect flow."""

from collections.abc import Collection, Iterator
from pathlib import Path

from flows.executors.base import ShardCall
from flows.run.bought import asked_parts
from flows.run.context import RunContext
from flows.run.tasks import ReadShard, open_samples, plan_questions, read_replies, take_replies
from schemas.benchmark.exam import Exam
from schemas.errors import NothingToJudgeError
from schemas.records import Plan, PlannedPart
from schemas.tables.stored import REPLIES, SAMPLES, SCORES
from tasks.ingest.known_sources import KnownSources
from tasks.ingest.parts import ShardResult, copy_part, discard
from tasks.ingest.readers.columns import columns_there
from tasks.ingest.samples import IngestResult, find_dataset, find_shards, finish
from tasks.ingest.twins.dataset import add_twins, exam_key
from tasks.judge.batch.folders import BatchResults
from tasks.judge.batch.import_results import import_results
from tasks.judge.outcome import Outcome
from tasks.lake.pictures import StoredDataset
from tasks.lake.writing import Staging, stage
from tasks.ledger.import_replies.files import separators
from tasks.ledger.import_replies.importing import ImportResult, import_replies
from tasks.ledger.open_ledgers import opened
from tasks.ledger.snapshot import LastSnapshot, TakenPart, TakeShard, grouped, note, restore, snapshot_id, still_holds
from tasks.plan.anchors import read_anchors
from tasks.plan.choices import shown_exam
from tasks.plan.dataset import commit_plan, known_plan, new_stagings, plan_shards
from tasks.validate.derived_scores import write_item_scores
from tasks.validate.parse import reading_id


def ingest(
    run: RunContext, checkpoints: Collection[str] | None = None, anchor_set: str | None = None, *, is_examined: bool = False
) -> IngestResult:
    """Every source into one dataset of the lake, and behind them the anchors of `anchor_set`. Nothing unchanged is read again.

    `is_examined`: and behind these the twins of the benchmark's exam.
    """
    run.reporter.start("ingest", 0)
    staging = stage(run.lake, SAMPLES, run.benchmark.limits.shard_size)
    known = KnownSources.of(run)
    results: list[ShardResult] = []
    try:
        exam = _exam(run) if is_examined else None
        twins_key = exam_key(run.benchmark, exam, checkpoints, anchor_set) if exam else None
        there = find_dataset(run.benchmark, known, checkpoints, [one for one in (anchor_set, twins_key) if one], run.own_texts)
        if there is not None:
            run.reporter.advance("ingest", there.n_samples)
            return there
        anchors = StoredDataset(run.lake, anchor_set) if anchor_set is not None else None
        frozen = read_anchors(anchors) if anchors is not None else None  # before anything is read of the sources
        shards = find_shards(run.benchmark, staging, checkpoints, known, run.own_texts)
        calls = (ShardCall(open_samples, run.stage, one, carries_pictures=one.samples.has_pictures) for one in shards)
        for written in run.executor.run(calls):
            run.reporter.advance("ingest", written.n_rows)
            results.append(written)
        if anchors is not None and frozen is not None:
            known.note_further(anchors.id, len(results))
            results.append(copy_part(staging, len(results), frozen, anchors))
        if exam is not None and twins_key is not None:
            twins = add_twins(staging, len(results), exam)
            known.note_further(twins_key, None if twins is None else len(results))
            results += [] if twins is None else [twins]
        return finish(staging, results, known)
    finally:
        discard(staging)
        run.reporter.finish("ingest")


def _exam(run: RunContext) -> Exam | None:
    """The exam as it is asked; what the file names and no judge is shown is said."""
    meant, exam = run.benchmark.exam, shown_exam(run.stage)
    unseen = [fault.value for fault in meant.faults if exam is None or fault not in exam.faults] if meant else []
    if unseen and meant and (exam is None or "faults" in meant.model_fields_set):
        run.reporter.say(f"[exam] asks no twins of {', '.join(unseen)}: under these rubrics, no judge is shown what is changed")
    return exam


def plan(run: RunContext) -> Plan:
    """What every sample is asked, by every rubric and judge, in one pass; a plan made before of the same is found.

    Raises NothingToJudgeError where nothing can be asked by a rubric.
    """
    known = known_plan(run)
    if known is not None:
        return known
    judgements, requests = new_stagings(run.lake)
    try:
        shards = plan_shards(run, judgements, requests)
        run.reporter.start("plan", len(shards))
        parts: list[PlannedPart] = []
        for planned in run.executor.run(ShardCall(plan_questions, run.stage, shard) for shard in shards):
            parts += planned
            run.reporter.advance("plan")
        return commit_plan(run, judgements, requests, parts)
    except NothingToJudgeError as error:
        raise NothingToJudgeError(f"{error}{columns_there(run.benchmark, run.own_texts, error.lacking)}") from error
    finally:
        judgements.discard()
        requests.discard()
        run.reporter.finish("plan")


def import_recorded(run: RunContext, replies: Path) -> ImportResult:
    """Replies recorded elsewhere into the ledger."""
    for said in separators(replies):
        run.reporter.say(said)
    with opened(run.ledger_url) as ledger:
        return import_replies(run, ledger, replies)


def import_batch_results(run: RunContext, planned: Plan, results: BatchResults) -> tuple[ImportResult, Outcome]:
    """Results of exported requests into the ledger; also what the new ones were billed."""
    with opened(run.ledger_url) as ledger:
        restore(run.lake, ledger)  # what the lake holds is no news
        return import_results(run, ledger, asked_parts(run, planned.parts), results)


def take_snapshot(run: RunContext, planned: Plan) -> str:
    """The replies as the ledger holds them now, into the lake: everything downstream is derived from this alone."""
    with opened(run.ledger_url) as ledger:
        state = ledger.state()  # before anything is read: what is stored meanwhile makes it another
    before = still_holds(run, state)
    if before is not None:
        return before.snapshot_id
    run.reporter.start("snapshot", len(planned.parts))
    staging = stage(run.lake, REPLIES)
    calls = (ShardCall(take_replies, run.stage, TakeShard(indices, staging)) for indices in _indices(planned))
    found: list[TakenPart] = []
    try:
        for taken in run.executor.run(calls):
            found += taken
            run.reporter.advance("snapshot", len(taken))
        key = staging.commit(snapshot_id(part.digest for part in found), [part.index for part in planned.parts])
    finally:
        staging.discard()
        run.reporter.finish("snapshot")
    if state is not None:
        note(run, LastSnapshot(key, state, all(part.is_answered for part in found)))
    return key


def read(run: RunContext, planned: Plan) -> str:
    """The snapshot's replies read into scores. A reading that stands in the lake is not made again."""
    key = reading_id(run.ids.snapshot_id, run.rubrics, run.ids.code_version, run.benchmark.judges)
    if run.lake.is_complete(SCORES, key):
        return key
    run.reporter.start("read", len(planned.parts))
    staging = stage(run.lake, SCORES)
    try:
        for shard, _ in zip(_indices(planned), run.executor.run(_reading(run, planned, staging)), strict=True):
            run.reporter.advance("read", len(shard))
        indices = [part.index for part in planned.parts]
        indices += write_item_scores(run.lake, planned.plan_id, staging, run.rubrics)
        return staging.commit(key, indices)
    finally:
        staging.discard()
        run.reporter.finish("read")


def _reading(run: RunContext, planned: Plan, staging: Staging) -> Iterator[ShardCall[ReadShard, int]]:
    return (ShardCall(read_replies, run.stage, ReadShard(indices, staging)) for indices in _indices(planned))


def _indices(planned: Plan) -> list[tuple[int, ...]]:
    return [tuple(part.index for part in parts) for parts in grouped(planned.parts)]
