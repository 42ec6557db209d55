"""The preview behind `salon plan`: what a run would ask, cost and take. Nothing is sent; Prefect has no part."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from flows.observability.progress import Reporter
from flows.run import stages
from flows.run.context import RunContext, open_run
from rubrics.model import Rubric
from schemas.benchmark import Judge, Limits
from schemas.records import Plan, PlannedPart
from schemas.tables import REQUESTS, SAMPLES
from tasks.context import StageContext
from tasks.ingest.samples import IngestResult
from tasks.judge.budget.cost import load_observed
from tasks.judge.budget.forecast import FORECAST_COLUMNS, SIZE_COLUMNS, Forecast, Tally, forecast, total_usd
from tasks.ledger.ledger import Ledger, opened
from tasks.ledger.snapshot import restore


@dataclass(frozen=True, slots=True)
class PlannedRubric:
    """What one judge is to be asked by one rubric."""

    rubric: Rubric
    judge: Judge
    forecast: Forecast

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
        return self.forecast.batch_usd if self.judge.mode == "batch" else self.forecast.online_usd


@dataclass(frozen=True, slots=True)
class Preview:
    """A run that has not happened."""

    name: str
    dataset: IngestResult
    rubrics: tuple[PlannedRubric, ...]
    limits: Limits

    @property
    def n_to_ask(self) -> int:
        """Requests that would be sent."""
        return sum(row.n_to_ask for row in self.rubrics)

    @property
    def expected_usd(self) -> float | None:
        """What all of it would cost, each judge in its own mode; None where a price is not known."""
        return total_usd(row.expected_usd for row in self.rubrics if row.n_to_ask)

    @property
    def minutes(self) -> float | None:
        """Minutes the asking takes at the stated limits, one rubric and judge after the other; None where none is stated."""
        limits = self.limits
        each = [row.forecast.minutes(limits.requests_per_minute, limits.tokens_per_minute) for row in self.rubrics]
        return total_usd(each)


def preview(file: Path, checkpoints: Sequence[str] | None, reporter: Reporter) -> Preview:
    """Read the sources, plan, look into the ledger and count what is left to ask."""
    run = RunContext.of(open_run(file), reporter=reporter)
    dataset = stages.ingest(run, checkpoints)
    run = run.having(dataset_id=dataset.dataset_id)
    planned = stages.plan(run)
    with opened(run.ledger_url) as ledger:
        restore(run.lake, ledger)
        rows = forecasts(run.having(plan_id=planned.plan_id), planned, ledger)
    return Preview(run.benchmark.name, dataset, rows, run.benchmark.limits)


def forecasts(run: RunContext, planned: Plan, ledger: Ledger) -> tuple[PlannedRubric, ...]:
    """What is left to ask of a plan, for each rubric and judge."""
    observed = load_observed(ledger)
    tallies: dict[tuple[str, str], Tally] = {}
    run.reporter.start("count", len(planned.parts))
    for part in planned.parts:
        rubric, judge = run.rubrics[part.rubric_id], run.judge(part.judge_model)
        tally = tallies.setdefault((rubric.id, judge.model), Tally(judge, rubric.n_output_tokens_expected))
        has_observed = (rubric.id, rubric.version, judge.model) in observed
        _add(run, part, tally, ledger, has_observed=has_observed)
        run.reporter.advance("count")
    run.reporter.finish("count")
    rows: list[PlannedRubric] = []
    for (rubric_id, judge_model), tally in tallies.items():
        rubric = run.rubrics[rubric_id]
        known = observed.get((rubric_id, rubric.version, judge_model))
        rows.append(PlannedRubric(rubric, tally.judge, forecast(tally, known)))
    return tuple(rows)


def _add(run: StageContext, part: PlannedPart, tally: Tally, ledger: Ledger, *, has_observed: bool) -> None:
    """One part: its requests and the sizes of its pictures, no picture. Stored replies are read where nothing is known yet."""
    requests = run.lake.read_part(REQUESTS, run.ids.plan_id, part.index, FORECAST_COLUMNS)
    samples = run.lake.read_part(SAMPLES, run.ids.dataset_id, part.samples_part, SIZE_COLUMNS)
    known = ledger.known(requests["request_key"])
    replies = ledger.replies(known) if known and not has_observed else None
    tally.add(requests, samples, known, replies)
