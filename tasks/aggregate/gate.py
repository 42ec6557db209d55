"""Whether published comparisons show that a candidate is worse than what it is held against. Nothing is estimated anew here.

The figures are those of the tables `comparisons` and `preferences`; corrected together is what one question asks of them. How
it is told is flows/commands/printed/ruling.py.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from typing import Any

import polars as pl
import scipy  # its parts are imported where they are first used

from schemas.statuses.cells import CellReason, ComparisonKind, ComparisonReason, ComparisonTest, ComparisonVerdict, Correction
from schemas.tables.published import COMPARISONS
from tasks.aggregate.comparisons.comparison_tests import POWER
from tasks.aggregate.comparisons.families import adjust, could_be_turned
from tasks.aggregate.comparisons.sign_flip import N_EXACT, least_p
from tasks.aggregate.intervals import ClusteredMean, t_quantile
from tasks.aggregate.preferences.cells import ends
from tasks.aggregate.preferences.prompts import MIDDLE, PAIR

Contestant = tuple[str, str]
"""A model and a checkpoint."""
ALPHA = 0.0006
"""Two-sided: of 30 quiet nights less than one month in a hundred has a night with a false regression."""
ABSENT = "absent"
"""One of the two has no judgement in a ranking that the other stands in."""
TOO_FEW = "too_few_prompts_for_alpha"
"""No difference of so few prompts, however large, has a p under the gate's level."""
TURNED = "failures_could_turn_it"
"""It is lower, as a drop would be; had what failed the scores that are kindest to it, it would not be."""
RISE_TURNED = "failures_could_turn_the_rise"
"""The same of one that is higher: no improvement is claimed, and no drop was found."""
VERY_SAME = "the_very_same"
"""For every prompt the two show the judge the very same: there is no drop, and nothing new was judged."""
_TOO_MANY = ComparisonReason.TOO_MANY_TO_RANK.value
_Cell = tuple[str, str, str, str]
_CELL = ("rubric_id", "judge_model", "dimension", "category")


class Outcome(StrEnum):
    """What is said of one comparison."""

    REGRESSION = "regression"
    IMPROVED = "improved"
    NO_REGRESSION = "no_regression"  # none was found: how small a one would have been is beside it
    UNKNOWN = "unknown"  # they could not be compared, or failures may hide what changed, or be all that did


@dataclass(frozen=True, slots=True)
class Ruling:
    """One comparison of a candidate with its reference, in points of the rubric's scale; `delta` below 0: the candidate is lower.

    Of pairs of pictures (`is_win_rate`) `delta` is the candidate's win rate less one half, and prompts are those with a verdict.
    `delta_low`, `delta_high`: the corrected interval at the gate's level. `smallest_drop`: what would have been found in 80 % of
    cases. None where p is not that of the t test they belong to: of few prompts, and of looks.
    """

    rubric_id: str
    judge_model: str
    dimension: str
    category: str
    candidate: Contestant
    reference: Contestant
    outcome: Outcome
    reason: str | None
    delta: float | None
    delta_low: float | None
    delta_high: float | None
    p_adjusted: float | None
    smallest_drop: float | None
    n_prompts: int | None
    is_win_rate: bool = False


def predecessors(comparisons: pl.DataFrame) -> dict[Contestant, Contestant]:
    """The checkpoint directly before each, as published, also where it is not in the publication and has no figure."""
    rows = comparisons.filter(pl.col("comparison") == ComparisonKind.PREDECESSOR.value)
    named = rows.select(PAIR).unique().iter_rows()
    return {(model, checkpoint): (model_b, before) for model, checkpoint, model_b, before in named}


