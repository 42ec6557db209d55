"""A sample into the messages a judge is sent. Each name is filled once, by position; no value is ever read as template."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from types import MappingProxyType

from rubrics.messages import Message, Part
from rubrics.model import Rubric, Variant
from rubrics.rules import is_null, mapped
from schemas.errors import InputError, RubricError
from schemas.records import IMAGE, SAMPLE_TEXTS

PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""A placeholder of a template. Other braces, such as those of {"score": 1}, are text."""


def fillers(rubric: Rubric) -> re.Pattern[str]:
    """What is filled in a template: the rubric's slots, the longer ones first, and {column}, whose name is group 1."""
    slots = [re.escape(slot) for slot in sorted(rubric.slots, key=len, reverse=True)]
    return re.compile("|".join([*slots, PLACEHOLDER.pattern]))


class MissingColumns(InputError):  # noqa: N818 - the name the stages use: the columns are what matters
    """The sample lacks values the rubric needs; `columns` names them all."""

    def __init__(self, rubric_id: str, columns: tuple[str, ...]) -> None:
        super().__init__(
            f"rubric {rubric_id} needs {', '.join(columns)}, but this sample has no value there; fill or map the column"
        )
        self.columns = columns


class NoPrompt(InputError):  # noqa: N818
    """The rubric has no prompt for the sample's `category`."""

    def __init__(self, rubric: Rubric, category: str | None) -> None:
        known = ", ".join(str(name) for name in rubric.variants)
        super().__init__(f"rubric {rubric.id} has no prompt for {rubric.dispatch} {category!r}; it has prompts for {known}")
        self.category = category


class UnknownValue(InputError):  # noqa: N818
    """A column of the sample holds a word the rubric does not know; `column` names it."""

    def __init__(self, rubric: Rubric, column: str, value: str) -> None:
        known = ", ".join(map(repr, rubric.words[column]))
        super().__init__(
            f"rubric {rubric.id} does not know the {column} {value[:100]!r}; it knows {known}: map the word under "
            f"[value_maps.{column}] of a rubric of your own, or fix the source"
        )
        self.column = column


@dataclass(frozen=True, slots=True)
class Rendered:
    """What one sample is asked under a rubric; no messages where the rubric is for recorded replies only."""

    variant: Variant
    messages: tuple[dict[str, object], ...]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Fixed text, the value of a column, the pictures of a role (or, with `text`, a word for them), or a fixed picture."""

    text: str = ""
    column: str | None = None
    null_as: str | None = None
    role: str | None = None
    picture: Mapping[str, object] | None = None  # what its part says beside its place


@dataclass(frozen=True, slots=True)
class _Plan:
    """A rubric made ready to render: per category the roles with their pieces, and the columns and pictures it cannot lack."""

    required: tuple[str, ...]
    roles: tuple[str, ...]
    order: tuple[str, ...]
    messages: Mapping[str | None, tuple[tuple[str, tuple[_Piece, ...]], ...]]


def render(
    rubric: Rubric, values: Mapping[str, str | None], has_image: bool, others: Mapping[str, int] = MappingProxyType({})
) -> Rendered:
    """The messages for one sample: {"role", "content"}, content a string or a list of text and image parts.

    An image part is the sample's picture; with `role` (and, from the second on, `index`) another of its pictures, of which
    `others` says how many there are; with `sha256` an example. `shown` is how it is to be looked at.
    Raises NoPrompt where the rubric has none for the category, MissingColumns naming every needed value that is null,
    UnknownValue where a column holds a value that the rubric does not declare.
    """
    variant = variant_of(rubric, values)
    plan = _plan(rubric)
    n_pictures = {IMAGE: int(has_image)} | dict(others)
    missing = [name for name in plan.required if name != IMAGE and is_null(values.get(name))]
    missing += [role for role in plan.roles if not n_pictures.get(role)]
    if missing:
        raise MissingColumns(rubric.id, tuple(sorted(missing, key=plan.order.index)))
    return Rendered(
        variant, tuple(_message(rubric, role, pieces, values, n_pictures) for role, pieces in plan.messages[variant.category])
    )


def prompt_id(rubric: Rubric, values: Mapping[str, str | None], shown: Mapping[str, str | None]) -> str:
    """The independent unit a sample belongs to: sha256 over the rubric's unit columns; over everything where all are null.

    `shown`: the sha256 of the picture of each role, of several those of all.
    """
    named = _named(rubric.unit, values, {name: shown.get(name) for name in (IMAGE, *rubric.pictures)})
    if all(value is None for _, value in named):
        named = _named((*SAMPLE_TEXTS, IMAGE), values, {IMAGE: shown.get(IMAGE)})
    return sha256(json.dumps(named, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")).hexdigest()


def report_category(rubric: Rubric, values: Mapping[str, str | None]) -> str | None:
    """The category a sample is reported under, in the prompt's word; None where it is null, or no word the rubric knows."""
    value = values.get(rubric.report_by)
    word = None if value is None or is_null(value) else mapped(rubric, rubric.report_by, value)
    return word if word in rubric.words.get(rubric.report_by, (word,)) else None


def _named(columns: tuple[str, ...], values: Mapping[str, str | None], shown: Mapping[str, str | None]) -> list[list[str | None]]:
    found = [(name, shown[name] if name in shown else values.get(name)) for name in columns]
    return [[name, None if is_null(value) else value] for name, value in found]


