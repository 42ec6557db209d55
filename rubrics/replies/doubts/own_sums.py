"""A line that adds a reply's own scores up: "Total: 12/15" under three scores of 1 to 5. It says nothing new, if it is right.

Any other total is a doubt: another scale (stated_scales.py), or another number (taken_back.py).
"""

import math
import re
from collections.abc import Mapping

from rubrics.model import Dimension
from rubrics.replies.doubts.words import compiled
from rubrics.replies.labels import keys_by_label, normal

_WORDS = frozenset({"total", "sum"})
_NUMBER = r"([0-9]{1,4}+(?:\.[0-9]{1,2}+)?+)"
_LINE = (
    r"(?:^|\n)[ \t*_#>|-]*+(?:the |my )?((?:total|sum)(?: scores?| points| of (?:the |all )?(?:scores|points))?)[*_`)]{0,3} ?[:=]"
    rf"[*_` ]{{0,5}}{_NUMBER}(?:[*_` ]{{0,4}}(?:/|out of)[*_` ]{{0,4}}{_NUMBER})?(?: points)?[*_` .]{{0,4}}(?=\n|\Z)"
)


def without_own_sum(text: str, words: frozenset[str], scores: Mapping[str, float], dimensions: tuple[Dimension, ...]) -> str:
    """The text with a blank line for the right sum of its scores, of as much as they could be together at most."""
    if len(dimensions) < 2 or words.isdisjoint(_WORDS):
        return text
    total = sum(scores[one.key] for one in dimensions)
    most = sum(one.maximum for one in dimensions)

    def blanked(found: re.Match[str]) -> str:
        is_label = normal(found[1]) in keys_by_label(dimensions)
        is_right = math.isclose(float(found[2]), total) and (found[3] is None or float(found[3]) == most)
        return "\n".ljust(len(found[0])) if is_right and not is_label else found[0]

    return compiled(_LINE, re.IGNORECASE).sub(blanked, text)