def rulings(
    comparisons: pl.DataFrame,
    standings: pl.DataFrame,
    pairs: Sequence[tuple[Contestant, Contestant]],
    alpha: float = ALPHA,
    *,
    won: pl.DataFrame | None = None,
    is_worst_case: bool = True,
) -> list[Ruling]:
    """Each pair (candidate, reference) in each headline ranking, p corrected by Bonferroni over those that could be compared.

    `comparisons` and `standings` as published, where `is_worst_case` says that their verdicts ask what failures could turn: no
    claim is made here that they could. Prompts that both have in no category at all are no comparison, nor is a dimension
    that applies to nothing of either. `won`: the rows of `preferences` that are headlines; two checkpoints without one in a
    rubric were not shown side by side under it, and nothing is ruled there.
    """
    cells: list[_Cell] = standings.filter("is_headline").select(_CELL).unique(maintain_order=True).rows()
    rows = _by_pair(comparisons, is_worst_case=is_worst_case)
    applies_to_none = (pl.col("reason") == CellReason.NOT_APPLICABLE.value) & (pl.col("n_judgements") == 0)
    aside = set(standings.filter(applies_to_none).select(*_CELL, "model", "checkpoint").rows())
    judged = [(cell, pair) for cell in cells for pair in pairs if not all((*cell, *one) in aside for one in pair)]
    asked = [(cell, pair, rows.get((*cell, *pair))) for cell, pair in judged]
    asked = [(cell, pair, row) for cell, pair, row in asked if row is None or row["reason"] != ComparisonReason.DATASET_DIFFERS]
    side_by_side = {} if won is None else _by_pair(_as_differences(won), is_worst_case=is_worst_case, is_win_rate=True)
    met: list[_Cell] = [] if won is None else won.select(_CELL).unique(maintain_order=True).rows()
    asked += [(cell, pair, side_by_side[*cell, *pair]) for cell in met for pair in pairs if (*cell, *pair) in side_by_side]
    tested = [row for _, _, row in asked if row is not None and row["p"] is not None]
    corrected = dict(zip(map(id, tested), adjust([row["p"] for row in tested], Correction.BONFERRONI), strict=True))
    level = 1 - alpha / max(1, len(tested))
    standing = set(standings.select(*_CELL, "model", "checkpoint").rows())
    return [
        _ruling(cell, pair, row, corrected.get(id(row)), (alpha, level)) if row is not None
        else _unknown(cell, pair, _TOO_MANY if all((*cell, *one) in standing for one in pair) else ABSENT)
        for cell, pair, row in asked
    ]  # fmt: skip


def _as_differences(won: pl.DataFrame) -> pl.DataFrame:
    """Win rates as differences from one half, as in `comparisons`. A pair without a verdict is the failure of neither side."""
    less = {"delta": "win_rate", "delta_bound_low": "bound_low", "delta_bound_high": "bound_high"}
    shifted = won.with_columns(
        *((pl.col(name) - MIDDLE).alias(delta) for delta, name in less.items()),
        n_prompts_paired="n_prompts", has_unequal_failures=pl.lit(False),
    )  # fmt: skip
    return pl.concat(
        [COMPARISONS.empty(), shifted.select([c for c in COMPARISONS.columns if c in shifted.columns])], how="diagonal"
    )


def _by_pair(
    comparisons: pl.DataFrame, *, is_worst_case: bool, is_win_rate: bool = False
) -> dict[tuple[object, ...], dict[str, Any]]:
    """The rows by cell, candidate and reference, each in both directions, and in each whether `failures_could_turn` it."""
    found: dict[tuple[object, ...], dict[str, Any]] = {}
    for row in comparisons.select(COMPARISONS.columns).iter_rows(named=True):
        cell = tuple(row[name] for name in _CELL)
        row |= {"failures_could_turn": _failures_could_turn(row, is_worst_case=is_worst_case), "is_win_rate": is_win_rate}
        a, b = (row["model_a"], row["checkpoint_a"]), (row["model_b"], row["checkpoint_b"])
        found.setdefault((*cell, a, b), row)
        found.setdefault((*cell, b, a), _turned(row))
    return found


def _turned(row: Mapping[str, Any]) -> dict[str, Any]:
    """The same comparison seen from b."""
    delta = None if row["delta"] is None else 0.0 - row["delta"]  # no -0
    return {**row, "delta": delta, "fail_rate_a": row["fail_rate_b"], "fail_rate_b": row["fail_rate_a"]}


def _failures_could_turn(row: Mapping[str, Any], *, is_worst_case: bool) -> bool:
    """By the published verdict; by the same rule where that is open, as at the gate's level it may not be."""
    if row["verdict"] == ComparisonVerdict.FAILURES_COULD_TURN_IT:
        return True
    is_bounded = None not in (row["delta"], row["delta_bound_low"], row["delta_bound_high"])
    return is_worst_case and is_bounded and could_be_turned(row)


