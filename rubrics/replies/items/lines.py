"""A line for each item: whose each is, and what it says.

Another number of lines than the items' is no score: which answer is whose would be a guess. But lines that each say whose they
are keep their answers where others were left out. An item whose own answer cannot be read has a reason of its own too.
"""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from rubrics.model import Dimension, Items
from rubrics.replies.items.answers import Answers, of_item, value_of
from rubrics.replies.items.whose import id_key, may_be_ids, said_of_another, shown_ids, whose_by_number, whose_by_text
from rubrics.replies.numbers import BLANK, Value
from schemas.statuses.rows import ParseReason

_N_LINES_MAX = 2000
_ENUMERATED = re.compile(
    r"[\s*_`#>-]{0,8}+(?:item|question|q|answer)?\s?\(?([0-9]{1,4}+)\s?(?:\.(?![0-9])|[):])\s*+", re.IGNORECASE
)
_NAMED = re.compile(r"[\s*_`#>-]{0,8}+([^:：]{1,120}?)[\s*_`]{0,4}+[:：]\s*+")
_BULLET = re.compile(r"[\s>]{0,8}+[-*•]\s++")
_LINE = re.compile(r"\r\n|[\r\n]")
_N_END = 200
_LAST_SIGNS = re.compile(r"(?:\w{1,200}|\W{1,200})\Z")


def read_lines(
    text: str,
    dimension: Dimension,
    items: Sequence[Mapping[str, Any]],
    declared: Items | None = None,
    *,
    is_cut: bool = False,
) -> Answers:
    """A line for each item. Numbered lines may have others between them; an opening line that ends in a colon is no answer.

    A line is for the item at its place, unless all lines name theirs: by the ids that the judge was shown (`declared`), or by
    their texts. Lines that name others than those at their places are AMBIGUOUS, and so is a number said twice with two answers.
    Where `declared` is given some may have been left out (MISSING_KEY) if each of the others says by itself whose it is.
    Of a reply that was cut by its length the last answer is TRUNCATED if it may have gone on, and so is all of it if lines lack.
    """
    lines = [line for line in _LINE.split(text, _N_LINES_MAX) if line.strip(BLANK)]
    ids, counts = shown_ids(items, declared), [str(place) for place in range(1, len(items) + 1)]
    by_key = {id_key(one): one for one in ids}
    leads = [lead for line in lines if (lead := _lead(line, by_key))]
    said = dict(leads)
    names = ids if ids and sorted(said) == sorted(ids) else counts if list(said) == counts else []
    last = len(items) - 1  # the place of the reply's last line; none where it is no item's
    if names:
        lead = _lead(lines[-1], by_key)
        last = names.index(lead[0]) if lead and lead[0] in names else -1
        if any(answer != said[name] for name, answer in leads):
            return ParseReason.AMBIGUOUS
        lines = [said[name] for name in names]
    elif 1 < len(lines) <= len(items) + 1 and lines[0].rstrip(BLANK + "*").endswith((":", "：")):
        lines = lines[1:]
    if declared and not is_cut and len(lines) < len(items) and (kept := _read_some(lines, dimension, items, declared)):
        return kept
    if len(lines) != len(items):
        return _why_not_one_each(len(lines), len(items), is_cut=is_cut)
    placed: Sequence[str] | None = lines if names else _in_places(lines, dimension, by_key)
    is_by_id, is_counted = bool(ids) and names is ids, list(said) == counts
    answers = [word for item in items for word, _ in of_item(dimension, item).answers]
    may_be_other = is_counted and not is_by_id and may_be_ids(counts, ids)
    if placed is not None and (may_be_other or said_of_another(placed, items, answers)):
        places = whose_by_text(placed, items) if is_counted or not is_by_id else []
        last = places[last] if places and last >= 0 else last
        placed = [placed[places.index(place)] for place in range(len(items))] if places else None
    if placed is None:
        return ParseReason.AMBIGUOUS
    is_line_open = is_cut and not _LINE.search(text, len(text.rstrip(BLANK)))
    return _answers(placed, dimension, items, last if is_line_open else -1)


def _why_not_one_each(n_lines: int, n_items: int, *, is_cut: bool) -> ParseReason:
    """Why another number of lines than the items' says none."""
    if n_lines > n_items:
        return ParseReason.MALFORMED
    if is_cut:
        return ParseReason.TRUNCATED
    return ParseReason.NOT_FOUND if n_lines == 1 else ParseReason.MISSING_KEY


