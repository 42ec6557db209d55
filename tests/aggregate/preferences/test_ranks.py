"""Ranks by pairs say what the published verdicts say, of all contestants: with a rating or without."""

from itertools import combinations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.statuses.cells import Total
from schemas.tables.published import PREFERENCE_RATINGS, PREFERENCES
from tests.aggregate.preferences.conftest import said, tables, verdicts

MIXED = "a b a b = " * 6
EQUALS = said("1", "2", MIXED) + said("2", "3", MIXED) + said("1", "3", MIXED)
SOME = "a a a b " * 30


def ranks(found, judge="eye"):
    mine = found[PREFERENCE_RATINGS].filter(judge_model=judge).sort("checkpoint")
    return {row["checkpoint"]: (row["rank_low"], row["rank_high"], row["n_ranked"]) for row in mine.iter_rows(named=True)}


def against_all(word, n=30):
    return [row for other in "123" for row in said("4", other, f"{word} " * n)]


FIRST, LAST = {"4": (1, 1, 4), **dict.fromkeys("123", (2, 4, 4))}, {"4": (4, 4, 4), **dict.fromkeys("123", (1, 3, 4))}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param(EQUALS + against_all("a"), FIRST, id="who won all is first, and nobody else may be"),
        pytest.param(EQUALS + against_all("b"), LAST, id="who lost all is last"),
        pytest.param(
            EQUALS + said("4", "1", "a " * 30), {"4": (1, 3, 4), "1": (2, 4, 4), **dict.fromkeys("23", (1, 4, 4))},
            id="it met one alone",
        ),
        pytest.param(
            EQUALS + against_all("a", 4), {"4": (None, None, None), **dict.fromkeys("123", (1, 3, 3))}, id="on too few prompts"
        ),
        pytest.param(
            EQUALS + said("4", "5", "a " * 30),
            {"4": (1, 4, 5), "5": (2, 5, 5), **dict.fromkeys("123", (1, 5, 5))}, id="an island",
        ),
        pytest.param(
            [row for two in combinations("123", 2) for row in said(*two, "b " * 30)],
            {"1": (3, 3, 3), "2": (2, 2, 3), "3": (1, 1, 3)}, id="nobody is rated",
        ),
        pytest.param(
            said("1", "2", "a " * 30) + said("2", "3", "a " * 30) + said("1", "3", "b " * 30),
            dict.fromkeys("123", (2, 2, 3)), id="round in a circle",
        ),
        pytest.param(
            EQUALS + said("4", "1", "a " * 30 + "? " * 40), dict.fromkeys("1234", (1, 4, 4)), id="what is unjudged could turn it"
        ),
    ],
)  # fmt: skip
def test_all_who_were_compared_are_ranked_by_what_was_found(rows, expected):
    assert ranks(tables(rows)) == expected


def test_a_rank_does_not_say_what_the_two_ones_own_comparison_leaves_open():
    """1 and 2 met seldom, and are far apart by way of 3 and 4: by ratings alone they are told apart."""
    far = [row for other in "34" for row in said("1", other, SOME) + said(other, "2", SOME)]
    never_met, met = tables(far), tables(far + said("1", "2", "a b a = a b a"))
    assert ranks(never_met)["1"] == (1, 1, 4)
    assert ranks(met)["1"] == (1, 2, 4), "2 may be above it"
    assert met[PREFERENCES].filter(checkpoint_a="2", checkpoint_b="1", category=Total.MACRO)["verdict"].to_list() == ["open"]


def test_ratings_part_no_two_that_met_in_some_categories_alone():
    """4 beats 3 in three of four of their own pairs, and is far below it by way of 1 and 2."""
    equals = [row for two in combinations("123", 2) for name in "xy" for row in said(*two, MIXED, name)]
    below = [row for one in "12" for name in "xy" for row in said(one, "4", "a a a a a a a b " * 5, name)]
    never_met, in_one = (tables(equals + below + beside) for beside in ([], said("4", "3", "a a a b " * 10, "x")))
    assert ranks(never_met) == {**dict.fromkeys("123", (1, 3, 4)), "4": (4, 4, 4)}
    assert ranks(in_one) == {**dict.fromkeys("12", (1, 3, 4)), "3": (1, 4, 4), "4": (3, 4, 4)}
    met = in_one[PREFERENCES].filter(checkpoint_a="4", checkpoint_b="3")
    reasons = dict(met.select("category", "reason").iter_rows())
    assert (reasons[Total.MACRO], reasons["x"]) == ("category_missing", None)


@pytest.mark.parametrize("family", ["benchmark", "pair"])
def test_the_family_of_a_rank_is_one_that_its_checkpoint_is_in(family):
    """3 met 2 alone, on too few prompts: it is compared by ratings."""
    found = tables(said("2", "1", SOME) + said("3", "2", "a a b ="), family=family)[PREFERENCE_RATINGS].sort("checkpoint")
    two = {"1": "preferences", "2": "preferences", "3": "ratings"}
    if family == "benchmark":
        expected = {one: (f"{name} | bench", 1 if name == "preferences" else 2) for one, name in two.items()}
    else:
        with_whom = {"1": "m/1 | m/2", "2": "m/1 | m/2", "3": "m/1 | m/3"}
        expected = {one: (f"{name} | pairs | eye | {with_whom[one]}", 1) for one, name in two.items()}
    assert {name: told for name, *told in found.select("checkpoint", "family", "n_family").iter_rows()} == {
        name: list(told) for name, told in expected.items()
    }


def test_all_judges_together_rank_whom_nobody_rates_too():
    rows = EQUALS + against_all("a")
    found = tables(pl.concat([verdicts(rows, "eye"), verdicts(rows, "ear")]))
    assert ranks(found, "__pooled__") == FIRST
    pooled = found[PREFERENCE_RATINGS].filter(judge_model="__pooled__")
    assert set(pooled.select("family", "n_family").iter_rows()) == {("ratings | bench", 6)}
    assert "__pooled__" not in found[PREFERENCES]["judge_model"].to_list()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([*combinations("1234", 2)]), st.floats(0, 1), st.integers(5, 40)), min_size=2))
def test_no_range_holds_a_rank_that_a_verdict_rules_out(meetings):
    met = {two: (share, n) for two, share, n in meetings}
    rows = [
        row
        for (a, b), (share, n) in met.items()
        for row in said(a, b, "".join("a " if k < share * n else "b " for k in range(n)))
    ]
    found = tables(rows)
    placed = ranks(found)
    for row in found[PREFERENCES].filter(category=Total.MACRO).iter_rows(named=True):
        if row["verdict"] in ("higher", "lower"):
            better, worse = (row[f"checkpoint_{end}"] for end in ("ab" if row["verdict"] == "higher" else "ba"))
            assert placed[better][1] < placed[better][2] == len(placed)
            assert placed[worse][0] > 1
    assert all(low is None or low <= high for low, high, _ in placed.values())
