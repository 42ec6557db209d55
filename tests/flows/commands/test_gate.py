"""`salon gate` as a job calls it: what it prints, its exit codes; and the action's own steps, with a `gh` that keeps comments."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
import yaml

from schemas.tables.nights import EXAM
from schemas.tables.published import COMPARISONS, STANDINGS
from schemas.tables.table import Table
from tasks.publish.folders import PublicationName
from tasks.publish.publication import Draft, publish
from tasks.publish.report.index import write_index
from tests.aggregate.preferences.conftest import said
from tests.aggregate.preferences.conftest import tables as preference_tables_of
from tests.flows.commands.printed.test_table_command import cell, tables_of
from tests.flows.flow_support import Said

DAY = date(2026, 11, 3)
ACTION = Path(__file__).parents[3] / "infra" / "github-gate"
GH = """#!{python}
import json, os, sys
kept = os.environ["KEPT"]
comments = json.load(open(kept)) if os.path.exists(kept) else [{{"id": 1, "body": "what a person wrote"}}]
if "--method" in sys.argv:
    body = open(next(one for one in sys.argv if one.startswith("body=@")).removeprefix("body=@")).read()
    place = next(one for one in sys.argv if one.startswith("repos/"))
    if "PATCH" in sys.argv:
        next(one for one in comments if one["id"] == int(place.rpartition("/")[2]))["body"] = body
    else:
        comments.append({{"id": len(comments) + 1, "body": body}})
    json.dump(comments, open(kept, "w"))
elif "GH_DOWN" in os.environ:
    sys.exit("gh: HTTP 502")
else:
    print(json.dumps([comments[:1], comments[1:]]))
