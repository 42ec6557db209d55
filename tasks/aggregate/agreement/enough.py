"""Whether prompts tell enough for an interval of agreement: how many hold rare labels, and how unequal prompts are."""

import numpy as np
import numpy.typing as npt

from schemas.statuses.people import AgreementMetric
from tasks.aggregate.agreement.jackknife import MIN_PROMPTS, SHARES, Counts
from tasks.aggregate.agreement.metrics import Floats
from tasks.aggregate.intervals import effective_number


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
