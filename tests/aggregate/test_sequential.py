"""Looks: boundaries against published ones, p and interval that agree, the error rate over all looks, and when to go on."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tasks.aggregate.looks import Reached
from tasks.aggregate.sequential import WHOLE, Look

SHARES = (0.25, 0.5, 0.75, 1.0)


@pytest.mark.parametrize(
    "bounds",
    [(2.9626, 1.9686), (3.7103, 2.5114, 1.9930), (4.3326, 2.9631, 2.3590, 2.0141), (4.8769, 3.3569, 2.6803, 2.2898, 2.0310)],
    ids=["2", "3", "4", "5"],
)
def test_the_boundaries_of_equal_looks_are_the_published_ones(bounds: tuple[float, ...]) -> None:
    """O'Brien and Fleming's spending at 5 %, two-sided (Reboussin, DeMets, Kim & Lan, Controlled Clinical Trials 21, 2000)."""
    n = len(bounds)
    shares = tuple((k + 1) / n for k in range(n))
    found = [stats.norm.isf((1 - Look(shares[: k + 1]).level(0.95)) / 2) for k in range(n)]
    assert found == pytest.approx(bounds, abs=2e-4)


def test_one_look_at_everything_changes_nothing() -> None:
    assert (WHOLE.level(0.95), WHOLE.p(0.03), WHOLE.p(1.0)) == (0.95, 0.03, 1.0)


@settings(max_examples=60)
@given(
    nominal=st.floats(1e-13, 1.0),
    alpha=st.floats(1e-9, 0.2),
    shares=st.sampled_from([SHARES[:1], SHARES[:2], SHARES[:3], SHARES, (0.1, 0.9), (0.35, 0.36, 1.0)]),
)
def test_p_is_under_alpha_where_the_interval_leaves_nothing_out(nominal: float, alpha: float, shares: tuple[float, ...]) -> None:
    look = Look(shares)
    p, needed = look.p(nominal), 1 - look.level(1 - alpha)
    assert p >= nominal * (1 - 1e-9), "a look is never worth more than one test"
    if abs(nominal - needed) > 1e-6 * needed + 1e-12:
        assert (p < alpha) == (nominal < needed)


@pytest.mark.parametrize("alpha", [0.05, 0.05 / 30])
def test_over_all_looks_no_more_than_alpha_is_found_where_nothing_is(alpha: float) -> None:
    n = 200_000
    steps = np.random.default_rng(7).normal(0, 0.5, (n, 4))
    z = steps.cumsum(axis=1) / np.sqrt(SHARES)
    out = np.zeros(n, bool)
    for k in range(4):
        out |= abs(z[:, k]) > stats.norm.isf((1 - Look(SHARES[: k + 1]).level(1 - alpha)) / 2)
    assert stats.binomtest(int(out.sum()), n, alpha).pvalue > 1e-3


def test_a_difference_that_is_far_from_found_has_little_chance_and_a_near_one_much() -> None:
    half = Look(SHARES[:2], SHARES[2:])
    chances = [half.chance(p, 0.05) for p in (1.0, 0.5, 0.1, 0.01)]
    assert chances == sorted(chances)
    assert chances[0] == pytest.approx(stats.norm.sf((2.0141 - 1.28155 / np.sqrt(0.5) * 0.5) / np.sqrt(0.5)), abs=1e-3)
    assert chances[-1] > 0.95
    assert half.chance(0.1, 0.05 / 50) < half.chance(0.1, 0.05), "the more comparisons, the less is found"
    assert Look(SHARES).chance(0.01, 0.05) == 0.0, "nothing comes after the last look"


@pytest.mark.parametrize(
    ("planned", "number", "floor", "expected"),
    [
        ({"a": [10, 20, 40]}, 2, 5, Look((0.25, 0.5), (1.0,))),
        ({"a": [10, 20, 40]}, 3, 5, Look((0.25, 0.5, 1.0))),
        ({"a": [4, 20, 40]}, 2, 5, Look((0.5,), (1.0,))),
        ({"a": [4, 20, 40]}, 1, 5, None),
        ({"a": [10, 20], "b": [2, 20]}, 1, 2, Look((round(0.1 / 0.6, 3),), (1.0,))),
        ({"a": [10, 10, 20]}, 2, 5, Look((0.5,), (1.0,))),
        ({"a": [1, 2, 3]}, 3, 5, Look((1.0,))),
    ],
    ids=[
        "second",
        "last",
        "small ones are none",
        "of too few",
        "the scarcest category counts most",
        "twice the same",
        "all are small",
    ],
)
def test_what_a_look_has_seen(planned: dict[str, list[int]], number: int, floor: int, expected: Look | None) -> None:
    assert Reached(number, planned).at(number, list(planned), floor) == expected


def test_a_first_look_at_next_to_nothing_leaves_the_others_able_to_find_something() -> None:
    look = Reached(3, {"a": [5, 6_000, 12_000]}).at(3, ["a"], 5)
    assert look is not None
    assert look.shares == (0.001, 0.5, 1.0)
    assert (look.p(0.01) < 0.02, look.level(0.95) < 0.98) == (True, True)


@pytest.mark.parametrize(
    ("number", "floor", "expected"),
    [(2, 5, Look((0.26, 0.508), (0.754, 1.0))), (2, 18, Look((0.508,), (0.754, 1.0))), (1, 18, None)],
    ids=["by all prompts", "too few of one before", "too few of one"],
)
def test_a_look_at_a_mean_of_prompts_has_seen_its_share_of_them(number: int, floor: int, expected: Look | None) -> None:
    """One small category that came early says little of 1,020 prompts; of a mean of categories it is nearly half."""
    planned = {"small": [15, 18, 19, 20], "big": [250, 500, 750, 1000]}
    assert Reached(number, planned).at(number, list(planned), floor, is_pooled=True) == expected