"""


def rows_of(table: Table, rows: list[dict[str, Any]]) -> pl.DataFrame:
    common = {
        "publication_id": "f" * 64, "run_date": DAY, "benchmark": "nightly", "dataset_id": "d" * 64, "rubric_id": "small",
        "rubric_version": "1", "judge_model": "eye", "dimension": "score", "category": "__macro__", "model": "pa|nter",
    }  # fmt: skip
    needed = {field.name: "x" if pa.types.is_string(field.type) else 0 for field in table.schema if not field.nullable}
    filled = [{name: (needed | common | row).get(name) for name in table.columns} for row in rows]
    return pl.DataFrame(filled, schema=table.empty().schema)


def comparison(a: str, b: str, delta: float | None, p: float | None, **more: Any) -> dict[str, Any]:
    return {
        "comparison": "each_other", "model_a": "pa|nter", "checkpoint_a": a, "model_b": "pa|nter", "checkpoint_b": b,
        "delta": delta, "se": 0.2, "df": 59.0, "p": p, "n_prompts_paired": 60, "has_unequal_failures": False,
        "fail_rate_a": 0.0, "fail_rate_b": 0.0,
    } | more  # fmt: skip


def tables_that_pass() -> dict[Table, pl.DataFrame]:
    """Of a publication of two checkpoints that the gate passes."""
    names = ("step-1", "step-2")
    tables = tables_of([cell("painter", 7.0, checkpoint=name, cell_id=f"{name:0<12.12}") for name in names])
    compared = comparison("step-2", "step-1", 0.01, 0.9) | {"model_a": "painter", "model_b": "painter"}
    standings = [{"model": "painter", "checkpoint": name, "is_headline": True} for name in names]
    return tables | {COMPARISONS: rows_of(COMPARISONS, [compared]), STANDINGS: rows_of(STANDINGS, standings)}


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """step-3 dropped from step-2, which is as good as step-1; step-1 against step-3 could not be compared."""
    names = ("step-1", "step-2", "step-3")
    compared = [
        comparison("step-2", "step-1", 0.01, 0.9), comparison("step-3", "step-2", -1.2, 1e-7),
        comparison("step-3", "step-1", None, None, reason="judge_differs"),
        comparison("step-3", "step-2", -3.0, 1e-9, category="colors"),
        comparison("step-3", "step-2", -2.0, 0.1, category="__micro__"),
    ]  # fmt: skip
    tables = tables_of([cell("pa|nter", 7.0, checkpoint=name, cell_id=f"{name:0<12.12}") for name in names])
    tables[COMPARISONS] = rows_of(COMPARISONS, compared)
    tables[STANDINGS] = rows_of(STANDINGS, [{"checkpoint": name, "is_headline": True} for name in names])
    examined = [
        {"fault": "mirrored", "verdict": "blind", "is_meant": True}, {"fault": "erased", "verdict": "sees", "is_meant": True},
        {"fault": "blurred", "verdict": "blind", "is_meant": False},
    ]  # fmt: skip
    tables[EXAM] = rows_of(EXAM, examined)
    return publish(tmp_path / "lake", Draft(PublicationName("nightly", "f" * 64, DAY), tables, {})).folder


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ((), 1, "Regression: worse in 1 of 1 comparison."),
        (("--baseline", "pa|nter/step-1", "--candidate", "pa|nter/step-2"), 0, "No regression found in 1 comparison."),
        (("--baseline", "pa|nter/step-1", *("--candidate", "pa|nter/step-2") * 2), 0, "No regression found in 1 comparison."),
        (("--baseline", "pa|nter/step-1"), 1, "judge differs"),
        (("--baseline", "pa|nter/step-1", "--allow-unknown"), 0, "Undecided: 1 of 1 comparison is inconclusive."),
        (("--baseline", "pa|nter/step-3", "--candidate", "pa|nter/step-2"), 0, "better"),
        (("ffff", "--alpha", "1e-9"), 0, "two-sided at 1e-09"),
        (("--allow-unknown", "--alpha", "1e-9"), 0, "In small, score, eye is blind to mirrored.\n"),
        (("--allow-unknown",), 1, "Single categories (1) are not considered: `salon table` names the clearest fall."),
        (("--baseline", "nobody"), 2, "'nobody' does not exist in this publication; available: pa|nter/step-1, "),
        (("--candidate", "pa|nter"), 1, "Regression: worse in 1 of 1 comparison."),
        (("--candidate", "pa|nter/step-1"), 2, "no candidate has a predecessor"),
        (("--candidate", "pa|nter/step-1", "--candidate", "pa|nter/step-2"), 2, "pa|nter/step-1 has no predecessor"),
        (("--alpha", "2"), 2, "alpha"),
        (("abcd",), 2, "abcd"),
    ],
    ids=[
        "it dropped", "it did not", "one named twice", "not comparable", "allowed", "turned", "strict", "blind", "categories",
        "nobody", "a model's newest", "the first", "one of two",
        "alpha", "id",
    ],
)  # fmt: skip
@pytest.mark.usefixtures("published")
def test_the_ruling_is_the_exit_code(salon: Callable[..., Said], arguments: tuple[str, ...], code: int, says: str) -> None:
    said = salon("gate", *arguments)
    assert (said.code, says in said.out + said.err) == (code, True), said


@pytest.mark.parametrize(
    ("failures", "verdict", "code", "outcome", "reason"),
    [
        ("worst_case", "failures_could_turn_it", 1, "unknown", "failures_could_turn_it"),
        ("worst_case", "open", 1, "unknown", "failures_could_turn_it"),
        ("at_random", "open", 1, "regression", None),
    ],
    ids=["by the verdict", "by the bounds", "failures are taken as random"],
)
def test_a_drop_that_failures_could_turn_is_none(
    salon: Callable[..., Said], tmp_path: Path, failures: str, verdict: str, code: int, outcome: str, reason: str | None
) -> None:
    names = ("step-1", "step-2")
    bounds = {"delta_bound_low": -1.4, "delta_bound_high": 0.4}
    tables = tables_of([cell("pa|nter", 7.0, checkpoint=name, cell_id=f"{name:0<12.12}") for name in names])
    tables[COMPARISONS] = rows_of(COMPARISONS, [comparison("step-2", "step-1", -1.2, 1e-7, verdict=verdict, **bounds)])
    tables[STANDINGS] = rows_of(STANDINGS, [{"checkpoint": name, "is_headline": True} for name in names])
    provenance = {"settings": {"statistics": {"failures": failures}}}
    publish(tmp_path / "lake", Draft(PublicationName("nightly", "f" * 64, DAY), tables, provenance))
    (ruling,) = json.loads(salon("gate", "--format", "json").out)["rulings"]
    assert (ruling["outcome"], ruling["reason"]) == (outcome, reason)
    for form in ("table", "markdown"):
        said = salon("gate", "--format", form)
        told = " ".join(said.out.replace("\\", "").split())
        assert (said.code, "failures could" in told, "Regression" in told) == (code, reason is not None, reason is None), said
    assert salon("gate", "--allow-unknown").code == (0 if reason else 1)


@pytest.fixture
def with_a_share(tmp_path: Path) -> None:
    """`eye` finds step-2 better in all prompts; `dear` was asked about a share, and shares too few prompts."""
    compared = [
        comparison("step-2", "step-1", 1.2, 1e-7),
        comparison("step-2", "step-1", None, None, judge_model="dear", reason="too_few_paired_prompts"),
    ]
    judges = {"eye": 60, "dear": 4}
    cells = [
        cell("pa|nter", 7.0, checkpoint=name, judge_model=judge, cell_id=f"{name + judge:0<12.12}")
        for name in ("step-1", "step-2") for judge in judges
    ]  # fmt: skip
    tables = tables_of(cells)
    tables[COMPARISONS] = rows_of(COMPARISONS, compared)
    standing = [
        {"checkpoint": name, "judge_model": judge, "is_headline": True} for name in ("step-1", "step-2") for judge in judges
    ]
    tables[STANDINGS] = rows_of(STANDINGS, standing)
    tables[EXAM] = rows_of(EXAM, [{"judge_model": "dear", "fault": "mirrored", "verdict": "blind", "is_meant": True}])
    publish(tmp_path / "lake", Draft(PublicationName("nightly", "f" * 64, DAY), tables, {}))


@pytest.mark.parametrize(
    ("arguments", "code", "says", "judges"),
    [
        ((), 1, "Undecided: 1 of 2 comparisons is inconclusive.", ["dear", "eye"]),
        (("--judge", "eye"), 0, "Only the rankings of eye are considered.", ["eye"]),
        (("--judge", "dear"), 1, "Undecided: 1 of 1 comparison is inconclusive.", ["dear"]),
        (("--judge", "eye", "--judge", "dear"), 1, "Only the rankings of dear, eye are considered.", ["dear", "eye"]),
        (("--judge", "eyes"), 2, "--judge 'eyes' is not a judge of this publication; available: dear, eye", None),
    ],
    ids=["every judge", "the one that saw all", "the one that saw a share", "both by name", "nobody"],
)
@pytest.mark.usefixtures("with_a_share")
def test_whose_rankings_are_looked_at(
    salon: Callable[..., Said], arguments: tuple[str, ...], code: int, says: str, judges: list[str] | None
) -> None:
    said = salon("gate", *arguments)
    assert (said.code, says in said.out + said.err) == (code, True), said
    assert ("is blind to mirrored" in said.out) == ("dear" in (judges or ()))
    if judges:
        told = json.loads(salon("gate", *arguments, "--format", "json").out)
        assert (told["judges"], {one["judge_model"] for one in told["rulings"]}) == (judges, set(judges))


def test_a_copy_and_an_older_table_are_ruled_on(tmp_path: Path, salon: Callable[..., Said]) -> None:
    """The second publication's table was written before identical pictures were counted."""
    cells = [cell("painter", 7.0, checkpoint=name, cell_id=f"{name:0<12.12}") for name in ("step-1", "step-2")]
    tables = tables_of(cells)
    tables[STANDINGS] = rows_of(STANDINGS, [{"checkpoint": name, "is_headline": True} for name in ("step-1", "step-2")])
    copied = comparison("step-2", "step-1", 0.0, 1.0)
    tables[COMPARISONS] = rows_of(COMPARISONS, [copied | {"n_prompts_identical": copied["n_prompts_paired"]}])
    publish(tmp_path / "lake", Draft(PublicationName("nightly", "e" * 64, DAY), tables, {}))
    older = publish(tmp_path / "lake", Draft(PublicationName("nightly", "d" * 64, DAY), tables, {})).folder
    path, manifest = older / "comparisons.parquet", older / "manifest.json"
    was = sha256(path.read_bytes()).hexdigest()
    tables[COMPARISONS].drop("n_prompts_identical", "n_looks").write_parquet(path)
    manifest.write_text(manifest.read_text().replace(was, sha256(path.read_bytes()).hexdigest()))
    both = [salon("gate", prefix) for prefix in ("eeee", "dddd")]
    told = [(said.code, " ".join(said.out.split()).partition(" no drop found")[2]) for said in both]
    assert told == [(0, ": both show the judge the very same"), (0, "")], both


