"""The recipes of docs/dashboards.md, run as they stand, in a folder that holds a small published lake."""

import os
import re
from collections.abc import Sized
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import polars as pl
import pytest

from schemas.tables.published import COMPARISONS
from schemas.tables.stored import RUNS
from tasks.lake.reading import Lake
from tasks.publish.duckdb_file import write_duckdb
from tasks.publish.machine_tables import record_run
from tasks.publish.withdrawn import Withdrawal, note_withdrawn
from tests.publish.dashboards.mixed_lake import ALONE, publish_mixed
from tests.support.small_lake import digest, filled_row

DOCUMENT = Path(__file__).parents[2] / "docs/dashboards.md"
RECIPES = re.findall(r"^```python\n(.*?)^```$", DOCUMENT.read_text("utf-8"), re.MULTILINE | re.DOTALL)


(COPY,) = re.findall(r"^```sql\n(.*?)^```$", DOCUMENT.read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture
def beside_a_lake(small_lake, tmp_path, monkeypatch):
    """The working directory is the one that holds `lake/`, with the benchmark `demo` published."""
    (tmp_path / "mixed").mkdir()
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    publish_mixed(tmp_path / "mixed/lake", small_lake)
    moment = datetime(2026, 11, 3, 1, tzinfo=UTC)
    of = {"started_at": moment, "finished_at": moment, "benchmark": "demo", "publication_id": digest("publication")}
    record_run(Lake(tmp_path / "mixed/lake"), filled_row(RUNS, **of))
    write_duckdb(tmp_path / "mixed/lake", "demo")
    before = Path.cwd()
    os.chdir(tmp_path / "mixed")
    yield tmp_path / "mixed/lake"
    os.chdir(before)


def run_recipe(number, shown):
    """Run it; what it prints is kept as rows, as long as the file is open."""

    def keep(*values):
        shown.extend(pl.DataFrame(one.to_arrow_table()) if isinstance(one, duckdb.DuckDBPyRelation) else one for one in values)

    names = {"print": keep}
    exec(compile(RECIPES[number], f"{DOCUMENT}, recipe {number + 1}", "exec"), names)
    return names


@pytest.mark.parametrize("number", range(len(RECIPES)))
def test_a_recipe_runs_and_shows_something(beside_a_lake, number):
    shown = []
    run_recipe(number, shown)
    assert shown
    assert [one for one in shown if isinstance(one, Sized) and not len(one)] == []


def means_of(names, shown):
    """The rows behind a recipe's means by their columns' names: the question again, else what it showed."""
    if "question" not in names:
        return shown[0]
    with duckdb.connect("lake/publish/v1/demo/salon.duckdb", read_only=True) as database:
        return pl.DataFrame(database.sql(names["question"], params=[names["lake"], names["current"]]).to_arrow_table())


@pytest.mark.parametrize("number", [n for n, text in enumerate(RECIPES) if "avg(" in text])
def test_no_mean_is_over_several_rubrics_judges_pairs_or_anchors(beside_a_lake, number):
    shown = []
    rows = means_of(run_recipe(number, shown), shown).drop_nulls("mean")
    found = {(row["mean"], row["rubric_id"], row["judge_model"]) for row in rows.iter_rows(named=True)}
    assert found == {(score, *of) for score, of in ALONE.items()}
    assert set(rows["model"]) == {"lab/north"}


def test_the_example_in_views_sql_mixes_nothing_either(beside_a_lake):
    (script,) = beside_a_lake.glob("publish/v1/demo/*/views.sql")
    commented = [line.removeprefix("--") for line in script.read_text().splitlines() if line.startswith("--     ")]
    example = "\n".join(line for line in commented if ".read" not in line).replace("/data/lake", str(beside_a_lake))
    with duckdb.connect() as database:
        database.execute(script.read_text())
        found = database.execute(example).fetchall()
    assert {(row[-1], *row[:2]) for row in found} == {(score, *of) for score, of in ALONE.items()}


@pytest.mark.parametrize("number", [n for n, text in enumerate(RECIPES) if "nightly_publications" in text])
def test_a_recipe_over_nights_leaves_out_what_was_taken_back(beside_a_lake, number):
    shown = []
    run_recipe(number, shown)
    assert len(shown[0]) > 0
    gone = Withdrawal(digest("publication"), "demo", "2026-11-03", "2026-11-05T00:00:00", "here", "wrong", 1)
    note_withdrawn(beside_a_lake, gone)
    write_duckdb(beside_a_lake, "demo")
    shown.clear()
    run_recipe(number, shown)
    assert len(shown[0]) == 0


def test_the_copy_for_postgresql_is_the_same_on_each_night(beside_a_lake, tmp_path):
    """Into a file of DuckDB in place of a server, whose extension is not on this machine."""
    of_a_server = re.findall(r"'host=.*?' AS copies \(TYPE postgres\)|SET pg_null_byte_replacement = '�'", COPY)
    copy = COPY.replace(of_a_server[0], f"'{tmp_path}/copies.duckdb' AS copies").replace(of_a_server[1], "")
    for n_rows in (3, 3, 0):
        if not n_rows:
            (beside_a_lake / "publish/v1/demo/latest.json").unlink()
            write_duckdb(beside_a_lake, "demo")
        with duckdb.connect() as database:
            database.execute(copy)
            for table in ("leaderboard", "trend"):
                found = database.sql(f"FROM copies.{table} ORDER BY ALL").fetchall()
                assert found == database.sql(f"FROM night.{table} ORDER BY ALL").fetchall()
                assert table == "trend" or len(found) == n_rows


@pytest.mark.parametrize("number", [n for n, text in enumerate(RECIPES) if "latest.json" not in text])
def test_a_recipe_runs_where_no_publication_is_current(beside_a_lake, number):
    (beside_a_lake / "publish/v1/demo/latest.json").unlink()
    write_duckdb(beside_a_lake, "demo")
    run_recipe(number, [])


def test_there_are_recipes():
    assert len(RECIPES) >= 6
    assert sum("avg(" in text for text in RECIPES) >= 2
    assert {word for text in RECIPES for word in re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE)} >= {
        "duckdb", "polars", "pandas", "datasets",
    }  # fmt: skip


def test_how_many_prompts_it_takes_is_said_of_each_pair_once():
    """Two checkpoints stand in `comparisons` as neighbours and as any two."""
    (query,) = re.findall(
        r"`(SELECT rubric_id, dimension, checkpoint_a.*?)`", (DOCUMENT.parent / "statistics.md").read_text("utf-8")
    )
    pair = {"checkpoint_a": "2", "checkpoint_b": "1", "mde80": 0.25, "n_prompts_paired": 40, "is_primary": True}
    turned = {"checkpoint_a": "1", "checkpoint_b": "2"}
    rows = [pair | {"comparison": "predecessor"}, pair | turned | {"comparison": "each_other"}]
    empty = COMPARISONS.empty()
    filled = [{name: (row | {"publication_id": "p"}).get(name) for name in empty.columns} for row in rows]
    with duckdb.connect() as lake:
        lake.register("comparisons", pl.DataFrame(filled, schema=empty.schema).to_arrow())
        lake.register("current_publication", pl.DataFrame({"publication_id": ["p"]}).to_arrow())
        found = lake.execute(query).fetchall()
    assert [row[2:] for row in found] == [("1", "2", 10.0)]
