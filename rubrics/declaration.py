"""What a rubric.toml may say, with every default: its sections, strictly typed. Turning one into a Rubric is loading.py."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from schemas.errors import RubricError

DECLARATION = "rubric.toml"
Id = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Line = Annotated[str, StringConstraints(pattern=r"^[^\r\n]{1,500}$")]
FixedText = Annotated[str, StringConstraints(max_length=10_000)]
Number = Annotated[float, Field(allow_inf_nan=False)]


def is_column(name: str) -> str:
    """The name, where a rubric may look at such a column; else raises ValueError."""
    if name in WHO_MADE_IT:
        raise ValueError(f"{name!r} says who made a sample or which it is, and a judge is not told; name another column")
    return name


def _is_text(name: str) -> str:
    if name == "image":
        raise ValueError("'image' is the picture, and a text is meant; name a column of text")
    return is_column(name)


WHO_MADE_IT = ("model", "checkpoint", "seed", "item_id", "sample_id", "source", "source_key")
Column = Annotated[Id, AfterValidator(is_column)]
SampleText = Annotated[Id, AfterValidator(_is_text)]


class Section(BaseModel):
    """Nothing unknown, nothing converted: a number in quotes is not a number."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


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
            raise ValueError("normalised = true makes a whole of any sliver of mass on the answers: state min_mass, such as 0.5")
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


class PartSection(Section):
    """A piece of a message."""

    kind: Literal["prompt", "template", "column", "text", "image", "image_word", "example"]
    value: FixedText | None = None
    null_as: FixedText | None = None
    detail: Literal["low", "high", "auto"] | None = None

    @model_validator(mode="after")
    def _says_what_its_kind_needs(self) -> Self:
        takes_value = self.kind in {"column", "text", "image", "image_word", "example"}
        if takes_value and self.value is None and self.kind != "image":
            raise ValueError(f"a part of kind {self.kind!r} needs a value")
        if not takes_value and self.value is not None:
            raise ValueError(f"a part of kind {self.kind!r} takes no value; remove it")
        if self.null_as is not None and self.kind not in {"column", "image", "image_word"}:
            raise ValueError(f"a part of kind {self.kind!r} is never null; remove null_as")
        if self.detail is not None and self.kind not in {"image", "example"}:
            raise ValueError(f"a part of kind {self.kind!r} is no picture; remove detail")
        return self


class MessageSection(Section):
    """One chat message."""

    role: Literal["system", "user", "assistant"]
    parts: list[PartSection] = Field(min_length=1, max_length=100)


class WordsOutsideSection(Section):
    """The words of one text against those of another."""

    of: SampleText
    reference: SampleText
    percent: int = Field(ge=0, le=1000)


class WhenSection(Section):
    """One condition: {column, is_null}, {column, one_of} or {words_outside}."""

    column: Column | None = None
    is_null: bool | None = None
    one_of: list[Line] | None = Field(default=None, min_length=1, max_length=1000)
    words_outside: WordsOutsideSection | None = None

    @model_validator(mode="after")
    def _is_one_condition(self) -> Self:
        said = sum(value is not None for value in (self.is_null, self.one_of, self.words_outside))
        if said != 1 or (self.column is None) != (self.words_outside is not None):
            raise ValueError("a condition is {column, is_null}, {column, one_of} or {words_outside}, one of the three")
        if self.column == "image" and self.one_of is not None:
            raise ValueError("a picture has no words to compare; use is_null")
        return self


class ThenSection(Section):
    """What must hold for the dimensions named."""

    dimensions: list[Id] = Field(min_length=1, max_length=100)
    equals: Number | None = None
    at_most: Number | None = None
    at_least: Number | None = None

    @model_validator(mode="after")
    def _is_a_bound(self) -> Self:
        is_range = self.at_most is not None or self.at_least is not None
        if (self.equals is not None) == is_range:
            raise ValueError("say equals, or at_most and/or at_least")
        if self.at_most is not None and self.at_least is not None and self.at_least > self.at_most:
            raise ValueError(f"at_least {self.at_least:g} is above at_most {self.at_most:g}: no score could keep it")
        return self


class RuleSection(Section):
    """A declared rule: where all of `when` hold, `then` must."""

    name: Id
    when: list[WhenSection] = Field(min_length=1, max_length=20)
    then: ThenSection


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
                raise ValueError(f"{key} stands in the folder of each of the requests {self.requests}; remove it here")
        elif self.program is None:
            if self.reply is None:
                raise ValueError("reply is missing; add it, or program = { name, version } where a program gives the numbers")
            return self
        for key in sorted(self.model_fields_set & _ASKED) if self.program else ():
            raise ValueError(f"{key} is of a judge that is asked, and a program is not; remove {key}, or program")
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
        return f"{key} is not a key here; allowed: {', '.join(section.model_fields)}"
    if problem["type"] == "missing":
        return f"{key} is missing; add it"
    found = "" if isinstance(problem["input"], dict | list) else f", not {str(problem['input'])[:100]!r}"
    return f"{key + ': ' if key else ''}{problem['msg'].removeprefix('Value error, ')}{found}"


def _shown(name: str) -> str:
    """A key as it may be printed: a file's key can hold anything, terminal control codes too."""
    return name if name.isidentifier() and len(name) <= 100 else repr(name[:100])
