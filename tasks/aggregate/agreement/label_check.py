"""Whether labels look like a random part of the prompts, by the judge's scores. What they correct: corrected.py, deltas.py.

A correction by people rests on labels that were not chosen by how good the pictures are. The judge scored both parts, so the
two can be held against each other.
"""

import math
from typing import NamedTuple

import numpy as np
import scipy  # its parts are imported where they are first used

from schemas.statuses.people import LabelCheck
from tasks.aggregate.agreement.grid import Grid
from tasks.aggregate.agreement.pairs import Assessment, Mask
from tasks.aggregate.comparisons.families import ALPHA
from tasks.aggregate.intervals import Counts, Floats, on_grid, rounded

MIN_EACH = 5
"""With fewer labelled, or fewer others, nothing is said."""


class Check(NamedTuple):
    """Two-sided p that labels are a random part, and the verdict."""

    p: float | None
    verdict: LabelCheck

    @property
    def row(self) -> dict[str, object]:
        """As columns of a row."""
        return {"p_labels_random": self.p, "label_check": self.verdict.value}


CANNOT_TELL = Check(None, LabelCheck.CANNOT_TELL)


def van_elteren(values: Floats, is_labelled: np.ndarray, strata: Counts) -> float | None:
    """Two-sided p of the stratified rank sum test (van Elteren 1960): labels do not go with values within a stratum.

    Midranks within each stratum, weighted 1/(M + 1), their sum over the labelled against its mean and variance over all choices
    of as many labels (normal). None where no stratum has both, or the values do not vary.
    """
    order = np.lexsort((values, strata))
    values, is_labelled = values[order], is_labelled[order].astype(np.float64)
    _, group, size = np.unique(strata[order], return_inverse=True, return_counts=True)
    starts = np.cumsum(size) - size
    is_new = np.ones(len(values), dtype=bool)
    is_new[1:] = (np.diff(values) != 0) | (np.diff(group) != 0)
    tie = np.cumsum(is_new) - 1
    places = np.arange(len(values)) - starts[group]
    centred = (np.bincount(tie, weights=places) / np.bincount(tie))[tie] - (size[group] - 1) / 2
    n = np.bincount(group, weights=is_labelled)
    spread = np.bincount(group, weights=centred**2)
    weights = 1.0 / (size + 1)
    variance = float(np.sum(weights**2 * n * (size - n) * spread / (size * np.maximum(size - 1, 1))))
    if variance <= 0:
        return None
    found = float(np.sum(weights[group] * is_labelled * centred))
    return rounded(2 * float(scipy.special.ndtr(-abs(found) / math.sqrt(variance))))


def label_check(grid: Grid, judge: Assessment, *, is_within: bool) -> Check:
    """The check of one judge and dimension at ALPHA: labelled prompts against the others.

    Where samples of a prompt were left out, labelled samples against the prompt's others too (half of ALPHA each). `is_within`:
    prompts within their categories, which allows as many labels of each as one likes; else prompts over all.
    """
    found = [p for p in (_of_prompts(grid, judge.name, is_within=is_within), _of_samples(grid, judge)) if p is not None]
    if not found:
        return CANNOT_TELL
    p = min(1.0, min(found) * len(found))
    return Check(p, LabelCheck.CHOSEN_BY_SCORE if p < ALPHA else LabelCheck.RANDOM)


def _of_prompts(grid: Grid, judge: str, *, is_within: bool) -> float | None:
    """A prompt's value is its mean over checkpoints, each less its own mean: a checkpoint that lacks prompts moves none."""
    scores = grid.judged[judge]
    is_scored = ~np.isnan(scores)
    n = is_scored.sum(axis=0)
    own = np.nansum(scores, axis=1) / np.maximum(is_scored.sum(axis=1), 1)
    rows = n > 0
    size = float(np.nanmax(np.abs(scores), initial=0.0))
    values = on_grid(np.nansum(scores - own[:, None], axis=0) / np.maximum(n, 1), size)[rows]
    is_labelled: Mask = np.any(np.isfinite(grid.labels[:, rows]), axis=0)
    if min(is_labelled.sum(), (~is_labelled).sum()) < MIN_EACH:
        return None
    strata = grid.category[rows] if is_within else np.zeros(int(rows.sum()), dtype=np.int64)
    return van_elteren(values, is_labelled, strata)


def _of_samples(grid: Grid, judge: Assessment) -> float | None:
    """Within the prompts, by checkpoint, of which some samples are labelled and some are not."""
    rows = ~np.isnan(judge.values) & (grid.system_of >= 0)
    strata = grid.system_of[rows] * len(grid.prompts) + grid.unit_of[rows]
    is_labelled: Mask = np.any(np.isfinite(grid.rated.raters_values()[rows]), axis=1)
    n = np.bincount(strata, minlength=1)
    n_labelled = np.bincount(strata, weights=is_labelled, minlength=1)
    is_mixed = ((n_labelled > 0) & (n_labelled < n))[strata]
    if is_labelled[is_mixed].sum() < MIN_EACH:
        return None
    return van_elteren(judge.values[rows][is_mixed], is_labelled[is_mixed], strata[is_mixed])
