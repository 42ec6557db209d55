"""Publications in a bucket: whole or not there, one pointer whoever moves it, and the same bytes as in a folder."""

from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta

import polars as pl
import pytest

import salon
from flows.nights.drift import nightly_publications, series_of
from flows.nights.record import Night, note_night, notes
from schemas.errors import CorruptLakeError, InputError, StoreError
from schemas.tables.stored import JUDGEMENTS, SCORES
from tasks.lake.writing import stage
from tasks.publish.folders import MANIFEST, POINTER
from tasks.publish.reading import checked_file, current, find_publication, load_cells, publications
from tasks.verify.publication import check_pointer, find_folder, read_json

DAY = date(2026, 11, 3)
HOME = "publish/v1/nightly"


def _published(lake):
    return {path.relative_to(lake).as_posix(): path.read_bytes() for path in lake.rglob("publish/**/*") if path.is_file()}


def test_a_publication_is_the_same_bytes_as_in_a_folder(machine, objects, url, tmp_path, small_cells, put):
    put(tmp_path / "local", small_cells)
    put(machine("one").root, small_cells)
    local = _published(tmp_path / "local")
    assert {name: objects[name] for name in objects.names("publish/")} == local
    reader = machine("reader").root
    assert load_cells(current(reader)).equals(load_cells(current(tmp_path / "local")))
    assert sorted(path.name for path in current(reader).folder.iterdir()) == ["benchmark_long.parquet", MANIFEST]
    here, there = salon.open(tmp_path / "local"), salon.open(url)
    assert there.tables == here.tables
    assert there.table("benchmark_long").equals(here.table("benchmark_long"))
    assert salon.publications(url).equals(salon.publications(tmp_path / "local"))
    with pytest.raises(salon.SalonError, match="no publication"):
        salon.open(f"{url}/nothing")
    with pytest.raises(salon.SalonError, match=r"^s3://no-such-bucket/x/publish/v1/ cannot be read: .{20,300}$"):
        salon.open("s3://no-such-bucket/x")


def test_of_runs_that_publish_the_same_one_is_new_and_all_have_it(machine, objects, small_cells, put):
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda n: put(machine(f"m{n}").root, small_cells), range(4)))
    assert [one.is_new for one in done].count(True) == 1
    assert all(one.is_current for one in done)
    for one in done:
        assert {path.name: path.read_bytes() for path in one.folder.iterdir()} == {
            name.rpartition("/")[2]: objects[name] for name in objects.names(f"{HOME}/{one.publication_id}/")
        }


def test_of_runs_that_move_the_pointer_the_newest_night_ends_up_current(machine, objects, small_cells, put, name_digest):
    nights = [3, 0, 4, 1, 5, 2]

    def publish(n):
        return put(machine(f"m{n}").root, small_cells, publication_id=name_digest(f"night {n}"), run_date=DAY + timedelta(n))

    with ThreadPoolExecutor(len(nights)) as pool:
        done = dict(zip(nights, pool.map(publish, nights), strict=True))
    reader = machine("reader").root
    assert current(reader).publication_id == name_digest("night 5") == done[5].publication_id
    assert len(publications(reader)) == len(nights)
    assert all(one.is_new for one in done.values())
    for one in publications(reader):
        assert load_cells(one)["cell_id", "estimate"].equals(small_cells["cell_id", "estimate"])


def test_a_pointer_moved_since_it_was_read_is_decided_on_anew(machine, small_cells, put, name_digest):
    """The condition is the store's: what is kept here of an earlier pointer decides nothing."""
    late, early = machine("late").root, machine("early").root
    put(early, small_cells, publication_id=name_digest("first"))
    put(late, small_cells, publication_id=name_digest("newest"), run_date=DAY + timedelta(9))
    older = put(early, small_cells, publication_id=name_digest("older"), run_date=DAY + timedelta(1))
    assert (older.is_new, older.is_current) == (True, False)
    assert current(early).publication_id == name_digest("newest")


def test_a_pointer_to_another_publication_than_the_one_verified_is_right(machine, small_cells, put, name_digest):
    """Of the other nothing was fetched but its manifest; the pointer says too where its tables are."""
    old = put(machine("one").root, small_cells)
    put(machine("one").root, small_cells, publication_id=name_digest("next"), run_date=DAY + timedelta(1))
    found = find_folder(machine("reader").root, old.publication_id)
    assert read_json(found.parent / POINTER)["publication_id"] == name_digest("next")
    assert list(check_pointer(found)) == []


def test_a_kill_before_the_manifest_leaves_nothing_and_the_next_run_publishes(machine, objects, small_cells, put):
    first = put(machine("killed").root, small_cells)
    del objects[f"{HOME}/{first.publication_id}/{MANIFEST}"]
    del objects[f"{HOME}/{POINTER}"]
    assert publications(machine("reader").root) == []
    with pytest.raises(InputError, match=r"no publication in the lake s3://"):
        current(machine("reader").root)
    again = put(machine("next").root, small_cells)
    assert (again.is_new, again.is_current) == (True, True)
    assert put(machine("killed").root, small_cells).is_new is False


