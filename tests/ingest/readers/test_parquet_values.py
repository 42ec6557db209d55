"""Parquet files that are small and stand for much: lists of nulls, one text of many rows. Large honest ones are read."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors import SourceError
from schemas.input_budget import PARQUET_LISTED
from tasks.ingest.readers.parquet_rows import parquet_rows
from tasks.lake.row_groups import rows_at_once

N_ROWS = 600


def listed(n_values: int) -> pa.Table:
    return pa.table({"prompt": pa.ListArray.from_arrays(pa.array([0, n_values], pa.int32()), pa.nulls(n_values, pa.int8()))})


def same_text(n_bytes: int, n_rows: int) -> pa.Table:
    return pa.table({"prompt": pa.DictionaryArray.from_arrays(np.zeros(n_rows, dtype=np.int32), pa.array(["A" * n_bytes]))})


def read(path: Path) -> int:
    return sum(1 for _ in parquet_rows(path, "a.parquet", {"prompt"}))


def in_groups(path: Path) -> None:
    """Of each row group less than a file may hold, and of all of them more."""
    pq.write_table(same_text(900_000, N_ROWS), path, row_group_size=100)


BOMBS: dict[str, tuple[Callable[[Path], None], str]] = {
    "a list of nulls": (
        lambda path: pq.write_table(listed(PARQUET_LISTED + 1), path),
        r"^a\.parquet: column prompt\S* has 8,388,609 values in 1 rows and \d+ bytes; for lists, 8,388,608 values",
    ),
    "one text in many rows": (
        lambda path: pq.write_table(same_text(900_000, N_ROWS), path),
        r"^a\.parquet, after row 288: the texts of column prompt that are longer than 1,024 bytes total more than 268,435,456",
    ),
    "one text in many row groups": (in_groups, r"^a\.parquet, after row \d+: the texts of column prompt"),
}


@pytest.mark.parametrize(("make", "said"), BOMBS.values(), ids=BOMBS)
def test_a_small_file_that_stands_for_much_is_refused(tmp_path: Path, make: Callable[[Path], None], said: str) -> None:
    make(tmp_path / "a.parquet")
    assert (tmp_path / "a.parquet").stat().st_size < 2**20
    with pytest.raises(SourceError, match=said):
        read(tmp_path / "a.parquet")


def test_lists_that_have_bytes_are_read_as_those_have_them(tmp_path: Path) -> None:
    numbers = np.random.default_rng(7).random(PARQUET_LISTED + 64, dtype=np.float32)
    offsets = pa.array(range(0, len(numbers) + 1, 64), pa.int32())
    pq.write_table(pa.table({"vector": pa.ListArray.from_arrays(offsets, numbers)}), tmp_path / "a.parquet")
    metadata = pq.read_metadata(tmp_path / "a.parquet")
    assert list(rows_at_once(tmp_path / "a.parquet", metadata, None, "a.parquet"))


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(pa.table({"prompt": pa.nulls(10_000_000, pa.int8())}), id="ten million nulls"),
        pytest.param(pa.table({"prompt": np.arange(10_000_000) % 7}), id="ten million numbers"),
        pytest.param(same_text(20, 10_000_000), id="a word in ten million rows"),
    ],
)
def test_what_is_wide_by_its_rows_alone_is_read(tmp_path: Path, table: pa.Table) -> None:
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=10_000_000)
    metadata = pq.read_metadata(tmp_path / "a.parquet")
    assert list(rows_at_once(tmp_path / "a.parquet", metadata, None, "a.parquet")) == [32]


def test_usual_texts_are_not_counted(tmp_path: Path) -> None:
    pq.write_table(same_text(1024, 270_000), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet") == 270_000
