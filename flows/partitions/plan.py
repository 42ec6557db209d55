"""What a backfill would ask, checkpoint by checkpoint, and at what price. Nothing is sent: backfill.py. Its looks: preview.py."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

import polars as pl

from flows.nights.checkpoints import choose
from flows.observability.progress import Reporter
from flows.partitions.left import spared_by_looks
from flows.partitions.table import Prices, asks_pairs_alone, find_partitions
from flows.run import stages
from flows.run.bought import RequestsMet, asked_parts
from flows.run.context import RunContext, open_run
from flows.run.other_models import mixed_cells
from flows.run.preview import PlannedRubric, forecasts
from schemas.benchmark.file import Limits
from schemas.benchmark.judges import Judge
from schemas.errors import InputError, NothingToJudgeError, SourceError
from schemas.records import Plan
from schemas.tables.stored import PARTITIONS
from tasks.context import StageContext
from tasks.ingest.samples import IngestResult
from tasks.judge.budget.forecast import total_usd
from tasks.ledger.open_ledgers import opened
from tasks.ledger.snapshot import forget_rejected, restore


@dataclass(frozen=True, slots=True)
class PlannedCheckpoint:
    """One checkpoint: its dataset and plan in the lake, what is left to ask of it, and its partitions.

    `shared`: by (rubric, judge), how much of it is asked about a checkpoint before it in the plan.
    """

    name: str
    dataset: IngestResult
    plan: Plan
    rubrics: tuple[PlannedRubric, ...]
    partitions: pl.DataFrame
    shared: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @property
    def n_requests(self) -> int:
        """Requests of judges that are asked."""
        return int(self.partitions["n_requests"].sum())

    @property
    def n_to_ask(self) -> int:
        """Requests without a final reply, or owed a re-ask."""
        return int(self.partitions["n_left"].sum())

    @property
    def n_own(self) -> int:
        """Those of them that no checkpoint before it asks."""
        return self.n_to_ask - sum(self.shared.values())

    @property
    def mixed(self) -> str | None:
        """Why it cannot be published, though all of it were asked: a cell of it is of two models."""
        return next(iter(self.partitions["mixed"].drop_nulls()), None)

    @property
    def online_usd(self) -> float | None:
        """What its own cost asked one by one; None where a price is not known."""
        return total_usd(self._of_own(row, row.forecast.online_usd) for row in self.rubrics if row.n_to_ask)

    @property
    def batch_usd(self) -> float | None:
        """What they cost by the Batch API."""
        return total_usd(self._of_own(row, row.forecast.batch_usd) for row in self.rubrics if row.n_to_ask)

    def minutes(self, limits: Limits) -> float | None:
        """Minutes that asking them takes online; None where neither limits nor latency are known."""
        return total_usd(self._of_own(row, row.minutes(limits)) for row in self.rubrics if row.n_to_ask)

    def _of_own(self, row: PlannedRubric, whole: float | None) -> float | None:
        """The share of its own of what all that is left under a rubric costs or takes."""
        return None if whole is None else whole * (1 - self.shared.get((row.rubric_id, row.judge.id), 0) / row.n_to_ask)


@dataclass(frozen=True, slots=True)
class BackfillPlan:
    """Every checkpoint of a backfill, in the order it is asked. `unreadable`: those that cannot be read, and why.

    `of_pairs`: the rubrics for pairs, which are planned as the table is made, of the checkpoints that are whole then.
    """

    checkpoints: tuple[PlannedCheckpoint, ...]
    limits: Limits
    unreadable: Mapping[str, str] = field(default_factory=dict)
    of_pairs: Sequence[str] = ()

    @property
    def open(self) -> list[PlannedCheckpoint]:
        """Those with something left to ask that can be published then."""
        return [one for one in self.checkpoints if one.n_to_ask and not one.mixed]

    @property
    def judges(self) -> set[str]:
        """The judges that are asked something of these."""
        return {str(name) for one in self.open for name in one.partitions.filter(pl.col("n_left") > 0)["judge_model"]}

    @property
    def has_shared(self) -> bool:
        """Whether a request is asked about several of them."""
        return any(one.shared for one in self.open)

    @property
    def failed(self) -> dict[str, str]:
        """Those that are not asked, and why."""
        return {**self.unreadable, **{one.name: one.mixed for one in self.checkpoints if one.mixed}}

    @property
    def partitions(self) -> pl.DataFrame:
        """The partitions of all."""
        return pl.concat([one.partitions for one in self.checkpoints])

    @property
    def n_requests(self) -> int:
        """Requests of all checkpoints."""
        return sum(one.n_requests for one in self.checkpoints)

    @property
    def minutes(self) -> float | None:
        """Minutes the asking takes online; None where neither limits nor latency are known."""
        return total_usd(one.minutes(self.limits) for one in self.open)


def open_backfill(
    file: Path, run_date: date | None = None, judge_url: str | None = None, max_usd: float | None = None
) -> StageContext:
    """The run of a benchmark file, with judges whose mode the file does not state asked by batch where that is offered."""
    run = open_run(file, run_date, judge_url, max_usd)
    judges = [_preferring_batch(judge) for judge in run.benchmark.judges]
    benchmark = run.benchmark.model_copy(update={"judges": judges})
    return replace(run, benchmark=benchmark)


def plan_backfill(
    run: StageContext, names: Collection[str] | None, since: date | None, reporter: Reporter, *, is_retrying: bool = False
) -> BackfillPlan:
    """Read the chosen checkpoints into the lake, plan them, and count and price what is left to ask; the newest come first.

    With `is_retrying` what the provider rejected is left to ask again. A checkpoint that cannot be read does not stop the others.
    Raises InputError for one that is not there, or whose date is needed and not known, where none can be read, and where no judge
    is asked.
    """
    if not run.benchmark.asked_judges:
        raise InputError(
            "a backfill asks judges, and those of this file are all recorded: salon import FILE --replies REPLIES publishes what "
            "was recorded of them"
        )
    asked, unreadable = choose(run, names, since)
    planned: list[PlannedCheckpoint] = []
    with opened(run.ledger_url) as ledger:  # before: what the lake has is not to ask, nor given back where it is forgotten
        restore(run.lake, ledger)
    reporter.start("look at checkpoints", len(asked))
    asked_before = RequestsMet()
    for one in reversed(asked):
        try:
            planned.append(_planned(run, one.name, is_retrying, asked_before))
        except (SourceError, NothingToJudgeError) as error:
            unreadable[one.name] = str(error)
        reporter.advance("look at checkpoints")
    reporter.finish("look at checkpoints")
    if not planned:
        raise SourceError("\n  ".join(unreadable.values()))
    of_pairs = [rubric.id for rubric in run.rubrics.values() if rubric.is_of_pairs]
    return BackfillPlan(tuple(planned), run.benchmark.limits, unreadable, of_pairs)


def _planned(run: StageContext, name: str, is_retrying: bool, asked_before: RequestsMet) -> PlannedCheckpoint:
    quiet = RunContext.of(run)
    dataset = stages.ingest(quiet, [name])
    if asks_pairs_alone(run):  # which are planned as the table is made: one checkpoint has no opponent
        if not dataset.n_ok:
            why = ", ".join(f"{n:,} {status}" for status, n in dataset.n_by_status.items())
            raise NothingToJudgeError(f"none of its {dataset.n_samples:,} samples can be used ({why}); fix these files or rows")
        return PlannedCheckpoint(name, dataset, Plan("", ()), (), PARTITIONS.empty().with_columns(mixed=pl.lit(None, pl.String)))
    quiet = quiet.having(dataset_id=dataset.dataset_id)
    plan = stages.plan(quiet)
    quiet = quiet.having(plan_id=plan.plan_id)
    with opened(run.ledger_url) as ledger:
        if is_retrying:
            forget_rejected(quiet, asked_parts(quiet, plan.parts), ledger)
        rows = forecasts(quiet, plan, ledger)
    planned = PlannedCheckpoint(name, dataset, plan, rows, partitions_now(quiet, plan, rows))
    if not planned.n_to_ask or planned.mixed:
        return planned
    return replace(planned, shared=asked_before.shared_by(quiet, plan.parts))


def partitions_now(run: RunContext, plan: Plan, rubrics: Sequence[PlannedRubric]) -> pl.DataFrame:
    """find_partitions() of one checkpoint as the ledger has it now, with those that are of two models."""
    with opened(run.ledger_url) as ledger:
        mixed = mixed_cells(run, ledger, plan.parts)
    return spared_by_looks(run.stage, find_partitions(run, prices_of(rubrics), mixed))


def prices_of(rows: Sequence[PlannedRubric]) -> Prices:
    """What a request of each rubric and judge costs, of what is left to ask."""

    def each(usd: float | None, n: int) -> float | None:
        return None if usd is None or not n else usd / n

    costs = {(row.rubric_id, row.judge.id): row.forecast for row in rows}
    return {key: (each(cost.online_usd, cost.n_to_ask), each(cost.batch_usd, cost.n_to_ask)) for key, cost in costs.items()}


def _preferring_batch(judge: Judge) -> Judge:
    return judge if "mode" in judge.model_fields_set else judge.model_copy(update={"mode": "auto"})
