"""What a rubric.toml may say, with every default. What is sent and what must hold: sections.py. Made a Rubric: assembling.py."""

import difflib
import json
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, StringConstraints, model_validator

from rubrics.sections import (
    Column,
    FixedText,
    Id,
    Line,
    MessageSection,
    Number,
    PartSection,
    RuleSection,
    SampleText,
    Section,
    ThenSection,
    WhenSection,
    WordsOutsideSection,
    is_column,
)
from schemas.errors import RubricError

DECLARATION = "rubric.toml"


class Scale(Section):
    """An inclusive scale; step 1 for whole numbers, no step for any decimal number."""

    min: Number
    max: Number
    step: Literal[1] | None = None

    @model_validator(mode="after")
    def _has_room(self) -> Self:
        if self.min >= self.max:
            raise ValueError(f"the scale's min {self.min:g} is not below its max {self.max:g}")
        return self


Answers = Annotated[dict[Line, Number], Field(min_length=2, max_length=100)]
NotApplicable = Annotated[list[Line], Field(min_length=1, max_length=20)]


class DimensionSection(Section):
    """One thing the judge scores; `scale`, `answers`, `not_applicable` where they differ from the rubric's."""

    key: Id
    labels: list[Line] = Field(default_factory=list, max_length=20)
    scale: Scale | None = None
    answers: Answers | None = None
    not_applicable: NotApplicable | None = None
    at: Line | Annotated[list[Line], Field(min_length=1, max_length=10)] | None = None
    better: Literal["higher", "lower"] = "higher"


class VariantSection(Section):
    """What is asked in one category of the dispatch column."""

    category: Line
    prompt: Line | None = None
    dimensions: list[DimensionSection] = Field(min_length=1, max_length=100)


class ProbabilitySection(Section):
    """The score is the expectation over the answers, by the probabilities of the judge's tokens."""

    normalised: bool = False
    min_mass: float = Field(default=0.0, ge=0, le=1)

    @model_validator(mode="after")
    def _is_of_a_stated_mass(self) -> Self:
        if self.normalised and not self.min_mass:
            raise ValueError(
                "normalised = true scales up even a tiny probability mass on the answers: set min_mass, for instance to 0.5"
            )
        return self


