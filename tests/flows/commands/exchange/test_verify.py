"""`salon verify`: an untouched publication is verified; whatever is changed, in the lake or in the folder, is found and named."""

import io
import json
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from flows.cli import run
from flows.commands.exchange.verifying import verify as command
from flows.observability.progress import Reporter
from flows.verification.published import SETTINGS, open_published
from flows.verification.verifying import Verdict, adopt, verify
from schemas.benchmark.file import load_benchmark
from schemas.errors import InputError
from schemas.tables.stored import PICTURES, REPLIES, REQUESTS, SAMPLES, SCORES
from schemas.tables.table import Table
from tasks.lake.atomic_files import sha256_of_file
from tasks.lake.reading import PARTITION_KEYS, Lake
from tasks.publish.identity import _WHERE_AND_HOW_FAST
from tasks.publish.report.sheets import kept_tiles
from tasks.verify.publication import check_manifest, check_pointer, find_folder, read_provenance
from tasks.verify.rows import Difference
from tests.support.painting import COUNTING, paint, scenes

pytestmark = pytest.mark.slow

BENCHMARK = scenes("audited", "[statistics]\nat_least = {{ score = 4 }}\n", where=COUNTING)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, judge_url: str) -> Path:
    """A folder with a benchmark that was published."""
    folder = tmp_path_factory.mktemp("audited")
    paint(folder)
    (folder / "b.toml").write_text(BENCHMARK.format(url=judge_url))
    assert run(["run", str(folder / "b.toml"), "--run-date", "2026-01-02"]) == 0
    return folder


@pytest.fixture
def copied(home: Path, tmp_path: Path) -> Path:
    """A copy to change: its lake and its file; no ledger."""
    shutil.copytree(home / "lake", tmp_path / "lake", ignore=shutil.ignore_patterns("ledger*", "data_docs", "staging"))
    shutil.copyfile(home / "b.toml", tmp_path / "b.toml")
    return tmp_path


def _folder(home: Path) -> Path:
    return next(path for path in (home / "lake" / "publish" / "v1" / "audited").iterdir() if path.is_dir())


def _verdict(home: Path) -> Verdict:
    return verify(_folder(home), Lake(home / "lake"), Reporter(), home / "b.toml")


def _tree(folder: Path) -> dict[str, tuple[int, str]]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): (path.stat().st_mtime_ns, sha256_of_file(path)) for path in files}


def test_an_untouched_publication_is_verified_and_nothing_in_its_lake_is_written(copied: Path) -> None:
    before = _tree(copied / "lake")
    verdict = _verdict(copied)
    assert verdict.differences == []
    assert verdict.notes == []
    assert verdict.is_verified
    assert [name for name, _ in verdict.steps] == ["manifest", "lake", "samples", "plan", "replies", "scores", "tables", "duckdb"]
    assert verdict.steps[-1][1].startswith("9 tables of salon.duckdb")
    assert _tree(copied / "lake") == before


@pytest.mark.parametrize(
    ("statement", "place", "row"),
    [
        ("UPDATE standings SET estimate = estimate + 0.01 WHERE estimate IS NOT NULL", "standings", "alignment"),
        ("DELETE FROM distributions", "distributions", ""),
        ("INSERT INTO checks SELECT * REPLACE ('mine' AS \"check\") FROM checks LIMIT 1", "checks", "mine"),
        ("ALTER TABLE benchmark_long DROP COLUMN publication_id", "", ""),
    ],
    ids=["a figure", "rows gone", "a row more", "no publication named"],
)
def test_a_changed_duckdb_file_is_found(copied: Path, statement: str, place: str, row: str) -> None:
    with duckdb.connect(str(copied / "lake" / "publish" / "v1" / "audited" / "salon.duckdb")) as database:
        for name, kind in database.execute("SELECT view_name, 'v' FROM duckdb_views() WHERE NOT internal").fetchall():
            assert kind == "v"
            database.execute(f'DROP VIEW IF EXISTS "{name}"')
        database.execute(statement)
    found = [one for one in _verdict(copied).differences if one.place != "salon.duckdb: views and macros"]
    assert found
    assert all(one.place.startswith("salon.duckdb") and place in one.place for one in found)
    assert any(row in one.row for one in found)


