"""What `salon agreement` says of the judge alone, held against the leaderboard of the same replies."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from PIL import Image

from rubrics.loading import SHIPPED
from tests.flows.flow_support import Said

CHECKPOINTS = ("step-1", "step-2", "step-3")
N_PROMPTS = 40
FILE = """\
name = "both"
rubric_folders = ["mine"]
[[sources]]
reader = "manifest"
path = "m.jsonl"
model = "m"
[[rubrics]]
id = "alignment"
[[rubrics]]
id = "second"
[[judges]]
model = "somebody"
recorded = true
[ratings]
dimension = "score"
scale = { min = 1, max = 5, step = 1 }
"""


@pytest.fixture
def judged(tmp_path: Path, salon: Callable[..., Said], request: pytest.FixtureRequest) -> Path:
    """Two rubrics judged, one of them rated: step-2 is better than step-1 at 5 % of three comparisons, and not of six.

    The parameter is what the other's dimension is called.
    """
    second = tmp_path / "mine" / "second"
    second.mkdir(parents=True)
    (second / "prompt.txt").write_bytes((SHIPPED / "alignment" / "prompt.txt").read_bytes())
    text = (SHIPPED / "alignment" / "rubric.toml").read_text()
    (second / "rubric.toml").write_text(
        text.replace('id = "alignment"', 'id = "second"').replace('"score"', f'"{getattr(request, "param", "other")}"')
    )
    drawn = random.Random(5)
    samples, replies, ratings = [], [], ["item_id,checkpoint,rater,rating"]
    for number, checkpoint in enumerate(CHECKPOINTS):
        for n in range(N_PROMPTS):
            place = f"{checkpoint}-{n}.png"
            Image.new("RGB", (8, 8), (5 * n, 60 * number, 0)).save(tmp_path / place)
            sample = {"item_id": f"i{n}", "checkpoint": checkpoint}
            samples.append(json.dumps(sample | {"image": place, "prompt": f"prompt {n}"}))
            for rubric in ("alignment", "second"):
                score = 2 + n % 2 + (number > 0) * ((n < 11) - (n in (11, 12))) + (number > 1) * (n % 4 > 0)
                replies.append(json.dumps(sample | {"rubric": rubric, "reply": f"Reasoning: so.\nScore: {score}"}))
            ratings += [f"i{n},{checkpoint},{rater},{drawn.randint(2, 4)}" for rater in ("ann", "bob")]
    for name, lines in (("m.jsonl", samples), ("replies.jsonl", replies), ("r.csv", ratings)):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    (tmp_path / "b.toml").write_text(FILE)
    said = salon("import", "b.toml", "--replies", "replies.jsonl")
    assert said.code == 0, said.err
    return tmp_path


def _table(folder: Path, name: str) -> pl.DataFrame:
    (path,) = (one for one in folder.glob(f"lake/publish/v1/both/**/{name}.parquet"))
    return pl.read_parquet(path)


def test_the_judge_alone_has_the_leaderboards_ranks_and_its_family(judged: Path, salon: Callable[..., Said]) -> None:
    said = salon("agreement", "b.toml", "--ratings", "r.csv")
    assert said.code == 0, said.err
    assert "<h3>Agreement with people</h3>" in (judged / "lake/publish/v1/index.html").read_text(), "at once, before any run"
    mine = _table(judged, "corrected_comparisons").filter(estimator="judge").sort("comparison", "checkpoint_a", "checkpoint_b")
    board = _table(judged, "comparisons").filter(rubric_id="alignment", category="__macro__")
    board = board.sort("comparison", "checkpoint_a", "checkpoint_b")
    one_answer = ["comparison", "checkpoint_a", "checkpoint_b", "p", "p_adjusted", "verdict", "family", "n_family"]
    assert mine.select(one_answer).rows() == board.select(one_answer).rows()
    assert set(mine["n_family"]) == {6}
    assert any(p < 0.05 / 3 and adjusted >= 0.05 for p, adjusted in mine.select("p", "p_adjusted").rows())

    ranked = ["checkpoint", "state", "rank_low", "rank_high", "n_family"]
    standings = _table(judged, "standings").filter(rubric_id="alignment").sort("checkpoint")
    of_judge = _table(judged, "corrected_standings").filter(estimator="judge").sort("checkpoint")
    assert of_judge.select(ranked).rows() == standings.select(ranked).rows()
    assert "The judge's ranks are the leaderboard's, corrected for all 6 comparisons of its family" in " ".join(said.out.split())


def test_another_floor_is_another_agreement(judged: Path, salon: Callable[..., Said]) -> None:
    replies = (judged / "replies.jsonl").read_text().splitlines()
    said = [json.loads(line) for line in replies]
    lost = next(row for row in said if row["checkpoint"] == "step-3" and row["rubric"] == "alignment")
    lost["reply"] = "I cannot judge this."
    (judged / "replies.jsonl").write_text("\n".join(map(json.dumps, said)))
    shutil.rmtree(judged / "lake")
    assert salon("import", "b.toml", "--replies", "replies.jsonl").code == 0
    assert "(new" in salon("agreement", "b.toml", "--ratings", "r.csv").out
    (judged / "b.toml").write_text(FILE + "[gate]\nmin_coverage = 1.0\n")
    again = salon("agreement", "b.toml", "--ratings", "r.csv")
    assert "unchanged" not in again.out
    assert "blocked" in again.out.split()


def test_what_people_say_is_a_family_of_its_own(judged: Path, salon: Callable[..., Said]) -> None:
    assert salon("agreement", "b.toml", "--ratings", "r.csv").code == 0
    families = _table(judged, "corrected_comparisons").drop_nulls("family").select("estimator", "family", "n_family").unique()
    assert {("judge", "headline | both", 6), ("labels", "headline | both | labels", 3)} <= set(families.rows())


def test_what_the_leaderboard_blocks_is_blocked_beside_people(judged: Path, salon: Callable[..., Said]) -> None:
    replies = (judged / "replies.jsonl").read_text().splitlines()
    said = [json.loads(line) for line in replies]
    for row in said:
        if row["checkpoint"] == "step-3" and int(row["item_id"][1:]) % 4 == 0:
            row["reply"] = "I cannot judge this."
    (judged / "replies.jsonl").write_text("\n".join(map(json.dumps, said)))
    shutil.rmtree(judged / "lake")
    assert salon("import", "b.toml", "--replies", "replies.jsonl").code == 1
    (blocked,) = _table(judged, "standings").filter(rubric_id="alignment", state="blocked").iter_rows(named=True)
    shown = salon("agreement", "b.toml", "--ratings", "r.csv")
    for name, kind in (("corrected", "status"), ("corrected_standings", "state")):
        mine = _table(judged, name).filter(pl.col("estimator") != "labels", checkpoint="step-3")
        assert mine.height == 2
        assert set(mine.select(kind, "reason", "estimate", "ci_low").rows()) == {("blocked", blocked["reason"], None, None)}
    assert shown.out.split().count("blocked") == 2
    (page,) = judged.glob("lake/publish/v1/both/agreement/*/agreement.md")
    assert page.read_text().count("blocked (") == 4


@pytest.mark.parametrize("judged", ["score"], indirect=True)
def test_ratings_say_which_rubric_they_are_for(judged: Path, salon: Callable[..., Said]) -> None:
    said = salon("agreement", "b.toml", "--ratings", "r.csv")
    assert "Ratings of score name no rubric and are compared with that of each of alignment, second." in " ".join(
        said.out.split()
    )
    assert set(_table(judged, "agreement")["rubric_id"]) == {"alignment", "second"}
    ask = ("agreement", "b.toml", "--between", "m/step-1", "--between", "m/step-2", "--label-count", "40", "--label-next")
    assert (
        "more than one dimension; available: alignment.score, second.score" in salon(*ask, "x", "--label-dimension", "score").err
    )
    asked = salon(*ask, "sheet.csv", "--label-dimension", "second.score")
    assert "score, rubric second: sheet.csv" in asked.out
    sheet = pl.read_csv(judged / "sheet.csv")
    assert set(sheet["dimension"]) == {"second.score"}
    sheet.with_columns(rating=pl.int_range(pl.len()) % 5 + 1).write_csv(judged / "sheet.csv")
    (judged / "named.toml").write_text(
        (judged / "b.toml").read_text().replace('dimension = "score"', 'dimension = "second.score"')
    )
    for file, ratings in (("b.toml", "sheet.csv"), ("named.toml", "r.csv")):
        shutil.rmtree(judged / "lake" / "publish")
        said = salon("agreement", file, "--ratings", ratings)
        assert (said.code, "name no rubric" in said.out) == (0, False), said.err
        for name in ("agreement", "corrected", "corrected_standings"):
            assert set(_table(judged, name).select("rubric_id", "dimension").rows()) == {("second", "score")}
        assert salon("verify", next(judged.glob("lake/publish/v1/both/agreement/*/")), "--file", file).code == 0


def test_ratings_of_which_none_counts_publish_nothing(judged: Path, salon: Callable[..., Said]) -> None:
    rows = (judged / "r.csv").read_text().splitlines()
    (judged / "hundred.csv").write_text("\n".join([rows[0], *(f"{row}0" for row in rows[1:])]))
    said = salon("agreement", "b.toml", "--ratings", "hundred.csv")
    assert said.code == 2
    assert "none of the 240 ratings can be used: 240 out_of_range" in said.err
    assert not list(judged.glob("lake/publish/v1/both/agreement/*"))


def test_no_word_is_cut_at_a_terminals_width(judged: Path, salon: Callable[..., Said], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    rows = (judged / "r.csv").read_text().splitlines()
    (judged / "few.csv").write_text("\n".join(rows[:15] + rows[81:95] + rows[161:175]))
    for ratings in ("r.csv", "few.csv"):
        said = salon("agreement", "b.toml", "--ratings", ratings)
        assert (said.code, "…" in said.out) == (0, False), said.out
    assert "too few prompts: 7 prompts of a checkpoint are labelled" in said.out
