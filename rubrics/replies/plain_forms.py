"""Forms a careful person reads though another was asked for: a heading over its number, a table's rows, a key a line, tags.

Each is taken only where it is whole: every dimension once, nothing but the number in its place. Where the form asked for
stands too, these only contradict it.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from rubrics.model import Dimension, ReplyFormat
from rubrics.replies.labels import keys_by_label, label_pattern, normal
from rubrics.replies.numbers import BLANK, DIGITS, Found, Value, read_number
from rubrics.replies.placeholders import is_number
from schemas.statuses.rows import ParseReason

_N_CHARACTERS_MAX = 65_536
_N_ROWS_MAX = 2000
_MARK = r"[*_`\"'“”‘’ \t]{0,6}"
_SCORE_HEADS = frozenset({"score", "scores", "rating", "points", "value", "grade", "mark", "yourscore", "finalscore"})
_MAX_HEADS = frozenset({"max", "maximum", "outof", "maxscore", "maximumscore", "scale"})
_ROW = re.compile(r"^[ \t]*+\|?[ \t]*+([^|\n]{1,200}+)\|([^\n]{1,2000}+)$", re.MULTILINE)
_ENUMERATION = re.compile(r"^[\s*_`]*+(?:\(?[a-zA-Z0-9]{1,2}[).:])?\s*+")
_NO_DIGIT = re.compile(r"[^0-9]*+")

_NO_TRY = frozenset({ParseReason.WRONG_TYPE, ParseReason.TEMPLATE_ECHO, ParseReason.MALFORMED})

Place = tuple[str, Value, tuple[int, int]]
"""A dimension's key, what stands in its place, and where that place begins and ends."""
_IS_A_NUMBER = re.compile(r" is:?[ \t][*_]{0,3}[0-9]")


def read_plain(text: str, dimensions: tuple[Dimension, ...], form: ReplyFormat) -> Found:
    """The values in one of these forms, with their spans; NOT_FOUND where none says all dimensions."""
    if any(dimension.at is not None for dimension in dimensions) or len(text) > _N_CHARACTERS_MAX:
        return Found(reason=ParseReason.NOT_FOUND)
    found: list[Place] = [place for way in _ways(text, form) for place in way(text, dimensions)]
    values: dict[str, list[Value]] = {}
    spans: dict[str, tuple[int, int]] = {}
    for key, value, span in found:
        if value in _NO_TRY:
            continue
        values.setdefault(key, []).append(value)
        spans.setdefault(key, span)
    if len(values) < len(dimensions):
        return Found(values, reason=ParseReason.NOT_FOUND)
    return Found(values, spans=spans)


def _ways(text: str, form: ReplyFormat) -> Iterator[Callable[[str, tuple[Dimension, ...]], Iterator[Place]]]:
    if "|" in text:
        yield _rows
    if form is ReplyFormat.JSON:
        yield _key_lines
        if "</" in text:
            yield _tags
        return
    if form is ReplyFormat.LABEL and _IS_A_NUMBER.search(text):
        yield _sentences
    if "#" in text or "**" in text or "__" in text:
        yield _headings


def _rows(text: str, dimensions: tuple[Dimension, ...]) -> Iterator[Place]:
    """| Label | 4 | why |: the number in the column headed Score, or the row's only cell with digits."""
    labels = keys_by_label(dimensions)
    column: int | None = None
    limits: list[int] = []
    for n_seen, row in enumerate(_ROW.finditer(text)):
        if n_seen > _N_ROWS_MAX:
            return
        cells, starts = _cells(row)
        heads = [normal(cell) for cell in cells]
        named = labels.get(normal(_ENUMERATION.sub("", cells[0], count=1)))
        if column is None and any(head in _SCORE_HEADS for head in heads[1:]):
            column = next(index for index, head in enumerate(heads) if index and head in _SCORE_HEADS)
            limits = [index for index, head in enumerate(heads) if index and head in _MAX_HEADS]
            continue
        if named is None:
            continue
        at = column if column is not None else _only(cells)
        if at is None or at >= len(cells):
            continue
        limited = [DIGITS.findall(cells[index]) for index in limits if index < len(cells)]
        for dimension in named:
            said = read_number(cells[at], dimension, is_prose_allowed=False) if cells[at].strip(BLANK) else ParseReason.WRONG_TYPE
            if any(ends and not any(is_number(end, dimension.maximum) for end in ends) for ends in limited):
                said = ParseReason.SCALE_MISMATCH
            yield dimension.key, said, (starts[at], starts[at] + len(cells[at]))


def _cells(row: re.Match[str]) -> tuple[list[str], list[int]]:
    cells, starts = [row[1]], [row.start(1)]
    at = row.start(2)
    for cell in row[2].split("|"):
        cells.append(cell)
        starts.append(at)
        at += len(cell) + 1
    return cells, starts


def _only(cells: list[str]) -> int | None:
    """The one cell behind the first that holds a digit; that of a number alone, where words with digits stand beside it."""
    with_digits = [index for index, cell in enumerate(cells) if index and not _NO_DIGIT.fullmatch(cell)]
    return with_digits[0] if len(with_digits) == 1 else None


