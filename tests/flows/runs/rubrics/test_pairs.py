"""Pairs from a benchmark file to the page: bought once in both orders, the painter's known truth found, verified, explained."""

import json
import re
import shutil
from collections import defaultdict
from collections.abc import Callable
from functools import lru_cache
from itertools import permutations, product
from pathlib import Path
from random import Random

import polars as pl
import pytest

from demo.comparing import preference
from demo.drawing import draw_png
from demo.scenes import Errors, ask, compose
from demo.sentences import phrase
from demo.truth import MACRO, outcomes
from demo.world import CATEGORIES, CHECKPOINTS
from schemas.errors import InputError
from schemas.tables.published import POSITION_BIAS, PREFERENCE_RATINGS, PREFERENCES
from schemas.tables.stored import JUDGEMENTS
from tasks.publish.reading import current
from tests.flows.flow_support import Said, runs_of
from tests.publish.report.test_page import check_pairs
from tests.support.painting import paint

FILE = """\
name = "pairs"
[[sources]]
name = "scenes"
reader = "geneval"
path = "scenes/{{model}}/{{checkpoint}}"
{rubrics}
[[judges]]
model = "salon-demo-judge"
base_url = "{url}"
parameters = {{ temperature = 0, max_tokens = 600 }}
price = {{ input_usd_per_million = 1, output_usd_per_million = 4 }}
[nightly]
baseline = "demo-painter/step-1000"
[pairs]
{pairs}
"""


@pytest.fixture
def world(tmp_path: Path, judge_url: str) -> Callable[..., Path]:
    """A benchmark file beside the painter's scenes."""
    paint(tmp_path)

    def write(pairs: str = "", *rubrics: str) -> Path:
        chosen = "".join(f'[[rubrics]]\nid = "{name}"\n' for name in rubrics or ("preference",))
        (tmp_path / "b.toml").write_text(FILE.format(url=judge_url, pairs=pairs, rubrics=chosen))
        return tmp_path

    return write


