"""Did the judge see what it was given? A verdict of its own, made on every reply, whatever numbers stand in it. English alone.

Stricter than refusals.py, which is asked where there is no number: here "the image is missing the dog", "no picture hangs on
the wall" or "a photograph, not a generated image" must not cost a score. Every repetition is bounded.
"""

# ruff: noqa: E501 - a list of words is read whole

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rubrics.model import Rubric
from rubrics.replies.doubts.clues import hints_at_nothing
from rubrics.replies.doubts.missing_ways import GIVEN, NO_PICTURE, NO_TEXT, SEVERAL, SHOWN, Ways
from rubrics.replies.doubts.other_languages import misses_a_picture
from rubrics.replies.doubts.reported import without_reports
from rubrics.replies.doubts.words import Sentence, Sentences, compiled, holds_any, holds_each

# Words that no sentence of this kind does without.
_DENIALS = frozenset({
    "no", "not", "none", "only", "just", "nothing", "never", "neither", "nor", "nowhere", "cannot", "cant", "dont", "doesnt", "didnt", "isnt", "wasnt", "arent",
    "werent", "havent", "hasnt", "hadnt", "couldnt", "without", "unable", "unavailable", "inaccessible", "unreadable", "lack", "lacking", "absence",
    "absent", "missing", "fail", "failed", "fails", "forgot", "forgotten", "neglected", "please", "kindly", "you", "youve", "youd", "youll", "need",
    "require", "ensure", "broken", "waiting", "awaiting", "hypothetical", "placeholder", "fictitious", "dummy", "simulated", "blank", "empty", "corrupt", "corrupted",
    "wouldnt", "try", "sure", "feel", "needed", "required",
})  # fmt: skip


def _with_endings(stems: str, endings: tuple[str, ...] = ("", "s", "d", "ed", "ing")) -> frozenset[str]:
    return frozenset(stem + ending for stem in stems.split() for ending in endings)


_PICTURED = _with_endings(
    "image picture photo photograph pic visual attachment nothing score rating evaluation assessment judgement judgment number grade file text",
    ("", "s"),
)
_TOLD = _with_endings("caption reference response output input answer", ("", "s"))
# And words for giving, seeing or reaching, one of which stands in each of them too.
_ONE_OF = frozenset({
    "first", "second", "third", "other", "left", "right", "last", "former", "latter", "source", "edited", "either", "neither", "both", "any", "one",
    "single", "a", "b", "1", "2", "3", "4", "two",
})  # fmt: skip
_COMING = _with_endings(
    "provide attach upload reupload include share submit receive access load deliver transmit pass embed display show detect see view render open"
    " locate retrieve process perceive look come reach arrive paste add ensure check verify send resend supply interpret analyze analyse find get"
) | frozenset(
    ["providing", "including", "sharing", "submitted", "submitting", "receiving", "embedding", "embedded", "sent", "resent", "shown", "found", "given", "give", "giving", "gives", "available", "visible", "present", "here", "there", "missing", "absent", "broken", "has", "have", "had", "having", "got", "gotten", "came", "supplied", "supplies", "without", "lack", "lacking", "absence", "waiting", "awaiting", "hypothetical", "placeholder", "fictitious", "dummy", "simulated", "nothing", "nowhere", "unreadable", "unavailable", "inaccessible", "accessible", "seen", "viewed", "through", "transmitted", "passed", "text", "prompt", "prompts", "caption", "description", "need", "needed", "require", "required", "evaluation", "judge", "evaluate", "assess", "work", "theres", "accompany", "accompanies", "accompanied", "accompanying", "files", "file", "arrived", "reached", "arrive", "came", "contains", "contain", "included", "includes", "blank", "empty", "corrupt", "corrupted", "opened", "rendered", "decoded", "fetched", "downloaded", "parsed", "read", "no", "rate", "score", "grade", "review", "inspect", "examine", "compare", "base", "go", "critique", "viewable", "handed", "hold", "holds", "carry", "carries", "saw", "post", "posted", "message", "messages", "request", "requests", "conversation", "chat", "query", "question", "submission", "thread", "context", "session", "dialog", "dialogue", "turn", "input", "inputs"]
)  # fmt: skip


