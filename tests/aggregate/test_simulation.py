"""The short form of `make simulate`: the same code, fewer draws, bounds widened by three standard errors of a rate."""

import numpy as np
import pytest

from benchmarks.simulations.claims import N_CHECKPOINTS, RUBRICS, claims, first_screen, publications
from benchmarks.simulations.drawn_scores import tables_of, world
from benchmarks.simulations.statistics import coverage, paired, ranks

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("rates", "n_draws", "n_rates"), [(coverage, 150, 22), (paired, 100, 8), (ranks, 20, 1)], ids=["coverage", "paired", "ranks"]
)
def test_rates_lie_where_they_must(rates, n_draws, n_rates):
    found = list(rates(n_draws, 20261103))
    assert len(found) == n_rates
    assert [f"{rate.name}: {rate.rate}" for rate in found if not rate.is_within(n_errors=3.0)] == []


@pytest.mark.parametrize("dimensions", RUBRICS.values(), ids=RUBRICS)
def test_pages_of_benchmarks_in_which_nothing_differs_claim_nothing(dimensions):
    """The short form of benchmarks/simulations/claims.py: a few publications, whose expected claims are well under one."""
    said = [found for tables in publications(5, 7, dimensions) if (found := claims(first_screen(tables)))]
    assert len(said) <= 2


def test_what_a_page_claims_is_read():
    """The reading bites: where checkpoints do differ, words, ranks and colours are all found."""
    _, scores, has_failed = world(np.random.default_rng(3), 1, N_CHECKPOINTS, 1, shift=0.5)
    found = claims(first_screen(tables_of(scores, np.zeros_like(has_failed), ("overall_score",))))
    assert {"is the best", "is better than", 'class="first"', 'class="delta up"', "1", "5"} <= set(found)
