"""The figures of one published cell: one row per model × checkpoint × rubric × judge × dimension × category, and two totals.

How a standard error is made is intervals.py; what a judgement's outcome is, outcomes.py. No number here is imputed:
a failure is counted, named, and bounded.
"""

import json
from collections.abc import Iterator

from rubrics.model import Dimension, Rubric, Variant
from schemas.metrics import Metric
from schemas.statuses import CellReason, CellStatus, Estimand, Total
from tasks.aggregate.intervals import LEVEL, ClusteredMean, Interval, interval
from tasks.aggregate.tallies import Tally, bounds_of, commonest, macro_of, mean_of

MAX_STEPS = 100


def total_reason(rubric: Rubric, key: str) -> CellReason | None:
    """Why a dimension has no total over categories; None where it has one."""
    if key not in rubric.keys_in_every_variant:
        return CellReason.NOT_IN_ALL_CATEGORIES
    scales = {(d.minimum, d.maximum) for v in rubric.variants.values() for d in v.dimensions if d.key == key}
    return CellReason.SCALES_DIFFER if len(scales) > 1 else None


def scale(rubric: Rubric, category: str | None, key: str) -> tuple[float, float]:
    """Lower and upper end of the dimension in this category's variant; over all variants where no one variant is meant."""
    declared = _declared(rubric, category, key)
    return min(dimension.minimum for dimension in declared), max(dimension.maximum for dimension in declared)


def score_steps(rubric: Rubric, key: str) -> list[float]:
    """Lower edges of the steps a distribution is published in: the declared step, else 1, from end to end of the scale.

    A scale of more than 100 such steps is cut into 20.
    """
    declared = _declared(rubric, None, key)
    low, high = min(d.minimum for d in declared), max(d.maximum for d in declared)
    step = min(d.step or 1.0 for d in declared)
    if (high - low) / step > MAX_STEPS:
        step = (high - low) / 20
    n_steps = int((high - low) / step + 1e-9)
    return [low + index * step for index in range(n_steps + 1)]


def is_asked(rubric: Rubric, category: str, key: str) -> bool:
    """Whether a judgement of this category would have been asked about the dimension.

    A category without a prompt would have been asked what every category is asked, or anything where nothing is shared.
    """
    variant = _variant_for(rubric, category)
    if variant:
        return key in variant.keys
    return not rubric.keys_in_every_variant or key in rubric.keys_in_every_variant


def has_prompt(rubric: Rubric, category: str) -> bool:
    """Whether the category is one the rubric has a prompt for; so is every category it does not dispatch on."""
    return rubric.dispatch != rubric.report_by or _variant_for(rubric, category) is not None


def _declared(rubric: Rubric, category: str | None, key: str) -> list[Dimension]:
    variant = _variant_for(rubric, category)
    declared = variant.dimensions if variant else tuple(d for v in rubric.variants.values() for d in v.dimensions)
    return [dimension for dimension in declared if dimension.key == key]


def _variant_for(rubric: Rubric, category: str | None) -> Variant | None:
    """None where the category has no prompt, or where the reported category is not what the rubric dispatches on."""
    if not rubric.dispatch:
        return rubric.variant(None)
    if category is None or rubric.dispatch != rubric.report_by:
        return None
    return rubric.variant(category)  # the plan reports categories in the rubric's own words


def strata_of(whole: Tally, expected: frozenset[str]) -> list[Tally]:
    """The categories a macro mean is taken over: those with a prompt text, or all where none has."""
    parts = whole.by_category
    return [tally for category, tally in parts.items() if category in expected] or list(parts.values())


