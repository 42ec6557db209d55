"""People's votes on the demo's pairs: agreement and ratings equal to figures taken by hand, bad rows left out, verified."""

import csv
import json
import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import choix
import polars as pl
import pytest

from tests.flows.flow_support import Said
from tests.flows.runs.rubrics.votes_by_hand import Pair, World, accuracy, davidson, drawn, kappa, leave_one_out, most, row_of
from tests.support.painting import paint

FILE = """\
name = "votes"
[[sources]]
reader = "geneval"
path = "scenes/{{model}}/{{checkpoint}}"
[[rubrics]]
id = "preference"
[[judges]]
model = "salon-demo-judge"
base_url = "{url}"
parameters = {{ temperature = 0, max_tokens = 600 }}
[nightly]
baseline = "demo-painter/step-1000"
[pairs]
meet = ["each_other"]
[ratings.votes]
columns = {{ vote = "choice" }}
words = {{ left = 1, right = 0, same = 0.5 }}
"""
JUDGE, PEOPLE, MAJORITY, OTHERS = "salon-demo-judge", "__people__", "__raters_majority__", "__other_raters_majority__"


@pytest.fixture
def judged(tmp_path: Path, judge_url: str, salon: Callable[..., Said]) -> World:
    """The painter's scenes, judged in pairs."""
    paint(tmp_path)
    (tmp_path / "b.toml").write_text(FILE.format(url=judge_url))
    said = salon("run", "b.toml", "--run-date", "2026-01-02")
    assert said.code == 0, said.err
    return World(tmp_path / "lake")


