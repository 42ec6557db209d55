"""Where in a reply each score's number stands, in characters: (start, end). Asked where a reply was read; it reads nothing else.

Strict JSON is read by a decoder that knows no places: one pattern finds the usual forms, what it misses is read anew.
"""

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from rubrics.model import Dimension, ReplyFormat
from rubrics.replies.json_form import name_of, places_in_json
from rubrics.replies.json_objects import decoded
from rubrics.replies.labels import keys_by_label, normal
from rubrics.replies.line_forms import places_in_lines
from rubrics.replies.numbers import BLANK, NUMBER, Found, is_plain, read_number

_LITERAL = r"-?[0-9]++(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+"
_N_FLAT_MAX = 8000
_STRICT = json.JSONDecoder(strict=False)
_PAIR = re.compile(r'"((?:[^"\\]++|\\.)*+)"\s*+:\s*+(?:"((?:[^"\\]++|\\.)*+)"|[^",}]*+)', re.DOTALL)
_ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL)

Spans = Mapping[str, tuple[int, int]]


def spans_of(
    form: ReplyFormat, answer: str, dimensions: tuple[Dimension, ...], found: Found, scores: Mapping[str, float]
) -> Spans:
    """The span of each score's digits in the answer; the value's where the digits are escaped."""
    if found.spans:
        return {key: _digits(answer, found.spans[key], scores[key]) for key in scores}
    if form is ReplyFormat.JSON:
        return _in_json(answer, dimensions, found, scores)
    return {key: _digits(answer, place, scores[key]) for key, place in places_in_lines(answer, dimensions, scores).items()}


def _in_json(answer: str, dimensions: tuple[Dimension, ...], found: Found, scores: Mapping[str, float]) -> Spans:
    text = decoded(answer)
    spans = _usual(text, dimensions, found.between, scores)
    if not spans and any(dimension.answers for dimension in dimensions):
        spans = _flat(text, dimensions, scores)
    if len(spans) < len(dimensions):
        places = places_in_json(text, dimensions, scores)
        spans |= {key: _digits(text, place, scores[key]) for key, place in places.items() if key not in spans}
    return spans if text is answer else _in_string(answer, spans)


def _usual(
    text: str, dimensions: tuple[Dimension, ...], between: Sequence[tuple[int, int]], scores: Mapping[str, float]
) -> dict[str, tuple[int, int]]:
    """Those of "key": 4 and "key": {"score": 4, in strict JSON: no string of it can hold a bare quote."""
    spans: dict[str, tuple[int, int]] = {}
    if any(dimension.at is not None for dimension in dimensions) or ("'" in text and "{'" in text):
        return spans
    labels = keys_by_label(dimensions)
    for place in _key_pattern(dimensions).finditer(text):
        named = labels.get(normal(place[1]))
        if named is None or any(start <= place.start() < end for start, end in between):
            continue
        key = named[0].key
        if key not in spans and float(place[2]) == scores[key]:
            spans[key] = place.span(2)
            if len(spans) == len(dimensions):
                break
    return spans


def _flat(text: str, dimensions: tuple[Dimension, ...], scores: Mapping[str, float]) -> dict[str, tuple[int, int]]:
    """Those of answers that are words, in one object of strict JSON without another in it; none where an escape may hide one."""
    start, spans, labels = text.find("{"), dict[str, tuple[int, int]](), keys_by_label(dimensions)
    if len(text) > _N_FLAT_MAX or "[" in text or text.find("{", start + 1) >= 0 or any(d.at is not None for d in dimensions):
        return spans
    try:
        _, end = _STRICT.raw_decode(text, start)
    except ValueError:
        return spans
    for pair in _PAIR.finditer(text, start, end):
        named = labels.get(name_of(pair[1], labels), ())
        if "\\" in pair[1] or (named and "\\" in pair[0]):
            return {}
        said = pair[2] if pair[2] and pair[2].strip(BLANK) else None
        for dimension in named if said else ():
            key = dimension.key
            if key not in spans and read_number(pair[2], dimension, is_prose_allowed=False) == scores[key]:
                spans[key] = _digits(text, pair.span(2), scores[key])
    return spans


def _digits(text: str, place: tuple[int, int], score: float) -> tuple[int, int]:
    """The literal of the score within a value's place; the place itself where no literal says it."""
    said = text[slice(*place)]
    if is_plain(said) and int(said) == score:
        return place
    wanted = Decimal(str(score))
    for literal in NUMBER.finditer(text, *place):
        try:
            if Decimal(literal[0].replace("−", "-").replace("–", "-")) == wanted:
                return literal.span()
        except InvalidOperation:
            continue
    return place


def _in_string(answer: str, spans: Mapping[str, tuple[int, int]]) -> Spans:
    """Spans of a text that was a JSON string's, as they are in the string: each escape there is one character here."""
    offset = answer.index('"') + 1
    ends = [offset]
    for n_seen, character in enumerate(_ESCAPE.finditer(answer, offset)):
        if n_seen > max((end for _, end in spans.values()), default=0):
            break
        ends.append(character.end())
    return {key: (ends[start], ends[end]) for key, (start, end) in spans.items()}


@lru_cache(maxsize=256)
def _key_pattern(dimensions: tuple[Dimension, ...]) -> re.Pattern[str]:
    """A key in quotes, its colon, and the number, or an object whose `score` it is. It opens with the quote: re skips to one."""
    longest = max(len(label) for label in keys_by_label(dimensions)) * 2 + 12
    return re.compile(rf'"([^"\\\n]{{1,{longest}}}+)"\s*+:\s*+(?:\{{\s*+"score"\s*+:\s*+)?({_LITERAL})(?=\s*+[,}}])')
