"""The short form of `make simulate`: the same code, fewer draws, bounds widened by three standard errors of a rate."""

import pytest

from benchmarks.simulate_statistics import coverage, paired, ranks


@pytest.mark.parametrize(
    ("rates", "n_draws", "n_rates"), [(coverage, 150, 22), (paired, 100, 6), (ranks, 20, 1)], ids=["coverage", "paired", "ranks"]
)
def test_rates_lie_where_they_must(rates, n_draws, n_rates):
    found = list(rates(n_draws, 20261103))
    assert len(found) == n_rates
    assert [f"{rate.name}: {rate.rate}" for rate in found if not rate.is_within(n_errors=3.0)] == []
