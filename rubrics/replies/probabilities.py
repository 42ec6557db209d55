"""A score from the probabilities a judge gave its tokens: the expectation over declared answers. What the reply says is not read.

With the answers yes = 1 and no = 0 the expectation is the probability of yes; over items, that of the expected answer.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from rubrics.model import Dimension, Rubric
from schemas.records import ParsedScore, ReadScores, Unreadable
from schemas.statuses.rows import ParseReason

_N_TOKENS_MAX = 10_000


def read_probabilities(dimension: Dimension, logprobs_json: object) -> ParsedScore:
    """The expectation at the one token that is an answer, else at the first: that is where the judge answers.

    Σ number × probability over the declared answers, by their mass where that is declared; NOT_FOUND where there are no
    probabilities, or less mass on the answers than `min_mass`; AMBIGUOUS where two tokens of the reply are different answers.
    """
    declared = dimension.probability
    assert declared is not None
    numbers = {_plain(word): number for word, number in dimension.answers}
    every = list(_tokens(logprobs_json))
    tokens = [token for token in every if _plain(token["token"])] or every
    answers = [token for token in tokens if _plain(token["token"]) in numbers]
    if len({numbers[_plain(token["token"])] for token in answers}) > 1:
        return Unreadable(ParseReason.AMBIGUOUS)
    if not tokens:
        return Unreadable(ParseReason.NOT_FOUND)
    shares = _shares((answers or tokens)[0])
    found = [(numbers[_plain(token)], share) for token, share in shares.items() if _plain(token) in numbers]
    mass = min(1.0, math.fsum(share for _, share in found))
    if mass < declared.min_mass or (declared.is_normalised and mass <= 0):
        return Unreadable(ParseReason.NOT_FOUND)
    score = math.fsum(number * share for number, share in found)
    score = score / mass if declared.is_normalised else score
    score = min(max(score, dimension.minimum), dimension.maximum)  # a sum of roundings may lie above 1
    return ReadScores({dimension.key: score}, {dimension.key: f"probability {mass:.6g} on the declared answers"})


def lacks_probabilities(rubric: Rubric, variant: str | None, logprobs_json: object) -> bool:
    """Whether a reply to this variant of the rubric is read from probabilities, and came without any."""
    asked = rubric.of_requests.get(variant or "", rubric)
    is_read_from_them = any(dimension.probability for one in asked.variants.values() for dimension in one.dimensions)
    return is_read_from_them and next(_tokens(logprobs_json), None) is None


def _tokens(logprobs_json: object) -> Iterator[Mapping[str, Any]]:
    """The reply's tokens as the provider gave them, those that are whole."""
    try:
        content = orjson.loads(logprobs_json) if isinstance(logprobs_json, str) else None
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
    return isinstance(logprob, int | float) and not isinstance(logprob, bool) and logprob <= 1e-6


def _shares(token: Mapping[str, Any]) -> dict[str, float]:
    """The probability of each token that could have stood there, itself among them, each once."""
    others = token.get("top_logprobs")
    listed = [one for one in others if _is_token(one)] if isinstance(others, list) else []
    return {one["token"]: math.exp(one["logprob"]) for one in (*listed, token)}


def _plain(word: str) -> str:
    return " ".join(word.casefold().split())
