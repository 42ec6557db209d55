"""How standings read: the answer in sentences, ranks, differences, and why there is none."""

import pytest

from schemas.statuses.cells import ComparisonVerdict, StandingState
from tasks.publish.standings.answers import answers, missing
from tasks.publish.standings.categories import weights
from tasks.publish.standings.wording import difference, namer, percent, rank, tells_best, why
from tests.support.standing_rows import BETTER, OPEN, row


def test_one_measure_is_answered_in_sentences():
    rows = [row("3", predecessor="2", **BETTER), row("2", (2, 3), predecessor="1", **OPEN), row("1", (2, 3))]
    assert answers(rows) == [
        "3 is the best of 3, on 40 shared prompts.",
        "3 is better than 2: +0.42 [+0.10, +0.74] on 40 prompts (at 95 % for all 9 comparisons together).",
        "No score is missing.",
    ]


@pytest.mark.parametrize("adjustment", ["bonferroni", "benjamini_hochberg"])
def test_one_comparison_is_not_said_to_be_several(adjustment):
    told = {"n_shared_prompts": 1, "n_prompts_predecessor": 1, "n_family": 1, "adjustment": adjustment}
    rows = [row("3", predecessor="2", **BETTER, **told), row("2", (2, 2), **told)]
    assert answers(rows)[:2] == [
        "3 is the best of 2, on 1 shared prompt.",
        "3 is better than 2: +0.42 [+0.10, +0.74] on 1 prompt (at 95 %).",
    ]
    assert answers([row("3", (1, 2), **told), row("2", (1, 2), **told)])[0] == "1 prompt cannot tell which of 2 and 3 is best."


def test_a_difference_outside_the_primary_family_says_so():
    found = {flag: difference(row("3", **BETTER, is_headline=flag), "predecessor") for flag in (True, False, None)}
    assert found[False] == "+0.42 [+0.10, +0.74] better, exploratory"
    assert found[True] == found[None] == "+0.42 [+0.10, +0.74] better"
    assert difference(row("3", **OPEN, is_headline=False), "predecessor").endswith("can't tell")


def test_what_cannot_be_told_is_not_told():
    rows = [
        row("3", (1, 3), predecessor="2", **OPEN), row("2", (1, 3), estimate=3.3), row("1", (1, 3), estimate=3.5, n_failed=2)
    ]  # fmt: skip
    assert answers(rows) == [
        "40 prompts, with 2 scores missing, cannot tell which of 1, 3 and 2 is best.",
        "These prompts cannot tell 3 from 2: +0.10 [-0.20, +0.40] on 40 prompts (at 95 % for all 9 comparisons together).",
        "2 of 300 scores are missing.",
    ]


def test_where_no_prompt_has_a_score_of_all_the_comparisons_two_by_two_are_named():
    rows = [row("3", (1, 2), n_shared_prompts=0), row("2", (1, 2), n_shared_prompts=0), row("1", (3, 3), n_shared_prompts=0)]
    assert answers(rows)[0] == "2 and 3 may each be the best of 3, compared in pairs: no prompt has a score of all 3."
    assert answers(rows[:2])[0] == "These prompts cannot tell which of 2 and 3 is best."


def test_of_many_that_may_be_the_best_those_on_top_of_the_table_are_named():
    """By rank range, then by mean; whoever asked in the order of the names would name 1, 2 and 3."""
    ranks = {"1": (1, 6), "2": (1, 6), "3": (1, 6), "10": (1, 3), "9": (1, 4), "5": (1, 4), "4": (2, 6)}
    rows = [row(name, ranks[name], estimate=5.0 - int(name) / 10, n_ranked=7) for name in sorted(ranks)]
    assert answers(rows)[0] == "10, 5, 9 and 3 more may each be the best of 7, on 40 shared prompts."
    assert tells_best(rows)
    assert not tells_best([one for one in rows if one["checkpoint"] != "4"])
    assert not tells_best([row("1", None)])


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ([None, None], ""), ([(6, 20, 20)] * 2, ""),
        ([(6, 4, 240)] * 2, "6 categories weigh the same, 1/6 each: the smallest has 4 prompts, the largest 240"),
        ([(6, 20, 20), (6, 10, 20)], "6 categories weigh the same, 1/6 each: the smallest has 10 prompts, the largest 20"),
        ([(5, 9, 1200), (6, 1, 20), None], "5 to 6 categories weigh the same: the smallest has 1 prompt, the largest 1,200"),
    ],
)  # fmt: skip
def test_totals_of_unequal_categories_say_their_weights(sizes, said):
    names = ("n_categories", "n_prompts_smallest_category", "n_prompts_largest_category")
    rows = [row(str(n), **dict(zip(names, known or (None,) * 3, strict=True))) for n, known in enumerate(sizes)]
    assert weights(rows) == said


