"""The page of an agreement with people or a judge, in Markdown. Rankings beside rankings are standings/corrected_ranks.py."""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from schemas.statuses.cells import Total
from schemas.statuses.people import MAX_NAMED_RATERS, Against, AgreementMetric, Assessor, RatingStatus, is_named
from schemas.tables.agreement import AGREEMENT, CORRECTED, CORRECTED_COMPARISONS, CORRECTED_STANDINGS, RATINGS, VOTES
from schemas.tables.table import Table
from tasks.publish.exports import escape_markdown, to_markdown
from tasks.publish.folders import PublicationName
from tasks.publish.standings.corrected_ranks import LOOKED_AT, PEOPLE, UNEVEN, figure, rankings
from tasks.publish.standings.wording import made_by, number
from tasks.publish.votes_page import ALL, HEADERS, split_off, vote_boards

_SHORT = {
    AgreementMetric.SPEARMAN: "Spearman", AgreementMetric.KENDALL_TAU_B: "Kendall τ-b", AgreementMetric.PEARSON: "Pearson",
    AgreementMetric.PAIRWISE_ACCURACY: "pairwise accuracy", AgreementMetric.QUADRATIC_KAPPA: "quadratic κ",
    AgreementMetric.LINEAR_KAPPA: "linear κ", AgreementMetric.COHEN_KAPPA: "κ", AgreementMetric.KRIPPENDORFF_ALPHA: "ordinal α",
    AgreementMetric.KRIPPENDORFF_ALPHA_INTERVAL: "interval α", AgreementMetric.KRIPPENDORFF_ALPHA_NOMINAL: "nominal α",
    AgreementMetric.BIAS: "bias",
}  # fmt: skip
_NOTES = """\
In brackets: 95 % intervals, with prompts as the unit. Where a figure cannot be given, the reason is given in its place.
Per category, per checkpoint: `agreement.csv`. Formulas and sources: docs/agreement.md.
"""
_SYSTEMS = {
    AgreementMetric.SYSTEM_KENDALL_TAU: "Kendall τ", AgreementMetric.SYSTEM_PAIRWISE_ACCURACY: "pairs ordered alike",
}  # fmt: skip


