"""Sixteen pictures by four real models, through the whole flow: refused by the demo judge, then scored by recorded replies."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from tests.flows.flow_support import Said, cells_of

CATEGORIES = {"A banana on the left of an apple": "position", "A pink colored giraffe": "colors"}
BENCHMARK = """\
name = "real"
lake = "lake/"
[[sources]]
reader = "manifest"
path = "pictures/manifest.jsonl"
columns = { item_id = "image" }
[[rubrics]]
id = "image_aspects"
[[rubrics]]
id = "alignment"
[[rubrics]]
id = "composition"
[[judges]]
"""
ASPECTS = {
    "image_aspects": [
        "accuracy_to_prompt", "creativity_and_originality", "visual_quality_and_realism", "consistency_and_cohesion",
        "emotional_or_thematic_resonance",
    ],
    "position": ["position_accuracy", "occlusion_management", "perspective_consistency"],
    "colors": ["color_fidelity", "contrast_effectiveness", "multi_object_consistency"],
}  # fmt: skip


@pytest.fixture
def pictures(needs_salon_data: Path, tmp_path: Path) -> list[dict[str, str]]:
    """The pictures in a folder of the test's own, two of the four prompts with a category. Returns the manifest's rows."""
    source = needs_salon_data / "generated_images"
    shutil.copytree(source, tmp_path / "pictures")
    (tmp_path / "pictures").chmod(0o755)
    (tmp_path / "pictures" / "manifest.jsonl").unlink()
    rows = [json.loads(line) for line in (source / "manifest.jsonl").read_text().splitlines()]
    rows = [row | {"category": CATEGORIES.get(row["prompt"])} for row in rows]
    (tmp_path / "pictures" / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return rows


def test_the_demo_judge_refuses_and_every_cell_is_blocked(
    pictures: list[dict[str, str]], salon: Callable[..., Said], judge_url: str, tmp_path: Path
) -> None:
    (tmp_path / "b.toml").write_text(BENCHMARK + f'model = "salon-demo-judge"\nbase_url = "{judge_url}"\n')
    said = salon("run", "b.toml", "--run-date", "2026-02-03")
    assert said.code == 1, said.err
    assert "16, usable 16" in said.out
    (table,) = (tmp_path / "lake/publish/v1/real").glob("*/benchmark_long.parquet")
    cells = pl.read_parquet(table)
    asked = cells.filter(pl.col("n_judgements") > 0, pl.col("reason") != "not_in_all_categories")
    assert set(asked["rubric_id"]) == {"image_aspects", "alignment", "composition"}
    assert cells["estimate"].null_count() == cells.height
    assert set(asked["status"]) == {"blocked"}
    assert set(asked["reason"]) == {"refusal"}
    assert not (tmp_path / "lake/publish/v1/real/latest.json").exists()  # a table of nothing is nobody's current table
    composition = cells.filter(pl.col("rubric_id") == "composition", pl.col("category").is_in(["position", "colors"]))
    assert composition["n_judgements"].unique().to_list() == [1]  # one picture of each model in each of the two categories


def test_recorded_replies_give_a_table(pictures: list[dict[str, str]], salon: Callable[..., Said], tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_text(BENCHMARK + 'model = "scripted"\nrecorded = true\n')
    lines = [line for number, row in enumerate(pictures) for line in _replies(row, number)]
    (tmp_path / "replies.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    said = salon("import", "b.toml", "--replies", "replies.jsonl", "--run-date", "2026-02-03")
    assert said.code == 0, said.out + said.err
    assert f"{len(lines)} stored" in said.out
    cells = cells_of(tmp_path / "lake")
    assert cells.filter(pl.col("status") == "blocked").is_empty()
    overall = cells.filter(pl.col("rubric_id") == "image_aspects", pl.col("dimension") == "overall_score", category="__micro__")
    wanted = {
        model: sum(_score(n) for n, row in enumerate(pictures) if row["model"] == model) / 4
        for model in {row["model"] for row in pictures}
    }
    assert dict(overall.select("model", "estimate").iter_rows()) == pytest.approx(wanted, abs=1e-12)
    explained = salon("explain", overall["cell_id"][0], "--limit", "0")
    assert explained.code == 0
    assert explained.out.count("recorded") >= 4


def _score(number: int) -> float:
    return float(number % 11)


def _replies(row: dict[str, str], number: int) -> list[dict[str, str]]:
    """A reply by hand under each rubric the picture is judged by."""
    score = _score(number)
    replies = {"image_aspects": _json("image_aspects", score), "alignment": f"Reasoning: by hand.\nScore: {1 + number % 5}"}
    if row["category"]:
        replies["composition"] = _json(row["category"], score)
    return [{"image": row["image"], "rubric": rubric, "reply": reply} for rubric, reply in replies.items()]


def _json(form: str, score: float) -> str:
    return json.dumps({key: {"score": score, "explanation": "by hand"} for key in ASPECTS[form]} | {"overall_score": score})
