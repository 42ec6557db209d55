"""How replies and ratings made elsewhere are read: [recorded] and [ratings] of the benchmark file. The rest is benchmark.py."""

from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from schemas.benchmark.lines import Section
from schemas.statuses.people import is_reserved


def _is_nobodys(name: str) -> str:
    if is_reserved(name.strip()):
        raise ValueError(f"{name[:60]!r}: names that begin and end with __ are Salon's own; write another name")
    return name


AssessorName = Annotated[str, AfterValidator(_is_nobodys)]


class Recorded(Section):
    """How replies recorded elsewhere are read: which column is which, or a template that rebuilds the reply text."""

    columns: dict[str, str] = Field(default_factory=dict)
    where: dict[str, str | int | float | bool] = Field(default_factory=dict)
    template: str | None = None


class RatingScale(Section):
    """The scale people rated on: its ends, and the distance of two labels where only labels are allowed."""

    min: float
    max: float
    step: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _is_a_scale(self) -> Self:
        if self.min >= self.max:
            raise ValueError(f"min = {self.min:g} is not below max = {self.max:g}")
        return self


class RatingValue(Section):
    """A column of a wide table that holds ratings of one rater, or numbers of one automatic metric."""

    at: str = Field(description="The column, or a path in it such as human_scores[0].")
    rater: AssessorName | None = Field(
        default=None, description="Whose ratings they are; default: the file's name without its suffix."
    )
    metric: AssessorName | None = Field(default=None, description="The metric whose numbers they are; then it is no rater.")
    dimension: str | None = Field(default=None, description="The rubric's dimension; default: the one of [ratings].")
    model: str | None = Field(default=None, description="The image model of the column, in tables with a column for each model.")
    checkpoint: str | None = None
    scale: RatingScale | None = Field(default=None, description="Where it is another than that of [ratings].")

    @model_validator(mode="after")
    def _is_one_of_two(self) -> Self:
        if self.rater is not None and self.metric is not None:
            raise ValueError("has a rater and a metric; keep one of them")
        return self


WORDS = {
    "a": 1.0, "a wins": 1.0, "model_a": 1.0, "b": 0.0, "b wins": 0.0, "model_b": 0.0,
    "tie": 0.5, "both": 0.5, "neither": 0.5, "tie (bothbad)": 0.5,
}  # fmt: skip


class Votes(Section):
    """How a table of people's pairwise votes is read: a row a vote."""

    columns: dict[str, str] = Field(default_factory=dict)
    where: dict[str, str | int | float | bool] = Field(default_factory=dict)
    dimension: str | None = Field(default=None, description="The rubric's dimension, where the table does not say.")
    unnamed: bool = Field(default=False, description="As for ratings: nobody knows whose votes those without a rater are.")
    words: dict[str, float] = Field(
        default_factory=lambda: dict(WORDS), description="What a vote's word is worth to a: 1 a is better, 0 b is, 0.5 neither."
    )

    @model_validator(mode="after")
    def _are_votes(self) -> Self:
        for word, worth in self.words.items():
            if worth not in (0, 0.5, 1):
                raise ValueError(f"words: {word!r} is {worth:g}; allowed: 1 (a is better), 0 (b is better), 0.5 (neither)")
        return self


class Ratings(Section):
    """How a table of people's ratings is read: long by `columns` alone, wide with `values`."""

    columns: dict[str, str] = Field(default_factory=dict)
    where: dict[str, str | int | float | bool] = Field(default_factory=dict)
    scale: RatingScale | None = None
    dimension: str | None = Field(default=None, description="The rubric's dimension, where the table does not say.")
    unnamed: bool = Field(
        default=False, description="Nobody knows whose ratings those without a rater are; default: each file is one rater."
    )
    values: list[RatingValue] = Field(default_factory=list)
    votes: Votes = Field(default_factory=Votes)
