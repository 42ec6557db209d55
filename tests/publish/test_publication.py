"""Publications are whole, immutable and the same bytes everywhere; the pointer moves last and never to less."""

import hashlib
import json
import os
import shutil
from datetime import date
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from schemas.errors import CorruptLakeError, InputError, StoreError
from schemas.tables.published import BENCHMARK_LONG, HEALTH
from tasks.publish.folders import POINTER, is_published, publication_folder
from tasks.publish.reading import checked_file, chosen, current, find_publication, load_cells, publications
from tasks.publish.standings.pair_boards import boards_in

FILES = [
    "benchmark_long.csv", "benchmark_long.parquet", "checks.parquet", "leaderboard.md", "leaderboard.tex", "manifest.json",
    "provenance.json",
    "quarantine.parquet", "tables.json", "views.sql",
]  # fmt: skip


def all_bytes(root):
    home = root / "publish"
    return {path.relative_to(home).as_posix(): path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()}


def test_publishing_in_two_places_gives_the_same_bytes(tmp_path, small_cells, put):
    first = put(tmp_path / "one", small_cells)
    rechunked = pl.concat([small_cells[index : index + 1] for index in range(small_cells.height)], rechunk=False)
    (tmp_path / "elsewhere").mkdir()
    put(tmp_path / "elsewhere" / "two", rechunked.sample(fraction=1, shuffle=True, seed=3))
    one, two = all_bytes(tmp_path / "one"), all_bytes(tmp_path / "elsewhere" / "two")
    assert one == two
    assert sorted(path.name for path in first.folder.iterdir()) == FILES
    for name, content in one.items():
        assert str(tmp_path).encode() not in content, name


def test_the_parquet_file_carries_the_declared_schema_and_the_cells(tmp_path, small_cells, put):
    published = put(tmp_path, small_cells)
    written = pq.read_table(published.folder / "benchmark_long.parquet")
    assert written.schema.equals(BENCHMARK_LONG.schema, check_metadata=True)
    assert load_cells(current(tmp_path)).drop("failures").equals(small_cells.drop("failures"))
    read_back = pl.read_csv(published.folder / "benchmark_long.csv", schema_overrides={"estimate": pl.Float64})
    assert read_back["estimate"].to_list() == small_cells["estimate"].to_list()


def test_a_publication_that_is_there_is_not_written_again(tmp_path, small_cells, put):
    first = put(tmp_path, small_cells)
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in first.folder.iterdir()}
    again = put(tmp_path, small_cells.with_columns(estimate=pl.lit(0.0)))
    assert (first.is_new, first.is_current, again.is_new, again.is_current) == (True, True, False, True)
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in first.folder.iterdir()} == before
    assert not list((tmp_path / "staging").glob("publication-*"))


