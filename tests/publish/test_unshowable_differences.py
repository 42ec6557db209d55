"""Differences that nobody can show, for so few prompts or for failures: what is said in place of a claim."""

from datetime import date

import pytest

from schemas.tables.published import BENCHMARK_LONG
from tasks.publish.folders import PublicationName
from tasks.publish.latex import latex_tables
from tasks.publish.leaderboard import leaderboard_page
from tasks.publish.standings.answers import answers
from tasks.publish.standings.pair_answers import pair_answers
from tasks.publish.standings.pair_boards import pair_boards
from tasks.publish.standings.placed_cells import placed
from tasks.publish.standings.wording import difference
from tests.aggregate.preferences.conftest import said, tables
from tests.support.standing_rows import BETTER, OPEN, row

SCALE = {"delta_predecessor_low": -10.0, "delta_predecessor_high": 10.0, "scale_low": 0.0, "scale_high": 10.0}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (SCALE | {"n_family": 180}, "+0.10: 12 prompts cannot show a difference among 180 comparisons"),
        (SCALE | {"n_family": None}, "+0.10: 12 prompts cannot show a difference among the comparisons of its family"),
        (SCALE | {"n_family": 9}, "+0.10 [-10.00, +10.00] can't tell"),
        (SCALE | {"n_family": 180, "delta_predecessor_high": 9.0}, "+0.10 [-10.00, +9.00] can't tell"),
        (SCALE | {"n_family": 180, "scale_high": 20.0}, "+0.10 [-10.00, +10.00] can't tell"),
        (SCALE | {"n_family": 180, "adjustment": "benjamini_hochberg"}, "+0.10 can't tell"),
        (
            SCALE | {"n_family": 180, "adjustment": "benjamini_hochberg", "n_prompts_predecessor": 5},
            "+0.10: 5 prompts cannot show a difference among 180 comparisons",
        ),
    ],
    ids=[
        "too few",
        "of an unknown number",
        "enough, and noisy",
        "one end is known",
        "half of the scale",
        "not too few where all may be found",
        "too few even then",
    ],
)
def test_an_interval_that_is_the_whole_scale_is_no_measurement(changes, said):
    mine = row("3", predecessor="2", **(OPEN | {"n_prompts_predecessor": 12} | changes))
    assert difference(mine, "predecessor") == said
    (told,) = (one for one in answers([mine, row("2", predecessor=None)]) if "cannot tell 3 from 2" in one)
    assert ("[-10.00" in told) == ("[-10.00" in said)


SURE = "at 95 % for all 9 comparisons together"
TURNED = OPEN | {"verdict_predecessor": "failures_could_turn_it", "predecessor": "1"}


@pytest.mark.parametrize(
    ("mine", "other", "missed"),
    [
        ({"n_failed": 12, "n_judgements": 60}, {}, "the 12 of 60 scores that 2 lacks"),
        (
            {"n_failed": 12, "n_judgements": 60}, {"n_failed": 3, "n_judgements": 60},
            "the 12 of 60 scores that 2 lacks and the 3 of 60 scores that 1 lacks",
        ),
        ({}, {"n_failed": 1_200, "n_judgements": 6_000}, "the 1,200 of 6,000 scores that 1 lacks"),
    ],
    ids=["the newest fails", "both fail", "the predecessor fails"],
)  # fmt: skip
def test_where_failures_keep_two_from_being_told_apart_the_prompts_are_not_blamed(mine, other, missed):
    said = answers([row("2", (1, 2), **TURNED, **mine), row("1", (1, 2), **other)])
    assert said[:2] == [
        "40 prompts cannot tell which of 1 and 2 is best, because failures could turn what they say.",
        f"Because of failures, 2 cannot be told from 1: +0.10 [-0.20, +0.40] on 40 prompts ({SURE}), but {missed} could turn it.",
    ]


def test_failures_are_part_of_why_where_others_are_open_too():
    said = answers([row("3", (1, 3), **OPEN, predecessor="2"), row("2", (1, 3), **TURNED), row("1", (1, 3))])
    assert said[0] == "40 prompts cannot tell which of 1, 2 and 3 is best, in part because failures could turn what they say."


def test_models_without_a_verdict_between_them_are_said_to_lack_scores():
    """Of models that have neither predecessor nor baseline a row holds no verdict: the prompts alone are not blamed."""
    said = answers([row("a", (1, 3), n_failed=11), row("b", (1, 3), n_failed=1), row("c", (1, 3))])
    assert said[0] == "40 prompts, with 12 scores missing, cannot tell which of a, b and c is best."


def test_of_several_measures_those_that_failures_could_turn_are_counted_apart():
    verdicts = [BETTER | {"predecessor": "1"}, OPEN | {"predecessor": "1"}, TURNED, TURNED]
    rows = [row("2", dimension=f"d{n}", **verdict) for n, verdict in enumerate(verdicts)]
    told = "2 is better than 1 on 1 of 4 measures; on 1 these prompts cannot tell; on 2 failures could turn it"
    assert any(one.startswith(told) for one in answers(rows + [row("1", dimension=f"d{n}") for n in range(4)]))