def agreement_page(
    tables: Mapping[Table, pl.DataFrame], name: PublicationName, judge: str | None = None, *, has_looks: bool = False
) -> str:
    """A table for each rubric and dimension over all samples, one of the checkpoints' order, the means, the corrected ranks.

    `judge`: who the others are held against, where that is not people. `has_looks`: the judges were asked look by look.
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
        lines += [*_system_lines(overall), *_means(corrected)]
        # the means shown may not be the published ones
        lines += [f"{UNEVEN}\n"] if tables[CORRECTED_STANDINGS]["has_uneven_prompts"].any() else []
        lines += [f"{LOOKED_AT}\n"] if has_looks else []
    lines += _rank_lines(tables[CORRECTED_STANDINGS], tables[CORRECTED_COMPARISONS], judge)
    given = {"ratings": tables.get(RATINGS), "votes": tables.get(VOTES)}
    lines += [f"{escape_markdown(sentence)}\n" for sentence in unscored(agreement)]
    lines += [f"{escape_markdown(sentence)}\n" for noun, rows in given.items() for sentence in said_of(noun, rows, overall)]
    return "\n".join([*lines, _NOTES, f"Publication {name.publication_id}.\n"])


def unscored(agreement: pl.DataFrame) -> list[str]:
    """How many of the rated samples a judge gave no score, of which checkpoints, and whether people rate them otherwise."""
    said = []
    mine = agreement.filter(pl.col("metric") == AgreementMetric.UNSCORED.value, pl.col("category") == Total.MICRO.value)
    rated = agreement.filter(metric=AgreementMetric.UNSCORED_BIAS.value, model=ALL, category=Total.MICRO.value)
    who = ["rubric_id", "dimension", "subject"]
    biases = {row[:3]: row[3] for row in rated.select(*who, "estimate").iter_rows()}
    for key, found in mine.group_by(who, maintain_order=True):
        bias, of = biases.get(key), {(row["model"], row["checkpoint"]): _lost(row) for row in found.iter_rows(named=True)}
        told = f"{of.pop((ALL, ALL))} rated samples have no score of {key[2]} in {key[1]} and are in none of its figures here"
        if of:
            told += f" ({', '.join(f'{made_by(*name, is_one_model=False)}: {lost}' for name, lost in of.items())})"
        if bias:
            told += f"; on average people rate them {number(abs(bias), 2)} {'lower' if bias < 0 else 'higher'} than the others"
        said.append(f"{told}.")
    return said


def _lost(row: Mapping[str, Any]) -> str:
    return f"{round(row['estimate'] * row['n_items']):,} of {row['n_items']:,}"


def said_of(noun: str, given: pl.DataFrame | None, overall: pl.DataFrame) -> list[str]:
    """What must be known of people's `ratings` or `votes` (the noun) beside every figure made of them.

    `overall`: the rows of AGREEMENT that are of ratings, over all samples.
    """
    if given is None:
        return []
    n_split = given.filter(status=RatingStatus.CONFLICTING.value).height
    said = []
    if n_split:
        said.append(
            f"{n_split:,} of the {given.height:,} {noun} contradict another by the same rater and are left out: people's figures "
            "cover only what is not contradicted, which may be a different kind of picture. Is each rater one person?"
        )
    said += [*_of_unnamed(noun, given), *_of_many(noun, given)]
    of_rubric = overall.select("dimension", "rubric_id").unique().sort("dimension", "rubric_id")
    for (dimension,), rows in of_rubric.group_by("dimension", maintain_order=True):
        if noun == "ratings" and rows.height > 1 and dimension in given["dimension"]:
            rubrics = rows["rubric_id"].to_list()
            said.append(
                f"Ratings of {dimension} name no rubric and are compared with that of each of {', '.join(rubrics)}. If they are "
                f"meant for one, name it: {rubrics[0]}.{dimension}."
            )
    return said


def _of_unnamed(noun: str, given: pl.DataFrame) -> Iterator[str]:
    """That nobody knows who gave them, or some of them, and what intervals then cover."""
    counted = given.filter(status=RatingStatus.OK.value)
    people = (counted.filter(kind=Assessor.RATER.value) if noun == "ratings" else counted)["rater"].to_list()
    n_unnamed, names = sum(not is_named(one) for one in people), {one for one in people if is_named(one)}
    if n_unnamed and not names:
        compared = "raters are not compared with each other, and no interval covers their biases"
        yield f"It is unknown whose {noun} these are: {compared}."
    elif n_unnamed:
        covered = (
            "intervals take raters' biases from the named ones, and the unnamed for as few people as can have given them"
            if noun == "ratings" and len(names) > 1
            else "no interval covers raters' biases"
        )
        yield f"{n_unnamed:,} of the {len(people):,} {noun} name no rater: their raters are compared with nobody, and {covered}."


def _of_many(noun: str, given: pl.DataFrame) -> Iterator[str]:
    """That there are too many raters of a dimension for pairs of them."""
    counted = given.filter(status=RatingStatus.OK.value)
    people = counted.filter(kind=Assessor.RATER.value) if noun == "ratings" else counted
    for dimension in people["dimension"].unique().sort():
        names = dimension, dimension.rpartition(".")[2]  # ratings that name no rubric count beside those that do
        named = [one for one in people.filter(pl.col("dimension").is_in(names))["rater"].unique() if is_named(one)]
        if len(named) > MAX_NAMED_RATERS:
            where = "means and alphas" if noun == "ratings" else "majorities"
            yield (
                f"{len(named):,} raters gave {noun} of {dimension}: of more than {MAX_NAMED_RATERS}, none is compared by name; "
                f"all count in {where}."
            )


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


_CALLED: dict[str, str] = {
    Against.RATERS_MEAN: "mean of raters",
    Against.OTHER_RATERS_MEAN: "mean of the others",
    Against.EACH_OTHER: "each other",
    Against.EACH_RATER: "each rater",
    Against.RATERS_MAJORITY: "majority of raters",
    Against.OTHER_RATERS_MAJORITY: "majority of the others",
}


def called(name: str) -> str:
    """What stands in `subject` or `against`, in words where it is no one's name."""
    return _CALLED.get(name, name)


def _agreement_lines(rows: pl.DataFrame) -> Iterator[list[object]]:
    who = ["subject_kind", "subject", "against", "against_dimension"]
    for (kind, subject, against, other), mine in rows.group_by(who, maintain_order=True):
        by_metric = {row["metric"]: row for row in mine.iter_rows(named=True)}
        figures = [figure(by_metric.get(metric.value)) for metric in _SHORT]
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
        figures = [figure(by_metric.get(metric.value)) for metric in _SYSTEMS]
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


def _mean_lines(rows: pl.DataFrame) -> Iterator[list[object]]:
    for row in rows.iter_rows(named=True):
        named = [row[name] for name in ("rubric_id", "dimension", "judge_model", "model", "checkpoint", "estimator")]
        yield [*named, figure(row), row["n_prompts"], row["n_prompts_labelled"]]
