"""The rubrics' scales, and the ends their rules leave, as frames to join on. Rules are evaluated in rubrics/rules.py."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import orjson
import polars as pl

from rubrics.model import Rubric, Variant
from rubrics.rules import bounds

STEP_TOLERANCE = 1e-9  # 0.3 / 0.1 is not exactly 3 in binary floating point

_SCALE_SCHEMA = {
    "rubric_id": pl.String, "variant": pl.String, "dimension": pl.String,
    "scale_low": pl.Float64, "scale_high": pl.Float64, "step": pl.Float64, "is_derived": pl.Boolean,
}  # fmt: skip
_RULE_SCHEMA = {
    "rubric_id": pl.String, "variant": pl.String, "facts_json": pl.String, "dimension": pl.String,
    "rule_low": pl.Float64, "rule_high": pl.Float64,
}  # fmt: skip


def scale_frame(rubrics: Mapping[str, Rubric]) -> pl.DataFrame:
    """One row per rubric, variant and dimension: scale_low, scale_high, step (null: any), is_derived: no reply says it."""
    rows = [
        (rubric.id, category, dimension.key, dimension.minimum, dimension.maximum, dimension.step, dimension in variant.derived)
        for rubric in rubrics.values()
        for category, variant in rubric.variants.items()
        for dimension in (*variant.dimensions, *variant.derived)
    ]
    return pl.DataFrame(rows, schema=_SCALE_SCHEMA, orient="row")


def rule_frame(rubrics: Mapping[str, Rubric], requests: pl.DataFrame) -> pl.DataFrame:
    """One row per distinct (rubric_id, variant, facts_json) of `requests` and dimension that a rule which holds there narrows.

    rule_low and rule_high are null where the rules leave that end to the scale. Facts that are no JSON object say nothing.
    """
    ruled = [rubric.id for rubric in rubrics.values() if rubric.rules]
    asked = requests.filter(pl.col("rubric_id").is_in(ruled)).select("rubric_id", "variant", "facts_json").unique()
    rows = [row for found in asked.iter_rows() for row in _narrowed(rubrics[found[0]], *found)]
    return pl.DataFrame(rows, schema=_RULE_SCHEMA, orient="row")


def with_scales(scores: pl.DataFrame, rubrics: Mapping[str, Rubric]) -> pl.DataFrame:
    """`scores` (rubric_id, variant, facts_json, dimension, ...) with scale_low, scale_high, step, rule_low and rule_high."""
    rules = rule_frame(rubrics, scores)
    scaled = scores.join(
        scale_frame(rubrics), on=["rubric_id", "variant", "dimension"], how="left", nulls_equal=True, maintain_order="left"
    )
    return scaled.join(
        rules, on=["rubric_id", "variant", "facts_json", "dimension"], how="left", nulls_equal=True, maintain_order="left"
    )


def of_items(rubrics: Mapping[str, Rubric]) -> list[str]:
    """The rubrics whose judgements name lists of requests, about items or several fixed ones, and what follows from these."""
    return [rubric.id for rubric in rubrics.values() if rubric.is_of_lists]


def unreadable_facts(requests: pl.DataFrame) -> list[str]:
    """The distinct facts_json of `requests` that are no JSON object."""
    return [text for text in requests["facts_json"].drop_nulls().unique() if read_facts(text) is None]


def read_facts(facts_json: str | None) -> dict[str, object] | None:
    """The facts a request carries; None where the text is no JSON object."""
    try:
        facts = orjson.loads(facts_json or "")
    except orjson.JSONDecodeError:
        return None
    return facts if isinstance(facts, dict) else None


def _narrowed(
    rubric: Rubric, rubric_id: str, category: str | None, facts_json: str | None
) -> Iterator[tuple[str, str | None, str | None, str, float | None, float | None]]:
    variant: Variant | None = rubric.variant(category)
    if variant is None:
        return
    allowed = bounds(replace(rubric, variants={category: variant}), read_facts(facts_json) or {})
    for dimension in variant.dimensions:
        low, high = allowed[dimension.key]
        rule_low = low if low > dimension.minimum else None
        rule_high = high if high < dimension.maximum else None
        if rule_low is not None or rule_high is not None:
            yield rubric_id, category, facts_json, dimension.key, rule_low, rule_high
