"""Numbers that a program measured, each on its own scale: no words are read here, and nothing of a judge's reply.

A row of such numbers becomes the text of a reply by said_by_program(), and is read by read_numbers(), again and again.
"""

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import orjson

from rubrics.model import Dimension
from rubrics.replies.numbers import Value, as_score, on_scale
from schemas.records import ParsedScore, ReadScores, Unreadable
from schemas.statuses.rows import ParseReason

_PLAIN = re.compile(r"[+-]?(?:\d{1,400}(?:\.\d{0,400})?|\.\d{1,400})(?:[eE][+-]?\d{1,3})?", re.ASCII)


def said_by_program(values: Mapping[str, Any]) -> str:
    """A row's values as JSON. A text that is one number, as a CSV holds it, is that number; a number that is none is its name."""
    return orjson.dumps({key: _said(value) for key, value in values.items()}, option=orjson.OPT_SORT_KEYS).decode()


def read_numbers(text: str, dimensions: Sequence[Dimension]) -> ParsedScore:
    """The number of each dimension that has one on its scale; a bad one costs no other, since each was measured by itself."""
    try:
        said = orjson.loads(text)
    except ValueError:
        return Unreadable(ParseReason.MALFORMED)
    if not isinstance(said, dict):
        return Unreadable(ParseReason.NOT_FOUND)
    read = {one.key: _number(said.get(one.key), one) for one in dimensions}
    return ReadScores(
        {key: as_score(value) for key, value in read.items() if isinstance(value, Decimal)},
        unreadable={key: value for key, value in read.items() if isinstance(value, ParseReason)},
    )


def _number(value: object, dimension: Dimension) -> Value:
    if value is None:
        return ParseReason.MISSING_KEY
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ParseReason.WRONG_TYPE
    return on_scale(Decimal(str(value)), dimension)


def _said(value: object) -> object:
    if isinstance(value, str):
        text = value.strip()
        value = float(text) if _PLAIN.fullmatch(text) else text or None
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**53:
        return float(value) if abs(value) < 10**300 else "Infinity"
    return value if isinstance(value, bool | int | float | None) else str(value)[:200].encode("utf-8", "replace").decode()
