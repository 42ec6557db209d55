"""Faults planted in prompts: another count, another spelling of the text they quote; and what must be said for one in pixels.

Pictures' faults: picture_faults.py.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise

from schemas.benchmark.exam import PlantedFault

_NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_WORD = re.compile(rf"(?<![\w-])({'|'.join(_NUMBERS)})(?![\w-])", re.IGNORECASE)
_NUMERAL = re.compile(r"(?<![\w.,:/$€#+-])([2-9]|[1-9][0-9])(?= [A-Za-z])")  # no year, size, ratio, time or price
_QUOTED = re.compile(r'"([^"\n]{2,120})"|“([^“”\n]{2,120})”|(?<!\w)[\'‘]([^\'’\n]{2,120})[\'’](?!\w)')
_LETTERS = "etaoinshrdlu"
_SAID: Mapping[PlantedFault, re.Pattern[str]] = {
    PlantedFault.RECOLOURED: re.compile(  # black, white and grey things stay what they are
        r"\b(?:red|orange|yellow|green|blue|purple|violet|pink|brown|beige|turquoise|teal|cyan|magenta|crimson|scarlet|maroon"
        r"|navy|gold|golden)\b",
        re.IGNORECASE,
    ),
    PlantedFault.MIRRORED: re.compile(
        r"\b(?:(?:left|right)\s(?:of|side|half|corner|edge|hand|arm|leg|foot|eye)|(?:left|right)-hand|leftmost|rightmost"
        r"|(?:facing|looking|pointing|turning)\s(?:to\sthe\s)?(?:left|right)"
        r"|(?:on|to|at|in|from|towards?)\s(?:the|its|his|her|their)\s(?:(?:far|lower|upper|top|bottom)\s)?(?:left|right))\b",
        re.IGNORECASE,
    ),
}
"""Faults of pictures that contradict only a text that says a colour, or a side."""


def with_fault(prompt: str, fault: PlantedFault, seed: int) -> str | None:
    """The prompt with WRONG_COUNT or MISSPELT_TEXT; None where it has no number, or quotes no text. `seed` chooses a place."""
    return _CHANGES[fault](prompt, seed)


def contradicts(fault: PlantedFault, texts: Iterable[str | None]) -> bool:
    """Whether the fault in the pixels can go against one of a sample's texts: a recoloured bench is a bench all the same."""
    said = _SAID.get(fault)
    return said is None or any(said.search(text) for text in texts if text)


def _wrong_count(prompt: str, seed: int) -> str | None:
    """The first number from two on made one more or one less, never one: its noun is in the plural."""
    found = min(filter(None, (_WORD.search(prompt), _NUMERAL.search(prompt))), key=re.Match.start, default=None)
    if found is None:
        return None
    said = found[1]
    n = _NUMBERS.index(said.casefold()) + 2 if said[0].isalpha() else int(said)
    other = n + 1 if n == 2 or (seed % 2 and n < len(_NUMBERS) + 1) else n - 1
    told = _NUMBERS[other - 2] if said[0].isalpha() else str(other)
    told = told.upper() if said.isupper() else told.capitalize() if said[0].isupper() else told
    return prompt[: found.start(1)] + told + prompt[found.end(1) :]


def _misspelt_text(prompt: str, seed: int) -> str | None:
    """The first quoted text with two of its letters changed places, or, where none differ, one letter for another."""
    for found in _QUOTED.finditer(prompt):
        group = next(number for number in (1, 2, 3) if found[number] is not None)
        letters = list(found[group])
        places = [n for n, (a, b) in enumerate(pairwise(letters)) if _differ(a, b)]
        alone = [n for n, letter in enumerate(letters) if letter.isalpha()]
        if places:
            at = places[seed % len(places)]
            letters[at], letters[at + 1] = letters[at + 1], letters[at]
        elif alone:
            at = alone[seed % len(alone)]
            other = next(one for one in _LETTERS[seed % 4 :] if one != letters[at].casefold())
            letters[at] = other.upper() if letters[at].isupper() else other
        else:
            continue
        return prompt[: found.start(group)] + "".join(letters) + prompt[found.end(group) :]
    return None


def _differ(a: str, b: str) -> bool:
    return a.isalpha() and b.isalpha() and a.casefold() != b.casefold()


_CHANGES: Mapping[PlantedFault, Callable[[str, int], str | None]] = {
    PlantedFault.WRONG_COUNT: _wrong_count, PlantedFault.MISSPELT_TEXT: _misspelt_text,
}  # fmt: skip
