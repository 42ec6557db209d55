"""Numbers that programs measured, from files to the published table, beside a judge that is asked."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from schemas.tables.stored import JUDGEMENTS, REPLIES, SCORES
from tasks.lake.reading import Lake
from tests.flows.flow_support import Said
from tests.support.painting import paint

TEXT_MATCH = """\
id = "text_match"
version = "1"
title = "How far the text is from what was asked for"
source = "written for the tests"
program = { name = "ocr", version = "3.2" }
unit = ["prompt"]
scale = { min = 0, max = 1 }
[[dimensions]]
key = "distance"
at = "ocr.distance"
better = "lower"
[[dimensions]]
key = "confidence"
[[figures]]
key = "closeness"
form = "turned"
of = ["distance"]
"""
REWARD = """\
id = "reward"
version = "1"
title = "A reward model's number"
source = "written for the tests"
program = { name = "reward", version = "1.0" }
unit = ["prompt"]
scale = { min = -4, max = 4 }
[[dimensions]]
key = "reward"
"""
BENCHMARK = """\
name = "measured"
rubric_folders = ["mine"]
[[sources]]
reader = "manifest"
path = "m.jsonl"
model = "painter"
[[rubrics]]
id = "alignment"
[[rubrics]]
id = "text_match"
[[rubrics]]
id = "reward"
[[judges]]
model = "judge-2026-01-01"
base_url = "{url}"
[[judges]]
model = "ocr-3.2"
recorded = true
[[judges]]
model = "reward-1.0"
recorded = true
[gate]
min_coverage = 0.3
"""
NAN, INF = float("nan"), float("inf")
MEASURED = [  # of each picture: distance, confidence, reward
    (0.25, 0.9, 1.5), (0.0, 0.5, -2.25), (1.5, 0.8, NAN), (NAN, 0.7, 4.5), (None, INF, None), (0.75, "0.5", 0),
]  # fmt: skip
DISTANCES = [(0.25, None), (0.0, None), (None, "out_of_range"), (None, "wrong_type"), (None, "missing_key"), (0.75, None)]
CLOSENESS = [0.75, 1.0, None, None, None, 0.25]
REWARDS = [(1.5, None), (-2.25, None), (None, "wrong_type"), (None, "out_of_range"), (None, "missing_key"), (0.0, None)]


def test_a_programs_numbers_are_published_like_a_judges(tmp_path: Path, provider: Any, salon: Callable[..., Said]) -> None:
    for rubric, declared in (("text_match", TEXT_MATCH), ("reward", REWARD)):
        (tmp_path / "mine" / rubric).mkdir(parents=True)
        (tmp_path / "mine" / rubric / "rubric.toml").write_text(declared)
    paint(tmp_path)
    pictures = [str(path.relative_to(tmp_path)) for path in sorted((tmp_path / "scenes").rglob("*.png"))[: len(MEASURED)]]
    listed = [{"image": path, "prompt": f"prompt {place // 2}"} for place, path in enumerate(pictures)]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in listed))
    (tmp_path / "b.toml").write_text(BENCHMARK.format(url=provider.url))
    rows = [
        {"image": path, "ocr": {"distance": distance}, "confidence": confidence, "reward": reward}
        for path, (distance, confidence, reward) in zip(pictures, MEASURED, strict=True)
    ]
    rows.append(rows[0] | {"image": "scenes/none.png"})
    (tmp_path / "numbers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))  # as Python writes: NaN, Infinity
    provider.answers = lambda _: "Reasoning: as asked.\nScore: 4"

    said = salon("import", "b.toml", "--replies", "numbers.jsonl", "--run-date", "2026-01-02")
    assert said.code == 1, "published, and blocked where the judge is still to be asked"
    assert "imported    14 rows: 12 stored, 0 there already, 2 left out" in said.out
    ran = salon("run", "b.toml", "--run-date", "2026-01-02")
    assert ran.code == 0, ran.err
    assert len(provider.seen) == len(MEASURED), "the judge alone is asked, and by its own rubric"

    lake = Lake(tmp_path / "lake")
    folder = max(
        (tmp_path / "lake" / "publish" / "v1" / "measured").glob("*/provenance.json"), key=lambda p: p.stat().st_mtime
    ).parent
    ids = json.loads((folder / "provenance.json").read_text())["identities"]
    judgements = lake.scan(JUDGEMENTS, ids["plan_id"]).collect()
    assert sorted(judgements.select("rubric_id", "judge_model").unique().rows()) == [
        ("alignment", "judge-2026-01-01"), ("reward", "reward-1.0"), ("text_match", "ocr-3.2"),
    ]  # fmt: skip
    scores = lake.scan(SCORES, ids["reading_id"]).select("request_key", "dimension", "score", "status", "reason").collect()
    found = judgements.join(scores, on="request_key", how="left", maintain_order="left")
    by = {key: mine.select("score", "reason_right").rows() for (key,), mine in found.group_by("dimension", maintain_order=True)}
    assert by["distance"] == DISTANCES
    assert by["reward"] == REWARDS
    assert [one for one, _ in by["closeness"]] == CLOSENESS
    assert [one for one, _ in by["confidence"]][-2:] == [None, 0.5]
    replies = lake.scan(REPLIES, ids["snapshot_id"]).filter(pl.col("judge_model") != "judge-2026-01-01").collect()
    assert set(replies["origin"]) == {"rebuilt"}

    cells = pl.read_parquet(folder / "benchmark_long.parquet").filter(category="__micro__", estimand="prompts_like_these")
    table = {(row["rubric_id"], row["dimension"]): row for row in cells.filter(metric="mean").to_dicts()}
    assert ("text_match", "distance") not in table, "tables rank what is higher first"
    closeness, reward = table["text_match", "closeness"], table["reward", "reward"]
    assert (closeness["estimate"], closeness["n_judgements"], closeness["n_failed"]) == (pytest.approx(2 / 3), 6, 3)
    assert (reward["estimate"], reward["n_failed"]) == (-0.25, 3)
    assert (reward["bound_low"], reward["bound_high"]) == ((-0.75 - 12) / 6, (-0.75 + 12) / 6)
    assert salon("verify", folder, "--file", "b.toml").code == 0
    explained = salon("explain", closeness["cell_id"])
    assert explained.code == 0, explained.err
    assert "turned of distance: 0.25" in explained.out
    assert "out_of_range" in explained.out


EXAMPLE = Path(__file__).parents[4] / "docs/examples/programs"


def test_the_example_of_the_page_on_programs_is_published(tmp_path: Path, salon: Callable[..., Said]) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "programs")
    said = salon("import", "programs/signs.toml", "--replies", "programs/numbers.csv", "--run-date", "2026-01-02")
    assert said.code == 0, said.err
    assert "imported    12 rows: 12 stored, 0 there already, 0 left out" in said.out
    (long,) = (tmp_path / "programs/lake/publish/v1/signs").glob("*/benchmark_long.parquet")
    cells = pl.read_parquet(long).filter(category="__micro__", estimand="prompts_like_these", metric="mean")
    means = {(row["checkpoint"], row["dimension"]): (row["estimate"], row["n_failed"]) for row in cells.to_dicts()}
    assert means == {
        ("step-1", "text_match"): (pytest.approx((0.6 + 0.5 + 1 + 0.2 + 0.4) / 5), 1),  # one distance is 1.4: no score
        ("step-2", "text_match"): (pytest.approx((0.9 + 1 + 1 + 0.7 + 0.95 + 0.8) / 6), 0),
    }
