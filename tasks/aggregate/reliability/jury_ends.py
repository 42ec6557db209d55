"""Intervals of a jury's figures: each prompt (or group of them) left out in turn, from sums less what the prompt adds to them.

In agreement/jackknife.py each replicate of ranks ranks its samples anew. Here the levels are ranked, of which scores have few.
The figures themselves are jury.py's and agreement/metrics.py's.
"""

from collections.abc import Mapping

import numpy as np

from schemas.statuses.nights import JuryMetric
from schemas.statuses.people import AgreementMetric
from tasks.aggregate.agreement.jackknife import ends, groups_of, ratio
from tasks.aggregate.agreement.metrics import MIN_PROMPTS, has_enough_labels, n_prompts_alike, within_squares
from tasks.aggregate.intervals import LEVEL, Counts, Floats, jackknife_error, t_quantile
from tasks.stopping import check_not_stopped

MAX_LEVELS = 300
"""Of more different scores (means of repeats on a fine scale) rank figures have no interval: it would be dear."""
_LESS_FREEDOM = 3
_TINY = 1e-12

Ends = tuple[float, float] | None


def rank_ends(metric: AgreementMetric, figure: float | None, values: Floats, clusters: Counts) -> Ends:
    """Of Spearman's correlation of two judges, or Krippendorff's ordinal alpha of `values`, (samples, judges), NaN: none."""
    is_there = ~np.isnan(values)
    levels = np.unique(values[is_there])
    if figure is None or len(levels) > MAX_LEVELS or not _is_enough(values, clusters):
        return None
    check_not_stopped()
    places = np.where(is_there, np.searchsorted(levels, np.where(is_there, values, levels[0])), -1)
    without = spearman_without if metric is AgreementMetric.SPEARMAN else alpha_without
    return ends(metric, figure, without(places, groups_of(clusters), len(levels)), LEVEL, n_prompts_alike(clusters))


def intraclass_ends(figures: Mapping[JuryMetric, float | None], values: Floats, clusters: Counts) -> dict[JuryMetric, Ends]:
    """Of the intraclass correlations of (samples, judges) without gaps; the judges are these, the samples drawn by prompt.

    On Fisher's z of k judges, ½ log((1 + (k - 1) r) / (1 - r)), with K - 3 degrees of freedom; the ends for the jury's mean are
    those for one judge, carried over (Spearman & Brown), as the figures are.
    """
    found: dict[JuryMetric, Ends] = dict.fromkeys(JuryMetric)
    if not _is_enough(values, clusters):
        return found
    k, made = values.shape[1], intraclass_without(values, groups_of(clusters))
    df = max(1.0, min(float(len(made[0])), n_prompts_alike(clusters)) - _LESS_FREEDOM)
    for (kind, of_mean), replicates in zip(_KINDS, made, strict=True):
        figure = figures[kind]
        one = None if figure is None else _on_z(figure, replicates, k, df)
        if one is not None:
            found |= {kind: one, of_mean: (_of_mean(one[0], k), _of_mean(one[1], k))}
    return found


_KINDS = (
    (JuryMetric.ICC_AGREEMENT, JuryMetric.ICC_AGREEMENT_MEAN), (JuryMetric.ICC_CONSISTENCY, JuryMetric.ICC_CONSISTENCY_MEAN),
)  # fmt: skip


def _on_z(figure: float, replicates: Floats, k: int, df: float) -> Ends:
    every = np.append(replicates, figure)
    if not np.isfinite(every).all() or every.max() >= 1 - _TINY or every.min() <= -1 / (k - 1) + _TINY:
        return None
    z = np.log((1 + (k - 1) * every) / (1 - every)) / 2
    if np.ptp(z) <= _TINY:
        return None
    half = t_quantile(LEVEL, df) * jackknife_error(z[:-1] - np.mean(z[:-1]))
    low, high = (float(np.expm1(2 * end) / (np.exp(2 * end) + k - 1)) for end in (z[-1] - half, z[-1] + half))
    return low, high


def _of_mean(one: float, k: int) -> float:
    return k * one / (1 + (k - 1) * one)


def _is_enough(values: Floats, clusters: Counts) -> bool:
    n_prompts = int(clusters.max(initial=-1)) + 1
    return n_prompts >= MIN_PROMPTS and has_enough_labels(AgreementMetric.KRIPPENDORFF_ALPHA, values, clusters)


