"""From judgements, scores and replies to the tables a run publishes.

What a row of another table says is in the file named after it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Self

import polars as pl

from rubrics.model import Rubric
from schemas.benchmark.file import Statistics
from schemas.errors import RubricError
from schemas.lineage import Lineage
from schemas.metrics import (
    CELL,
    CELL_ORDER,
    Metric,
    cell_id,
    is_mean_for_prompts_like_these,
    is_primary,
    means_for_prompts_like_these,
)
from schemas.statuses.cells import Total
from schemas.tables.published import BENCHMARK_LONG, BENCHMARK_WIDE, COMPARISONS, DISTRIBUTIONS, FAILURES, HEALTH, STANDINGS
from schemas.tables.table import Row, Table
from tasks.aggregate.comparisons.comparisons import Contestant, Lines, comparison_rows
from tasks.aggregate.comparisons.families import Family, corrected
from tasks.aggregate.figures import cell_rows, distribution_rows
from tasks.aggregate.health import health_rows, models_that_answered
from tasks.aggregate.judged import Judged, judgements_of, known_prompts, requests_of
from tasks.aggregate.leaving import Leaving
from tasks.aggregate.looks import Asked, Left, PlannedPrompts, planned_prompts, up_to_last_look
from tasks.aggregate.outcomes import Outcomes, scores_of
from tasks.aggregate.prompt_sums import aside_counts, failure_counts, prompt_sums
from tasks.aggregate.standings import ranked, standing_rows
from tasks.aggregate.tallies import Tally, known_categories, tallies
from tasks.aggregate.wide import wide_rows
from tasks.context import StageContext
from tasks.stopping import check_not_stopped


@dataclass(frozen=True, slots=True)
class Settings:
    """What every row of a publication shares, and how its figures are made."""

    benchmark: str
    dataset_id: str
    publication_id: str
    run_date: date
    min_coverage: float
    statistics: Statistics = field(default_factory=Statistics)
    baseline: str | None = None
    same_models: Mapping[str, Sequence[str]] = field(default_factory=dict)  # by judge, names of models that are one
    lineage: Lineage = field(default_factory=Lineage)

    @classmethod
    def of(cls, context: StageContext) -> Self:
        """The settings of a run's benchmark file."""
        own, ids = context.benchmark, context.ids
        return cls(
            own.name, ids.dataset_id, ids.publication_id, context.run_date, own.gate.min_coverage, own.statistics,
            own.nightly.baseline, context.same_models, context.lineage,
        )  # fmt: skip

    @property
    def named(self) -> Row:
        """The columns that name the run."""
        return {
            "benchmark": self.benchmark, "dataset_id": self.dataset_id, "publication_id": self.publication_id,
            "run_date": self.run_date, "coverage_floor": self.min_coverage,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Dimension:
    """One dimension of one rubric: its cells' tallies of the scores, and their published rows."""

    key: str
    outcomes: Outcomes
    expected: frozenset[str]
    tallied: list[tuple[dict[str, str], Tally]]
    rows: list[Row]

    @property
    def contestants(self) -> list[Contestant]:
        """Each cell's tally with its published means, in the order of the tallies."""
        cells: dict[tuple[object, ...], dict[str, Row]] = {}
        for row in self.rows:
            if is_mean_for_prompts_like_these(row):
                cells.setdefault(tuple(row[name] for name in CELL), {})[str(row["category"])] = row
        return [
            Contestant(of["judge_model"], of["model"], of["checkpoint"], tally, cells[tuple(of[name] for name in CELL)])
            for of, tally in self.tallied
        ]


def aggregated(
    judgements: pl.LazyFrame, scores: pl.LazyFrame, replies: pl.LazyFrame, rubrics: Mapping[str, Rubric], run: Settings
) -> dict[Table, pl.DataFrame]:
    """Every table of one run, each sorted. Raises RubricError where a judgement's rubric is not given."""
    rows: dict[Table, list[Row]] = {t: [] for t in (BENCHMARK_LONG, DISTRIBUTIONS, HEALTH)}
    compared: list[Row] = []
    standing: list[Row] = []
    before = run.lineage.before(judgements.select("model", "checkpoint").unique().collect().iter_rows())
    for rubric in _rubrics_of(judgements, rubrics):
        judged, read, asked = _read(judgements, scores, rubric, left=_left(judgements, scores, rubrics, rubric, run))
        named = run.named | {"rubric_id": rubric.id, "rubric_version": rubric.version}
        health = list(health_rows(judged, requests_of(judged, judgements, rubric), read, replies))
        answered_by = models_that_answered(health, run.same_models)
        for dimension in _dimensions(judged, read, rubric, run, asked):
            rows[BENCHMARK_LONG] += dimension.rows
            mine, contestants, expected = run.statistics, dimension.contestants, dimension.expected
            steps = distribution_rows(judged, dimension.outcomes, rubric, dimension.key, dimension.rows, expected)
            rows[DISTRIBUTIONS] += [named | row for row in steps]
            is_main = is_primary(rubric.id, dimension.key, read, mine.primary)
            lines = Lines(before, run.baseline)
            held = comparison_rows(judged, contestants, expected, mine, lines, answered_by=answered_by, is_headline=is_main)
            pairs = [named | row for row in held]
            compared += pairs
            places = standing_rows(contestants, pairs, expected, mine, run.lineage)
            standing += [row | {"is_headline": is_main} for row in places]
        rows[HEALTH] += [named | row for row in health]
    rows[COMPARISONS] = corrected(compared, run.benchmark, run.statistics)
    rows[STANDINGS] = ranked(standing, rows[COMPARISONS])
    rows[BENCHMARK_WIDE] = wide_rows(rows[BENCHMARK_LONG], rows[STANDINGS])
    rows[FAILURES] = list(_failures(rows[BENCHMARK_LONG]))
    return {table: _framed(table, found) for table, found in rows.items()}


def _failures(cells: Iterable[Row]) -> Iterator[Row]:
    """A row for each mean for prompts like these and each reason that kept scores from it."""
    for cell in filter(is_mean_for_prompts_like_these, cells):
        for reason, n_failed in cell["failures"].items():
            yield {name: cell[name] for name in FAILURES.columns if name in cell} | {"reason": reason, "n_failed": n_failed}


def long_table(judgements: pl.LazyFrame, scores: pl.LazyFrame, rubrics: Mapping[str, Rubric], run: Settings) -> pl.DataFrame:
    """benchmark_long alone."""
    rows: list[Row] = []
    for rubric in _rubrics_of(judgements, rubrics):
        judged, read, asked = _read(judgements, scores, rubric, left=_left(judgements, scores, rubrics, rubric, run))
        for dimension in _dimensions(judged, read, rubric, run, asked):
            rows += dimension.rows
    return _framed(BENCHMARK_LONG, rows)


def _read(
    judgements: pl.LazyFrame,
    scores: pl.LazyFrame,
    rubric: Rubric,
    planned: PlannedPrompts | None = None,
    left: Left | None = None,
) -> tuple[Judged, dict[str, Outcomes], Asked]:
    """One rubric's judgements, what became of them up to each cell's last look, and how far they were asked."""
    judged = judgements_of(judgements, rubric)
    read, last = up_to_last_look(judged, scores_of(judged, judgements, scores, rubric), left)
    return judged, read, (planned or planned_prompts(judgements, rubric)).asked(last) if last else Asked()


def _left(judgements: pl.LazyFrame, scores: pl.LazyFrame, rubrics: Mapping[str, Rubric], rubric: Rubric, run: Settings) -> Left:
    """Who of a judge's was left after which look, as the run decided: by the replies up to each."""

    def left(judge: str) -> Mapping[str, int]:
        by = Leaving.of(judgements, rubrics, rubric, judge, run.benchmark, run.statistics)
        return by.replayed(lambda mine: headline_rows(mine.drop_nulls("request_key"), scores, rubric, run, by.prompts))

    return left


def headline_rows(
    judgements: pl.LazyFrame, scores: pl.LazyFrame, rubric: Rubric, run: Settings, planned: PlannedPrompts
) -> list[Row]:
    """The comparisons of a rubric's primary rankings as they stand, not corrected: what a look decides by."""
    judged, read, asked = _read(judgements, scores, rubric, planned)
    found: list[Row] = []
    for dimension in _dimensions(judged, read, rubric, run, asked):
        if is_primary(rubric.id, dimension.key, read, run.statistics.primary):
            contestants = dimension.contestants
            lines = Lines(run.lineage.before((one.model, one.checkpoint) for one in contestants), run.baseline)
            rows = comparison_rows(
                judged, contestants, dimension.expected, run.statistics, lines, answered_by={}, is_headline=True
            )
            found += [{"rubric_id": rubric.id} | row for row in rows if row["family"] is Family.HEADLINE]
    return found


def _dimensions(
    judged: Judged, read: Mapping[str, Outcomes], rubric: Rubric, run: Settings, asked: Asked
) -> Iterator[_Dimension]:
    is_known = known_prompts(judged, rubric)
    for key, outcomes in read.items():
        check_not_stopped()
        named = run.named | {"rubric_id": rubric.id, "rubric_version": rubric.version, "dimension": key}
        sums, failed = prompt_sums(judged, outcomes, is_known), failure_counts(judged, outcomes)
        expected = known_categories(judged, sums) | asked.to_come.get(key, frozenset())
        n_aside = aside_counts(judged, outcomes)
        tallied = list(tallies(judged, sums, failed, n_aside, asked.reached))
        named_in = {name for _, tally in tallied for name in (*tally.categories, *tally.categories_aside)}
        has_categories = named_in != {Total.UNNAMED.value}
        rows: list[Row] = []
        for metric in _metrics(rubric, key, run.statistics):
            at_least = metric.at_least
            if at_least is not None:
                shares = prompt_sums(judged, outcomes, is_known, lambda values, k=at_least: (values >= k).astype(float))  # type: ignore[misc]
                chosen = list(tallies(judged, shares, failed, n_aside, asked.reached))
            else:
                chosen = tallied
            for address, tally in chosen:
                found = cell_rows(
                    tally, rubric, key, expected=expected, has_categories=has_categories, floor=run.min_coverage, metric=metric
                )
                rows += [row | {"cell_id": cell_id(run.benchmark, row)} for row in (named | address | one for one in found)]
        yield _Dimension(key, outcomes, expected, tallied, rows)


def _metrics(rubric: Rubric, key: str, statistics: Statistics) -> list[Metric]:
    """The mean; and the share of scores of k or more, where the benchmark file gives the dimension a k."""
    k = statistics.at_least.get(f"{rubric.id}.{key}", statistics.at_least.get(key))
    return [Metric()] if k is None else [Metric(), Metric(at_least=k)]


def _rubrics_of(judgements: pl.LazyFrame, rubrics: Mapping[str, Rubric]) -> list[Rubric]:
    used = judgements.select(pl.col("rubric_id").unique()).collect().to_series().sort().to_list()
    for rubric_id in used:
        if rubric_id not in rubrics:
            raise RubricError(
                f"rubric {rubric_id!r} has judgements but was not given; given: {', '.join(sorted(rubrics)) or 'none'}"
            )
    return [rubrics[rubric_id] for rubric_id in used if not rubrics[rubric_id].is_of_pairs]  # whose wins are preferences


def _framed(table: Table, rows: list[Row]) -> pl.DataFrame:
    return table.frame(rows).sort(CELL_ORDER if table is BENCHMARK_LONG else list(table.key))


def cells(
    judgements: pl.LazyFrame | pl.DataFrame, scores: pl.LazyFrame | pl.DataFrame, rubrics: Mapping[str, Rubric], run: Settings
) -> pl.DataFrame:
    """The means of one run, sorted. Raises RubricError where a judgement's rubric is not given."""
    return means_for_prompts_like_these(long_table(judgements.lazy(), scores.lazy(), rubrics, run))