def test_a_sole_measure_of_one_category_is_named_with_it():
    """A primary dimension that is asked in some categories alone: its ranking stands nowhere else on the first screen."""
    rows = [
        row(name, (1, 2), category="counting", **(OPEN if name == "2" else {}), predecessor="1" if name == "2" else None)
        for name in "12"
    ]
    said = answers(rows)
    assert all("in score (counting)" in sentence for sentence in said[:2]), said


def test_several_measures_are_counted():
    rows = [
        one for n in range(4) for one in (
            row("2", (1, 1) if n else (1, 2), dimension=f"d{n}", predecessor="1", n_ranked=2, **(BETTER if n else OPEN)),
            row("1", (2, 2) if n else (1, 2), dimension=f"d{n}", n_ranked=2),
        )
    ]  # fmt: skip
    assert answers(rows)[:3] == [
        "2 is the best on 3 of 4 measures.",
        "On 1 of 4 measures several may be the best.",
        "2 is better than 1 on 3 of 4 measures; on 1 these prompts cannot tell (at 95 % for all 9 comparisons together).",
    ]


_NO_DELTA = {"predecessor": "2", "reason_predecessor": "blocked"}
_ALONE = {"predecessor": "2", "reason_predecessor": "alone"}
_NO_P = {"predecessor": "2", "reason_predecessor": "no_variation", "delta_predecessor": 0.5, "n_family": None, "adjustment": None}


@pytest.mark.parametrize(
    ("newest", "said"),
    [
        ([_NO_DELTA], "3 was not compared with 2: one of them is blocked."),
        ([_ALONE, _NO_DELTA], "3 was not compared with 2: alone, or one of them is blocked."),
        ([_NO_P], "3 against 2: +0.50 on 40 prompts, not tested: the prompts' differences do not vary."),
        (
            [_NO_DELTA | {"n_family": None}, {"predecessor": "2", **BETTER}, {"predecessor": "2", **OPEN}],
            ("3 is better than 2 on 1 of 3 measures; on 1 these prompts cannot tell; on 1 they were not compared "
            "(at 95 % for all 9 comparisons together)."),
        ),
    ],
    ids=["blocked", "on every measure", "without a p", "on one of three measures"],
)  # fmt: skip
def test_where_the_newest_was_not_compared_with_the_one_before_it_the_reason_is_told(newest, said):
    rows = [
        one
        for n, changes in enumerate(newest)
        for one in (row("3", dimension=f"d{n}", **changes), row("1", (2, 2), dimension=f"d{n}"))
    ]
    assert said in answers(rows)


def test_of_more_checkpoints_than_are_ranked_the_newest_is_told_against_the_one_before_it():
    unranked = {"state": "not_compared", "standing_reason": "too_many_to_rank"}
    rows = [
        row(f"s{n}", None, predecessor=f"s{n - 1}" if n else None, **(BETTER if n else {}), **unranked)
        for n in (10, 9, *range(9))
    ]
    assert answers(rows) == [
        "s10 is better than s9: +0.42 [+0.10, +0.74] on 40 prompts (at 95 % for all 9 comparisons together).",
        "s0, s1, s2 and 8 more: no rank: more checkpoints than statistics.max_ranked.",
        "No score is missing.",
    ]
    assert answers([row("s10", None, **unranked), row("s9", None, **unranked)])[0].startswith("s9 and s10: no rank")


