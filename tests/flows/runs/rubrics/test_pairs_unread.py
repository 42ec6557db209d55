"""Pairs without verdicts: blocked, they say no rank or rating; let through, a pair asked twice is one."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest
from PIL import Image

from demo.drawing import draw_png
from demo.painter import painted_scenes
from demo.running import running_judge
from demo.truth import MACRO
from schemas.tables.published import POSITION_BIAS, PREFERENCE_RATINGS, PREFERENCES
from tasks.publish.reading import publications
from tests.flows.flow_support import Said, runs_of
from tests.publish.report.test_page import check_pairs
from tests.support.painting import paint

FILE = """\
name = "pairs"
[[sources]]
reader = "geneval"
path = "scenes/{{model}}/{{checkpoint}}"
[[rubrics]]
id = "preference"
[[judges]]
model = "salon-demo-judge"
base_url = "{url}"
repeats = 2
[nightly]
baseline = "demo-painter/step-1000"
[pairs]
meet = ["each_other"]
per_prompt = 2
"""
N_MEETING = 24
N_PAIRS = 3 * N_MEETING
"""Twelve scenes of two pictures each, three meetings."""


@contextmanager
def declining(folder: Path, share: float, file: str) -> Iterator[None]:
    """The judge that declines a share of what it is asked, running, and a benchmark file that names it."""
    (folder / "scenario.toml").write_text(f"seed = 5\nfaults.shares = {{ refusal = {share} }}\n")
    with running_judge(folder / "scenario.toml") as url:
        (folder / "b.toml").write_text(file.format(url=url))
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    paint(tmp_path)
    for scene in tmp_path.glob("scenes/*/*/*"):
        if int(scene.name) >= 12:
            shutil.rmtree(scene)
    with declining(tmp_path, 0.2, FILE):
        yield tmp_path


def latest(folder: Path) -> tuple[Path, dict]:
    """The publication made last, and its tables of pairs."""
    made = max((one.folder for one in publications(folder / "lake")), key=lambda path: path.stat().st_mtime_ns)
    tables = (PREFERENCES, PREFERENCE_RATINGS, POSITION_BIAS)
    return made, {table: pl.read_parquet(made / f"{table.name}.parquet") for table in tables}


def test_pairs_without_verdicts_say_nothing_and_a_pair_asked_twice_is_one(folder: Path, salon: Callable[..., Said]) -> None:
    said = salon("run", "b.toml")
    assert said.code == 1, said.err
    made, tables = latest(folder)
    assert set(tables[PREFERENCES].filter(category=MACRO)["status"]) == {"blocked"}
    assert set(tables[PREFERENCES]["n_unanswered"]) == {0}, "a refusal is a reply"
    health = pl.read_parquet(made / "health.parquet").filter(rubric_id="preference")
    n_refused = health.filter(measure="n_without_score", word="refusal")["value"].sum()
    assert n_refused > 0
    assert f"unreadable  refusal: {n_refused:,.0f} judgements declined" in said.out
    assert "`salon explain PAIR` shows them" in said.out
    counted = dict(health.group_by("measure").agg(pl.col("value").sum()).iter_rows())
    assert (counted["n_requests"], counted["n_judgements"]) == (2 * 2 * N_PAIRS,) * 2, "both orders, both repeats, each once"
    assert set(health.filter(measure="n_requests")["value"]) == {4 * N_PAIRS / 3}, "each checkpoint is shown first as often"
    assert tables[PREFERENCE_RATINGS].select("state", "reason", "rating", "rank_low").unique().rows() == [
        ("blocked", "unjudged", None, None)
    ]
    assert set(tables[POSITION_BIAS].filter(category=MACRO)["status"]) == {"blocked"}
    assert "rating [95 %, not corrected] \n" in said.out
    assert f"of {N_PAIRS} pairs have verdicts in both orders: too few to detect a position bias." in said.out
    page = (made / "report.html").read_text()
    assert f"<dt>Pairs, both orders</dt><dd>{N_PAIRS}</dd>" in page
    assert page.count("no rank") == 3
    assert 'data-col="rating"' not in page
    assert check_pairs(page.encode(), tables) > 0
    assert ('id="gallery"' in page, 'href="#gallery"' in page) == (False, False)
    for row in tables[PREFERENCES].filter(category=MACRO, dimension="overall_score").iter_rows(named=True):
        told = salon("explain", row["pair_id"], "--publication", made.name, "--limit", "1").out
        n_judged = row["n_pairs"] - row["n_unjudged"]
        assert f"recomputed  nothing from the {n_judged} of {N_MEETING} pairs that have a verdict: not published, " in told
        assert " % of the verdicts received, 80.0 % needed (gate.min_coverage); the counts agree" in told
        assert 0 < row["n_prompts"] <= 12

    with (folder / "b.toml").open("a") as file:
        file.write("[gate]\nmin_coverage = 0.1\n")
    said = salon("run", "b.toml")
    assert said.code == 0, said.err
    assert runs_of(folder / "lake").sort("started_at")["n_asked"][-1] == 0
    made, tables = latest(folder)
    for row in tables[PREFERENCES].filter(category=MACRO).iter_rows(named=True):
        explained = json.loads(salon("explain", row["pair_id"], "--limit", "0", "--json").out)
        assert explained["is_reproduced"], row["pair_id"]
        assert explained["n_pairs"] == len(explained["pairs"]) == N_MEETING
        assert {len(pair["orders"]) for pair in explained["pairs"]} == {4}
        assert explained["n_judged"] == N_MEETING - row["n_unjudged"]
        worth = [pair["value"] for pair in explained["pairs"] if pair["value"] is not None]
        assert sum(value > 0.5 for value in worth) == row["n_win"]
    assert set(tables[PREFERENCE_RATINGS]["state"]) == {"rated"}
    page = (made / "report.html").read_text()
    assert page.count(" shown first</p>") == 4 * page.count('<article class="card">') > 0, "both orders, both repeats"
    assert f"{row['n_verdicts']} of {2 * N_MEETING} verdicts received" in page
    assert check_pairs(page.encode(), tables) > 0
    in_words = [said.out, (made / "leaderboard.md").read_text(), re.sub("<[^>]+>", "", page)]
    told = r"On average over \d+ pairs, the picture shown first won .* of the repeats\."
    assert [len(re.findall(told, " ".join(one.split()).replace("repeats.", "repeats.\n"))) for one in in_words] == [
        1,
        1,
        1 + 3,
    ], "on the page also below each dimension"
    assert salon("verify", made, "--file", "b.toml").code == 0


def test_comparisons_that_would_be_blocked_are_asked_to_the_end(tmp_path: Path, salon: Callable[..., Said]) -> None:
    """The widest apart are decided before that by the verdicts that came, and a comparison left there stays blocked."""
    paint(tmp_path)
    file = FILE.replace("repeats = 2\n", "").replace(
        "per_prompt = 2", "adaptive = true\nprompts_a_round = 10\n[gate]\nmin_coverage = 0.99"
    )
    with declining(tmp_path, 0.03, file):
        assert salon("run", "b.toml").code == 1
    _, tables = latest(tmp_path)
    totals = tables[PREFERENCES].filter(category=MACRO, dimension="overall_score")
    blocked = totals.filter(status="blocked")
    assert blocked.height >= 1
    assert blocked.select("n_pairs", "is_stopped_early").unique().rows() == [(60, False)]


def test_a_category_that_the_judge_refuses_blocks_the_total_and_two_cut_lines_do_not(
    tmp_path: Path, judge_url: str, salon: Callable[..., Said]
) -> None:
    """The judge refuses what is none of its scenes: both pictures of the prompts of `y`."""
    scenes = list(painted_scenes(seed=1))
    prompts = list(dict.fromkeys(one.prompt for one in scenes))[:12]
    file = (
        FILE.format(url=judge_url).replace('"geneval"', '"manifest"').replace("repeats = 2\n", "").replace("per_prompt = 2\n", "")
    )
    (tmp_path / "b.toml").write_text(file.replace("[[sources]]", '[[sources]]\nmodel = "demo-painter"').replace("{model}/", ""))
    for place, checkpoint in enumerate(("step-1000", "step-2000")):
        folder = tmp_path / "scenes" / checkpoint
        folder.mkdir(parents=True)
        lines = []
        for number, prompt in enumerate(prompts):
            (folder / f"{number}.png").write_bytes(draw_png(scenes[12 * place + number].scene))
            lines.append(json.dumps({"image": f"{number}.png", "prompt": prompt, "category": "x"}))
        (folder / "manifest.jsonl").write_text("\n".join([*lines, '{"image": "0.png", "prom']))
    assert salon("run", "b.toml").code == 0
    _, tables = latest(tmp_path)
    (row,) = tables[PREFERENCES].filter(category=MACRO, dimension="overall_score").iter_rows(named=True)
    assert (row["n_pairs"], row["n_unjudged"], row["win_rate"] is None) == (13, 1, False), (
        "of the cut lines coverage alone is less"
    )
    assert json.loads(salon("explain", row["pair_id"], "--json").out)["is_reproduced"]

    for checkpoint, shade in (("step-1000", 50), ("step-2000", 200)):
        folder = tmp_path / "scenes" / checkpoint
        Image.new("RGB", (64, 64), (shade, shade, shade)).save(folder / "plain.png")
        with (folder / "manifest.jsonl").open("a") as manifest:
            manifest.write("\n" + json.dumps({"image": "plain.png", "prompt": "fog", "category": "y"}))
    said = salon("run", "b.toml")
    assert said.code == 1
    assert "step-2000 against step-1000: unjudged, no pair of one category has a verdict." in said.out
    made, tables = latest(tmp_path)
    (row,) = tables[PREFERENCES].filter(category=MACRO, dimension="overall_score").iter_rows(named=True)
    assert (row["status"], row["coverage"], row["coverage_floor"]) == ("blocked", 12 / 14, 0.8)
    assert row["bound_high"] - row["bound_low"] == pytest.approx(0.5)
    told = salon("explain", row["pair_id"], "--publication", made.name).out
    assert "not published, no pair of one category has a verdict; the counts agree" in told
    assert salon("verify", made, "--file", "b.toml").code == 0
