"""What the gate says of a comparison: its outcome, the reason, the figures; and of all together. How it is ruled is gate.py."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

Contestant = tuple[str, str]
"""A model and a checkpoint."""
ABSENT = "absent"
"""One of the two has no judgement in a ranking that the other stands in."""
TOO_FEW = "too_few_prompts_for_alpha"
"""No difference of so few prompts, however large, has a p under the gate's level."""
TURNED = "failures_could_turn_it"
"""It is lower, as a drop would be; had what failed the scores that are kindest to it, it would not be."""
FAILS_MORE = "fails_more"
"""The candidate fails on more prompts, and unless it is worse already that may hide a drop. So with the next two."""
FAILS_LOW = "fails_low"
"""Its failures fall on prompts that the reference scores low."""
FAILS_UNEQUALLY = "fails_unequally"
"""One of these, and the table does not say which; of an older publication neither whether it is the candidate."""
RISE_TURNED = "failures_could_turn_the_rise"
"""The same of one that is higher: no improvement is claimed, and no drop was found."""
VERY_SAME = "the_very_same"
"""For every prompt the two show the judge the very same: there is no drop, and nothing new was judged."""
ORDER_ALONE = "by_order_alone"
"""Every judged pair went by the order in which its pictures were shown: nothing was found out about them."""
ORDER_HIDES = "order_hides_a_drop"
"""So many of them did that the win rate of who loses all the others is none that the gate would find."""
STOPPED_EARLY = "stopped_early"
"""Asking stopped before all was asked, by the tables' level, and the rest may show a drop that the gate would find."""
NOT_SHOWN = "not_shown_side_by_side"
"""A rubric of pairs has none of the two, and no other ranking rules on them."""
NO_DIFFERENCE = "no_difference_anywhere"
"""On no prompt the two differ, so that nobody knows how small a drop would have been found."""


class Outcome(StrEnum):
    """What is said of one comparison."""

    REGRESSION = "regression"
    IMPROVED = "improved"
    NO_REGRESSION = "no_regression"  # none was found: beside it how small a one would have been, or why that is not known
    UNKNOWN = "unknown"  # they could not be compared, or failures, the order of showing or what was not asked may hide a change


@dataclass(frozen=True, slots=True)
class Decided:
    """How a comparison's judged pairs were decided: for the candidate, for neither, against it, by the order of showing alone."""

    n_win: int
    n_tie: int
    n_loss: int
    n_order_dependent: int

    @property
    def n_judged(self) -> int:
        """All of them."""
        return self.n_win + self.n_tie + self.n_loss + self.n_order_dependent


@dataclass(frozen=True, slots=True)
class Ruling:
    """One comparison of a candidate with its reference, in points of the rubric's scale; `delta` below 0: the candidate is lower.

    Of pairs of pictures (`is_win_rate`) `delta` is the candidate's win rate less one half, and prompts are those with a verdict.
    `delta_low`, `delta_high`: the corrected interval at the gate's level. `smallest_drop`: what would have been found in 80 % of
    cases. None where p is not that of the t test they belong to: of few prompts, and of looks. `smallest_drop` moreover where so
    many pairs go by order alone that the win rate cannot fall so far. `same_score`: what each score of both is, where it is
    NO_DIFFERENCE. `n_not_applicable`: judgements to which the dimension does not apply, of the candidate and the reference.
    """

    rubric_id: str
    judge_model: str
    dimension: str
    category: str
    candidate: Contestant
    reference: Contestant
    outcome: Outcome
    reason: str | None
    delta: float | None = None
    delta_low: float | None = None
    delta_high: float | None = None
    p_adjusted: float | None = None
    smallest_drop: float | None = None
    n_prompts: int | None = None
    is_win_rate: bool = False
    pairs: Decided | None = None
    same_score: float | None = None
    n_not_applicable: tuple[int, int] | None = None


def summary(found: Sequence[Ruling]) -> Outcome:
    """The whole: a regression anywhere, else what is unknown anywhere, else none found."""
    outcomes = {ruling.outcome for ruling in found}
    for outcome in (Outcome.REGRESSION, Outcome.UNKNOWN):
        if outcome in outcomes or not found:
            return outcome if found else Outcome.UNKNOWN
    return Outcome.NO_REGRESSION
