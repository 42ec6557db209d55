"""The stored tables as the checks look at them: columns, and beside them what other tables say of each row.

A column made here is null where it does not apply: an earlier check speaks for that row (its status is no known word, its
score is off the scale, the other table has no rows). So one fault fails one check. What must hold is in expectations.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl
import pyarrow.parquet as pq

from rubrics.model import Rubric
from schemas.errors import CorruptLakeError
from schemas.statuses import JudgementStatus
from schemas.tables import JUDGEMENTS, REPLIES, REQUESTS, SAMPLES, SCORES, Table
from tasks.store import Lake
from tasks.validate.scales import unreadable_facts
from tasks.validate.score_frame import score_frame

CHECKED_TABLES = (SAMPLES, JUDGEMENTS, REQUESTS, REPLIES, SCORES)

# Texts that no check reads beyond "is it null" and that may be large stay on disk.
_LEFT_OUT = frozenset({"image", "messages_json", "reply_text", "note", "error_detail", "refusal_text"})

_CELL = ["rubric_id", "judge_model", "model", "checkpoint"]


@dataclass(frozen=True, slots=True)
class StoredTables:
    """The five tables of a run, read back from the lake."""

    samples: pl.DataFrame
    judgements: pl.DataFrame
    requests: pl.DataFrame
    replies: pl.DataFrame
    scores: pl.DataFrame


def read_tables(lake: Lake, *, dataset_id: str, plan_id: str, snapshot_id: str, reading_id: str) -> StoredTables:
    """The stored columns the checks need. Raises CorruptLakeError where a column is missing or of another type."""
    return StoredTables(
        samples=_read(lake, SAMPLES, dataset_id),
        judgements=_read(lake, JUDGEMENTS, plan_id),
        requests=_read(lake, REQUESTS, plan_id),
        replies=_read(lake, REPLIES, snapshot_id),
        scores=_read(lake, SCORES, reading_id),
    )


def check_frames(stored: StoredTables, rubrics: Mapping[str, Rubric]) -> dict[str, pl.DataFrame]:
    """For each table's name its columns and the columns made for the checks, rows in stored order."""
    scores = score_frame(stored.scores, stored.requests, stored.replies, rubrics)
    return {
        "samples": stored.samples.with_columns(
            has_judgement=_is_among("sample_id", stored.judgements, "sample_id"),
        ),
        "judgements": _judgements(stored),
        "requests": _requests(stored, scores, rubrics),
        "replies": stored.replies.with_columns(has_request=_is_among("request_key", stored.requests, "request_key")),
        "scores": scores,
    }


def _read(lake: Lake, table: Table, key: str) -> pl.DataFrame:
    fields = [field for field in table.schema() if field.name not in _LEFT_OUT]
    empty = pl.DataFrame(table.schema().empty_table().select([field.name for field in fields]))
    paths = list(lake.parts(table, key))
    for path in paths:
        stored = pq.read_schema(path)
        for field in fields:
            found = stored.field(field.name).type if field.name in stored.names else "not there"
            if found != field.type:
                raise CorruptLakeError(
                    f"{path}: column {field.name} is {found}, not {field.type}; delete {lake.marker(table, key)} and run again"
                )
    # All parts in one scan: read one by one, a thousand of them cost more than twice as much.
    found = pl.scan_parquet(paths, hive_partitioning=False).select(empty.columns).collect() if paths else empty
    # Great Expectations takes NaN for null and lets it pass; as minus infinity it fails every bound, as it should.
    return found.with_columns(pl.col(pl.Float64).fill_nan(float("-inf")))


def _is_among(column: str, other: pl.DataFrame, other_column: str) -> pl.Expr:
    """Whether the other table holds the value; null for a null, and where the other table has no rows at all."""
    if other.is_empty():
        return pl.lit(None, dtype=pl.Boolean)
    return pl.col(column).is_in(other[other_column].drop_nulls().unique().implode())


