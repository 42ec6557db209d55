"""Agreements where publications are read: salon.duckdb, its part of `salon verify`, `import salon`, `salon table`."""

import shutil
from pathlib import Path

import duckdb
import pytest

import salon
from flows.cli import run
from schemas.tables.agreement import AGREEMENT, RATINGS, VOTES
from schemas.tables.published import PREFERENCES
from schemas.tables.table import Table
from tasks.lake.atomic_files import sha256_of_file
from tasks.publish.duckdb_file import write_duckdb
from tasks.publish.folders import MANIFEST, POINTER, PROVENANCE, PublicationName, as_json, manifest_of
from tasks.verify.recomputed_duckdb import compare_duckdb
from tests.support.small_lake import IDS, RUN_DATE, SmallLake, digest, filled_row, put_cells, table_of

pytestmark = pytest.mark.slow

OLD, NEW = digest("an agreement"), digest("the next agreement")


def put_agreement(root: Path, publication_id: str, n_ratings: int, *, is_old: bool = False) -> None:
    """Lay an agreement where `salon agreement` lays it, and point to it. `is_old`: its column is called as in release 0.1.0."""
    home = root / "publish/v1/nightly/agreement"
    folder = home / publication_id
    folder.mkdir(parents=True)
    rows: dict[Table, list[dict[str, object]]] = {
        AGREEMENT: [filled_row(AGREEMENT, publication_id=publication_id, estimate=0.5)],
        PREFERENCES: [filled_row(PREFERENCES, publication_id=publication_id, judge_model="__people__", win_rate=0.5)],
        RATINGS: [filled_row(RATINGS, rating_key=f"r.csv:{number}") for number in range(n_ratings)],
    }
    for table, mine in rows.items():
        frame = table_of(table, mine)
        frame = frame.rename({"publication_id": "run_id"}, strict=False) if is_old else frame
        frame.write_parquet(folder / f"{table.name}.parquet")
    name = PublicationName("nightly", publication_id, RUN_DATE)
    (folder / "agreement.md").write_text("# Agreement")
    (folder / PROVENANCE).write_bytes(as_json({"identities": IDS} | name.said))
    (folder / MANIFEST).write_bytes(manifest_of(folder, name.said))
    (home / POINTER).write_bytes(as_json(name.said | {"manifest_sha256": sha256_of_file(folder / MANIFEST)}))


@pytest.fixture
def lake_root(small_lake: SmallLake) -> Path:
    """The small lake, published, with two agreements beside it; the second is the current one."""
    root = small_lake.lake.root
    put_cells(root, small_lake.cells)
    put_agreement(root, OLD, 2, is_old=True)
    put_agreement(root, NEW, 3)
    return root


def asked(file: Path | None, question: str) -> list[tuple[object, ...]]:
    assert file is not None
    with duckdb.connect(str(file), read_only=True) as database:
        return database.execute(question).fetchall()


def test_the_file_holds_the_tables_of_every_agreement_under_its_id(lake_root: Path) -> None:
    file = write_duckdb(lake_root, "nightly")
    listed = sorted([(OLD, "2026-11-03", False), (NEW, "2026-11-03", True)])
    assert asked(file, "SELECT publication_id, run_date::VARCHAR, is_current FROM agreements ORDER BY ALL") == listed
    for name, counts in (("agreement", (1, 1)), ("ratings", (2, 3)), ("agreement_preferences", (1, 1)), ("votes", (0, 0))):
        expected = sorted((one, n) for one, n in zip((OLD, NEW), counts, strict=True) if n)
        assert asked(file, f"SELECT publication_id, count(*) FROM {name} GROUP BY ALL ORDER BY ALL") == expected, name
        assert asked(file, f"SELECT count(*) FROM current_{name}") == [(counts[1],)], name


def test_people_are_not_counted_among_the_win_rates_of_publications(lake_root: Path) -> None:
    file = write_duckdb(lake_root, "nightly")
    assert asked(file, "SELECT count(*) FROM preferences") == [(0,)]
    assert asked(file, "SELECT publication_id FROM publications") == [(digest("publication"),)]