def test_a_kill_between_manifest_and_pointer_leaves_the_old_one_current(machine, objects, small_cells, put, name_digest):
    old = put(machine("one").root, small_cells)
    before = objects[f"{HOME}/{POINTER}"]
    new = {"publication_id": name_digest("next"), "run_date": DAY + timedelta(1)}
    put(machine("killed").root, small_cells, **new)
    objects[f"{HOME}/{POINTER}"] = before  # as it was when the process died
    assert current(machine("killed").root).publication_id == old.publication_id
    again = put(machine("two").root, small_cells, **new)
    assert (again.is_new, again.is_current) == (False, True)
    assert current(machine("one").root).publication_id == name_digest("next")


def test_an_unfinished_publication_of_other_bytes_is_never_sealed(machine, objects, small_cells, put, name_digest):
    name = f"{HOME}/{name_digest('publication')}/leaderboard.md"
    objects[name] = b"another run's, under other versions of the libraries"
    with pytest.raises(StoreError, match="already holds different bytes"):
        put(machine("one").root, small_cells)
    assert objects[name].startswith(b"another")
    assert publications(machine("reader").root) == []


def test_a_run_that_made_other_bytes_takes_those_that_stand_there(machine, objects, small_cells, put):
    put(machine("one").root, small_cells)
    other = put(machine("two").root, small_cells, pages={"report.html": b"<p>by another version</p>"})
    assert other.is_new is False
    assert not (other.folder / "report.html").exists()
    manifest = objects[f"{HOME}/{other.publication_id}/{MANIFEST}"]
    assert (other.folder / MANIFEST).read_bytes() == manifest


@pytest.mark.parametrize("damage", [lambda content: content[:-1] + b"x", lambda content: content[:9]], ids=["changed", "cut"])
def test_a_changed_object_is_noticed(machine, objects, small_cells, put, damage):
    published = put(machine("one").root, small_cells)
    name = f"{HOME}/{published.publication_id}/benchmark_long.parquet"
    objects[name] = damage(objects[name])
    found = find_publication(machine("reader").root, published.publication_id)
    with pytest.raises(CorruptLakeError, match="is not the file that was published"):
        checked_file(found, "benchmark_long.parquet")


def test_a_publication_that_was_removed_there_is_gone_here(machine, objects, small_cells, put):
    published = put(machine("one").root, small_cells)
    for name in objects.names(f"{HOME}/"):
        del objects[name]
    assert publications(machine("one").root) == []
    assert put(machine("one").root, small_cells).is_new
    assert load_cells(current(machine("reader").root))["cell_id"].equals(
        pl.read_parquet(published.folder / "benchmark_long.parquet")["cell_id"]
    )


def test_notes_of_nights_are_those_of_the_bucket(machine, objects):
    one, two = machine("one").root, machine("two").root
    note_night(one, "b", Night({"m": "step-1"}), DAY, "1" * 64, is_whole=False)
    assert list(notes(two, "b")) == [DAY.isoformat()]
    note_night(one, "b", Night({"m": "step-2"}), DAY, "2" * 64, is_whole=True)
    assert notes(two, "b")[DAY.isoformat()].is_whole
    del objects[f"nights/b/{DAY.isoformat()}.json"]
    assert notes(two, "b") == notes(one, "b") == {}


def test_another_machine_fetches_what_nights_said_and_not_the_nights(machine, objects, small_cells, put, name_digest):
    for table in (JUDGEMENTS, SCORES):
        staging = stage(machine("one"), table)
        staging.write_part(0, table.empty())
        staging.commit("a" * 64)
    said = {"identities": {"plan_id": "a" * 64, "reading_id": "a" * 64}, "min_coverage": 0.9, "rubrics": {}}
    for night in range(3):
        own = small_cells.with_columns(run_date=DAY + timedelta(night), estimate=pl.col("estimate") + night / 100)
        put(machine("one").root, own, publication_id=name_digest(f"{night}"), run_date=DAY + timedelta(night), provenance=said)
    found = _series(machine("one").root)
    assert found["run_date"].n_unique() == 3
    reader = machine("reader").root
    assert _series(reader).equals(found)
    kept = {path.relative_to(reader).parts[0] for path in reader.rglob("*.parquet")}
    assert kept == {"series"}
    objects["series/nightly.parquet"] = b"another thing"
    assert _series(reader).equals(found)
    assert pl.read_parquet(reader / "series" / "nightly.parquet").height == 3
    assert objects["series/nightly.parquet"] == (reader / "series" / "nightly.parquet").read_bytes()


def _series(root):
    return series_of(root, nightly_publications(root, "nightly"), {})
