"""The table of standings: who has a rank, who has none and why, and the means over shared prompts."""

import random

import polars as pl
import pytest

from schemas.tables.catalogue import TABLES
from schemas.tables.published import COMPARISONS
from tasks.publish.leaderboard import answers_of
from tasks.publish.standings.placed_cells import placed
from tests.aggregate.scored_rows import FAILS, PROMPTS, drawn, scored


def standings(tables, **where):
    return {row["checkpoint"]: row for row in tables["standings"].filter(**where).iter_rows(named=True)}


def over(prompts, checkpoint, score, category=None):
    return [
        {"checkpoint": checkpoint, "category": category, "prompt": p, "sample": p, "scores": {"q": score(n)}}
        for n, p in enumerate(prompts)
    ]


def test_ranks_follow_from_the_verdicts(make_rubric, all_tables):
    tables = all_tables(drawn(5, 3, 5, 5.05, 9), make_rubric({None: ("q",)}))
    found = standings(tables)
    assert {name: (row["state"], row["rank_low"], row["rank_high"], row["n_ranked"]) for name, row in found.items()} == {
        "0": ("ranked", 4, 4, 4), "1": ("ranked", 2, 3, 4), "2": ("ranked", 2, 3, 4), "3": ("ranked", 1, 1, 4),
    }  # fmt: skip
    assert [(row["predecessor"], row["verdict_predecessor"]) for row in found.values()] == [
        (None, None), ("0", "higher"), ("1", "open"), ("2", "higher"),
    ]  # fmt: skip
    wide = {row["checkpoint"]: row for row in tables["benchmark_wide"].iter_rows(named=True)}
    for name, row in found.items():
        assert {
            column: wide[name][column] for column in ("rank_low", "rank_high", "n_ranked", "p_predecessor", "delta_predecessor")
        } == {column: row[column] for column in ("rank_low", "rank_high", "n_ranked", "p_predecessor", "delta_predecessor")}
        compared = tables["comparisons"].filter(category="__macro__", comparison="predecessor", checkpoint_a=name)
        if name != "0":
            assert (row["delta_predecessor_low"], row["n_prompts_predecessor"]) == (compared["ci_low_adjusted"][0], 30)


def test_the_family_beside_a_difference_is_that_of_its_pair(make_rubric, all_tables):
    """Where each pair is corrected by itself."""
    tables = all_tables(drawn(5, 3, 5, 5.05, 9), make_rubric({None: ("q",)}), family="pair")
    compared = tables["comparisons"].filter(category="__macro__", comparison="predecessor")
    of_pair = dict(compared.select("checkpoint_a", "family").iter_rows())
    families = {name: row["family"] for name, row in standings(tables).items()}
    assert families == of_pair | {"0": of_pair["1"]}, "the oldest is in its successor's"
    assert len(set(of_pair.values())) == 3


STATES = {
    "alone": (scored("1", [5, 6] * 8), {}, {"1": ("not_compared", "alone", None)}),
    "no prompt in common": (
        over(PROMPTS[:8], "1", lambda n: n) + over(PROMPTS[8:], "2", lambda n: n % 5),
        {},
        {"1": ("not_compared", "dataset_differs", 0), "2": ("not_compared", "dataset_differs", 0)},
    ),
    "four prompts in common, five needed": (
        over(PROMPTS[:8], "1", lambda n: n) + over(PROMPTS[4:], "2", lambda n: n % 5),
        {},
        {"1": ("not_compared", "too_few_paired_prompts", 4), "2": ("not_compared", "too_few_paired_prompts", 4)},
    ),
    "one apart from the others": (
        [row for name in "12" for row in over(PROMPTS[:9], name, lambda n: n % 7)] + over(PROMPTS[7:], "3", lambda n: 3 + n % 2),
        {},
        {"1": ("ranked", None, 9), "2": ("ranked", None, 9), "3": ("not_compared", "too_few_paired_prompts", 2)},
    ),
    "the other is blocked": (
        drawn(1, 5) + scored("2", [FAILS] * 20 + [5] * 10),
        {"min_coverage": 0.5},
        {"0": ("not_compared", "blocked", None), "2": ("blocked", "empty", None)},
    ),
    "too few prompts, and one blocked": (
        over(PROMPTS[:3], "1", lambda n: n) + drawn(1, 5) + scored("2", [FAILS] * 20 + [5] * 10),
        {"min_coverage": 0.5},
        {"1": ("too_few", "too_few_prompts", None), "0": ("not_compared", "blocked", None), "2": ("blocked", "empty", None)},
    ),
    "more than are ranked": (
        drawn(1, 5, 6, 7),
        {"max_ranked": 2},
        dict.fromkeys("012", ("not_compared", "too_many_to_rank", None)),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "settings", "expected"), STATES.values(), ids=STATES.keys())
