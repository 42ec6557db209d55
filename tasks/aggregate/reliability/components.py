"""The scores that count, and their variance between prompts, images and repeats. Tables are made of it in reliability.py.

Analysis of variance of a twice nested random model with the expected mean squares of unbalanced data (Henderson's method 1):
Searle, Casella & McCulloch, Variance Components (1992), chapter 5. Categories are fixed and taken out first.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from schemas.metrics import IS_OF_WHOLE
from schemas.statuses.cells import Total
from schemas.statuses.rows import JudgementStatus, ScoreStatus
from tasks.aggregate.intervals import Counts, Floats, without_rounding

JUDGED = ["rubric_id", "rubric_version", "judge_model", "model", "checkpoint", "dimension"]
UNIT = ["category", "prompt_id", "sample_id"]


def scored(judgements: pl.LazyFrame | pl.DataFrame, scores: pl.LazyFrame | pl.DataFrame, occasion: str = "") -> pl.DataFrame:
    """One row per score that counts: JUDGED, UNIT, repeat, score; sorted. A null category is `__unnamed__`.

    `occasion` is empty, or the date whose anchors are meant. A failure is no row: nothing is put in its place; nor is a sample
    that is an earlier one again: that it equals that one says nothing about images.
    """
    asked = judgements.lazy().filter(
        pl.col("occasion") == occasion, pl.col("status") == JudgementStatus.PLANNED.value,
        pl.col("duplicate_of_sample_id").is_null(),
    )  # fmt: skip
    read = (
        scores.lazy()
        .filter(pl.col("status") == ScoreStatus.SCORED.value, IS_OF_WHOLE)
        .select("request_key", "dimension", "score")
    )
    rows = asked.join(read, on="request_key").select(
        *JUDGED, pl.col("category").fill_null(Total.UNNAMED.value), "prompt_id", "sample_id", "repeat", "score"
    )
    return rows.sort([*JUDGED, *UNIT, "repeat"]).collect()


def image_means(rows: pl.DataFrame) -> pl.DataFrame:
    """The mean of each image's repeats: JUDGED, UNIT, score; sorted. Sums run over sorted rows, in that order."""
    means = rows.group_by([*JUDGED, *UNIT], maintain_order=True).agg(pl.col("score"))
    return means.with_columns(pl.col("score").list.sum() / pl.col("score").list.len())


# Columns of the sums per prompt. All that is squared is taken about the overall mean.
_N, _SUM, _SS_REPEATS, _N_IMAGES, _SS_IMAGES, _SQUARES_OVER_N, _SQUARES = range(7)


@dataclass(frozen=True, slots=True)
class Components:
    """Variances, each of shape () or (fits,); NaN where the design cannot tell. Negative estimates are kept as they come."""

    prompt: Floats
    image: Floats
    judge: Floats
    image_and_judge: Floats  # of one score about its prompt: known without repeats, where prompts have several images
    between_images: Floats  # prompt + image: known also where every prompt has one image


def prompt_sums(scores: Floats, image: Counts, prompt: Counts) -> Floats:
    """Sums per prompt, shape (prompts, 7), of single scores; `image` and `prompt` number each score's, from 0, without gaps."""
    size = float(np.abs(scores).max())
    values = without_rounding(scores - scores.mean(), size)
    n_repeats = np.bincount(image).astype(np.float64)
    image_sums = np.bincount(image, weights=values)
    owner = np.zeros(len(n_repeats), dtype=np.int64)
    owner[image] = prompt
    n, total = np.bincount(prompt).astype(np.float64), np.bincount(prompt, weights=values)
    repeats = np.bincount(prompt, weights=without_rounding(values - (image_sums / n_repeats)[image], size) ** 2)
    off = without_rounding(image_sums / n_repeats - (total / n)[owner], size)
    images = np.bincount(owner, weights=n_repeats * off**2)
    squares = np.bincount(owner, weights=n_repeats**2)
    return np.column_stack([n, total, repeats, np.bincount(owner), images, squares / n, squares])


def components(totals: Floats, prompts: Floats) -> Components:
    """Variance components, shape (fits,).

    `totals`: sums over a category's prompts of prompt_sums, shape (fits, categories, 7); `prompts`: of each fit and category the
    number of prompts, the sum of sum²/n and the sum of n², shape (fits, categories, 3).
    """
    n, total, ss_repeats, n_images, ss_images, squares_over_n, squares = np.moveaxis(totals, -1, 0)
    n_prompts, total_squares_over_n, n_squared = np.moveaxis(prompts, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ss_prompts = without_rounding(total_squares_over_n - total**2 / n, total_squares_over_n).sum(axis=-1)
        df_prompts, df_images, df_repeats = (
            (a - b).sum(axis=-1) for a, b in ((n_prompts, np.ones_like(n)), (n_images, n_prompts), (n, n_images))
        )
        k_images = (n - squares_over_n).sum(axis=-1) / df_images
        k_prompts_images = (squares_over_n - squares / n).sum(axis=-1) / df_prompts
        k_prompts = (n - n_squared / n).sum(axis=-1) / df_prompts
        judge = _mean_square(ss_repeats.sum(axis=-1), df_repeats)
        between_images = _mean_square(ss_images.sum(axis=-1), df_images)
        has_repeats = df_repeats > 0
        image = np.where(has_repeats, (between_images - judge) / k_images, np.nan)
        within = np.where(has_repeats, judge + image, between_images)
        expected = np.where(has_repeats, judge + k_prompts_images * image, within)
        prompt = (_mean_square(ss_prompts, df_prompts) - expected) / k_prompts
        one_each = (_mean_square(ss_prompts, df_prompts) - judge) / k_prompts
    return Components(prompt, image, judge, within, np.where(df_images > 0, prompt + image, one_each))


def stratum_sums(per_prompt: Floats, strata: Counts) -> tuple[Floats, Floats]:
    """Each category's `totals` and `prompts` for components(), shapes (categories, 7) and (categories, 3)."""
    of_each = [strata == stratum for stratum in range(int(strata.max()) + 1)]
    totals, prompts = (np.stack([columns[mine].sum(axis=0) for mine in of_each]) for columns in _summed(per_prompt))
    return totals, prompts


def leave_one_out(per_prompt: Floats, strata: Counts) -> tuple[Floats, Floats]:
    """`totals` and `prompts` for components() with each prompt left out in turn: shapes (prompts, categories, 7) and (…, 3)."""
    found = []
    for columns, sums in zip(_summed(per_prompt), stratum_sums(per_prompt, strata), strict=True):
        left = np.repeat(sums[None], len(columns), axis=0)
        left[np.arange(len(columns)), strata] -= columns
        found.append(left)
    return found[0], found[1]


def _summed(per_prompt: Floats) -> tuple[Floats, Floats]:
    """What `totals` and `prompts` are sums of."""
    n, total = per_prompt[:, _N], per_prompt[:, _SUM]
    return per_prompt, np.column_stack([np.ones(len(per_prompt)), total**2 / n, n**2])


def _mean_square(squares: Floats, df: Floats) -> Floats:
    return np.where(df > 0, squares / np.where(df > 0, df, 1), np.nan)
