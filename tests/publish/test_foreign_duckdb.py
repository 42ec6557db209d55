"""A salon.duckdb that somebody else wrote is data: no view, macro or computed column of it is run, and nothing goes on."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from schemas.errors import StoppedError
from tasks.publish.duckdb_file import write_duckdb
from tasks.stopping import STOP, heeding_stop
from tasks.verify.recomputed_duckdb import compare_duckdb

ENDLESS = "(SELECT sum(hash(range)) AS n FROM range(1000000000000))"
VIEW = "CREATE SCHEMA x; CREATE TABLE x.held AS FROM main.{table}; DROP TABLE main.{table}; CREATE VIEW main.{table} AS "


@pytest.fixture
def published(small_lake, put, name_digest) -> Path:
    said = {
        "provenance": {"identities": {f"{name}_id": name_digest(name) for name in ("dataset", "plan", "snapshot", "reading")}}
    }
    root = small_lake.lake.root
    put(root, small_lake.cells, **said)
    file = write_duckdb(root, "nightly")
    with duckdb.connect(str(file)) as database:  # a table that a view reads cannot be taken away
        views = [name for (name,) in database.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()]
        for name in views:
            database.execute(f'DROP VIEW IF EXISTS "{name}"')
    return file.parent / name_digest("publication")


@pytest.mark.parametrize(
    ("statements", "missing"),
    [
        pytest.param(
            VIEW.format(table="benchmark_long") + "SELECT * REPLACE ((SELECT content FROM read_text('{secret}')) AS model) "
            "FROM x.held",
            "benchmark_long", id="a view that reads a file",
        ),
        pytest.param(
            VIEW.format(table="benchmark_long") + f"SELECT held.* FROM x.held AS held, {ENDLESS}", "benchmark_long",
            id="a view that never ends",
        ),
        pytest.param(
            VIEW.format(table="publications") + f"SELECT held.* FROM x.held AS held, {ENDLESS}", "publications",
            id="a view in the place of the list",
        ),
        pytest.param(
            "CREATE MACRO duckdb_tables() AS TABLE SELECT 'benchmark_long' AS table_name, 'main' AS schema_name, "
            f"false AS temporary, '' AS sql FROM {ENDLESS}",
            None, id="a macro in the place of DuckDB's function",
        ),
        pytest.param(
            "CREATE SCHEMA x; CREATE TABLE x.benchmark_long AS FROM main.benchmark_long; DROP TABLE main.benchmark_long; "
            "CREATE TABLE main.benchmark_long (publication_id VARCHAR, model VARCHAR AS (repeat('x', 10000000))); "
            "INSERT INTO main.benchmark_long (publication_id) SELECT DISTINCT publication_id FROM x.benchmark_long",
            "benchmark_long", id="columns that are computed",
        ),
    ],
)  # fmt: skip
def test_a_program_in_the_place_of_a_table_is_not_run(published, tmp_path, statements, missing):
    secret = tmp_path / "private.txt"
    secret.write_text("what is nobody's business")
    with duckdb.connect(str(published.parent / "salon.duckdb")) as database:
        database.execute(statements.replace("{secret}", str(secret)))
    began = time.monotonic()
    found = compare_duckdb(published, published.parents[3], published)
    assert time.monotonic() - began < 30
    assert secret.read_text() not in str(found.differences)
    if missing == "benchmark_long":
        assert "the table" in {one.derived for one in found.differences if one.place.endswith(f": {missing}")}
    elif missing:
        assert any(one.place == f"salon.duckdb: {missing}" for one in found.differences)
    assert not any("cannot be read" in one.published for one in found.differences)


def test_a_table_of_any_length_is_read_as_far_as_it_can_be_right(published):
    with duckdb.connect(str(published.parent / "salon.duckdb")) as database:
        database.execute("INSERT INTO benchmark_long SELECT one.* FROM (FROM benchmark_long LIMIT 1) AS one, range(300_000)")
    found = compare_duckdb(published, published.parents[3], published)
    assert 0 < len(found.differences) < 10_000


@pytest.fixture
def told_to_stop_soon() -> Iterator[None]:
    timer = threading.Timer(0.5, STOP.set)
    timer.start()
    yield
    timer.cancel()
    STOP.clear()


@pytest.mark.usefixtures("told_to_stop_soon")
def test_a_query_ends_when_the_process_is_told_to_stop():
    began = time.monotonic()
    with duckdb.connect() as database, pytest.raises(StoppedError):
        heeding_stop("query", lambda: database.sql(f"FROM {ENDLESS}").to_arrow_table(), database.interrupt)
    assert time.monotonic() - began < 10
