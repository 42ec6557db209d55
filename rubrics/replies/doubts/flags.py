"""Keys beside a score in an object that say the score is none: {"error": "no image", "score": 0}, "image_received": false.

They are told by the words of their names and by what their values affirm. Keys that name another score of the whole are
json_values.py's.
"""

# ruff: noqa: E501 - a pattern is read whole, a way to say it a line

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

from rubrics.replies.numbers import BLANK
from rubrics.replies.tolerant_json import Bare, Number, Pairs
from schemas.statuses.rows import ParseReason

_N_KEY_MAX = 60
N_TEXT_MAX = 120
_N_NOTHING_MAX = 60


class _Kind(Enum):
    ERROR = 0  # what went wrong, in its own words; many of them may be the picture's
    STATUS = 1
    MADE_UP = 2
    REFUSED = 3
    NO_PICTURE = 4
    PICTURE_CAME = 5
    JUDGED = 6
    WORDS = 7  # any other key: a text that says nothing but that there is none


class Flag(NamedTuple):
    """A key whose value says that the score is none, and as what. `is_sure`: in so many words, also under a key of the prompt."""

    key: str
    reason: ParseReason
    is_sure: bool


_TEXT_WORDS = re.compile(r"[^\W\d_]+")
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_FILLING = _set("is was has have had got the a an any been be of for to my judge did does do i")
_HAVING = _set("has have had got")
_ERROR = _set("error err exception failure fault errors failures exceptions")
_OF_AN_ERROR = _set("message msg code type reason detail details text info description")
_STATUS = _set("status state")
_OF_A_STATUS = _set(
    "code message evaluation judging judgement judgment image picture input request response result score scoring"
)
_MADE_UP = _set("placeholder dummy mock hypothetical simulated default fictitious fake")
_SCORED = _set("score scores rating value answer values evaluation result response")
_REFUSED = _set("refused refusal refuse refuses declined decline abstained abstain rejected unscorable unratable unjudgeable")
_PICTURE = _set(
    "image images img picture pictures pic photo photos photograph attachment attachments input inputs visual visuals file"
)
_COMING = _set(
    "received receive provided provide visible available loaded load loading present attached attach shown seen see saw view viewed viewable"
    " accessible access accessed found arrived sent given supplied uploaded readable opened included decoded processed rendered displayed"
    " can could able ability"
)
_LACKING = _set(
    "no not missing absent without unavailable failed broken error unable cannot cant lacking inaccessible unreadable"
)
_WRITTEN = _set(
    "ocr sign signs writing transcription transcript lettering inscription"
)  # with "visible text": what a picture says
_JUDGED = _set(
    "scored evaluated judged assessed rated evaluable scorable scoreable ratable gradable assessable valid possible can could able"
)
_OF_JUDGED = _set("evaluate score judge assess rate evaluation scoring")
# (words one of which a key's name must hold, what else it may hold, its kind), in order
_KINDS = (
    (_ERROR, _OF_AN_ERROR, _Kind.ERROR),
    (_STATUS, _OF_A_STATUS, _Kind.STATUS),
    (_MADE_UP, _SCORED, _Kind.MADE_UP),
    (_REFUSED, _SCORED, _Kind.REFUSED),
    (_PICTURE, _COMING | _LACKING, _Kind.NO_PICTURE),
    (_JUDGED, _OF_JUDGED | _PICTURE, _Kind.JUDGED),
)

