"""Answers that are words, from a judge over HTTP to the published cells; what does not apply is counted beside them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from tests.flows.flow_support import Said
from tests.flows.runs.rubrics.own_rubric import own_rubric, write_rubric
from tests.support.painting import paint

RUBRIC = """\
id = "shown"
version = "1"
title = "Whether the picture shows what was asked for"
source = "written for the tests"
prompt = "prompt.txt"
reply = "answer"
needs = ["prompt", "image"]
unit = ["prompt"]
answers = { yes = 1, no = 0 }
not_applicable = ["N/A"]
[[dimensions]]
key = "shown"
[[messages]]
role = "user"
parts = [{ kind = "template" }, { kind = "image" }]
"""
BENCHMARK = own_rubric("words", "shown", 'model = "painter"', "[gate]\nmin_coverage = 0.5")
REPLIES = {"a cup": "Yes.", "a dog": "No, it is a cat.", "no cup": "N/A", "a fox": "yes and no", "a hat": "**yes**"}


def test_words_reach_the_table_and_what_does_not_apply_is_in_neither_mean_nor_coverage(
    tmp_path: Path, provider: Any, salon: Callable[..., Said]
) -> None:
    write_rubric(tmp_path, "shown", RUBRIC, "{prompt}\nIs this shown? Answer yes, no or N/A.")
    paint(tmp_path)
    pictures = sorted((tmp_path / "scenes").rglob("*.png"))
    rows = [{"image": str(p.relative_to(tmp_path)), "prompt": t} for p, t in zip(pictures, REPLIES, strict=False)]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "b.toml").write_text(BENCHMARK.format(url=provider.url))
    provider.answers = lambda texts: REPLIES[texts.partition("\n")[0]]
    assert salon("rubrics", "lint", "mine").code == 0
    said = salon("run", "b.toml", "--run-date", "2026-01-02")
    assert said.code == 0, said.err

    (publication,) = (path for path in (tmp_path / "lake" / "publish" / "v1" / "words").iterdir() if path.is_dir())
    cell = pl.read_parquet(publication / "benchmark_long.parquet").filter(category="__micro__", estimand="prompts_like_these")
    row = cell.to_dicts()[0]
    assert {name: row[name] for name in ("n_judgements", "n_scored", "n_failed", "n_not_applicable")} == {
        "n_judgements": 4, "n_scored": 3, "n_failed": 1, "n_not_applicable": 1,
    }  # fmt: skip
    assert abs(row["estimate"] - 2 / 3) < 1e-12
    assert row["coverage"] == 0.75
    assert (row["scale_low"], row["scale_high"]) == (0, 1)
    assert salon("verify", publication, "--file", "b.toml").code == 0
    explained = salon("explain", row["cell_id"])
    assert explained.code == 0
    assert "«Yes»" in explained.out or "Yes" in explained.out
    assert len(provider.seen) == 5 + 1, "the one that says both is asked once more, N/A is not"
    page = (publication / "report.html").read_text() if (publication / "report.html").exists() else ""
    assert not page or "not applicable" in page