def test_where_each_is_worse_than_another_none_is_the_best():
    """1 above 2, 2 above 3 and 3 above 1, each two on prompts of their own."""
    circle = [row(name, (2, 2), dimension="d0") for name in "123"]
    assert answers(circle)[0] == "None of 3 is the best: each is worse than another."
    others = [row(name, ranks, dimension="d1") for name, ranks in zip("123", ((1, 1), (2, 2), (3, 3)), strict=True)]
    assert answers(circle + others)[:2] == ["1 is the best on 1 of 2 measures.", "On 1 of 2 measures none is the best."]


def test_the_newest_of_each_model_is_told_of_with_its_model():
    rows = [row("2", model=m, predecessor="1", **BETTER) for m in "ab"] + [row("1", (3, 3), model=m) for m in "ab"]
    assert [said.split(" is ")[0] for said in answers(rows)[1:3]] == ["a / 2", "b / 2"]


def test_a_model_whose_checkpoint_has_no_name_is_called_by_its_own():
    rows = [row("unnamed", model="a"), row("unnamed", (2, 2), model="b"), row("2", (3, 3), model="c")]
    assert [namer(rows)(one) for one in rows] == ["a", "b", "c / 2"]
    assert answers(rows)[0] == "a is the best of 3, on 40 shared prompts."


@pytest.mark.parametrize(
    ("ranks", "told"),
    [
        pytest.param([(1, 2), (1, 2), (3, 3)], "a and b may each be the best of 3, compared in pairs: 5 prompts have", id="two"),
        pytest.param([(1, 3)] * 3, "These prompts cannot tell which of a, b and c is best.", id="nobody can tell"),
    ],
)
def test_the_prompts_that_all_share_are_not_said_to_be_what_two_are_compared_on(ranks, told):
    n_prompts = {"a": 60, "b": 60, "c": 5}
    rows = [row(name, rank, n_prompts=n, n_shared_prompts=5) for (name, n), rank in zip(n_prompts.items(), ranks, strict=True)]
    assert answers(rows)[0].startswith(told)


def test_a_checkpoint_without_a_rank_for_two_reasons_has_each_with_its_dimension():
    """Of two dimensions; one reason for both is said once."""
    coverage = {("3", "q"): 0.517, ("3", "s"): 0.767, ("2", "q"): 0.4, ("2", "s"): 0.4}
    rows = [row(name, None, dimension=key, state="blocked", coverage=share) for (name, key), share in coverage.items()]
    assert answers(rows)[:3] == [
        "2: blocked, 40.0 % of the judgements have a score.",
        "3 in q: blocked, 51.7 % of the judgements have a score.",
        "3 in s: blocked, 76.7 % of the judgements have a score.",
    ]


def test_what_is_true_of_one_of_several_measures_names_it():
    """Of three, a alone has a ranking and a comparison; in b both have no rank, in c (of one category) 1 alone has none."""
    rows = [row("2", dimension="a", predecessor="1", n_ranked=2, **BETTER), row("1", (2, 2), dimension="a", n_ranked=2)]
    few = {"state": "too_few", "n_prompts": 3}
    rows += [row(name, None, dimension="b", **few) for name in "12"]
    rows += [row("1", None, dimension="c", category="x", **few)]
    assert answers(rows) == [
        "2 is the best of 2 in a, on 40 shared prompts.",
        "2 is better than 1 in a: +0.42 [+0.10, +0.74] on 40 prompts (at 95 % for all 9 comparisons together).",
        "2 in b: no rank: 3 prompts, 5 needed (statistics.min_paired_prompts).",
        "1 in b and c (x): no rank: 3 prompts, 5 needed (statistics.min_paired_prompts).",
        "No score is missing.",
    ]


@pytest.mark.parametrize(
    ("of_each", "told"),
    [
        ((0, 1), "1 more is not applicable, of c1."), ((4, 4), "8 more are not applicable."),
        ((3, 40), "43 more are not applicable (40 of c1, 3 of c0)."),
        ((5, 4, 3, 2, 1, 0), "15 more are not applicable (5 of c0, 4 of c1, 3 of c2, 3 of 2 others)."),
    ],
)  # fmt: skip
def test_whose_judgements_a_question_does_not_apply_to(of_each, told):
    """In two measures: what each has in both counts."""
    rows = [row(f"c{n}", n_not_applicable=n_aside) for n, n_aside in enumerate(of_each)]
    assert missing([*rows, *(row(f"c{n}", dimension="d") for n in range(len(of_each)))]) == f"No score is missing; {told}"