def test_who_has_no_rank_says_why(make_rubric, all_tables, rows, settings, expected):
    found = standings(all_tables(rows, make_rubric({None: ("q",)}), **settings))
    assert {name: (row["state"], row["reason"]) for name, row in found.items()} == {k: v[:2] for k, v in expected.items()}
    for name, (state, _, n_shared) in expected.items():
        row = found[name]
        assert (row["rank_low"] is None, row["shared_estimate"] is None) == (state != "ranked", state != "ranked")
        assert n_shared is None or row["n_shared_prompts"] == n_shared
        assert row["n_prompts_needed"] == 5


def test_a_category_that_one_lacks_leaves_it_without_a_rank(make_rubric, all_tables):
    rows = [row for c in "xy" for name in "12" for row in over([c + p for p in PROMPTS[:8]], name, lambda n: n % 6, c)]
    rows += over(["x" + p for p in PROMPTS[:8]], "3", lambda n: 9 - n % 2, "x")
    found = standings(all_tables(rows, make_rubric({None: ("q",)}, report_by="category")))
    assert {name: (row["state"], row["reason"]) for name, row in found.items()} == {
        "1": ("ranked", None), "2": ("ranked", None), "3": ("not_compared", "category_missing"),
    }  # fmt: skip


@pytest.mark.parametrize("fewer", ["a", "b"])
def test_of_two_that_share_no_prompt_the_one_with_fewer_gives_way(make_rubric, all_tables, fewer):
    mine = {fewer: PROMPTS[:8], "ab".replace(fewer, ""): PROMPTS[8:20], "c": PROMPTS[:20]}
    rows = [row for name, prompts in mine.items() for row in over(prompts, name, lambda n: n % 6)]
    found = standings(all_tables(rows, make_rubric({None: ("q",)})))
    assert [name for name, row in found.items() if row["state"] != "ranked"] == [fewer]


def test_means_over_shared_prompts_stand_beside_the_means_over_all(make_rubric, all_tables):
    """b is worse on every shared prompt and better on average: it was also given easy ones."""
    hard, easy = PROMPTS[:10], PROMPTS[10:]
    rows = over(hard, "a", lambda n: 4 + n % 3) + over(hard, "b", lambda n: 3 + n % 3) + over(easy, "b", lambda n: 10 - n % 2)
    rows += over([*hard, *easy[:2]], "c", lambda n: n % 3)
    found = standings(all_tables(rows, make_rubric({None: ("q",)})))
    assert {name: (row["n_prompts"], row["n_shared_prompts"]) for name, row in found.items()} == {
        "a": (10, 10),
        "b": (30, 10),
        "c": (12, 10),
    }
    assert found["a"]["shared_estimate"] == found["a"]["estimate"] == pytest.approx(4.9)
    assert found["b"]["shared_estimate"] == pytest.approx(3.9)
    assert found["b"]["estimate"] > found["a"]["estimate"]
    assert {name: row["is_reordered"] for name, row in found.items()} == {"a": True, "b": True, "c": False}
    assert (found["a"]["rank_low"], found["b"]["rank_low"]) == (1, 2), "the paired comparison goes by the shared prompts"


def test_without_ragged_sets_both_means_are_one(make_rubric, all_tables):
    draw = random.Random(4)
    scores = [draw.randint(0, 10) for _ in range(54)]
    rows = [
        row
        for place, (c, name) in enumerate((c, name) for c in "xy" for name in "123")
        for row in over([c + p for p in PROMPTS[:9]], name, lambda n, first=9 * place: scores[first + n], c)
    ]
    found = all_tables(rows, make_rubric({None: ("q",)}, report_by="category"))["standings"]
    assert found.filter(pl.col("is_reordered")).is_empty()
    assert found["shared_estimate"].to_list() == pytest.approx(found["estimate"].to_list())
    assert found["n_shared_prompts"].to_list() == found["n_prompts"].to_list() == [18] * 3


def test_a_standing_is_headline_where_its_rubric_leads_up_to_it(make_rubric, all_tables):
    rows = [row | {"scores": {"overall_score": 5, "style": 6}} for row in drawn(1, 5, 6)]
    found = all_tables(rows, make_rubric({None: ("overall_score", "style")}))["standings"]
    assert set(found.select("dimension", "is_headline").rows()) == {("overall_score", True), ("style", False)}


NOT_COMPARED = {
    "blocked": (scored("1", [FAILS] * 20 + [5] * 10), {"min_coverage": 0.5}, "one of them is blocked"),
    "other prompts": (over([f"q{n}" for n in range(30)], "1", lambda n: n % 7), {}, "they share no prompt"),
}


