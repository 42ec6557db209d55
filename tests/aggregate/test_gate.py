"""What the gate rules of published comparisons: by planted differences, in both directions, and where nobody can tell."""

from random import Random

import polars as pl
import pytest

from schemas.lineage import placed_in
from schemas.statuses.cells import ComparisonReason
from schemas.tables.published import COMPARISONS, PREFERENCES, STANDINGS
from tasks.aggregate.gate import ALPHA, prompts_needed, rulings, with_cells
from tasks.aggregate.ruling import (
    ABSENT,
    FAILS_LOW,
    FAILS_MORE,
    FAILS_UNEQUALLY,
    NO_DIFFERENCE,
    ORDER_ALONE,
    ORDER_HIDES,
    RISE_TURNED,
    TOO_FEW,
    TURNED,
    Decided,
    Outcome,
    summary,
)
from tests.aggregate.preferences.conftest import said
from tests.aggregate.preferences.conftest import tables as preference_tables_of
from tests.aggregate.scored_rows import FAILS, drawn, scored
from tests.aggregate.test_not_applicable import ASIDE

NORTH = [("north", str(number)) for number in range(4)]
SURE = (Outcome.REGRESSION, None)
NO_CLAIM = ((Outcome.UNKNOWN, TURNED), (Outcome.NO_REGRESSION, RISE_TURNED))


def ruled(tables, *pairs, **more):
    return rulings(tables["comparisons"], tables["standings"], pairs, **more)


@pytest.mark.parametrize(
    ("levels", "candidate", "reference", "outcome"),
    [
        ((7, 3), 1, 0, Outcome.REGRESSION), ((3, 7), 1, 0, Outcome.IMPROVED), ((7, 3), 0, 1, Outcome.IMPROVED),
        ((3, 7), 0, 1, Outcome.REGRESSION), ((5, 5.05), 1, 0, Outcome.NO_REGRESSION),
    ],
)  # fmt: skip
def test_a_planted_difference(make_rubric, all_tables, levels, candidate, reference, outcome):
    tables = all_tables(drawn(5, *levels), make_rubric({None: ("q",)}))
    (ruling,) = ruled(tables, (NORTH[candidate], NORTH[reference]))
    assert ruling.outcome is outcome
    assert summary([ruling]) is (Outcome.NO_REGRESSION if outcome is Outcome.IMPROVED else outcome)
    assert ruling.delta == pytest.approx(levels[candidate] - levels[reference], abs=0.6)
    assert ruling.delta_low < ruling.delta < ruling.delta_high
    excludes_zero = ruling.delta_low > 0 or ruling.delta_high < 0
    assert excludes_zero == (outcome is not Outcome.NO_REGRESSION), "the interval is the ruling's own"
    assert ruling.smallest_drop > (ruling.delta_high - ruling.delta_low) / 2


@pytest.mark.parametrize(
    ("n_prompts", "alpha", "outcome", "reason"),
    [
        (11, 0.0006, Outcome.UNKNOWN, TOO_FEW), (12, 0.0006, Outcome.REGRESSION, None), (5, 0.05, Outcome.UNKNOWN, TOO_FEW),
        (6, 0.05, Outcome.REGRESSION, None), (16, 0.0006, Outcome.REGRESSION, None), (17, 0.0006, Outcome.REGRESSION, None),
    ],
)  # fmt: skip
def test_of_few_prompts_nothing_is_ruled_that_their_test_cannot_find(make_rubric, all_tables, n_prompts, alpha, outcome, reason):
    """Lower by 2 or 3 on each prompt: the sign flip test of up to sixteen has no p under 2**(1 - n), whatever a t test says."""
    rows = scored("0", [8.0] * n_prompts) + scored("1", [6.0 - number % 2 for number in range(n_prompts)])
    (ruling,) = ruled(all_tables(rows, make_rubric({None: ("q",)})), (NORTH[1], NORTH[0]), alpha=alpha)
    assert (ruling.outcome, ruling.reason, ruling.delta < -2) == (outcome, reason, True)
    figures = (ruling.delta_low, ruling.delta_high, ruling.smallest_drop)
    assert [figure is None for figure in figures] == [n_prompts <= 16] * 3, "a t interval is none of a sign flip test"
    assert (n_prompts >= prompts_needed([ruling], alpha)) == (reason is None), "what is said to be enough is"


