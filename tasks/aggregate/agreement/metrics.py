"""How two assessments of the same samples agree: one figure each, and whether prompts tell enough for an interval (jackknife.py).

Ranks and correlations are scipy's. Own code stands only where scipy has none; each function names its source.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import stats

from schemas.statuses.people import AgreementMetric
from tasks.aggregate.intervals import Counts, Floats, effective_number

Signs = npt.NDArray[np.int8]

MIN_PROMPTS = 10
"""Under this many prompts their spread says little: no interval is given."""
MAX_PAIRWISE_ITEMS = 20_000
"""Above this many samples no figure that looks at every pair of them is made."""
_BLOCK_CELLS = 4_000_000

AlphaKind = Literal["ordinal", "interval", "nominal"]
ALPHAS: Mapping[AgreementMetric, AlphaKind] = {
    AgreementMetric.KRIPPENDORFF_ALPHA: "ordinal",
    AgreementMetric.KRIPPENDORFF_ALPHA_INTERVAL: "interval",
    AgreementMetric.KRIPPENDORFF_ALPHA_NOMINAL: "nominal",
}
SHARES = frozenset({AgreementMetric.PAIRWISE_ACCURACY, AgreementMetric.VOTE_ACCURACY})
LABEL_DISTANCES: Mapping[AgreementMetric, Callable[[Floats, Floats], Floats]] = {
    AgreementMetric.COHEN_KAPPA: lambda x, y: (x != y).astype(np.float64),
    AgreementMetric.LINEAR_KAPPA: lambda x, y: np.abs(x - y),
}


def pair_metric(metric: AgreementMetric, x: Floats, y: Floats) -> float | None:
    """The figure of `x` (subject) and `y` (against), shape (n,), on one scale; None where it is not defined.

    Kappa and alpha take all that both say as it stands: whether a number is a label is the caller's question.
    """
    if metric in ALPHAS:
        return krippendorff_alpha(np.column_stack([x, y]), ALPHAS[metric])
    if metric in LABEL_DISTANCES:
        return label_kappa(x, y, LABEL_DISTANCES[metric])
    if metric in _PLAIN:
        return _PLAIN[metric](x, y)
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    correlation = {
        AgreementMetric.SPEARMAN: stats.spearmanr,
        AgreementMetric.KENDALL_TAU_B: stats.kendalltau,
        AgreementMetric.PEARSON: stats.pearsonr,
    }[metric]
    return float(correlation(x, y).statistic)


def quadratic_kappa(x: Floats, y: Floats) -> float | None:
    """Cohen's weighted kappa (Psychological Bulletin 70, 1968) with squared distances on the scale as disagreement.

    1 - observed / expected disagreement, where expected is that of all pairs of a number of x and one of y. Distances
    are those of the labels themselves, so that labels nobody used keep their place on the scale.
    """
    expected = x.var() + y.var() + (x.mean() - y.mean()) ** 2
    return float(1 - np.mean((x - y) ** 2) / expected) if np.ptp(np.concatenate([x, y])) > 0 else None


def label_kappa(x: Floats, y: Floats, distance: Callable[[Floats, Floats], Floats]) -> float | None:
    """Cohen's kappa, 1 - observed / expected disagreement: unweighted (Educ. Psychol. Meas. 20, 1960), or by |x - y| (1968)."""
    seen = [np.unique(side, return_counts=True) for side in (x, y)]
    apart = distance(seen[0][0][:, None], seen[1][0][None, :])
    expected = float(np.sum(apart * seen[0][1][:, None] * seen[1][1][None, :])) / len(x) ** 2
    return 1 - float(np.mean(distance(x, y))) / expected if expected > 0 else None


def krippendorff_alpha(values: Floats, kind: AlphaKind = "ordinal") -> float | None:
    """Krippendorff's alpha (Computing Krippendorff's Alpha-Reliability, 2011), ordinal, interval or nominal.

    `values` has shape (samples, raters), NaN where one is missing. The ordinal difference of two values is that of their
    midranks among all pairable values, the interval one their own, the nominal one half the squared distance of two labels
    written as 0 and 1: so alpha is a ratio of sums of squared distances. None where fewer than two samples
    have two values (of one it is 0, whatever they are), or all values are the same.
    """
    n_each = np.sum(~np.isnan(values), axis=1)
    pairable = values[n_each >= 2]
    if len(pairable) < 2:
        return None
    is_there = ~np.isnan(pairable)
    flat, n = pairable[is_there], int(is_there.sum())
    labels = np.unique(flat) if kind == "nominal" else [0.0]
    expected = observed = 0.0
    for label in labels:
        placed = stats.rankdata(flat) if kind == "ordinal" else flat if kind == "interval" else (flat == label).astype(float)
        centred = np.full(pairable.shape, np.nan)
        centred[is_there] = placed - placed.mean()
        expected += float(np.nansum(centred**2)) * 2 * n / (n - 1)
        observed += float(within_squares(centred).sum())
    return 1 - observed / expected if np.ptp(flat) > 0 else None


