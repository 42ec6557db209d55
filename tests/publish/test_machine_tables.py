"""The tables for machines: what a reader who globs finds, from which bytes, and that nothing but their content decides them."""

import hashlib
import json
import shutil

import duckdb
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest

from schemas.tables.stored import JUDGEMENTS, PICTURES, RUNS, SAMPLES, SCORES
from schemas.tables.table import SCHEMA_VERSION
from tasks.lake.reading import Lake
from tasks.lake.writing import stage
from tasks.publish import machine_tables
from tasks.publish.machine_tables import changed_tables, record_run

IDENTITIES = ("dataset_id", "plan_id", "snapshot_id", "reading_id")


@pytest.fixture
def placed(small_lake, put, name_digest):
    """The small lake's publication, with the identities of its partitions."""
    identities = {name: name_digest(name.removesuffix("_id")) for name in IDENTITIES}
    return put(small_lake.lake.root, small_lake.cells, provenance={"identities": identities})


def listing(published):
    return json.loads((published.folder / "tables.json").read_bytes())["files"]


def tree(lake_root):
    return lake_root / "publish/v1/tables"


def test_every_table_is_placed_under_its_benchmark_and_publication(small_lake, placed):
    root = small_lake.lake.root
    names = {"benchmark_long", "checks", "quarantine", "samples", "pictures", "judgements", "scores"}
    assert {file["table"] for file in listing(placed)} == names
    for file in listing(placed):
        path = root / "publish/v1" / file["path"]
        assert path.parent == tree(root) / file["table"] / "benchmark_name=nightly" / f"publication={placed.publication_id}"
        content = path.read_bytes()
        assert (file["n_bytes"], file["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
        metadata = pq.read_schema(path).metadata
        assert metadata[b"salon_schema_version"] == SCHEMA_VERSION.encode()
        assert metadata[b"salon_table"] == file["table"].encode()
        assert file["n_rows"] == pq.read_metadata(path).num_rows
    assert changed_tables(root, placed.folder) == []


def test_the_large_tables_are_the_lakes_in_its_order_without_pictures(small_lake, placed, name_digest):
    root, lake = small_lake.lake.root, small_lake.lake
    for table, key in ((SAMPLES, "dataset"), (JUDGEMENTS, "plan"), (SCORES, "reading")):
        mine = pl.read_parquet(tree(root) / table.name, hive_partitioning=False)
        whole = lake.scan(table, name_digest(key)).collect()
        assert mine.equals(whole.drop("image", strict=False)), table.name
        assert mine.height > 0
    schema = pq.read_schema(next((tree(root) / "samples").rglob("*.parquet")))
    assert "image" not in schema.names
    assert b"huggingface" not in schema.metadata
    assert schema.field("sample_id").metadata[b"about"]


def test_the_pointer_and_the_manifest_reach_them(small_lake, placed):
    home = placed.folder.parent
    pointer = json.loads((home / "latest.json").read_bytes())
    assert set(pointer["large_tables"]) == {"samples", "pictures", "judgements", "scores"}
    assert all((home / path).is_file() for paths in pointer["large_tables"].values() for path in paths)
    manifest = json.loads((placed.folder / "manifest.json").read_bytes())
    assert "tables.json" in manifest["files"]


def test_the_size_of_parts_in_the_lake_changes_no_byte(small_lake, placed, put, tmp_path, name_digest):
    other = Lake(tmp_path / "other")
    for table, key in ((SAMPLES, "dataset"), (PICTURES, "dataset"), (JUDGEMENTS, "plan"), (SCORES, "reading")):
        staging, rows = stage(other, table), small_lake.lake.scan(table, name_digest(key)).collect()
        for index in range(rows.height):
            staging.write_part(index, rows[index : index + 1])
        staging.commit(name_digest(key))
    identities = {name: name_digest(name.removesuffix("_id")) for name in IDENTITIES}
    again = put(other.root, small_lake.cells, provenance={"identities": identities})
    assert listing(again) == listing(placed)
    assert (again.folder / "manifest.json").read_bytes() == (placed.folder / "manifest.json").read_bytes()


@pytest.mark.parametrize("n_rows", [1, 3, 4, 1000])
def test_large_tables_are_cut_into_files_of_a_stated_size(small_lake, put, name_digest, monkeypatch, n_rows):
    monkeypatch.setattr(machine_tables, "N_ROWS_PER_FILE", n_rows)
    identities = {"reading_id": name_digest("reading")}
    published = put(small_lake.lake.root, small_lake.cells, provenance={"identities": identities})
    files = [file for file in listing(published) if file["table"] == "scores"]
    whole = small_lake.lake.scan(SCORES, name_digest("reading")).collect()
    assert sum(file["n_rows"] for file in files) == whole.height
    assert all(file["n_rows"] == n_rows for file in files[:-1])
    assert pl.concat(pl.read_parquet(small_lake.lake.root / "publish/v1" / file["path"]) for file in files).equals(whole)


def test_what_a_killed_run_left_is_replaced_and_what_stands_is_not_touched(small_lake, put, placed, name_digest):
    root = small_lake.lake.root
    identities = {name: name_digest(name.removesuffix("_id")) for name in IDENTITIES}
    paths = {file["table"]: root / "publish/v1" / file["path"] for file in listing(placed)}
    before = {name: path.stat().st_mtime_ns for name, path in paths.items()}
    shutil.rmtree(placed.folder)  # the process died before the folder took its place
    paths["scores"].write_bytes(b"half a file")
    (paths["scores"].parent / "part-00007.parquet").write_bytes(b"of another making")
    again = put(root, small_lake.cells, provenance={"identities": identities})
    assert again.is_new
    assert changed_tables(root, again.folder) == []
    assert [path.name for path in paths["scores"].parent.iterdir()] == ["part-00000.parquet"]
    after = {name: path.stat().st_mtime_ns for name, path in paths.items()}
    assert {name for name in after if after[name] != before[name]} == {"scores"}
    assert not list((root / "staging").glob("table-*"))


def test_a_changed_file_is_named(small_lake, placed):
    root = small_lake.lake.root
    (file,) = [file for file in listing(placed) if file["table"] == "judgements"]
    (root / "publish/v1" / file["path"]).unlink()
    assert changed_tables(root, placed.folder) == [file["path"]]


def test_readers_that_glob_meet_no_column_twice(small_lake, placed):
    where = tree(small_lake.lake.root)
    frame = pl.read_parquet(where / "benchmark_long", hive_partitioning=True)
    assert frame["publication"].unique().to_list() == [placed.publication_id]
    assert frame["benchmark_name"].unique().to_list() == frame["benchmark"].unique().to_list() == ["nightly"]
    table = pd.read_parquet(where / "benchmark_long")
    assert len(table) == frame.height
    found = duckdb.sql(f"SELECT DISTINCT benchmark_name, publication FROM '{where}/scores/*/*/*.parquet'").fetchall()
    assert found == [("nightly", placed.publication_id)]


def test_runs_are_a_file_each_among_those_of_the_benchmark(small_lake):
    lake, rows = small_lake.lake, []
    for minute, benchmark in ((1, "nightly"), (0, "nightly"), (2, "weekly")):
        moment = pd.Timestamp(f"2026-01-01T00:0{minute}:00Z").to_pydatetime()
        row = dict.fromkeys(RUNS.columns) | {
            "started_at": moment, "finished_at": moment, "benchmark": benchmark, "run_date": moment.date(),
            "outcome": "published",
            "dataset_id": "d" * 64, "n_samples": 1, "n_samples_ok": 1, "n_requests": 1, "n_cached": 0, "n_asked": 1,
            "code_version": "c" * 64,
        }  # fmt: skip
        record_run(lake, row)
        rows.append(row)
    files = sorted((tree(lake.root) / "runs/benchmark_name=nightly").iterdir())
    written = [pq.read_table(path, partitioning=None) for path in files]
    assert all(one.schema.equals(RUNS.schema, check_metadata=True) for one in written)
    assert [one["started_at"].to_pylist() for one in written] == [[rows[1]["started_at"]], [rows[0]["started_at"]]]


@pytest.mark.parametrize("damaged", ["provenance.json", "tables.json"])
def test_a_publication_beside_one_that_cannot_be_read_is_placed_whole(small_lake, placed, put, name_digest, damaged):
    (placed.folder / damaged).write_bytes(b"")
    identities = {name: name_digest(name.removesuffix("_id")) for name in IDENTITIES}
    later = put(
        small_lake.lake.root,
        small_lake.cells,
        publication_id=name_digest("later"),
        provenance={"identities": identities},
    )
    assert changed_tables(small_lake.lake.root, later.folder) == []


def test_another_publication_of_the_same_partitions_has_the_same_files_once(small_lake, placed, put, name_digest):
    """Linked where code and partition are the same and the earlier files are what they were; else copied from the lake."""
    lake_root, identities = small_lake.lake.root, {name: name_digest(name.removesuffix("_id")) for name in IDENTITIES}
    changed = next((tree(lake_root) / "samples").rglob("*.parquet"))
    changed.write_bytes(changed.read_bytes() + b"x")
    later = put(lake_root, small_lake.cells, publication_id=name_digest("later"), provenance={"identities": identities})
    files = {file["table"]: lake_root / "publish/v1" / file["path"] for file in listing(later)}
    assert files["scores"].stat().st_nlink == 2
    assert files["samples"].stat().st_nlink == 1
    assert changed_tables(lake_root, later.folder) == []
    other = put(
        lake_root,
        small_lake.cells,
        publication_id=name_digest("other"),
        provenance={"identities": identities | {"code_version": "o"}},
    )
    assert {
        (lake_root / "publish/v1" / file["path"]).stat().st_nlink for file in listing(other) if file["table"] == "scores"
    } == {1}