@pytest.mark.parametrize(
    ("of_candidate", "outcomes"),
    [(ASIDE, {"q": Outcome.NO_REGRESSION}), (5, {"q": Outcome.NO_REGRESSION, "r": Outcome.UNKNOWN})],
    ids=["to neither", "to one of the two"],
)
def test_a_dimension_that_applies_to_nothing_is_no_comparison(make_rubric, all_tables, of_candidate, outcomes):
    rows = scored("0", [8.0] * 30) + scored("1", [8.1, 7.9] * 15)
    for row in rows:
        row["scores"] = {"q": row["scores"]["q"], "r": of_candidate if row["checkpoint"] == "1" else ASIDE}
    found = ruled(all_tables(rows, make_rubric({None: ("q", "r")})), (NORTH[1], NORTH[0]))
    assert {one.dimension: one.outcome for one in found} == outcomes


def test_more_comparisons_need_more_prompts_until_the_t_test_stands_in(make_rubric, all_tables):
    rows = scored("0", [8.0] * 12) + scored("1", [6.0] * 12) + scored("2", [4.0] * 12)
    found = ruled(all_tables(rows, make_rubric({None: ("q",)})), (NORTH[1], NORTH[0]), (NORTH[2], NORTH[0]))
    assert [one.reason for one in found] == [TOO_FEW, TOO_FEW], "12 are enough for one comparison, not for two"
    assert prompts_needed(found, ALPHA) == 13
    assert prompts_needed(found, 1e-9) == 17


def test_the_family_is_what_the_gate_asks(make_rubric, all_tables):
    """Three rankings are asked of one pair: each p three times the table's own, whatever else the table compares."""
    tables = all_tables(
        [{**row, "scores": dict.fromkeys("abc", row["scores"]["q"])} for row in drawn(5, 5, 5.6, 5.2, 5.1)],
        make_rubric({None: tuple("abc")}),
    )
    found = ruled(tables, (NORTH[1], NORTH[0]), alpha=0.05)
    p = tables["comparisons"].filter(comparison="predecessor", checkpoint_a="1", category="__macro__")["p"]
    assert [one.p_adjusted for one in found] == pytest.approx([min(1, 3 * value) for value in p])


def test_where_nobody_can_tell_it_is_said(make_rubric, all_tables):
    rows = drawn(5, 7, 7.1)
    rows += [row | {"version": "2"} for row in scored("2", [7.0] * 30)]
    tables = all_tables(rows, make_rubric({None: ("q",)}))
    (other_version,) = ruled(tables, (NORTH[2], NORTH[1]))
    assert (other_version.outcome, other_version.reason) == (Outcome.UNKNOWN, ComparisonReason.RUBRIC_DIFFERS)
    (absent,) = ruled(tables, (NORTH[1], NORTH[3]))
    assert (absent.outcome, absent.reason) == (Outcome.UNKNOWN, ABSENT)
    tables["comparisons"] = tables["comparisons"].clear()
    (not_compared,) = ruled(tables, (NORTH[1], NORTH[0]))
    assert (not_compared.outcome, not_compared.reason) == (Outcome.UNKNOWN, ComparisonReason.TOO_MANY_TO_RANK)
    assert summary([]) is Outcome.UNKNOWN


def test_failures_may_hide_a_drop(make_rubric, all_tables):
    """Equal where it answers, and a third of it fails: no one can say that it is no worse. The other way round it is sure."""
    scores = [round(5 + (number % 7) / 3, 2) for number in range(30)]
    rows = scored("0", scores) + scored("1", [score if number % 3 else "empty" for number, score in enumerate(scores)])
    tables = all_tables(rows, make_rubric({None: ("q",)}))
    (failing,) = ruled(tables, (NORTH[1], NORTH[0]))
    assert (failing.outcome, failing.reason) == (Outcome.UNKNOWN, FAILS_MORE)
    (whole,) = ruled(tables, (NORTH[0], NORTH[1]))
    assert whole.outcome is Outcome.NO_REGRESSION
    without = tables | {"comparisons": tables["comparisons"].with_columns(failing=pl.lit(None, pl.String))}
    older = [*ruled(without, (NORTH[1], NORTH[0])), *ruled(without, (NORTH[0], NORTH[1]))]
    assert [one.reason for one in older] == [FAILS_UNEQUALLY] * 2, "a publication that does not say which of the two it is"


