"""A world of drawn scores whose truth is known, and the published tables of it. What is counted in it is statistics.py."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl

from rubrics.model import Dimension, ReplyFormat, Rubric, Variant
from schemas.benchmark.file import Statistics
from schemas.tables.stored import REPLIES
from tasks.aggregate.tables import Settings, aggregated

SIZES = (80, 99, 80, 94, 100, 100)
CENTRES = (9.2, 8.0, 5.5, 8.5, 4.0, 3.0)
CATEGORIES = tuple(f"category {n}" for n in range(6))
PROMPT_SD, STRENGTH_SD, IMAGE_SD, JUDGE_SD, N_IMAGES = 2.0, 0.5, 1.2, 0.8, 4
AT_LEAST = 7
CATEGORY_OF = np.repeat(np.arange(6), SIZES)
DRAWS_AT_ONCE = 50


def world(
    draw: np.random.Generator, n_draws: int, n_checkpoints: int, n_dimensions: int, shift: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Levels (draw, checkpoint, dimension, prompt), scores with a last axis of pictures, failures (draw, checkpoint, prompt,
    picture). Each checkpoint is better than the one before by `shift`."""
    shape = (n_draws, n_checkpoints, n_dimensions, len(CATEGORY_OF))
    levels = np.array(CENTRES)[CATEGORY_OF] + draw.normal(0, PROMPT_SD, (n_draws, 1, n_dimensions, len(CATEGORY_OF)))
    levels = levels + draw.normal(0, STRENGTH_SD, shape) + shift * np.arange(n_checkpoints)[:, None, None]
    noise = draw.normal(0, IMAGE_SD, (*shape, N_IMAGES)) + draw.normal(0, JUDGE_SD, (*shape, N_IMAGES))
    scores = np.clip(np.rint(levels[..., None] + noise), 0, 10)
    return levels, scores, draw.random((n_draws, n_checkpoints, len(CATEGORY_OF), N_IMAGES)) < 0.03


def tables_of(scores: np.ndarray, has_failed: np.ndarray, dimensions: tuple[str, ...] = ()) -> dict[object, pl.DataFrame]:
    """The published tables; the number of the draw stands in judge_model. Dimensions without names are d0, d1, …"""
    names = dimensions or tuple(f"d{d}" for d in range(scores.shape[2]))
    judgements, read = frames_of(scores, has_failed, np.array(CATEGORIES)[CATEGORY_OF], names)
    statistics = Statistics(at_least={"d0": AT_LEAST}, max_ranked=5, family="table")
    tables: dict[object, pl.DataFrame] = dict(
        aggregated(judgements.lazy(), read.lazy(), REPLIES.empty().lazy(), {"simulated": rubric(names)}, settings(statistics))
    )
    return tables


def settings(statistics: Statistics) -> Settings:
    run_date = date(2026, 1, 1)
    return Settings("simulated", "d" * 64, "e" * 64, run_date, min_coverage=0.0, statistics=statistics, baseline="model/0")


def frames_of(
    scores: np.ndarray, has_failed: np.ndarray, category: np.ndarray, names: tuple[str, ...], first_look: np.ndarray | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Judgements and scores (draw, checkpoint, dimension, prompt, picture); of each prompt its category and first look."""
    n_draws, n_checkpoints, _, n_prompts, n_images = scores.shape
    index = np.indices((n_draws, n_checkpoints, n_prompts, n_images)).reshape(4, -1)
    key = pl.Series("request_key", np.arange(index.shape[1])).cast(pl.String)
    judgements = pl.DataFrame({
        "request_key": key, "sample_id": key, "judge_model": pl.Series(index[0]).cast(pl.String),
        "checkpoint": pl.Series(index[1]).cast(pl.String), "category": category[index[2]],
        "prompt_id": pl.Series(index[2]).cast(pl.String),
        "first_look": pl.Series([None] * index.shape[1] if first_look is None else first_look[index[2]], dtype=pl.Int64),
    }).with_columns(
        model=pl.lit("model"), rubric_id=pl.lit("simulated"), rubric_version=pl.lit("1"), repeat=pl.lit(0), occasion=pl.lit(""),
        status=pl.lit("planned"), reason=pl.lit(None, pl.String), duplicate_of_sample_id=pl.lit(None, pl.String),
    )  # fmt: skip
    failed = pl.Series(has_failed.ravel())
    long = pl.concat([
        pl.DataFrame({"request_key": key, "number": scores[:, :, d].ravel(), "failed": failed, "dimension": [name] * len(key)})
        for d, name in enumerate(names)
    ])  # fmt: skip
    is_failed = pl.col("failed")
    return judgements, long.select(
        "request_key", "dimension", rubric_id=pl.lit("simulated"), score=pl.when(~is_failed).then("number"),
        status=pl.when(is_failed).then(pl.lit("unreadable")).otherwise(pl.lit("scored")),
        reason=pl.when(is_failed).then(pl.lit("malformed")),
        bound_low=pl.when(is_failed).then(0.0).otherwise("number"), bound_high=pl.when(is_failed).then(10.0).otherwise("number"),
    )  # fmt: skip


def rubric(names: tuple[str, ...]) -> Rubric:
    dimensions = tuple(Dimension(name, (name.upper(),), 0, 10, step=1) for name in names)
    return Rubric(
        id="simulated", version="1", title="", source="", folder=Path(), digest="f" * 64, reply_format=ReplyFormat.JSON, needs=(),
        may_be_null=frozenset(), unit=("prompt",), report_by="category", dispatch=None, value_maps={}, messages=(),
        variants={None: Variant(None, None, None, dimensions)}, rules=(), n_output_tokens_expected=10,
    )  # fmt: skip


def chunks(n_draws: int) -> Iterator[int]:
    for start in range(0, n_draws, DRAWS_AT_ONCE):
        yield min(DRAWS_AT_ONCE, n_draws - start)
