"""Whole runs and nights of sources with a row that nobody could read: it costs no other row, no table and no night anything."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from demo.drawing import draw_png
from demo.painter import painted_scenes
from schemas.statuses.cells import Estimand
from tests.flows.flow_support import Said, cells_of

pytestmark = pytest.mark.slow

BENCHMARK = """\
name = "unread"
lake = "lake"
[[sources]]
name = "set"
reader = "manifest"
path = "{path}"
model = "painter"
[[rubrics]]
id = "alignment"
[[judges]]
model = "salon-demo-judge"
base_url = "{url}"
[nightly]
schedule = "0 2 * * *"
"""
CUT = '{"image": "0.png", "prom'
LIKE_THESE = Estimand.PROMPTS_LIKE_THESE.value
N_PROMPTS = 10


def lines_of(folder: Path, checkpoints: Sequence[str], *, categories: Sequence[str | None] = ("a", "b")) -> dict[str, list[str]]:
    """A line for each picture, by checkpoint; the pictures stand in the folder."""
    found: dict[str, list[str]] = {one: [] for one in checkpoints}
    scenes = list(painted_scenes(seed=1))
    prompts = list(dict.fromkeys(one.prompt for one in scenes))
    for place, checkpoint in enumerate(checkpoints):
        for number in range(N_PROMPTS):
            picture = f"{place}-{number}.png"
            (folder / picture).write_bytes(draw_png(scenes[place * N_PROMPTS + number].scene))
            row = {"image": picture, "prompt": prompts[number], "category": categories[number % len(categories)]}
            found[checkpoint].append(json.dumps(row | {"checkpoint": checkpoint}))
    return found


def write(folder: Path, url: str, path: str = "m.jsonl") -> Path:
    (folder / "b.toml").write_text(BENCHMARK.format(path=path, url=url))
    return folder / "b.toml"


def test_a_cut_line_in_one_folder_is_one_failure_of_its_checkpoint(
    tmp_path: Path, judge_url: str, salon: Callable[..., Said]
) -> None:
    for checkpoint in ("1", "2"):
        folder = tmp_path / "made" / checkpoint
        folder.mkdir(parents=True)
        lines = lines_of(folder, [checkpoint])[checkpoint]
        (folder / "manifest.jsonl").write_text("\n".join([*lines, CUT] if checkpoint == "2" else lines))
    file = write(tmp_path, judge_url, "made/{checkpoint}")
    assert json.loads(salon("plan", file, "--json").out)["warnings"] == []
    assert salon("run", file).code == 0
    macro = cells_of(tmp_path / "lake").filter(category="__macro__", estimand=LIKE_THESE).sort("checkpoint")
    assert macro.select("checkpoint", "status", "n_judgements", "n_failed").rows() == [("1", "ok", 10, 0), ("2", "ok", 11, 1)]
    told = salon("explain", macro["cell_id"][1]).out
    assert "counts      11 judgements, 10 with a score, 1 without (bad_value 1)" in told
    assert "agrees" in told


def test_a_cut_line_that_was_to_say_its_checkpoint_is_of_none_and_no_night_is_about_it(
    tmp_path: Path, judge_url: str, salon: Callable[..., Said]
) -> None:
    lines = [line for mine in lines_of(tmp_path, ["step-1", "step-2"]).values() for line in mine]
    (tmp_path / "m.jsonl").write_text("\n".join([*lines, CUT]))
    file = write(tmp_path, judge_url)
    planned = json.loads(salon("plan", file, "--json").out)
    assert [one["checkpoint"] for one in planned["checkpoints"]] == ["step-1", "step-2"]
    assert (planned["n_samples"], planned["n_by_status"]["bad_value"]) == (21, 1)
    why = "of 1 row nobody could read which checkpoint made it: not judged, and in no checkpoint's figures"
    note = f"{why}; the first: set, m.jsonl#21"
    assert [one.startswith(note) for one in planned["notes"]] == [True]
    night = salon("nightly", file)
    assert (night.code, "the night of" in night.out, "painter/step-2" in night.out) == (0, True, True)
    assert note in " ".join(night.err.split())
    ran = salon("run", file)
    assert (ran.code, "has_a_judgement" in ran.out) == (0, False)
    cells = cells_of(tmp_path / "lake")
    assert set(cells.select("model", "checkpoint").rows()) == {("painter", "step-1"), ("painter", "step-2")}
    assert cells["n_failed"].sum() == 0


def test_where_no_row_can_say_its_checkpoint_the_broken_one_is_of_the_same(
    tmp_path: Path, judge_url: str, salon: Callable[..., Said]
) -> None:
    lines = [json.dumps(json.loads(line) | {"checkpoint": None}) for line in lines_of(tmp_path, ["1"])["1"]]
    (tmp_path / "m.jsonl").write_text("\n".join([*lines, CUT]))
    assert salon("run", write(tmp_path, judge_url)).code == 0
    macro = cells_of(tmp_path / "lake").filter(category="__macro__", estimand=LIKE_THESE)
    assert macro.select("checkpoint", "n_failed").rows() == [("unnamed", 1)]


def test_where_nobody_could_read_who_made_any_row_the_plan_says_what_is_wrong_with_them(
    tmp_path: Path, salon: Callable[..., Said]
) -> None:
    (tmp_path / "m.jsonl").write_text(json.dumps({"image": None, "prompt": "x", "checkpoint": ["1"]}))
    planned = salon("plan", write(tmp_path, "http://127.0.0.1:1/v1"))
    assert planned.code == 2
    assert "has no sample of a checkpoint: bad_value (the first: set, m.jsonl#1: checkpoint: expected a text" in planned.err


def test_a_category_with_a_reserved_name_costs_its_row_alone(tmp_path: Path, judge_url: str, salon: Callable[..., Said]) -> None:
    lines = lines_of(tmp_path, ["1"])["1"]
    lines[0] = json.dumps(json.loads(lines[0]) | {"category": "__macro__"})
    (tmp_path / "m.jsonl").write_text("\n".join(lines))
    file = write(tmp_path, judge_url)
    planned = json.loads(salon("plan", file, "--json").out)
    assert (planned["n_requests"], planned["n_by_status"]["bad_value"]) == (9, 1)
    assert salon("run", file).code == 0
    macro = cells_of(tmp_path / "lake").filter(category="__macro__", estimand=LIKE_THESE)
    assert macro.select("status", "n_failed").rows() == [("ok", 1)]


def test_a_mean_that_one_category_blocks_says_which(tmp_path: Path, judge_url: str, salon: Callable[..., Said]) -> None:
    lines = lines_of(tmp_path, ["1"])["1"]
    gone = {"image": "gone.png", "prompt": "a cat", "category": "c", "checkpoint": "1"}
    (tmp_path / "m.jsonl").write_text("\n".join([*lines, json.dumps(gone)]))
    assert salon("run", write(tmp_path, judge_url)).code == 1
    why = "blocked: 0.0 % of the judgements in category c have a score (90.9 % of all judgements have one, but a mean"
    table = " ".join(salon("table").out.split())
    assert why in table
    assert "gate.min_coverage" not in table
    macro = cells_of(tmp_path / "lake").filter(category="__macro__", estimand=LIKE_THESE)
    assert (
        "90.9 % of the judgements have a score, but none in one of the categories;" in salon("explain", macro["cell_id"][0]).out
    )


def test_a_share_that_draws_no_prompt_is_said_to_and_not_the_source(
    tmp_path: Path, judge_url: str, salon: Callable[..., Said]
) -> None:
    (tmp_path / "m.jsonl").write_text("\n".join(lines_of(tmp_path, ["1"])["1"]))
    file = write(tmp_path, judge_url)
    file.write_text(file.read_text().replace("[nightly]", "share = 0.000001\n[nightly]"))
    said = salon("plan", "b.toml")
    assert said.code == 2
    assert "share (1e-06 of salon-demo-judge) draws none of the 10 prompts of 10 samples; raise it" in " ".join(said.err.split())