def _answers(placed: Sequence[str], dimension: Dimension, items: Sequence[Mapping[str, Any]], last: int) -> Answers:
    """What each item's line says; `last`: the place of the one at which the reply was cut, if it was."""
    asked, bare = [of_item(dimension, item) for item in items], [*map(_bare, placed, items)]
    read = [value_of(line, one, is_prose_allowed=True) for line, one in zip(bare, asked, strict=True)]
    if last >= 0 and _is_open(bare[last], asked[last], read[last]):
        read[last] = ParseReason.TRUNCATED
    return read if any(value is not ParseReason.WRONG_TYPE for value in read) else ParseReason.NOT_FOUND


def _is_open(line: str, dimension: Dimension, value: Value) -> bool:
    """Whether the answer at a text's end may have gone on: N to N/A, 1 to 10. What follows an answer closes it."""
    if value is ParseReason.WRONG_TYPE:
        return True
    said = line.rstrip(BLANK)
    shorter = _LAST_SIGNS.sub("", said) if dimension.answers else said.rpartition(" ")[0]
    return len(said) < _N_END and value_of(shorter, dimension, is_prose_allowed=True) != value


def _lead(line: str, by_key: Mapping[str, str]) -> tuple[str, str] | None:
    """What a line names itself by, an id that the judge was shown or a number, and what stands behind it."""
    if by_key and (named := _NAMED.match(line)) and (key := id_key(named[1])) in by_key:
        return by_key[key], line[named.end() :].strip()
    if counted := _ENUMERATED.match(line):
        return by_key.get(id_key(counted[1]), counted[1]), line[counted.end() :].strip()
    return None


def _in_places(lines: Sequence[str], dimension: Dimension, by_key: Mapping[str, str]) -> list[str] | None:
    """The lines without what counts them; None where their numbers count them otherwise, or one has another item's id."""
    bare, leads, ids = _unnumbered(lines), [_lead(line, by_key) for line in lines], list(by_key.values())
    if bare != _unbulleted(lines):
        return bare
    is_counted_otherwise = bool(dimension.answers) and all(lead and lead[0].isdigit() for lead in leads)
    is_another = any(lead and lead[0] in ids and ids[place] != lead[0] for place, lead in enumerate(leads))
    return None if is_counted_otherwise or is_another else bare


def _read_some(lines: Sequence[str], dimension: Dimension, items: Sequence[Mapping[str, Any]], declared: Items) -> list[Value]:
    """An answer for each item, MISSING_KEY where its line was left out; none at all where one line does not say whose it is."""
    bare = _unbulleted(lines)
    found = [_ENUMERATED.match(line) for line in bare]
    rest = [line[one.end() :] if one else line for line, one in zip(bare, found, strict=True)]
    places, is_prose_allowed = whose_by_text(rest, items), True
    if not places:
        # "3: 2, since one is cut" may say 3 for the second item: beside numbers the answer must be all of the line.
        places = whose_by_number([one and one[1] for one in found], rest, items, declared)
        is_prose_allowed = bool(dimension.answers)
    said = dict(zip(places, rest, strict=False))
    read = [
        value_of(_bare(said[place], item), of_item(dimension, item), is_prose_allowed=is_prose_allowed)
        if place in said
        else ParseReason.MISSING_KEY
        for place, item in enumerate(items)
    ]
    return read if any(isinstance(value, Decimal) or value is ParseReason.NOT_APPLICABLE for value in read) else []


def _unnumbered(lines: Sequence[str]) -> list[str]:
    """Lines without their bullets, and without their numbers where these count them: a 4 before the third line is its answer."""
    bare = _unbulleted(lines)
    found = [_ENUMERATED.match(line) for line in bare]
    numbers = [int(one[1]) for one, line in zip(found, bare, strict=True) if one and len(line) > one.end()]
    if numbers not in [list(range(first, first + len(lines))) for first in (0, 1)]:
        return bare
    return [line[one.end() :] for one, line in zip(found, bare, strict=True) if one]


def _unbulleted(lines: Sequence[str]) -> list[str]:
    return [line[bullet.end() :] if (bullet := _BULLET.match(line)) else line for line in lines]


def _bare(line: str, item: Mapping[str, Any]) -> str:
    """A line without the item said back."""
    text = item.get("text")
    return line.strip().removeprefix(text).lstrip(" :*-–—") if isinstance(text, str) and text else line
