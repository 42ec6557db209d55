"""Real pictures and made ones, models on different prompts, a judge of whose replies 6 % stay unreadable: what the board says."""

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from PIL import Image

from demo.running import running_judge
from flows.cli import run
from tasks.publish.reading import find_publication, load_cells, publications
from tasks.publish.standings.wording import why
from tests.support.one_answer import contradictions

PROMPTS_OF = {"DF-IF": range(40), "OJ": range(30), "SD14": range(10, 40), "SD21": range(8, 48)}
"""Which made prompts each model has, beside the four real ones."""
PROMPTS_OF |= {"apart": range(60, 90), "colours alone": range(0, 60, 3)}
CATEGORIES = ("colors", "counting", "position")
RUBRIC = """\
id = "followed"
version = "1"
title = "Follows its prompt"
source = "ours"
prompt = "prompt.txt"
reply = "label"
output_tokens = 20
needs = ["prompt", "image", "text"]
unit = ["prompt"]
scale = { min = 1, max = 5, step = 1 }
[[dimensions]]
key = "score"
labels = ["Score"]
[[messages]]
role = "system"
parts = [{ kind = "prompt" }, { kind = "column", value = "prompt" }]
[[messages]]
role = "user"
parts = [{ kind = "image" }, { kind = "column", value = "text" }]
"""
BENCHMARK = """\
name = "ragged"
rubric_folders = ["rubrics"]
[[sources]]
reader = "manifest"
path = "pictures/manifest.jsonl"
[[rubrics]]
id = "followed"
[[judges]]
model = "salon-demo-judge"
base_url = "{url}"
[gate]
min_coverage = 0.7
"""
SCENARIO = """\
answer.mode = "echo"
faults.shares = { malformed = 0.14, truncated = 0.06, refusal = 0.02 }
"""
"""Refusals stand; the rest is asked again, so that 0.02 + 0.2 x 0.22 of the judgements are left without a score."""


def _rows(pictures: Path, real: Path) -> Iterator[dict[str, str]]:
    """The manifest. What the judge will say of a picture stands on its row: the provider echoes it, or fails to."""
    draw = random.Random(6)
    shutil.copytree(real, pictures)
    pictures.chmod(0o755)
    (pictures / "manifest.jsonl").unlink()
    levels = dict(zip(PROMPTS_OF, (4.4, 3.6, 2.6, 3.0, 4.0, 3.5), strict=True))
    named = [json.loads(line) for line in (real / "manifest.jsonl").read_text().splitlines()]
    found = [{"image": one["image"], "prompt": one["prompt"], "model": one["model"], "category": "position"} for one in named]
    for number, (model, prompts) in enumerate(PROMPTS_OF.items()):
        for prompt in prompts:
            image = f"{model}-{prompt}.png"
            Image.new("RGB", (16, 16), (number * 50, prompt, 90)).save(pictures / image)
            found.append({"image": image, "prompt": f"made {prompt}", "model": model, "category": CATEGORIES[prompt % 3]})
    for row in found:
        score = min(5, max(1, round(levels[row["model"]] + draw.gauss(0, 0.7))))
        yield row | {"text": f"Reasoning: {row['image']}.\nScore: {score}"}


@pytest.fixture(scope="module")
def published(needs_salon_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("ragged")
    rows = list(_rows(root / "pictures", needs_salon_data / "generated_images"))
    (root / "pictures" / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (root / "rubrics" / "followed").mkdir(parents=True)
    (root / "rubrics" / "followed" / "rubric.toml").write_text(RUBRIC)
    (root / "rubrics" / "followed" / "prompt.txt").write_text("Score the picture, 1 to 5. Prompt: ")
    (root / "scenario.toml").write_text(SCENARIO)
    with running_judge(root / "scenario.toml") as url:
        (root / "b.toml").write_text(BENCHMARK.format(url=url))
        assert run(["run", str(root / "b.toml"), "--run-date", "2026-02-03"]) in (0, 1)
    (one,) = publications(root / "lake")
    return one.folder


@pytest.fixture(scope="module")
def cells(published: Path) -> pl.DataFrame:
    found = load_cells(find_publication(published.parents[3], published.name)).filter(pl.col("is_headline"))
    return found.sort("category", "model")


def test_every_headline_cell_shows_an_estimate_with_bounds_or_a_cause_with_its_remedy(cells: pl.DataFrame) -> None:
    share = cells["n_failed"].sum() / cells["n_judgements"].sum()
    assert 0.03 < share < 0.09, "the judge is not as difficult as it should be"
    assert set(cells["model"]) == set(PROMPTS_OF)
    for row in cells.to_dicts():
        told = why(row)
        if row["estimate"] is None:
            remedy = "gate.min_coverage" if row["status"] == "blocked" else "judge it there"
            assert remedy in told, told
        else:
            assert row["bound_low"] <= row["estimate"] <= row["bound_high"], row
            assert (f"with them {row['bound_low']:.2f} to {row['bound_high']:.2f}" in told) == (row["n_failed"] > 0), told
        if row["estimate"] is not None and row["state"] != "ranked":
            assert "5 needed in each category (statistics.min_paired_prompts)" in told, told


def test_models_on_other_prompts_are_not_compared_and_the_others_are_told_apart_by_shared_ones(cells: pl.DataFrame) -> None:
    by_model = {row["model"]: row for row in cells.to_dicts()}
    assert by_model["apart"]["state"] == by_model["colours alone"]["state"] == "not_compared"
    ranked = [row for row in by_model.values() if row["state"] == "ranked"]
    assert {row["model"] for row in ranked} == {"DF-IF", "OJ", "SD14", "SD21"}
    assert all(row["n_shared_prompts"] < row["n_prompts"] for row in ranked)


def test_a_model_without_checkpoints_is_called_by_its_name_alone(published: Path) -> None:
    page = (published / "report.html").read_text()
    assert page.count('<span class="checkpoint">DF-IF</span>') > 3
    assert '<span class="checkpoint">unnamed</span>' not in page
    assert "DF-IF is the best of 4" in page


def test_rank_colour_words_and_p_never_contradict(published: Path) -> None:
    assert contradictions(published, (published / "report.html").read_text()) == []