# "If no image were provided, I would ..." is said of a case, "part of the image is missing" of what is in it.
_OF_A_CASE = re.compile(
    r"\b(?:if|unless|whether|when|had|even if|as if|suppose|supposing|in case|where|means|(?:of|in|from|on|within) (?:the|this|an?))"
    r"(?: \w+){0,2} \Z"
)
_SEEN_AFTER_ALL = re.compile(
    rf"\b(?:images?|pictures?|photos?) (?:\w+ )?(?:shows?|depicts?|contains?|features?|is (?:actually |indeed )?(?:{GIVEN}|{SHOWN}))"
    r"|\bi (?:can |do |now |can now )?see (?:the|an?|it)\b|\blooking at (?:the|it)\b"
)

_TEXTS = frozenset({
    "output", "outputs", "model_output", "text", "response", "answer", "candidate", "completion", "generated_text", "candidate_caption",
    "generated_caption", "model_response", "reply",
})  # fmt: skip


class Judged(NamedTuple):
    """What a rubric's requests show: a text that is judged, which may say of itself that it saw nothing; several pictures."""

    has_text: bool
    has_several_pictures: bool


def judged_by(rubric: Rubric) -> Judged:
    """As the columns and pictures say that it needs."""
    return Judged(not _TEXTS.isdisjoint(rubric.needs), len(rubric.pictures) > 1)


_Said = Sequence[tuple[frozenset[str], Ways]]
"""What is judged in words, and the ways to say that it never came."""


def saw_nothing(sentences: Sentences, context: Mapping[str, Any], thoughts: str, judged: Judged) -> bool:
    """Whether a reply's sentences say that its judge was given nothing to judge.

    A sample without a picture (`image_is_null`), or without a text, may be called so. In `thoughts` a question, or what is seen
    after all, takes the word back. What a text under judgement says of itself is not the judge's: that is told apart where
    something says so, and costs other replies nothing.
    """
    has_picture = context.get("image_is_null") is not True
    said = [(_PICTURED, NO_PICTURE)] if has_picture else []
    said += [(_ONE_OF, SEVERAL)] if has_picture and judged.has_several_pictures else []
    said += [(_TOLD, NO_TEXT)] if context.get("text_is_null") is not True else []
    if _say_so(sentences, said, has_picture=has_picture):
        own = without_reports(sentences, has_text=judged.has_text)
        if own is sentences or _say_so(own, said, has_picture=has_picture):
            return True
    if not thoughts:
        return False
    thought = Sentences(thoughts)
    return _thinks_so(thought, said) and _thinks_so(without_reports(thought, has_text=judged.has_text), said)


def _say_so(sentences: Sentences, said: _Said, *, has_picture: bool) -> bool:
    if has_picture and (misses_a_picture(sentences) or hints_at_nothing(sentences)):
        return True
    return _may_say(sentences.words, said) and any(_says(one, said) for one in sentences.with_any(_DENIALS))


def _thinks_so(thought: Sentences, said: _Said) -> bool:
    if not _may_say(thought.words, said):
        return False
    for number in range(len(thought.each) - 1, -1, -1):
        if "?" not in thought.each[number].text and _says(thought.each[number], said):
            return not any(_SEEN_AFTER_ALL.search(after.text) for after in thought.each[number + 1 :])
    return False


def _may_say(words: frozenset[str], said: _Said) -> bool:
    """Whether words deny or ask, about something that is judged, with a word for giving or seeing it."""
    if _DENIALS.isdisjoint(words) or _COMING.isdisjoint(words):
        return False
    return any(not things.isdisjoint(words) for things, _ in said)


def _says(sentence: Sentence, said: _Said) -> bool:
    """Whether a sentence may, and does so in one of the ways."""
    if not _may_say(sentence.words, said):
        return False
    for things, ways in said:
        if not things.isdisjoint(sentence.words):
            for first, others in ways:
                if holds_any(sentence.text, first) and any(_is_so(one, sentence.text) for one in others):
                    return True
    return False


def _is_so(way: tuple[tuple[tuple[str, ...], ...], str], plain: str) -> bool:
    needles, pattern = way
    said = compiled(pattern).finditer(plain) if holds_each(plain, needles) else ()
    return any(not _OF_A_CASE.search(plain, max(0, found.start() - 60), found.start()) for found in said)
