"""The words a rubric.toml is made of, and its sections of what is sent and what must hold. The whole: declaration.py."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

Id = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Line = Annotated[str, StringConstraints(pattern=r"^[^\r\n]{1,500}$")]
FixedText = Annotated[str, StringConstraints(max_length=10_000)]
Number = Annotated[float, Field(allow_inf_nan=False)]


def is_column(name: str) -> str:
    """The name, where a rubric may look at such a column; else raises ValueError."""
    if name in WHO_MADE_IT:
        raise ValueError(f"{name!r} identifies a sample or its model, which a judge must not see; name another column")
    return name


def _is_text(name: str) -> str:
    if name == "image":
        raise ValueError("'image' is the picture, but a text is needed here; name a text column")
    return is_column(name)


WHO_MADE_IT = ("model", "checkpoint", "seed", "item_id", "sample_id", "source", "source_key")
Column = Annotated[Id, AfterValidator(is_column)]
SampleText = Annotated[Id, AfterValidator(_is_text)]


class Section(BaseModel):
    """Nothing unknown, nothing converted: a number in quotes is not a number."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


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
            raise ValueError(f"a part of kind {self.kind!r} cannot be null; remove null_as")
        if self.detail is not None and self.kind not in {"image", "example"}:
            raise ValueError(f"a part of kind {self.kind!r} is not a picture; remove detail")
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
            raise ValueError("a condition is exactly one of {column, is_null}, {column, one_of} and {words_outside}")
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
            raise ValueError("write equals, or at_most and/or at_least")
        if self.at_most is not None and self.at_least is not None and self.at_least > self.at_most:
            raise ValueError(f"at_least {self.at_least:g} is above at_most {self.at_most:g}: no score could satisfy it")
        return self


class RuleSection(Section):
    """A declared rule: where all of `when` hold, `then` must."""

    name: Id
    when: list[WhenSection] = Field(min_length=1, max_length=20)
    then: ThenSection