@pytest.mark.parametrize(
    ("verdicts", "told"),
    [
        (
            (BETTER | {"verdict_predecessor": "lower"}, OPEN),
            "2 is worse than 1 on 1 of 2 measures; on 1 these prompts cannot tell (",
        ),
        ((OPEN, TURNED), "These prompts cannot tell 2 from 1 on 1 of 2 measures; on 1 failures could turn it ("),
        ((TURNED, TURNED), "Because of failures, 2 cannot be told from 1 on 2 of 2 measures ("),
        ((BETTER, BETTER | {"verdict_predecessor": "lower"}), "2 is better than 1 on 1 of 2 measures, worse on 1 ("),
    ],
)
def test_of_several_measures_the_first_that_is_said_is_one_there_is(verdicts, told):
    rows = [row("2", dimension=f"d{n}", **verdict | {"predecessor": "1"}) for n, verdict in enumerate(verdicts)]
    assert any(one.startswith(told) for one in answers(rows + [row("1", dimension=f"d{n}") for n in range(2)]))


def test_where_missing_verdicts_keep_two_from_being_told_apart_the_pairs_are_not_blamed():
    (board,) = pair_boards(tables(said("2", "1", "a " * 30 + "? " * 40)))
    told = pair_answers(board)[0]
    assert told.startswith("Because of missing verdicts, 2 cannot be told from 1: it wins 100.0 % [")
    assert told.endswith("on 30 prompts (at 95 %), but 40 of 70 verdicts are missing.")


def test_one_comparison_of_pairs_is_not_said_to_be_several():
    (board,) = pair_boards(tables(said("2", "1", "a " * 40), correction="benjamini_hochberg"))
    assert pair_answers(board)[0].endswith(" on 40 prompts (at 95 %).")


EQUAL = "a b a b = " * 6


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        pytest.param(
            [*said("3", "1", "a " * 40), *said("3", "2", "a " * 40), *said("2", "1", EQUAL)], "3 is the best of 3.", id="one"
        ),
        pytest.param(
            [*said("3", "1", "a " * 40), *said("2", "1", "a " * 40), *said("3", "2", EQUAL)],
            "2 and 3 may each be the best of 3.",
            id="two",
        ),
        pytest.param(
            [*said("3", "1", EQUAL), *said("2", "1", EQUAL), *said("3", "2", EQUAL)],
            "These pairs cannot tell which of 1, 2 and 3 is best.",
            id="all",
        ),
        pytest.param(
            [*said("3", "1", "b " * 40), *said("2", "1", "a " * 40), *said("3", "2", "a " * 40)],
            "None of 3 is the best: each is worse than another.",
            id="a circle",
        ),
    ],
)
def test_pairs_answer_first_which_is_the_best(rows, told):
    (board,) = pair_boards(tables(rows))
    assert pair_answers(board)[0] == told


@pytest.mark.parametrize(
    ("pairs", "told"),
    [
        ("a " * 35 + "? " * 5, "5 of 40 pairs lack a verdict."),
        ("a " * 39 + "?", "1 of 40 pairs lacks a verdict."),
        ("a " * 40, "No pair lacks a verdict."),
    ],
    ids=["some", "one", "none"],
)
def test_how_many_pairs_lack_a_verdict_is_said_also_where_none_does(pairs, told):
    (board,) = pair_boards(tables(said("2", "1", pairs)))
    assert pair_answers(board)[1] == told


def test_one_pair_and_one_score_are_named_in_the_singular():
    (board,) = pair_boards(tables(said("2", "1", "a")))
    told = pair_answers(board)
    assert told[0].endswith("it wins 100.0 % on 1 prompt (too few prompts).")
    assert told[-1].endswith("of 1 pair the two orders disagree.")
    assert answers([row("1", n_failed=1)])[-1] == "1 of 100 scores is missing."


def test_the_liking_for_a_place_is_the_share_of_the_pairs_counted_beside_it():
    """Of 55 pairs five go by the order, all in the small category: the mean over categories would be half of them."""
    (board,) = pair_boards(tables([*said("2", "1", "a b " * 25, "large"), *said("2", "1", "f " * 5, "small")]))
    told = "The picture shown first won 55 % of the verdicts (a tie counts as half); in 9 % of 55 pairs the two orders disagree."
    assert pair_answers(board)[-1] == told


def test_with_repeats_the_liking_for_a_place_is_a_mean_over_pairs_and_said_to_be():
    """Every pair goes by the order in one of its three repeats: in none do "the two orders" disagree, in all of them once."""
    (board,) = pair_boards(tables([("2", "1", f"p{n}", "a a f") for n in range(40)]))
    told = "On average over 40 pairs, the picture shown first won 67 % of the verdicts (a tie counts as half), and "
    assert pair_answers(board)[-1] == told + "the two orders disagree in 33 % of the repeats."


@pytest.mark.parametrize("categories", [("large", "small"), (None, None)], ids=["of two categories", "of none"])
def test_a_win_rate_is_said_to_be_a_mean_over_categories_where_there_are_any(categories):
    large, small = categories
    (board,) = pair_boards(tables([*said("2", "1", "a b " * 25, large), *said("3", "1", "a " * 5, small)]))
    cells, name = placed({BENCHMARK_LONG: BENCHMARK_LONG.empty()}), PublicationName("bench", "f" * 64, date(2026, 1, 1))
    told = "the first wins, averaged over the categories, all with the same weight; a tie"
    assert (told in " ".join(leaderboard_page(cells, name, [board]).split())) is (large is not None)
    assert (", averaged over the categories" in latex_tables([], [board], title="t")) is (large is not None)
