"""A short form of benchmarks/simulations/pairs.py: what the tables of drawn tournaments say is as often true as they say."""

from collections import Counter

import pytest

from benchmarks.simulations import few_meetings, refused_pairs
from benchmarks.simulations.pairs import counted, rates, worlds

pytestmark = pytest.mark.slow


def test_the_tables_of_simulated_tournaments_hold_their_truth():
    total = Counter[str]()
    for found in worlds(60, seed=7, checkpoints=(5, 8), prompts=(50, 120)):
        total.update(counted(found))
    found = rates(total)
    assert 0.92 < found["win rates held"] < 0.98
    assert 0.91 < found["ratings held"] < 0.99
    assert found["position held"] > 0.88
    assert found["false better"] <= 0.08
    assert found["all ranks held"] >= 0.95
    assert found["as round robin"] >= 0.95
    assert found["called otherwise"] == 0
    assert found["looks that were false"] <= 0.08
    assert found["calls"] < 0.5


def test_a_small_category_makes_no_rating_surer_than_it_is():
    """With one standard error's K - 1 degrees of freedom for all categories, 90 % were held, and 20 % of worlds left one out."""
    found = few_meetings.rates(60, few_meetings.SIZES["5 and 100"], 10, seed=5)
    assert found["ratings held"] >= 0.94
    assert found["ranks that leave one out"] <= 0.06


def test_refusals_in_one_category_make_equals_no_more_different():
    """What looks and score test may spend is 5 %; with refused prompts left out of the bets it was 26 to 37 %."""
    found = refused_pairs.rates(60, *refused_pairs.WORLDS["equals, 35 % of one category refused"], seed=3, n_a_look=100)
    assert found["at_random: found"] <= 0.12
    assert found["worst_case: found"] <= 0.08
