"""How two assessments of the same samples agree: one figure each. Their intervals are bootstrap.py.

Ranks and correlations are scipy's. Own code stands only where scipy has none; each function names its source.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy import stats

from schemas.statuses import AgreementMetric

Floats = npt.NDArray[np.float64]
Signs = npt.NDArray[np.int8]

MAX_PAIRWISE_ITEMS = 20_000
"""Above this many samples no figure that looks at every pair of them is made."""
_BLOCK_CELLS = 4_000_000


def pair_metric(metric: AgreementMetric, x: Floats, y: Floats) -> float | None:
    """The figure of `x` (subject) and `y` (against), shape (n,), on one scale; None where it is not defined.

    Kappa and alpha take all that both say as it stands: whether a number is a label is the caller's question.
    """
    match metric:
        case AgreementMetric.BIAS:
            return float(np.mean(x - y))
        case AgreementMetric.QUADRATIC_KAPPA:
            return quadratic_kappa(x, y)
        case AgreementMetric.KRIPPENDORFF_ALPHA:
            return krippendorff_alpha(np.column_stack([x, y]))
        case AgreementMetric.PAIRWISE_ACCURACY:
            return pairwise_accuracy(x, y)
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
    return float(1 - np.mean((x - y) ** 2) / expected) if expected > 0 else None


def krippendorff_alpha(values: Floats) -> float | None:
    """Krippendorff's alpha for ordinal data (Computing Krippendorff's Alpha-Reliability, 2011).

    `values` has shape (samples, raters), NaN where one is missing. The ordinal difference of two values is that of their
    midranks among all pairable values, so alpha is a ratio of sums of squared midrank distances. None where no sample has
    two values, or all values are the same.
    """
    n_each = np.sum(~np.isnan(values), axis=1)
    pairable = values[n_each >= 2]
    if not len(pairable):
        return None
    is_there = ~np.isnan(pairable)
    ranks = np.full(pairable.shape, np.nan)
    ranks[is_there] = stats.rankdata(pairable[is_there])
    n = int(is_there.sum())
    centred = ranks - (n + 1) / 2
    expected = float(np.nansum(centred**2)) * 2 * n / (n - 1)
    return 1 - float(within_squares(centred).sum()) / expected if expected > 0 else None


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
