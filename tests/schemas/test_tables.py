"""The declared tables: what conform() keeps and what it refuses."""

import polars as pl
import pyarrow as pa
import pytest

from schemas.tables.catalogue import TABLES
from schemas.tables.field import Field
from schemas.tables.stored import CHECKS, PARTITIONS, REPLIES, SAMPLES
from schemas.tables.table import Table, conform

CHECK_ROW = {
    "publication_id": ["0" * 64], "check": ["c"], "status": ["passed"], "severity": ["blocking"],
    "n_checked": [1], "n_failing": [0], "failing_keys_json": [None],
}  # fmt: skip


@pytest.mark.parametrize("table", [*TABLES.values(), PARTITIONS], ids=[*TABLES, PARTITIONS.name])
def test_every_table_is_sound(table: Table) -> None:
    assert len(set(table.columns)) == len(table.columns)
    assert set(table.key) <= set(table.columns)
    for field in table.schema:
        assert field.metadata[b"about"].endswith(b".")


def test_conform_orders_columns_casts_and_keeps_metadata() -> None:
    frame = pl.DataFrame(CHECK_ROW).select(reversed(CHECKS.columns)).with_columns(pl.col("n_checked").cast(pl.Int8))
    table = conform(frame, CHECKS)
    assert table.schema.equals(CHECKS.schema, check_metadata=True)
    assert table.schema.field("status").nullable is False


def test_conform_refuses_a_null_where_none_is_allowed() -> None:
    with pytest.raises(ValueError, match=r"table checks: .*'status' with null values"):
        conform(pl.DataFrame(CHECK_ROW | {"status": pl.Series([None], dtype=pl.String)}), CHECKS)


def test_conform_names_a_missing_column() -> None:
    with pytest.raises(ValueError, match=r"needs the columns.*severity"):
        conform(pl.DataFrame(CHECK_ROW).drop("severity"), CHECKS)


def test_images_are_a_hugging_face_feature() -> None:
    assert b'"_type": "Image"' in SAMPLES.schema.metadata[b"huggingface"]
    assert b"huggingface" not in REPLIES.schema.metadata


def test_or_null_changes_only_that() -> None:
    strict = Field("x", pa.int64(), "A number.", minimum=0)
    assert strict.or_null() == Field("x", pa.int64(), "A number.", is_nullable=True, minimum=0)