def _ruling(
    cell: _Cell,
    pair: tuple[Contestant, Contestant],
    row: Mapping[str, Any],
    p_adjusted: float | None,
    levels: tuple[float, float],
) -> Ruling:
    alpha, level = levels
    delta, n_prompts, is_win_rate = row["delta"], row["n_prompts_paired"], row["is_win_rate"]
    if p_adjusted is None:
        return Ruling(*cell, *pair, Outcome.UNKNOWN, row["reason"], None, None, None, None, None, n_prompts, is_win_rate)
    if _least_p(row["test"], n_prompts) > 1 - level:
        return Ruling(*cell, *pair, Outcome.UNKNOWN, TOO_FEW, delta, None, None, p_adjusted, None, n_prompts, is_win_rate)
    low, high, drop = _precision(row, level)
    outcome, reason = Outcome.NO_REGRESSION, None
    if p_adjusted <= alpha and delta:
        outcome = Outcome.IMPROVED if delta > 0 else Outcome.REGRESSION
    if outcome is not Outcome.REGRESSION and row["has_unequal_failures"] and row["fail_rate_a"] > row["fail_rate_b"]:
        outcome, reason = Outcome.UNKNOWN, "fails_more"
    elif row["failures_could_turn"] and outcome is Outcome.REGRESSION:
        outcome, reason = Outcome.UNKNOWN, TURNED
    elif row["failures_could_turn"] and outcome is Outcome.IMPROVED:
        outcome, reason = Outcome.NO_REGRESSION, RISE_TURNED
    elif outcome is Outcome.NO_REGRESSION and row["n_prompts_identical"] == n_prompts:
        reason = VERY_SAME
    return Ruling(*cell, *pair, outcome, reason, delta, low, high, p_adjusted, drop, n_prompts, is_win_rate)


def _least_p(test: str, n_prompts: int) -> float:
    """What p of so many prompts cannot be under, however large the difference; a t test's of means can be any."""
    if test == ComparisonTest.SCORE_T:  # each prompt on one side
        return 2 * float(scipy.special.stdtr(n_prompts - 1, -math.sqrt(n_prompts)))
    return 0.0 if test == ComparisonTest.PAIRED_T else least_p(n_prompts)  # a bet at most doubles with each prompt


def _precision(row: Mapping[str, Any], level: float) -> tuple[float | None, float | None, float | None]:
    """The interval that belongs to the row's test at a level, and the drop found in 80 % of cases; None where there is none.

    Of win rates Wilson's; a drop that would be found is taken to vary as equals do, which is the most that win rates can.
    """
    delta, se, df = row["delta"], row["se"], row["df"]
    if row["test"] == ComparisonTest.PAIRED_T and row["n_looks"] is None:
        half = t_quantile(level, df) * se
        return delta - half, delta + half, half + float(scipy.special.stdtrit(df, POWER)) * se
    if row["test"] == ComparisonTest.SCORE_T and se > 0:
        rate = MIDDLE + delta
        found = ends(ClusteredMean(rate, se, df, row["n_prompts_paired"], None), level)
        drop = (t_quantile(level, df) + float(scipy.special.stdtrit(df, POWER))) * MIDDLE * se / math.sqrt(rate * (1 - rate))
        return (None, None, None) if found is None else (found[0] - MIDDLE, found[1] - MIDDLE, drop if drop < MIDDLE else None)
    return None, None, None


def _unknown(cell: _Cell, pair: tuple[Contestant, Contestant], reason: str) -> Ruling:
    return Ruling(*cell, *pair, Outcome.UNKNOWN, reason, None, None, None, None, None, None)


def prompts_needed(found: Sequence[Ruling], alpha: float) -> int:
    """The least shared prompts of which each of these comparisons could rule some difference, however large, together."""
    level = alpha / max(1, sum(ruling.p_adjusted is not None for ruling in found))
    of_means = min(N_EXACT + 1, 1 + math.ceil(-math.log2(level)))
    if not any(ruling.is_win_rate and ruling.reason == TOO_FEW for ruling in found):
        return of_means
    return max(of_means, next(n for n in count(2) if _least_p(ComparisonTest.SCORE_T, n) <= level))


def summary(found: Sequence[Ruling]) -> Outcome:
    """The whole: a regression anywhere, else what is unknown anywhere, else none found."""
    outcomes = {ruling.outcome for ruling in found}
    for outcome in (Outcome.REGRESSION, Outcome.UNKNOWN):
        if outcome in outcomes or not found:
            return outcome if found else Outcome.UNKNOWN
    return Outcome.NO_REGRESSION
