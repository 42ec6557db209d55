"""The page of an agreement with people or a judge, in Markdown, and the ranking beside rankings that the terminal shows too."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import polars as pl

from schemas.records import UNNAMED
from schemas.statuses.cells import ComparisonKind, Total
from schemas.statuses.people import AgreementMetric, Estimator, LabelCheck
from schemas.tables.agreement import AGREEMENT, CORRECTED, CORRECTED_COMPARISONS, CORRECTED_STANDINGS
from schemas.tables.table import Table
from tasks.publish.exports import escape_markdown, to_markdown
from tasks.publish.folders import PublicationName
from tasks.publish.votes_page import HEADERS, split_off, vote_boards

ALL = "__all__"
PEOPLE = "people"
_SHORT = {
    AgreementMetric.SPEARMAN: "Spearman", AgreementMetric.KENDALL_TAU_B: "Kendall τ-b", AgreementMetric.PEARSON: "Pearson",
    AgreementMetric.PAIRWISE_ACCURACY: "pairwise accuracy", AgreementMetric.QUADRATIC_KAPPA: "quadratic κ",
    AgreementMetric.LINEAR_KAPPA: "linear κ", AgreementMetric.COHEN_KAPPA: "κ", AgreementMetric.KRIPPENDORFF_ALPHA: "ordinal α",
    AgreementMetric.KRIPPENDORFF_ALPHA_INTERVAL: "interval α", AgreementMetric.KRIPPENDORFF_ALPHA_NOMINAL: "nominal α",
    AgreementMetric.BIAS: "bias",
}  # fmt: skip
_NOTES = """\
In brackets: 95 % intervals, prompts as the units. A figure that does not exist has its reason in its place.
Per category, per checkpoint: `agreement.csv`. Formulas and sources: docs/agreement.md.
"""


_SYSTEMS = {
    AgreementMetric.SYSTEM_KENDALL_TAU: "Kendall τ", AgreementMetric.SYSTEM_PAIRWISE_ACCURACY: "pairs ordered alike",
}  # fmt: skip


def agreement_page(tables: Mapping[Table, pl.DataFrame], name: PublicationName, judge: str | None = None) -> str:
    """A table for each rubric and dimension over all samples, one of the checkpoints' order, the means, the corrected ranks.

    `judge`: who the others are held against, where that is not people.
    """
    agreement, corrected = tables[AGREEMENT], tables[CORRECTED]
    lines = [
        f"# Agreement with {escape_markdown(judge or PEOPLE)}: {escape_markdown(name.benchmark)}, {name.run_date.isoformat()}\n"
    ]
    overall, _ = split_off(agreement.filter(model=ALL, category=Total.MICRO.value))
    for (rubric_id, dimension), rows in overall.group_by("rubric_id", "dimension", maintain_order=True):
        lines.append(f"## {escape_markdown(rubric_id)}: {escape_markdown(dimension)}\n")
        headers = ["", "against", *_SHORT.values(), "samples", "prompts"]
        lines.append(to_markdown(headers, _agreement_lines(rows), n_text_columns=2))
    lines += _vote_lines(tables)
    if overall.height:
        lines += [*_system_lines(overall), *_means(corrected), *_uneven(tables[CORRECTED_STANDINGS])]
    lines += _rank_lines(tables[CORRECTED_STANDINGS], tables[CORRECTED_COMPARISONS], judge)
    return "\n".join([*lines, _NOTES, f"Publication {name.publication_id}.\n"])


def _vote_lines(tables: Mapping[Table, pl.DataFrame]) -> Iterator[str]:
    for board in vote_boards(tables):
        yield f"## {escape_markdown(board.title)}\n"
        yield to_markdown(list(HEADERS), board.lines, n_text_columns=2)
        for headers, lines in board.beside:
            yield to_markdown(list(headers), lines, n_text_columns=1)


def _means(corrected: pl.DataFrame) -> Iterator[str]:
    yield "## Means\n"
    headers = ["rubric", "dimension", "judge", "model", "checkpoint", "estimator", "mean", "prompts", "labelled"]
    yield to_markdown(headers, _mean_lines(corrected.filter(category=Total.MICRO.value)), n_text_columns=6)


_UNEVEN = (
    "Means here weigh each prompt alike, the leaderboard's each picture: where prompts have unequal numbers of scored pictures, "
    "as here, they may differ a little."
)


def _uneven(standings: pl.DataFrame) -> list[str]:
    """That the means shown may not be the published ones, where that can be."""
    return [f"{_UNEVEN}\n"] if standings["has_uneven_prompts"].any() else []


def _agreement_lines(rows: pl.DataFrame) -> Iterator[list[object]]:
    who = ["subject_kind", "subject", "against", "against_dimension"]
    for (kind, subject, against, other), mine in rows.group_by(who, maintain_order=True):
        by_metric = {row["metric"]: row for row in mine.iter_rows(named=True)}
        figures = [_figure(by_metric.get(metric.value)) for metric in _SHORT]
        target = against if other is None else f"{against} ({other})"
        row = mine.row(0, named=True)
        yield [f"{kind} {subject}", target, *figures, row["n_items"], row["n_prompts"]]


def _system_lines(rows: pl.DataFrame) -> Iterator[str]:
    """Whether the checkpoints' means stand in people's order; nothing where there are no three checkpoints with ratings."""
    mine = rows.filter(pl.col("metric").is_in([metric.value for metric in _SYSTEMS]))
    lines: list[list[object]] = []
    for _, found in mine.group_by("rubric_id", "dimension", "subject_kind", "subject", maintain_order=True):
        by_metric = {row["metric"]: row for row in found.iter_rows(named=True)}
        row = found.row(0, named=True)
        figures = [_figure(by_metric.get(metric.value)) for metric in _SYSTEMS]
        subject = f"{row['subject_kind']} {row['subject']}"
        lines.append([row["rubric_id"], row["dimension"], subject, *figures, row["n_items"], row["n_prompts"]])
    if lines:
        yield "## Order of the checkpoints\n"
        headers = ["rubric", "dimension", "", *_SYSTEMS.values(), "checkpoints", "prompts"]
        yield to_markdown(headers, lines, n_text_columns=3)


def _rank_lines(standings: pl.DataFrame, comparisons: pl.DataFrame, judge: str | None) -> Iterator[str]:
    if standings.height:
        yield "## Ranks\n"
    for ranking in rankings(standings, comparisons, judge):
        yield f"### {escape_markdown(ranking.title)}\n"
        yield to_markdown(["checkpoint", *ranking.headers], ranking.lines, n_text_columns=1)
        yield "".join(f"{escape_markdown(sentence)}\n\n" for sentence in ranking.sentences)


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
        lines = [_ranking_line(one, [rows.get((*one, each.value)) for each in _BESIDE]) for one in ordered]
        place = "" if category == Total.MACRO else f", {category}"
        compared = comparisons.filter(**address, judge_model=judge)
        headers = ("judge", "", reference or PEOPLE, "", "corrected", "")
        sentences = _sentences(compared, mine, reference)
        yield Ranking(f"{rubric_id}: {dimension}{place}, judge {judge}", headers, lines, sentences)


_BY = (Estimator.PREDICTION_POWERED, Estimator.LABELS, Estimator.JUDGE)
_BESIDE = (Estimator.JUDGE, Estimator.LABELS, Estimator.PREDICTION_POWERED)


def _ranking_line(system: tuple[str, str], rows: list[dict[str, object] | None]) -> list[object]:
    return [name_of_checkpoint(*system), *(cell for row in rows for cell in _standing(row))]


def _number(row: dict[str, object] | None) -> float:
    value = row["estimate"] if row else None
    return value if isinstance(value, float) else -math.inf


def _standing(row: dict[str, object] | None) -> tuple[str, str]:
    if row is None:
        return "", ""
    rank = (
        ""
        if row["rank_low"] is None
        else f"rank {row['rank_low']}" + (f"–{row['rank_high']}" if row["rank_high"] != row["rank_low"] else "")
    )
    return _figure(row), rank


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
        found.append(f"So it is in {said.height - _N_SAID} more pairs: corrected_comparisons, estimator judge_error.")
    if not found and pairs["p_adjusted"].is_not_null().any():
        found.append(f"Between no two checkpoints is the judge kinder to one than {reference or PEOPLE}, beyond chance.")
    checks = standings.filter(pl.col("label_check").is_not_null()).select("label_check", "p_labels_random").unique()
    remedy = "have prompts rated that are drawn at random (--label-next)" if reference is None else "give that judge a `share`"
    found += [_UNEVEN] if standings["has_uneven_prompts"].any() else []
    found += _corrected_with(compared, reference or PEOPLE)
    return found + [_CHECKS[LabelCheck(word)].format(p=p, remedy=remedy) for word, p in checks.iter_rows()]


def _corrected_with(compared: pl.DataFrame, reference: str) -> list[str]:
    """In which families the ranks that stand side by side were corrected."""
    n = dict(compared.drop_nulls("n_family").select("estimator", "n_family").iter_rows())
    if Estimator.JUDGE.value not in n:
        return []
    told = f"The judge's ranks are the leaderboard's, corrected for all {n[Estimator.JUDGE.value]} comparisons of its family"
    apart = n.get(Estimator.PREDICTION_POWERED.value)
    rest = "." if apart is None else f": the corrected ones for {apart}."
    return [f"{told}; those of {reference} and the corrected ones are families of their own, of what is rated here{rest}"]


def _kindness(row: dict[str, Any]) -> str:
    kind, other = ("a", "b") if row["verdict"] == "higher" else ("b", "a")
    names = [name_of_checkpoint(row[f"model_{end}"], row[f"checkpoint_{end}"]) for end in (kind, other)]
    low, high = sorted((abs(row["ci_low_adjusted"]), abs(row["ci_high_adjusted"])))
    return f"The judge is kinder to {names[0]} than to {names[1]} by {abs(row['delta']):.2f} ({low:.2f} to {high:.2f})."


_N_SAID = 5
_CHECKS = {
    LabelCheck.RANDOM: "The labels look like a random part of the prompts (p = {p:.3f}).",
    LabelCheck.CHOSEN_BY_SCORE: (
        "The labels are no random part of the prompts (p = {p:.2g}): the judge scores what is labelled otherwise than the rest. "
        "Corrected figures may be off; {remedy}."
    ),
    LabelCheck.CANNOT_TELL: (
        "Whether the labels are a random part of the prompts cannot be told: too few are labelled, or left, or their scores do "
        "not vary."
    ),
}  # fmt: skip


def _mean_lines(rows: pl.DataFrame) -> Iterator[list[object]]:
    for row in rows.iter_rows(named=True):
        named = [row[name] for name in ("rubric_id", "dimension", "judge_model", "model", "checkpoint", "estimator")]
        yield [*named, _figure(row), row["n_prompts"], row["n_prompts_labelled"]]


def _figure(row: dict[str, object] | None) -> str:
    if row is None:
        return ""
    estimate, low, high = row["estimate"], row["ci_low"], row["ci_high"]
    if not isinstance(estimate, float):
        return str(row["reason"])
    if not isinstance(low, float) or not isinstance(high, float):
        return f"{estimate:.3f} ({row['reason']})"
    return f"{estimate:.3f} ({low:.3f} to {high:.3f})"
