"""What makes a label another one, or the number below it a list's. What a value says is numbers.py's."""

import re
from collections.abc import Iterable

from rubrics.model import Dimension
from schemas.statuses.rows import ParseReason

_WORD_BEFORE = re.compile(r"(?<!\w)(\w{1,24}+)[ \t]{1,3}[*_`]{0,3}\Z")
_GLUED_BEFORE = re.compile(r"(\w{1,24}+)【\Z")  # 海报写着【评分】
_LINE_END = re.compile("[\n\x0b\x0c\x1c-\x1e]")
_BEHIND_A_WORD = frozenset(" \t*_`")
LAST_WORDS = frozenset(
    {"final", "overall", "total", "revised", "corrected", "updated", "actual", "new", "my", "the", "adjusted", "amended"}
)
OWN_WORDS = frozenset({"final", "overall", "total", "my", "the"})  # of a score that has no other beside it
_INTRODUCING = frozenset({"so", "therefore", "thus", "hence"})
_LIST_LINE = re.compile(r"[ \t*`_]*+\n\s*+(?:[-*•>]\s)?[*_(]{0,3}+[0-9]{1,2}[.)][*_]{0,2}[ \t]++(?=\S*[^\W\d])[^\n]*+")
_NEXT_LINE = re.compile(r"(?:\n[ \t]*+)++(?:[-*•>]\s)?[*_(]{0,3}+[0-9]{1,2}[.)]")


def listed_below(after: str) -> ParseReason | None:
    """Whether below the label a list begins, whose number is no score; of a single line of one it cannot be told."""
    first = _LIST_LINE.match(after)
    if first is None:
        return None
    return ParseReason.WRONG_TYPE if _NEXT_LINE.match(after, first.end()) else ParseReason.AMBIGUOUS


def qualifier_of(before: str, label: str, dimensions: Iterable[Dimension], *, is_first: bool) -> str:
    """The word that makes the label another one: in "Realism Score: 3" the number is not the score's; else "".

    "... a black cat Score: 3" lacks but a full stop. On one line with an answer a word changes nothing: "Score: 4, realism
    score: 3" must not be read as 4.
    """
    if before[-1:] == "【":
        word = _GLUED_BEFORE.search(before[-25:])
    else:
        word = _WORD_BEFORE.search(before[-40:]) if before[-1:] in _BEHIND_A_WORD else None
    if (
        word is None
        or word[1].lower() in _INTRODUCING
        or (word[1].islower() and any(label in dimension.labels for dimension in dimensions))
    ):
        return ""
    return word[1].lower() if is_first or _LINE_END.search(before) else ""