@pytest.mark.parametrize("at_random", [(17,), range(2, 30, 6)], ids=["more often", "less often"])
def test_failures_where_scores_are_low_may_hide_a_drop(make_rubric, all_tables, at_random):
    """Four of the candidate's pictures have no score, its worst; of the reference fail fewer, or more, anywhere."""
    scores = [n / 3 for n in range(30)]
    rows = scored("0", [FAILS if n in at_random else score for n, score in enumerate(scores)])
    rows += scored("1", [FAILS if n < 4 else score + 0.1 - n % 2 / 5 for n, score in enumerate(scores)])
    tables = all_tables(rows, make_rubric({None: ("q",)}))
    (failing,), (other,) = ruled(tables, (NORTH[1], NORTH[0])), ruled(tables, (NORTH[0], NORTH[1]))
    assert (failing.outcome, failing.reason) == (Outcome.UNKNOWN, FAILS_LOW)
    assert other.outcome is Outcome.NO_REGRESSION


@pytest.mark.parametrize(
    ("n_failed", "step", "n_beside", "failures", "verdict", "outcomes"),
    [
        pytest.param(1, 1, 0, "worst_case", "lower", (SURE, (Outcome.IMPROVED, None)), id="one failure cannot turn it"),
        pytest.param(9, 1, 0, "worst_case", TURNED, NO_CLAIM, id="nine can"),
        pytest.param(9, 1, 0, "at_random", "lower", (SURE, (Outcome.IMPROVED, None)), id="nine, taken as random"),
        pytest.param(9, 0.3, 5, "worst_case", "open", NO_CLAIM, id="open among the table's many, found among the gate's few"),
    ],
)
def test_what_failures_could_turn_is_no_claim(make_rubric, all_tables, n_failed, step, n_beside, failures, verdict, outcomes):
    """Lower wherever it has a score, and seen from either side: the worst case decides here as it does for the verdict."""
    whole = scored("0", [8.0] * 30)
    low = scored("1", [8 - step * (n % 3 - 0.5) if n >= n_failed else "empty" for n in range(30)])
    beside = [row for number in range(n_beside) for row in scored(str(number + 2), [5 + n % 7 / 5 for n in range(30)])]
    tables = all_tables(whole + low + beside, make_rubric({None: ("q",)}), failures=failures)
    published = tables["comparisons"].filter(comparison="predecessor", checkpoint_a="1", category="__macro__")
    assert published["verdict"].to_list() == [verdict]
    for pair, outcome in zip(((NORTH[1], NORTH[0]), (NORTH[0], NORTH[1])), outcomes, strict=True):
        (found,) = ruled(tables, pair, alpha=0.05, is_worst_case=failures == "worst_case")
        assert (found.outcome, found.reason) == outcome
        assert found.delta_high < 0 or found.delta_low > 0, "by what has a score alone it would be found"


def test_contestants_are_in_the_order_of_their_numbers():
    standings = pl.DataFrame({"model": ["b", "a", "a", "a"], "checkpoint": ["1", "step-1000", "step-900", "step-900"]})
    assert placed_in(standings) == [("a", "step-900"), ("a", "step-1000"), ("b", "1")]


def of_pairs(words: str, candidate: str = "2"):
    """What the gate rules of 2 against 1, or the other way round, from what both orders said of one pair a prompt."""
    table = preference_tables_of(said("2", "1", words))[PREFERENCES].filter(category="__macro__")
    pair = (("m", candidate), ("m", "1" if candidate == "2" else "2"))
    return rulings(COMPARISONS.empty(), STANDINGS.empty(), [pair], won=table)


