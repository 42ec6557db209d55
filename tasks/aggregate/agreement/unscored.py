"""The rated samples that a judge was asked about and gave no score: their share, and whether people rate them like the others.

All other figures leave them out. What a judge refuses is rarely a random part.
"""

from collections.abc import Iterator

import numpy as np

from schemas.statuses.people import Against, AgreementMetric, Assessor
from tasks.aggregate.agreement.pairs import Pair, Rated, Scope, pairs, scopes


def unscored_figures(rated: Rated) -> Iterator[tuple[Pair, Scope, dict[AgreementMetric, float]]]:
    """The two figures of each judge that lacks some, over all samples and where samples of it lack; against all people."""
    for pair in pairs(rated):
        is_with_people = pair.against == Against.RATERS_MEAN or len(rated.raters) == 1
        failed, ratings = pair.subject.failed, pair.other.values
        if pair.subject.kind is not Assessor.JUDGE or not is_with_people or failed is None:
            continue
        is_scored = ~np.isnan(pair.subject.values)
        for scope in scopes(rated.items, ~np.isnan(ratings) & (failed | is_scored)):
            lost, kept = scope.rows & failed, scope.rows & is_scored
            if lost.any():
                found = {AgreementMetric.UNSCORED: float(lost.sum() / scope.rows.sum())}
                if kept.any():
                    found[AgreementMetric.UNSCORED_BIAS] = float(ratings[lost].mean() - ratings[kept].mean())
                yield pair, scope, found
