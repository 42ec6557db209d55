"""The recipes of docs/dashboards.md, run as they stand, in a folder that holds a small published lake."""

import os
import re
from pathlib import Path

import duckdb
import polars as pl
import pytest

from schemas.tables.published import COMPARISONS
from tasks.publish.duckdb_file import write_duckdb

DOCUMENT = Path(__file__).parents[2] / "docs/dashboards.md"
RECIPES = re.findall(r"^```python\n(.*?)^```$", DOCUMENT.read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture
def beside_a_lake(small_lake, put, name_digest):
    """The working directory is the one that holds `lake/`, with the benchmark `demo` published."""
    names = ("dataset_id", "plan_id", "snapshot_id", "reading_id")
    identities = {name: name_digest(name.removesuffix("_id")) for name in names}
    put(small_lake.lake.root, small_lake.cells, benchmark="demo", provenance={"identities": identities})
    write_duckdb(small_lake.lake.root, "demo")
    before = Path.cwd()
    os.chdir(small_lake.lake.root.parent)
    yield
    os.chdir(before)


def test_every_recipe_runs_and_shows_something(beside_a_lake, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    for number, recipe in enumerate(RECIPES, start=1):
        exec(compile(recipe, f"{DOCUMENT}, recipe {number}", "exec"), {})
        said = capsys.readouterr().out.strip()
        assert said, recipe
        assert said != "[]", recipe
        assert "shape: (0," not in said, recipe


def test_there_are_recipes():
    assert len(RECIPES) >= 6
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