def _headings(text: str, dimensions: tuple[Dimension, ...]) -> Iterator[Place]:
    """### Label, or **Label**, and under it a line that is the number alone."""
    labels = keys_by_label(dimensions)
    for found in _heading_pattern(dimensions).finditer(text):
        for dimension in labels.get(normal(found[1]), ()):
            yield dimension.key, read_number(found[2], dimension, is_prose_allowed=False), found.span(2)


def _sentences(text: str, dimensions: tuple[Dimension, ...]) -> Iterator[Place]:
    """The score is 4. - a whole sentence of its own, and nothing but the number in it."""
    if len(dimensions) == 1:
        first, last = len(text) - len(text.lstrip()), len(text.rstrip(BLANK + ".!*_"))
        for found in _sentence_pattern(dimensions).finditer(text):
            if found.start() > first and found.end() < last:
                continue  # a score that is spoken of on the way
            yield dimensions[0].key, read_number(found[1], dimensions[0], is_prose_allowed=False), found.span(1)


def _key_lines(text: str, dimensions: tuple[Dimension, ...]) -> Iterator[Place]:
    """key: 4, a line of its own, the key exactly the prompt's; or the key, and under it, further in, score: 4."""
    exact = {
        label: dimension
        for dimension in dimensions
        for label in (*dimension.labels, dimension.key)
        if label.islower() and " " not in label
    }
    for found in _line_pattern(tuple(exact)).finditer(text):
        dimension = exact[found[1]]
        group = 2 if found[2] is not None else 3
        yield dimension.key, read_number(found[group], dimension, is_prose_allowed=False), found.span(group)


def _tags(text: str, dimensions: tuple[Dimension, ...]) -> Iterator[Place]:
    """<key>4</key>, or <key><score>4</score>...</key>."""
    exact = {label: dimension for dimension in dimensions for label in (*dimension.labels, dimension.key) if " " not in label}
    for found in _tag_pattern(tuple(exact)).finditer(text):
        dimension, group = exact[found[1]], 2 if found[2] is not None else 3
        yield dimension.key, read_number(found[group], dimension, is_prose_allowed=False), found.span(group)


@lru_cache(maxsize=256)
def _heading_pattern(dimensions: tuple[Dimension, ...]) -> re.Pattern[str]:
    head = rf"(?:[ \t]*+#{{1,6}}[ \t]*+{_MARK}|[ \t]*+(?:\*\*|__){_MARK})(?:\(?[a-zA-Z0-9]{{1,2}}[).][ \t]*+)?"
    return re.compile(rf"^{head}({label_pattern(dimensions)}){_MARK}\n(?:[ \t]*+\n){{0,2}}[ \t]*+([^\n]{{1,40}}+)$", re.MULTILINE)


@lru_cache(maxsize=256)
def _sentence_pattern(dimensions: tuple[Dimension, ...]) -> re.Pattern[str]:
    opening = r"(?:(?i:so|thus|therefore|hence|overall),?[ \t])?(?i:the|my)[ \t](?:(?i:final|overall|total)[ \t])?"
    return re.compile(
        rf"(?:^|(?<=[.!?][ \t]))[ \t*_>-]{{0,6}}{opening}{label_pattern(dimensions)}[*_]{{0,3}} is:?[ \t]"
        r"([*_]{0,3}[0-9][^\n.;!?]{0,30}+)"
        r"(?=[.!]?[*_ \t]{0,4}(?:\n|\Z)|[.!][ \t]++[A-Z])",
        re.MULTILINE,
    )


@lru_cache(maxsize=256)
def _line_pattern(keys: tuple[str, ...]) -> re.Pattern[str]:
    named = "|".join(map(re.escape, sorted(keys, key=len, reverse=True)))
    quote = r"[\"'`*]{0,3}"
    beside = r"(?:[ \t]++(?!score\b)[a-z_]{1,40}+[ \t]*+:[^\n]*+\n){0,3}"
    nested = rf"\n{beside}[ \t]++{quote}score{quote}[ \t]*+:[ \t]*+([^\n]{{1,40}}+)"
    return re.compile(
        rf"^[ \t]*+(?:[-*•][ \t]++)?{quote}({named}){quote}[ \t]*+:[*_]{{0,2}}(?:[ \t]++([^\n]{{1,40}}+)|[ \t]*+{nested})$",
        re.MULTILINE,
    )


@lru_cache(maxsize=256)
def _tag_pattern(keys: tuple[str, ...]) -> re.Pattern[str]:
    named = "|".join(map(re.escape, sorted(keys, key=len, reverse=True)))
    inner = r"(?:\s*+<(?!score\b)[a-z_]{1,40}+>[^<]*+</[a-z_]{1,40}+>){0,3}\s*+<score>([^<]{1,40}+)</score>"
    return re.compile(rf"<({named})>(?:{inner}|([^<]{{1,40}}+)</\1>)")
