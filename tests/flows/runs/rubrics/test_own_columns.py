"""A rubric of one's own with a column of its own, from the source's row to the question, the explanation and the check."""

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl

from schemas.tables.stored import JUDGEMENTS, REQUESTS, SAMPLES
from tasks.lake.reading import Lake
from tests.flows.flow_support import Said
from tests.flows.runs.rubrics.own_rubric import write_rubric
from tests.support.painting import paint

RUBRIC = """\
id = "edits"
version = "1"
title = "Whether an edit does what its instruction asks"
source = "written for the tests"
prompt = "prompt.txt"
reply = "label"
needs = ["instruction", "difficulty", "image"]
unit = ["instruction"]
report_by = "difficulty"
scale = { min = 1, max = 5, step = 1 }
words = { difficulty = ["easy", "hard"] }
[[dimensions]]
key = "score"
labels = ["Score"]
[[messages]]
role = "user"
parts = [{ kind = "template" }, { kind = "image" }]
"""

BENCHMARK = """\
name = "own"
rubric_folders = ["mine"]
[[sources]]
reader = "manifest"
path = "m.jsonl"
model = "editor"
columns = {{ instruction = "Task" }}
[[rubrics]]
id = "edits"
[[judges]]
model = "salon-demo-judge"
base_url = "{url}"
"""


def _rows(lake: Lake, table: object) -> pl.DataFrame:
    (marker,) = (lake.root / "complete" / table.name).iterdir()  # type: ignore[attr-defined]
    return lake.scan(table, marker.stem).collect()  # type: ignore[arg-type]


def test_a_column_of_a_rubrics_own_reaches_the_judge_and_a_word_it_does_not_know_is_told(
    tmp_path: Path, judge_url: str, salon: Callable[..., Said]
) -> None:
    write_rubric(tmp_path, "edits", RUBRIC, "Was this done ({difficulty})? {instruction}\nAnswer Score: 1-5")
    paint(tmp_path)
    picture = next((tmp_path / "scenes").rglob("*.png")).relative_to(tmp_path)
    tasks = [("add a hat {difficulty}", "easy"), ("r\u00e9move it", "hard"), ("turn it blue", "Hard"), ("turn it red", None)]
    rows = [{"image": str(picture), "Task": task, "difficulty": kind, "note": "read by nobody"} for task, kind in tasks]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "b.toml").write_text(BENCHMARK.format(url=judge_url))
    assert salon("rubrics", "lint", "mine").code == 0
    said = salon("run", "b.toml", "--run-date", "2026-01-02")
    assert said.code in (0, 1), said.err

    lake = Lake(tmp_path / "lake")
    samples, judgements, requests = (_rows(lake, table) for table in (SAMPLES, JUDGEMENTS, REQUESTS))
    assert [json.loads(own) for own in samples["texts_json"]] == [
        {"instruction": task} | ({"difficulty": kind} if kind else {}) for task, kind in tasks
    ]
    assert judgements.select("status", "reason", "category").rows() == [
        ("planned", None, "easy"), ("planned", None, "hard"), ("unknown_value", "unknown_value:difficulty", None),
        ("missing_column", "missing:difficulty", None),
    ]  # fmt: skip
    asked = sorted(json.loads(one)[0]["content"][0]["text"] for one in requests["messages_json"])
    assert asked == [
        "Was this done (easy)? add a hat {difficulty}\nAnswer Score: 1-5",
        "Was this done (hard)? r\u00e9move it\nAnswer Score: 1-5",
    ]
    (publication,) = (path for path in (tmp_path / "lake" / "publish" / "v1" / "own").iterdir() if path.is_dir())
    assert salon("verify", publication, "--file", "b.toml").code == 0
    cell = pl.read_parquet(publication / "benchmark_long.parquet").filter(category="easy")["cell_id"][0]
    assert "instruction" in salon("explain", cell).out

    (tmp_path / "labels.csv").write_text("".join(f"{row}\n" for row in ("image,prompt,dimension,rating", f"{picture},x,score,4")))
    text = (tmp_path / "b.toml").read_text() + "[ratings]\nscale = { min = 1, max = 5, step = 1 }\n"
    (tmp_path / "b.toml").write_text(text)
    said = salon("agreement", "b.toml", "--ratings", "labels.csv")
    assert "1 match several" in said.err
    (tmp_path / "m.jsonl").write_text((tmp_path / "m.jsonl").read_text().replace('"image"', '"Img"'))
    said = salon("plan", "b.toml")
    assert said.code == 2
    assert "needs image" in said.err
    assert "the columns of source source-0: Img, Task, difficulty, note" in said.err