def intraclass_without(values: Floats, groups: Counts) -> tuple[Floats, Floats]:
    """Agreement and consistency of one judge, ICC(A,1) and ICC(C,1), without each group: jury.intraclass() of what is left."""
    k, centred = values.shape[1], values - values.mean()
    columns = np.column_stack([np.ones(len(values)), np.sum(centred**2, axis=1), np.sum(centred, axis=1) ** 2, centred])
    own = np.stack([np.bincount(groups, weights=column) for column in columns.T])
    n, squares, by_item, *by_judge = np.sum(own, axis=1, keepdims=True) - own
    n, judges = np.maximum(n, 2), np.stack(by_judge)
    all_at_once = np.sum(judges, axis=0) ** 2 / (n * k)
    items, levels = by_item / k, np.sum(judges**2, axis=0) / n
    error = np.maximum(squares - items - levels + all_at_once, 0.0) / ((n - 1) * (k - 1))
    of_items, of_judges = (items - all_at_once) / (n - 1), (levels - all_at_once) / (k - 1)
    consistency = of_items + (k - 1) * error
    agreement = consistency + k * (of_judges - error) / n
    return ratio(of_items - error, agreement), ratio(of_items - error, consistency)


def spearman_without(places: Counts, groups: Counts, n_levels: int) -> Floats:
    """Spearman's correlation without each group; `places` of both judges' scores among the levels, (samples, 2)."""
    (rank_x, n_x), (rank_y, n_y) = (_ranks(side, groups, n_levels) for side in places.T)
    together = _quadratic(rank_x, _table(places[:, 0], places[:, 1], n_levels), rank_y)
    together -= np.bincount(groups, weights=rank_x[groups, places[:, 0]] * rank_y[groups, places[:, 1]], minlength=len(rank_x))
    return ratio(together, np.sqrt(np.sum(n_x * rank_x**2, axis=1) * np.sum(n_y * rank_y**2, axis=1)))


def alpha_without(places: Counts, groups: Counts, n_levels: int) -> Floats:
    """Krippendorff's ordinal alpha without each group; `places` of scores among the levels, (samples, judges), -1: none.

    Within a sample of m scores the squared distances are 2 (m Σ rank² - (Σ rank)²) / (m - 1): over all samples a quadratic form
    in the ranks of the levels, from which the group's own samples are taken.
    """
    n_each, n_groups = np.sum(places >= 0, axis=1), int(groups.max()) + 1
    is_used = n_each >= 2
    owners, flat = np.repeat(groups[is_used], n_each[is_used]), places[is_used][places[is_used] >= 0]
    ranks, n = _ranks(flat, owners, n_levels, n_groups)
    observed = np.zeros(n_groups)
    for m in np.unique(n_each[is_used]):
        rows = n_each == m
        mine = places[rows][places[rows] >= 0].reshape(-1, m)
        form = np.sum([_table(a, b, n_levels) for a in mine.T for b in mine.T], axis=0)
        squares = np.einsum("gl,l->g", ranks**2, np.bincount(mine.ravel(), minlength=n_levels).astype(np.float64))
        own = within_squares(ranks[groups[rows][:, None], mine])
        observed += 2 * (m * squares - _quadratic(ranks, form, ranks)) / (m - 1)
        observed -= np.bincount(groups[rows], weights=own, minlength=n_groups)
    total = np.sum(n, axis=1)
    expected = np.sum(n * ranks**2, axis=1) * 2 * total / np.maximum(total - 1, 1)
    return ratio(expected - observed, expected)


def _ranks(places: Counts, groups: Counts, n_levels: int, n_groups: int = 0) -> tuple[Floats, Floats]:
    """Without each group: every level's midrank less the mean rank, and its number of scores; shape (groups, levels)."""
    n_groups = n_groups or int(groups.max()) + 1
    own = np.bincount(groups * n_levels + places, minlength=n_groups * n_levels).reshape(n_groups, n_levels)
    n = (np.sum(own, axis=0) - own).astype(np.float64)
    return np.cumsum(n, axis=1) - n / 2 - np.sum(n, axis=1, keepdims=True) / 2, n


def _table(x: Counts, y: Counts, n_levels: int) -> Floats:
    return np.bincount(x * n_levels + y, minlength=n_levels**2).reshape(n_levels, n_levels).astype(np.float64)


def _quadratic(left: Floats, form: Floats, right: Floats) -> Floats:
    return np.asarray(np.sum(np.einsum("gl,lm->gm", left, form, optimize=False) * right, axis=1))
