"""A section of a benchmark file, and a complaint about one: which key, which line, what is allowed. Its keys: file.py."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints, ValidationInfo, field_validator

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Loc = tuple[int | str, ...]
_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
Name = Annotated[str, StringConstraints(pattern=_NAME)]
_NAME_BYTES, _PATH_BYTES = 255, 4095  # what Linux and macOS allow a file's name; a path has 4,095 on one and 1,023 on the other


def _can_be_a_path(path: str) -> str:
    longest = max((len(part.encode()) for part in path.split("/")), default=0)
    if longest > _NAME_BYTES or len(path.encode()) > _PATH_BYTES:
        raise ValueError(f"a name in a path has at most {_NAME_BYTES} bytes, a path {_PATH_BYTES}; this one begins {path[:60]!r}")
    if "\0" in path:
        raise ValueError("a path cannot contain a NUL character")
    return path


PathText = Annotated[str, AfterValidator(_can_be_a_path)]


class Section(BaseModel):
    """A section of the file: no key but those it declares, and no number or truth in quotes."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _stands_without_quotes(cls, value: object, field: ValidationInfo) -> object:
        kinds = _kinds(cls.model_fields[str(field.field_name)].annotation)
        if isinstance(value, str) and str not in kinds and kinds & {int, float, bool}:
            raise ValueError(f"{value!r:.60} is in quotes, but is not a text; write it without quotes")
        return value


def _kinds(annotation: object) -> set[object]:
    inner = get_args(annotation)
    return (
        {annotation} if not inner else {kind for one in inner for kind in ({type(one)} if isinstance(one, str) else _kinds(one))}
    )


_TOO_FAR = {"less_than", "less_than_equal", "greater_than", "greater_than_equal"}
_FORMS = {
    "finish_by": 'a time of day such as "08:00", with two digits each',
    "address": 'an address such as "tcp://host:8786"',
    "health": 'a path that begins with a slash, such as "/health"',
}
"""By key, what a text looks like whose pattern says it to programs alone."""


def reworded(problem: "ErrorDetails") -> str:
    """Pydantic's message, or one that says more of what is written there and of what is allowed."""
    value, name = problem["input"], problem["loc"][-1] if problem["loc"] else ""
    if problem["type"] == "list_type" and isinstance(value, dict):
        return f"there may be several; write [[{name}]] instead of [{name}]"
    if problem["type"] == "list_type" and isinstance(value, str | int | float):
        one = json.dumps(value, ensure_ascii=False)
        return f"{one:.60} is not a list; write [{one:.60}]"
    if problem["type"] == "string_pattern_mismatch" and problem["ctx"]["pattern"] == _NAME:
        return (
            f"{value!r:.130} is not a name; allowed: letters, digits, '.', '_' and '-', at most 100, the first a letter or digit"
        )
    if problem["type"] == "string_pattern_mismatch" and name in _FORMS:
        return f"{value!r:.130} is not {_FORMS[str(name)]}"
    if problem["type"] in _TOO_FAR:
        return f"{value!r:.60}: {problem['msg'][0].lower()}{problem['msg'][1:]}{_as_share(problem)}"
    return problem["msg"]


def _as_share(problem: "ErrorDetails") -> str:
    """What a per cent is as a share, where shares are allowed."""
    value, most = problem["input"], problem.get("ctx", {})
    is_share = 1 in (most.get("lt"), most.get("le")) and isinstance(value, int | float) and 1 < value <= 100
    return f"; {value:g} % is {value / 100:g}" if is_share else ""


def not_toml(text: str, error: Exception) -> str:
    """What is wrong with a text that is no TOML; the key that stands twice is named, as the library does not."""
    if not str(error).startswith("Cannot overwrite a value"):
        return str(error)
    lines = text.splitlines()
    place = re.search(r"at line (\d+)", str(error))
    number = int(place[1]) if place else max((n for n, line in enumerate(lines, 1) if line.strip()), default=1)
    key = re.match(r"\s*([^=#]+?)\s*=", lines[number - 1])
    return f"line {number}: {f'the key {key[1][:60]}' if key else 'a key'} occurs twice in its section; remove one of them"


def explain(path: Path, text: str, model: type[BaseModel], loc: Loc, message: str, kind: str = "") -> str:
    """One sentence about what stands at `loc` in the file's text, as pydantic names a place and a kind of problem."""
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc).lstrip(".")
    line = line_of(text, loc)
    where = f"{path}, line {line}" if line else str(path)
    allowed = ", ".join(sorted(name for name in section_model(model, loc[:-1]).model_fields if name != "folder"))
    if kind == "extra_forbidden":
        return f"{where}: {key} is not a key here; allowed: {allowed}"
    if kind == "missing":
        return f"{where}: {key} is missing; add it; keys here: {allowed}"
    return f"{where}: {key + ': ' if key else ''}{message.removeprefix('Value error, ')}"


def section_model(model: type[BaseModel], loc: Loc) -> type[BaseModel]:
    """The model of the section at `loc`: its keys are what is allowed there."""
    for part in loc:
        if isinstance(part, str) and part in model.model_fields:
            model = next(_models_in(model.model_fields[part].annotation), model)
    return model


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)


def line_of(text: str, loc: Loc) -> int | None:
    """The line (from 1) of a key in TOML text: the nth header of its section, then the key below it, or what holds the key.

    Of a list each [[name]] is one; a table of its own ([name.sub]) belongs to the one before it.
    """
    lines = text.splitlines()
    names = [part for part in loc if isinstance(part, str)]
    index = loc[1] if len(loc) > 1 and isinstance(loc[1], int) else None
    if not names:
        return None
    start_of = r"\[?\s*{}\s*(\]|\.)" if index is None else r"\[\s*{}\s*\]"
    header = re.compile(r"^\s*\[" + start_of.format(re.escape(names[0])))
    headers = [number for number, line in enumerate(lines, 1) if header.match(line)]
    start = headers[index or 0] if (index or 0) < len(headers) else 0
    if len(names) == 1 and start:
        return start
    for name in reversed(names[1:] if start else names[:1]):
        found = _key_below(lines, start, name, names[0] if len(names) > 2 else None)
        if found:
            return found
    return start or None


def _key_below(lines: list[str], start: int, name: str, within: str | None) -> int | None:
    """`within`: the section whose tables of their own are looked through too."""
    own = re.compile(rf"\s*\[\[?\s*{re.escape(within)}\s*\." if within else r"(?!)")
    key = re.compile(rf"""^\s*["']?{re.escape(name)}["']?\s*[.=]""")
    for number in range(start + 1, len(lines) + 1):
        if key.match(lines[number - 1]):
            return number
        if start and lines[number - 1].lstrip().startswith("[") and not own.match(lines[number - 1]):
            break
    return None
