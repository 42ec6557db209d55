"""The preview behind `salon plan`, and `salon export`: what a run would ask, and cost. Nothing is sent; Prefect has no part."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import polars as pl

from flows.executors.lake_use import lake_in_use
from flows.nights.checkpoints import Checkpoint, find_checkpoints, lineage_of
from flows.observability.progress import Reporter
from flows.run import stages
from flows.run.context import RunContext, open_run
from flows.run.found import Found, found_in, no_baseline
from flows.run.plan_counts import Asked, asked_in
from flows.run.rounds import due_now
from flows.run.since import asks_otherwise
from rubrics.model import Rubric
from schemas.benchmark.exam import OCCASION
from schemas.benchmark.file import Limits, refused
from schemas.benchmark.judges import Judge
from schemas.records import Plan, PlannedPart
from schemas.tables.stored import REQUESTS
from tasks.context import StageContext
from tasks.ingest.samples import IngestResult
from tasks.judge.batch.export import Exported, export_requests
from tasks.judge.batch.folders import check_exportable
from tasks.judge.batch.out import batches_out, keys_out
from tasks.judge.budget.forecast import FORECAST_COLUMNS, Forecast, Tally, forecast, total_usd
from tasks.judge.budget.levers import Lever
from tasks.judge.budget.observed_usage import load_observed
from tasks.judge.part_pictures import example_sizes
from tasks.judge.pictures import digests_of
from tasks.judge.rate_limit.store import latency_seen
from tasks.lake.atomic_files import refuse_full
from tasks.lake.reading_through import read_through
from tasks.ledger.ledger import Ledger
from tasks.ledger.open_ledgers import opened
from tasks.ledger.snapshot import restore

HANDED_OVER = "with batch  {:,} of these are with a Batch API already: they are collected, and not paid for again"


@dataclass(frozen=True, slots=True)
class PlannedRubric:
    """What one judge is to be asked by one rubric."""

    rubric: Rubric
    judge: Judge
    forecast: Forecast
    n_handed_over: int = 0  # requests to ask that are with the judge's Batch API, and are not paid for anew

    @property
    def rubric_id(self) -> str:
        """The rubric's id."""
        return self.rubric.id

    @property
    def n_to_ask(self) -> int:
        """Requests that would be sent: none to a judge whose replies are only recorded."""
        return self.forecast.n_to_ask

    @property
    def expected_usd(self) -> float | None:
        """What it would cost in the judge's own mode; `auto` is counted at the online price."""
        return self.forecast.batch_usd if self.is_by_batch else self.forecast.online_usd

    @property
    def worst_usd(self) -> float | None:
        """The same at most; by batch all of it is set aside until replies come."""
        return self.forecast.worst_batch_usd if self.is_by_batch else self.forecast.worst_usd

    @property
    def is_by_batch(self) -> bool:
        """Whether all goes through the Batch API; `auto` shows in the run."""
        return self.judge.mode == "batch"

    def minutes(self, limits: Limits) -> float | None:
        """Minutes that its asking takes; None where nobody knows, as by batch."""
        return None if self.is_by_batch else self.forecast.minutes(limits)


@dataclass(frozen=True, slots=True)
class Preview:
    """A run that has not happened."""

    name: str
    dataset: IngestResult
    rubrics: tuple[PlannedRubric, ...]
    limits: Limits
    rejected: Mapping[str, int] = field(default_factory=dict)  # stored rejections, by what the provider said
    looks: Sequence[float] = ()  # shares of the prompts after which it is seen who is asked on
    is_adaptive: bool = False  # pairs are asked until their comparisons are decided
    found: Found = field(default_factory=Found)
    n_of_exam: int = 0  # requests of all, stored ones among them, that are of twins with planted faults
    asked: Asked = field(default_factory=Asked)
    taken_usd: float = 0.0  # of max_usd, by earlier starts of the same night
    changed: Sequence[str] = ()  # in sentences, what rubrics and judges ask otherwise than the publication that is current

    @property
    def notes(self) -> list[str]:
        """What the reader should know of the sources, and of what asks otherwise than before."""
        return [*self.dataset.notes, *self.found.notes, *self.changed]

    @property
    def left_usd(self) -> float | None:
        """What is left of `max_usd`; None where there is none."""
        return None if self.limits.max_usd is None else max(0.0, self.limits.max_usd - self.taken_usd)

    @property
    def n_to_ask(self) -> int:
        """Requests that would be sent."""
        return sum(row.n_to_ask for row in self.rubrics)

    @property
    def expected_usd(self) -> float | None:
        """What all of it would cost, each judge in its own mode; None where a price is not known."""
        return total_usd(row.expected_usd for row in self.rubrics if row.n_to_ask)

    @property
    def worst_usd(self) -> float | None:
        """The most that it can cost, each judge in its own mode and each request asked once; None where it is not known."""
        return total_usd(row.worst_usd for row in self.rubrics if row.n_to_ask)

    @property
    def lever_usd(self) -> dict[Lever, float]:
        """What all of it would cost under each lever alone; a judge and rubric that it says nothing of costs what it does.

        One of whom nothing is left to ask is counted where pictures are shown otherwise: all is then asked anew.
        """
        known = dict.fromkeys(lever for lever in Lever for row in self.rubrics if lever in row.forecast.lever_usd)
        sums = {
            lever: total_usd(row.forecast.lever_usd.get(lever, row.expected_usd if row.n_to_ask else 0) for row in self.rubrics)
            for lever in known
        }
        return {lever: usd for lever, usd in sums.items() if usd is not None}

    @property
    def minutes(self) -> float | None:
        """Minutes the asking takes, one rubric and judge after the other; None where neither limits nor latency are known."""
        return total_usd(row.minutes(self.limits) for row in self.rubrics if row.n_to_ask)


