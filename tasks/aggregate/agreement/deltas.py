"""The tables `corrected_comparisons` and `corrected_standings`: what the judge, people, and both together say of checkpoints.

Means are corrected.py, the figures estimates.py, corrections for the number of comparisons families.py.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl

from rubrics.model import Rubric
from schemas.metrics import is_primary
from schemas.statuses.cells import CellStatus, ComparisonKind, StandingState, Total
from schemas.statuses.people import AgreementReason, Estimator
from schemas.tables.agreement import CORRECTED_COMPARISONS, CORRECTED_STANDINGS
from schemas.tables.table import Row, Table
from tasks.aggregate.agreement.blocked import Blocked
from tasks.aggregate.agreement.estimates import Made, Values, made
from tasks.aggregate.agreement.grid import Grid, System
from tasks.aggregate.agreement.label_check import Check, label_check
from tasks.aggregate.agreement.pairs import Rated
from tasks.aggregate.comparisons.comparison_tests import SAME, sign_flip_p, t_test
from tasks.aggregate.comparisons.families import Family
from tasks.aggregate.comparisons.families import corrected as corrected_family
from tasks.aggregate.intervals import LEVEL, rounded, t_quantile
from tasks.aggregate.preferences.prompts import PAIR
from tasks.aggregate.scales import total_reason
from tasks.aggregate.standings import ranked
from tasks.aggregate.tables import Settings

RANKED = (Estimator.JUDGE, Estimator.LABELS, Estimator.PREDICTION_POWERED)


@dataclass(frozen=True, slots=True)
class _Dimension:
    """A rated dimension, and where it is ranked: over all categories, or in each where it has no total."""

    grid: Grid
    places: tuple[str, ...]
    rankings: tuple[str, ...]
    is_headline: bool
    checks: Mapping[str, Check]

    @classmethod
    def of(cls, rated: Rated, run: Settings) -> "_Dimension":
        """The dimension with its grid and label checks."""
        grid = Grid(rated)
        names = tuple(grid.category_names)
        total = () if total_reason(rated.rubric, rated.dimension) else (Total.MACRO.value,)
        read = {dimension.key for dimension in rated.rubric.dimensions}
        is_main = is_primary(rated.rubric.id, rated.dimension, read, run.statistics.primary)
        checks = {judge.name: label_check(grid, judge, is_within=True) for judge in rated.judges}
        return cls(grid, (*total, *names), total or names, is_main, checks)

    @property
    def judges(self) -> tuple[str | None, ...]:
        return (None, *(judge.name for judge in self.grid.rated.judges))

    def values(self, judge: str | None, rows: np.ndarray, a: int, b: int | None = None) -> Values:
        """Of a checkpoint, or of one less another."""
        labels, by_rater, are_named = self.grid.labels, self.grid.by_rater, self.grid.rated.are_named
        judged = self.grid.judged[judge] if judge else None
        if b is None:
            return Values(labels[a, rows], by_rater[a, rows], None if judged is None else judged[a, rows], are_named)
        return Values(
            labels[a, rows] - labels[b, rows], by_rater[a, rows] - by_rater[b, rows],
            None if judged is None else judged[a, rows] - judged[b, rows], are_named,
        )  # fmt: skip


def corrected_deltas(found: Iterable[tuple[Rubric, list[Rated]]], run: Settings, blocked: Blocked) -> dict[Table, pl.DataFrame]:
    """Both tables, sorted. Ratings without a scale are compared by ranks alone (agreement.py): they have no row here."""
    compared: dict[Estimator, list[Row]] = {estimator: [] for estimator in Estimator}
    standing: dict[Estimator, list[Row]] = {estimator: [] for estimator in RANKED}
    for rubric, dimensions in found:
        named = run.named | {"ci_level": LEVEL, "rubric_id": rubric.id, "rubric_version": rubric.version}
        for rated in dimensions:
            one = _Dimension.of(rated, run) if rated.raters else None
            if one is None or not one.grid.has_scale or len(one.grid.systems) < 2:
                continue
            for row in _comparison_rows(one, run, blocked):
                compared[Estimator(str(row["estimator"]))].append(named | row)
            for row in _standing_rows(one, blocked):
                standing[Estimator(str(row["estimator"]))].append(named | row)
    done = {estimator: _corrected(rows, estimator, run) for estimator, rows in compared.items()}
    ranks = [row for estimator, rows in standing.items() for row in ranked(_placed(rows, done[estimator]), done[estimator])]
    rounded = [_rounded(row) for rows in done.values() for row in rows]
    return {
        CORRECTED_COMPARISONS: CORRECTED_COMPARISONS.frame(rounded).sort(CORRECTED_COMPARISONS.key),
        CORRECTED_STANDINGS: CORRECTED_STANDINGS.frame(map(_rounded, ranks)).sort(CORRECTED_STANDINGS.key),
    }


def _corrected(rows: Sequence[Row], estimator: Estimator, run: Settings) -> list[Row]:
    """Each estimator's comparisons are corrected apart, and their families are named apart."""
    done = corrected_family(rows, run.benchmark, run.statistics)
    return [row | ({"family": f"{row['family']} | {estimator}"} if row["family"] is not None else {}) for row in done]


