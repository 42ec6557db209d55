"""One ruling of `salon gate` in words: its line, the reason, how pairs were decided. What is said of all is ruling.py."""

from schemas.statuses.cells import ComparisonReason
from tasks.aggregate.preferences.prompts import MIDDLE
from tasks.aggregate.ruling import (
    ABSENT,
    FAILS_LOW,
    FAILS_MORE,
    FAILS_UNEQUALLY,
    NO_DIFFERENCE,
    ORDER_ALONE,
    ORDER_HIDES,
    STOPPED_EARLY,
    TOO_FEW,
    VERY_SAME,
    Decided,
    Outcome,
    Ruling,
)
from tasks.publish.standings.wording import counted, percent, signed

HEADERS = ("ranking", "candidate", "compared with", "change", "would find", "prompts", "ruling")
_WORDS = {
    Outcome.REGRESSION: "worse",
    Outcome.IMPROVED: "better",
    Outcome.NO_REGRESSION: "no drop found",
    Outcome.UNKNOWN: "can't tell",
}
_REASONS = {
    ABSENT: "one of the two was not judged under this rubric and judge",
    FAILS_LOW: "it fails where scores are low, and the failures may hide a drop",
    FAILS_MORE: "it fails on more prompts, and the failures may hide a drop",
    FAILS_UNEQUALLY: "failures are unequal, and may hide a drop",
    ComparisonReason.PREDECESSOR_MISSING: "the checkpoint before it is not in this table",
    ORDER_HIDES: "so many pairs go by order alone that no drop would be found",
    STOPPED_EARLY: "asking stopped early, and the rest may show a drop",
    TOO_FEW: "too few shared prompts for this --alpha",
    VERY_SAME: "both show the judge the very same",
}


def line(ruling: Ruling) -> tuple[str, ...]:
    """The cells of HEADERS."""
    ranking = f"{ruling.rubric_id}, {ruling.dimension}, judged by {ruling.judge_model}"
    change = "" if ruling.delta is None else _figure(ruling, ruling.delta)
    if ruling.delta_low is not None and ruling.delta_high is not None:
        change += f" [{_figure(ruling, ruling.delta_low)}, {_figure(ruling, ruling.delta_high)}]"
    drop = "" if ruling.smallest_drop is None else _figure(ruling, -ruling.smallest_drop)
    prompts = "" if ruling.n_prompts is None else str(ruling.n_prompts)
    why = _why(ruling)
    word = _WORDS[ruling.outcome] + (f": {'; '.join(why)}" if why else "")
    return ranking, "/".join(ruling.candidate), "/".join(ruling.reference), change, drop, prompts, word


def _why(ruling: Ruling) -> list[str]:
    """The reason in words, and how pairs were decided where some went by order alone."""
    pairs, reason = ruling.pairs, ruling.reason
    if pairs and reason == ORDER_ALONE:
        return [f"the order of showing alone decided {'all ' * (pairs.n_judged > 1)}{counted(pairs.n_judged, 'pair')}"]
    if reason == NO_DIFFERENCE:
        said = [_no_difference(ruling), "how small a drop would have been found is not known"]
    else:
        said = [_REASONS.get(reason, reason.replace("_", " "))] if reason else []
    return [*said, _decided(pairs)] if pairs and pairs.n_order_dependent else said


def _no_difference(ruling: Ruling) -> str:
    prompts = counted(ruling.n_prompts or 0, "prompt")
    if ruling.pairs:
        return f"neither won one of {counted(ruling.pairs.n_judged, 'pair')}"
    if ruling.same_score is not None:
        return f"every score is the same: {ruling.same_score:g} on all {prompts}"
    return f"both have the same score on each of {prompts}"


def _decided(pairs: Decided) -> str:
    """Such as "0 wins, 9 losses, 91 of 100 pairs by order alone"."""
    told = ((pairs.n_win, "win", "wins"), (pairs.n_tie, "tie", "ties"), (pairs.n_loss, "loss", "losses"))
    parts = [f"{n:,} {one if n == 1 else many}" for n, one, many in told if n or one != "tie"]
    return ", ".join([*parts, f"{pairs.n_order_dependent:,} of {counted(pairs.n_judged, 'pair')} by order alone"])


def not_applicable(ruling: Ruling) -> str:
    """Whose judgements a dimension does not apply to, where the two differ in it."""
    of_candidate, of_reference = ruling.n_not_applicable or (0, 0)
    if of_candidate == of_reference:
        return ""
    where = f"{ruling.rubric_id}, {ruling.dimension}, judged by {ruling.judge_model}"
    whose = f"{of_candidate:,} judgements of {'/'.join(ruling.candidate)}, {of_reference:,} of {'/'.join(ruling.reference)}"
    return f" Not applicable in {where}: {whose}."


def _figure(ruling: Ruling, delta: float) -> str:
    """Points with their sign, or the win rate."""
    return percent(MIDDLE + delta) if ruling.is_win_rate else signed(delta)