def test_votes_agree_and_rate_as_by_hand_and_bad_rows_are_left_out(
    judged: World, salon: Callable[..., Said], tmp_path: Path
) -> None:
    world = judged
    rows, votes = drawn(world)
    pair, other = list(votes["ann"])[:2]
    again = row_of(world, pair, "ann", votes["ann"][pair])
    bad = {
        "duplicate": again, "unknown_word": again | {"choice": "leftish"}, "missing": again | {"choice": ""},
        "same_sample": again | {"checkpoint_b": again["checkpoint_a"]}, "unmatched": again | {"seed_b": 77},
        "ambiguous": again | {"seed_a": None}, "not_compared": again | {"seed_a": 1, "seed_b": 1},
        "reserved_name": again | {"rater": "__raters_majority__"},
        "different_prompts": again | {"sample_id_a": pair[0], "sample_id_b": next(p[1] for p in votes["ann"] if p[1] != pair[1]
                                      and world.prompt[p] != world.prompt[pair])},
    }  # fmt: skip
    eve = [row_of(world, other, "eve", 1.0), row_of(world, other[::-1], "eve", 1.0)]  # of one pair, two ways
    (tmp_path / "votes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*rows, *bad.values(), *eve]))
    plain = [row_of(world, one, "solo", vote, dimension="alignment") for one, vote in untied(world).items()]
    with (tmp_path / "solo.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, plain[0])
        writer.writeheader()
        writer.writerows(plain)
    said = salon("agreement", "b.toml", "--votes", "votes.jsonl", "--votes", "solo.csv", "--run-date", "2026-01-02")
    assert said.code == 0, said.err
    assert "preference: overall_score, pairs" in said.out
    assert "'leftish' is not a vote; [ratings.votes] words has left, right, same" in said.out
    (folder,) = (tmp_path / "lake").glob("publish/v1/votes/agreement/*/")
    tables = {path.stem: pl.read_parquet(path) for path in folder.glob("*.parquet")}
    statuses = dict(tables["votes"].group_by("status").len().iter_rows())
    assert statuses == {"ok": len(rows) + len(plain), **dict.fromkeys(bad, 1), "conflicting": 2}
    told = dict(tables["votes"].filter(pl.col("status").is_in(["conflicting", "duplicate"])).select("vote_key", "detail").rows())
    n = len(rows) + len(bad)
    assert told[f"votes.jsonl#{n + 1}"] == f"votes.jsonl#{n + 2} says otherwise"
    assert set(told.values()) > {f"votes.jsonl#{n + 1} says otherwise", "as votes.jsonl#1"}
    check_agreement(tables["agreement"], world, votes)
    check_ratings(tables, world, votes)
    page = (folder / "agreement.md").read_text()
    assert "| each person" in page
    assert "people's majority" in page
    verified = salon("verify", folder, "--file", "b.toml")
    assert verified.code == 0, verified.out
    assert "unchanged" in salon(
        "agreement", "b.toml", "--votes", "votes.jsonl", "--votes", "solo.csv", "--run-date", "2026-01-02"
    ).out  # fmt: skip


def test_votes_without_raters_need_a_word_and_count_each(judged: World, salon: Callable[..., Said], tmp_path: Path) -> None:
    rows = [{name: text for name, text in row.items() if name != "rater"} for row in drawn(judged)[0]]
    (tmp_path / "crowd.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    refused = salon("agreement", "b.toml", "--votes", "crowd.jsonl")
    assert refused.code == 2
    assert "votes contradict another on the same" in refused.err
    (tmp_path / "b.toml").write_text(
        (tmp_path / "b.toml").read_text().replace("[ratings.votes]", "[ratings.votes]\nunnamed = true")
    )
    said = salon("agreement", "b.toml", "--votes", "crowd.jsonl")
    assert said.code == 0, said.err
    assert f"{len(rows)}: {len(rows)} ok" in said.out
    assert "It is unknown whose votes these are" in said.out
    (folder,) = (tmp_path / "lake").glob("publish/v1/votes/agreement/*/")
    assert "It is unknown whose votes these are" in (folder / "agreement.md").read_text()
    assert pl.read_parquet(folder / "preferences.parquet").filter(judge_model=PEOPLE)["n_pairs"].sum() > 0


def test_votes_on_some_of_the_judges_categories_give_no_total(judged: World, salon: Callable[..., Said], tmp_path: Path) -> None:
    """A mean over fewer categories than the judge's beside it is no win rate to compare with it."""
    votes = drawn(judged)[1]
    one = next(judged.category[pair] for pair in votes["ann"])
    mine = [row_of(judged, pair, "ann", vote) for pair, vote in votes["ann"].items() if judged.category[pair] == one]
    (tmp_path / "some.jsonl").write_text("".join(json.dumps(row) + "\n" for row in mine))
    said = salon("agreement", "b.toml", "--votes", "some.jsonl")
    assert said.code == 0, said.err
    (folder,) = (tmp_path / "lake").glob("publish/v1/votes/agreement/*/")
    rates = pl.read_parquet(folder / "preferences.parquet").filter(judge_model=PEOPLE)
    totals = rates.filter(category="__macro__").select("win_rate", "p", "reason").unique().rows()
    assert totals == [(None, None, "category_missing")]
    assert rates.filter(category=one)["win_rate"].is_not_null().all()


def untied(world: World) -> dict[Pair, float]:
    """One rater who always chooses, at random where the judge sees a tie."""
    draw = random.Random(7)
    seen = {pair: world.labels["alignment", pair] for pair in sorted(world.prompt)}
    return {pair: float(draw.random() < 0.2 + 0.6 * worth) for pair, worth in seen.items()}


def check_agreement(found: pl.DataFrame, world: World, votes: dict[str, dict[Pair, float]]) -> None:
    """Every figure of the judge and of people against people, over all pairs."""
    judge = {pair: worth for (dimension, pair), worth in world.labels.items() if dimension == "overall_score"}
    by_pair = {pair: {rater: mine[pair] for rater, mine in votes.items() if pair in mine} for pair in judge}
    majority = {pair: most(list(said.values())) for pair, said in by_pair.items() if said}
    rest = {
        rater: {pair: label for pair in mine if (label := most([v for r, v in by_pair[pair].items() if r != rater])) is not None}
        for rater, mine in votes.items()
    }
    compared = [("judge", JUDGE, MAJORITY, [judge], [majority])]
    compared += [("judge", JUDGE, rater, [judge], [mine]) for rater, mine in votes.items()]
    compared += [("rater", "ann", "bob", [votes["ann"]], [votes["bob"]])]
    compared += [("rater", rater, OTHERS, [votes[rater]], [rest[rater]]) for rater in votes]
    compared += [("raters", "__each_rater__", OTHERS, list(votes.values()), list(rest.values()))]
    rows = {
        (row["subject_kind"], row["subject"], row["against"], row["metric"]): row
        for row in found.filter(dimension="overall_score", category="__micro__").iter_rows(named=True)
    }
    for *who, subjects, against in compared:
        both = [(x[p], y[p], world.prompt[p]) for x, y in zip(subjects, against, strict=True) for p in x if p in y]
        x, y, prompts = map(list, zip(*both, strict=True))
        same = rows[*who, "vote_accuracy"]
        assert (same["n_items"], same["n_prompts"]) == (len(x), len(set(prompts))), who
        assert same["estimate"] == pytest.approx(accuracy(x, y), abs=1e-9), who
        assert (same["ci_low"], same["ci_high"]) == pytest.approx(leave_one_out(x, y, prompts, accuracy), abs=1e-9), who
        assert rows[*who, "cohen_kappa"]["estimate"] == pytest.approx(kappa(x, y), abs=1e-9), who
        decided = [(a, b) for a, b in zip(x, y, strict=True) if 0.5 not in (a, b)]
        alone = rows[*who, "vote_accuracy_without_ties"]
        assert (alone["estimate"], alone["n_items"]) == (pytest.approx(fmean(a == b for a, b in decided)), len(decided)), who
    assert rows["judge", JUDGE, MAJORITY, "unjudged"]["estimate"] == 0
    assert rows["judge", JUDGE, MAJORITY, "order_dependent"]["estimate"] == 0


def check_ratings(tables: dict[str, pl.DataFrame], world: World, votes: dict[str, dict[Pair, float]]) -> None:
    """People's points and win rates, beside the judge's."""
    every = [(pair, worth) for mine in votes.values() for pair, worth in mine.items()]
    n_each = Counter(world.category[pair] for pair, _ in every)
    weights = {name: len(every) / len(n_each) / n for name, n in n_each.items()}
    theirs = davidson([(*world.checkpoints(pair), worth, weights[world.category[pair]]) for pair, worth in every])
    ratings = tables["preference_ratings"]
    assert points(ratings, "overall_score", PEOPLE) == pytest.approx(theirs, abs=1e-2)
    assert points(ratings, "overall_score", JUDGE).keys() == theirs.keys()

    names = sorted(theirs)
    chosen = [(world.checkpoints(pair), worth) for pair, worth in untied(world).items()]
    won = [tuple(names.index(one) for one in (ends if worth else ends[::-1])) for ends, worth in chosen]
    strengths = choix.opt_pairwise(len(names), won, method="Newton-CG", tol=1e-12)
    of_choix = dict(zip(names, 400 / math.log(10) * (strengths - strengths[0]), strict=True))
    assert points(ratings, "alignment", PEOPLE) == pytest.approx(of_choix, abs=1e-4)

    rates = tables["preferences"].filter(judge_model=PEOPLE, dimension="overall_score", category="__macro__")
    assert rates.height == 3
    for row in rates.iter_rows(named=True):
        ends = row["checkpoint_b"], row["checkpoint_a"]
        mine = defaultdict(list)
        for pair, worth in every:
            if world.checkpoints(pair) == ends:
                mine[world.category[pair]].append(1 - worth)
        assert row["win_rate"] == pytest.approx(fmean(fmean(one) for one in mine.values()), abs=1e-9), ends
        assert row["n_pairs"] == sum(map(len, mine.values())), "each vote is a verdict of its own"
        assert row["family"].endswith("| __people__")
        assert row["n_family"] == 3, "people's comparisons are corrected apart from the judge's"


def points(ratings: pl.DataFrame, dimension: str, judge: str) -> dict[str, float]:
    return dict(ratings.filter(dimension=dimension, judge_model=judge).select("checkpoint", "rating").iter_rows())


@pytest.mark.parametrize(
    ("file", "rows", "message"),
    [
        ("alignment", "prompt,choice\np,left\n", "no rubric of the benchmark file compares pairs"),
        ("preference", "prompt,vote\np,left\n", "has no column 'choice', which [ratings.votes] names"),
        ("preference", "image,choice\np,left\n", "does not name sample a: map one of sample_id_a, item_id_a, image_a, or prompt"),
        ("preference", "prompt,choice\np,left\n", "none of the 1 votes matches two samples of the dataset"),
    ],
)
def test_what_cannot_be_votes_is_said_at_once(
    file: str, rows: str, message: str, salon: Callable[..., Said], tmp_path: Path
) -> None:
    paint(tmp_path)
    (tmp_path / "b.toml").write_text(FILE.format(url="http://127.0.0.1:9").replace('"preference"', f'"{file}"'))
    (tmp_path / "v.csv").write_text(rows)
    said = salon("agreement", "b.toml", "--votes", "v.csv")
    assert said.code == 2
    assert message in " ".join(said.err.split())
