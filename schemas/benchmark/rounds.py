"""The benchmark file's [pairs] and [statistics.stopping]: which checkpoints meet, and until when they are asked about.

Which samples meet is tasks/plan/pairs.py; what a look at scores decides is tasks/aggregate.
"""

from itertools import pairwise
from typing import Literal, Self

from pydantic import Field, model_validator

from schemas.benchmark.lines import Section

Meet = Literal["baseline", "predecessor", "each_other"]


class Pairs(Section):
    """Which checkpoints meet, and how often."""

    meet: list[Meet] = Field(
        default_factory=lambda: list[Meet](["baseline", "predecessor"]),
        min_length=1,
        max_length=3,
        description="Each checkpoint meets [nightly] baseline, its predecessor, or every other.",
    )
    per_prompt: int = Field(default=1, ge=1, le=100, description="Pairs of pictures a prompt, of any two checkpoints.")
    adaptive: bool = Field(
        default=False, description="Ask prompt by prompt, and leave a comparison as soon as it is decided, at any time validly."
    )
    prompts_a_round: int = Field(default=25, ge=5, le=10_000, description="Adaptive: prompts asked between two looks.")


class Stopping(Section):
    """Looks at shares of the prompts, after which checkpoints whose comparisons are decided are asked no more."""

    looks: list[float] = Field(
        default_factory=list,
        max_length=10,
        description="Shares of the prompts, rising to 1, as [0.25, 0.5, 0.75, 1.0]. Default: none, all are asked at once.",
    )
    decide: list[Meet] = Field(
        default_factory=lambda: list[Meet](["baseline", "predecessor"]),
        min_length=1,
        max_length=3,
        description="The comparisons that are waited for; of the others what is known by then is published.",
    )
    futility: float = Field(
        default=0.1,
        ge=0,
        lt=0.5,
        description="Also leave a comparison whose chance to be decided by the rest is smaller; 0: never.",
    )

    @model_validator(mode="after")
    def _rises_to_the_whole(self) -> Self:
        looks = self.looks
        if looks and (len(looks) < 2 or looks[0] <= 0 or looks[-1] != 1 or any(b <= a for a, b in pairwise(looks))):
            raise ValueError(
                f"looks = {looks}: give two to ten increasing shares, above 0 and up to 1, such as [0.25, 0.5, 0.75, 1.0]"
            )
        return self