def test_the_manifest_and_the_pointer_name_what_is_there(tmp_path, small_cells, put):
    published = put(tmp_path, small_cells)
    manifest = json.loads((published.folder / "manifest.json").read_bytes())
    assert sorted(manifest["files"]) == sorted(set(FILES) - {"manifest.json"})
    for name, entry in manifest["files"].items():
        content = (published.folder / name).read_bytes()
        assert entry == {"n_bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    home = published.folder.parent
    pointer = json.loads((home / POINTER).read_bytes())
    assert pointer["manifest_sha256"] == hashlib.sha256((published.folder / "manifest.json").read_bytes()).hexdigest()
    assert all((home / path).is_file() for path in pointer["tables"].values())
    assert (pointer["publication_id"], pointer["run_date"], pointer["benchmark"]) == (
        published.publication_id,
        "2026-11-03",
        "nightly",
    )


def test_a_kill_between_folder_and_pointer_leaves_the_old_pointer_and_the_next_run_moves_it(
    tmp_path, small_cells, put, name_digest
):
    old = put(tmp_path, small_cells)
    pointer = old.folder.parent / POINTER
    before = pointer.read_bytes()
    new = put(tmp_path, small_cells, publication_id=name_digest("next"), run_date=date(2026, 11, 4))
    pointer.write_bytes(before)  # as it was when the folder stood there and the process died
    assert current(tmp_path).publication_id == old.publication_id
    assert load_cells(current(tmp_path)).drop("failures").equals(small_cells.drop("failures"))
    again = put(tmp_path, small_cells, publication_id=name_digest("next"), run_date=date(2026, 11, 4))
    assert (again.is_new, again.is_current) == (False, True)
    assert current(tmp_path).publication_id == new.publication_id


def test_a_half_written_publication_is_never_at_its_place(tmp_path, small_cells, put):
    with pytest.raises(TypeError):
        put(tmp_path, small_cells, provenance={"identities": object(), 3: "mixed keys cannot be sorted"})
    assert publications(tmp_path) == []
    assert not list((tmp_path / "staging").glob("publication-*"))
    assert not (tmp_path / "publish").exists()


@pytest.mark.parametrize(
    ("run_date", "moves"),
    [(date(2026, 11, 2), False), (date(2026, 11, 3), True), (date(2026, 11, 4), True)],
    ids=["older", "same", "newer"],
)
def test_the_pointer_never_goes_back_in_run_dates(tmp_path, small_cells, put, run_date, moves):
    old = put(tmp_path, small_cells)
    new = put(tmp_path, small_cells, publication_id="f" * 64, run_date=run_date)
    assert (new.is_new, new.is_current) == (True, moves)
    assert current(tmp_path).folder == (new.folder if moves else old.folder)
    assert [p.is_current for p in publications(tmp_path)].count(True) == 1


def test_a_table_of_nothing_never_becomes_current(tmp_path, small_cells, put, name_digest):
    nothing = small_cells.with_columns(estimate=pl.lit(None, pl.Float64), status=pl.lit("blocked"), reason=pl.lit("refusal"))
    first = put(tmp_path, nothing, publication_id=name_digest("nothing"))
    assert (first.is_new, first.is_current) == (True, False)
    with pytest.raises(InputError, match="no publication of nightly has a cell with an estimate yet"):
        current(tmp_path)
    good = put(tmp_path, small_cells)
    later = put(tmp_path, nothing, publication_id=name_digest("later"), run_date=date(2026, 12, 1))
    assert not later.is_current
    assert current(tmp_path).publication_id == good.publication_id
    assert len(publications(tmp_path)) == 3


def test_current_says_what_there_is(tmp_path, small_cells, put, name_digest):
    with pytest.raises(InputError, match=r"no publication in the lake .* published: none. Run `salon run FILE` first"):
        current(tmp_path)
    put(tmp_path, small_cells)
    with pytest.raises(InputError, match=r"no publication of 'weekly' in the lake .* published: nightly"):
        current(tmp_path, "weekly")
    put(tmp_path, small_cells, benchmark="weekly", publication_id=name_digest("weekly"), run_date=date(2020, 1, 1))
    os.utime(tmp_path / "publish/v1/nightly" / POINTER, ns=(10**18, 10**18))
    assert current(tmp_path).benchmark == "weekly"
    assert current(tmp_path, "nightly").benchmark == "nightly"


@pytest.mark.parametrize("look", [current, lambda root: chosen(root, None, None)], ids=["current", "chosen"])
def test_a_pointer_that_goes_while_it_is_looked_for_is_told_of(tmp_path, small_cells, put, monkeypatch, look):
    """As `salon withdraw` takes the last one away, in the moment after it was found."""
    folder = put(tmp_path, small_cells).folder
    listed = Path.glob

    def then_gone(path, pattern):
        found = list(listed(path, pattern))
        if pattern.endswith(POINTER):
            (folder.parent / POINTER).unlink(missing_ok=True)
        return iter(found)

    monkeypatch.setattr(Path, "glob", then_gone)
    with pytest.raises(StoreError, match=r"^a latest.json was taken away while it was read, by `salon withdraw` perhaps; run"):
        look(tmp_path)
    assert chosen(tmp_path, None, None).folder == folder


def test_a_publication_is_found_by_the_start_of_its_id(tmp_path, small_cells, put, name_digest):
    put(tmp_path, small_cells)
    name = name_digest("publication")
    assert find_publication(tmp_path, name[:6]).publication_id == name
    for wrong in (name[:3], "zzzz", ""):
        with pytest.raises(InputError, match=name[:12]):
            find_publication(tmp_path, wrong)


def test_a_changed_file_is_not_read(tmp_path, small_cells, put):
    published = put(tmp_path, small_cells)
    found = current(tmp_path)
    path = published.folder / "benchmark_long.parquet"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(CorruptLakeError, match="is not the file that was published"):
        load_cells(found)
    with pytest.raises(CorruptLakeError):
        checked_file(found, "no such file")
    (published.folder / "preferences.parquet").write_bytes(b"garbage")
    with pytest.raises(CorruptLakeError, match=r"a table of pairs in .* is not what was published"):
        boards_in(published.folder)
    (published.folder / "manifest.json").write_bytes(b"{}")
    with pytest.raises(CorruptLakeError, match="deleted or changed"):
        current(tmp_path)
    with pytest.raises(CorruptLakeError, match="not the manifest that was published"):
        publications(tmp_path)
    shutil.rmtree(published.folder)
    with pytest.raises(CorruptLakeError, match="deleted or changed"):
        current(tmp_path)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"{"], ids=["empty", "list", "no keys", "cut"])
