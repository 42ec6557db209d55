"""Figures of agreement against textbook sums in exact fractions, scipy, and laws that hold whatever the data."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.statuses.people import AgreementMetric
from tasks.aggregate.agreement import jackknife
from tasks.aggregate.agreement.agreement import OF_ITEMS
from tasks.aggregate.agreement.metrics import krippendorff_alpha, pair_metric, pairwise_accuracy, quadratic_kappa

NAN = np.nan
CANONICAL = np.array([
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
    [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
]).T  # fmt: skip
"""The reliability data of Krippendorff, Computing Krippendorff's Alpha-Reliability (2011): four observers, twelve units."""

COHEN = [[88, 14, 18], [10, 40, 10], [2, 6, 12]]
"""Cohen's table of diagnoses (Psychological Bulletin 70, 1968), its proportions times 200. His own weights are not squares."""


def textbook_alpha(values: np.ndarray) -> Fraction:
    """Krippendorff's ordinal alpha by his coincidence matrix, in fractions."""
    labels = sorted({int(v) for v in values[~np.isnan(values)]})
    coincidences = {pair: Fraction(0) for pair in product(labels, labels)}
    for row in values:
        found = [int(v) for v in row if not np.isnan(v)]
        for i, j in product(range(len(found)), repeat=2):
            if i != j:
                coincidences[found[i], found[j]] += Fraction(1, len(found) - 1)
    n_of = {c: sum(coincidences[c, k] for k in labels) for c in labels}
    n = sum(n_of.values())

    def distance(c: int, k: int) -> Fraction:
        low, high = min(c, k), max(c, k)
        return (sum(n_of[g] for g in labels if low <= g <= high) - (n_of[c] + n_of[k]) / 2) ** 2

    observed = sum(coincidences[c, k] * distance(c, k) for c, k in product(labels, labels))
    expected = sum(n_of[c] * n_of[k] * distance(c, k) for c, k in product(labels, labels)) / (n - 1)
    return 1 - observed / expected


def test_krippendorffs_own_example() -> None:
    alpha = krippendorff_alpha(CANONICAL)
    assert alpha == pytest.approx(float(textbook_alpha(CANONICAL)), abs=1e-12)
    assert round(alpha, 3) == 0.815  # as printed


def test_quadratic_kappa_of_cohens_table() -> None:
    """By hand: observed (40·1 + 20·4)/200 = 0.6, expected (84·1 + 34·4)/200 = 1.1, kappa = 1 - 0.6/1.1 = 5/11."""
    cells = [(i, j) for i, j in product(range(3), repeat=2) for _ in range(COHEN[i][j])]
    x, y = np.array(cells, dtype=float).T
    assert quadratic_kappa(x, y) == pytest.approx(5 / 11, abs=1e-12)


def test_kappa_keeps_the_places_of_unused_labels() -> None:
    """0, 5 and 10 of a scale from 0 to 10: taken as the labels 0, 1, 2 of those seen, a 6 would be as far from 5 as from 10."""
    x, y = np.array([0.0, 5, 10, 6, 5, 0]), np.array([0.0, 5, 10, 5, 10, 5])
    seen = {value: place for place, value in enumerate(sorted({*x, *y}))}
    by_place = quadratic_kappa(*(np.array([float(seen[v]) for v in values]) for values in (x, y)))
    assert quadratic_kappa(x, y) != pytest.approx(by_place, abs=0.01)
    assert quadratic_kappa(x, y) == pytest.approx(float(_kappa_by_table(x, y, 11)), abs=1e-12)


def _kappa_by_table(x: np.ndarray, y: np.ndarray, n_labels: int) -> Fraction:
    n = len(x)
    observed = sum(Fraction(int(a - b) ** 2, n) for a, b in zip(x, y, strict=True))
    counts = [(i - j) ** 2 * int(np.sum(x == i)) * int(np.sum(y == j)) for i, j in product(range(n_labels), repeat=2)]
    expected = Fraction(sum(counts), n * n)
    return 1 - observed / expected


