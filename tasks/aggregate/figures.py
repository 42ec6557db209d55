"""The figures of one published cell: one row per model × checkpoint × rubric × judge × dimension × category, and two totals.

How a standard error is made is intervals.py; what a judgement's outcome is, outcomes.py. No number here is imputed:
a failure is counted, named, and bounded.
"""

import json
from collections.abc import Iterator

from rubrics.model import Rubric
from schemas.metrics import Metric
from schemas.statuses import CellReason, CellStatus, Estimand, Total
from tasks.aggregate.intervals import LEVEL, ClusteredMean, Interval, interval
from tasks.aggregate.scales import scale, total_reason
from tasks.aggregate.tallies import Tally, bounds_of, commonest, macro_of, mean_of


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
