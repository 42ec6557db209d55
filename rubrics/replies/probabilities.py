"""A score from the probabilities a judge gave its tokens: the expectation over declared answers.

With the answers yes = 1 and no = 0 the expectation is the probability of yes; over items, that of the expected answer. The text
says no number here, but whether the judge was shown anything, declines, or calls the question one that does not apply.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

import orjson

from rubrics.model import Dimension, Rubric
from rubrics.replies.answers import goes_on, whole_answers
from rubrics.replies.cleaning import cleaned, thoughts_and_answer
from rubrics.replies.doubts.doubt import told_by
from rubrics.replies.doubts.missing_input import Judged, saw_nothing
from rubrics.replies.labels import folded
from rubrics.replies.refusals import declined, declines
from schemas.records import ParsedScore, ReadScores, Unreadable
from schemas.statuses.rows import ParseReason

_N_TOKENS_MAX = 10_000
_N_BEHIND = 80
_LEAST = -1e9  # math.exp takes no whole number of hundreds of digits
_KNOWN_MASS_MIN = 0.5
"""Of a token and its alternatives: where more of the probability is on tokens that were not given, it may be any answer's."""
_KNOWN_MASS_MAX = 1.02  # more than roundings: the shares are of different questions, such as before and after a penalty
_OFF_MAX = 0.02 + 1e-9
"""Of the scale: what words that were not given among the alternatives may change; beyond it the number would be a guess."""


def read_probabilities(
    dimension: Dimension, text: str, prompt: str | None, context: Mapping[str, Any], judged: Judged
) -> ParsedScore:
    """The expectation at the one token that is an answer, else at the first: that is where the judge answers.

    What the text says of the judge's sight comes first, then a word that the question does not apply, then a refusal. There is no
    score without probabilities, nor where a reply without an answer declines: its first token is the beginning of a sentence.
    """
    thoughts, at = thoughts_and_answer(text)
    if at is None:
        return Unreadable(ParseReason.TRUNCATED)
    answer = cleaned(text[at:], prompt)
    sentences = told_by(answer, is_json=False).sentences
    if saw_nothing(sentences, context, thoughts, judged):
        return Unreadable(ParseReason.MISSING_INPUT)
    if aside := _aside(answer, dimension):
        return aside
    if declines(sentences, has_text=judged.has_text):
        return Unreadable(ParseReason.REFUSAL)
    return _by_tokens(answer, dimension, context.get("logprobs_json"))


def _aside(answer: str, dimension: Dimension) -> ParsedScore | None:
    """What a text says that calls the question one that does not apply: that alone, or (AMBIGUOUS) an answer beside it."""
    said = {one.value for one in whole_answers(answer, dimension)} if dimension.not_applicable else set()
    if said == {ParseReason.NOT_APPLICABLE}:
        return ReadScores({}, not_applicable=frozenset({dimension.key}))
    if said.isdisjoint({ParseReason.NOT_APPLICABLE, ParseReason.AMBIGUOUS}):
        return None
    answers = {one.value for one in whole_answers(answer, replace(dimension, not_applicable=()))}
    return None if answers == said else Unreadable(ParseReason.AMBIGUOUS)


def _by_tokens(answer: str, dimension: Dimension, logprobs_json: object) -> ParsedScore:
    numbers = {folded(word): number for word, number in dimension.answers}
    placed = _behind_thoughts(list(_tokens(logprobs_json)))
    words = [(token, behind) for token, before, behind in placed if _is_word(token["token"], before, behind, numbers)]
    answers = [token for token, behind in words if not _does_go_on(token["token"], behind)]
    # What is compared with an answer stands before it: "A is better than B" says no B.
    weighed = [*takewhile(lambda token: token not in answers, (token for token, _ in words)), *answers] if answers else []
    if len({numbers[folded(token["token"])] for token in weighed}) > 1:
        return Unreadable(ParseReason.AMBIGUOUS)
    if not placed:
        return Unreadable(ParseReason.NOT_FOUND)
    first = placed[0][0]
    if not answers and (folded(first["token"]) in numbers or declined(answer)):  # "No idea" begins as an answer does
        return Unreadable(declined(answer) or ParseReason.NOT_FOUND)
    return _expectation(dimension, numbers, answers[0] if answers else first)


def _expectation(dimension: Dimension, numbers: Mapping[str, float], token: Mapping[str, Any]) -> ParsedScore:
    """Σ number × probability over the declared answers, by their mass where that is declared; NOT_FOUND where it is too little.

    None at all is a number only where the expected answer alone is declared: then what was said is a wrong one. And NOT_FOUND
    where words that were not given may have so much of the rest that the number could be another.
    """
    declared, shares = dimension.probability, _shares(token)
    assert declared is not None
    found = [(numbers[folded(word)], share) for word, share in shares.items() if folded(word) in numbers]
    mass, total = math.fsum(share for _, share in found), math.fsum(shares.values())
    needs_some = declared.is_normalised or len(set(numbers.values())) > 1
    if not _KNOWN_MASS_MIN <= total <= _KNOWN_MASS_MAX or mass < declared.min_mass or (needs_some and mass <= 0):
        return Unreadable(ParseReason.NOT_FOUND)
    score = math.fsum(number * share for number, share in found)
    score = score / mass if declared.is_normalised else score
    # Alternatives show an answer's likelier spellings; without any, that which was said may have others too.
    shown = {number for number, _ in found} if _has_alternatives(token) else set[float]()
    open_numbers, rest = sorted({*numbers.values()} - shown), max(0.0, 1 - total)
    others = _others(score, mass, open_numbers, rest, min(rest, _least(token)), is_normalised=declared.is_normalised)
    if any(abs(other - score) > _OFF_MAX * (dimension.maximum - dimension.minimum) for other in others):
        return Unreadable(ParseReason.NOT_FOUND)
    score = min(max(score, dimension.minimum), dimension.maximum)  # a sum of roundings may lie above 1
    return ReadScores({dimension.key: score}, {dimension.key: f"probability {min(1.0, mass):.6g} on the declared answers"})


