"""The tables `reliability` and `designs`: how much of a score is the judge's own noise, and which scores would be worth buying.

The variance components and the rows looked at are components.py; formulae: docs/nights.md.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from schemas.statuses.cells import CellStatus
from schemas.statuses.nights import ReliabilityReason
from schemas.tables.nights import DESIGNS, JURY, RELIABILITY
from schemas.tables.table import Table
from tasks.aggregate.intervals import LEVEL, Counts, Floats, t_quantile
from tasks.aggregate.reliability.components import (
    JUDGED,
    Components,
    components,
    leave_one_out,
    prompt_sums,
    scored,
    stratum_sums,
)
from tasks.aggregate.reliability.jury import jury

IMAGES = (1, 2, 4, 8)
REPEATS = (1, 2, 3, 4)


class Design(NamedTuple):
    """Prompts in all, images of each prompt, repeats of each image: whole numbers of one to be bought, else their means."""

    n_prompts: int
    n_images: float
    n_repeats: float


def designs_of(
    at_hand: Design, n_scores: int, variances: tuple[float, float, float | None], n_prompts: Counts
) -> Iterator[dict[str, object]]:
    """A row of DESIGNS for each design, the one at hand first; `variances` of prompt, image and judge (None: part of the image).

    `n_scores` are what it cost, and `n_prompts` its prompts of each category; other designs keep their proportions.
    """
    weight = float(np.sum(n_prompts.sum() / n_prompts)) / len(n_prompts) ** 2  # 1 where all categories are of one size
    whole = Design(at_hand.n_prompts, max(1, round(at_hand.n_images)), max(1, round(at_hand.n_repeats)))
    others = _others(whole, n_scores, has_repeats=variances[2] is not None)
    for design, exact, n_judgements in [(whole, at_hand, n_scores), *((one, one, math.prod(one)) for one in others)]:
        claims, trends = predicted(exact, variances)
        yield {
            "n_prompts": design.n_prompts, "n_images_per_prompt": design.n_images, "n_repeats": design.n_repeats,
            "n_judgements": n_judgements, "cost_ratio": n_judgements / n_scores, "is_at_hand": exact is at_hand,
            "se_prompts_like_these": claims * math.sqrt(weight), "se_these_prompts": trends * math.sqrt(weight),
        }  # fmt: skip


def predicted(design: Design, variances: tuple[float, float, float | None]) -> tuple[float, float]:
    """Standard error of a mean over the design's prompts: for prompts like these, and for these prompts."""
    prompt, image, judge = variances
    n_images = design.n_prompts * design.n_images
    within = image / n_images + (judge or 0.0) / (n_images * design.n_repeats)
    return math.sqrt(prompt / design.n_prompts + within), math.sqrt(within)


def _others(at_hand: Design, n_scores: int, *, has_repeats: bool) -> list[Design]:
    """Designs of the cost at hand, and of twice the cost in each direction, as near as whole numbers allow."""
    repeats = REPEATS if has_repeats else (at_hand.n_repeats,)
    same = {Design(round(n_scores / (n * r)), n, r) for n in IMAGES for r in repeats}
    n_prompts, n_images, n_repeats = at_hand
    more = 2 * n_scores / math.prod(at_hand)
    double = {Design(round(more * n_prompts), n_images, n_repeats), Design(n_prompts, round(more * n_images), n_repeats)}
    if has_repeats:
        double.add(Design(n_prompts, n_images, round(more * n_repeats)))
    return sorted(design for design in (same | double) - {at_hand} if design.n_prompts >= 2)


@dataclass(frozen=True, slots=True)
class Judged:
    """One judge's scores of one checkpoint in one dimension, reduced to sums per prompt; `strata` is each prompt's category."""

    per_prompt: Floats
    strata: Counts
    n_images: int
    n_scores: int
    n_repeats: float  # harmonic mean over images


def reliability(rows: pl.DataFrame) -> pl.DataFrame:
    """The RELIABILITY table from scored() rows: one row per judge, checkpoint and dimension."""
    found = []
    for named, judged in _judged(rows):
        figures, reason = _figures(judged)
        is_ok = reason in (None, ReliabilityReason.ONE_IMAGE_PER_PROMPT)
        counts = {"n_prompts": len(judged.strata), "n_images": judged.n_images, "n_scores": judged.n_scores}
        status = {"status": (CellStatus.OK if is_ok else CellStatus.NULL).value, "reason": reason.value if reason else None}
        found.append(named | counts | {"n_repeats_mean": judged.n_repeats} | figures | status)
    return RELIABILITY.frame(found).sort(RELIABILITY.key)


