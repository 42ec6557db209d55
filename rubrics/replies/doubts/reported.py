"""What a text under judgement says of itself, told by the judge: "the output says it cannot see the image" is no sight of the judge's.

Where a rubric judges a text (a caption, an answer), models, "it" and refusals are told of too; elsewhere only the text is.
"""

# ruff: noqa: E501 - a pattern is read whole, a way to say it a line

import re
from functools import lru_cache

from rubrics.replies.doubts.words import Sentences

_TEXT = r"(?:(?:model|candidate|generated|assistant)(?:'s)? )?(?:outputs?|captions?|responses?|answers?|descriptions?|replies|reply|completions?)"
_MODEL = r"(?:model|assistant|chatbot|bot|ai|system|captioner|generator|candidate)"
_SAYS = (
    r"(?:says?|said|saying|states?|stated|stating|claims?|claimed|claiming|admits?|admitted|admitting|apologi[sz]\w+|replie[sd]|answers|answered|responds|responded|explains?|explained|complains?|complained"
    r"|declares?|declared|insists?|insisted|asserts?|asserted|reports?|reported|tells?|told|asks?|asked|asking|requests?|requested|requesting|indicates?|indicated|confesses|confessed|acknowledges?|acknowledged|pretends?|mentions?|refuses?|refused)"
)
_REFUSAL = (
    r"(?:refusals?|disclaimers?|apolog(?:y|ies)|excuses?|claims?|statements?|assertions?|error messages?|boilerplate|complaints?)"
)
# The clause that is told ends where the judge speaks again.
_REST = r"(?:(?!,? (?:but|yet|however|while|whereas|although|though|even though) |\b(?:i|me|my|we|our)\b|\band (?:the|no|there) )[^.;!?\n)])*"
_DIRECT = r"(?: ?[:,(] ?(?:sorry,? )?(?:i|we|as an?)\b[^.;!?\n)]*)?"
_VERBS = frozenset({
    "says", "say", "said", "saying", "states", "state", "stated", "stating", "claims", "claim", "claimed", "claiming", "admits",
    "admit", "admitted", "admitting", "apologizes", "apologises", "apologized", "apologised", "apologizing", "apologising", "replied",
    "replies", "answers", "answered", "responds", "responded", "explains", "explained", "complains", "complained", "declares",
    "declared", "insists", "insisted", "asserts", "asserted", "reports", "reported", "tells", "tell", "told", "asks", "ask", "asked",
    "asking", "requests", "requested", "requesting", "indicates", "indicated", "confesses", "confessed", "acknowledges",
    "acknowledged", "pretends", "pretend", "mentions", "refuses", "refused", "refusal", "refusals", "disclaimer", "apology", "excuse",
    "statement", "boilerplate", "according", "output", "caption", "response", "answer", "message",
    "assert", "refuse", "request", "complain", "explain", "insist", "declare", "acknowledge", "report", "mention", "indicate", "excuses", "statements", "disclaimers", "apologies", "assertion",
    "assertions", "complaint", "complaints", "messages", "outputs", "captions", "descriptions", "description", "completion", "completions", "reply", "responses",
})  # fmt: skip


def without_reports(sentences: Sentences, *, has_text: bool) -> Sentences:
    """The sentences less what they tell of a text. `has_text`: the rubric judges one."""
    if sentences.words.isdisjoint(_VERBS):
        return sentences
    text = _reports(has_text=has_text).sub(" … ", sentences.lines)
    return sentences if len(text) == len(sentences.lines) else Sentences(text)


@lru_cache(maxsize=2)
def _reports(*, has_text: bool) -> re.Pattern[str]:
    the = r"\b(?:the|this|its|their|both|each|your) (?:\w+ ){0,2}?"
    between = r"(?: (?!i\b|we\b|my\b)[\w',-]+){0,6}?"
    if not has_text:
        return re.compile(
            rf"{the}{_TEXT}(?: (?:only|just|simply|also|merely|even|falsely|wrongly))? {_SAYS} (?:that )?(?:it|they|there|no|not)\b{_REST}"
        )
    ways = (
        rf"{the}(?:{_TEXT}|{_MODEL}){between} (?:and )?{_SAYS}\b{_DIRECT}{_REST}",
        rf"\b(?:it|they|which|who)(?: only| just| simply| also| merely| even| falsely| wrongly| then| instead| openly)? {_SAYS}\b{_DIRECT}{_REST}",
        rf"\b{_REFUSAL}(?: \w+){{0,2}}? ?(?:\bthat\b|\bof\b|\bfor\b|\bto\b|\babout\b|\bstating\b|\bsaying\b|\bbecause\b|[:,(]){_DIRECT}{_REST}",
        rf"{the}{_TEXT} ?[:(] ?(?:i |sorry,? |we )?(?:am |are )?(?:can|could|un|no|not|please)\w*{_REST}",
        rf"[^.;!?\n]{{0,120}}?,? (?:according to|as stated (?:in|by)|(?:says|claims|states)) (?:the|this) (?:{_TEXT}|{_MODEL})",
        # A refusal is known by its words; and one is a fault of the text's alone.
        rf"{the}{_TEXT} (?:is|was) (?:\w+ ){{0,3}}?{_REFUSAL}{_DIRECT}",
    )
    return re.compile("|".join(ways))
