"""Verdicts found again: only over the same bytes, rubrics and code, and never one that blocked."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from schemas.identities import RunIds
from schemas.tables.stored import SAMPLES, SCORES
from tasks.lake.reading import Lake
from tasks.validate.check_cache import checked, docs_folder
from tests.support.contexts import stage_context
from tests.support.markers import fit_marker

IDS = RunIds("d" * 64, "a" * 64, "b" * 64, "c" * 64, "code", "1" * 64)


@pytest.fixture(scope="module")
def once(lakes, tmp_path_factory):
    """A small lake that was checked, and what was found."""
    folder = tmp_path_factory.mktemp("checked")
    lake = lakes.write(folder / "lake", lakes.together([lakes.world(0)]))
    return lake.root, checked(stage_context(lake, lakes.rubrics, IDS))


@pytest.fixture
def run(lakes, once, tmp_path):
    """run(run_id, …): the checks of a copy of that lake; a Data Docs folder of its own says whether they were run."""
    lake = Lake(shutil.copytree(once[0], tmp_path / "lake"))

    def check(run_id, rubrics=lakes.rubrics, code_version="code", **sections):
        context = stage_context(lake, rubrics, replace(IDS, code_version=code_version, publication_id=run_id * 64), **sections)
        shutil.rmtree(docs_folder(context), ignore_errors=True)
        return checked(context), docs_folder(context).is_dir()

    check.lake = lake
    return check


def changed(path: Path, column: str, value: object) -> None:
    """The file with another first value in a column, as many bytes or not; nothing else is told of it."""
    frame = pl.DataFrame(pq.ParquetFile(path).read())
    values = [value, *frame[column][1:].to_list()]
    frame = frame.with_columns(pl.Series(column, values, dtype=frame.schema[column]))
    pq.write_table(frame.to_arrow().cast(pq.read_schema(path)), path)


def test_the_same_bytes_are_checked_once_and_the_verdict_is_the_later_runs_own(once, run):
    first, (second, was_run) = once[1], run("2")
    assert not was_run
    assert second.checks["publication_id"].unique().to_list() == ["2" * 64]
    assert second.checks.drop("publication_id").equals(first.checks.drop("publication_id"))
    assert second.checks.schema == first.checks.schema
    assert (second.is_blocked, second.sentences) == (False, first.sentences)
    assert second.quarantine.schema == first.quarantine.schema


@pytest.mark.parametrize(("table", "column", "value"), [(SCORES, "note", "another"), (SAMPLES, "prompt", "another")])
def test_a_file_changed_since_is_checked(run, table, column, value):
    key = IDS.dataset_id if table is SAMPLES else IDS.reading_id
    changed(run.lake.parts(table, key)[0], column, value)
    fit_marker(run.lake, table, key)
    assert run("2")[1]


def test_a_picture_is_no_part_of_a_verdict(run):
    """No check looks at one, and a dataset's pictures may be a terabyte. (Parquet's footer repeats values under 4 KB.)"""
    was_run = []
    for run_id, letter in (("1", b"x"), ("2", b"y")):
        changed(run.lake.parts(SAMPLES, IDS.dataset_id)[0], "image", {"bytes": letter * 5000, "path": None})
        fit_marker(run.lake, SAMPLES, IDS.dataset_id)
        was_run.append(run(run_id)[1])
    assert was_run == [True, False]


@pytest.mark.parametrize("other", ["rubric", "code", "gate", "names of one model", "note"])
def test_other_rubrics_code_or_rules_or_a_broken_note_are_checked(run, lakes, other):
    named = {}
    if other == "rubric":
        named["rubrics"] = lakes.rubrics | {"marks": replace(lakes.rubrics["marks"], digest="0" * 64)}
    elif other == "code":
        named["code_version"] = "other"
    elif other == "gate":
        named["gate"] = {"max_missing_input": 0.01}
    elif other == "names of one model":
        named["judges"] = [{"model": "eye-2026-01-01", "accept_models": ["eye-2026-02-01"]}]
    else:
        for note in (run.lake.root / "verdicts").iterdir():
            note.write_text("{")
    assert run("2", **named)[1]


def test_a_verdict_that_blocks_is_reached_anew(run, lakes):
    rows = lakes.together([lakes.world(0)])
    rows["scores"][0]["score"] = 6.0
    lakes.plant(run.lake, "scores", rows["scores"])
    (first, _), (second, was_run_again) = run("1"), run("2")
    assert (first.is_blocked, second.is_blocked, was_run_again) == (True, True, True)


def test_pages_load_nothing_from_outside(once):
    """The library's own pages; the policy is for what a later version of it may add."""
    pages = sorted((once[0] / "data_docs").rglob("*.html"))
    assert len(pages) > 5
    for path in [*pages, *(once[0] / "data_docs").rglob("*.css")]:
        text = path.read_text("utf-8")
        loads = r"""<(?:script|link|img|iframe)[^>]*(?:src|href)=["'](?:https?:)?//|url\(["']?(?:https?:)?//"""
        assert re.findall(loads, text) == [], path
        if path.suffix == ".html":
            assert "<script" not in text
            assert text.index("default-src 'none'") < text.index("<title>")
