"""The benchmark file's [pairs]: which checkpoints meet under a rubric for pairs. Which samples do is tasks/plan/pairs.py."""

from typing import Literal

from pydantic import Field

from schemas.benchmark_lines import Section

Meet = Literal["baseline", "predecessor", "each_other"]


class Pairs(Section):
    """Which checkpoints meet, and how often."""

    meet: list[Meet] = Field(
        default_factory=lambda: list[Meet](["baseline", "predecessor"]),
        min_length=1,
        max_length=3,
        description="Each checkpoint meets [nightly] baseline, the one before it of its model, or every other.",
    )
    per_prompt: int = Field(default=1, ge=1, le=100, description="Pairs of pictures a prompt, of any two checkpoints.")
    adaptive: bool = Field(
        default=False, description="Ask prompt by prompt, and leave a comparison as soon as it is decided, at any time validly."
    )
    prompts_a_round: int = Field(default=25, ge=5, le=10_000, description="Adaptive: prompts asked between two looks.")