def test_a_broken_pointer_is_named(tmp_path, small_cells, put, content):
    published = put(tmp_path, small_cells)
    (published.folder.parent / POINTER).write_bytes(content)
    with pytest.raises(CorruptLakeError, match="not a pointer that Salon wrote"):
        current(tmp_path)


def test_a_place_that_cannot_be_written_is_a_store_error(tmp_path, small_cells, put):
    (tmp_path / "publish").write_bytes(b"a file where the folder should be")
    with pytest.raises(StoreError, match="free space or repair the disk"):
        put(tmp_path, small_cells)


def test_a_folder_without_manifest_is_not_taken_for_a_publication(tmp_path):
    assert not is_published(publication_folder(tmp_path, "nightly", "f" * 64))
    publication_folder(tmp_path, "nightly", "f" * 64).mkdir(parents=True)
    with pytest.raises(CorruptLakeError, match="not a complete publication; move it away"):
        is_published(publication_folder(tmp_path, "nightly", "f" * 64))


def test_further_tables_stand_beside_the_long_one_and_the_pointer_names_them(tmp_path, small_cells, put):
    rows = [{
        "publication_id": "e" * 64, "run_date": date(2026, 11, 3), "benchmark": "nightly", "dataset_id": "d" * 64,
        "rubric_id": "small",
        "rubric_version": "1", "judge_model": "eye", "model": m, "checkpoint": "1", "measure": "n_judgements", "word": "",
        "value": 9.0, "n_known": 9,
    } for m in ("=south", "north")]  # fmt: skip
    frame = pl.DataFrame(rows, schema=HEALTH.empty().schema)
    published = put(tmp_path / "one", small_cells, further={HEALTH: frame})
    put(tmp_path / "two", small_cells, further={HEALTH: frame[::-1]})
    assert all_bytes(tmp_path / "one") == all_bytes(tmp_path / "two")
    written = pq.read_table(published.folder / "health.parquet")
    assert written.schema.equals(HEALTH.schema, check_metadata=True)
    assert (published.folder / "health.csv").read_text().count("'=south") == 1
    pointer = json.loads((published.folder.parent / POINTER).read_bytes())
    assert pointer["tables"]["health"] == f"{published.publication_id}/health.parquet"
    assert set(pointer["tables"]) == {"benchmark_long", "checks", "quarantine", "health"}
    manifest = json.loads((published.folder / "manifest.json").read_bytes())
    assert {"health.parquet", "health.csv"} <= set(manifest["files"])


def test_pages_are_files_of_the_folder_under_its_manifest(tmp_path, small_cells, put):
    published = put(tmp_path, small_cells, pages={"report.html": b"<p>one page</p>"})
    assert checked_file(find_publication(tmp_path, published.publication_id), "report.html").read_bytes() == b"<p>one page</p>"


@pytest.mark.parametrize(
    "name", ["manifest.json", "tables.json", "leaderboard.md", "scores.parquet", "../report.html", "a/b.html", ""]
)
def test_a_page_takes_no_other_files_place(tmp_path, small_cells, put, name):
    with pytest.raises(ValueError, match="plain file names that no other file of a publication has"):
        put(tmp_path, small_cells, pages={name: b"page"})
    assert publications(tmp_path) == []
