"""A reply in words and sentences, once: whether any of a long list stands in it is then one look. No meaning is read here."""

import functools
import re
from collections.abc import Iterable
from typing import NamedTuple

from rubrics.replies.numbers import ZERO_WIDTH

_APOSTROPHES = "'’‘`´ʼ＇"
_PARTING = '.,;:!?()[]{}<>"“”„«»*_#|/\\-–—…=+~&\t\n\r。，；：！？、（）【】「」《》／·'
_FLAT = str.maketrans(dict.fromkeys(_PARTING, " ") | dict.fromkeys(_APOSTROPHES + ZERO_WIDTH))

N_READ = 100_000
_N_HEAD, _N_TAIL = 6000, 2000
_SENTENCE = re.compile(r"[^.!?;\n]*+(?:\.(?=[0-9])[^.!?;\n]*+)*+[.!?;\n]?+")
_PLAIN = str.maketrans("’‘`´ʼ＇，。；：！？（）【】", "'''''',.;:!?()[]")
_SINGLE = (
    r"(?<=[\w,;:(] )(?:'(?=[^'\n]{1,120} )(?:[^'\n]|'(?=\w)){1,200}'(?!\w)|[“‘«„](?=[^”’»“\n]{1,120} )[^”»“\n]{1,200}[”’»“])"
)
_QUOTED = re.compile(_SINGLE + r'|(?<=[a-z,;] )"(?=[^"\n]{1,120} )[^"\n]{1,200}"')
_QUOTED_IN_JSON = re.compile(_SINGLE + r'|(?<=[\w,;:(] )\\"(?=[^"\n]{1,120} )[^"\n]{1,200}\\"')
_SPACES = re.compile(rf"[\s*_#>\"“”„«»\\{ZERO_WIDTH}]+")


class Sentence(NamedTuple):
    """In small letters, with plain quotes and marks, without emphasis, one space between words; and its distinct words."""

    text: str
    words: frozenset[str]


_NOT_AS_LOWER = re.compile("[\u0130\u0131\u017f\u212a]")  # what re.IGNORECASE takes for i, s and k, and lower() does not


def lowered(text: str) -> str | None:
    """The text in small letters, for `holds_any`; None where it has letters that only re.IGNORECASE takes for others."""
    return None if not text.isascii() and _NOT_AS_LOWER.search(text) else text.lower()


def holds_any(lower: str | None, needles: Iterable[str]) -> bool:
    """Whether one of the needles, in small letters, may be in a text that was `lowered`.

    What a pattern cannot do without is looked for first: that is some fifty times cheaper than the pattern.
    """
    return lower is None or any(needle in lower for needle in needles)


@functools.cache
def compiled(way: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """A pattern, compiled when it is first looked for: a process meets few of them, and all take a third of a second."""
    return re.compile(way, flags)


def flat(text: str) -> str:
    """In small letters, without apostrophes ("don't" is dont), other marks as spaces."""
    return text.lower().translate(_FLAT)


def words_of(text: str) -> frozenset[str]:
    """The distinct words of the text's first and last 100,000 characters."""
    if len(text) > 2 * N_READ:
        text = f"{text[:N_READ]} {text[-N_READ:]}"
    return frozenset(flat(text).split())


def without_quotations(text: str, *, is_json: bool) -> str:
    """The text with its quotations of several words blanked, every other character in its place.

    What is quoted is written in the picture or in the prompt: a sign that reads "no image available" says nothing of the judge. A
    whole reply in quotes, and the strings of an object, are no quotations: one follows a word.
    """
    return (_QUOTED_IN_JSON if is_json else _QUOTED).sub(lambda found: " " * len(found[0]), text)


def sentences_of(text: str) -> list[Sentence]:
    """The sentences of a text's first 6,000 and last 2,000 characters: at one of them a judge says what it thinks of the whole.

    A number's point ends none.
    """
    if len(text) > _N_HEAD + _N_TAIL:
        text = f"{text[:_N_HEAD]}\n{text[-_N_TAIL:]}"
    plain = (_SPACES.sub(" ", found) for found in _SENTENCE.findall(text.lower().translate(_PLAIN)))
    return [Sentence(one, frozenset(flat(one).split())) for one in plain if one.strip()]
