"""Intervals of agreement: each prompt left out in turn, every figure taken anew. The figures are metrics.py.

Nothing is copied: figures are made of sums over samples, and a replicate's are those of all samples less those of the group of
prompts that it leaves out. For ranks, samples are weighted by 1 or 0, some replicates at once. Sums run in one order without
BLAS, so that threads change no published byte.
"""

from collections.abc import Iterator

import numpy as np

from schemas.statuses.people import AgreementMetric
from tasks.aggregate.agreement.metrics import (
    ALPHAS,
    LABEL_DISTANCES,
    MAX_PAIRWISE_ITEMS,
    SHARES,
    AlphaKind,
    sign_blocks,
    within_squares,
)
from tasks.aggregate.intervals import ClusteredMean, Counts, Floats, Interval, interval, jackknife_error, t_quantile
from tasks.stopping import check_not_stopped

MAX_GROUPS = 1_000
"""Above this many prompts, as many groups of them are left out in turn."""
_BLOCK_CELLS = 2_000_000
_MAX_PAIRWISE_PROMPTS = 3_000


def groups_of(clusters: Counts) -> Counts:
    """By sample the group it is left out with: its prompt, or one of MAX_GROUPS. `clusters` numbers its prompt from 0."""
    return np.asarray(clusters % _n_groups(clusters), dtype=np.int64)


def _n_groups(clusters: Counts) -> int:
    return min(int(clusters.max(initial=0)) + 1, MAX_GROUPS)