def preview(file: Path, checkpoints: Sequence[str] | None, reporter: Reporter) -> Preview:
    """Read the sources, plan, look into the ledger and count what is left to ask. The lake need not be one to write into."""
    run = RunContext.of(open_run(file), reporter=reporter)
    with lake_in_use(run), read_through(run.lake) as lake:
        run = replace(run, lake=lake)
        return previewed(file, run, checkpoints, known=find_checkpoints(run, {}, checkpoints) if checkpoints else None)


def export(file: Path, folder: Path, max_bytes: int, reporter: Reporter, pictures_at: str | None = None) -> Exported:
    """Read the sources, plan, and write what may be asked now into `folder`, as files of batch lines. Raises InputError first."""
    run = RunContext.of(open_run(file), reporter=reporter)
    check_exportable(run.benchmark.judges)
    refuse_full("--batch-files", folder)
    with lake_in_use(run), opened(run.ledger_url) as ledger:
        run = run.having(dataset_id=stages.ingest(run, is_examined=True).dataset_id)
        run = replace(run, lineage=lineage_of(run))
        planned = stages.plan(run)
        run = run.having(plan_id=planned.plan_id)
        restore(run.lake, ledger)
        return export_requests(run, ledger, due_now(run, planned.parts), folder, max_bytes, pictures_at)


def previewed(
    file: Path,
    run: RunContext,
    checkpoints: Sequence[str] | None,
    anchor_set: str | None = None,
    known: Sequence[Checkpoint] | None = None,
) -> Preview:
    """The preview of a run whose lake is in use: of these checkpoints of those `known`, or all, and of a night's anchors."""
    dataset = stages.ingest(run, checkpoints, anchor_set, is_examined=True)
    run = run.having(dataset_id=dataset.dataset_id)
    run = replace(run, lineage=lineage_of(run, known))
    if checkpoints is None:
        _check_baseline(file, run)
    planned = stages.plan(run)
    with opened(run.ledger_url) as ledger:
        restore(run.lake, ledger)
        run = run.having(plan_id=planned.plan_id)
        rows, rejected = forecasts(run, planned, ledger), _rejections(run, planned, ledger)
    are_adaptive = run.benchmark.pairs.adaptive and any(rubric.is_of_pairs for rubric in run.rubrics.values())
    n_of_exam = sum(part.n_requests for part in planned.parts if part.about == OCCASION)
    return Preview(
        run.benchmark.name, dataset, rows, run.benchmark.limits, rejected, run.benchmark.statistics.stopping.looks, are_adaptive,
        found_in(run), n_of_exam, asked_in(run), changed=asks_otherwise(run),
    )  # fmt: skip


def _check_baseline(file: Path, run: StageContext) -> None:
    if (why := no_baseline(run)) is not None:
        raise refused(file, ("nightly", "baseline"), why)


def _rejections(run: StageContext, planned: Plan, ledger: Ledger) -> Counter[str]:
    found: Counter[str] = Counter()
    for part in planned.parts:
        found += ledger.rejections(run.request_keys(part))
    return found


def forecasts(run: RunContext, planned: Plan, ledger: Ledger) -> tuple[PlannedRubric, ...]:
    """What is left to ask of a plan, for each rubric and judge."""
    observed, tallies = load_observed(ledger), dict[tuple[str, str], Tally]()
    out, n_out = keys_out(batches_out(ledger, {part.judge_model for part in planned.parts})), Counter[tuple[str, str]]()
    run.reporter.start("count", len(planned.parts))
    for part in planned.parts:
        rubric, judge = run.rubrics[part.rubric_id], run.judge(part.judge_model)
        tally = tallies.setdefault((rubric.id, judge.id), Tally(judge, rubric.n_output_tokens_expected))
        has_observed = (rubric.id, rubric.version, judge.id) in observed
        _add(run, part, tally, ledger, has_observed=has_observed)
        if judge.id in out:
            n_out[rubric.id, judge.id] += len(out[judge.id].intersection(run.request_keys(part)))
        run.reporter.advance("count")
    run.reporter.finish("count")
    rows: list[PlannedRubric] = []
    for (rubric_id, judge_model), tally in tallies.items():
        rubric = run.rubrics[rubric_id]
        known = observed.get((rubric_id, rubric.version, judge_model))
        latency_s = ledger.read(partial(latency_seen, judge_model=judge_model))
        rows.append(PlannedRubric(rubric, tally.judge, forecast(tally, known, latency_s), n_out[rubric_id, judge_model]))
    return tuple(rows)


def _add(run: StageContext, part: PlannedPart, tally: Tally, ledger: Ledger, *, has_observed: bool) -> None:
    """One part: its requests and the sizes of its pictures, no picture. Stored replies are read where nothing is known yet."""
    requests = run.lake.read_part(REQUESTS, run.ids.plan_id, part.index, FORECAST_COLUMNS)
    shown = {digest for said in requests["messages_json"].drop_nulls() for digest in digests_of(said)}
    sizes = run.dataset.sizes_of(part.samples_part, shown)
    pictures = pl.concat([sizes, example_sizes(run.rubrics[part.rubric_id])], how="vertical_relaxed")
    known = ledger.known(requests["request_key"])
    replies = ledger.replies(known) if known and not has_observed else None
    tally.add(requests, pictures, known, replies)