_SURE = "at 95 % for all 9 comparisons together"


def test_measures_without_a_ranking_count_among_all_there_are():
    rows = [
        one for key in "ab" for one in (
            row("2", (1, 2), dimension=key, predecessor="1", n_ranked=2, **OPEN), row("1", (1, 2), dimension=key, n_ranked=2),
        )
    ]  # fmt: skip
    rows += [row(name, None, dimension="c", state="blocked", coverage=0.5) for name in "12"]
    assert answers(rows)[:4] == [
        "On 2 of 3 measures several may be the best.",
        "On 1 of 3 measures nobody has a rank.",
        f"These prompts cannot tell 2 from 1 on 2 of 3 measures; on 1 they were not compared ({_SURE}).",
        "1 and 2 in c: blocked, 50.0 % of the judgements have a score.",
    ]


@pytest.mark.parametrize(("reason", "which"), [("alone", ""), ("blocked", " that is not blocked")])
def test_who_has_no_rank_is_named_with_the_reason(reason, which):
    rows = [row("1", None, state="not_compared", standing_reason=reason)]
    assert answers(rows) == [f"1: no rank: there is no other checkpoint to compare it with{which}.", "No score is missing."]


def _smallest(name, n):
    return {"smallest_category": name, "n_prompts_smallest_category": n}


_LOST = {"n_failed": 6, "failures": [{"reason": "refusal", "n_failed": 6}], "bound_low": None}
_LACKS = "6 of 100 without a score (6 refusal); "
_NEEDED = "5 needed (statistics.min_paired_prompts)"
_SHARED = {"state": "not_compared", "standing_reason": "too_few_paired_prompts"}


