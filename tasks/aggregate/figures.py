"""The figures of one published cell: one row per model × checkpoint × rubric × judge × dimension × category, and two totals.

How a standard error is made is intervals.py; what a judgement's outcome is, outcomes.py. No number here is imputed:
a failure is counted, named, and bounded. The distributions of ordinal scores over the steps of their scale stand below.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rubrics.model import Rubric
from schemas.metrics import CELL, Metric, is_mean_for_prompts_like_these
from schemas.statuses.cells import CellReason, CellStatus, Estimand, Total
from schemas.tables.table import Row
from tasks.aggregate.intervals import LEVEL, ClusteredMean, Interval, effective_number, interval, mean_of_means
from tasks.aggregate.judged import Array, Judged
from tasks.aggregate.looks import look_of, looked_at
from tasks.aggregate.outcomes import Outcomes, averaged
from tasks.aggregate.prompt_sums import exact_sums
from tasks.aggregate.scales import scale, score_steps, total_reason
from tasks.aggregate.tallies import Tally, at_worst, bound_mean, bounds_of, commonest, macro_of, mean_of
from tasks.aggregate.unknown_category import ALL_KNOWN, UnknownCategory

_ROUNDING = 1e-12
_NAMED = ("cell_id", *CELL, "dimension", "category")


def strata_of(whole: Tally, expected: frozenset[str]) -> list[Tally]:
    """The categories a macro mean is taken over: those with a prompt text, or all where none has."""
    parts = whole.by_category
    return [tally for category, tally in parts.items() if category in expected] or list(parts.values())


def cell_rows(
    whole: Tally, rubric: Rubric, key: str, *, expected: frozenset[str], has_categories: bool, floor: float, metric: Metric
) -> Iterator[Row]:
    """Every row of one model's checkpoint in one dimension: its categories where there are any, then the two totals."""
    if has_categories:
        for category, tally in whole.by_category.items():
            ends = metric.ends(scale(rubric, category, key))
            for estimand in Estimand:
                figures = _describe(tally, mean_of(tally, estimand), estimand, strata=[tally], ends=ends, floor=floor)
                yield {"category": category, "metric": metric.name} | figures
        for category in whole.categories_aside:
            ends, tally = metric.ends(scale(rubric, category, key)), whole.without_prompts(category)
            for estimand in Estimand:
                figures = _describe(tally, None, estimand, strata=[], ends=ends, floor=floor)
                yield {"category": category, "metric": metric.name} | figures
    ends, why_not = metric.ends(scale(rubric, None, key)), total_reason(rubric, key)
    strata = strata_of(whole, expected)
    absent = expected - whole.categories.keys()
    is_judged = absent <= whole.n_aside_in.keys()
    is_unread = not strata and whole.unknown.n > 0  # what it is of nobody could read: it lacks scores, and no category
    missing = None if not absent or is_unread else CellReason.NOT_APPLICABLE if is_judged else CellReason.CATEGORY_MISSING
    for estimand in Estimand:
        macro = macro_of(strata, estimand)
        yield {"category": Total.MACRO.value, "metric": metric.name} | _describe(
            whole, macro, estimand, strata=strata or [whole], ends=ends, floor=floor,
            null_reason=why_not or missing, unknown=whole.unknown if strata else ALL_KNOWN,
        )  # fmt: skip
        micro = mean_of(whole, estimand)
        yield {"category": Total.MICRO.value, "metric": metric.name} | _describe(
            whole, micro, estimand, strata=[whole], ends=ends, floor=floor, null_reason=why_not
        )


