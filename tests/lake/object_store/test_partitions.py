"""Partitions in a bucket: written by several machines, whole for every reader, whoever is killed or races."""

import pickle
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pytest

from schemas.errors import CorruptLakeError, InputError, StoreError
from schemas.tables.stored import CHECKS, RUNS
from tasks.lake.object_store.partitions import commit_staged, parts_staged, sweep_bucket
from tasks.lake.reading import Lake, open_lake
from tasks.lake.writing import Staging, stage
from tasks.publish.machine_tables import record_run, runs


def _checks(n_rows, first=0):
    return pl.DataFrame({
        "publication_id": ["0" * 64] * n_rows, "check": [f"check {first + row:04d}" for row in range(n_rows)],
        "status": ["passed"] * n_rows,
        "severity": ["blocking"] * n_rows, "n_checked": [1] * n_rows, "n_failing": [0] * n_rows,
        "failing_keys_json": pl.Series([None] * n_rows, dtype=pl.String),
    })  # fmt: skip


def _staged(lake, *sizes):
    staging = stage(lake, CHECKS)
    for index, size in enumerate(sizes):
        staging.write_part(index, _checks(size, first=sum(sizes[:index])))
    return staging


def _write(lake, key, *sizes):
    return _staged(lake, *sizes).commit(key)


def _all(lake, key):
    return lake.scan(CHECKS, key).collect()["check"].to_list()


def _fetched(lake):
    return sorted(path.name for path in lake.root.rglob("part-*.parquet"))


def test_parts_of_several_machines_are_one_partition_and_a_worker_fetches_its_own_alone(machine, objects):
    one = stage(machine("one"), CHECKS)
    other = Staging(machine("other"), CHECKS, one.name)
    one.write_part(0, _checks(3))
    other.write_part(1, _checks(2, first=3))
    assert [path.name for path in one.part_paths()] == ["part-00000.parquet", "part-00001.parquet"]
    one.write_part(0, _checks(4))  # written anew, as where duplicates are settled
    Staging(machine("third"), CHECKS, one.name).commit("k")
    worker = machine("worker")
    assert worker.keys(CHECKS) == {"k"}
    assert worker.n_rows(CHECKS, "k") == 6
    assert worker.read_part(CHECKS, "k", 1)["check"].to_list() == ["check 0003", "check 0004"]
    assert _fetched(worker) == ["part-00001.parquet"]
    assert len(_all(worker, "k")) == 6
    assert objects.names("staging") == []


def test_the_marker_is_that_of_a_local_lake(machine, objects, tmp_path):
    local = Lake(tmp_path / "local")
    _write(local, "k", 3, 2)
    _write(machine("one"), "k", 3, 2)
    assert objects["complete/checks/k.json"] == local.marker(CHECKS, "k").read_bytes()
    assert _fetched(machine("one")) == ["part-00000.parquet", "part-00001.parquet"]  # what one wrote, one need not fetch


def test_of_runs_that_commit_one_partition_cut_otherwise_one_wins_and_nothing_else_stays(machine, objects):
    cuts = [(6,), (3, 3), (1, 2, 3), (2, 4), (5, 1), (4, 2)]
    with ThreadPoolExecutor(len(cuts)) as pool:
        list(pool.map(lambda n: _write(machine(f"m{n}"), "k", *cuts[n]), range(len(cuts))))
    every = [f"check {row:04d}" for row in range(6)]
    assert _all(machine("reader"), "k") == every
    for n in range(len(cuts)):
        assert _all(machine(f"m{n}"), "k") == every
    assert len(objects.names("checks/")) == len(machine("reader").parts(CHECKS, "k"))
    assert objects.names("staging") == []


def test_who_is_second_takes_away_no_part_that_the_first_ones_marker_names(machine, objects):
    for name, cuts in (("one", (3, 3)), ("two", (3, 1, 2)), ("three", (3, 3))):
        staging = _staged(machine(name), *cuts)
        lake, bucket = staging.lake, staging.lake.bucket
        there = parts_staged(bucket, lake.root, staging.folder)
        commit_staged(bucket, lake.root, there, lake.partition(CHECKS, "k"), lake.marker(CHECKS, "k"), None)
    assert _all(machine("reader"), "k") == [f"check {row:04d}" for row in range(6)]
    assert len(objects.names("checks/")) == 2


def test_a_kill_between_parts_and_marker_is_made_good_by_the_next_run(machine, objects):
    _write(machine("killed"), "k", 3, 3)
    del objects["complete/checks/k.json"]
    assert not machine("reader").is_complete(CHECKS, "k")
    _write(machine("next"), "k", 4)
    assert _all(machine("reader"), "k") == [f"check {row:04d}" for row in range(4)]


def test_what_was_kept_under_an_earlier_marker_is_not_believed(machine, objects):
    """Somebody repaired the lake: marker and parts were deleted and written anew, of the same size."""
    reader = machine("reader")
    _write(machine("one"), "k", 3)
    assert _all(reader, "k")[0] == "check 0000"
    for name in objects.names("c"):
        del objects[name]
    staging = stage(machine("two"), CHECKS)
    staging.write_part(0, _checks(3, first=7))
    staging.commit("k")
    reader.marker(CHECKS, "k").unlink()
    assert _all(reader, "k")[0] == "check 0007"


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda content: content[:-1] + b"x", "sha256"),
        (lambda content: content[:-1], "sha256"),
        (None, "is gone"),
    ],
    ids=["changed", "cut", "gone"],
)
def test_a_damaged_object_is_noticed_and_not_kept(machine, objects, damage, says):
    _write(machine("one"), "k", 3)
    (name,) = objects.names("checks/")
    if damage is None:
        del objects[name]
    else:
        objects[name] = damage(objects[name])
    for _ in range(2):
        with pytest.raises(CorruptLakeError, match=says):
            machine("reader").parts(CHECKS, "k")
    assert _fetched(machine("reader")) == []


