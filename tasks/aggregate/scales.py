"""What a rubric says about a category's dimension: whether it is asked there, on which scale, and whether totals exist."""

from rubrics.model import Dimension, Rubric, Variant
from schemas.statuses.cells import CellReason

MAX_STEPS, MIN_STEPS = 100, 5


def total_reason(rubric: Rubric, key: str) -> CellReason | None:
    """Why a dimension has no total over categories; None where it has one."""
    return None if key in rubric.keys_in_every_variant else CellReason.NOT_IN_ALL_CATEGORIES


def scale(rubric: Rubric, category: str | None, key: str) -> tuple[float, float]:
    """Lower and upper end of the dimension in this category's variant; over all variants where no one variant is meant."""
    declared = _declared(rubric, category, key)
    return min(dimension.minimum for dimension in declared), max(dimension.maximum for dimension in declared)


def score_steps(rubric: Rubric, key: str) -> list[float]:
    """Lower edges of the steps a distribution is published in: the declared step, else 1, from end to end of the scale.

    A scale of more than MAX_STEPS such steps is cut into 20; one without a declared step and of fewer than MIN_STEPS into 10.
    """
    declared = _declared(rubric, None, key)
    low, high = min(d.minimum for d in declared), max(d.maximum for d in declared)
    step = min(d.step or 1.0 for d in declared)
    if (high - low) / step > MAX_STEPS:
        step = (high - low) / 20
    elif high - low < MIN_STEPS - 1 and all(d.step is None for d in declared):
        step = (high - low) / 10
    n_steps = int((high - low) / step + 1e-9)
    return [round(low + index * step, 12) for index in range(n_steps + 1)]


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
    declared = variant.published if variant else tuple(d for v in rubric.variants.values() for d in v.published)
    return [dimension for dimension in declared if dimension.key == key]


def _variant_for(rubric: Rubric, category: str | None) -> Variant | None:
    """None where the category has no prompt, or where the reported category is not what the rubric dispatches on."""
    if not rubric.dispatch:
        return rubric.variant(None)
    if category is None or rubric.dispatch != rubric.report_by:
        return None
    return rubric.variant(category)  # the plan reports categories in the rubric's own words