def _comparison_rows(one: _Dimension, run: Settings, blocked: Blocked) -> Iterator[Row]:
    systems = one.grid.systems
    for kind, a, b in _pairs(systems, run):
        for place in one.rankings if kind is ComparisonKind.EACH_OTHER else one.places:
            ends = dict(zip(PAIR, (*systems[a], *systems[b]), strict=True))
            family = Family.CATEGORIES if place not in one.rankings else Family.HEADLINE if one.is_headline else Family.ASPECTS
            for judge in one.judges:
                part = one.grid.part(place, judge)
                values = one.values(judge, part.rows, a, b)
                for estimator in _estimators(judge, of_deltas=True):
                    figure = made(estimator, values, part.strata)
                    whys = (blocked.why(one.grid.rated, judge, estimator, (place, *systems[end])) for end in (a, b))
                    if any(whys) and figure.reason is not AgreementReason.NO_SCORES:
                        figure = figure.withheld()
                    yield ends | {"comparison": kind.value, "family": family} | _row(one, judge, place, estimator, figure)


def _estimators(judge: str | None, *, of_deltas: bool) -> tuple[Estimator, ...]:
    if judge is None:
        return (Estimator.LABELS,)
    return (Estimator.JUDGE, Estimator.PREDICTION_POWERED, *((Estimator.JUDGE_ERROR,) if of_deltas else ()))


def _pairs(systems: Sequence[System], run: Settings) -> Iterator[tuple[ComparisonKind, int, int]]:
    """As on the leaderboard: each checkpoint and its predecessor, all and the baseline, every two."""
    before = run.lineage.before(systems)
    for one in sorted(systems, key=run.lineage.key):
        if before.get(one) in systems:
            yield ComparisonKind.PREDECESSOR, systems.index(one), systems.index(before[one])
    for base in (n for n, system in enumerate(systems) if "/".join(system) == run.baseline):
        for a in range(len(systems)):
            if a != base:
                yield ComparisonKind.BASELINE, a, base
    if len(systems) <= run.statistics.max_ranked:
        for a, b in combinations(range(len(systems)), 2):
            yield ComparisonKind.EACH_OTHER, a, b


def _row(one: _Dimension, judge: str | None, place: str, estimator: Estimator, figure: Made) -> Row:
    rated = one.grid.rated
    width = rated.high - rated.low
    row: Row = _named(one, judge, place, estimator, figure) | {
        "width": width,
        "delta": None,
        "n_prompts_paired": figure.n_prompts,
    }
    if figure.mean is None:
        return row | {"status": CellStatus.NULL.value, "reason": figure.reason.value if figure.reason else None}
    delta, se, df = figure.mean.mean, figure.mean.se, figure.mean.df
    row |= {"delta": delta, "delta_bound_low": delta, "delta_bound_high": delta, "se": se, "df": df}
    if se is None or df is None:
        return row | {"status": CellStatus.NO_INTERVAL.value, "reason": AgreementReason.TOO_FEW_PROMPTS.value}
    if se <= SAME * width:  # also a corrected one is then people's alone: labels that do not vary leave the judge no slope
        p = sign_flip_p(figure.strata, width)
        return row | {"p": p, "status": CellStatus.NO_INTERVAL.value, "reason": AgreementReason.NO_VARIATION.value}
    half = t_quantile(LEVEL, df) * se
    return row | {
        "ci_low": max(-width, delta - half), "ci_high": min(width, delta + half), "p": t_test(delta, se, df),
        "status": CellStatus.OK.value, "reason": None,
    }  # fmt: skip