@pytest.mark.parametrize(
    ("share", "more", "said"),
    [
        pytest.param(0.995, {}, "99.5 %", id="one digit"),
        pytest.param(2999 / 3000, {}, "99.97 %", id="nearly all"),
        pytest.param(1 / 20_000, {}, "0.01 %", id="nearly none"),
        pytest.param(1 - 1 / 20_000_000, {}, "99.99999 %", id="one of twenty million is lost"),
        pytest.param(1.0, {}, "100.0 %", id="all"),
        pytest.param(0.0, {}, "0.0 %", id="none"),
        pytest.param(9499 / 10_000, {"beside": 0.95}, "94.99 %", id="nearly the floor"),
        pytest.param(0.95, {"beside": 0.95}, "95.0 %", id="the floor"),
        pytest.param(0.9, {"n_digits": 0, "beside": 0.95}, "90 %", id="no digit"),
        pytest.param(0.998, {"n_digits": 0}, "99.8 %", id="no digit, nearly all"),
    ],
)
def test_a_share_never_reads_as_all_none_or_the_floor_where_it_is_not(share, more, said):
    assert percent(share, **more) == said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({}, "", id="nothing to say"),
        pytest.param(
            {"n_failed": 1, "failures": [{"reason": "empty", "n_failed": 1}], "coverage": 0.7999}
            | dict.fromkeys(("status", "state"), "blocked"),
            "blocked: 79.99 % of the judgements have a score, 80.0 % needed (gate.min_coverage): "
            "1 of 100 without a score (1 empty), with them 3.31 to 3.52",
            id="a cell that is blocked for a little",
        ),
        pytest.param(
            {"n_failed": 3, "failures": [{"reason": "refusal", "n_failed": 2}, {"reason": "empty", "n_failed": 1}]},
            "3 of 100 without a score (2 refusal, 1 empty), with them 3.31 to 3.52",
            id="bounds beside what is missing",
        ),
        pytest.param(
            {"n_failed": 30, "failures": [{"reason": "empty", "n_failed": 30}], "coverage": 0.7}
            | dict.fromkeys(("status", "state"), "blocked"),
            "blocked: 70.0 % of the judgements have a score, 80.0 % needed (gate.min_coverage): "
            "30 of 100 without a score (30 empty), with them 3.31 to 3.52",
            id="cause and remedy of a blocked cell",
        ),
        pytest.param(
            {"n_failed": 7, "failures": [{"reason": "empty", "n_failed": 7}], "coverage": 0.93, **_smallest("dogs", 0)}
            | dict.fromkeys(("status", "state"), "blocked"),
            "blocked: 0.0 % of the judgements in category dogs have a score (93.0 % of all judgements have one, but a mean over "
            "categories needs some in each): 7 of 100 without a score (7 empty), with them 3.31 to 3.52",
            id="a blocked mean that lacks one category",
        ),
        pytest.param(
            _SHARED | {"n_shared_prompts": 10, **_smallest("dogs", 6)},
            "no rank: in a category it shares fewer prompts with another checkpoint than the 5 needed "
            "(statistics.min_paired_prompts); over all categories it shares up to 10",
            id="too few shared prompts",
        ),
        pytest.param(
            {"state": "not_compared", "standing_reason": "dataset_differs", "n_shared_prompts": 0},
            "not compared: no shared prompts, 5 needed in each category (statistics.min_paired_prompts)",
            id="no shared prompts of any category",
        ),
        pytest.param(
            {"state": "not_compared", "standing_reason": "dataset_differs", "n_shared_prompts": None, "category": "animals"},
            "not compared: no shared prompts, 5 needed (statistics.min_paired_prompts)",
            id="no shared prompts of a category",
        ),
        pytest.param(
            {"state": "not_compared", "standing_reason": "answering_model_differs"},
            "not compared: a different model answered under its judge's name than for the others; name a dated model as the "
            "judge, or if both are the same, list them: accept_models",
            id="another model answered",
        ),
        pytest.param(
            {"state": "not_compared", "standing_reason": "category_missing", "estimate": None},
            "no mean over categories: it has no score in a category that others have; judge it there, or read each "
            "category alone",
            id="a category missing",
        ),
        pytest.param({"state": "too_few", "n_prompts": 3}, f"no rank: 3 prompts, {_NEEDED}", id="too few prompts"),
        pytest.param({"state": "too_few", "n_prompts": 1}, f"no rank: 1 prompt, {_NEEDED}", id="one prompt"),
        pytest.param(
            {"state": "too_few", "n_prompts": 4, **_LOST}, f"{_LACKS}no rank: 4 prompts with a score, {_NEEDED}",
            id="too few prompts with a score",
        ),
        pytest.param(
            {"state": "too_few", "n_prompts": 30, **_smallest("cats", 4), **_LOST},
            f"{_LACKS}no rank: category cats has 4 prompts with a score, {_NEEDED}", id="too few with a score in a category",
        ),
        pytest.param(
            {"state": "too_few", "n_prompts": 30, **_smallest("catz", 1)}, f"no rank: category catz has 1 prompt, {_NEEDED}",
            id="one prompt of a category",
        ),
        pytest.param(
            _SHARED | {"n_shared_prompts": 33, **_smallest("__unnamed__", 3)},
            "no rank: what has no category has 3 prompts, 5 needed (statistics.min_paired_prompts)",
            id="too few prompts without a category",
        ),
        pytest.param(
            {"is_reordered": True, "shared_estimate": 3.1},
            "3.10 over the 40 prompts that all have: a different order than over all prompts",
            id="ragged",
        ),
    ],
)  # fmt: skip
def test_what_is_missing_or_keeps_from_a_rank(changes, said):
    assert why(row("1", **changes)) == said


def test_every_state_and_verdict_reads():
    assert [rank(row("1", one)) for one in ((1, 1), (1, 3), None)] == ["1", "1–3", "–"]
    assert difference(row("1"), "predecessor") == ""
    for verdict in ComparisonVerdict:
        assert difference(row("1", **BETTER | {"verdict_predecessor": verdict.value}), "predecessor").startswith(
            "+0.42 [+0.10, +0.74] "
        )
    for state in set(StandingState) - {StandingState.RANKED}:
        assert answers([row("1", None, state=state.value, standing_reason="alone")])
    still = {"delta_predecessor": 1.0, "reason_predecessor": "no_variation"}
    assert difference(row("1", **still), "predecessor") == "+1.00 no variation"
