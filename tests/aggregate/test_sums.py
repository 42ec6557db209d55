"""Sums that know no order: exact on the grid, close to the true sum, the same for any shuffling."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.aggregate.prompt_sums import exact_sums

VALUES = st.lists(st.floats(-1e3, 1e3, allow_subnormal=False), min_size=1, max_size=60)


@given(VALUES, st.randoms(use_true_random=False))
def test_any_order_gives_the_same_bytes(values, shuffle):
    index = np.array([n % 4 for n in range(len(values))])
    order = list(range(len(values)))
    shuffle.shuffle(order)
    first = exact_sums(index, np.array(values), 4)
    again = exact_sums(index[order], np.array(values)[order], 4)
    assert first.tobytes() == again.tobytes()


@given(VALUES)
def test_the_sum_is_that_of_fsum(values):
    found = exact_sums(np.zeros(len(values), int), np.array(values), 1)[0]
    limit = max(abs(value) for value in values) * len(values)
    assert found == pytest.approx(math.fsum(values), abs=limit * len(values) * 2.0**-50 + 1e-269)


@pytest.mark.parametrize("n", [1, 10, 100_000])
def test_whole_numbers_stay_whole(n):
    assert exact_sums(np.zeros(n, int), np.full(n, 7.0), 1)[0] == 7.0 * n


def test_an_order_that_changes_a_plain_sum_changes_nothing_here():
    orders = [np.array(one) for one in ([0.1, 0.2, 0.3], [0.3, 0.2, 0.1])]
    assert len({float(np.bincount(np.zeros(3, int), one)[0]) for one in orders}) > 1
    assert len({float(exact_sums(np.zeros(3, int), one, 1)[0]) for one in orders}) == 1
