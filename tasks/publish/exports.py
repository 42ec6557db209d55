"""Tables as CSV and Markdown. Texts come from outside: neutralised for spreadsheets, escaped for Markdown. Numbers stay whole."""

import re
import unicodedata
from collections.abc import Iterable, Sequence

import polars as pl

_FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"
"""What makes a spreadsheet take a text for a formula (OWASP, CSV Injection), also in the full-width form."""

_FORMULA_BEHIND = r"([;\t\r\n])([ \"]*[=+\-@＝＋－＠])"
"""The same where a spreadsheet splits at semicolons, tabs or lines: quotes amid what it then takes for a cell do not hold it."""

_MARKDOWN = re.compile(r"[\\`*_\[<#|~$&@:]")
"""Each opens something in GitHub's Markdown: a link needs its bracket, an address its colon or at sign."""

_BLOCK = re.compile(r"^(?=>|[-+](?:[\s-]|$))|^(\d{1,9})(?=[.)](?:\s|$))")
"""The beginning of a quotation, of a list or of a line across, where a text is the first on its line or of a list's item."""

_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_BLANK = frozenset({"Cc", "Zl", "Zp", "Cs"})


def to_csv(frame: pl.DataFrame) -> bytes:
    """UTF-8 CSV with full-precision numbers, empty for null, "" for an empty text.

    A text that a spreadsheet would run as a formula gets an apostrophe in front; so does what follows a semicolon, tab or line
    end in it, at which spreadsheets of many countries split.
    """
    texts = [pl.col(name) for name, kind in frame.schema.items() if kind == pl.String]
    safe = frame.with_columns(
        pl.when(text.str.contains(_FORMULA))
        .then(pl.lit("'") + text)
        .otherwise(text)
        .str.replace_all(_FORMULA_BEHIND, "${1}'${2}")
        .name.keep()
        for text in texts
    )
    return safe.write_csv(line_terminator="\n").encode()


def to_markdown(headers: Sequence[str], rows: Iterable[Sequence[object]], n_text_columns: int) -> str:
    """A GitHub table; the columns after the first `n_text_columns` are right-aligned. Null is an empty cell."""
    marks = ["---" if index < n_text_columns else "---:" for index in range(len(headers))]
    lines = [[escape_markdown(one) for one in headers], marks, *([escape_markdown(value) for value in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def without_bidi(text: str) -> str:
    """A text without the controls that change the writing direction, of itself or of what follows it."""
    return "".join(c for c in text if c not in _BIDI)


def escape_markdown(value: object) -> str:
    """A value as Markdown text on one line: no markup, HTML, link, table border or change of writing direction of its own."""
    if value is None:
        return ""
    text = "".join(" " if unicodedata.category(c) in _BLANK else c for c in without_bidi(str(value))).strip()
    escaped = _BLOCK.sub(r"\1\\", _MARKDOWN.sub(lambda found: f"\\{found[0]}", text))
    return re.sub(r"(?i)\bwww\.", lambda found: f"{found[0][:3]}\\.", escaped)