def cell_rows(
    whole: Tally, rubric: Rubric, key: str, *, expected: frozenset[str], has_categories: bool, floor: float, metric: Metric
) -> Iterator[dict[str, object]]:
    """Every row of one model's checkpoint in one dimension: its categories where there are any, then the two totals."""
    if has_categories:
        for category, tally in whole.by_category.items():
            ends = metric.ends(scale(rubric, category, key))
            for estimand in Estimand:
                yield {"category": category} | _describe(
                    tally, mean_of(tally, estimand), estimand, metric, bounds=bounds_of([tally]), ends=ends, floor=floor
                )
    ends, why_not = metric.ends(scale(rubric, None, key)), total_reason(rubric, key)
    if metric.at_least is not None and why_not is CellReason.SCALES_DIFFER:
        ends = (0.0, 1.0)
    strata = strata_of(whole, expected)
    missing = CellReason.CATEGORY_MISSING if expected - whole.categories.keys() else None
    for estimand in Estimand:
        macro = macro_of(strata, estimand)
        yield {"category": Total.MACRO.value} | _describe(
            whole, macro, estimand, metric, bounds=bounds_of(strata), ends=ends, floor=floor, null_reason=why_not or missing
        )
        micro = mean_of(whole, estimand)
        yield {"category": Total.MICRO.value} | _describe(
            whole, micro, estimand, metric, bounds=bounds_of([whole]), ends=ends, floor=floor, null_reason=why_not
        )


def _describe(
    tally: Tally,
    estimate: ClusteredMean | None,
    estimand: Estimand,
    metric: Metric,
    *,
    bounds: tuple[float, float],
    ends: tuple[float, float],
    floor: float,
    null_reason: CellReason | None = None,
) -> dict[str, object]:
    """A cell's figures. What it is, in this order: a number that does not exist, blocked, without interval, whole."""
    n_judgements, n_scored, failures = tally.count("n_judgements"), tally.count("n_scored"), tally.failures
    n_failed, coverage = n_judgements - n_scored, n_scored / n_judgements
    row: dict[str, object] = {
        "metric": metric.name, "estimand": estimand.value, "ci_level": LEVEL, "scale_low": ends[0], "scale_high": ends[1],
        "n_prompts": tally.n_prompts, "n_images": tally.count("n_images"), "n_judgements": n_judgements,
        "n_scored": n_scored, "n_failed": n_failed, "n_rule_violations": tally.count("n_violations"),
        "failures_json": json.dumps(dict(sorted(failures.items())), separators=(",", ":")),
        "fail_rate": n_failed / n_judgements, "coverage": coverage,
        "estimate": None, "se": None, "ci_low": None, "ci_high": None, "ci_method": None, "df": None,
        "bound_low": None, "bound_high": None, "design_effect": None,
    }  # fmt: skip
    if null_reason:
        return row | {"status": CellStatus.NULL.value, "reason": null_reason.value}
    if estimate and not n_failed:  # the same sum in another order may differ in its last digit
        bounds = (estimate.mean, estimate.mean)
    row |= {"bound_low": bounds[0], "bound_high": bounds[1]}
    if estimate is None or coverage < floor:
        return row | {"status": CellStatus.BLOCKED.value, "reason": commonest(failures)}
    return row | _figures(estimate, ends, estimand)


def _figures(estimate: ClusteredMean, ends: tuple[float, float], estimand: Estimand) -> dict[str, object]:
    row: dict[str, object] = {"estimate": estimate.mean, "se": estimate.se, "design_effect": estimate.design_effect}
    is_like_these = estimand is Estimand.PROMPTS_LIKE_THESE
    found = interval(estimate, *ends)
    if not isinstance(found, Interval):
        lacks_images = found is CellReason.TOO_FEW_PROMPTS and not is_like_these
        reason = CellReason.ONE_IMAGE_PER_PROMPT if lacks_images else found
        return row | {"status": CellStatus.NO_INTERVAL.value, "reason": reason.value}
    return row | {
        "ci_low": found.low, "ci_high": found.high,
        "ci_method": "wilson_t_clustered" if is_like_these else "wilson_t_within_prompts", "df": estimate.df,
        "status": CellStatus.OK.value, "reason": None,
    }  # fmt: skip