def _named(one: _Dimension, judge: str | None, place: str, estimator: Estimator, figure: Made) -> Row:
    check = one.checks.get(judge or "")
    return {
        "judge_model": judge, "dimension": one.grid.rated.dimension, "category": place, "estimator": estimator.value,
        "n_prompts": figure.n_prompts, "n_prompts_labelled": figure.n_labelled, "n_raters": len(one.grid.rated.raters),
        "power_tuning": figure.tuning, "rater_se": None if figure.spread is None else figure.spread.variance**0.5,
        **(check.row if check else {}),
    }  # fmt: skip


def _standing_rows(one: _Dimension, blocked: Blocked) -> Iterator[Row]:
    """Each checkpoint's mean in each ranking; whether it has a rank is `_placed`'s."""
    rated = one.grid.rated
    for place in one.rankings:
        for judge in one.judges:
            part = one.grid.part(place, judge)
            for estimator in _estimators(judge, of_deltas=False):
                for number, (model, checkpoint) in enumerate(one.grid.systems):
                    why_blocked = blocked.why(rated, judge, estimator, (place, model, checkpoint))
                    whole = made(estimator, one.values(judge, part.rows, number), part.strata)
                    figure, is_blocked, row = whole.shown(rated.low, rated.high, why_blocked)
                    yield _named(one, judge, place, estimator, figure) | row | {
                        "model": model, "checkpoint": checkpoint, "is_headline": one.is_headline,
                        "state": (StandingState.BLOCKED if is_blocked else StandingState.NOT_COMPARED).value,
                        "has_uneven_prompts": None if judge is None else one.grid.is_uneven(judge, number, part),
                    }  # fmt: skip


def _placed(rows: Sequence[Row], compared: Sequence[Row]) -> list[Row]:
    """The rows with their state: ranked are those that were compared with one another, as in standings.py."""
    gaps: dict[tuple[object, ...], dict[frozenset[System], object]] = {}
    for row in compared:
        if row["comparison"] == ComparisonKind.EACH_OTHER.value and row.get("p") is None:
            ends = frozenset((str(row[f"model_{end}"]), str(row[f"checkpoint_{end}"])) for end in "ab")
            gaps.setdefault(_ranking(row), {})[ends] = row.get("reason")
    kept: dict[tuple[object, ...], set[System]] = {}
    for row in rows:
        if row["estimate"] is not None:
            kept.setdefault(_ranking(row), set()).add((str(row["model"]), str(row["checkpoint"])))
    for ranking, mine in kept.items():
        while open_ends := [ends for ends in gaps.get(ranking, ()) if ends <= mine]:
            n_gaps = Counter(system for ends in open_ends for system in ends)
            mine.remove(max(n_gaps, key=lambda system: (n_gaps[system], system)))
    done = []
    for row in rows:
        mine = kept.get(_ranking(row), set())
        is_ranked = len(mine) > 1 and (row["model"], row["checkpoint"]) in mine
        own = next((why for ends, why in gaps.get(_ranking(row), {}).items() if (row["model"], row["checkpoint"]) in ends), None)
        why = row["reason"]  # of the missing mean or interval; that of a missing rank goes before an interval's
        if not is_ranked and row["estimate"] is not None:
            why = own or AgreementReason.TOO_FEW_PROMPTS.value
        done.append(row | {"state": StandingState.RANKED.value if is_ranked else row["state"], "reason": why})
    return done


def _ranking(row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in ("rubric_id", "judge_model", "dimension", "category"))


def _rounded(row: Row) -> Row:
    return {name: rounded(value) if isinstance(value, float) else value for name, value in row.items()}
