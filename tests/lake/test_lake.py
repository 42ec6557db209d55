"""The lake: a reader meets the old version or the new one, never a third."""

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from schemas.errors import CorruptLakeError, InputError, StoppedError, StoreError
from schemas.identities import RunIds
from schemas.records import REPLY_FIELDS, JudgeReply
from schemas.statuses.rows import ReplyOrigin, ReplyStatus
from schemas.tables.stored import CHECKS, REPLIES, SAMPLES
from schemas.tables.table import Table
from tasks.lake.atomic_files import locked, place_folder, write_bytes
from tasks.lake.markers import describe, describe_the_rest, what_is_wrong
from tasks.lake.reading import Lake, open_lake
from tasks.lake.writing import stage
from tasks.stopping import STOP
from tasks.verify.partitions import check_replies
from tests.support.markers import fit_marker
from tests.support.small_lake import SmallLake


def _checks(n_rows: int, first: int = 0) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "publication_id": ["0" * 64] * n_rows,
            "check": [f"check {first + row}" for row in range(n_rows)],
            "status": ["passed"] * n_rows,
            "severity": ["blocking"] * n_rows,
            "n_checked": [1] * n_rows,
            "n_failing": [0] * n_rows,
            "failing_keys_json": pl.Series([None] * n_rows, dtype=pl.String),
        }
    )


def _write(lake: Lake, key: str, *sizes: int) -> None:
    staging = stage(lake, CHECKS)
    for index, size in enumerate(sizes):
        staging.write_part(index, _checks(size, first=100 * index))
    staging.commit(key)


def test_a_partition_reads_back_in_order(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    _write(lake, "k", 3, 2)
    assert lake.scan(CHECKS, "k").collect()["check"].to_list() == ["check 0", "check 1", "check 2", "check 100", "check 101"]
    assert lake.n_rows(CHECKS, "k") == 5
    assert lake.read_part(CHECKS, "k", 1, ["check"])["check"].to_list() == ["check 100", "check 101"]


def test_the_folder_of_a_partition_holds_parquet_files_alone(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    _write(lake, "k", 3, 2)
    assert pl.scan_parquet(lake.partition(CHECKS, "k")).collect().height == 5
    assert list((tmp_path / "staging").iterdir()) == []


@pytest.mark.parametrize("removed", [0, 1, 2])
def test_a_partition_that_lost_a_part_while_it_was_written_is_none(tmp_path: Path, removed: int) -> None:
    lake = Lake(tmp_path)
    staging = stage(lake, CHECKS)
    for index in range(3):
        staging.write_part(index, _checks(1, first=index))
    staging.part_path(removed).unlink()
    with pytest.raises(StoreError, match=r"holds 2 parts, not the 3 that were written.*run the same command again"):
        staging.commit("k", range(3))
    assert not lake.is_complete(CHECKS, "k")


@pytest.mark.parametrize("written", [(0,), (0, 2), (0, 1, 2)])
def test_other_parts_than_were_written_are_never_committed(tmp_path: Path, written: tuple[int, ...]) -> None:
    lake = Lake(tmp_path)
    staging = stage(lake, CHECKS)
    for index in (0, 1):
        staging.write_part(index, _checks(2))
    with pytest.raises(StoreError, match="2 parts, not the"):
        staging.commit("k", written)
    assert not lake.is_complete(CHECKS, "k")


def test_what_is_staged_is_not_there_before_the_commit(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    stage(lake, CHECKS).write_part(0, _checks(1))
    assert not lake.is_complete(CHECKS, "k")
    with pytest.raises(StoreError, match="run the benchmark again"):
        lake.parts(CHECKS, "k")


def test_a_complete_partition_is_never_replaced(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    _write(lake, "k", 3)
    before = lake.parts(CHECKS, "k")[0].stat().st_ino
    _write(lake, "k", 1)
    assert lake.n_rows(CHECKS, "k") == 3
    assert lake.parts(CHECKS, "k")[0].stat().st_ino == before
    assert list((tmp_path / "staging").iterdir()) == []


def test_a_folder_in_the_place_of_a_link_leaves_nothing_of_it_and_what_it_named_alone(tmp_path: Path) -> None:
    staged, target, other = (tmp_path / name for name in (".out.1", "out", "other"))
    for folder in (staged, other):
        folder.mkdir()
        (folder / "file").write_text(folder.name)
    target.symlink_to(other)
    place_folder(staged, target)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "out"]
    assert ((target / "file").read_text(), (other / "file").read_text()) == (".out.1", "other")


def test_a_folder_without_its_marker_is_a_leftover_and_is_replaced(tmp_path: Path) -> None:
    """A kill between the rename and the marker: the next run must end with its own parts and a marker."""
    lake = Lake(tmp_path)
    _write(lake, "k", 3)
    lake.marker(CHECKS, "k").unlink()
    _write(lake, "k", 1)
    assert lake.n_rows(CHECKS, "k") == lake.scan(CHECKS, "k").collect().height == 1


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-1])], ids=["gone", "cut"])
def test_a_damaged_part_is_named(tmp_path: Path, damage) -> None:
    lake = Lake(tmp_path)
    _write(lake, "k", 3)
    damage(lake.partition(CHECKS, "k") / "part-00000.parquet")
    with pytest.raises(CorruptLakeError, match=r"part-00000\.parquet is (missing|\d+ bytes long)"):
        lake.scan(CHECKS, "k")


