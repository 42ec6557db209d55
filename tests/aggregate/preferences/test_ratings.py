"""The table preference_ratings: held against libraries the field trusts; who can be rated; what an island or a judge changes."""

import tracemalloc

import choix
import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.tables.published import PREFERENCE_RATINGS
from tasks.aggregate.preferences.davidson import Tallied, fitted
from tasks.aggregate.preferences.ratings import POINTS
from tests.aggregate.preferences.conftest import said, tables, verdicts

SEEDS = range(6)
CIRCLE = said("1", "2", "a a b a =") + said("2", "3", "a b b a =") + said("1", "3", "b a a a =")


def drawn(seed: int, n: int = 5, n_prompts: int = 40, *, has_ties: bool = True) -> Tallied:
    rng = np.random.default_rng(seed)
    one, other = (ends.repeat(n_prompts) for ends in np.triu_indices(n, 1))
    seen = rng.normal(0, 0.7, n)[one] - rng.normal(0, 0.7, n)[other] + rng.logistic(size=len(one))
    step = 0.5 if has_ties else 0.0
    win, loss = (seen > step) * 1.0, (seen < -step) * 1.0
    prompt = np.tile(np.arange(n_prompts), n * (n - 1) // 2)
    return Tallied(one, other, prompt, np.zeros_like(prompt), win, 1 - win - loss, loss)


def rated(rows, **how) -> dict[tuple[str, str], dict]:
    """The rows by judge and checkpoint."""
    found = tables(rows, **how)[PREFERENCE_RATINGS]
    return {(row["judge_model"], row["checkpoint"]): row for row in found.iter_rows(named=True)}


@pytest.mark.parametrize("seed", SEEDS)
def test_strengths_without_ties_are_those_of_choix(seed):
    tallied = drawn(seed, has_ties=False)
    won = np.where(tallied.win > 0, tallied.one, tallied.other), np.where(tallied.win > 0, tallied.other, tallied.one)
    theirs = choix.opt_pairwise(5, list(zip(*won, strict=True)), method="Newton-CG", tol=1e-12)
    assert fitted(tallied, has_ties=False).strengths == pytest.approx(theirs - theirs.mean(), abs=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_davidsons_strengths_and_ties_are_those_of_the_log_linear_model(seed):
    """Davidson's is a Poisson regression of the counts with a constant for each pair (Fienberg & Larntz, 1976)."""
    tallied, design, counts = drawn(seed), [], []
    for place, (i, j) in enumerate(zip(*np.triu_indices(5, 1), strict=True)):
        here = (tallied.one == i) & (tallied.other == j)
        for count, sign in ((tallied.win, 1), (tallied.tie, 0), (tallied.loss, -1)):
            row = np.zeros(5 + 1 + 10)
            row[i], row[j], row[5], row[6 + place] = sign / 2, -sign / 2, sign == 0, 1
            design.append(row[1:])
            counts.append(count[here].sum())
    theirs = sm.GLM(np.array(counts), np.array(design), family=sm.families.Poisson()).fit(tol=1e-12).params
    ours = fitted(tallied, has_ties=True)
    assert ours.strengths - ours.strengths[0] == pytest.approx(np.append(0, theirs[:4]), abs=1e-7)
    assert ours.tie_parameter == pytest.approx(np.exp(theirs[4]), abs=1e-7)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_covariance_is_that_of_a_logistic_regression_clustered_by_prompt(seed):
    tallied = drawn(seed, has_ties=False)
    n, n_prompts = len(tallied.one), 40
    design = np.zeros((n, 5))
    design[np.arange(n), tallied.one], design[np.arange(n), tallied.other] = 1, -1
    theirs = sm.Logit(tallied.win, design[:, 1:]).fit(
        disp=0, tol=1e-12, cov_type="cluster", cov_kwds={"groups": tallied.prompt, "use_correction": False}
    )
    ours = fitted(tallied, has_ties=False)
    expected = theirs.cov_params() * n_prompts / (n_prompts - 1)
    of_two = np.diag(expected)[:, None] + np.diag(expected)[None, :] - 2 * expected
    assert ours.errors.variances[0, 1:5] == pytest.approx(np.diag(expected), abs=1e-9)
    assert ours.errors.variances[1:5, 1:5] == pytest.approx(of_two, abs=1e-9)
    assert ours.errors.df[0, 1:5] == pytest.approx(n_prompts - 1)


def test_many_checkpoints_take_no_memory_by_their_square_for_each_prompt():
    """100 of them, each beside the first one on 200 prompts: the 101 × 101 numbers of each, all at once, were 16 MB an array."""
    rng = np.random.default_rng(1)
    other, prompt = (part.ravel() for part in np.meshgrid(np.arange(1, 100), np.arange(200)))
    win = rng.integers(0, 2, len(other)) * 1.0
    tallied = Tallied(np.zeros_like(other), other, prompt, np.zeros_like(other), win, 0 * win, 1 - win)
    tracemalloc.start()
    found = fitted(tallied, has_ties=False)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50_000_000
    rates = win.reshape(200, 99)
    mean, variance = rates.mean(axis=0), rates.var(axis=0, ddof=1) / 200
    assert found.errors.variances[0, 1:100] == pytest.approx(variance / (mean * (1 - mean)) ** 2, rel=1e-6)


def test_each_category_has_its_own_part_of_the_error():
    """By hand: 4 and 20 prompts, of which each category's are one half of the mean; without ties ν is none."""
    few, many = [1, 1, 0, 1], [1] * 11 + [0] * 9
    found = rated(
        said("2", "1", " ".join("ba"[won] for won in few), "few")
        + [
            (a, b, f"q{prompt}", word, of)
            for a, b, prompt, word, of in said("2", "1", " ".join("ba"[won] for won in many), "many")
        ]
    )["eye", "2"]
    mean = (np.mean(few) + np.mean(many)) / 2
    parts = [sum((won - mean) ** 2 for won in of) / len(of) ** 2 / 4 * len(of) / (len(of) - 1) for of in (few, many)]
    assert found["rating"] == pytest.approx(POINTS * np.log(mean / (1 - mean)))
    assert found["se"] == pytest.approx(POINTS * np.sqrt(sum(parts)) / (mean * (1 - mean)))
    assert found["df"] == pytest.approx(sum(parts) ** 2 / (parts[0] ** 2 / 3 + parts[1] ** 2 / 19))


def test_the_names_of_categories_change_nothing_where_prompts_are_in_several():
    words = "a b a a b a = b a a b a"
    small, large = (lambda name: said("2", "1", words[:9], name)), (lambda name: said("2", "1", words, name))
    ends = [rated(small(one) + large(other))["eye", "2"] for one, other in (("c", "d"), ("d", "c"))]
    assert [row["df"] for row in ends] == [pytest.approx(ends[0]["df"])] * 2
    assert ends[0]["se"] == pytest.approx(ends[1]["se"])


def test_points_are_above_the_baseline_and_400_are_odds_of_ten_to_one():
    found = rated(said("2", "1", "a a a a a a a a a a b"), baseline="m/1")
    assert found["eye", "1"]["rating"] == 0
    assert found["eye", "1"]["se"] == 0
    assert found["eye", "2"]["rating"] == pytest.approx(400)
    assert found["eye", "2"]["anchor"] == "m/1"
    assert pytest.approx(400 / np.log(10)) == POINTS
    free = rated(said("2", "1", "a a a a a a a a a a b"), baseline=None)
    assert [free["eye", name]["rating"] for name in "12"] == pytest.approx([-200, 200])
    assert {row["anchor"] for row in free.values()} == {"__mean__"}


UNRATED = {
    "an island": (CIRCLE + said("8", "9", "a b a b a"), {"8": "island", "9": "island"}),
    "won all": (CIRCLE + said("4", "1", "a a a a"), {"4": "won_all"}),
    "lost all": (CIRCLE + said("4", "1", "b b b b"), {"4": "lost_all"}),
    "a group that won all": (CIRCLE + said("4", "5", "a b") + said("5", "1", "a a"), {"4": "won_all", "5": "won_all"}),
    "behind one who won all": (CIRCLE + said("4", "1", "a a") + said("4", "5", "a a"), {"4": "won_all", "5": "separated"}),
    "one tie is enough": (CIRCLE + said("4", "1", "a a a ="), {}),
    "orders that disagree are ties": (CIRCLE + said("4", "1", "a a a f"), {}),
    "nothing read": (CIRCLE + said("4", "1", "? a? ?="), {"4": "not_judged"}),
    "nobody came back": (
        said("1", "2", "a a a") + said("2", "3", "a a"),
        {"1": "won_all", "2": "separated", "3": "lost_all"},
    ),
    "one won every pair of two": (said("2", "1", "a " * 18), {"2": "won_all", "1": "lost_all"}),
    "one won, another was not read": (
        said("2", "1", "a") + said("3", "1", "?"),
        {"2": "won_all", "1": "lost_all", "3": "not_judged"},
    ),
    "all unjudged": (said("1", "2", "? ?"), dict.fromkeys("12", "not_judged")),
}


@pytest.mark.parametrize(("rows", "reasons"), UNRATED.values(), ids=UNRATED)
def test_who_has_no_rating_says_why(rows, reasons):
    found = rated(rows)
    assert {name: row["reason"] for (_, name), row in found.items() if row["state"] == "not_rated"} == reasons
    assert all((row["rating"] is None) == (name in reasons) for (_, name), row in found.items())


@pytest.mark.parametrize(
    "rows", [CIRCLE + said("8", "9", "a b a b"), UNRATED["won all"][0], UNRATED["nothing read"][0]],
    ids=["an island of too few prompts to test", "won", "unread"],
)  # fmt: skip
def test_who_has_no_rating_changes_none_of_the_others(rows):
    alone, beside = rated(CIRCLE), rated(rows)
    for key, row in alone.items():
        assert [beside[key][name] for name in ("rating", "se", "ci_low", "rank_low", "rank_high", "tie_parameter")] == [
            row[name] for name in ("rating", "se", "ci_low", "rank_low", "rank_high", "tie_parameter")
        ]  # fmt: skip


def test_the_island_of_the_baseline_is_the_one_that_is_rated():
    rows = CIRCLE + said("8", "9", "a b a b a")
    assert {name for (_, name), row in rated(rows, baseline="m/9").items() if row["state"] == "rated"} == {"8", "9"}
    assert rated(rows, baseline="m/9")["eye", "1"]["reason"] == "island"


def test_all_ties_are_equals_whose_errors_nothing_shows():
    found = rated(said("2", "1", "= = = f s"))
    assert [row["rating"] for row in found.values()] == [0, 0]
    assert {row["tie_parameter"] for row in found.values()} == {None}
    assert {(row["rank_low"], row["rank_high"]) for row in found.values()} == {(1, 2)}
    assert [(row["se"], row["reason"]) for row in found.values()] == [(0, None), (None, "no_variation")]


def test_ties_without_a_circle_of_wins_are_half_wins():
    """Two that tied once and else one way: with a tie parameter no finite strengths would be the likeliest."""
    found = rated(said("2", "1", "a a a a a ="), baseline="m/1")
    assert found["eye", "2"]["rating"] == pytest.approx(POINTS * np.log(5.5 / 0.5))
    assert found["eye", "2"]["tie_parameter"] is None


def test_one_prompt_gives_ratings_without_intervals_or_ranks():
    row = rated([("2", "1", "p", "a"), ("2", "1", "p", "a"), ("2", "1", "p", "b")])["eye", "2"]
    assert (row["state"], row["reason"], row["se"], row["rank_low"]) == ("rated", "too_few_prompts", None, None)
    assert row["rating"] == pytest.approx(POINTS * np.log(2))


def test_judges_have_ratings_apart_and_pooled():
    one, other = verdicts(CIRCLE, "eye"), verdicts(said("1", "2", "? ?") + said("2", "3", "b b b a"), "ear")
    found = rated(pl.concat([one, other]), baseline="m/2")
    assert {judge for judge, _ in found} == {"eye", "ear", "__pooled__"}
    assert found["ear", "1"]["reason"] == "not_judged"
    assert found["ear", "3"]["rating"] == pytest.approx(POINTS * np.log(3))
    assert found["__pooled__", "2"]["n_pairs"] == found["eye", "2"]["n_pairs"] + found["ear", "2"]["n_pairs"]
    assert found["__pooled__", "3"]["rating"] > found["eye", "3"]["rating"]
    assert found["eye", "1"]["rating"] == rated(one, baseline="m/2")["eye", "1"]["rating"]
    assert {judge for judge, _ in rated(one)} == {"eye"}


def test_categories_weigh_the_same_in_ratings():
    """Twenty pairs of x say 3 to 1, four of y 1 to 3: weighed alike they are equals."""
    rows = said("2", "1", "a a a b " * 5, "x") + [("2", "1", f"q{n}", word, "y") for n, word in enumerate("bbba")]
    assert rated(rows, baseline="m/1")["eye", "2"]["rating"] == pytest.approx(0, abs=1e-6)


def test_ranks_follow_from_every_two_corrected_together():
    rows = said("2", "1", "a a a b " * 20) + said("3", "1", "a a a b " * 20) + said("3", "2", "a b " * 40)
    found = rated(rows, baseline="m/1")
    assert {name: (row["rank_low"], row["rank_high"]) for (_, name), row in found.items()} == {
        "1": (3, 3),
        "2": (1, 2),
        "3": (1, 2),
    }
    assert {(row["n_family"], row["n_ranked"], row["family"]) for row in found.values()} == {(3, 3, "preferences | bench")}


WORDS = st.lists(st.sampled_from(["a", "b", "=", "f", "?"]), min_size=4, max_size=12)


@settings(max_examples=25, deadline=None)
@given(WORDS, WORDS, WORDS, st.permutations(["1", "2", "3"]))
def test_other_names_give_the_same_ratings_under_other_names(first, second, third, names):
    new = dict(zip("123", names, strict=True))
    rows = [
        row for a, b, words in (("1", "2", first), ("2", "3", second), ("1", "3", third)) for row in said(a, b, " ".join(words))
    ]
    back = {"a": "b", "b": "a", "f": "s"}
    renamed = [(new[a], new[b], p, w, c) if new[a] < new[b] else (new[b], new[a], p, back.get(w, w), c) for a, b, p, w, c in rows]
    one, other = rated(rows, baseline=None), rated(renamed, baseline=None)
    unequal_groups = {row["state"] for row in one.values()} != {"rated"}  # of two groups as large the first by name is rated
    for name in "123":
        if not unequal_groups:
            assert other["eye", new[name]]["rating"] == pytest.approx(one["eye", name]["rating"], abs=1e-6)
            assert (other["eye", new[name]]["se"] is None) == (one["eye", name]["se"] is None)
            assert one["eye", name]["se"] is None or other["eye", new[name]]["se"] == pytest.approx(
                one["eye", name]["se"], abs=1e-4
            )


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.sampled_from(["a", "b", "=", "?"]), max_size=3), min_size=6, max_size=6))
def test_whoever_is_rated_has_a_finite_rating(words):
    """Every pattern of few games: the rule of ratings.py says exactly when the likelihood has a maximum."""
    pairs = [(a, b) for a in "1234" for b in "1234" if a < b]
    rows = [row for (a, b), of_pair in zip(pairs, words, strict=True) for row in said(a, b, " ".join(of_pair))]
    for row in rated(rows, baseline=None).values() if rows else ():
        if row["state"] == "rated":
            assert abs(row["rating"]) < 4000
            assert row["tie_parameter"] is None or 0 < row["tie_parameter"] < 1e4