@pytest.mark.parametrize(
    ("words", "outcome", "reason"),
    [
        ("b " * 40 + "a " * 6, Outcome.REGRESSION, None), ("a " * 40 + "b " * 6, Outcome.IMPROVED, None),
        ("a " * 20 + "b " * 26, Outcome.NO_REGRESSION, None), ("b " * 18 + "? " * 40, Outcome.UNKNOWN, TURNED),
        ("a " * 18 + "? " * 40, Outcome.NO_REGRESSION, RISE_TURNED), ("b " * 30, Outcome.REGRESSION, None),
        ("= " * 30, Outcome.NO_REGRESSION, NO_DIFFERENCE), ("f s = " * 10, Outcome.NO_REGRESSION, NO_DIFFERENCE),
        ("f " * 40, Outcome.UNKNOWN, ORDER_ALONE), ("f s ? " * 10, Outcome.UNKNOWN, ORDER_ALONE),
        ("f " * 40 + "b ", Outcome.UNKNOWN, ORDER_HIDES), ("b " * 9 + "f " * 91, Outcome.UNKNOWN, ORDER_HIDES),
        ("a b " * 15 + "f " * 10, Outcome.NO_REGRESSION, None), ("a b " * 9, Outcome.NO_REGRESSION, None),
        ("a b " * 9 + "f ", Outcome.NO_REGRESSION, None), ("f " * 5, Outcome.UNKNOWN, TOO_FEW),
        ("b " * 5 + "? " * 40, Outcome.UNKNOWN, TOO_FEW),
        ("? " * 9, Outcome.UNKNOWN, "unjudged"), ("b", Outcome.UNKNOWN, "too_few_prompts"),
    ],
)  # fmt: skip
def test_win_rates_are_ruled_on(words, outcome, reason):
    (ruling,) = of_pairs(words)
    assert (ruling.outcome, ruling.reason, ruling.is_win_rate) == (outcome, reason, True)
    (turned,) = of_pairs(words, candidate="1")
    assert (turned.delta is None) == (ruling.delta is None)
    if ruling.delta:
        assert turned.delta == -ruling.delta


def test_how_pairs_were_decided_stands_beside_the_ruling():
    words = "b " * 9 + "a " * 2 + "= " * 3 + "f " * 80 + "? "
    (ruling,), (turned,) = of_pairs(words), of_pairs(words, candidate="1")
    assert (ruling.pairs, turned.pairs) == (Decided(2, 3, 9, 80), Decided(9, 3, 2, 80))


@pytest.mark.parametrize(("n_by_order", "is_there"), [(0, True), (60, True), (91, False)])
def test_no_drop_is_said_to_be_found_below_the_win_rate_of_who_loses_all_that_is_decided(n_by_order, is_there):
    """91 of 100 pairs go by order alone: whoever loses the other nine still wins 45.5 %."""
    (ruling,) = of_pairs("b " * (100 - n_by_order) + "f " * n_by_order if n_by_order else "a b " * 50)
    assert (ruling.smallest_drop is not None) == is_there
    assert ruling.delta_low < ruling.delta
    assert not is_there or ruling.smallest_drop < 0.5 - n_by_order / 200


@pytest.mark.parametrize(
    ("of_both", "more", "reason", "same_score"),
    [
        ([3.0] * 20, 0, NO_DIFFERENCE, 3.0), ([10.0] * 20, 0, NO_DIFFERENCE, 10.0), ([3.0, 4.0] * 10, 0, NO_DIFFERENCE, None),
        ([3.0] * 20, 1, None, None), ([0.7] * 6, 0, NO_DIFFERENCE, 0.7),
    ],
    ids=["every score", "all at the top", "on each prompt", "not on one of them", "few prompts"],
)  # fmt: skip
def test_where_nothing_differs_it_is_said(make_rubric, all_tables, of_both, more, reason, same_score):
    rows = scored("0", of_both) + scored("1", [*of_both[:-1], of_both[-1] + more])
    tables = all_tables(rows, make_rubric({None: ("q",)}))
    (ruling,) = with_cells(ruled(tables, (NORTH[1], NORTH[0]), alpha=0.05), tables["benchmark_long"])
    assert (ruling.outcome, ruling.reason, ruling.same_score) == (Outcome.NO_REGRESSION, reason, pytest.approx(same_score))
    assert (ruling.smallest_drop is None) == (reason is not None)


