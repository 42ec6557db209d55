"""salon.duckdb over several nights: what a key is there, joins that lose and double nothing, and the current tables alone."""

from collections.abc import Callable
from datetime import date
from pathlib import Path

import duckdb
import pytest

from schemas.tables.catalogue import OF_AGREEMENT, OF_PUBLICATION, SINGLE, TABLES, key_of_all
from schemas.tables.nights import BRIDGES, DRIFT, JURY, NIGHTS
from schemas.tables.published import BENCHMARK_LONG, DISTRIBUTIONS, FAILURES, PREFERENCES
from schemas.tables.stored import CHECKS, REPLIES, REQUESTS, RUNS
from schemas.tables.table import Table
from tasks.publish.duckdb_file import write_duckdb
from tasks.publish.folders import Published
from tests.support.data_dictionary import data_dictionary
from tests.support.small_lake import SmallLake, filled_row, table_of

KEYS = (
    "SELECT table_name, comment FROM duckdb_tables() UNION ALL SELECT view_name, comment FROM duckdb_views() WHERE NOT internal"
)


@pytest.fixture
def file(small_lake: SmallLake, put: Callable[..., Published], name_digest: Callable[[str], str]) -> Path:
    """The salon.duckdb of two nights of the same cells, whose ids are then the same; the second is current."""
    root, cells = small_lake.lake.root, small_lake.cells
    for number, name in enumerate(("publication", "next")):
        failed = [
            filled_row(FAILURES, publication_id=name_digest(name), cell_id=cell, reason="refusal", n_failed=number + 2)
            for cell in cells["cell_id"]
        ]
        own = {"publication_id": name_digest(name), "run_date": date(2026, 11, 3 + number)}
        put(root, cells, further={FAILURES: table_of(FAILURES, failed)}, **own)
    return write_duckdb(root, "nightly")


def test_every_table_is_of_a_publication_an_agreement_single_or_of_all() -> None:
    of_all = {RUNS, DRIFT, NIGHTS, BRIDGES, REQUESTS, REPLIES}
    assert {*OF_PUBLICATION, *OF_AGREEMENT, *SINGLE} | of_all == set(TABLES.values())
    assert {*OF_PUBLICATION, *OF_AGREEMENT, *SINGLE} & of_all == set()


@pytest.mark.parametrize(
    ("table", "key"),
    [
        (BENCHMARK_LONG, ("publication_id", "cell_id")),
        (JURY, ("publication_id", *JURY.key)),
        (CHECKS, CHECKS.key),
        (DRIFT, DRIFT.key),
    ],
    ids=["of a publication", "without the column", "in its key already", "of all nights"],
)
def test_the_publication_is_part_of_the_key_where_several_stand_together(table: Table, key: tuple[str, ...]) -> None:
    assert key_of_all(table) == key


def test_the_page_of_tables_says_of_which_the_publication_is_part_of_the_key() -> None:
    page = data_dictionary()
    assert "\nKey: `cell_id`, `reason`. Across publications, add `publication_id`.\n" in page
    assert "\nKey: `publication_id`, `check`.\n" in page
    assert "`n_failed` has no rows here" in page.partition("## failures")[2].partition("\n## ")[0]


def test_the_key_that_a_table_names_tells_its_rows_apart(file: Path) -> None:
    with duckdb.connect(str(file), read_only=True) as database:
        said = dict(database.execute(KEYS).fetchall())
        assert said["failures"].endswith("Key: publication_id, cell_id, reason.")
        assert "`n_failed` has no rows here" in said["failures"]
        assert said["current_failures"].endswith("Key: cell_id, reason.")
        for name in ("benchmark_long", "failures", "checks", "current_benchmark_long", "current_failures", "current_checks"):
            key = ", ".join(f'"{one}"' for one in said[name].partition("Key: ")[2].removesuffix(".").split(", "))
            twice = f'SELECT count(*) FROM (SELECT {key} FROM "{name}" GROUP BY ALL HAVING count(*) > 1)'
            assert database.execute(twice).fetchone() == (0,), name


def test_current_tables_are_joined_by_the_documented_key(file: Path) -> None:
    joined = "SELECT sum(f.n_failed) FROM {0}failures f JOIN {0}benchmark_long USING ({1})"
    with duckdb.connect(str(file), read_only=True) as database:
        (n_cells,) = database.execute("SELECT count(*) FROM current_benchmark_long").fetchone() or (0,)
        assert database.execute(joined.format("current_", "cell_id")).fetchone() == (3 * n_cells,)
        assert database.execute(joined.format("", "publication_id, cell_id")).fetchone() == (5 * n_cells,)
        assert database.execute("SELECT DISTINCT run_date::VARCHAR FROM current_publication").fetchall() == [("2026-11-04",)]


@pytest.mark.parametrize("table", [PREFERENCES, JURY, DISTRIBUTIONS], ids=lambda table: table.name)
def test_a_table_that_nothing_was_published_for_is_there_and_empty(file: Path, table: Table) -> None:
    with duckdb.connect(str(file), read_only=True) as database:
        for name in (table.name, f"current_{table.name}"):
            assert database.execute(f'SELECT count(publication_id) FROM "{name}"').fetchone() == (0,)