@pytest.mark.parametrize("content", [b"", b"{}", b'{"parts": [{"name": "../../part-00000.parquet"}]}', b'{"parts": 3}'])
def test_a_marker_that_salon_did_not_write_is_refused(machine, objects, content):
    objects["complete/checks/k.json"] = content
    with pytest.raises(CorruptLakeError, match="not a marker that Salon wrote"):
        machine("reader").parts(CHECKS, "k")


def test_the_working_folder_may_go_at_any_time(machine):
    lake = machine("one")
    staging = stage(lake, CHECKS)
    staging.write_part(0, _checks(3))
    shutil.rmtree(lake.root)
    staging.write_part(1, _checks(2, first=3))
    shutil.rmtree(lake.root)
    staging.commit("k")
    shutil.rmtree(lake.root)
    assert len(_all(lake, "k")) == 5


def test_a_lake_is_sent_to_another_machine_by_its_address(machine, url, tmp_path, monkeypatch):
    sent = pickle.dumps(stage(machine("one"), CHECKS))
    monkeypatch.setenv("SALON_CACHE", str(tmp_path / "there"))
    there = pickle.loads(sent)
    assert there.lake.place == url
    assert there.folder.is_relative_to(tmp_path / "there")
    assert pickle.loads(pickle.dumps(Lake(tmp_path))) == Lake(tmp_path)


def test_leftovers_are_swept_when_old_and_living_stagings_stay(machine, objects):
    lake = machine("one")
    for _ in range(2):
        stage(lake, CHECKS).write_part(0, _checks(1))
    lake.sweep()
    assert len(objects.names("staging")) == 2
    assert lake.bucket is not None
    sweep_bucket(lake.bucket, age_s=-3600)
    assert objects.names("staging") == []


@pytest.mark.slow
def test_a_staging_is_as_old_as_its_youngest_part(machine, objects):
    staging = stage(machine("one"), CHECKS)
    staging.write_part(0, _checks(1))
    time.sleep(5)
    staging.write_part(1, _checks(1))
    sweep_bucket(staging.lake.bucket, age_s=3.5)  # a store tells whole seconds
    assert len(objects.names("staging")) == 2


def test_every_machines_runs_are_in_the_table_of_runs(machine):
    from datetime import UTC, datetime

    row = dict.fromkeys(RUNS.columns) | {
        "started_at": datetime(2026, 11, 3, tzinfo=UTC), "finished_at": datetime(2026, 11, 3, tzinfo=UTC), "benchmark": "b",
        "run_date": datetime(2026, 11, 3, tzinfo=UTC).date(), "outcome": "published", "dataset_id": "0" * 64, "code_version": "c",
    } | {field.name: 0 for field in RUNS.fields if field.name.startswith("n_")}  # fmt: skip
    for name in ("one", "two", "one"):
        record_run(machine(name), row)
    assert runs(machine("reader")).height == 3


@pytest.mark.parametrize("name", ["nights/b/../../../evil.json", "nights/b//x.json", "nights/b/a\\b.json", "nights/b/./x.json"])
def test_an_object_with_a_hostile_name_is_refused(machine, objects, tmp_path, name):
    from flows.nights.record import notes

    objects[name] = b"{}"
    with pytest.raises(CorruptLakeError, match="remove"):
        notes(machine("reader").root, "b")
    assert not list(tmp_path.rglob("*.json"))


def test_a_bucket_that_is_not_there_is_an_error_and_not_an_empty_lake(url, monkeypatch):
    gone = open_lake("s3://no-such-bucket-of-salon/lake")
    with pytest.raises(StoreError, match="NoSuchBucket"):
        gone.is_complete(CHECKS, "k")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("SALON_STORE_WAIT_S", "0.2")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret-word")
    away = open_lake(url)
    for call in (lambda: away.is_complete(CHECKS, "k"), lambda: _write(away, "k", 1), lambda: away.rows_files(RUNS)):
        with pytest.raises(StoreError, match=r"SALON_STORE_WAIT_S \(0\.2 s now\), then run the same command again") as caught:
            call()
        assert "a-secret-word" not in str(caught.value)


def test_a_full_or_unwritable_disk_is_a_store_error(machine, tmp_path):
    _write(machine("one"), "k", 3)
    (tmp_path / "full").write_bytes(b"a file where the folder should be")
    with pytest.raises(StoreError, match="a file is where a folder should be"):
        machine("full").parts(CHECKS, "k")


@pytest.mark.parametrize(
    "place",
    [
        "gs://bucket/lake",
        "s3://key:secretword@bucket/lake",
        "s3://bucket/../lake",
        "s3://bucket/lake?secretword",
        "s3://B/lake",
        "s3:///x",
    ],
)
def test_other_addresses_are_refused_and_not_repeated(place):
    with pytest.raises(InputError, match="s3://bucket/prefix") as caught:
        open_lake(place)
    assert "secretword" not in str(caught.value)