def test_scores_of_several_pictures_that_differ_are_not_all_the_same(make_rubric, all_tables):
    rows = scored("0", [3.0] * 20) + scored("1", [2.0] * 20)
    rows += [one | {"sample": f"{one['sample']} again", "scores": {"q": 4.0}} for one in rows if one["checkpoint"] == "1"]
    tables = all_tables(rows, make_rubric({None: ("q",)}))
    (ruling,) = with_cells(ruled(tables, (NORTH[1], NORTH[0])), tables["benchmark_long"])
    assert (ruling.reason, ruling.same_score) == (NO_DIFFERENCE, None)


def test_whose_judgements_the_dimension_does_not_apply_to_stands_beside_the_ruling(make_rubric, all_tables):
    rows = scored("0", [8.0] * 30) + scored("1", [8.1, 7.9, *[ASIDE] * 10] * 2)
    tables = all_tables(rows, make_rubric({None: ("q",)}), min_paired_prompts=2)
    pairs = (NORTH[1], NORTH[0]), (NORTH[0], NORTH[1])
    found = with_cells(ruled(tables, *pairs), tables["benchmark_long"])
    assert [one.n_not_applicable for one in found] == [(20, 0), (0, 20)]


def test_of_a_ranking_in_one_category_its_own_judgements_stand_beside_the_ruling(make_rubric, all_tables):
    """A dimension that is asked in two of three categories, and does not apply to three of the candidate's in one of these."""
    rows = [
        {"checkpoint": name, "category": category, "prompt": f"{category}{n}", "sample": f"{category}{n}",
         "scores": {"o": n % 7} | ({} if category == "c" else {"q": ASIDE if place == "b1" and n < 3 else n % 6})}
        for name in "01" for category in "abc" for place in [category + name] for n in range(15)
    ]  # fmt: skip
    tables = all_tables(rows, make_rubric({"a": ("q", "o"), "b": ("q", "o"), "c": ("o",)}), primary=["q"])
    found = with_cells(ruled(tables, (NORTH[1], NORTH[0])), tables["benchmark_long"])
    assert {one.category: one.n_not_applicable for one in found} == {"a": (0, 0), "b": (3, 0)}


@pytest.mark.parametrize(("n_lost", "n_won"), [(40, 6), (30, 16), (23, 23), (35, 11), (10, 40)])
def test_a_win_rates_interval_is_its_rulings_own(n_lost, n_won):
    (ruling,) = of_pairs("b " * n_lost + "a " * n_won)
    excludes_half = ruling.delta_low > 0 or ruling.delta_high < 0
    assert excludes_half == (ruling.outcome is not Outcome.NO_REGRESSION)
    assert ruling.delta_low < ruling.delta < ruling.delta_high


def test_so_few_pairs_that_losing_all_would_show_nothing():
    least = prompts_needed(of_pairs("b " * 6), ALPHA)
    assert [of_pairs("b " * n)[0].reason for n in (least - 1, least)] == [TOO_FEW, None]
    assert of_pairs("b " * least)[0].outcome is Outcome.REGRESSION


def test_a_drop_of_the_win_rate_that_is_said_to_be_found_is_found_in_four_of_five_cases():
    """Drawn anew 120 times at the win rate that 60 equal prompts say would be found."""
    (ruling,) = of_pairs("a " * 30 + "b " * 30)
    rate, draw = 0.5 - ruling.smallest_drop, Random(1)
    nights = [["a" if draw.random() < rate else "b" for _ in range(60)] for _ in range(120)]
    n_found = sum(of_pairs(" ".join(one))[0].outcome is Outcome.REGRESSION for one in nights)
    assert 0.72 <= n_found / 120 <= 0.92


def test_means_and_win_rates_are_corrected_together(make_rubric, all_tables):
    tables = all_tables(drawn(5, 5, 4.4), make_rubric({None: ("q",)}))
    pair = (NORTH[1], NORTH[0])
    won = preference_tables_of(said("north/1", "north/0", "b " * 40 + "a " * 6))[PREFERENCES].filter(category="__macro__")
    alone, (beside, of_two) = ruled(tables, pair), ruled(tables, pair, won=won)
    assert beside.p_adjusted == pytest.approx(min(1.0, 2 * alone[0].p_adjusted))
    assert (of_two.is_win_rate, of_two.outcome) == (True, Outcome.REGRESSION)
    assert beside.delta_low < alone[0].delta_low
