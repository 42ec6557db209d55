"""Whether failures fall where scores are low: the permutation law where scores are tied, and its bound far out."""

import numpy as np
import pytest
from scipy import stats

from tasks.aggregate.comparisons.failure_tests import N_PERMUTATIONS, PLAIN, failures_low_p
from tasks.aggregate.tallies import Tally


def tally(scores: np.ndarray, has_failed: np.ndarray) -> Tally:
    """One category, a picture a prompt."""
    n_scored = (~has_failed).astype(np.int64)
    columns = {
        "n_images": n_scored, "value": np.where(has_failed, 0.0, scores), "squares": np.zeros(len(scores)),
        "n_judgements": np.ones(len(scores), np.int64), "n_scored": n_scored, "prompt": np.arange(len(scores)),
    }  # fmt: skip
    return Tally(columns, {"c": slice(None)}, {})


def top_marks(n: int, n_low: int) -> np.ndarray:
    """Fives, but for the first few prompts."""
    return np.where(np.arange(n) < n_low, 1.0, 5.0)


def of_tied(n_failed: int, n_on_low: int) -> tuple[float | None, float]:
    """(p, the law's own) of failures on 300 prompts of which 15 are low."""
    scores, has_failed = top_marks(300, 15), np.zeros(300, bool)
    has_failed[:n_on_low] = True
    has_failed[100 : 100 + n_failed - n_on_low] = True
    p = failures_low_p(tally(scores, has_failed), tally(scores, np.zeros(300, bool)))
    exact = float(stats.hypergeom.sf(n_on_low - 1, 300, 15, n_failed))
    return p, exact


@pytest.mark.parametrize(("n_failed", "n_on_low"), [(4, 1), (6, 2), (12, 2), (60, 7), (60, 9)])
def test_tied_scores_have_the_hypergeometric_law(n_failed: int, n_on_low: int) -> None:
    """Of 300 prompts 15 are low: the rank sum is the number of failures on them, and nothing else."""
    p, exact = of_tied(n_failed, n_on_low)
    assert p is not None
    assert p < PLAIN or exact >= PLAIN
    if PLAIN > p >= 1 / N_PERMUTATIONS:
        assert abs(p - exact) < 4 * (exact / N_PERMUTATIONS) ** 0.5 + 1 / N_PERMUTATIONS


@pytest.mark.parametrize(("n_failed", "n_on_low"), [(4, 4), (6, 5), (12, 8), (60, 15)])
def test_far_out_it_is_a_bound_of_that_law_and_not_far_above_it(n_failed: int, n_on_low: int) -> None:
    p, exact = of_tied(n_failed, n_on_low)
    assert p is not None
    assert exact <= p < 1 / N_PERMUTATIONS
    assert np.log(p) < 0.6 * np.log(exact)


def test_random_failures_of_top_marks_are_found_no_more_often_than_said() -> None:
    """By the normal law 4 % of these p are under 0.001, and 0.8 % under a millionth."""
    rng, found = np.random.default_rng(31), []
    for _ in range(600):
        scores = np.where(rng.random(553) < 0.02, 1.0, 5.0)
        a, b = (tally(scores, rng.random(553) < 0.003) for _ in "ab")
        found.append(failures_low_p(a, b))
    known = np.array([p for p in found if p is not None])
    assert len(known) > 400
    for level in (0.1, 0.0125, 0.001):
        assert (known <= level).mean() <= level + 3 * (level / len(known)) ** 0.5


def test_the_same_failures_have_the_same_p() -> None:
    rng = np.random.default_rng(32)
    scores = rng.integers(0, 11, 200).astype(float)
    a, b = tally(scores, (scores < 6) & (rng.random(200) < 0.04)), tally(scores, np.zeros(200, bool))
    p = failures_low_p(a, b)
    assert p == failures_low_p(a, b)
    assert p is not None
    assert 1 / N_PERMUTATIONS < p < PLAIN, "permutations say it, not their bound"


def test_no_failure_has_no_p() -> None:
    scores, none = top_marks(20, 3), np.zeros(20, bool)
    assert failures_low_p(tally(scores, none), tally(scores, none)) is None