def _others(
    score: float, mass: float, numbers: Sequence[float], rest: float, least: float, *, is_normalised: bool
) -> Iterator[float]:
    """What the score might be, were the rest on words that were not given: one more of each answer, the farthest first."""
    for farthest_first in (numbers, numbers[::-1]):
        total, weight, left = score * (mass if is_normalised else 1.0), mass, rest
        for number in farthest_first:
            more = min(left, least)
            total, weight, left = total + number * more, weight + more, left - more
            yield total / weight if is_normalised else total


def _behind_thoughts(tokens: list[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], str, str]]:
    """The tokens behind what was thought aloud, less blank ones, each with the character before it and what follows it."""
    joined = "".join(token["token"] for token in tokens)
    _, at = thoughts_and_answer(joined)
    placed, end = [], 0
    for token in tokens:
        start, end = end, end + len(token["token"])
        if at is not None and start >= at:
            placed.append((token, joined[max(at, start - 1) : start], joined[end : end + _N_BEHIND]))
    return [one for one in placed if folded(one[0]["token"])] or placed


def _is_word(token: str, before: str, behind: str, numbers: Mapping[str, float]) -> bool:
    """Whether a token is a declared word, and no part of another one: "No" of "Nothing"."""
    is_begun = token[:1].isalnum() and before.isascii() and before.isalnum()
    is_cut = not token[-1:].isspace() and behind[:1].isascii() and behind[:1].isalnum()
    return folded(token) in numbers and not is_begun and not is_cut


def _does_go_on(token: str, behind: str) -> bool:
    """Whether a word is the beginning of words that answer nothing. Marks such as <|im_end|> end a reply."""
    is_ended = token[-1:].isspace() or not behind[:1].isascii() or behind.lstrip().startswith("<")
    return not is_ended and goes_on(folded(token), behind)


def lacks_probabilities(rubric: Rubric, variant: str | None, logprobs_json: object, *, or_alternatives: bool = False) -> bool:
    """Whether a reply to this variant of the rubric is read from probabilities, and came without any, or without alternatives."""
    asked = rubric.of_requests.get(variant or "", rubric)
    is_read_from_them = any(dimension.probability for one in asked.variants.values() for dimension in one.dimensions)
    if not is_read_from_them:
        return False
    return not (any(map(_has_alternatives, _tokens(logprobs_json))) if or_alternatives else has_probabilities(logprobs_json))


def has_probabilities(logprobs_json: object) -> bool:
    """Whether they hold a token whose probability can be read: an object {"content": [{"token", "logprob", …}]}, or its text."""
    return next(_tokens(logprobs_json), None) is not None


def _has_alternatives(token: Mapping[str, Any]) -> bool:
    return any(_is_token(one) and one["token"] != token["token"] for one in _alternatives(token))


def _tokens(logprobs_json: object) -> Iterator[Mapping[str, Any]]:
    """The reply's tokens as the provider gave them, those that are whole: an object, or its text."""
    try:
        content = orjson.loads(logprobs_json) if isinstance(logprobs_json, str) else logprobs_json
    except orjson.JSONDecodeError:
        content = None
    listed = content.get("content") if isinstance(content, dict) else None
    for token in listed[:_N_TOKENS_MAX] if isinstance(listed, list) else ():
        if _is_token(token):
            yield token


def _is_token(token: object) -> bool:
    if not isinstance(token, dict) or not isinstance(token.get("token"), str):
        return False
    logprob = token.get("logprob")
    if isinstance(logprob, bool) or not isinstance(logprob, int | float):
        return False
    return logprob <= 1e-6 and (isinstance(logprob, float) or logprob > _LEAST)


def _shares(token: Mapping[str, Any]) -> dict[str, float]:
    """The probability of each token that could have stood there, itself among them, each once."""
    listed = [one for one in _alternatives(token) if _is_token(one)]
    return {one["token"]: math.exp(one["logprob"]) for one in (*listed, token)}


def _least(token: Mapping[str, Any]) -> float:
    """The most that a token can have that was not given: as much as the least likely of those that were, the likeliest of all.

    1 where there are none, or where one of them cannot be read.
    """
    given = _alternatives(token)
    return min(math.exp(one["logprob"]) for one in given) if given and all(map(_is_token, given)) else 1.0


def _alternatives(token: Mapping[str, Any]) -> list[Any]:
    others = token.get("top_logprobs")
    return others if isinstance(others, list) else []