def variant_of(rubric: Rubric, values: Mapping[str, str | None]) -> Variant:
    """The variant a sample is asked under. Raises NoPrompt where the rubric has none for its category, UnknownValue."""
    for column, words in rubric.words.items():
        value = values.get(column)
        if value is not None and not is_null(value) and mapped(rubric, column, value) not in words:
            raise UnknownValue(rubric, column, value)
    category = values.get(rubric.dispatch) if rubric.dispatch else None
    if rubric.dispatch and category is not None:
        category = mapped(rubric, rubric.dispatch, category)
    variant = rubric.variant(category)
    if variant is None:
        raise NoPrompt(rubric, category)
    return variant


def _message(
    rubric: Rubric, role: str, pieces: tuple[_Piece, ...], values: Mapping[str, str | None], n_pictures: Mapping[str, int]
) -> dict[str, object]:
    texts: list[str] = []
    parts: list[dict[str, object]] = []
    for piece in pieces:
        n_shown = n_pictures.get(piece.role, 0) if piece.role else 0
        if piece.picture is not None and (n_shown or piece.role is None):
            _flush(texts, parts)
            parts += [_picture(piece, index) for index in range(n_shown or 1)]
        elif piece.role is not None:
            texts.append(piece.text if n_shown else piece.null_as or "")
        elif piece.column is None:
            texts.append(piece.text)
        else:
            value = values.get(piece.column)
            texts.append(piece.null_as or "" if value is None or is_null(value) else mapped(rubric, piece.column, value))
    if not parts:
        return {"role": role, "content": "".join(texts)}
    _flush(texts, parts)
    return {"role": role, "content": parts}


def _picture(piece: _Piece, index: int) -> dict[str, object]:
    whose = {"role": piece.role} if piece.role not in {None, IMAGE} or index else {}
    return {"type": "image", **whose, **({"index": index} if index else {}), **(piece.picture or {})}


def _flush(texts: list[str], parts: list[dict[str, object]]) -> None:
    """The texts so far become one text part; an empty one is left out, since providers refuse it."""
    text = "".join(texts)
    if text:
        parts.append({"type": "text", "text": text})
    texts.clear()


# The rubric stands beside its plan, so that it lives as long and no other can get its id.
_PLANS: dict[int, tuple[Rubric, _Plan]] = {}
_MAX_PLANS = 256


def _plan(rubric: Rubric) -> _Plan:
    """The rubric's plan, made once. Kept by identity, not digest: a rubric made by hand from another has the other's digest."""
    held = _PLANS.get(id(rubric))
    if held is None:
        if len(_PLANS) >= _MAX_PLANS:
            _PLANS.clear()
        held = _PLANS[id(rubric)] = (rubric, _prepare(rubric))
    return held[1]


def _prepare(rubric: Rubric) -> _Plan:
    messages = {
        variant.category: tuple((message.role, _pieces(rubric, variant, message)) for message in rubric.messages)
        for variant in rubric.variants.values()
    }
    used = {p.column for listed in messages.values() for _, pieces in listed for p in pieces if p.column and p.null_as is None}
    needed = [name for name in rubric.needs if name not in rubric.may_be_null]
    pieces = [p for listed in messages.values() for _, found in listed for p in found]
    shown = {p.role for p in pieces if p.role and p.null_as is None}
    roles = [role for role in dict.fromkeys([*rubric.roles, *sorted(shown)]) if role not in rubric.may_be_null]
    required = tuple(dict.fromkeys([*needed, *sorted(used)]))
    return _Plan(required, tuple(roles), (*required, *roles), messages)


def _pieces(rubric: Rubric, variant: Variant, message: Message) -> tuple[_Piece, ...]:
    pieces: list[_Piece] = []
    for part in message.parts:
        pieces += _template(rubric, variant) if part.kind == "template" else [_piece(rubric, variant, part)]
    return tuple(pieces)


def _piece(rubric: Rubric, variant: Variant, part: Part) -> _Piece:
    if part.kind == "prompt":
        return _Piece(_prompt(rubric, variant))
    if part.kind == "text":
        return _Piece(part.value)
    if part.kind == "column":
        return _Piece("", part.value, part.null_as)
    if part.kind == "image_word":
        return _Piece(part.value, None, part.null_as, IMAGE)
    said: dict[str, object] = {"shown": {"detail": part.detail}} if part.detail else {}
    if part.kind == "example":
        return _Piece(picture={"sha256": rubric.examples[part.value].sha256} | said)
    return _Piece("", None, part.null_as, part.value or IMAGE, said)


def _template(rubric: Rubric, variant: Variant) -> list[_Piece]:
    """The prompt text cut at its slots and at placeholders that name needed columns; whatever else stands in braces is text."""
    pieces: list[_Piece] = []
    end = 0
    text = _prompt(rubric, variant)
    for match in fillers(rubric).finditer(text):
        column = rubric.slots.get(match[0], match[1])
        if (column in rubric.needs and column != IMAGE) or (rubric.items and column in rubric.items.texts):
            pieces += [_Piece(text[end : match.start()]), _Piece("", column)]
            end = match.end()
    return [*pieces, _Piece(text[end:])]


def _prompt(rubric: Rubric, variant: Variant) -> str:
    if variant.prompt is None:
        where = f" for {rubric.dispatch} {variant.category!r}" if rubric.dispatch else ""
        raise RubricError(f'rubric {rubric.id} has messages and no prompt file{where}; name one: prompt = "prompt.txt"')
    return variant.prompt
