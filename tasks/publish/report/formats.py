"""How figures and names are written on the pages: rounded, never computed again. Which stand where is boards.py and page.py."""

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

import polars as pl
from markupsafe import Markup

from tasks.publish.exports import without_bidi
from tasks.publish.standings import wording
from tasks.publish.standings.wording import digits_of

DASH = "–"
MINUS = "\u2212"


def number(value: float | None, n_digits: int = 2) -> str:
    """Such as 7.42; a dash for null. A negative number has the typographic minus; there is no "-0.00"."""
    if value is None:
        return DASH
    return f"{round(value, n_digits) + 0.0:.{n_digits}f}".replace("-", MINUS)


def signed(value: float | None, n_digits: int = 2) -> str:
    """Such as +0.43 or −0.20, or −0.002 where two digits would hide on which side of 0 it is; a 0 has no sign."""
    if value is None:
        return DASH
    n = digits_of(value, n_digits)
    return f"+{number(value, n)}" if round(value, n) > 0 else number(value, n)


def count(value: float | None) -> str:
    """A whole number with thin thousands; a dash for null."""
    return DASH if value is None else f"{round(value):,}".replace(",", "\u202f")


def percent(share: float | None, n_digits: int = 1, beside: float = 1.0) -> str:
    """A share of 0 to 1 as per cent; a dash for null."""
    return DASH if share is None else wording.percent(share, n_digits, beside).replace(" ", "\u202f")


def p_value(p: float | None) -> str:
    """Three digits; under the half of the last one "< 0.001"."""
    if p is None:
        return DASH
    return "<\u202f0.001" if p < 0.0005 else number(p, 3)


def usd(value: float | None) -> str:
    """US dollars: cents from a dollar on, four digits below, as the terminal what is less; a dash for null."""
    if value is None:
        return DASH
    if abs(value) < 0.0001:
        return "<$.0001" if value else "$0"
    return f"${number(value, 2 if abs(value) >= 1 else 4)}"


def seconds(value: float | None) -> str:
    """Seconds with two digits."""
    return DASH if value is None else f"{number(value)}\u202fs"


def words(key: str | None) -> str:
    """A dimension's or reason's key as words: overall_score is "overall score"; the totals get their names."""
    if not key:
        return DASH
    return {"__macro__": "all categories", "__micro__": "all images", "__unnamed__": "no category"}.get(
        key, key.replace("_", " ")
    )


_ISOLATED = re.compile("\u2068([^\u2069]*)\u2069")
_NAMES = ("model", "checkpoint", "predecessor", "baseline", "judge_model", "smallest_category")
_NAMES_IN_PAIRS = tuple(f"{name}_{end}" for end in "ab" for name in ("model", "checkpoint"))


def isolated(name: str) -> str:
    """A name as it stands in a sentence: where it runs from right to left it is marked, for isolates()."""
    plain = without_bidi(name)
    return f"\u2068{plain}\u2069" if any(unicodedata.bidirectional(c) in ("R", "AL", "AN") for c in plain) else plain


def with_isolated(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with all its names as they stand in sentences."""
    named = {name: isolated(row[name]) for name in (*_NAMES, *_NAMES_IN_PAIRS) if isinstance(row.get(name), str)}
    return {**row, **named}


def names_isolated(cells: pl.DataFrame) -> pl.DataFrame:
    """The same of a whole frame."""
    marked = {name: {one: isolated(one) for one in cells[name].unique().drop_nulls()} for name in _NAMES if name in cells.columns}
    return cells.with_columns(pl.col(name).replace(names) for name, names in marked.items())


def isolates(sentence: str) -> Markup:
    """A sentence, each marked name in an element of its own: it would turn round the numbers and signs beside it."""
    own = Markup("<bdi>{}</bdi>")
    parts = (without_bidi(part) for part in _ISOLATED.split(sentence))
    return Markup().join(own.format(part) if n % 2 else part for n, part in enumerate(parts))