class FigureSection(Section):
    """A figure derived from dimensions, or (without `of`) from the items of a sample."""

    key: Id
    form: Literal["mean", "weighted_mean", "geometric_mean", "minimum", "product", "sqrt_product", "all", "share", "turned"]
    of: list[Id] = Field(default_factory=list, max_length=100)
    weights: list[Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(default_factory=list, max_length=100)
    at_least: Number | None = None
    when_parent_fails: Literal["zero", "left_out"] | None = None


class ItemTextSection(Section):
    """A text made of a request's items."""

    each: FixedText
    join: FixedText = ""
    before: FixedText = ""
    after: FixedText = ""
    strip: bool = False


class ItemsSection(Section):
    """The items of a sample, and how they are asked."""

    column: SampleText
    asked: Literal["each", "together"]
    texts: Annotated[dict[SampleText, ItemTextSection], Field(min_length=1, max_length=20)]
    fields: dict[Literal["id", "kind", "weight", "depends_on", "expected", "choices", "text"], Line] = Field(default_factory=dict)
    kinds: dict[str, Id] = Field(default_factory=dict, max_length=200)


class ProgramSection(Section):
    """The program whose numbers are imported; its judge is called "name-version"."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$")]
    version: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$")]


class Declaration(Section):
    """A whole rubric.toml."""

    id: Id
    version: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$")]
    title: Line
    source: Line
    reply: Literal["json", "bracket", "label", "answer", "lines", "list"] | None = None
    program: ProgramSection | None = None
    requests: list[Id] = Field(default_factory=list, max_length=20)
    prompt: Line | None = None
    output_tokens: int = Field(default=300, ge=1, le=100_000)
    needs: list[Column] = Field(default_factory=list)
    pictures: list[Id] = Field(default_factory=list, max_length=20)
    pairs: bool = False
    slots: dict[Line, SampleText] = Field(default_factory=dict)
    may_be_null: list[Column] = Field(default_factory=list)
    unit: list[Id] = Field(min_length=1)
    report_by: SampleText = "category"
    dispatch: SampleText | None = None
    scale: Scale | None = None
    answers: Answers | None = None
    not_applicable: NotApplicable | None = None
    value_maps: dict[SampleText, dict[str, Line]] = Field(default_factory=dict)
    words: dict[SampleText, Annotated[list[Line], Field(min_length=1, max_length=1000)]] = Field(default_factory=dict)
    dimensions: list[DimensionSection] = Field(default_factory=list, max_length=100)
    items: ItemsSection | None = None
    probability: ProbabilitySection | None = None
    figures: list[FigureSection] = Field(default_factory=list, max_length=50)
    variants: list[VariantSection] = Field(default_factory=list, max_length=100)
    messages: list[MessageSection] = Field(default_factory=list, max_length=100)
    rules: list[RuleSection] = Field(default_factory=list, max_length=100)

    @model_validator(mode="after")
    def _is_asked_or_measured(self) -> Self:
        for name in self.unit:
            if name not in self.pictures and not self.requests:
                is_column(name)
        if self.requests:
            for key in sorted(self.model_fields_set & (_ASKED | _OF_REQUEST)):
                raise ValueError(f"{key} belongs in the folder of each of the requests {self.requests}; remove it here")
        elif self.program is None:
            if self.reply is None:
                raise ValueError("reply is missing; add it, or program = { name, version } if a program gives the numbers")
            return self
        for key in sorted(self.model_fields_set & _ASKED) if self.program else ():
            raise ValueError(f"{key} applies to a judge that is asked, but a program is not asked; remove {key}, or program")
        return self


_ASKED = {
    "reply", "prompt", "output_tokens", "messages", "slots", "dispatch", "variants", "items", "probability", "answers",
    "not_applicable", "rules", "pairs",
}  # fmt: skip

_OF_REQUEST = {"program", "needs", "pictures", "may_be_null", "scale", "dimensions", "words", "value_maps"}

SECTIONS: dict[str, type[BaseModel]] = {
    "scale": Scale, "dimensions": DimensionSection, "variants": VariantSection, "messages": MessageSection,
    "items": ItemsSection, "probability": ProbabilitySection, "program": ProgramSection, "texts": ItemTextSection,
    "figures": FigureSection, "parts": PartSection, "rules": RuleSection,
    "when": WhenSection, "words_outside": WordsOutsideSection, "then": ThenSection,
}  # fmt: skip


def refusal(folder: Path, message: str) -> RubricError:
    """What is wrong with a folder's declaration, to be raised."""
    return RubricError(f"{folder / DECLARATION}: {message}")


def explain(problem: Any) -> str:
    """One pydantic problem as a sentence that names the key and, where there is a closed set, what is allowed."""
    loc: tuple[int | str, ...] = problem["loc"]
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{_shown(part)}" for part in loc).lstrip(".")
    if problem["type"] == "extra_forbidden":
        parents = [part for part in loc[:-1] if isinstance(part, str)]
        section = SECTIONS.get(parents[-1], Declaration) if parents else Declaration
        close = difflib.get_close_matches(str(loc[-1])[:100], section.model_fields, n=1)
        meant = f"did you mean {close[0]}? Allowed" if close else "allowed"
        return f"{key} is not a key here; {meant}: {', '.join(section.model_fields)}"
    if problem["type"] == "missing":
        return f"{key} is missing; add it"
    if problem["type"] in _OF_QUOTES and not isinstance(problem["input"], dict | list):
        return f"{key}: {_in_toml(problem['input'])} {_OF_QUOTES[problem['type']]}"
    found = "" if isinstance(problem["input"], dict | list) else f", not {str(problem['input'])[:100]!r}"
    return f"{key + ': ' if key else ''}{problem['msg'].removeprefix('Value error, ')}{found}"


_OF_QUOTES = {
    "string_type": "is not a text; write it in quotes",
    "int_type": "is not a whole number; write one, without quotes",
    "float_type": "is not a number; write one, without quotes",
    "bool_type": "is neither true nor false; write one of them, without quotes",
}


def _in_toml(value: object) -> str:
    """A value as it stands in the file: with quotes where it has some."""
    if isinstance(value, str):
        return json.dumps(value[:100], ensure_ascii=False)
    return str(value).lower() if isinstance(value, bool) else str(value)[:100]


def _shown(name: str) -> str:
    """A key as it may be printed: a file's key can hold anything, terminal control codes too."""
    return name if name.isidentifier() and len(name) <= 100 else repr(name[:100])