_DENIES = frozenset({"false", "no", "n", "0", "none", "null", ""})
_AFFIRMS = frozenset({"true", "yes", "y", "1"})
_SAYS_NOTHING = frozenset({"", "none", "null", "nil", "no", "false", "n/a", "na", "ok", "okay", "success", "successful", "no error", "no errors", "-", "undefined", "0", "nothing"})  # fmt: skip
_A_PICTURE = r"(?:the |an? |this |any )?(?:\w+ )?(?:images?|pictures?|photos?|attachments?|inputs?|files?|urls?)"
# A fault of what is pictured goes on: "no picture on the wall", "image not sharp".
_SAID = r"(?=\W*\Z|[.,;:!()]| (?:was|were|has|have|could|can|to|for me|here|provided|given|attached|received|available|found|data|content|uploaded|sent|supplied|loaded|format|type|url|file|encoding|in (?:the |your |this |my )?(?:request|message|prompt|input|conversation|chat))\b)"
_NONE_CAME = re.compile(
    rf"\b(?:no|missing|without|blank|empty|invalid|unreadable|corrupt(?:ed)?|unsupported|broken) {_A_PICTURE}\b{_SAID}"
    rf"|\b{_A_PICTURE}(?: (?:is|was|data|content|could|can|did|format|url|were))* ?(?:missing|unavailable|absent|inaccessible|failed|unreadable|corrupt(?:ed)?|empty|blank|timed out|unsupported|broken)\b{_SAID}"
    rf"|\b{_A_PICTURE}(?: (?:is|was|data|content|could|can|did|format|url|were))* ?(?:not|cannot) (?:be )?(?:provided|given|attached|received|available|found|uploaded|sent|supplied|loaded?|accessible|accessed|opened|open|viewed|read|readable|retrieved|fetched|decoded|processed|supported|valid|present|visible|seen|included|delivered)\b{_SAID}"
    rf"|\b(?:error|failed|failure|failing|unable|cannot|could not|couldn't|can't|not able)(?: (?:to|while|when|in))? (?:load|open|see|view|access|read|fetch|download|process|decod|retriev|display|receiv)\w*(?: {_A_PICTURE})?(?:[.!]|\Z)"
)
_GAVE_UP = re.compile(
    r"\b(?:refus(?:e|ed|es|al)|declin(?:e|ed|es)|reject(?:ed)?|abstain(?:ed)?|blocked|filtered|skipped|(?:policy|safety|content) (?:violation|filter|policy)|against (?:\w+ )?polic\w+|(?:cannot|can't|could not|unable to|not able to|won't|will not)(?: be)? (?:evaluat|judg|assess|scor|rat|comply|assist|help|determin|analy[sz])\w*)"
)
# Words that tell a failure of the judging, and those that may stand beside them: what is left over is the picture's ("wrong colour").
_FAILING = _set(
    "fail failed failure error errored exception placeholder dummy unavailable invalid incomplete aborted cancelled canceled timeout timed unscored not"
    " overloaded nsfw censored unsupported exceeded refused lost reset unexpected unknown true yes"
)
_ABOUT_IT = (
    _OF_A_STATUS
    | _OF_JUDGED
    | _FILLING
    | _set(
        "out scored evaluated judged assessed rated found available server network internal http api system runtime io parse parsing decode decoding"
        " connection loading processing vision model rate limit quota memory service upstream gateway load open read fetch download and with by in while during please try again later at on"
    )
)
_A_CODE = re.compile(r"\b[45][0-9]{2}\b")
# All that a text says.
_NOTHING_ELSE = re.compile(
    r"\W*(?:(?:this is )?(?:an? )?(?:placeholder|dummy|default|mock|(?:random |pure |wild )?guess)(?: (?:value|score|rating|answer|response|text|only))?|tbd|todo"
    rf"|(?:n/?a\W{{1,3}})?(?:no|missing|blank|empty) {_A_PICTURE}(?: (?:provided|given|attached|received|available|found|data|content))?"
    rf"|{_A_PICTURE}(?: content| data)?(?: is| was)? (?:missing|unavailable|not (?:found|available|provided|received|loaded|accessible|visible)|empty|blank)"
    rf"|error (?:loading|opening|reading|processing|fetching|decoding) {_A_PICTURE}|not visible to (?:me|us)|(?:i |we )?(?:unable to|cannot|can't|could not|couldn't|am unable to)(?: be)? (?:view|see|assess|evaluat|determin|judg|access|load|open|scor|rat)e?d?(?: (?:it|this|{_A_PICTURE}))?)\W*"
)


def flag(key: str, value: Any) -> Flag | None:
    """What one pair beside a score says of it."""
    kind = _kind(key)
    if isinstance(value, str) and len(value) > (_N_NOTHING_MAX if kind is _Kind.WORDS else N_TEXT_MAX):
        return None  # a reason, as most are
    if isinstance(value, list):
        return _of_a_list(key, kind, value)
    said = " ".join(_plain(value).split())
    if kind is _Kind.WORDS:
        reason = ParseReason.REFUSAL if _GAVE_UP.search(said) else ParseReason.MISSING_INPUT
        return Flag(key, reason, True) if _NOTHING_ELSE.fullmatch(said) and not _is_of_the_picture(key) else None
    if kind is _Kind.ERROR or kind is _Kind.STATUS:
        return _of_words(key, kind, said, is_number=isinstance(value, Number))
    if kind in (_Kind.PICTURE_CAME, _Kind.JUDGED):
        return Flag(key, _WHEN_DENIED[kind], kind is _Kind.PICTURE_CAME) if said in _DENIES else None
    return Flag(key, _WHEN_AFFIRMED[kind], kind is _Kind.NO_PICTURE) if said in _AFFIRMS or _is_told(kind, said) else None