def test_pages_that_show_what_the_lake_keeps_of_a_picture_and_not_the_picture_are_found(home: Path, tmp_path: Path) -> None:
    """White tiles, kept as if they were made of the pictures: the run believes them, verifying looks at the pictures."""
    copied = shutil.copytree(home, tmp_path / "copied")
    first = _folder(copied)
    said = read_provenance(first) or {}
    context = open_published(first, said, copied / "lake", copied / "b.toml", [], kept_in=copied / "lake").run
    digests = Lake(copied / "lake").scan(SAMPLES, context.ids.dataset_id).collect()["image_sha256"].unique()
    white = io.BytesIO()
    Image.new("RGB", (64, 64), "white").save(white, "JPEG")
    shutil.rmtree(copied / "lake" / "tiles")
    kept_tiles(context).keep((digest, white.getvalue()) for digest in digests)
    assert run(["run", str(copied / "b.toml"), "--run-date", "2026-01-03"]) == 0
    (second,) = (path.parent for path in first.parent.glob("*/report.html") if path.parent != first)
    assert (second / "pictures-001.jpg").read_bytes() != (first / "pictures-001.jpg").read_bytes()
    found = verify(second, Lake(copied / "lake"), Reporter(), copied / "b.toml").differences
    assert {one.place for one in found} >= {"pictures-001.jpg", "pictures-001.html", "compare.html"}


def _parts(home: Path, table: Table) -> list[Path]:
    return sorted((home / "lake" / table.name).glob(f"{PARTITION_KEYS[table.name]}=*/part-*.parquet"))


