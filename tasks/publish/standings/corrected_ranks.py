"""A judge's ranking beside people's and the corrected one, and what is said of it: on an agreement's page, in the terminal."""

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import polars as pl

from schemas.records import UNNAMED
from schemas.statuses.cells import ComparisonKind, StandingState, Total
from schemas.statuses.people import MIN_IN_STRATUM, MIN_LABELLED, AgreementReason, Estimator, LabelCheck
from tasks.publish.standings.wording import counted, number, rank

PEOPLE = "people"
UNEVEN = (
    "Means here weight all prompts equally, the leaderboard's all pictures: where prompts have unequal numbers of scored "
    "pictures, as here, they may differ a little."
)
LOOKED_AT = (
    "The judges were asked in looks, which only the judge's own ranks and comparisons account for: all other intervals, p and "
    "ranks here are as if nobody had looked before, and are wrong somewhat more often than they say."
)


class Ranking(NamedTuple):
    """One judge's ranking beside people's and the corrected one: a line for each checkpoint, and what is to be said of it."""

    title: str
    headers: tuple[str, ...]
    lines: list[list[object]]
    sentences: list[str]


def rankings(standings: pl.DataFrame, comparisons: pl.DataFrame, reference: str | None = None) -> Iterator[Ranking]:
    """Every ranking of every judge, headline dimensions first; lines by the corrected mean where there is one, the best first.

    `reference`: the judge in people's place.
    """
    where = ["rubric_id", "dimension", "category"]
    judged = standings.filter(pl.col("judge_model").is_not_null()).sort(pl.col("is_headline").not_(), *where, "judge_model")
    of_people = standings.filter(pl.col("judge_model").is_null())
    for (rubric_id, dimension, category, judge), mine in judged.group_by(*where, "judge_model", maintain_order=True):
        address = {"rubric_id": rubric_id, "dimension": dimension, "category": category}
        both = pl.concat([mine, of_people.filter(**address)])
        rows = {(row["model"], row["checkpoint"], row["estimator"]): row for row in both.iter_rows(named=True)}
        systems = {(model, checkpoint) for model, checkpoint, _ in rows}
        ordered = sorted(systems, key=lambda one: (*(-_number(rows.get((*one, each.value))) for each in _BY), *one))
        lines: list[list[object]] = [
            [name_of_checkpoint(*one), *(cell for each in _BESIDE for cell in _standing(rows.get((*one, each.value))))]
            for one in ordered
        ]
        place = "" if category == Total.MACRO else f", {category}"
        compared = comparisons.filter(**address, judge_model=judge)
        headers = ("judge", "", reference or PEOPLE, "", "corrected", "")
        sentences = _sentences(compared, mine, reference)
        yield Ranking(f"{rubric_id}: {dimension}{place}, judge {judge}", headers, lines, sentences)


_NEEDED = f"at least {MIN_LABELLED}, and {MIN_IN_STRATUM} of them in each category"
_BY = (Estimator.PREDICTION_POWERED, Estimator.LABELS, Estimator.JUDGE)
_BESIDE = (Estimator.JUDGE, Estimator.LABELS, Estimator.PREDICTION_POWERED)


def _number(row: dict[str, object] | None) -> float:
    value = row["estimate"] if row else None
    return value if isinstance(value, float) else -math.inf


def _standing(row: dict[str, object] | None) -> tuple[str, str]:
    if row is None:
        return "", ""
    if row["rank_low"] is not None:
        return figure(row), f"rank {rank(row)} of {row['n_ranked']}"
    return figure(row), "" if row["estimate"] is None else f"no rank ({_words(row['reason'])})"


def name_of_checkpoint(model: str, checkpoint: str) -> str:
    """A checkpoint as people call it: the model's name alone where the checkpoint has none."""
    return model if checkpoint == UNNAMED else f"{model}/{checkpoint}"


def _sentences(compared: pl.DataFrame, standings: pl.DataFrame, reference: str | None) -> list[str]:
    """To whom the judge is kinder, beyond chance; and whether the labels look like a random part."""
    pairs = compared.filter(comparison=ComparisonKind.EACH_OTHER.value, estimator=Estimator.JUDGE_ERROR.value)
    said = pairs.filter(pl.col("verdict").is_in(["higher", "lower"])).sort(
        pl.col("delta").abs(), descending=True, maintain_order=True
    )
    found = [_kindness(row) for row in said.head(_N_SAID).iter_rows(named=True)]
    if said.height > _N_SAID:
        found.append(f"The same holds for {said.height - _N_SAID} more pairs: see corrected_comparisons, estimator judge_error.")
    found += [*([] if found else _not_kinder(pairs, reference or PEOPLE)), *_untested(pairs)]
    checks = standings.filter(pl.col("label_check").is_not_null()).select("label_check", "p_labels_random").unique()
    remedy = "have randomly drawn prompts rated (--label-next)" if reference is None else "give that judge a `share`"
    found += [UNEVEN] if standings["has_uneven_prompts"].any() else []
    found += [*_corrected_with(compared, reference or PEOPLE), *_too_few(standings)]
    found += [_BLOCKED] if (standings["state"] == StandingState.BLOCKED.value).any() else []
    return found + [_CHECKS[LabelCheck(word)].format(p=p, remedy=remedy) for word, p in checks.iter_rows()]


