"""A short form of benchmarks/simulations/pairs.py: what the tables of drawn tournaments say is as often true as they say."""

from collections import Counter

import pytest

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
