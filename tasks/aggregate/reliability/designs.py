"""What another number of prompts, images or repeats would buy: predicted standard errors. The variances come from reliability.py.

A decision study: Brennan, Generalizability Theory (2001), chapters 1 and 4.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

IMAGES = (1, 2, 4, 8)
REPEATS = (1, 2, 3, 4)


class Design(NamedTuple):
    """Prompts in all, images of each prompt, repeats of each image."""

    n_prompts: int
    n_images: int
    n_repeats: int

    @property
    def cost(self) -> int:
        """Judgements."""
        return self.n_prompts * self.n_images * self.n_repeats


def designs_of(
    at_hand: Design, variances: tuple[float, float, float | None], n_prompts: npt.NDArray[np.int64]
) -> Iterator[dict[str, object]]:
    """A row of DESIGNS for each design, the one at hand first; `variances` of prompt, image and judge (None: part of the image).

    `n_prompts` are the prompts of each category at hand; other designs keep their proportions.
    """
    weight = float(np.sum(n_prompts.sum() / n_prompts)) / len(n_prompts) ** 2  # 1 where all categories are of one size
    for design in [at_hand, *_others(at_hand, has_repeats=variances[2] is not None)]:
        claims, trends = predicted(design, variances)
        yield {
            "n_prompts": design.n_prompts, "n_images_per_prompt": design.n_images, "n_repeats": design.n_repeats,
            "n_judgements": design.cost, "cost_ratio": design.cost / at_hand.cost, "is_at_hand": design == at_hand,
            "se_prompts_like_these": claims * math.sqrt(weight), "se_these_prompts": trends * math.sqrt(weight),
        }  # fmt: skip


def predicted(design: Design, variances: tuple[float, float, float | None]) -> tuple[float, float]:
    """Standard error of a mean over the design's prompts: for prompts like these, and for these prompts."""
    prompt, image, judge = variances
    n_images = design.n_prompts * design.n_images
    within = image / n_images + (judge or 0.0) / (n_images * design.n_repeats)
    return math.sqrt(prompt / design.n_prompts + within), math.sqrt(within)


def _others(at_hand: Design, *, has_repeats: bool) -> list[Design]:
    """Designs of the cost at hand, as near as whole prompts allow, and of twice the cost in each direction."""
    repeats = REPEATS if has_repeats else (at_hand.n_repeats,)
    same = {Design(round(at_hand.cost / (n * r)), n, r) for n in IMAGES for r in repeats}
    n_prompts, n_images, n_repeats = at_hand
    double = {Design(2 * n_prompts, n_images, n_repeats), Design(n_prompts, 2 * n_images, n_repeats)}
    if has_repeats:
        double.add(Design(n_prompts, n_images, 2 * n_repeats))
    return sorted(design for design in (same | double) - {at_hand} if design.n_prompts >= 2)