_WHEN_DENIED = {_Kind.PICTURE_CAME: ParseReason.MISSING_INPUT, _Kind.JUDGED: ParseReason.REFUSAL}
_WHEN_AFFIRMED = {
    _Kind.MADE_UP: ParseReason.MISSING_INPUT, _Kind.REFUSED: ParseReason.REFUSAL, _Kind.NO_PICTURE: ParseReason.MISSING_INPUT,
}  # fmt: skip


def _is_of_the_picture(key: str) -> bool:
    """Whether a key is of words that are written in the picture."""
    words = _words(key)
    return not _WRITTEN.isdisjoint(words) or ("text" in words and len(words) > 1)


def _is_told(kind: _Kind, said: str) -> bool:
    """Whether a refusal has a text: "refusal": "I cannot judge people"."""
    return kind is _Kind.REFUSED and bool(_GAVE_UP.search(said) or _NONE_CAME.search(said))


def _of_a_list(key: str, kind: _Kind, value: list[Any]) -> Flag | None:
    inner = (
        (pair for pair in value if isinstance(value, Pairs)) if isinstance(value, Pairs) else ((key, one) for one in value[:9])
    )
    if kind is not _Kind.ERROR:
        return None
    texts = [" ".join(_plain(one).split()) for _, one in inner if not isinstance(one, list)]
    return next(
        (one for one in (_of_words(key, _Kind.STATUS, text, is_number=False) for text in texts) if one and one.is_sure), None
    )


def _of_words(key: str, kind: _Kind, said: str, *, is_number: bool) -> Flag | None:
    """An error or a state by its text. What tells a fault ("wrong colour", "the dog has five legs") is the picture's."""
    said = said.replace("_", " ").replace("-", " ").strip(" .!")
    if said in _SAYS_NOTHING:
        return None
    if _NONE_CAME.search(said):
        return Flag(key, ParseReason.MISSING_INPUT, True)
    if _GAVE_UP.search(said):
        return Flag(key, ParseReason.REFUSAL, True)
    if kind is _Kind.STATUS and said in _AFFIRMS:
        return None
    words = {*_TEXT_WORDS.findall(said)}
    is_failure = not is_number and bool(words & _FAILING) and words <= _FAILING | _ABOUT_IT
    is_code = _A_CODE.search(said) is not None and (is_number or words <= _FAILING | _ABOUT_IT)
    return Flag(key, ParseReason.REFUSAL, False) if is_failure or is_code else None


def _plain(value: Any) -> str:
    """A value in small letters: true, false and null as JSON writes them."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return value.strip(BLANK).lower() if isinstance(value, Bare | Number | str) else "…"


@lru_cache(maxsize=4096)
def _words(key: str) -> frozenset[str]:
    return frozenset(part.lower() for part in _PARTS.findall(key[:_N_KEY_MAX]))


@lru_cache(maxsize=4096)
def _kind(key: str) -> _Kind:
    words = _words(key)
    named = words - _FILLING
    kind = next((one for needed, others, one in _KINDS if named & needed and named <= needed | others), _Kind.WORDS)
    if kind is not _Kind.NO_PICTURE or named & _LACKING:
        return kind
    return _Kind.PICTURE_CAME if named & _COMING or words & _HAVING else _Kind.WORDS


def flagged(flags: Iterable[Flag], prompt: str | None, context: Mapping[str, Any], *, has_text: bool) -> ParseReason | None:
    """Why an object's flags make its scores none. `has_text`: a text is judged, and what was refused or went wrong may be it.

    A key that the prompt asks for is no flag by its name alone.
    """
    for one in flags:
        if one.reason is ParseReason.MISSING_INPUT and context.get("image_is_null") is True:
            continue
        if not one.is_sure and (has_text or (prompt and one.key in prompt)):
            continue
        if has_text and one.reason is ParseReason.REFUSAL:
            continue
        return one.reason
    return None
