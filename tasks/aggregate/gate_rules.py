"""What the gate says of one comparison with a p, by its published row. Which are compared, and the figures: gate.py."""

from collections.abc import Mapping, Sequence
from typing import Any

import scipy  # its parts are imported where they are first used

from schemas.statuses.cells import ComparisonVerdict, Failing
from tasks.aggregate.comparisons.families import ALPHA, could_be_turned
from tasks.aggregate.ruling import (
    FAILS_LOW,
    FAILS_MORE,
    FAILS_UNEQUALLY,
    NO_DIFFERENCE,
    ORDER_ALONE,
    RISE_TURNED,
    TURNED,
    VERY_SAME,
    Outcome,
)
from tasks.aggregate.sequential import Look

_MOST_MISSED = 0.1
"""The chance, as Look.chance() has it, at which the rest of the prompts may show a drop: a file's usual `futility`."""


def failures_could_turn(row: Mapping[str, Any], *, is_worst_case: bool) -> bool:
    """By the published verdict; by the same rule where that is open, as at the gate's level it may not be."""
    if row["verdict"] == ComparisonVerdict.FAILURES_COULD_TURN_IT:
        return True
    is_bounded = None not in (row["delta"], row["delta_bound_low"], row["delta_bound_high"])
    return is_worst_case and is_bounded and could_be_turned(row)


def outcome_of(row: Mapping[str, Any], *, is_sure: bool) -> tuple[Outcome, str | None]:
    """What a comparison with a p says, and why where it is not what the figures say."""
    delta, n_prompts, pairs = row["delta"], row["n_prompts_paired"], row["pairs"]
    if pairs and pairs.n_order_dependent == pairs.n_judged:
        return Outcome.UNKNOWN, ORDER_ALONE
    outcome = Outcome.NO_REGRESSION
    if is_sure and delta:
        outcome = Outcome.IMPROVED if delta > 0 else Outcome.REGRESSION
    fails = _how_a_fails(row)
    if outcome is not Outcome.REGRESSION and fails:
        return Outcome.UNKNOWN, fails
    if row["failures_could_turn"] and outcome is not Outcome.NO_REGRESSION:
        return (Outcome.UNKNOWN, TURNED) if outcome is Outcome.REGRESSION else (Outcome.NO_REGRESSION, RISE_TURNED)
    if outcome is not Outcome.NO_REGRESSION:
        return outcome, None
    if row["n_prompts_identical"] == n_prompts:
        return outcome, VERY_SAME
    is_nowhere = pairs.n_win == pairs.n_loss == 0 if pairs else row["tie"] == n_prompts
    return outcome, NO_DIFFERENCE if is_nowhere else None


def _how_a_fails(row: Mapping[str, Any]) -> str | None:
    """How a fails unequally; None where it does not. A row without `failing` is of a publication that had no such column."""
    if not row["has_unequal_failures"] or row["failing"] == Failing.B:
        return None
    is_more, is_low = (p is not None and p < ALPHA / 2 for p in (row["p_failures"], row["p_failures_low"]))
    if row["failing"] is None or is_more == is_low:  # the correction is not seen here
        return FAILS_UNEQUALLY
    return FAILS_MORE if is_more else FAILS_LOW


def rest_may_show_a_drop(row: Mapping[str, Any], alpha: float, looks: Sequence[float]) -> bool:
    """Whether asking stopped before all was asked, and the rest could show the gate a drop, which it does not find by now.

    Asking stops by the tables' level, which is seldom the gate's, and what the gate must not do is pass a regression. So it
    passes what the tables call better, never what they call worse. Of what is open it passes what is futile at its own level
    `alpha`: the last look would seldom find a drop. That holds of all that was left as futile at a level no stricter than that,
    but neither of all that money ended, nor of two whose comparison was none of those to decide. Pairs have no futility: what
    is open there ended otherwise. `looks` are shares of the prompts: a row does not say what a look held of each category.
    """
    delta, verdict = row["delta"], row["verdict"]
    is_early = row["is_stopped_early"] if row["is_win_rate"] else (row["look"] or 0) < (row["n_looks"] or 0)
    if not is_early:
        return False
    if verdict not in (None, ComparisonVerdict.OPEN):
        return bool(delta < 0)
    if row["is_win_rate"] or len(looks) != row["n_looks"] or None in (row["se"], row["df"]):
        return True
    if not row["se"]:  # every difference is the same
        return bool(delta < 0)
    nominal = 2 * float(scipy.special.stdtr(row["df"], -abs(delta) / row["se"]))
    at = Look(tuple(looks[: row["look"]]), tuple(looks[row["look"] :]))
    return at.chance(nominal, alpha, is_other_side=delta > 0) >= _MOST_MISSED
