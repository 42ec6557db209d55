"""salon.duckdb held against its lake: views, macros and the list of publications too, however DuckDB writes their SQL."""

from datetime import date
from pathlib import Path

import duckdb
import pytest

from tasks.publish.duckdb_file import write_duckdb
from tasks.verify.recomputed_duckdb import compare_duckdb

PUBLICATIONS, SQL = "salon.duckdb: publications", "salon.duckdb: views and macros"


@pytest.fixture
def file(small_lake, put, name_digest) -> Path:
    """The salon.duckdb of the small lake, published twice: a night and the next."""
    said = {
        "provenance": {"identities": {f"{name}_id": name_digest(name) for name in ("dataset", "plan", "snapshot", "reading")}}
    }
    root = small_lake.lake.root
    put(root, small_lake.cells, **said)
    put(root, small_lake.cells, publication_id=name_digest("next"), run_date=date(2026, 11, 4), **said)
    return write_duckdb(root, "nightly")


@pytest.mark.parametrize(
    ("statement", "place", "row"),
    [
        ("CREATE OR REPLACE VIEW leaderboard AS SELECT * REPLACE (10.0 AS estimate) FROM standings", SQL, "VIEW leaderboard"),
        ("CREATE VIEW best AS SELECT 1 AS one", SQL, "VIEW best"),
        ("DROP VIEW trend; CREATE TABLE trend AS SELECT 1 AS one", SQL, "VIEW trend"),
        ("CREATE SCHEMA s; CREATE VIEW s.trend AS SELECT 1 AS one", SQL, "VIEW s.trend"),
        ("CREATE VIEW files AS FROM glob('/*')", SQL, "VIEW files"),
        ("CREATE MACRO avg(x) AS 10.0", SQL, "MACRO avg"),
        (
            "CREATE OR REPLACE MACRO salon_shown(lake, publication_id := 'x') AS TABLE SELECT 1 AS one",
            SQL,
            "MACRO salon_shown",
        ),
        ("UPDATE publications SET is_current = NOT is_current", PUBLICATIONS, "{publication}"),
        ("DELETE FROM publications WHERE is_current", PUBLICATIONS, "{next}"),
        ("INSERT INTO publications VALUES ('mine', '2026-11-05', false, false, true)", PUBLICATIONS, "mine"),
        ("UPDATE publications SET is_withdrawn = true WHERE is_current", PUBLICATIONS, "{next}"),
        ("UPDATE publications SET is_night = false WHERE is_current", PUBLICATIONS, "{next}"),
    ],
    ids=[
        "a view redefined", "a view more", "a table for a view", "a view elsewhere", "a view of files", "a macro more",
        "a macro redefined", "another is current", "a publication gone", "a publication more", "one taken back", "no night",
    ],
)  # fmt: skip
def test_what_lies_beside_the_rows_is_found(file, name_digest, statement, place, row):
    with duckdb.connect(str(file)) as database:
        database.execute(statement)
    published = file.parent / name_digest("publication")
    found = compare_duckdb(published, file.parents[3], published)
    named = row.format(publication=name_digest("publication"), next=name_digest("next"))
    assert {one.place for one in found.differences} == {place}
    assert named in {one.row for one in found.differences}
    assert [("run again" in note) for note in found.notes] == ([True] if place == SQL else [])


def test_a_default_of_a_macro_is_found_and_both_are_shown_from_where_they_differ(file, name_digest):
    with duckdb.connect(str(file)) as database:
        said = database.execute("SELECT macro_definition FROM duckdb_functions() WHERE function_name = 'salon_scores'").fetchone()
        text = f"CREATE OR REPLACE MACRO salon_scores(lake, publication_id := 'mine') AS TABLE ({said[0]})"
        database.execute(text)
    published = file.parent / name_digest("publication")
    (one,) = compare_duckdb(published, file.parents[3], published).differences
    assert (one.place, one.row) == (SQL, "MACRO salon_scores")
    assert "'mine'" in one.published
    assert "'*'" in one.derived


@pytest.mark.parametrize("n_times", [0, 1, 2], ids=["as written", "written by another once", "twice"])
def test_a_file_whose_content_is_right_is_right(file, name_digest, n_times):
    """A program that opens it to write has DuckDB write its catalogue anew, in which sets have another order."""
    for number in range(n_times):
        with duckdb.connect(str(file)) as database:
            database.execute(f"CREATE TABLE own_{number} AS SELECT 1 AS one; CHECKPOINT")
    published = file.parent / name_digest("publication")
    found = compare_duckdb(published, file.parents[3], published)
    assert (found.differences, found.notes) == ([], [])
    assert found.done.startswith("3 tables of salon.duckdb")