def within_squares(values: Floats) -> Floats:
    """Along the last axis, the values of one sample: the squared distances of its ordered pairs, summed, over (values - 1)."""
    n_each = np.sum(~np.isnan(values), axis=-1)
    sums, squares = np.nansum(values, axis=-1), np.nansum(values**2, axis=-1)
    pairs = 2 * (n_each * squares - sums**2)
    return np.asarray(np.maximum(pairs, 0.0) / np.maximum(n_each - 1, 1), dtype=np.float64)


def pairwise_accuracy(x: Floats, y: Floats) -> float | None:
    """Share of pairs of samples that both order the same way or both tie.

    acc_eq of Deutsch, Foster & Freitag (Ties Matter, EMNLP 2023), without tie calibration: a pair that one side ties and
    the other orders counts as wrong. None under two samples or above MAX_PAIRWISE_ITEMS.
    """
    n = len(x)
    if not 2 <= n <= MAX_PAIRWISE_ITEMS:
        return None
    n_same = sum(int(np.sum(signs_x == signs_y)) for _, signs_x, signs_y in sign_blocks(x, y)) - n
    return n_same / (n * (n - 1))


_PLAIN: Mapping[AgreementMetric, Callable[[Floats, Floats], float | None]] = {
    AgreementMetric.BIAS: lambda x, y: float(np.mean(x - y)),
    AgreementMetric.QUADRATIC_KAPPA: quadratic_kappa,
    AgreementMetric.PAIRWISE_ACCURACY: pairwise_accuracy,
    AgreementMetric.VOTE_ACCURACY: lambda x, y: float(np.mean(x == y)),
}


def sign_blocks(x: Floats, y: Floats) -> Iterator[tuple[slice, Signs, Signs]]:
    """(rows, signs of x differences, signs of y differences) of all ordered pairs, some rows at a time, each shape (rows, n)."""
    n = len(x)
    size = max(1, _BLOCK_CELLS // max(n, 1))
    blocks = [slice(start, min(start + size, n)) for start in range(0, n, size)]
    for rows in blocks:
        yield rows, _signs(x, rows), _signs(y, rows)


def _signs(values: Floats, rows: slice) -> Signs:
    mine, others = values[rows, None], values[None, :]
    return (mine > others).astype(np.int8) - (mine < others).astype(np.int8)


def n_prompts_alike(clusters: Counts) -> float:
    """Prompts of one size that would be worth as much as these (Kish 1965): (Σ n)² / Σ n² of their numbers of samples."""
    return effective_number(np.bincount(clusters) / len(clusters))


def has_enough_labels(
    metric: AgreementMetric, values: Floats, clusters: Counts, *, are_named: npt.NDArray[np.bool_] | None = None
) -> bool:
    """Whether MIN_PROMPTS prompts hold another label than the commonest, and half as many by each rater, where it is most of all.

    Kappas, alphas and correlations are of the rare labels there, and of few there is no telling how they would vary. Shares and
    the bias are not. `values`: shape (samples, raters), NaN where there is none. Only raters `are_named` (None: all) are asked
    one by one.
    """
    if metric in SHARES or metric is AgreementMetric.BIAS:
        return True
    is_there = ~np.isnan(values)
    labels, counts = np.unique(values[is_there], return_counts=True)
    if not len(labels) or 2 * counts.max() <= counts.sum():
        return True
    is_other = is_there & (values != labels[counts.argmax()])
    n_each = [len(np.unique(clusters[mine])) for mine in (is_other if are_named is None else is_other[:, are_named]).T]
    return 2 * min(n_each, default=MIN_PROMPTS) >= MIN_PROMPTS and len(np.unique(clusters[is_other.any(axis=1)])) >= MIN_PROMPTS
