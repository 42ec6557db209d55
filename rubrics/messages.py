"""What a message of a rubric is: its parts in order, and the pictures every request shows. Filling one is rendering.py."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a message, in order.

    Kinds: "prompt", the variant's prompt text as it is; "template", the same with its {column} placeholders filled;
    "column", a sample's text; "text", fixed text; "image", the pictures of a role; "image_word", a word that says there is one;
    "example", a picture of the rubric's own folder.
    """

    kind: str
    value: str = ""
    null_as: str | None = None  # what stands for a null column or picture; None: the column may not be null
    detail: str | None = None  # of a picture: how closely the provider is to look, where the judge does not say


@dataclass(frozen=True, slots=True)
class Example:
    """A picture of the rubric's folder that every request shows: the file's own bytes."""

    sha256: str
    image_format: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message."""

    role: str
    parts: tuple[Part, ...]
