"""Texts that may be meant for the judge, flagged. The list of what is looked for is here and nowhere else; nothing is altered.

A flag says that somebody should look, not that somebody cheated: a prompt may rightly ask for a picture of a sign that says
"Score: 5". What is not on the list is not flagged, and whoever knows the list can write around it.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache

from schemas.statuses.rows import TextFlag

_WHO = r"(?:judge|grader|evaluator|rater|scorer|assessor|language model|ai model|vlm|llm)s?"
_MOST = r"(?:full|highest|maximum|max|perfect|top|best(?: possible)?|10|5|4|ten|five|four)"
_QUOTES = r"[\"'*\[]{0,3}"
_MARK = r"(?:scores?|marks?|ratings?|points?|stars?|grades?)"

PATTERNS: Mapping[TextFlag, tuple[str, ...]] = {
    TextFlag.ADDRESSES_JUDGE: (
        # "ignore all previous instructions", "disregard the rubric above"
        r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}\b(?:instruction|prompt|rule|rubric|guideline|criteri|scale)",
        # "give it the highest score", "rate this image 10 points", "must be scored 5"
        rf"\b(?:give|assign|award|rate|score|mark|grant|return|output)\b.{{0,40}}\b{_MOST}\b.{{0,20}}\b{_MARK}\b",
        rf"\b(?:deserves?|must|should|has to|needs to)\b.{{0,40}}\b{_MOST}\b.{{0,20}}\b{_MARK}\b",
        rf"\b(?:must|should|has to|needs to) be (?:scored?|rated?|graded?) (?:as |with |at )?{_MOST}\b",
        # "dear judge", "note to the grader", "you are now an evaluator", "the judge must"
        rf"\b(?:dear|attention|note to|message (?:to|for)|instructions? (?:to|for))\b,? (?:the |all |any )?{_WHO}\b",
        rf"\byou are (?:now )?(?:an? |the )?(?:\w+ )?{_WHO}\b",
        rf"\b(?:the|this|any) {_WHO} (?:must|should|will|shall|is to|has to)\b",
        r"\b(?:new|updated|system|developer) (?:instructions?|prompt)\s*:",
    ),
    TextFlag.IMITATES_ANSWER: (
        # "Score: 5", '"overall_score": 9', "Text Response Quality: 4", "rating = 10"
        rf"(?:score|rating|quality|accuracy|alignment|synergy|completeness|correctness){_QUOTES} ?[:=] ?{_QUOTES}\d",
        r"[\"']score[\"'] ?: ?\{",
        r"\b(?:10 ?/ ?10|5 ?/ ?5|4 ?/ ?4)\b",
    ),
    TextFlag.IMITATES_STRUCTURE: (
        r"< ?/? ?chat(?:begin|end) ?>",
        r"<\|[a-z_]{2,30}\|>",
        r"\[/?inst\]|<</?sys>>|</?(?:system|assistant|user)>",
        r"(?:^|\n) ?(?:#{2,6} ?)?(?:system|assistant|user|instruction|response|reasoning) ?:",
    ),
}  # fmt: skip
"""What each flag looks for, in the text in lower case, compatibility forms folded and hidden characters taken out."""

_COMPILED = {flag: re.compile("|".join(patterns)) for flag, patterns in PATTERNS.items()}

HIDDEN = re.compile(
    "["
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f"  # control characters, less tab, line breaks and NEL
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u3164\uffa0"  # soft hyphen, joiners and fillers without a shape
    "\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # zero width, directions, annotations
    "\U000e0000-\U000e007f\U000e0100-\U000e01ef"  # tags, which spell ASCII unseen, and rare variation selectors
    "]"
)
"""Zero width joiner and non-joiner are not among them: emoji and several scripts need them."""


def text_flags(texts: Mapping[str, str | None]) -> str | None:
    """`column:flag` for every text that holds something of the list, joined by commas; None where none does."""
    found = [f"{name}:{flag.value}" for name, text in texts.items() if text for flag in flags_of(text)]
    return ",".join(found) or None


@lru_cache(maxsize=8192)  # many pictures share a prompt
def flags_of(text: str) -> tuple[TextFlag, ...]:
    """The flags of one text, in their order."""
    return tuple(_flags(text))


def _flags(text: str) -> Iterator[TextFlag]:
    is_hiding = HIDDEN.search(text) is not None
    seen = unicodedata.normalize("NFKC", HIDDEN.sub("", text)) if is_hiding or not text.isascii() else text
    # Tags spell a message of their own: it is read as the model may read it.
    tagged = "".join(chr(ord(c) - 0xE0000) for c in text if "\U000e0020" <= c <= "\U000e007e")
    lowered = re.sub(r"[^\S\n]+", " ", f"{seen}\n{tagged}".casefold())
    for flag, pattern in _COMPILED.items():
        if pattern.search(lowered):
            yield flag
    if is_hiding:
        yield TextFlag.HIDDEN_CHARACTERS
