"""Small tables for machines that are damaged: salon.duckdb is made all the same, and they are made again where they can be."""

from datetime import date
from pathlib import Path

import duckdb
import pytest

from tasks.publish.duckdb_file import write_duckdb
from tasks.publish.small_tables import damaged


@pytest.fixture
def lake_root(small_lake, put, name_digest):
    """The small lake, published twice: a night and the next."""
    put(small_lake.lake.root, small_lake.cells)
    put(small_lake.lake.root, small_lake.cells, publication_id=name_digest("next"), run_date=date(2026, 11, 4))
    return small_lake.lake.root


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def _of_other_bytes(path: Path) -> None:
    """Where the footer begins: DuckDB raises another error than of a file that was cut."""
    content = bytearray(path.read_bytes())
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    content[start : start + 64] = bytes(255 - byte for byte in content[start : start + 64])
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [_cut, _of_other_bytes])
def test_a_damaged_table_is_made_again_from_the_publications_folder_or_left_out(lake_root, name_digest, damage):
    id_, told = name_digest("next"), []
    own = lake_root / f"publish/v1/nightly/{id_}/benchmark_long.parquet"
    copy = lake_root / f"publish/v1/tables/benchmark_long/benchmark_name=nightly/publication={id_}/part-00000.parquet"
    whole = copy.read_bytes()
    damage(copy)
    assert [one.path for one in damaged(lake_root, "nightly")] == [copy]
    write_duckdb(lake_root, "nightly", told.append)
    assert copy.read_bytes() == whole
    assert told == [f"{copy} was damaged, and is made again from {own}"]
    assert damaged(lake_root, "nightly") == []
    for path in (copy, own):
        damage(path)
    made = write_duckdb(lake_root, "nightly", told.append)
    assert told[1].startswith(f"left out of salon.duckdb: {copy} is not the file that was written; restore it")
    with duckdb.connect(str(made), read_only=True) as database:
        ids = database.sql("SELECT DISTINCT publication_id FROM benchmark_long").fetchall()
        assert len(ids) == 1
        assert (id_,) not in ids
        assert (id_,) in database.sql("SELECT publication_id FROM publications").fetchall()