@pytest.mark.parametrize(("between", "how", "reason"), NOT_COMPARED.values(), ids=NOT_COMPARED)
def test_the_answer_is_given_where_the_checkpoint_before_the_newest_could_not_be_compared(
    make_rubric, all_tables, between, how, reason
):
    rows = [row for row in drawn(3, 4, 4, 7) if row["checkpoint"] != "1"] + between
    tables = all_tables(rows, make_rubric({None: ("q",)}), **how)
    ((_, said),) = answers_of(placed({TABLES[name]: frame for name, frame in tables.items()})).items()
    assert said[:2] == ["2 is the best of 2, on 30 shared prompts.", f"2 was not compared with 1: {reason}."]


def test_the_smallest_category_of_a_total_is_named(make_rubric, all_tables):
    """A row whose category was mistyped weighs as much as all the others, and keeps both from a rank."""
    rows = [
        row
        for name in "12"
        for category, some in (("cats", PROMPTS[:9]), ("catz", PROMPTS[9:10]), ("dogs", PROMPTS[10:11]))
        for row in over(some, name, lambda n: n % 5, category)
    ]
    tables = all_tables(rows, make_rubric({None: ("q",)}))
    columns = ("state", "n_categories", "smallest_category", "n_prompts_smallest_category", "n_prompts_largest_category")
    found = [tuple(row[name] for name in columns) for row in standings(tables, category="__macro__").values()]
    assert found == [("too_few", 3, "catz", 1, 9)] * 2
    ((_, said),) = answers_of(placed({TABLES[name]: frame for name, frame in tables.items()})).items()
    assert said[0] == (
        "1 and 2: no rank: 2 of 3 categories have fewer than the 5 prompts needed (statistics.min_paired_prompts), the smallest, "
        "category catz, has 1."
    )


MICRO = "Over all images, whatever their category (exploratory; salon table --category __micro__): "
MEANS = "The means over all images: salon table --category __micro__."
WITHOUT_CATEGORIES = {
    "decided": (lambda n: n % 5 + 2 + n % 2, "", f"{MICRO}2 is better than 1: +2.33 [+2.15, +2.51] on 30 prompts"),
    "open": (lambda n: 2 - n, "", f"{MICRO}These prompts cannot tell 2 from 1: "),
    "of other models": (lambda n: n % 5 + 2, "other ", MEANS),
}


@pytest.mark.parametrize(("level", "other", "said"), WITHOUT_CATEGORIES.values(), ids=WITHOUT_CATEGORIES)
def test_where_categories_are_too_small_the_means_over_all_images_answer(make_rubric, all_tables, level, other, said):
    """Ten categories of three prompts; in none can two checkpoints be compared."""
    rows = [
        row | {"model": f"{other if name == '2' else ''}m"}
        for name, scores in (("1", lambda n: n % 5), ("2", level))
        for place in range(10)
        for row in over(PROMPTS[place::10], name, scores, f"c{place}")
    ]
    assert len(PROMPTS) == 30
    tables = {TABLES[name]: frame for name, frame in all_tables(rows, make_rubric({None: ("q",)})).items()}
    ((_, told),) = answers_of(placed(tables), tables[COMPARISONS]).items()
    assert "all 10 categories have fewer than the 5 prompts needed" in told[0]
    assert told[1].startswith(said)
    assert told[2:] == ["No score is missing."]


def test_who_shares_no_prompt_of_one_category_shares_those_of_the_others(make_rubric, all_tables):
    """The list of one category was renewed; the oldest was asked both lists, and the newest is ranked with it."""
    old, new = [f"old {n}" for n in range(6)], [f"new {n}" for n in range(6)]
    rows = [
        row
        for place, (name, other) in enumerate((("1", old + new), ("2", old), ("3", new)))
        for category, some in (("x", PROMPTS[: (30, 20, 25)[place]]), ("y", other))
        for row in over(some, name, lambda n, level=2 * place: level + (n * (level + 1)) % 4 / 2, category)
    ]
    tables = {TABLES[name]: frame for name, frame in all_tables(rows, make_rubric({None: ("q",)}, report_by="category")).items()}
    compared = tables[COMPARISONS].filter(checkpoint_a="3", checkpoint_b="2", comparison="predecessor").sort("category")
    assert compared.select("category", "n_prompts_paired", "win", "reason").rows() == [
        ("__macro__", 20, 20, "too_few_paired_prompts"), ("__micro__", 20, 20, None), ("x", 20, 20, None),
        ("y", 0, 0, "dataset_differs"),
    ]  # fmt: skip
    ((_, told),) = answers_of(placed(tables), tables[COMPARISONS]).items()
    assert told[1] == "3 was not compared with 2: they share too few prompts, of a category or in all."
    assert told[2].startswith("2: no rank: in a category it shares fewer prompts with another checkpoint than the 5 needed")
    assert told[2].endswith("over all categories it shares up to 26.")
    assert told[3].startswith(f"{MICRO}3 is better than 2: ")