def test_an_agreement_alone_makes_the_file(tmp_path: Path) -> None:
    put_agreement(tmp_path, NEW, 3)
    file = write_duckdb(tmp_path, "nightly")
    assert asked(file, "SELECT (SELECT count(*) FROM ratings), (SELECT count(*) FROM leaderboard)") == [(3, 0)]


@pytest.mark.parametrize(
    ("statement", "places"),
    [
        ("SELECT 1", []),
        ("UPDATE agreement SET estimate = 0.9", ["salon.duckdb: agreement"]),
        ("DELETE FROM ratings", ["salon.duckdb: ratings"]),
        ("UPDATE agreements SET is_current = NOT is_current", ["salon.duckdb: agreements"]),
        ("DROP TABLE agreement_preferences", ["salon.duckdb: agreement_preferences"]),
    ],
    ids=["as written", "a figure", "no ratings", "another is current", "a table gone"],
)
def test_its_part_of_the_file_is_verified(lake_root: Path, statement: str, places: list[str]) -> None:
    with duckdb.connect(str(write_duckdb(lake_root, "nightly"))) as database:
        database.execute(statement).fetchall()
    folder = lake_root / "publish/v1/nightly/agreement" / NEW
    found = compare_duckdb(folder, lake_root, folder)
    assert found.done.startswith("3 tables of salon.duckdb")
    assert list(dict.fromkeys(one.place for one in found.differences)) == places


def test_python_opens_an_agreement_by_its_id_and_reads_its_tables_by_name(lake_root: Path) -> None:
    p = salon.open(lake_root, publication=NEW[:8])
    assert (p.benchmark, p.publication_id, p.is_current) == ("nightly", NEW, True)
    assert p.tables == ["agreement", "preferences", "ratings"]
    assert p.table("ratings").height == 3
    assert "agreement with people or a judge; its tables: agreement, preferences, ratings" in p._repr_html_()
    with pytest.raises(salon.SalonError, match="has no table 'votes'; available: agreement, preferences, ratings"):
        p.table(VOTES.name)


def test_python_lists_agreements_beside_publications_not_among_them(lake_root: Path) -> None:
    listed = salon.agreements(lake_root).sort("is_current")
    assert listed.select("benchmark", "publication_id", "is_current").rows() == [("nightly", OLD, False), ("nightly", NEW, True)]
    assert salon.publications(lake_root)["publication_id"].to_list() == [digest("publication")]
    assert salon.open(lake_root).publication_id == digest("publication")
    with pytest.raises(salon.SalonError, match=f"nightly  2026-11-03  {NEW[:12]}  agreement"):
        salon.open(lake_root, publication="0000")


def test_a_changed_agreement_is_not_read(lake_root: Path) -> None:
    shutil.copyfile(*(lake_root / f"publish/v1/nightly/agreement/{one}/ratings.parquet" for one in (OLD, NEW)))
    with pytest.raises(salon.SalonError, match="is not the file that was published"):
        salon.open(lake_root, publication=NEW[:8]).table("ratings")


def test_a_lake_of_agreements_alone_is_a_lake(tmp_path: Path) -> None:
    put_agreement(tmp_path, NEW, 1)
    assert salon.open(tmp_path, publication=NEW[:8]).table("ratings").height == 1
    with pytest.raises(salon.SalonError, match=rf"no publication in .* is current.*\n.*{NEW[:12]}  agreement"):
        salon.open(tmp_path)


@pytest.mark.parametrize("command", ["table", "explain", "open"])
def test_a_command_that_shows_publications_says_where_an_agreement_is_read(
    lake_root: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    address = ["cell"] if command == "explain" else []
    assert run([command, *address, "--lake", str(lake_root), "--publication", NEW[:8]]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"{NEW[:12]} is an agreement of the benchmark 'nightly'" in said
    assert "agreement.md" in said
    assert f"salon verify {NEW[:12]}" in said
