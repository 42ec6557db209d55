"""Ordinal scores as distributions: what share of them falls in each step of the scale, and reaches it. Means are figures.py."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rubrics.model import Rubric
from schemas.metrics import CELL, is_mean_for_prompts_like_these
from schemas.statuses import Total
from tasks.aggregate.intervals import LEVEL, ClusteredMean, Interval, interval, mean_of_means
from tasks.aggregate.outcomes import Array, Judged, Outcomes
from tasks.aggregate.scales import score_steps
from tasks.aggregate.tallies import exact_sums

Row = dict[str, object]
_ROUNDING = 1e-12
_NAMED = ("cell_id", *CELL, "dimension", "category")


@dataclass(frozen=True, slots=True)
class _Stratum:
    """A category's scores by step: judgements, share in the step, and the mean of reaching it; an entry for each step."""

    n_scores: Array
    share: Array
    reached: list[ClusteredMean]


def distribution_rows(
    judged: Judged, outcomes: Outcomes, rubric: Rubric, key: str, rows: Sequence[Row], expected: frozenset[str]
) -> Iterator[Row]:  # fmt: skip
    """A row for each step of the scale of each cell with an estimate: its categories, and the mean over them."""
    edges = score_steps(rubric, key)
    strata = _strata(judged, outcomes, edges)
    numbers = {row: number for number, row in enumerate(judged.strata.iter_rows())}
    for cell in rows:
        is_mean = is_mean_for_prompts_like_these(cell) and cell["estimate"] is not None
        if not is_mean or cell["category"] == Total.MICRO:
            continue
        address = tuple(str(cell[name]) for name in CELL)
        mine = [(names[-1], strata[n]) for names, n in numbers.items() if names[:-1] == address and n in strata]
        wanted = [stratum for category, stratum in mine if category == cell["category"]]
        if cell["category"] == Total.MACRO:
            wanted = [stratum for category, stratum in mine if category in expected] or [stratum for _, stratum in mine]
        named = {name: cell[name] for name in _NAMED} | {"ci_level": LEVEL}
        for index, row in enumerate(_steps(wanted, edges)):
            yield named | row | {"score_below": edges[index + 1] if index + 1 < len(edges) else None}


def _steps(strata: Sequence[_Stratum], edges: Sequence[float]) -> Iterator[Row]:
    for index, edge in enumerate(edges):
        joint = mean_of_means([stratum.reached[index] for stratum in strata])
        found = interval(joint, 0.0, 1.0)
        ends = (found.low, found.high) if isinstance(found, Interval) else (None, None)
        yield {
            "score_from": edge, "n_scores": sum(int(stratum.n_scores[index]) for stratum in strata),
            "share": math.fsum(float(stratum.share[index]) for stratum in strata) / len(strata),
            "share_at_least": joint.mean, "ci_low": ends[0], "ci_high": ends[1],
        }  # fmt: skip


def _strata(judged: Judged, outcomes: Outcomes, edges: Sequence[float]) -> Mapping[int, _Stratum]:
    """Every stratum with a score. Repeats of a sample share its weight."""
    n_steps, prompt = len(edges), judged.prompt[outcomes.row]
    step = np.clip(np.searchsorted(np.array(edges), outcomes.score + 1e-9, side="right") - 1, 0, n_steps - 1)
    place = prompt.astype(np.int64) * n_steps + step
    counted = np.bincount(place, minlength=judged.n_prompts * n_steps)
    n_scores, sums, n_images = counted.reshape(-1, n_steps), counted, counted.reshape(-1, n_steps).sum(axis=1)
    if len(judged.sample_prompt) != len(judged.prompt):
        sample = judged.sample[outcomes.row]
        n_read = np.bincount(sample, minlength=len(judged.sample_prompt))
        sums = exact_sums(place, 1.0 / n_read[sample], judged.n_prompts * n_steps)
        n_images = np.bincount(judged.sample_prompt[np.flatnonzero(n_read)], minlength=judged.n_prompts)
    by_prompt = sums.reshape(-1, n_steps)
    starts = np.searchsorted(judged.stratum, np.arange(judged.strata.height + 1))
    found = {}
    for number, (start, end) in enumerate(pairwise(starts.tolist())):
        if n_images[start:end].any():
            scores = n_scores[start:end].sum(axis=0)
            found[number] = _stratum(scores, by_prompt[start:end], n_images[start:end])
    return found


def _stratum(n_scores: Array, sums: Array, n_images: Array) -> _Stratum:
    """`sums` (prompts × steps) holds each prompt's weight in each step. The clustered mean of every step at once."""
    has_score = n_images > 0
    counts, mine = n_images[has_score], sums[has_score]
    reached = np.cumsum(mine[:, ::-1], axis=1)[:, ::-1]
    n, n_prompts = float(counts.sum()), len(counts)
    means, square = reached.sum(axis=0) / n, float((counts**2).sum())
    # Σ (r - m n)² multiplied out: one pass over prompts × steps; whole numbers unless samples repeat
    squares = np.einsum("ij,ij->j", reached, reached) - 2 * means * np.einsum("i,ij->j", counts, reached) + means**2 * square
    squares = np.where(squares > _ROUNDING * square, squares, 0.0)
    freedom = n_prompts - 1
    errors = np.sqrt(squares * n_prompts / freedom) / n if freedom else np.zeros(len(means))
    made = [
        ClusteredMean(float(mean), float(se) if freedom else None, float(freedom) if freedom else None, n_prompts, None)
        for mean, se in zip(means, errors, strict=True)
    ]
    return _Stratum(n_scores, mine.sum(axis=0) / n, made)
