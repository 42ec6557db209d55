"""Whether published comparisons show that a candidate is worse than what it is held against. Nothing is estimated anew here.

The figures are those of the tables `comparisons` and `preferences`; corrected together is what one question asks of them. What
a ruling holds is ruling.py, how it is told flows/commands/printed/ruling.py.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from itertools import count
from typing import Any

import polars as pl
import scipy  # its parts are imported where they are first used

from schemas.metrics import means_for_prompts_like_these
from schemas.statuses.cells import (
    CellReason,
    ComparisonKind,
    ComparisonReason,
    ComparisonTest,
    Correction,
    Failing,
    Total,
)
from schemas.tables.published import COMPARISONS
from tasks.aggregate.comparisons.comparison_tests import N_EXACT, POWER, SAME, least_p
from tasks.aggregate.comparisons.families import adjust
from tasks.aggregate.gate_rules import failures_could_turn, outcome_of, rest_may_show_a_drop
from tasks.aggregate.intervals import ClusteredMean, t_quantile
from tasks.aggregate.preferences.cells import ends
from tasks.aggregate.preferences.prompts import MIDDLE, PAIR
from tasks.aggregate.ruling import (
    ABSENT,
    NO_DIFFERENCE,
    ORDER_HIDES,
    STOPPED_EARLY,
    TOO_FEW,
    VERY_SAME,
    Contestant,
    Decided,
    Outcome,
    Ruling,
)

ALPHA = 0.0006
"""Two-sided: of 30 quiet nights less than one month in a hundred has a night with a false regression."""
_TOO_MANY = ComparisonReason.TOO_MANY_TO_RANK.value
_Cell = tuple[str, str, str, str]
_CELL = ("rubric_id", "judge_model", "dimension", "category")


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
    looks: Sequence[float] = (),
) -> list[Ruling]:
    """Each pair (candidate, reference) in each headline ranking, p corrected by Bonferroni over those that could be compared.

    `comparisons` and `standings` as published, where `is_worst_case` says that their verdicts ask what failures could turn: no
    claim is made here that they could. Prompts that both have in no category at all are no comparison, nor is a dimension
    that applies to nothing of either. `won`: the rows of `preferences` that are headlines; two checkpoints without one in a
    rubric were not shown side by side under it, and nothing is ruled there. `looks`: the publication's, as shares of the prompts.
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
        _ruling(cell, pair, row, corrected.get(id(row)), (alpha, level), looks) if row is not None
        else Ruling(*cell, *pair, Outcome.UNKNOWN, _TOO_MANY if all((*cell, *one) in standing for one in pair) else ABSENT)
        for cell, pair, row in asked
    ]  # fmt: skip


def with_cells(found: Sequence[Ruling], cells: pl.DataFrame) -> list[Ruling]:
    """With `same_score` and `n_not_applicable`, by `cells` (rows of `benchmark_long`): the category's, or over all images."""
    mine = means_for_prompts_like_these(cells)
    rows = {tuple(row[name] for name in (*_CELL, "model", "checkpoint")): row for row in mine.iter_rows(named=True)}
    return [_beside(one, rows) for one in found]


def _beside(one: Ruling, rows: Mapping[tuple[object, ...], Mapping[str, Any]]) -> Ruling:
    category = Total.MICRO.value if one.category == Total.MACRO else one.category
    cell = one.rubric_id, one.judge_model, one.dimension, category
    candidate, reference = (rows.get((*cell, *who)) for who in (one.candidate, one.reference))
    if candidate is None or reference is None:  # as of pairs
        return one
    n_aside = candidate.get("n_not_applicable") or 0, reference.get("n_not_applicable") or 0  # older publications do not say
    is_same = one.reason == NO_DIFFERENCE and _is_one_score(candidate) and _is_one_score(reference)
    return replace(one, n_not_applicable=n_aside, same_score=reference["estimate"] if is_same else None)


def _is_one_score(row: Mapping[str, Any]) -> bool:
    """Whether each prompt has one, and all have the same."""
    width = row["scale_high"] - row["scale_low"]
    return row["n_scored"] == row["n_prompts"] and row["se"] is not None and bool(row["se"] <= SAME * width)


def _as_differences(won: pl.DataFrame) -> pl.DataFrame:
    """Win rates as differences from one half, as in `comparisons`. A pair without a verdict is the failure of neither side."""
    less = {"delta": "win_rate", "delta_bound_low": "bound_low", "delta_bound_high": "bound_high"}
    shifted = won.with_columns(
        *((pl.col(name) - MIDDLE).alias(delta) for delta, name in less.items()),
        n_prompts_paired="n_prompts", has_unequal_failures=pl.lit(False),
    )  # fmt: skip
    return pl.concat([COMPARISONS.empty(), shifted], how="diagonal")


