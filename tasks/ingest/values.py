"""One value of a source row as a text, a seed or a picture. Which column it stands in is rows.py's business."""

import math
import re
from dataclasses import dataclass
from typing import Final

from schemas.identities import canonical_json
from schemas.input_budget import CELL_PICTURES, NAME_CHARACTERS, TEXT_CHARACTERS
from tasks.ingest.paths import encodable, quote

NUMBERED: Final = r"(.+?)[\s_-]+\(?(?:seed|s)?[\s_=-]*([0-9]+)\)?"
"""A text with a number behind it, as in `a red cup_42` and `a red cup-seed42`. Polars reads it, too."""
_NUMBERED = re.compile(r"(.+?)[\s_-]++\(?(?:seed|s)?[\s_=-]*+([0-9]+)\)?")  # the same, no way back: names of blanks
_WHOLE_NUMBER = re.compile(r"\s*([+-]?[0-9]{1,30})(?:\.0*)?\s*", re.ASCII)  # pandas writes 3.0 where a column has gaps
_INT64 = range(-(2**63), 2**63)


class BadValueError(ValueError):
    """A value that cannot stand in its column."""


@dataclass(frozen=True, slots=True)
class Picture:
    """Where a row's picture is: a path, or bytes and the name they had. Neither: the row has none."""

    path: str | None = None
    content: bytes | None = None


NO_PICTURE = Picture()


def text_of(value: object) -> str | None:
    """A text, kept as it is; numbers are written out; NaN, which is pandas' null, is null. Raises BadValueError."""
    match value:
        case None:
            return None
        case str():
            text = value
        case bool():
            text = "true" if value else "false"
        case float() if math.isnan(value):
            return None
        case bytes() | bytearray() | dict() | list() | tuple():
            raise BadValueError(f"expected a text, found a {type(value).__name__}: {_show(value)}")
        case _:
            text = str(value)
    if len(text) > TEXT_CHARACTERS:
        raise BadValueError(f"the text has {len(text)} characters; {TEXT_CHARACTERS} are allowed")
    if encodable(text) != text:
        raise BadValueError("the text holds characters that cannot be written as UTF-8 (a lone surrogate)")
    return text


def name_of(value: object) -> str | None:
    """text_of, as the name of a model or a checkpoint, which tables and pages repeat. Raises BadValueError."""
    name = text_of(value)
    if name is not None and len(name) > NAME_CHARACTERS:
        raise BadValueError(f"the name has {len(name)} characters; {NAME_CHARACTERS} are allowed")
    return name


def own_text_of(value: object) -> str | None:
    """A text of a rubric's own column; a list or an object, such as a sample's items, is its JSON. Raises BadValueError."""
    if not isinstance(value, list | dict):
        return text_of(value)
    try:
        return text_of(canonical_json(value).decode())
    except TypeError as error:
        raise BadValueError(f"a {type(value).__name__} holds a value that JSON cannot represent: {error}") from error


def numbered(stem: str) -> tuple[str, str | None]:
    """A picture's name without the number at its end, and that number; the whole and None where it ends in none."""
    match = _NUMBERED.fullmatch(stem)
    return (match[1], match[2]) if match else (stem, None)


def seed_of(value: object) -> int | None:
    """A whole number of 64 bits; blank is null. Raises BadValueError."""
    text = text_of(value)
    if text is None or not text.strip():
        return None
    match = _WHOLE_NUMBER.fullmatch(text)
    if not match or int(match[1]) not in _INT64:
        raise BadValueError(f"{quote(text, 60)} is not a 64-bit integer")
    return int(match[1])


def picture_of(value: object) -> Picture:
    """A path, bytes, or the Hugging Face struct of both; null and an empty text are no picture. Raises BadValueError."""
    match value:
        case None | "" | {"path": None, "bytes": None}:
            return NO_PICTURE
        case float() if math.isnan(value):
            return NO_PICTURE
        case str():
            return Picture(path=value)
        case bytes():
            return Picture(content=value)
        case {"bytes": bytes(content), **rest}:
            name = rest.get("path")
            return Picture(path=name if isinstance(name, str) else None, content=content)
        case {"path": str(path), **rest} if rest.get("bytes") is None:
            return Picture(path=path)
        case _:
            raise BadValueError(f"expected a path or an Image, found a {type(value).__name__}: {_show(value)}")


def pictures_of(value: object) -> list[Picture]:
    """The pictures of a role: one (picture_of), or a list of them in order; what is null is left out. Raises BadValueError."""
    given = value if isinstance(value, list | tuple) else [value]
    if len(given) > CELL_PICTURES:
        raise BadValueError(f"{len(given):,} pictures are listed; {CELL_PICTURES} are allowed")
    found = [picture_of(one) for one in given]
    return [one for one in found if one != NO_PICTURE]


def is_equal(found: object, wanted: str | float | bool) -> bool:
    """Equality on raw values; a text cell (all a CSV has) equals a number or a truth value written the same."""
    if isinstance(found, str) and not isinstance(wanted, str):
        return found.strip().lower() == text_of(wanted)
    return isinstance(found, bool) == isinstance(wanted, bool) and found == wanted


def _show(value: object) -> str:
    return quote(repr(value)[:200], 60)