def _judgements(stored: StoredTables) -> pl.DataFrame:
    status, is_planned = pl.col("status"), pl.col("status") == JudgementStatus.PLANNED
    is_known = status.is_in([word.value for word in JudgementStatus])
    return stored.judgements.with_columns(
        has_sample=_is_among("sample_id", stored.samples, "sample_id"),
        has_request=_is_among("request_key", stored.requests, "request_key"),
        key_fits_status=pl.when(is_known).then(is_planned == pl.col("request_key").is_not_null()),
        reason_fits_status=pl.when(is_known).then(is_planned == pl.col("reason").is_null()),
        is_answered_as_its_cell=_answered_as_its_cell(stored),
    )


def _answered_as_its_cell(stored: StoredTables) -> pl.Series:
    """Whether the model that answered a judgement is its cell's (the commonest one's); null where nobody said who answered."""
    answered = stored.replies.filter(pl.col("ask_index") == 0).select("request_key", "answered_model")
    answered = answered.unique("request_key", keep="first")
    rows = stored.judgements.select(*_CELL, "request_key").join(answered, on="request_key", how="left", maintain_order="left")
    commonest = (
        rows.drop_nulls("answered_model").group_by(*_CELL, "answered_model").len()
        .sort("len", "answered_model", descending=[True, False])
        .group_by(*_CELL, maintain_order=True).agg(pl.col("answered_model").first().alias("of_the_cell"))
    )  # fmt: skip
    found = rows.join(commonest, on=_CELL, how="left", nulls_equal=True, maintain_order="left")
    return found.select(pl.col("answered_model") == pl.col("of_the_cell")).to_series()


def _requests(stored: StoredTables, scores: pl.DataFrame, rubrics: Mapping[str, Rubric]) -> pl.DataFrame:
    has_key = pl.col("request_key").is_not_null()
    n_missing = pl.when(has_key).then(pl.col("n_dimensions_asked") - pl.col("n_dimensions").fill_null(0))
    n_replies = pl.when(has_key).then(pl.col("n_replies").fill_null(0))
    unreadable = unreadable_facts(stored.requests)
    n_dimensions = _n_per_request(scores.filter("is_of_variant"), "dimension", "n_dimensions")
    n_asks = _n_per_request(stored.replies, "ask_index", "n_replies")
    return (
        stored.requests.join(
            _dimensions_asked(rubrics), on=["rubric_id", "variant"], how="left", nulls_equal=True, maintain_order="left"
        )
        .join(n_dimensions, on="request_key", how="left", maintain_order="left")
        .join(n_asks, on="request_key", how="left", maintain_order="left")
        .with_columns(
            has_judgement=_is_among("request_key", stored.judgements, "request_key"),
            has_variant=pl.when(pl.col("rubric_id").is_in(list(rubrics))).then(pl.col("n_dimensions_asked").is_not_null()),
            facts_are_readable=~pl.col("facts_json").is_in(unreadable),
            n_missing_dimensions=_unless_empty(stored.scores, n_missing),
            n_replies=_unless_empty(stored.replies, n_replies),
        )
    )


def _dimensions_asked(rubrics: Mapping[str, Rubric]) -> pl.DataFrame:
    rows = [
        (rubric.id, category, len(variant.dimensions))
        for rubric in rubrics.values()
        for category, variant in rubric.variants.items()
    ]
    schema = {"rubric_id": pl.String, "variant": pl.String, "n_dimensions_asked": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _n_per_request(frame: pl.DataFrame, column: str, name: str) -> pl.DataFrame:
    """How many different values of `column` stand under each request_key: a repeated row is the uniqueness check's to report."""
    return frame.group_by("request_key").agg(pl.col(column).n_unique().cast(pl.Int64).alias(name))


def _unless_empty(other: pl.DataFrame, value: pl.Expr) -> pl.Expr:
    return pl.lit(None, dtype=pl.Int64) if other.is_empty() else value