def ends(
    metric: AgreementMetric, estimate: float, replicates: Floats | None, level: float, n_alike: float | None = None
) -> tuple[float, float] | None:
    """The figure ± t times the jackknife's standard error over K prompts (or groups), on Fisher's z where the figure ends at 1.

    Tukey (1958); Arvesen, Ann. Math. Stat. 40 (1969). t has K - 1 degrees of freedom, K - 3 for kappas,
    Pearson's and the alphas that are not of ranks; of prompts of unequal size K is at most `n_alike`. Of shares it is Wilson's
    interval (intervals.py) with that error. Which is used where was chosen by how often the interval holds the truth:
    docs/statistics.md. None without replicates, where one is undefined, or where all are the same, but of a share of 0 or 1.
    """
    if replicates is None or not np.isfinite(replicates).all():
        return None
    n = min(float(len(replicates)), n_alike or np.inf)
    df = max(1.0, n - (3 if metric in _LESS_FREEDOM else 1))
    if metric in SHARES:  # where all is alike: of pairs of samples one that is off spoils as many as two that are off alone
        n_units = max(1, int(n) // (2 if metric is AgreementMetric.PAIRWISE_ACCURACY else 1))
        found = interval(ClusteredMean(estimate, _error(replicates), df, n_units, None), 0.0, 1.0, level)
        return (found.low, found.high) if isinstance(found, Interval) else None
    if np.ptp(replicates) <= _SAME:
        return None
    is_inside = bool(max(np.abs(replicates).max(), abs(estimate)) < 1 - _SAME)
    is_on_z = metric is not AgreementMetric.BIAS and is_inside
    if is_on_z:
        estimate, replicates = float(np.arctanh(estimate)), np.arctanh(replicates)
    half = t_quantile(level, df) * _error(replicates)
    low, high = estimate - half, estimate + half
    if is_on_z:
        return float(np.tanh(low)), float(np.tanh(high))
    most = np.inf if metric is AgreementMetric.BIAS else 1.0
    return max(low, -most), min(high, most)


def _error(replicates: Floats) -> float:
    return jackknife_error(replicates - np.mean(replicates))


def ci_method(metric: AgreementMetric) -> str:
    """What `ci_method` says of an interval of ends()."""
    return "wilson_jackknife_t_prompts" if metric in SHARES else "jackknife_t_prompts"


_SAME = 1e-12
_LESS_FREEDOM = frozenset({
    AgreementMetric.QUADRATIC_KAPPA, AgreementMetric.LINEAR_KAPPA, AgreementMetric.COHEN_KAPPA, AgreementMetric.PEARSON,
    AgreementMetric.KRIPPENDORFF_ALPHA_INTERVAL, AgreementMetric.KRIPPENDORFF_ALPHA_NOMINAL,
})  # fmt: skip


def pair_replicates(metric: AgreementMetric, x: Floats, y: Floats, clusters: Counts) -> Floats | None:
    """The metric without each group of prompts, shape (groups,); NaN where undefined. None where there are too many pairs.

    `clusters` numbers each sample's prompt from 0, without gaps.
    """
    if metric in ALPHAS:
        return alpha_replicates(np.column_stack([x, y]), clusters, ALPHAS[metric])
    match metric:
        case AgreementMetric.SPEARMAN:
            return _spearman(x, y, clusters)
        case AgreementMetric.COHEN_KAPPA | AgreementMetric.LINEAR_KAPPA:
            return _of_labels(metric, x, y, clusters)
        case AgreementMetric.KENDALL_TAU_B | AgreementMetric.PAIRWISE_ACCURACY:
            return _of_pairs(metric, x, y, clusters)
        case AgreementMetric.VOTE_ACCURACY:  # the mean of what is 1 where they are the same
            return _of_moments(AgreementMetric.BIAS, (x == y).astype(np.float64), np.zeros(len(x)), clusters)
        case _:
            return _of_moments(metric, x, y, clusters)


def alpha_replicates(values: Floats, clusters: Counts, kind: AlphaKind = "ordinal") -> Floats:
    """Krippendorff's alpha of every replicate; `values` of shape (samples, raters), NaN: missing."""
    n_each = np.sum(~np.isnan(values), axis=1)
    is_used = n_each >= 2
    groups, n_groups = groups_of(clusters)[is_used], _n_groups(clusters)
    # it does not matter whose a value is: of hundreds of raters a sample has few, and NaN is sorted to the end
    values = np.sort(values[is_used], axis=1)[:, : n_each.max(initial=0)]
    is_there = ~np.isnan(values)
    owner = np.nonzero(is_there)[0]
    flat = values[is_there]
    found = []
    for weights in _weights(groups, n_groups, max(values.size, 1)):
        each = weights[:, owner]
        n = np.sum(each, axis=1)
        observed, expected = np.zeros(len(weights)), np.zeros(len(weights))
        for placed in _placed(kind, flat, each):
            centred = placed - (np.sum(each * placed, axis=1) / np.maximum(n, 1))[:, None]
            laid_out = np.full((len(weights), *values.shape), np.nan)
            laid_out[:, is_there] = centred
            observed += np.sum(weights * within_squares(laid_out), axis=1)
            expected += np.sum(each * centred**2, axis=1) * 2 * n / np.maximum(n - 1, 1)
        found.append(ratio(expected - observed, expected))
    return np.concatenate(found)


def _placed(kind: AlphaKind, flat: Floats, weights: Floats) -> Iterator[Floats]:
    """Where the values stand, so that the squared distance of two is their difference: once, or for each label alone."""
    match kind:
        case "ordinal":
            yield _midranks(flat, weights)[0]
        case "interval":
            yield np.broadcast_to(flat, weights.shape)
        case "nominal":
            for label in np.unique(flat):
                yield np.broadcast_to((flat == label).astype(np.float64), weights.shape)


def _of_labels(metric: AgreementMetric, x: Floats, y: Floats, clusters: Counts) -> Floats:
    """Cohen's kappa without weights or with linear ones: from how often each group has each label on either side."""
    labels, places = np.unique(np.concatenate([x, y]), return_inverse=True)
    groups, shape = groups_of(clusters), (_n_groups(clusters), len(labels))
    sides = [np.bincount(groups * shape[1] + side, minlength=shape[0] * shape[1]) for side in np.split(places, 2)]
    by_x, by_y = (_without(side.reshape(shape)) for side in sides)
    distance = LABEL_DISTANCES[metric]
    apart = _without(np.bincount(groups, weights=distance(x, y), minlength=shape[0]))
    n = np.maximum(np.sum(by_x, axis=1), 1)
    expected = np.einsum("rl,lm,rm->r", by_x, distance(labels[:, None], labels[None, :]), by_y, optimize=False) / n
    return ratio(expected - apart, expected)


def _without(own: Floats | Counts) -> Floats:
    """The sums of all groups less each group's own, along the first axis."""
    return np.asarray(np.sum(own, axis=0) - own, dtype=np.float64)


def _spearman(x: Floats, y: Floats, clusters: Counts) -> Floats:
    found = []
    for weights in _weights(groups_of(clusters), _n_groups(clusters), len(x)):
        (rank_x, n), (rank_y, _) = _midranks(x, weights), _midranks(y, weights)
        dx, dy = rank_x - (n[:, None] + 1) / 2, rank_y - (n[:, None] + 1) / 2
        below = np.sqrt(np.sum(weights * dx**2, axis=1) * np.sum(weights * dy**2, axis=1))
        found.append(ratio(np.sum(weights * dx * dy, axis=1), below))
    return np.concatenate(found)


def _of_moments(metric: AgreementMetric, x: Floats, y: Floats, clusters: Counts) -> Floats:
    """Pearson, quadratic kappa and bias: ratios of sums."""
    shift = float(np.mean(np.concatenate([x, y])))
    a, b = x - shift, y - shift
    columns = (np.ones_like(a), a, b, a * a, b * b, a * b)
    own = [np.bincount(groups_of(clusters), weights=column, minlength=_n_groups(clusters)) for column in columns]
    n, sum_a, sum_b, sum_aa, sum_bb, sum_ab = map(_without, own)
    n = np.maximum(n, 1)
    mean_a, mean_b = sum_a / n, sum_b / n
    var_a, var_b = np.maximum(sum_aa / n - mean_a**2, 0), np.maximum(sum_bb / n - mean_b**2, 0)
    if metric is AgreementMetric.BIAS:
        return np.asarray(mean_a - mean_b)
    if metric is AgreementMetric.PEARSON:
        below = np.sqrt(var_a * var_b)
        return ratio(sum_ab / n - mean_a * mean_b, np.where(below > 1e-12 * (a.var() + b.var()), below, 0.0))
    expected = var_a + var_b + (mean_a - mean_b) ** 2
    return ratio(expected - (sum_aa + sum_bb - 2 * sum_ab) / n, expected)


def _of_pairs(metric: AgreementMetric, x: Floats, y: Floats, clusters: Counts) -> Floats | None:
    """Kendall's tau-b and pairwise accuracy: sums over pairs of samples, in whole numbers."""
    if len(x) > MAX_PAIRWISE_ITEMS or int(clusters.max()) >= _MAX_PAIRWISE_PROMPTS:
        return None
    groups, n_groups = groups_of(clusters), _n_groups(clusters)
    forms = _pair_forms(metric, x, y, groups, n_groups)
    sums = [form.sum() - form.sum(axis=0) - form.sum(axis=1) + np.diag(form) for form in forms]
    if metric is AgreementMetric.KENDALL_TAU_B:
        return ratio(sums[0], np.sqrt(sums[1] * sums[2]))
    n = _without(np.bincount(groups, minlength=n_groups))
    return ratio(sums[0] - n, n**2 - n)  # a sample is no pair with itself


def _pair_forms(metric: AgreementMetric, x: Floats, y: Floats, groups: Counts, n_groups: int) -> list[Floats]:
    """Sums over the ordered pairs of samples of every two groups, each of shape (groups, groups)."""
    order = np.argsort(groups, kind="stable")
    x, y, groups = x[order], y[order], groups[order]
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    is_tau = metric is AgreementMetric.KENDALL_TAU_B
    forms = [np.zeros((n_groups, n_groups)) for _ in range(3 if is_tau else 1)]
    for rows, signs_x, signs_y in sign_blocks(x, y):
        pieces = [signs_x * signs_y, np.abs(signs_x), np.abs(signs_y)] if is_tau else [signs_x == signs_y]
        mine = np.flatnonzero(np.diff(groups[rows], prepend=-1))  # a group stands once in the rows summed by it
        for form, piece in zip(forms, pieces, strict=True):
            summed = np.add.reduceat(np.add.reduceat(piece, mine, axis=0, dtype=np.int32), starts, axis=1)
            form[np.ix_(groups[rows][mine], groups[starts])] += summed
    return forms


def _midranks(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Midranks of values that stand `weights` times each, shape (replicates, n), and each replicate's number of values."""
    order = np.argsort(values, kind="stable")
    sorted_values = values[order]
    starts = np.flatnonzero(np.diff(sorted_values, prepend=np.nan) != 0)
    group = np.empty(len(values), dtype=np.int64)
    group[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(values)))
    sums = np.add.reduceat(weights[:, order], starts, axis=1)
    middle = np.cumsum(sums, axis=1) - sums / 2 + 0.5
    return middle[:, group], np.sum(sums, axis=1)


def ratio(above: Floats, below: Floats) -> Floats:
    """Of each replicate, NaN where it is undefined."""
    found: Floats = np.divide(above, below, out=np.full(len(above), np.nan), where=below > 0)
    return found


def _weights(groups: Counts, n_groups: int, n_items: int) -> Iterator[Floats]:
    """1 where a sample is in a replicate and 0 where it is left out, shape (replicates, samples), some replicates at a time."""
    size = max(1, _BLOCK_CELLS // n_items)
    for start in range(0, n_groups, size):
        check_not_stopped()
        yield (groups != np.arange(start, min(start + size, n_groups))[:, None]).astype(np.float64)