def test_pairwise_accuracy_counts_ties() -> None:
    """Pairs of (1,2,2) and (1,1,2): 1-2 ordered against tied, wrong; 1-3 ordered alike; 2-3 tied against ordered, wrong."""
    assert pairwise_accuracy(np.array([1.0, 2, 2]), np.array([1.0, 1, 2])) == pytest.approx(1 / 3)


scores = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=40)


@given(scores, st.randoms(use_true_random=False))
def test_the_order_of_samples_changes_nothing(pairs: list[tuple[int, int]], shuffle: object) -> None:
    turned = pairs.copy()
    shuffle.shuffle(turned)
    for metric in OF_ITEMS:
        one, other = (pair_metric(metric, *np.array(rows, dtype=float).T) for rows in (pairs, turned))
        assert one == pytest.approx(other, abs=1e-12) if one is not None else other is None


@given(scores)
def test_perfect_agreement_is_one(pairs: list[tuple[int, int]]) -> None:
    x = np.array([a for a, _ in pairs], dtype=float)
    for metric in OF_ITEMS:
        found = pair_metric(metric, x, x)
        if metric is AgreementMetric.BIAS:
            assert found == 0
        elif np.ptp(x) > 0 or metric is AgreementMetric.PAIRWISE_ACCURACY:
            assert found == pytest.approx(1, abs=1e-12)
        else:
            assert found is None


@given(scores)
def test_alpha_is_the_textbooks(pairs: list[tuple[int, int]]) -> None:
    values = np.array(pairs, dtype=float)
    found = krippendorff_alpha(values)
    assert found == pytest.approx(float(textbook_alpha(values)), abs=1e-9) if np.ptp(values) > 0 else found is None


@pytest.fixture(scope="module")
def drawn() -> dict[str, np.ndarray]:
    """Ninety samples of thirty prompts, in no order, with ties."""
    rng = np.random.default_rng(3)
    clusters = rng.permutation(np.repeat(np.arange(30), 3))
    x = rng.integers(0, 6, 90).astype(float)
    y = np.clip(x + rng.integers(-2, 3, 90), 0, 5).astype(float)
    return {"x": x, "y": y, "clusters": clusters}


@pytest.mark.parametrize("metric", [*OF_ITEMS, AgreementMetric.VOTE_ACCURACY])
def test_a_replicate_is_the_figure_of_what_is_left(metric: AgreementMetric, drawn: dict[str, np.ndarray]) -> None:
    x, y, clusters = drawn.values()
    for prompt, found in enumerate(jackknife.pair_replicates(metric, x, y, clusters)):
        is_left = clusters != prompt
        assert found == pytest.approx(pair_metric(metric, x[is_left], y[is_left]), abs=1e-11)


@pytest.mark.parametrize("metric", [*OF_ITEMS, AgreementMetric.VOTE_ACCURACY])
def test_of_very_many_prompts_a_replicate_leaves_out_a_group(metric: AgreementMetric) -> None:
    rng = np.random.default_rng(6)
    x, clusters = rng.integers(0, 6, 1_300).astype(float), rng.permutation(1_300)
    y = np.clip(x + rng.integers(-2, 3, 1_300), 0, 5).astype(float)
    replicates = jackknife.pair_replicates(metric, x, y, clusters)
    for group in (0, 299, 300, 999):
        is_left = clusters % 1_000 != group
        assert replicates[group] == pytest.approx(pair_metric(metric, x[is_left], y[is_left]), abs=1e-11)


@pytest.mark.parametrize("kind", ["ordinal", "interval", "nominal"])
def test_alpha_of_replicates_with_missing_cells(kind: str, drawn: dict[str, np.ndarray]) -> None:
    rng = np.random.default_rng(4)
    values = np.column_stack([drawn["x"], drawn["y"], drawn["y"][::-1]])
    values[rng.random(values.shape) < 0.3] = NAN
    replicates = jackknife.alpha_replicates(values, drawn["clusters"], kind)
    for prompt, found in enumerate(replicates):
        assert found == pytest.approx(krippendorff_alpha(values[drawn["clusters"] != prompt], kind), abs=1e-11)
