"""The benchmark file's [statistics.stopping]: when a comparison of scores is looked at. What a look decides: tasks/aggregate."""

from itertools import pairwise
from typing import Literal, Self

from pydantic import Field, model_validator

from schemas.benchmark_lines import Section


class Stopping(Section):
    """Looks at shares of the prompts, after which checkpoints whose comparisons are decided are asked no more."""

    looks: list[float] = Field(
        default_factory=list,
        max_length=10,
        description="Shares of the prompts, rising to 1, as [0.25, 0.5, 0.75, 1.0]. Default: none, all are asked at once.",
    )
    decide: list[Literal["baseline", "predecessor", "each_other"]] = Field(
        default_factory=lambda: list[Literal["baseline", "predecessor", "each_other"]](["baseline", "predecessor"]),
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
            raise ValueError(f"looks = {looks}: give two to ten shares that rise from above 0 to 1, as [0.25, 0.5, 0.75, 1.0]")
        return self
