"""The text around each number of a reply that is none of the form's own: what doubts are looked for in. What they are: others."""

import re
from collections.abc import Iterable, Iterator

from rubrics.replies.doubts.words import lowered, squeezed
from rubrics.replies.numbers import DIGITS, NUMBER_WORDS
from rubrics.replies.spans import Spans

_BEFORE, _BEHIND = 120, 70
_N_CHARACTERS_MAX = 16_000  # what more there is of a reply is not looked through
_WORDS = frozenset({*NUMBER_WORDS, "twenty", "fifty", "hundred", "binary", "percentage", "percent"})
_NAMED = re.compile(rf"\b(?:{'|'.join(sorted(_WORDS))})\b", re.IGNORECASE)
_LETTER = re.compile(r"\w")
_CUT = " … "
_IN_A_NUMBER = re.compile(r"(?<=[0-9.])[0-9.]{1,20}")


def around_numbers(text: str, words: frozenset[str], spans: Spans, first: int = 0) -> str:
    """The pieces of the text near digits that are no score of the form, and near number words; a mark between them. Empty: none.

    Most replies hold no other number, and need not be looked through for what is said of one. `words` are the text's; `first`:
    where the first number stands that is asked for.
    """
    own = {start for start, _ in spans.values()}
    places = [found.span() for found in DIGITS.finditer(text, first) if found.start() not in own]
    if named := words & _WORDS:
        places += _places(text, named, first)
    if not places:
        return ""
    return squeezed(_CUT.join(text[start:stop] for start, stop in _merged(sorted(places), text))[:_N_CHARACTERS_MAX])


def _places(text: str, named: Iterable[str], first: int) -> Iterator[tuple[int, int]]:
    """Where one of the words stands behind `first`, in whatever case. Finding a word is far cheaper than looking for patterns."""
    lower = lowered(text)
    if lower is None or len(lower) != len(text):
        yield from (found.span() for found in _NAMED.finditer(text, first))
        return
    for word in named:
        at = lower.find(word, first)
        while at >= 0:
            end = at + len(word)
            if not (_LETTER.match(text, end) or (at and _LETTER.match(text, at - 1))):
                yield at, end
            at = lower.find(word, end)


def _merged(places: Iterable[tuple[int, int]], text: str) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for start, stop in places:
        first, last = max(0, start - _BEFORE), min(len(text), stop + _BEHIND)
        if cut := _IN_A_NUMBER.match(text, last):  # 0.1 is not 0.11
            last = cut.end()
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return found