def tables_of(folder: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(preferences, ratings) of the current publication."""
    published = current(folder / "lake").folder
    return tuple(pl.read_parquet(published / f"{table.name}.parquet") for table in (PREFERENCES, PREFERENCE_RATINGS))  # type: ignore[return-value]


def expected_wins() -> dict[tuple[str, str, str], float]:
    """(checkpoint, other checkpoint, dimension) -> expected share of wins, ties as halves: the mean over the categories.

    Two checkpoints make their errors apart from each other.
    """
    wins: dict[tuple[str, str, str], float] = defaultdict(float)
    for (one, other), category in product(permutations(CHECKPOINTS, 2), CATEGORIES):
        for (mine, p_mine), (theirs, p_theirs) in product(outcomes(one, category), outcomes(other, category)):
            for dimension, won in _wins_of(category, mine, theirs).items():
                wins[one, other, dimension] += p_mine * p_theirs * won / len(CATEGORIES)
    return wins


@lru_cache(maxsize=100_000)
def _wins_of(category: str, mine: Errors, theirs: Errors) -> dict[str, float]:
    """Dimension of `preference` -> 1 where a picture with `mine` wins against one with `theirs`, 0.5 where they tie."""
    rng = Random(0)
    asked = ask(category, 1, rng)[0]
    compared = preference(asked, compose(asked, mine, rng), compose(asked, theirs, rng))
    return {dimension: {"first": 1.0, "tie": 0.5, "second": 0.0}[word] for dimension, (word, _) in compared.items()}


def _leave_scenes(folder: Path, n: int) -> None:
    for scene in folder.glob("scenes/*/*/*"):
        if int(scene.name) >= n:
            shutil.rmtree(scene)


def test_pairs_alone_find_the_painters_truth_and_are_bought_once(world: Callable[..., Path], salon: Callable[..., Said]) -> None:
    folder = world()
    assert "at most these" not in salon("plan", "b.toml").out
    said = salon("run", "b.toml", "--run-date", "2026-01-02")
    assert said.code == 0, said.err
    assert "step-3000 is better than step-2000: it wins " in said.out
    assert "pairs       9 win rates" in said.out
    assert "\n step-3000 is the best of 3.\n" in said.out
    assert "next        salon table    salon explain PAIR\n" in said.out
    assert "cells " not in said.out
    preferences, ratings = tables_of(folder)
    truth = expected_wins()
    totals = preferences.filter(category=MACRO)
    assert totals.height == 9, "three dimensions, each two of three checkpoints, since one of them is the baseline of both"
    for row in totals.iter_rows(named=True):
        value = truth[row["checkpoint_a"], row["checkpoint_b"], row["dimension"]]
        low, high = row["ci_low_adjusted"], row["ci_high_adjusted"]
        assert low <= value <= high, (row["checkpoint_a"], row["checkpoint_b"], row["dimension"], value, low, high)
        assert row["n_order_dependent"] == row["n_unjudged"] == 0, "this judge looks at pictures, not at places"
    overall = ratings.filter(dimension="overall_score").sort("rating", descending=True)
    assert overall["checkpoint"].to_list() == ["step-3000", "step-2000", "step-1000"]
    assert overall["rank_low"].to_list() == [1, 2, 3]
    assert set(totals.filter("is_primary")["dimension"]) == {"overall_score"}, "claims are made of the headline alone"

    assert salon("run", "b.toml", "--run-date", "2026-01-03").code == 0
    assert runs_of(folder / "lake").sort("started_at")["n_asked"].to_list() == [360, 0], "60 prompts, 3 meetings, 2 orders; once"
    published = current(folder / "lake").folder
    verified = salon("verify", published, "--file", "b.toml")
    assert verified.code == 0, verified.out
    page = (published / "report.html").read_text()
    assert "Better than the baseline?" in page
    assert 'href="compare.html"' not in page, "no sample was judged by itself: there are no pages of pictures"
    assert not (published / "compare.html").exists()
    tables = {
        table: pl.read_parquet(published / f"{table.name}.parquet") for table in (PREFERENCES, PREFERENCE_RATINGS, POSITION_BIAS)
    }
    assert check_pairs(page.encode(), tables) > 100, "every number of pairs is the table's, rounded"
    assert page.count("shown first") >= 12, "pairs stand side by side, with both orders' words"
    in_words = [said.out, (published / "leaderboard.md").read_text(), re.sub("<[^>]+>", "", page)]
    n_said = [" ".join(one.split()).count(" of the verdicts (a tie counts as half); in 0") for one in in_words]
    assert n_said == [1, 1, 1 + 3], "on the page also below each dimension"
    assert "better" in in_words[1]
    for row in preferences.filter(category=MACRO).iter_rows(named=True):
        explained = json.loads(salon("explain", row["pair_id"], "--limit", "2", "--json").out)
        assert explained["is_reproduced"], row["pair_id"]
        assert [len(pair["orders"]) for pair in explained["pairs"]] == [2, 2]
    told = salon("explain", preferences.filter(category="counting")["pair_id"][0], "--limit", "1").out
    assert "shown first: " in told
    assert "recomputed" in told
    assert "does not agree" not in told
    assert "pairs in both orders" in salon("table").out
    gated = salon("gate")
    assert (gated.code, "better" in gated.out, "50 % is no change." in " ".join(gated.out.split())) == (0, True, True), gated
    worse = salon("gate", "--baseline", "demo-painter/step-3000", "--candidate", "demo-painter/step-2000")
    assert (worse.code, "Regression: worse in 1 of 1 comparison." in worse.out) == (1, True), worse


def test_how_pairs_are_cut_into_parts_is_read_from_the_lake(world: Callable[..., Path], salon: Callable[..., Said]) -> None:
    folder = world('meet = ["predecessor"]\n[limits]\nshard_size = 7')
    _leave_scenes(folder, 12)
    assert salon("run", "b.toml", "--run-date", "2026-01-02").code == 0
    for n, size in enumerate((7, 9, 2)):
        world(f'meet = ["predecessor"]\n[limits]\nshard_size = {size}')
        shutil.rmtree(folder / "lake" / "planned", ignore_errors=True)  # which can be deleted at any time
        assert salon("run", "b.toml", "--run-date", f"2026-01-0{2 + n}").code == 0
        for given in ((), ("--file", "b.toml")):
            verified = salon("verify", *given)
            assert verified.code == 0, verified.out
    assert runs_of(folder / "lake")["n_asked"].sum() == 48
    assert salon("export", "--to", "bundle", "--out", "sent.zip", "--with-pictures").code == 0
    assert salon("verify", "sent.zip").code == 0


def test_a_later_run_with_more_meetings_buys_only_what_is_new(world: Callable[..., Path], salon: Callable[..., Said]) -> None:
    folder = world('meet = ["predecessor"]')
    _leave_scenes(folder, 12)  # a fifth of them will do: what they say is asked elsewhere
    assert salon("run", "b.toml", "--run-date", "2026-01-02").code == 0
    world('meet = ["each_other"]', "preference", "alignment")
    assert salon("run", "b.toml", "--run-date", "2026-01-03").code == 0
    runs = runs_of(folder / "lake").sort("started_at")
    assert runs["n_asked"].to_list() == [48, 72 + 24], "alignment of 72 pictures, and the third meeting"
    orders = pl.concat([pl.read_parquet(path / "*.parquet") for path in (folder / "lake" / JUDGEMENTS.name).iterdir()])
    both = orders.drop_nulls("second_sample_id").group_by(pl.concat_list("sample_id", "second_sample_id").list.sort())
    assert both.agg(pl.col("second_checkpoint").n_unique())["second_checkpoint"].unique().to_list() == [2]
    cells = pl.read_parquet(current(folder / "lake").folder / "benchmark_long.parquet")
    assert cells["rubric_id"].unique().to_list() == ["alignment"], "a win is no score"


def test_where_nobody_meets_the_run_says_what_to_write(world: Callable[..., Path], salon: Callable[..., Said]) -> None:
    folder = world('meet = ["baseline"]')
    text = (folder / "b.toml").read_text()
    (folder / "b.toml").write_text(text.replace("demo-painter/step-1000", "step-1000"))
    said = salon("run", "b.toml")
    assert said.code == 2
    assert "demo-painter/step-1000, demo-painter/step-2000" in said.err
    assert 'meet = ["each_other"]' in said.err


def test_adaptive_pairs_are_left_once_decided_and_a_run_cut_short_decides_the_same(
    world: Callable[..., Path], salon: Callable[..., Said]
) -> None:
    folder = world("adaptive = true\nprompts_a_round = 10")
    assert "pairs       at most these; a comparison that is decided is not asked further" in salon("plan", "b.toml").out
    ended = salon("run", "b.toml", "--run-date", "2026-01-01", "--max-usd", "0.15").err
    n_left = 360 - int(runs_of(folder / "lake")["n_asked"].item())
    assert f"max_usd = 0.15 is reached: {n_left} of 360 requests have no reply" in ended, "those of later rounds too"
    with pytest.raises(InputError, match="no publication of pairs has a cell with an estimate"):
        tables_of(folder)  # a planned category was not reached: there is no total, and nothing else is decided by chance
    said = salon("run", "b.toml", "--run-date", "2026-01-02")
    assert said.code == 0, said.err
    preferences, _ = tables_of(folder)
    totals = preferences.filter(category=MACRO, dimension="overall_score")
    early = totals.filter("is_stopped_early")
    assert early.select("checkpoint_a", "checkpoint_b").rows() == [("step-3000", "step-1000")], "the widest apart"
    assert early["n_prompts"][0] < 60
    assert early["verdict"].to_list() == ["higher"]
    assert early["n_unjudged"].to_list() == [0], "what was left unasked is no failure"
    assert totals.filter(~pl.col("is_stopped_early"))["n_prompts"].to_list() == [60, 60]
    assert "1 of 3 comparisons are decided" in " ".join(said.err.split())
    n_asked = 2 * int(totals["n_prompts"].sum())
    assert salon("run", "b.toml", "--run-date", "2026-01-03").code == 0
    first, rest, again = runs_of(folder / "lake").sort("started_at")["n_asked"]
    assert 0 < first < n_asked
    assert (first + rest, again) == (n_asked, 0), "what an uncut run asks, which the counts above are of"
    verified = salon("verify", current(folder / "lake").folder, "--file", "b.toml")
    assert verified.code == 0, verified.out
    explained = json.loads(salon("explain", early["pair_id"][0], "--json").out)
    assert explained["is_reproduced"]
    assert explained["n_pairs"] == early["n_prompts"][0]
    for pairs in ("adaptive = true\nprompts_a_round = 15", ""):  # the same pairs in other parts are another plan
        world(pairs)
        said = salon("run", "b.toml", "--run-date", "2026-01-04")
        assert said.code == 0, said.err
    assert not tables_of(folder)[0]["is_stopped_early"].any()
    assert runs_of(folder / "lake")["n_asked"].sum() == 360, "the rest, and no reply twice"


def test_two_edits_of_one_picture_are_compared_beside_their_source(
    tmp_path: Path, judge_url: str, salon: Callable[..., Said]
) -> None:
    """One editor does what it is told; the other changes nothing, which preserves all and is not the better one."""
    rng, rows = Random(5), []
    for number, asked in enumerate(ask("two_object", 6, rng)):
        before = compose(ask("single_object", 1, rng)[0], Errors(), rng)
        pictures = {"source": before, "good": compose(asked, Errors(), rng), "idle": before}
        for name, scene in pictures.items():
            (tmp_path / f"{number}-{name}.png").write_bytes(draw_png(scene))
        told = "a photo of " + phrase(asked)
        own = {"prompt": told, "before": f"{number}-source.png"}
        rows += [own | {"model": model, "after": f"{number}-{model}.png"} for model in ("good", "idle")]
    (tmp_path / "edits.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "b.toml").write_text(
        'name = "edits"\n[[sources]]\nreader = "manifest"\npath = "edits.jsonl"\n'
        'pictures = { image = "after", source = "before" }\n[[rubrics]]\nid = "edit_preference"\n'
        f'[[judges]]\nmodel = "salon-demo-judge"\nbase_url = "{judge_url}"\n[pairs]\nmeet = ["each_other"]\n'
    )
    said = salon("run", "b.toml")
    assert said.code == 0, said.err
    preferences, _ = tables_of(tmp_path)
    won = {row["dimension"]: row for row in preferences.filter(category=MACRO).iter_rows(named=True)}
    assert {row["model_a"] for row in won.values()} == {"good"}
    assert won["overall_score"]["n_win"] == won["instruction"]["n_win"] == 6
    assert won["preservation"]["n_win"] == 0
    assert won["preservation"]["n_loss"] >= 4, "where the instruction names what was there, leaving it out is no loss"
    assert salon("verify", current(tmp_path / "lake").folder, "--file", "b.toml").code == 0


def test_one_checkpoint_alone_is_told_that_it_meets_nobody(world: Callable[..., Path], salon: Callable[..., Said]) -> None:
    folder = world()
    for other in ("step-2000", "step-3000"):
        shutil.rmtree(folder / "scenes" / "demo-painter" / other)
    said = salon("plan", "b.toml")
    assert said.code == 2
    assert "no two samples of scenes (its first row: " in said.err
    assert "one checkpoint alone has no opponent" in said.err
