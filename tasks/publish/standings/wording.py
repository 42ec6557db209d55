"""How standings read: a rank, a difference, why there is none. Nothing is computed here. Whole sentences are answers.py.

The rows are made in tasks/aggregate/standings.py; terminal, page, Markdown and LaTeX say what these functions say.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from schemas.metrics import natural_key
from schemas.records import UNNAMED
from schemas.statuses.cells import CellReason, CellStatus, ComparisonReason, ComparisonVerdict, Correction, StandingState, Total

Row = Mapping[str, Any]
DASH = "–"
_SETTING = "statistics.min_paired_prompts"
_ALPHA = 0.05  # of a family's comparisons together
MAX_DIGITS = 4
EXPLORATORY = ", exploratory"
"""Behind a verdict that is corrected among its own kind alone: many such are looked at, and some are false."""
VERDICT_WORDS = {
    ComparisonVerdict.HIGHER: "better",
    ComparisonVerdict.LOWER: "worse",
    ComparisonVerdict.OPEN: "can't tell",
    ComparisonVerdict.FAILURES_COULD_TURN_IT: "failures could turn it",
}
_NOT_COMPARED = {
    ComparisonReason.RUBRIC_DIFFERS: "they were judged under different versions of the rubric",
    ComparisonReason.JUDGE_DIFFERS: "they have different judges",
    ComparisonReason.ANSWERING_MODEL_DIFFERS: "different models answered for them under the judge's name",
    ComparisonReason.PREDECESSOR_MISSING: "that one, directly before it, is not in this table",
    ComparisonReason.DATASET_DIFFERS: "they share no prompt",
    ComparisonReason.TOO_FEW_PAIRED_PROMPTS: "they share too few prompts, of a category or in all",
    ComparisonReason.NO_SUCH_TOTAL: "one of them has no such mean",
    ComparisonReason.BLOCKED: "one of them is blocked",
    ComparisonReason.NO_VARIATION: "the prompts' differences do not vary",
    ComparisonReason.TOO_MANY_TO_RANK: "there are more checkpoints than statistics.max_ranked",
}


def why_not_compared(row: Row) -> str:
    """Why there is no difference to the predecessor, or no p of it."""
    reason = row["reason_predecessor"]
    return _NOT_COMPARED.get(reason, str(reason or "no reason given").replace("_", " "))


def best_first(row: Row) -> tuple[object, ...]:
    """The order within a ranking, wherever rows are listed: by rank range, then by mean, the unranked last; equals by name."""
    estimate, low, high = row["estimate"], row["rank_low"], row["rank_high"]
    ranked = (low is None, low or 0, high or 0, estimate is None, -(estimate or 0.0))
    return *ranked, row["model"], natural_key(row["checkpoint"]), row["checkpoint"]


def tells_best(rows: Sequence[Row]) -> bool:
    """Whether some of a ranking are certainly not its best: only then are those marked that may be, all of rank 1."""
    return any((row["rank_low"] or 0) > 1 for row in rows)


def rank(row: Row) -> str:
    """Such as "1", or "1–3" where the comparisons leave more than one rank; a dash where it has none."""
    low, high = row["rank_low"], row["rank_high"]
    if low is None:
        return DASH
    return str(low) if low == high else f"{low}–{high}"


def difference(row: Row, other: str, n_digits: int = 2) -> str:
    """The difference to `other` ("predecessor" or "baseline"), such as "+0.42 [0.10, 0.74] better"; empty where none was made."""
    if row[f"delta_{other}"] is None:
        return f"{row[other]} is not in this table" if row[f"reason_{other}"] == ComparisonReason.PREDECESSOR_MISSING else ""
    is_by_rank = row.get("adjustment") == Correction.BENJAMINI_HOCHBERG  # where all are found, the least p is held against 5 %
    if _cannot_be_shown(row, other, 1 if is_by_rank else None):
        among = f"{row['n_family']} comparisons" if row.get("n_family") else "the comparisons of its family"
        return f"{delta(row, other, n_digits)}: {row[f'n_prompts_{other}']} prompts cannot show a difference among {among}"
    return f"{delta(row, other, n_digits)} {verdict_word(row, other)}".rstrip()


def _cannot_be_shown(row: Row, other: str, n_family: int | None = None) -> bool:
    """Whether no difference of so few prompts, however large, is one at the corrected level: the interval is the whole scale."""
    names = f"delta_{other}_low", f"delta_{other}_high", f"n_prompts_{other}", "scale_low", "scale_high"
    found: list[Any] = [row.get(name) for name in names]  # older publications lack some
    low, high, n_prompts, least, most = found
    if None in found or low > least - most or high < most - least:
        return False
    return bool(2.0 ** (1 - n_prompts) * (n_family or row.get("n_family") or math.inf) > _ALPHA)  # the least p of all signs alike


def verdict_word(row: Row, other: str) -> str:
    """What the difference to `other` says, such as "better"; where it was not tested, why."""
    verdict = row[f"verdict_{other}"]
    if verdict is None:
        return str(row[f"reason_{other}"] or "").replace("_", " ")
    is_claim = verdict in (ComparisonVerdict.HIGHER, ComparisonVerdict.LOWER)
    return VERDICT_WORDS[verdict] + (EXPLORATORY if is_claim and is_exploratory(row) else "")


def is_exploratory(row: Row) -> bool:
    """Whether its ranking is none of those that the benchmark makes claims of; unknown, and so false, in older publications."""
    return row.get("is_headline") is False


def delta(row: Row, other: str, n_digits: int = 2) -> str:
    """The difference to `other` and its interval, such as "+0.42 [0.10, 0.74]"; one that is the whole scale is none."""
    value, low, high = (row[f"delta_{other}{end}"] for end in ("", "_low", "_high"))
    is_none = low is None or _cannot_be_shown(row, other)
    return signed(value, n_digits) + ("" if is_none else f" [{signed(low, n_digits)}, {signed(high, n_digits)}]")


def why(row: Row) -> str:
    """What is missing in a row or keeps it from a rank, and the remedy; empty where nothing is and does."""
    missing = _missing(row)
    if row["status"] == CellStatus.BLOCKED:
        floor = "" if has_enough(row) else f", {percent(row['coverage_floor'])} needed (gate.min_coverage)"
        return f"blocked: {_too_few_scores(row)}{floor}: {missing}"
    said = [missing] if missing else []
    if row["state"] in (StandingState.TOO_FEW, StandingState.NOT_COMPARED) and row["n_judgements"]:
        said.append(no_rank(row))
    if row["is_reordered"]:
        shared = f"{row['shared_estimate']:.2f} over the {counted(row['n_shared_prompts'], 'prompt')} that all have"
        said.append(f"{shared}: a different order than over all prompts")
    if (row.get("look") or 0) < (row.get("n_looks") or 0):  # as older publications have no looks
        said.append(f"asked up to look {row['look']} of {row['n_looks']}")
    return "; ".join(said)


def _missing(row: Row) -> str:
    if not row["n_judgements"]:
        return f"no number: the question applies to none of {counted(row['n_not_applicable'], 'judgement')}"
    if not row["n_failed"]:
        return ""
    listed = ", ".join(f"{n} {reason}" for reason, n in failures_of(row))
    bounds = "" if row["bound_low"] is None else f", with them {row['bound_low']:.2f} to {row['bound_high']:.2f}"
    return f"{row['n_failed']} of {row['n_judgements']} without a score ({listed}){bounds}"


def has_enough(row: Row) -> bool:
    """Whether it is not coverage that blocks a row: then there is no score at all, or none in one of its categories."""
    return bool(row["coverage"] >= row["coverage_floor"])


def _too_few_scores(row: Row) -> str:
    """What blocks a row."""
    if not has_enough(row):
        return f"{percent(row['coverage'], beside=row['coverage_floor'])} of the judgements have a score"
    if row.get("n_prompts_smallest_category") != 0:  # older publications do not say it
        return "no judgement has a score" if not row["coverage"] else "no judgement of one category has a score"
    rest = f"{percent(row['coverage'])} of all judgements have one, but a mean over categories needs some in each"
    where = "without a category" if row["smallest_category"] == Total.UNNAMED else f"in category {row['smallest_category']}"
    return f"{percent(0)} of the judgements {where} have a score ({rest})"


def no_rank(row: Row) -> str:
    """Why a row has no rank, and what it would take."""
    reason, shared, needed = row["standing_reason"], row["n_shared_prompts"], row["n_prompts_needed"]
    scored = " with a score" * bool(row["n_failed"])  # others may have been asked
    if not row["n_judgements"]:
        return _missing(row)
    if row["state"] == StandingState.BLOCKED:
        return f"blocked, {_too_few_scores(row)}"
    is_too_few = row["state"] == StandingState.TOO_FEW or reason == ComparisonReason.TOO_FEW_PAIRED_PROMPTS.value
    if is_too_few and (small := _too_small_category(row)):
        return f"no rank: {small}"
    if row["state"] == StandingState.TOO_FEW:
        return f"no rank: {counted(row['n_prompts'], 'prompt')}{scored}, {needed} needed ({_SETTING})"
    fewer = f"not compared: {counted(shared or 0, 'shared prompt')}, {needed} needed ({_SETTING})"
    if row["category"] == Total.MACRO and (shared or 0) < needed:  # over all categories: so in none of them
        fewer = f"not compared: {counted(shared or 0, 'shared prompt')}, {needed} needed in each category ({_SETTING})"
    elif row["category"] == Total.MACRO:
        fewer = (
            f"no rank: in a category it shares fewer prompts with another checkpoint than the {needed} needed ({_SETTING}); "
            f"over all categories it shares up to {shared}"
        )
    return {
        CellReason.CATEGORY_MISSING.value: (
            "no mean over categories: it has no score in a category that others have; judge it there, or read each category alone"
        ),
        CellReason.NOT_APPLICABLE.value: (
            "no mean over categories: in a category where others have scores, it applies to nothing; read each category alone"
        ),
        ComparisonReason.ALONE.value: "no rank: there is no other checkpoint to compare it with",
        ComparisonReason.BLOCKED.value: "no rank: there is no other checkpoint to compare it with that is not blocked",
        ComparisonReason.TOO_MANY_TO_RANK.value: "no rank: more checkpoints than statistics.max_ranked",
        ComparisonReason.TOO_FEW_PAIRED_PROMPTS.value: fewer,
        ComparisonReason.DATASET_DIFFERS.value: fewer,
        ComparisonReason.ANSWERING_MODEL_DIFFERS.value: (
            "not compared: a different model answered under its judge's name than for the others; name a dated model as the "
            "judge, or if both are the same, list them: accept_models"
        ),
    }.get(reason, f"not compared: {str(reason).replace('_', ' ')}")


def _too_small_category(row: Row) -> str:
    """That categories have fewer prompts than a comparison needs there; empty where none has, or nobody said."""
    name, n, needed = row.get("smallest_category"), row.get("n_prompts_smallest_category"), row["n_prompts_needed"]
    if name is None or n is None or n >= needed:  # older publications do not say
        return ""
    name = "what has no category" if name == Total.UNNAMED else f"category {name}"
    scored = " with a score" * bool(row["n_failed"])
    n_small, n_all = row.get("n_small_categories") or 0, row["n_categories"]
    if n_small < 2:
        return f"{name} has {counted(n, 'prompt')}{scored}, {needed} needed ({_SETTING})"
    many = f"all {n_all}" if n_small == n_all else f"{n_small} of {n_all}"
    return f"{many} categories have fewer than the {needed} prompts needed ({_SETTING}), the smallest, {name}, has {n}{scored}"


def namer(rows: Sequence[Row]) -> Callable[[Row], str]:
    """What a row is called: its checkpoint, with its model where the rows have several."""
    is_one_model = len({row["model"] for row in rows}) == 1
    return lambda row: made_by(row["model"], row["checkpoint"], is_one_model=is_one_model)


def made_by(model: str, checkpoint: str, *, is_one_model: bool) -> str:
    """Who made it, in a line: the model only where there are several, and alone where its checkpoint has no name."""
    if checkpoint == UNNAMED:
        return model
    return checkpoint if is_one_model else f"{model} / {checkpoint}"


def counted(n: int, what: str) -> str:
    """Such as "1 prompt", "1,200 prompts" and "no prompts"."""
    return f"{f'{n:,}' if n else 'no'} {what}{'' if n == 1 else 's'}"


def percent(share: float, n_digits: int = 1, beside: float = 1.0) -> str:
    """Such as "99.5 %"; with more digits where it would read as nothing, as all or as `beside`, and is none of these."""
    others = [100 * end for end in (0.0, 1.0, beside) if end != share]
    digits = (n for n in range(n_digits, 8) if all(round(100 * share, n) != round(end, n) for end in others))
    return f"{number(100 * share, next(digits, n_digits))} %"


def signed(value: float, n_digits: int = 2) -> str:
    """A difference, or an end of its interval."""
    n = digits_of(value, n_digits)
    return f"+{number(value, n)}" if round(value, n) > 0 else number(value, n)


def digits_of(value: float, n_digits: int) -> int:
    """As many as a difference, or an end of its interval, is written with: more, up to four, where it would read as 0."""
    found = (n for n in range(n_digits, MAX_DIGITS + 1) if round(value, n) != 0)
    return next(found, n_digits)


def number(value: float, n_digits: int) -> str:
    """Rounded, in plain characters; there is no "-0.00"."""
    return f"{round(value, n_digits) + 0.0:.{n_digits}f}"


def failures_of(row: Row) -> list[tuple[str, int]]:
    """Reasons and how often each kept a score from the row, the commonest first."""
    return [(one["reason"], one["n_failed"]) for one in row["failures"] or ()]