def _change(path: Path, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    """Change the rows of a Parquet file and keep its schema, as somebody would who knows what he is doing."""
    schema = pq.read_schema(path)
    frame = change(pl.read_parquet(path, hive_partitioning=False))
    pq.write_table(frame.to_arrow().cast(schema), path, compression="zstd")


def _at(column: str, row: int, value: object) -> Callable[[pl.DataFrame], pl.DataFrame]:
    def change(frame: pl.DataFrame) -> pl.DataFrame:
        values = frame[column].to_list()
        values[row] = value
        return frame.with_columns(pl.Series(column, values, dtype=frame.schema[column]))

    return change


def _forge_marker(home: Path, table: Table) -> None:
    """Make the completion marker agree with the changed files."""
    marker = next((home / "lake" / "complete" / table.name).iterdir())
    entries = json.loads(marker.read_text())["parts"]
    for entry in entries:
        path = next((home / "lake" / table.name).rglob(entry["name"]))
        entry |= {"n_rows": pq.read_metadata(path).num_rows, "n_bytes": path.stat().st_size, "sha256": sha256_of_file(path)}
    marker.write_text(json.dumps({"parts": entries}))


def _forge_manifest(home: Path) -> None:
    """Make manifest and pointer agree with the changed files."""
    folder = _folder(home)
    manifest = json.loads((folder / "manifest.json").read_text())
    for name, entry in manifest["files"].items():
        entry |= {"n_bytes": (folder / name).stat().st_size, "sha256": sha256_of_file(folder / name)}
    (folder / "manifest.json").write_text(json.dumps(manifest, ensure_ascii=False, sort_keys=True, indent=2) + "\n")
    for pointer in folder.parent.glob("latest*.json"):
        pointer.write_text(
            json.dumps(json.loads(pointer.read_text()) | {"manifest_sha256": sha256_of_file(folder / "manifest.json")})
        )


def _one_digit(home: Path) -> None:
    path = _folder(home) / "benchmark_long.parquet"
    estimate = pl.read_parquet(path)["estimate"][0]
    _change(path, _at("estimate", 0, estimate + 0.01))


def _one_digit_and_every_checksum(home: Path) -> None:
    _one_digit(home)
    _forge_manifest(home)


def _reply_text(home: Path) -> None:
    path = _parts(home, REPLIES)[0]
    text = pl.read_parquet(path)["reply_text"][0]
    score = text[text.rindex("Score: ") + 7]
    _change(path, _at("reply_text", 0, text.replace(f"Score: {score}", f"Score: {'1' if score != '1' else '5'}")))


def _reply_removed(home: Path) -> None:
    _change(_parts(home, REPLIES)[0], lambda frame: frame.slice(1))
    _forge_marker(home, REPLIES)


def _reply_reworded(home: Path) -> None:
    """The score stays: no number changes, and what stands behind it does."""
    _change(_parts(home, REPLIES)[0], lambda frame: _at("reply_text", 0, "Better. " + frame["reply_text"][0])(frame))
    _forge_marker(home, REPLIES)


def _picture(home: Path) -> None:
    """Other pixels under the digest of the old ones."""
    buffer = io.BytesIO()
    Image.new("RGB", (64, 64), "red").save(buffer, "PNG")
    path = _parts(home, PICTURES)[0]
    table = pq.read_table(path, partitioning=None)
    images = table["image"].to_pylist()
    images[0]["bytes"] = buffer.getvalue()
    field = table.schema.field("image")
    table = table.set_column(table.schema.get_field_index("image"), field, pa.array(images, type=field.type))
    pq.write_table(table, path)
    _forge_marker(home, PICTURES)


def _prompt(home: Path) -> None:
    _change(_parts(home, SAMPLES)[0], lambda frame: _at("prompt", 0, frame["prompt"][0] + "!")(frame))
    _forge_marker(home, SAMPLES)


def _sample_of_another_model(home: Path) -> None:
    _change(_parts(home, SAMPLES)[0], _at("checkpoint", 1, "step-9999"))
    _forge_marker(home, SAMPLES)


def _samples_words(home: Path) -> None:
    """An id that is no digest, a status there is not, a flag that its texts do not give."""
    path = _parts(home, SAMPLES)[-1]
    _change(path, lambda frame: _at("sample_id", 0, frame["sample_id"][0][:-1] + "x")(frame))
    _change(path, _at("status", 1, "fine"))
    _change(path, _at("text_flags", 2, "prompt:addresses_judge"))
    _forge_marker(home, SAMPLES)


def _request(home: Path) -> None:
    _change(_parts(home, REQUESTS)[0], lambda f: _at("messages_json", 0, f["messages_json"][0].replace("1", "2", 1))(f))
    _forge_marker(home, REQUESTS)


def _score(home: Path) -> None:
    path = _parts(home, SCORES)[0]
    score = pl.read_parquet(path)["score"][1]
    _change(path, _at("score", 1, 1.0 if score != 1.0 else 5.0))
    _forge_marker(home, SCORES)


def _edit(name: str, before: str, after: str) -> Callable[[Path], None]:
    def change(home: Path) -> None:
        path = _folder(home) / name if name != "latest.json" else _folder(home).parent / name
        text = path.read_text()
        assert before in text
        path.write_text(text.replace(before, after, 1))

    return change


def _by_another_library(path: Path) -> None:
    """The same values, written by another version of the library."""
    writer = pq.read_metadata(path).created_by.encode()
    content = path.read_bytes()
    assert content.count(writer) == 1
    path.unlink()  # it may be a link to another publication's
    path.write_bytes(content.replace(writer, writer[:-1] + (b"1" if writer[-1:] != b"1" else b"2")))


def _forge_listing(home: Path) -> None:
    """Make listing, manifest and pointers agree with the changed files."""
    folder = _folder(home)
    listing = json.loads((folder / "tables.json").read_text())
    for entry in listing["files"]:
        path = folder.parents[1] / entry["path"]
        entry |= {"n_bytes": path.stat().st_size, "sha256": sha256_of_file(path)}
    (folder / "tables.json").write_text(json.dumps(listing, ensure_ascii=False, sort_keys=True, indent=2) + "\n")
    _forge_manifest(home)


def test_a_publication_that_another_version_of_the_library_wrote_is_verified(copied: Path) -> None:
    """All its tables, here and among those for machines, with the digests of them in listing, manifest and pointers."""
    folder = _folder(copied)
    for path in [*folder.glob("*.parquet"), *folder.parent.parent.glob(f"tables/*/*/publication={folder.name}/*.parquet")]:
        _by_another_library(path)
    _forge_listing(copied)
    verdict = _verdict(copied)
    assert verdict.differences == []
    assert "tables/" in {note.partition(", ")[0] for note in verdict.notes}
    assert "benchmark_long.parquet" in {note.partition(": ")[0] for note in verdict.notes}


def test_where_one_table_was_written_by_another_library_no_other_may_be_forged(copied: Path) -> None:
    """A number of a large table for machines, a table there by the same library, and a size: all checksums forged."""
    home = _folder(copied).parents[1] / "tables"
    _by_another_library(_folder(copied) / "quarantine.parquet")
    _change(next((home / "scores").rglob("*.parquet")), lambda frame: frame.with_columns(pl.col("score") + 1))
    cells = next((home / "standings").rglob("*.parquet"))
    pq.write_table(pq.read_table(cells, partitioning=None), cells, compression="none")
    _forge_listing(copied)
    found = _found(_verdict(copied).differences)
    place = cells.relative_to(home.parent).as_posix()
    assert {("scores", "score"), (place, "bytes"), ("tables.json", "files")} <= found


def _manifest_with_a_file_twice(home: Path) -> None:
    """Other values before those that Python keeps; the pointer's digest is of these bytes."""
    path = _folder(home) / "manifest.json"
    path.write_text(path.read_text().replace('"files": {', '"files": {"report.html": {"sha256": "0"},', 1))
    pointer = path.parent.parent / "latest.json"
    pointer.write_text(json.dumps(json.loads(pointer.read_text()) | {"manifest_sha256": sha256_of_file(path)}))


def test_a_manifest_that_says_two_things_is_found_where_another_library_wrote_a_table(copied: Path) -> None:
    _by_another_library(_folder(copied) / "quarantine.parquet")
    _forge_manifest(copied)
    _manifest_with_a_file_twice(copied)
    assert ("manifest.json", "bytes") in _found(_verdict(copied).differences)


def _csv(home: Path) -> None:
    path = _folder(home) / "benchmark_long.csv"
    estimate = str(pl.read_csv(path)["estimate"][2])
    lines = path.read_text().splitlines(keepends=True)
    lines[3] = lines[3].replace(estimate, str(float(estimate) + 1))
    path.write_text("".join(lines))
    _forge_manifest(home)


def _garbage_pointer(home: Path) -> None:
    (_folder(home).parent / "latest.json").write_bytes(b"\xff{")


def _garbage_table(home: Path) -> None:
    (_folder(home) / "health.parquet").write_bytes(b"PAR1 not at all")


def _more_files(home: Path) -> None:
    (_folder(home) / "extra.csv").write_text("a\n1\n")


def _fewer_files(home: Path) -> None:
    (_folder(home) / "health.csv").unlink()


def _fewer_parts(home: Path) -> None:
    _parts(home, REPLIES)[0].unlink()


def _no_marker(home: Path) -> None:
    next((home / "lake" / "complete" / "replies").iterdir()).unlink()


def _tree_of_tables(home: Path) -> None:
    path = next((home / "lake" / "publish" / "v1" / "tables" / "benchmark_long").rglob("*.parquet"))
    _change(path, _at("estimate", 1, 4.5))


def _rows_beside(home: Path) -> None:
    """Rows that no publication has, where whoever reads the tables by a pattern finds them."""
    path = next((home / "lake" / "publish" / "v1" / "tables" / "scores").rglob("*.parquet"))
    shutil.copyfile(path, path.with_name("part-00009.parquet"))


Named = set[tuple[str, str]]

IDENTITIES = ("dataset_id", "plan_id", "snapshot_id", "reading_id", "code_version")

# Changes made together, each with places and columns that no other of the row changes; "" stands for any column.
TAMPERED: dict[str, list[tuple[Callable[[Path], None], Named]]] = {
    "files of the folder, every checksum forged": [
        (_one_digit, {("benchmark_long", "estimate")}),
        (_garbage_table, {("health.parquet", "")}),
        (_edit("leaderboard.md", "| 1", "| 2"), {("leaderboard.md", "")}),
        (_edit("provenance.json", '"repeats": 1', '"repeats": 2'), {("provenance.json", "judges")}),
        (_csv, {("benchmark_long.csv", "estimate")}),  # and forges
        (_more_files, {("extra.csv", "")}),
        (_fewer_files, {("health.csv", "")}),
    ],
    "a reply's text": [
        (_reply_text, {("replies", ""), ("provenance.json", "snapshot_id"), ("scores", "score"), ("benchmark_long", "estimate")}),
    ],
    "a reply removed, its marker forged": [
        (_reply_removed, {("provenance.json", "snapshot_id"), ("scores", "status"), ("benchmark_long", "n_failed")}),
    ],
    "a reply's words, a score, a request, a picture, every marker forged": [
        (_reply_reworded, {("provenance.json", "snapshot_id")}),
        (_score, {("scores", "score")}),
        (_request, {("requests", "messages_json")}),
        (_picture, {("pictures", "image")}),
    ],
    "a sample's prompt, others' checkpoint, id, status and flags, their marker forged": [
        (_samples_words, {("provenance.json", "dataset_id"), ("samples", "status"), ("samples", "text_flags")}),
        (_prompt, {("samples", "sample_id"), ("provenance.json", "plan_id"), ("requests", "")}),
        (_sample_of_another_model, {("judgements", "checkpoint")}),
    ],
    "tables for machines": [(_tree_of_tables, {("benchmark_long", "estimate")}), (_rows_beside, {("tables.json", "")})],
}


@pytest.mark.parametrize("changes", TAMPERED.values(), ids=TAMPERED.keys())
def test_what_is_changed_is_found_and_named(copied: Path, changes: list[tuple[Callable[[Path], None], Named]]) -> None:
    for change, _ in changes:
        change(copied)
    found = _found(_verdict(copied).differences)
    for _, named in changes:
        assert named <= found


def _found(differences: Iterable[Difference]) -> Named:
    listed = list(differences)
    return {(one.place, one.column) for one in listed} | {(one.place, "") for one in listed}


# What checksums alone find, without anything being made again.
RESEALED: dict[str, tuple[Callable[[Path], None], Named]] = {
    "one digit of a table": (_one_digit, {("manifest.json", "benchmark_long.parquet")}),
    "a page": (_edit("leaderboard.md", "| 1", "| 2"), {("manifest.json", "leaderboard.md")}),
    "a file more": (_more_files, {("manifest.json", "extra.csv")}),
    "a file less": (_fewer_files, {("manifest.json", "health.csv")}),
    "the manifest": (_edit("manifest.json", '"n_bytes": ', '"n_bytes": 1'), {("latest.json", "manifest_sha256")}),
    "a size": (_edit("manifest.json", '"n_bytes": ', '"n_bytes": 1'), {("manifest.json", "benchmark_long.csv")}),
    "the pointer's checksum": (_edit("latest.json", '"manifest_sha256": "', '"manifest_sha256": "0'), {("latest.json", "")}),
    "the pointer's name": (_edit("latest.json", '"publication_id": "', '"publication_id": "../'), {("latest.json", "")}),
    "the pointer's name, longer than a file's can be": (
        _edit("latest.json", '"publication_id": "', '"publication_id": "' + "a" * 400),
        {("latest.json", "publication_id")},
    ),
    "the pointer, not JSON": (_garbage_pointer, {("latest.json", "")}),
}


@pytest.mark.parametrize(("change", "named"), RESEALED.values(), ids=RESEALED.keys())
def test_a_folder_that_is_not_as_its_manifest_and_pointer_say(copied: Path, change: Callable[[Path], None], named: Named) -> None:
    assert _found([*check_manifest(_folder(copied)), *check_pointer(_folder(copied))]) == set()
    change(copied)
    assert named <= _found([*check_manifest(_folder(copied)), *check_pointer(_folder(copied))])


@pytest.mark.parametrize("change", [_fewer_parts, _no_marker, _reply_text])
def test_a_partition_that_is_not_as_its_marker_says(copied: Path, change: Callable[[Path], None]) -> None:
    key = json.loads((_folder(copied) / "provenance.json").read_text())["identities"]["snapshot_id"]
    change(copied)
    found, _ = adopt(Lake(copied / "lake"), Lake(copied / "own"), REPLIES, key)
    assert [one.place for one in found] == ["replies"]


def test_without_replies_nothing_is_derived_and_that_is_a_difference(copied: Path) -> None:
    _fewer_parts(copied)
    found = _verdict(copied).differences
    assert any(one.place == "scores" and "cannot be rebuilt" in one.derived for one in found)


def test_an_identity_that_is_not_what_the_folder_is_named_by(copied: Path) -> None:
    _edit("provenance.json", '"reading_id": "', '"reading_id": "0')(copied)
    said = json.loads((_folder(copied) / "provenance.json").read_text())
    opened = open_published(_folder(copied), said, copied / "own", copied / "b.toml", [], kept_in=copied / "lake")
    assert ("provenance.json", "publication_id") in _found(opened.differences)


BROKEN_PROVENANCE: dict[str, dict[str, object]] = {
    "rubrics that are no table": {"rubrics": []},
    "a date that is none": {"run_date": "yesterday"},
    "settings of no benchmark file": {"settings": {"sources": ["x"]}},
    "an identity that leads out of the lake": {"identities": dict.fromkeys(IDENTITIES, "../../outside")},
}


@pytest.mark.parametrize("said", BROKEN_PROVENANCE.values(), ids=BROKEN_PROVENANCE.keys())
def test_provenance_that_says_what_it_cannot_is_a_difference(copied: Path, said: dict[str, object]) -> None:
    path = _folder(copied) / "provenance.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | said))
    file = None if SETTINGS in said else copied / "b.toml"
    verdict = verify(_folder(copied), Lake(copied / "lake"), Reporter(), file)
    assert {one.place for one in verdict.differences} >= {"manifest.json", "provenance.json"}
    assert not [*copied.glob("*outside*")]


def test_the_settings_in_the_provenance_stand_for_the_file(copied: Path) -> None:
    """`sources.path`, judges' addresses and the like are not in them: they cannot change a number."""
    said = json.loads((_folder(copied) / "provenance.json").read_text())
    benchmark = load_benchmark(copied / "b.toml")
    said[SETTINGS] = benchmark.model_dump(mode="json", exclude=_WHERE_AND_HOW_FAST)
    assert open_published(_folder(copied), said, copied / "own", None, [], kept_in=copied / "lake").differences == ()
    said[SETTINGS]["gate"]["min_coverage"] = 0.5
    assert ("provenance.json", "publication_id") in _found(
        open_published(_folder(copied), said, copied / "own", None, [], kept_in=copied / "lake").differences
    )


def test_the_command_says_both_values_and_exits_with_1(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, lake = _folder(copied), copied / "lake"
    before = pl.read_parquet(folder / "benchmark_long.parquet").row(0, named=True)
    _one_digit_and_every_checksum(copied)
    (folder / os.fsdecode(b"\xff\x1b.csv")).touch()  # a name that is no text
    after = pl.read_parquet(folder / "benchmark_long.parquet")["estimate"][0]
    assert command(folder.name[:8], lake=str(lake), file=copied / "b.toml") == 1
    said = capsys.readouterr().out
    assert "benchmark_long: 1 difference" in said
    assert "\ufffd␛.csv: 1 difference" in said
    assert f"{before['cell_id']} estimate: published {after}, derived {before['estimate']}" in said


def test_the_command_takes_an_id_or_a_folder_and_the_file_it_was_published_from(copied: Path) -> None:
    folder, lake = _folder(copied), copied / "lake"
    assert find_folder(lake, folder.name[:4]) == find_folder(lake, str(folder)) == folder
    with pytest.raises(InputError, match=folder.name[:12]):
        command("0000", lake=str(lake), file=copied / "b.toml")
    (copied / "b.toml").write_text((copied / "b.toml").read_text().replace("score = 4", "score = 3"))
    with pytest.raises(InputError, match="is not what"):
        command(folder.name, lake=str(lake), file=copied / "b.toml")


def test_a_folder_beside_the_publications_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "publish" / "v1" / "nightly"
    for name in ("drift", "a" * 64):
        (home / name).mkdir(parents=True)
    monkeypatch.chdir(home)
    assert find_folder(tmp_path, "a" * 64) == home / ("a" * 64), "where its manifest is lost, verifying says so"
    for said in ("drift", str(home / "drift"), "."):
        with pytest.raises(InputError, match="no publication begins with"):
            find_folder(tmp_path, said)
