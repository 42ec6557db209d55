"""Whether a declared word is an answer by what stands behind it: a pause, or a word that opens a clause. As numbers need one.

"No image" and "Good grief" begin with an answer and give none. Other answers further on are answers.py's.
"""

# ruff: noqa: E501 - a list of words is read whole

import re

_CLOSED = re.compile(r"[*_`\"'”’»]{0,4}+(?:</[A-Za-z]{1,20}+>)?+[*_`\"'”’»]{0,4}+")
_BLANKS = re.compile(r"[ \t\u200b\ufeff]*+")
_NEXT_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?+")
_NO_BLANKS_BETWEEN_WORDS = "\u2e80"  # the first of the scripts of which a blank is a pause itself
# What follows no determiner and no adjective: behind such a word a clause has begun.
_CLAUSE = frozenset({
    "it", "it's", "its", "they", "they're", "he", "she", "we", "you", "i", "i'm", "the", "this", "that", "that's", "these", "those", "there", "there's",
    "here", "here's", "a", "an", "all", "every", "each", "both", "my", "his", "her", "our", "your", "their", "because", "since", "as", "but", "and", "so",
    "for", "due", "given", "although", "though", "however", "while", "whereas", "not", "none", "nothing", "only", "just", "indeed", "sorry", "definitely", "absolutely",
    "certainly", "reason", "reasoning", "explanation", "confidence",
})  # fmt: skip
# Words that stand for a whole sentence belong to no noun; what may follow them all the same is no clause of its own.
_PARTICLES = frozenset({"yes", "ja", "nein", "oui", "non", "si", "sí", "sim", "não", "да", "нет"})
_LEADS_ON = frozenset({
    "if", "unless", "would", "could", "should", "might", "may", "is", "was", "or", "then", "provided", "assuming", "only", "when", "men", "man",
})  # fmt: skip
_PLACES = frozenset({"first", "second", "third", "fourth", "left", "right"})
_THINGS = frozenset({"image", "picture", "photo", "one", "option", "answer", "candidate", "response", "edit"})
_SAW_NOTHING = re.compile(
    r"[\s*_.,]{0,4}(?:[(\[–—-]|\Z)\s?(?:(?:there (?:is|was)|i (?:see|have|got)) )?no (?:images?|inputs?|attachments?|(?:picture|photo)s?)"
    r"(?: (?:here|provided|attached|received|found|visible))?[\s)\].!*_]{0,6}\Z",
    re.IGNORECASE,
)
_YES = frozenset({"yes", "ja", "oui", "si", "sí", "sim", "да"})
# Of the answer: "Yes, partially." Of what is seen it is a clause: "Yes, mostly visible", "Yes, but the colour is pale".
_HEDGE = re.compile(
    r"[\s*_`\"'”’.,;:(\[–—-]{1,8}(?:(?:but|though|although|albeit|if|or)[ ,]{1,2})?"
    r"(?:(?:(?:only|just)\s)?(?:mostly|partially|partly|somewhat|largely|mainly|nearly|almost|kind of|sort of|more or less|in part|for the most part|to (?:some|a certain|a) (?:extent|degree))"
    r"|not (?:fully|completely|entirely|perfectly|exactly|quite|totally|wholly))[\s*_]{0,3}(?:[.,;:!)\]\n]|\Z)"
    r"|[*_`\"'”’]{0,4}\s?[,;(\[–—-]\s?(?:but\s)?(?:(?:only\s)?if (?:(?:you|we|one|i) (?:count|consider|include|accept|take|allow|treat|interpret|assume|regard|ignore|overlook)"
    r"|(?:the|that|this|it|its|they|these|those|an?(?! (?:bit|little|touch|trifle)))\b)|assuming|provided|unless(?! i\b)|depending on|as long as|except|save for)\b",
    re.IGNORECASE,
)
_PICTURED = re.compile(r"[\s*_]{0,4}(?:[✅✓✔☑❌✗✘👍👎]\ufe0f?[\s*_]{0,4}){1,2}")
_ASKED = re.compile(r"[^\n?？.!]{3,300}[?？][\s*_\"”]{0,4}(?:[-–—:]\s)?")


def is_paused(word: str, rest: str) -> bool:
    """Whether what stands right behind a word lets it be an answer."""
    closed = _CLOSED.match(rest)
    at = closed.end() if closed else 0
    blanks = _BLANKS.match(rest, at)
    start = blanks.end() if blanks else at
    if start == len(rest) or not rest[start].isalnum():
        return True
    if rest[start] >= _NO_BLANKS_BETWEEN_WORDS and start > at:
        return True
    said = _NEXT_WORD.match(rest, start)
    following = said[0].lower().replace("’", "'") if said else ""
    plain = word.casefold()
    if plain in _PLACES and following in _THINGS:
        return True
    return following not in _LEADS_ON if plain in _PARTICLES else following in _CLAUSE


def is_hedged(word: str, rest: str) -> bool:
    """Whether a yes is less than one by what stands right behind it: a degree, a condition, an exception."""
    return word.casefold() in _YES and _HEDGE.match(rest) is not None


def says_it_saw_nothing(rest: str) -> bool:
    """Whether all that stands behind an answer is that there is no image: "No (no image)"."""
    return bool(_SAW_NOTHING.match(rest))


def begins_at(part: str) -> tuple[int, ...]:
    """Where an answer may begin: at once; behind a check mark; behind a question, which it answers."""
    pictured, asked = _PICTURED.match(part), _ASKED.match(part)
    return (0, *(found.end() for found in (pictured, asked) if found))
