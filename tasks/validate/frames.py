"""The stored tables as the checks look at them: columns, and beside them what other tables say of each row.

A column made here is null where it does not apply: an earlier check speaks for that row (its status is no known word, its
score is off the scale, the other table has no rows). So one fault fails one check. What must hold is in expectations.py.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import polars as pl

from rubrics.model import Rubric
from schemas.records import UNKNOWN
from schemas.statuses.rows import JudgementStatus
from schemas.tables.stored import JUDGEMENTS, REPLIES, REQUESTS, SAMPLES, SCORES
from schemas.tables.table import Table
from tasks.validate.buckets import CELL, ROW, Buckets
from tasks.validate.scales import of_items, scale_frame, unreadable_facts
from tasks.validate.score_frame import score_frame


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows of a table with the columns made for its checks, and ROW, each row's number in the whole table."""

    table: Table
    frame: pl.DataFrame


def batches(
    stored: Buckets,
    rubrics: Mapping[str, Rubric],
    whole_sources: Collection[str],
    same_models: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Iterator[Batch]:
    """Every row of the five tables once, a bucket in memory at a time. A table without rows is one empty batch.

    `whole_sources`: those of whose samples each is judged. `same_models`: by judge, the names of models that are one.
    """
    answers: list[pl.DataFrame] = []
    for number in range(stored.n):
        requests, replies, scores = (stored.rows(table, number) for table in (REQUESTS, REPLIES, SCORES))
        links = stored.links(number)
        answers.append(_answers(links, requests, replies, same_models))
        scores = score_frame(scores, requests, replies, rubrics, stored)
        asked = _requests(requests, replies, scores, links, rubrics, stored)
        found = _among("request_key", requests, REQUESTS, stored)
        yield from _some(stored, REQUESTS, asked, number)
        yield from _some(stored, REPLIES, replies.with_columns(has_request=found), number)
        yield from _some(stored, SCORES, scores, number)
    of_judgements = _of_cells(answers, stored.n_rows[JUDGEMENTS])
    del answers
    for number in range(stored.n):
        samples, judgements = stored.rows(SAMPLES, number), stored.rows(JUDGEMENTS, number)
        is_known = pl.col("model") != UNKNOWN  # a row that nobody knows the checkpoint of has no judgement
        is_ours = pl.col("source").str.starts_with("__") & bool(whole_sources)  # anchors and an exam's twins
        is_due = is_known & (pl.col("source").is_in(list(whole_sources)) | is_ours)
        due = pl.when(is_due).then(_among("sample_id", judgements, JUDGEMENTS, stored))
        yield from _some(stored, SAMPLES, samples.with_columns(has_judgement=due), number)
        yield from _some(stored, JUDGEMENTS, _judgements(judgements, samples, of_judgements, stored), number)


def _some(stored: Buckets, table: Table, frame: pl.DataFrame, number: int) -> Iterator[Batch]:
    if frame.height or (number == 0 and stored.is_empty(table)):
        yield Batch(table, frame)


def _among(column: str, other: pl.DataFrame, table: Table, stored: Buckets) -> pl.Expr:
    """Whether the other table holds the value; null for a null, and where the other table has no rows at all."""
    if stored.is_empty(table):
        return pl.lit(None, dtype=pl.Boolean)
    return pl.col(column).is_in(other[column].drop_nulls().unique().implode())


def _answers(
    links: pl.DataFrame, requests: pl.DataFrame, replies: pl.DataFrame, same_models: Mapping[str, Sequence[str]]
) -> pl.DataFrame:
    """For each request of a judgement (ROW): its cell, whether it is there, the models that answered, at first and again.

    Names as categories. A re-ask's reply is what its score was read from.
    """
    found = links.with_columns(has_request=pl.col("request_key").is_in(requests["request_key"].drop_nulls().unique().implode()))
    for name, is_it in (("answered_model", pl.col("ask_index") == 0), ("model_again", pl.col("ask_index") > 0)):
        answered = replies.filter(is_it).select("request_key", pl.col("answered_model").alias(name))
        answered = answered.unique("request_key", keep="first", maintain_order=True)
        found = found.join(answered, on="request_key", how="left", maintain_order="left")
        for judge, names in same_models.items():
            is_one = (pl.col("judge_model") == judge) & pl.col(name).is_in(names)
            found = found.with_columns(pl.when(is_one).then(pl.lit(names[0])).otherwise(name).alias(name))
    return found.select(ROW, "has_request", pl.col(*CELL, "answered_model", "model_again").cast(pl.Categorical))


def _of_cells(answers: list[pl.DataFrame], n_judgements: int) -> pl.DataFrame:
    """`has_request` and `is_as_its_cell` of every judgement, in the table's order: a few bytes each, all that is kept of all.

    is_as_its_cell: the models that answered are the cell's (the commonest at first); null where nobody said who answered.
    """
    counts = pl.concat(part.drop_nulls("answered_model").group_by(*CELL, "answered_model").len() for part in answers)
    commonest = (
        counts.with_columns(pl.col("answered_model").cast(pl.String))
        .group_by(*CELL, "answered_model").agg(pl.col("len").sum())
        .sort("len", "answered_model", descending=[True, False])
        .group_by(*CELL, maintain_order=True).agg(pl.col("answered_model").first().alias("of_the_cell"))
    )  # fmt: skip
    is_it = {name: pl.col(name).cast(pl.String) == pl.col("of_the_cell") for name in ("answered_model", "model_again")}
    both = is_it["answered_model"] & is_it["model_again"].fill_null(value=True)
    said = (
        part.join(commonest, on=CELL, how="left", nulls_equal=True, maintain_order="left").select(
            ROW, "has_request", is_as_its_cell=both
        )
        for part in answers
    )
    each = pl.concat(said).sort(ROW)
    if each.height > n_judgements:  # some name a list of requests: all of these are there, all answered as the cell
        each = each.group_by(ROW, maintain_order=True).agg(pl.all().min())
    return each.drop(ROW)


def _judgements(judgements: pl.DataFrame, samples: pl.DataFrame, answers: pl.DataFrame, stored: Buckets) -> pl.DataFrame:
    status, is_planned = pl.col("status"), pl.col("status") == JudgementStatus.PLANNED
    is_known = status.is_in([word.value for word in JudgementStatus])
    mine = answers[judgements[ROW]]
    has_request = pl.lit(None, dtype=pl.Boolean) if stored.is_empty(REQUESTS) else mine["has_request"]
    return judgements.with_columns(
        pl.col("second_sample_id").fill_null(""),  # else no key would be whole, and its check left out
        has_sample=_among("sample_id", samples, SAMPLES, stored),
        has_request=has_request,
        key_fits_status=pl.when(is_known).then(is_planned == pl.col("request_key").is_not_null()),
        reason_fits_status=pl.when(is_known).then(is_planned == pl.col("reason").is_null()),
        is_answered_as_its_cell=mine["is_as_its_cell"],
    )


def _requests(
    requests: pl.DataFrame,
    replies: pl.DataFrame,
    scores: pl.DataFrame,
    links: pl.DataFrame,
    rubrics: Mapping[str, Rubric],
    stored: Buckets,
) -> pl.DataFrame:
    has_key = pl.col("request_key").is_not_null()
    n_missing = pl.when(has_key).then(pl.col("n_dimensions_asked") - pl.col("n_dimensions").fill_null(0))
    n_replies = pl.when(has_key).then(pl.col("n_replies").fill_null(0))
    n_dimensions = _n_per_request(scores.filter("is_of_variant"), "dimension", "n_dimensions")
    n_asks = _n_per_request(replies, "ask_index", "n_replies")
    return (
        requests.join(
            _dimensions_asked(rubrics), on=["rubric_id", "variant"], how="left", nulls_equal=True, maintain_order="left"
        )
        .join(n_dimensions, on="request_key", how="left", maintain_order="left")
        .join(n_asks, on="request_key", how="left", maintain_order="left")
        .with_columns(
            has_judgement=_among("request_key", links, JUDGEMENTS, stored),
            has_variant=pl.when(pl.col("rubric_id").is_in(list(rubrics))).then(pl.col("n_dimensions_asked").is_not_null()),
            facts_are_readable=~pl.col("facts_json").is_in(unreadable_facts(requests)),
            n_missing_dimensions=_unless_empty(SCORES, n_missing, stored),
            n_replies=_unless_empty(REPLIES, n_replies, stored),
        )
    )


def _dimensions_asked(rubrics: Mapping[str, Rubric]) -> pl.DataFrame:
    """How many dimensions have a row under each request: those its replies say and, without items, the figures made of them."""
    named = scale_frame(rubrics).filter(~pl.col("is_derived") | ~pl.col("rubric_id").is_in(of_items(rubrics)))
    return named.group_by("rubric_id", "variant").agg(n_dimensions_asked=pl.len().cast(pl.Int64))


def _n_per_request(frame: pl.DataFrame, column: str, name: str) -> pl.DataFrame:
    """How many different values of `column` stand under each request_key: a repeated row is the uniqueness check's to report."""
    return frame.group_by("request_key").agg(pl.col(column).n_unique().cast(pl.Int64).alias(name))


def _unless_empty(table: Table, value: pl.Expr, stored: Buckets) -> pl.Expr:
    return pl.lit(None, dtype=pl.Int64) if stored.is_empty(table) else value