def _not_kinder(pairs: pl.DataFrame, reference: str) -> list[str]:
    """That no kindness was found, of those pairs that it was looked for in."""
    n = pairs["p_adjusted"].count()
    if n < pairs.height:
        told = f"In the {counted(n, 'pair')} of checkpoints that could be tested, the judge is kinder to neither than {reference}"
        return [f"{told}, beyond chance."] if n else []
    return [f"For no two checkpoints is the judge kinder to one of them than {reference}, beyond chance."] if n else []


def _untested(pairs: pl.DataFrame) -> list[str]:
    """Of how many pairs it cannot be said whether the judge is kinder to one, and why."""
    without = pairs.filter(pl.col("p_adjusted").is_null())
    if without.is_empty():
        return []
    whys = Counter(_UNTESTED.get(reason, str(reason)) for reason in without["reason"])
    why = "; ".join(words if len(whys) == 1 else f"{words} ({n:,})" for words, n in whys.most_common())
    of = f"{without.height:,} of {counted(pairs.height, 'pair')} of checkpoints"
    return [f"For {of} it could not be tested whether the judge is kinder to one of the two: {why}."]


def _corrected_with(compared: pl.DataFrame, reference: str) -> list[str]:
    """In which families the ranks that stand side by side were corrected."""
    n = dict(compared.drop_nulls("n_family").select("estimator", "n_family").iter_rows())
    if Estimator.JUDGE.value not in n:
        return []
    n_judge = n[Estimator.JUDGE.value]
    of = "the one comparison" if n_judge == 1 else f"all {n_judge} comparisons"
    told = f"The judge's ranks are the leaderboard's, corrected for {of} of its family"
    apart = n.get(Estimator.PREDICTION_POWERED.value)
    rest = "." if apart is None else f": the corrected ones for {apart}."
    return [f"{told}; those of {reference} and the corrected ones are separate families, over what is rated here{rest}"]


def _too_few(standings: pl.DataFrame) -> list[str]:
    """How many prompts are labelled where they are too few, and how many it takes."""
    few = standings.filter(estimator=Estimator.PREDICTION_POWERED.value, reason=AgreementReason.TOO_FEW_PROMPTS.value)
    n = few["n_prompts_labelled"]
    if few.is_empty():
        return []
    numbers = " to ".join(dict.fromkeys([str(n.min()), str(n.max())]))
    told = f"{numbers} {'prompt of a checkpoint is' if n.max() == 1 else 'prompts of a checkpoint are'} labelled"
    return [f"{_words(AgreementReason.TOO_FEW_PROMPTS)}: {told}; a corrected figure needs {_NEEDED}."]


def _kindness(row: dict[str, Any]) -> str:
    kind, other = ("a", "b") if row["verdict"] == "higher" else ("b", "a")
    names = [name_of_checkpoint(row[f"model_{end}"], row[f"checkpoint_{end}"]) for end in (kind, other)]
    told = f"The judge is kinder to {names[0]} than to {names[1]} by {abs(row['delta']):.2f}"
    if row["ci_low_adjusted"] is None:  # nothing varies, at least within categories
        return f"{told} ({counted(row['n_prompts_labelled'], 'labelled prompt')}, no variation within a category)."
    low, high = sorted((abs(row["ci_low_adjusted"]), abs(row["ci_high_adjusted"])))
    return f"{told} ({low:.2f} to {high:.2f})."


_N_SAID = 5
_BLOCKED = (
    "blocked: fewer of the judgements have a score than gate.min_coverage asks for, so of those that have one neither a mean nor "
    "a correction or difference is made. In brackets: the commonest failure."
)
_UNTESTED = {
    AgreementReason.NO_SCORES.value: "the judge has no score for a rated sample",
    AgreementReason.TOO_FEW_PROMPTS.value: f"they share too few labelled prompts, {_NEEDED} needed",
    AgreementReason.BLOCKED.value: "the mean of one of the two is blocked",
    AgreementReason.NO_VARIATION.value: "it favours one in a category and the other in another, by the same on every prompt",
}
_CHECKS = {
    LabelCheck.RANDOM: "The labels look like a random part of the prompts (p = {p:.3f}).",
    LabelCheck.CHOSEN_BY_SCORE: (
        "The labels are not a random part of the prompts (p = {p:.2g}): the judge scores labelled prompts differently from the "
        "rest. Corrected figures may be off; {remedy}."
    ),
    LabelCheck.CANNOT_TELL: (
        "Whether the labels are a random part of the prompts cannot be determined: too few are labelled, or too few are not, or "
        "their scores do not vary."
    ),
}  # fmt: skip


def figure(row: dict[str, object] | None) -> str:
    """A figure with its interval, or why it has none."""
    if row is None:
        return ""
    estimate, low, high = row["estimate"], row["ci_low"], row["ci_high"]
    if StandingState.BLOCKED in (row.get("state"), row.get("status")):
        return f"blocked ({_words(row['reason'])})"
    if not isinstance(estimate, float):
        return _words(row["reason"])
    if not isinstance(low, float) or not isinstance(high, float):
        return f"{number(estimate, 3)} ({_words(row['reason'])})"
    return f"{number(estimate, 3)} ({number(low, 3)} to {number(high, 3)})"


def _words(reason: object) -> str:
    return str(reason).replace("_", " ")  # which folds in a narrow column, as a code cannot