@pytest.mark.usefixtures("published")
def test_a_name_is_no_markup_in_the_comment(salon: Callable[..., Said]) -> None:
    said = salon("gate", "--format", "markdown").out
    assert re.match(r"<!-- salon gate [0-9a-f]{8} -->\n", said)
    (row,) = (line for line in said.splitlines() if "step-3" in line)
    assert "pa\\|nter/step-3" in row
    assert len(row.replace("\\|", "").split("|")) == 9
    told = json.loads(salon("gate", "--format", "json").out)
    assert told["rulings"][0]["outcome"] == "regression"
    assert [one["blind_to"] for one in told["blind"]] == ["mirrored"]


@pytest.mark.usefixtures("published")
def test_the_action_keeps_one_comment(tmp_path: Path) -> None:
    """Twice run as in a job: the second push writes the first one's comment anew, and leaves the person's alone."""
    action = yaml.safe_load((ACTION / "action.yml").read_text())
    (step,) = action["runs"]["steps"]
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in {
        "gh": GH.format(python=sys.executable),
        "salon": f'#!/bin/sh\nexec {Path(sys.executable).with_name("salon")} "$@"\n',
    }.items():
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    (tmp_path / "event.json").write_text(json.dumps({"pull_request": {"number": 7}}))
    given = {"lake": str(tmp_path / "lake"), "token": "t", "benchmark": "nightly"}
    inputs = {name: given.get(name, one["default"]) for name, one in action["inputs"].items()}
    job = {name: inputs[value.split("inputs.")[1].split(" ")[0]] for name, value in step["env"].items()}
    job |= {
        "PATH": f"{tools}:{os.environ['PATH']}", "GITHUB_ACTION_PATH": str(ACTION), "RUNNER_TEMP": str(tmp_path),
        "GITHUB_REPOSITORY": "a/b",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"), "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "KEPT": str(tmp_path / "kept.json"), "PYTHONPATH": str(ACTION.parents[1]), "HOME": str(tmp_path),
    }  # fmt: skip

    def push(**changes: str) -> tuple[int, list[str]]:
        done = subprocess.run(
            ["bash", "-c", step["run"]], env=job | changes, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        kept = tmp_path / "kept.json"
        return done.returncode, [one["body"] for one in json.loads(kept.read_text())] if kept.exists() else []

    code, comments = push()
    assert (code, len(comments)) == (1, 2)
    assert "Regression" in comments[1]
    code, comments = push(BASELINE="pa|nter/step-1", CANDIDATE="pa|nter/step-2", JUDGE="eye")
    assert (code, len(comments), comments[0]) == (0, 2, "what a person wrote")
    assert "No regression found" in comments[1]
    assert "rankings of eye" in comments[1]
    assert "Regression" in (tmp_path / "summary.md").read_text()
    assert push(GH_DOWN="for a moment") == (1, comments), "which comments there are is not known: none is added"
    assert push(BASELINE="nobody")[0] == 2


def test_no_name_is_cut_where_the_terminal_is_narrow(
    salon: Callable[..., Said], published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    told = salon("gate", "--baseline", "pa|nter/step-2").out
    assert "…" not in told


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_a_reader_that_leaves_changes_no_exit_code(published: Path, form: str) -> None:
    """`salon gate … 2>&1 | head -1` of a job that goes by every exit code of a pipe."""
    command = [sys.executable, "-m", "flows", "gate", "--lake", str(published.parents[3]), "--baseline", "pa|nter/step-2"]
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run([*command, "--format", form], cwd=ACTION.parents[1], stdout=writer, stderr=writer, check=False)
    os.close(writer)
    assert ended.returncode == 1


def test_a_newer_publication_that_is_not_current_is_not_passed_over(
    salon: Callable[..., Said], tmp_path: Path, published: Path
) -> None:
    """One lost reply of a small cell: it rules on no older publication in silence, and everybody is told."""
    asked = ("gate", "--baseline", "pa|nter/step-1", "--candidate", "pa|nter/step-2")
    assert salon(*asked).code == 0
    cells = [cell("pa|nter", 7.0, n_failed=9, why={"server_error": 9}, cell_id="c" * 12)]
    short = publish(tmp_path / "lake", Draft(PublicationName("nightly", "e" * 64, date(2026, 11, 4)), tables_of(cells), {}))
    assert short.why_not_current == "1 of its 1 cells lack replies, and none of the current one's 3"
    newer = f"{'e' * 12} of 2026-11-04, did not become current: {short.why_not_current}. Next: "
    said = salon(*asked)
    assert (said.code, f"the newest publication was not looked at, a newer publication, {newer}" in said.out) == (1, True), said
    assert f" What is ruled on below is {published.name[:12]} of {DAY}." in said.out, "both may be of one date"
    assert salon(*asked, "--allow-unknown").code == 0
    assert salon("gate", published.name, *asked[1:]).code == 0, "it was named"
    told = json.loads(salon(*asked, "--format", "json").out)
    assert (told["outcome"], told["not_looked_at"]["publication_id"]) == ("unknown", "e" * 64)
    assert newer in " ".join(salon("table").out.split())
    assert newer in salon("table", "--format", "csv").err
    assert newer in write_index(tmp_path / "lake").read_text().replace("&#39;", "'")
    assert newer not in salon("table", "--publication", published.name).out


def publish_pairs(home: Path, verdicts: list[tuple[Any, ...]], **provenance: Any) -> None:
    """A publication in which no rubric gives scores."""
    tables = tables_of([]) | {table: table.empty() for table in (COMPARISONS, STANDINGS)}
    tables |= preference_tables_of(verdicts, baseline=None)
    publish(home / "lake", Draft(PublicationName("nightly", "f" * 64, DAY), tables, provenance))


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ((), 1, "Regression: worse in 1 of 1 comparison."),
        ((), 1, "16.7 % ["),
        ((), 1, "In percent: how often the candidate's picture wins, of pairs; 50 % is no change."),
        (("--baseline", "m/3", "--candidate", "m/2"), 0, "83.3 % ["),
        (("--baseline", "m/1"), 1, "Undecided: nothing was compared. m/3 with m/1: never shown side by side."),
        (("--baseline", "m/1"), 1, "Not compared in pairs, and not ruled on under pairs by eye: m/3 with m/1."),
        (("--baseline", "m/1", "--candidate", "m/2"), 0, "No regression found in 1 comparison."),
        (("--judge", "nobody"), 2, "available: eye"),
        (("--baseline", "nobody"), 2, "available: m/1, m/2, m/3"),
    ],
)
def test_pairs_alone_are_ruled_on(
    tmp_path: Path, salon: Callable[..., Said], arguments: tuple[str, ...], code: int, says: str
) -> None:
    """3 loses against 2 in 40 of 48 prompts, 2 wins half against 1, and 3 never met 1. No rubric gives scores."""
    publish_pairs(tmp_path, said("3", "2", "b " * 40 + "a " * 8) + said("2", "1", "a b " * 24))
    told = salon("gate", *arguments)
    assert (told.code, says in " ".join((told.out + told.err).split())) == (code, True), told


def test_a_predecessor_that_no_pair_shows_is_not_replaced_by_an_older_one(tmp_path: Path, salon: Callable[..., Said]) -> None:
    """3 lost against 1, which is not directly before it: 2 is, and is not in the publication."""
    publish_pairs(tmp_path, said("3", "1", "b " * 40), lineage={"m": ["1", "2", "3"]})
    told = salon("gate", "--format", "json")
    assert (told.code, json.loads(told.out)["rulings"]) == (1, [])
    (apart,) = json.loads(told.out)["apart"]
    assert (apart["candidate"], apart["reference"]) == (["m", "3"], ["m", "2"])
    assert salon("gate", "--baseline", "m/1").code == 1