def designs(rows: pl.DataFrame) -> pl.DataFrame:
    """The DESIGNS table from scored() rows: predicted standard errors of the macro mean, at hand and for what could be bought.

    Designs of the same cost, and of about twice the cost in each direction. Without repeats the judge's noise is part of the
    images', and no design with repeats is listed. Empty for dimensions whose components are unknown.
    """
    found = []
    for named, judged in _judged(rows):
        whole = _components(judged)
        within = float(whole.image_and_judge[0])
        if math.isnan(float(whole.prompt[0])) or math.isnan(within):
            continue
        judge = float(whole.judge[0])
        n_prompts = np.bincount(judged.strata)
        at_hand = Design(len(judged.strata), judged.n_images / len(judged.strata), judged.n_repeats)
        image = within if math.isnan(judge) else float(whole.image[0])
        parts = (max(0.0, float(whole.prompt[0])), max(0.0, image), None if math.isnan(judge) else max(0.0, judge))
        found += [named | row for row in designs_of(at_hand, judged.n_scores, parts, n_prompts)]
    return DESIGNS.frame(found).sort(DESIGNS.key)


def _judged(rows: pl.DataFrame) -> Iterator[tuple[dict[str, object], Judged]]:
    for one in rows.sort([*JUDGED, "category", "prompt_id", "sample_id", "repeat"]).partition_by(JUDGED, maintain_order=True):
        number = one.select(
            category=pl.col("category").rank("dense") - 1,
            prompt=pl.struct("category", "prompt_id").rank("dense") - 1,
            image=pl.struct("category", "prompt_id", "sample_id").rank("dense") - 1,
        )
        category, prompt, image = (number[name].to_numpy().astype(np.int64) for name in ("category", "prompt", "image"))
        strata = np.zeros(int(prompt.max()) + 1, dtype=np.int64)
        strata[prompt] = category
        n_repeats = np.bincount(image)
        yield (
            {name: one[name][0] for name in JUDGED},
            Judged(
                prompt_sums(one["score"].to_numpy(), image, prompt), strata, len(n_repeats), one.height,
                float(len(n_repeats) / np.sum(1 / n_repeats)),
            ),
        )  # fmt: skip


def _components(judged: Judged) -> Components:
    totals, prompts = stratum_sums(judged.per_prompt, judged.strata)
    return components(totals[None], prompts[None])


def _figures(judged: Judged) -> tuple[dict[str, object], ReliabilityReason | None]:
    """Variances, ICC with its interval, reliability; and what cannot be told, or why nothing can."""
    n_strata = int(judged.strata.max()) + 1
    whole = _components(judged)
    raw = {
        "var_prompt": whole.prompt[0], "var_image": whole.image[0], "var_judge": whole.judge[0],
        "var_image_judge": whole.image_and_judge[0],
    }  # fmt: skip
    shown = {name: None if math.isnan(value) else max(0.0, float(value)) for name, value in raw.items()}
    figures: dict[str, object] = {**shown, "n_truncated": sum(float(value) < 0 for value in raw.values())}
    if len(judged.strata) <= n_strata:  # one image asked again says what the judge's own noise is, and no more
        return figures, ReliabilityReason.TOO_FEW_PROMPTS
    judge, between = float(whole.judge[0]), max(0.0, float(whole.between_images[0]))
    if math.isnan(judge):
        return figures, ReliabilityReason.NO_REPEATS
    if judge + between == 0:
        return figures, ReliabilityReason.NO_VARIATION
    figures |= {"icc": between / (between + judge), "reliability": between / (between + judge / judged.n_repeats)}
    low, high = _interval(judged, judge, float(whole.between_images[0]))
    one_each = math.isnan(float(whole.image[0]))
    return figures | {"icc_low": low, "icc_high": high}, ReliabilityReason.ONE_IMAGE_PER_PROMPT if one_each else None


def _interval(judged: Judged, judge: float, between: float) -> tuple[float | None, float | None]:
    """Jackknife over prompts of the logarithm of F = 1 + n between / judge, within categories; none where F is no number."""
    n = judged.n_repeats
    left = components(*leave_one_out(judged.per_prompt, judged.strata))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(1 + n * left.between_images / left.judge)
    whole = 1 + n * between / judge if judge > 0 else math.inf
    if not np.isfinite(logs).all() or not math.isfinite(whole) or whole <= 0:
        return None, None
    sizes = np.bincount(judged.strata)
    variance = math.fsum(
        float((size - 1) / size * ((logs[judged.strata == stratum] - logs[judged.strata == stratum].mean()) ** 2).sum())
        for stratum, size in enumerate(sizes)
    )
    half = t_quantile(LEVEL, len(judged.strata) - len(sizes)) * math.sqrt(variance)
    ends = [math.exp(math.log(whole) + sign * half) - 1 for sign in (-1, 1)]
    low, high = (max(0.0, end / (end + n)) for end in ends)
    return low, high


def judge_tables(judgements: pl.LazyFrame, scores: pl.LazyFrame) -> dict[Table, pl.DataFrame]:
    """How much of a score is the judge's noise, how far several judges agree, and which scores would be worth buying."""
    rows = scored(judgements, scores)
    return {RELIABILITY: reliability(rows), DESIGNS: designs(rows), JURY: jury(rows)}