def test_an_empty_partition_is_complete_and_its_marker_says_so(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    stage(lake, CHECKS).commit("k")
    assert json.loads(lake.marker(CHECKS, "k").read_bytes()) == {"parts": []}
    assert lake.scan(CHECKS, "k").collect().equals(CHECKS.empty())


def test_the_same_rows_make_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        _write(Lake(tmp_path / name), "k", 3)
    first, second = (Lake(tmp_path / name).parts(CHECKS, "k")[0].read_bytes() for name in ("a", "b"))
    assert first == second


def test_pictures_are_stored_uncompressed_in_small_row_groups(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    row = dict.fromkeys(SAMPLES.columns) | {
        "sample_id": "0" * 64, "source": "s", "source_key": "k", "model": "m", "checkpoint": "c", "status": "ok",
        "image": {"bytes": b"x" * 1000, "path": "x.png"},
    }  # fmt: skip
    staging = stage(lake, SAMPLES)
    frame = pl.DataFrame([row] * 130, schema_overrides={"image": pl.Struct({"bytes": pl.Binary, "path": pl.String})})
    staging.write_part(0, frame)
    staging.commit("d")
    stored = pq.ParquetFile(lake.parts(SAMPLES, "d")[0])
    assert stored.metadata.num_row_groups == 3
    columns = {stored.metadata.row_group(0).column(i).path_in_schema: stored.metadata.row_group(0).column(i) for i in range(20)}
    assert columns["image.bytes"].compression == "UNCOMPRESSED"
    assert columns["sample_id"].compression == "ZSTD"
    assert stored.schema_arrow.equals(SAMPLES.schema, check_metadata=True)


def test_each_bit_of_the_footer_of_pictures_is_looked_at_before_the_footer_is_believed(small_lake: SmallLake) -> None:
    """pyarrow ends the process at some thirty of them, and raises five kinds of error at the others."""
    part = next(small_lake.lake.root.glob("pictures/*/part-00000.parquet"))
    entry = describe(part) | describe_the_rest(part)
    assert what_is_wrong(part, entry, has_pictures=True) is None
    content = part.read_bytes()
    with part.open("r+b", buffering=0) as file:
        for at in range(len(content) - 8 - int.from_bytes(content[-8:-4], "little"), len(content)):
            for bit in range(0, 8, 3):
                os.pwrite(file.fileno(), bytes([content[at] ^ 1 << bit]), at)
                assert what_is_wrong(part, entry, has_pictures=True) == "is not what was written: its footer differs"
            os.pwrite(file.fileno(), content[at : at + 1], at)


@pytest.mark.parametrize(("table", "needed"), [(SAMPLES, "model"), (REPLIES, "status")], ids=["samples", "replies"])
def test_a_partition_of_before_a_column_came_is_read_with_null_there(tmp_path: Path, table: Table, needed: str) -> None:
    """What a lake of an earlier version holds is neither read again from its source nor asked for."""
    lake, staging = Lake(tmp_path), stage(Lake(tmp_path), table)
    staging.write_part(0, table.empty())
    staging.commit("key")
    path = lake.parts(table, "key")[0]
    for gone, is_read in (([*table.later], True), ([needed], False)):
        pq.write_table(pq.read_table(path).drop(gone), path)
        fit_marker(lake, table, "key")
        assert (lake.scan(table, "key").collect_schema().names().count(gone[0]) == 1) == is_read


def test_replies_of_before_they_had_a_digest_are_held_against_the_snapshots_id_alone(tmp_path: Path) -> None:
    lake, staging = Lake(tmp_path), stage(Lake(tmp_path), REPLIES)
    reply = JudgeReply("0" * 64, 0, ReplyStatus.ANSWERED, "judge", ReplyOrigin.ASKED, text="Score: 3")
    staging.write_part(0, REPLIES.frame([{of.name: getattr(reply, attribute) for attribute, of in REPLY_FIELDS.items()}]))
    staging.commit("1" * 64)
    path = lake.parts(REPLIES, "1" * 64)[0]
    pq.write_table(pq.read_table(path).drop([*REPLIES.later]), path)
    fit_marker(lake, REPLIES, "1" * 64)
    found, _, tally = check_replies(lake, RunIds(snapshot_id="1" * 64))
    assert [one.column for one in found] == ["snapshot_id"]  # made up here
    assert tally.n_missing == 1


def test_an_unwritable_place_is_a_store_error_that_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StoreError, match="run the same command again"):
        write_bytes(b"x", tmp_path / "file" / "target", tmp_path / "staging")
    assert list((tmp_path / "staging").iterdir()) == []


def test_leftovers_of_killed_runs_are_swept_and_young_ones_stay(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    old, young = stage(lake, CHECKS), stage(lake, CHECKS)
    for staging in (old, young):
        staging.write_part(0, _checks(1))
    os.utime(old.folder, (0, 0))
    stage(lake, CHECKS)
    assert [path.name for path in (tmp_path / "staging").iterdir()] == [young.folder.name]


def test_two_processes_that_commit_the_same_partition_leave_one_whole(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    stagings = [stage(lake, CHECKS) for _ in range(8)]
    for staging in stagings:
        staging.write_part(0, _checks(200))
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda staging: staging.commit("k"), stagings)) == {"k"}
    assert lake.scan(CHECKS, "k").collect().height == 200
    assert list((tmp_path / "staging").iterdir()) == []


@pytest.mark.parametrize("name", ["l[a]ke", "lak?", "*"])
def test_a_folder_that_readers_take_for_a_pattern_is_refused(tmp_path, name):
    with pytest.raises(InputError, match="without them"):
        open_lake(name, tmp_path)


def test_who_waits_for_a_lock_heeds_a_stop(tmp_path: Path) -> None:
    """Not in the kernel: there Ctrl-C would not be heard."""
    with locked(tmp_path, "pins"):
        threading.Timer(0.2, STOP.set).start()
        try:
            with pytest.raises(StoppedError), locked(tmp_path, "pins"):
                pytest.fail("it was held")
        finally:
            STOP.clear()
    with locked(tmp_path, "pins"):
        pass