def _by_pair(
    comparisons: pl.DataFrame, *, is_worst_case: bool, is_win_rate: bool = False
) -> dict[tuple[object, ...], dict[str, Any]]:
    """The rows by cell, candidate and reference, each in both directions, and in each whether `failures_could_turn` it."""
    found: dict[tuple[object, ...], dict[str, Any]] = {}
    for row in comparisons.iter_rows(named=True):
        cell = tuple(row[name] for name in _CELL)
        row |= {"failures_could_turn": failures_could_turn(row, is_worst_case=is_worst_case), "is_win_rate": is_win_rate}
        row["pairs"] = Decided(*(row[one.name] for one in fields(Decided))) if is_win_rate else None
        a, b = (row["model_a"], row["checkpoint_a"]), (row["model_b"], row["checkpoint_b"])
        found.setdefault((*cell, a, b), row)
        found.setdefault((*cell, b, a), _turned(row))
    return found


def _turned(row: Mapping[str, Any]) -> dict[str, Any]:
    """The same comparison seen from b."""
    delta, pairs = None if row["delta"] is None else 0.0 - row["delta"], row["pairs"]  # no -0
    pairs = pairs and replace(pairs, n_win=pairs.n_loss, n_loss=pairs.n_win)
    failing = {Failing.A.value: Failing.B.value, Failing.B.value: Failing.A.value}.get(row["failing"], row["failing"])
    return {**row, "delta": delta, "pairs": pairs, "failing": failing}


def _ruling(
    cell: _Cell,
    pair: tuple[Contestant, Contestant],
    row: Mapping[str, Any],
    p_adjusted: float | None,
    levels: tuple[float, float],
    looks: Sequence[float],
) -> Ruling:
    alpha, level = levels
    delta, n_prompts = row["delta"], row["n_prompts_paired"]
    found = Ruling(
        *cell, *pair, Outcome.UNKNOWN, row["reason"], n_prompts=n_prompts, is_win_rate=row["is_win_rate"], pairs=row["pairs"]
    )
    if p_adjusted is None:
        return found
    if _least_p(row["test"], n_prompts) > 1 - level:
        return replace(found, reason=TOO_FEW, delta=delta, p_adjusted=p_adjusted)
    low, high, drop = _precision(row, level)
    outcome, reason = outcome_of(row, is_sure=p_adjusted <= alpha)
    if outcome is Outcome.NO_REGRESSION and rest_may_show_a_drop(row, 1 - level, looks):
        outcome, reason = Outcome.UNKNOWN, STOPPED_EARLY
    if drop is not None and row["is_win_rate"]:
        # it cannot fall below the win rate of who loses each pair that does not go by order alone
        largest = MIDDLE - (row["bound_low"] - row["order_bound_low"])
        if largest <= drop < MIDDLE and outcome is Outcome.NO_REGRESSION and reason != VERY_SAME:
            outcome, reason = Outcome.UNKNOWN, ORDER_HIDES
        drop = drop if drop < largest else None
    return replace(
        found, outcome=outcome, reason=reason, delta=delta, delta_low=low, delta_high=high, p_adjusted=p_adjusted,
        smallest_drop=drop,
    )  # fmt: skip


def _least_p(test: str, n_prompts: int) -> float:
    """What p of so many prompts cannot be under, however large the difference; a t test's of means can be any."""
    if test == ComparisonTest.SCORE_T:  # each prompt on one side
        return 2 * float(scipy.special.stdtr(n_prompts - 1, -math.sqrt(n_prompts)))
    return 0.0 if test == ComparisonTest.PAIRED_T else least_p(n_prompts)  # a bet at most doubles with each prompt


def _precision(row: Mapping[str, Any], level: float) -> tuple[float | None, float | None, float | None]:
    """The interval that belongs to the row's test at a level, and the drop found in 80 % of cases; None where there is none.

    Of win rates Wilson's; a drop that would be found is taken to vary as equals do, which is the most that win rates can. It may
    be more than they can fall.
    """
    delta, se, df = row["delta"], row["se"], row["df"]
    if row["test"] == ComparisonTest.PAIRED_T and row["n_looks"] is None:
        half = t_quantile(level, df) * se
        return delta - half, delta + half, half + float(scipy.special.stdtrit(df, POWER)) * se
    if row["test"] == ComparisonTest.SCORE_T and se > 0:
        rate = MIDDLE + delta
        found = ends(ClusteredMean(rate, se, df, row["n_prompts_paired"], None), level)
        drop = (t_quantile(level, df) + float(scipy.special.stdtrit(df, POWER))) * MIDDLE * se / math.sqrt(rate * (1 - rate))
        return (None, None, None) if found is None else (found[0] - MIDDLE, found[1] - MIDDLE, drop)
    return None, None, None


def prompts_needed(found: Sequence[Ruling], alpha: float) -> int:
    """The least shared prompts of which each of these comparisons could rule some difference, however large, together."""
    level = alpha / max(1, sum(ruling.p_adjusted is not None for ruling in found))
    of_means = min(N_EXACT + 1, 1 + math.ceil(-math.log2(level)))
    if not any(ruling.is_win_rate and ruling.reason == TOO_FEW for ruling in found):
        return of_means
    return max(of_means, next(n for n in count(2) if _least_p(ComparisonTest.SCORE_T, n) <= level))