def test_prompts_that_all_ranked_share_are_counted_where_a_category_has_none(make_rubric, all_tables):
    """In y every two share five prompts, and all three none: a mean over prompts that all have is not to be had."""
    of_pair = {two: [f"{two} {n}" for n in range(5)] for two in ("12", "13", "23")}
    rows = [
        row
        for name in "123"
        for category, some in (("x", PROMPTS), ("y", [p for two, mine in of_pair.items() if name in two for p in mine]))
        for row in over(some, name, lambda n, level=int(name): 2 * level + n % 3, category)
    ]
    found = all_tables(rows, make_rubric({None: ("q",)}, report_by="category"))
    columns = ("state", "n_shared_prompts", "shared_estimate")
    assert {tuple(row[c] for c in columns) for row in standings(found).values()} == {("ranked", 30, None)}
    tables = {TABLES[name]: frame for name, frame in found.items()}
    ((_, told),) = answers_of(placed(tables)).items()
    assert told[0] == "3 is the best of 3, compared in pairs: 30 prompts have a score of all 3."


def test_the_answer_over_all_images_counts_what_the_two_lack_and_nobody_else(make_rubric, all_tables):
    """1 lacks three scores, its successor 2 five, and the newest eight, in ten categories of three prompts."""
    rows = [
        row | {"scores": {"q": FAILS if row["prompt"] in PROMPTS[:n_lost] else row["scores"]["q"]}}
        for name, n_lost in (("1", 3), ("2", 5), ("3", 8))
        for place in range(10)
        for row in over(PROMPTS[place::10], name, lambda n, level=int(name): level + n % 3, f"c{place}")
    ]
    tables = {TABLES[name]: frame for name, frame in all_tables(rows, make_rubric({None: ("q",)})).items()}
    ((_, told),) = answers_of(placed(tables), tables[COMPARISONS]).items()
    assert told[1].startswith(f"{MICRO}Because of failures, 3 cannot be told from 2")
    assert told[1].endswith(", but the 8 of 30 scores that 3 lacks and the 5 of 30 scores that 2 lacks could turn it.")


@pytest.mark.parametrize(
    ("cats", "name", "n_lost", "is_told"),
    [("cats", "cats", 7, True), ("cats", "cats", 2, False), (None, "those without a category", 7, True)],
    ids=["under the floor", "above it", "without a category"],
)
def test_a_category_blocked_on_its_own_is_told_where_its_mean_is_not(make_rubric, all_tables, cats, name, n_lost, is_told):
    rows = [
        row
        for checkpoint in "12"
        for category, some in ((cats, PROMPTS[:10]), ("dogs", PROMPTS[10:]))
        for row in over(some, checkpoint, lambda n: n % 5, category)
    ]
    lost = [row for row in rows if row["checkpoint"] == "1" and row["category"] == cats][:n_lost]
    for row in lost:
        row["scores"] = {"q": FAILS}
    tables = all_tables(rows, make_rubric({None: ("q",)}, report_by="category"), min_coverage=0.7)
    ((_, said),) = answers_of(placed({TABLES[name]: frame for name, frame in tables.items()})).items()
    told = "In a mean stand categories that are blocked on their own, too few of whose judgements have a score: "
    assert (said[-1] == f"{told}{name} of 1 (30.0 %).") == is_told


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        ({"q": 4, "r": 4, "s": 4}, "60.0 %"),
        ({"q": 4, "r": 4}, "60.0 % in q and r"),
        ({"q": 4, "r": 5, "s": 6}, "40.0 % in s to 60.0 % in q"),
        ({"q": 5, "r": 4, "s": 5}, "50.0 % in q and s to 60.0 % in r"),
    ],
    ids=["the same in all", "in some", "another in each", "another in one"],
)
def test_a_blocked_category_is_told_with_the_dimensions_where_they_differ(make_rubric, all_tables, lost, said):
    rows = [
        row | {"scores": dict.fromkeys("qrs", n % 5)}
        for checkpoint in "12"
        for category, some in (("cats", PROMPTS[:10]), ("dogs", PROMPTS[10:]))
        for n, row in enumerate(over(some, checkpoint, int, category))
    ]
    for dimension, n_lost in lost.items():
        for row in rows[:n_lost]:
            row["scores"][dimension] = FAILS
    tables = all_tables(rows, make_rubric({None: ("q", "r", "s")}, report_by="category"), min_coverage=0.7)
    ((_, told),) = answers_of(placed({TABLES[name]: frame for name, frame in tables.items()})).items()
    assert told[-1].endswith(f"too few of whose judgements have a score: cats of 1 ({said}).")