def _describe(
    tally: Tally,
    estimate: ClusteredMean | None,
    estimand: Estimand,
    *,
    strata: Sequence[Tally],
    ends: tuple[float, float],
    floor: float,
    null_reason: CellReason | None = None,
    unknown: UnknownCategory = ALL_KNOWN,
) -> Row:
    """A cell's figures. What it is, in this order: a number that does not exist, blocked, without interval, whole.

    `unknown`: failures that none of `strata` holds, and each may belong to.
    """
    n_judgements, n_scored, failures = tally.count("n_judgements"), tally.count("n_scored"), tally.failures
    n_failed, coverage = n_judgements - n_scored, n_scored / n_judgements if n_judgements else None
    row: Row = {
        "estimand": estimand.value, "ci_level": LEVEL, "scale_low": ends[0], "scale_high": ends[1],
        "n_prompts": tally.n_prompts, "n_images": tally.count("n_images"), "n_judgements": n_judgements,
        "n_scored": n_scored, "n_failed": n_failed, "n_rule_violations": tally.count("n_violations"),
        "failures": failures, "n_not_applicable": sum(tally.n_aside_in.values()),
        "fail_rate": n_failed / n_judgements if n_judgements else None, "coverage": coverage,
        "estimate": None, "se": None, "ci_low": None, "ci_high": None, "ci_method": None, "df": None,
        "bound_low": None, "bound_high": None, "bound_ci_low": None, "bound_ci_high": None, "design_effect": None,
    } | looked_at(tally.reached)  # fmt: skip
    if null_reason is CellReason.CATEGORY_MISSING and coverage is not None and (coverage < floor or not n_scored):
        return row | {"status": CellStatus.BLOCKED.value, "reason": commonest(failures)}  # that is what ends a run with 1
    if null_reason or coverage is None:
        return row | {"status": CellStatus.NULL.value, "reason": (null_reason or CellReason.NOT_APPLICABLE).value}
    level = _level(strata)
    worst = [at_worst(strata, unknown, end) for end in ("low", "high")]
    bounds = bounds_of(*worst)
    if estimate and not n_failed:  # the same sum in another order may differ in its last digit
        bounds = (estimate.mean, estimate.mean)
    row |= {"bound_low": bounds[0], "bound_high": bounds[1], "nominal_level": level}
    if estimand is Estimand.PROMPTS_LIKE_THESE:
        low, high = (interval(mean, *ends, level, allows_for_skew=True) for mean in map(bound_mean, worst))
        row |= {"bound_ci_low": low.low if isinstance(low, Interval) else None}
        row |= {"bound_ci_high": high.high if isinstance(high, Interval) else None}
    if estimate is None or coverage < floor:
        return row | {"status": CellStatus.BLOCKED.value, "reason": commonest(failures)}
    row |= _figures(estimate, ends, estimand, level)
    for end, outermost in (("low", min), ("high", max)):  # failures make nothing surer: at least the cell's own interval
        both = row[f"ci_{end}"], row[f"bound_ci_{end}"]
        if None not in both:
            row[f"bound_ci_{end}"] = outermost(both)
    return row


def _level(strata: Sequence[Tally]) -> float:
    """The nominal level of the cell's intervals: LEVEL, or where it was looked at more than once what a look needs for that."""
    reached = strata[0].reached
    names = [name for stratum in strata for name in stratum.categories]
    look = look_of(reached, reached, names, 1, is_pooled=len(strata) == 1)
    return look.level(LEVEL) if look else LEVEL


def _figures(estimate: ClusteredMean, ends: tuple[float, float], estimand: Estimand, level: float) -> Row:
    row: Row = {"estimate": estimate.mean, "se": estimate.se, "design_effect": estimate.design_effect}
    is_like_these = estimand is Estimand.PROMPTS_LIKE_THESE
    found = interval(estimate, *ends, level, allows_for_skew=is_like_these)
    if not isinstance(found, Interval):
        lacks_images = found is CellReason.TOO_FEW_PROMPTS and not is_like_these
        reason = CellReason.ONE_IMAGE_PER_PROMPT if lacks_images else found
        return row | {"status": CellStatus.NO_INTERVAL.value, "reason": reason.value}
    return row | {
        "ci_low": found.low, "ci_high": found.high,
        "ci_method": "wilson_t_clustered" if is_like_these else "wilson_t_within_prompts", "df": estimate.df,
        "status": CellStatus.OK.value, "reason": None,
    }  # fmt: skip


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
        for index, row in enumerate(_steps(wanted, edges, cell["nominal_level"])):
            yield named | row | {"score_below": edges[index + 1] if index + 1 < len(edges) else None}


def _steps(strata: Sequence[_Stratum], edges: Sequence[float], level: float) -> Iterator[Row]:
    for index, edge in enumerate(edges):
        joint = mean_of_means([stratum.reached[index] for stratum in strata])
        found = interval(joint, 0.0, 1.0, level, allows_for_skew=True)
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
        of = averaged(judged, outcomes)
        n_read = np.bincount(of.row, minlength=len(of.prompt))
        sums = exact_sums(place, 1.0 / n_read[of.row], judged.n_prompts * n_steps)
        n_images = np.bincount(of.prompt[np.flatnonzero(n_read)], minlength=judged.n_prompts)
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
    means, may_vary = reached.sum(axis=0) / n, n_prompts > 1
    # what leaving a prompt out changes is (r - m n_p) / (N - n_p); its square multiplied out: one pass over prompts × steps
    weights = 1 / (n - counts) ** 2 if may_vary else np.zeros(1)
    square = float(np.einsum("i,i,i->", weights, counts, counts))
    squares = np.einsum("i,ij,ij->j", weights, reached, reached) + means**2 * square
    squares -= 2 * means * np.einsum("i,i,ij->j", weights, counts, reached)
    errors = np.sqrt(np.where(squares > _ROUNDING * square, squares, 0.0) * (n_prompts - 1) / n_prompts)
    n_effective = effective_number(counts / n)
    df = max(1.0, n_effective - 1) if may_vary else None
    made = [
        ClusteredMean(float(mean), float(se) if may_vary else None, df, n_prompts, None, n_effective)
        for mean, se in zip(means, errors, strict=True)
    ]
    return _Stratum(n_scores, mine.sum(axis=0) / n, made)
