"""The samples a plan reads: their columns, whose each picture is, and which of them are one question."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl

from schemas.records import IMAGE, TEXT_COLUMNS, UNKNOWN
from schemas.statuses.rows import SampleStatus
from schemas.tables.stored import SAMPLES
from tasks.context import StageContext
from tasks.lake.pictures import with_pictures
from tasks.lake.reading import with_later_columns
from tasks.plan.request_key import Slot

PLAN_COLUMNS = [
    "sample_id", "status", "model", "checkpoint", "image_sha256", "pictures", "duplicate_of_sample_id", *TEXT_COLUMNS
]  # fmt: skip
"""The columns of `samples` a plan reads; the bytes of pictures are not among them."""

PAIR_COLUMNS = ["second_sample_id", "second_model", "second_checkpoint"]
"""What a row to plan has beside them where two samples are compared: `sample_id` is the one shown first."""

JUDGED: Slot = (IMAGE, 0)


def scanned(paths: Sequence[Path], first: int) -> pl.LazyFrame:
    """PLAN_COLUMNS and `source` of these parts of samples, and `samples_part`, each one's number, counted from `first`.

    Rows of which nobody could read who made them are not asked about.
    """
    numbers = {str(path): number for number, path in enumerate(paths, first)}
    stored = pl.scan_parquet(list(numbers), include_file_paths="path", hive_partitioning=False)
    part = pl.col("path").replace_strict(numbers, return_dtype=pl.Int64)
    known = stored.filter(pl.col("model") != UNKNOWN)
    return with_later_columns(known, SAMPLES).select("source", *PLAN_COLUMNS, samples_part=part)


def by_role(image: str | None, roles: str | None, digests: str | None) -> dict[str, str | None]:
    """The digest of the judged picture, and those of each other role."""
    found: dict[str, str | None] = {IMAGE: image}
    for role, digest in zip(roles.split(","), (digests or "").split(","), strict=True) if roles else ():
        if role != IMAGE:
            found[role] = f"{found[role]},{digest}" if role in found else digest
    return found


@lru_cache(maxsize=1000)
def slots_of(roles: str | None) -> tuple[Slot, ...]:
    """The pictures of a sample by role and number in it, of the role of each in order, with commas between."""
    listed = roles.split(",") if roles else []
    return tuple((role, listed[:place].count(role)) for place, role in enumerate(listed))


def groups(samples: pl.DataFrame) -> Any:
    """(texts …, status, roles of pictures, rows, sample ids, judged pictures' digests, all pictures') of each question.

    A duplicate has its twin's id and status: it is asked what its twin is, under the same request key, once.
    """
    twin = pl.col("duplicate_of_sample_id")  # only a usable sample has one: the id of any other holds its own place
    is_again = (pl.col("status") == SampleStatus.DUPLICATE.value) & twin.is_not_null()
    shown = with_pictures(samples.select(PLAN_COLUMNS)).with_columns(
        sample_id=pl.when(is_again).then(twin).otherwise("sample_id"),
        status=pl.when(is_again).then(pl.lit(SampleStatus.OK.value)).otherwise("status"),
    )
    if PAIR_COLUMNS[0] in samples.columns:  # what is not sent is told apart by what it is of
        shown = shown.with_columns(sample_id=shown["sample_id"] + samples[PAIR_COLUMNS[0]])
    of = {name: pl.col("pictures").list.eval(pl.element().struct.field(name)).list.join(",") for name in ("role", "sha256")}
    return (
        shown.select(*TEXT_COLUMNS, "status", "sample_id", "image_sha256", roles=of["role"], digests=of["sha256"])
        .with_row_index("row")
        .group_by(*TEXT_COLUMNS, "status", "roles", maintain_order=True)
        .agg("row", "sample_id", "image_sha256", "digests")
        .iter_rows()
    )


def with_first_row(context: StageContext, sources: Sequence[str]) -> list[str]:
    """The sources' names, each with the file and row it begins at: what a person must open to see what is missing."""
    first = _first_rows(context, sources, ["source", "source_key"])
    return [f"{source} (its first row: {key})" for source, key in first.iter_rows()]


def first_unusable(context: StageContext, sources: Sequence[str]) -> dict[str, str]:
    """Of each status of samples that cannot be judged the first row: its source, its key, and what is wrong with it."""
    is_unusable = pl.col("status") != SampleStatus.OK.value
    first = _first_rows(context, sources, ["status", "source", "source_key", "detail"], is_unusable)
    return {status: f"{source}, {key}{f': {detail}' if detail else ''}" for status, source, key, detail in first.iter_rows()}


def _first_rows(context: StageContext, sources: Sequence[str], columns: list[str], *which: pl.Expr) -> pl.DataFrame:
    """These columns of the sources' first row for each value of the first column."""

    def first_rows(rows: pl.LazyFrame) -> pl.LazyFrame:
        mine = rows.filter(pl.col("source").is_in(list(sources)), *which).select(columns)
        return mine.unique(columns[0], keep="first", maintain_order=True)

    return first_rows(context.lake.collect(SAMPLES, context.ids.dataset_id, first_rows).lazy()).collect()
