"""A score that the judge disowns, by every word that disavowal.py knows for it; and such words that take nothing away."""

import pytest

from rubrics.model import Rubric
from rubrics.replies.read import parse_reply
from schemas.records import ReadScores

WRONG = (
    "a mistake", "mistaken", "wrong", "an error", "erroneous", "incorrect", "a typo", "a slip", "void", "invalid", "meaningless",
    "unreliable", "inaccurate", "random", "arbitrary", "provisional", "premature", "nominal", "a guess", "pure guess",
    "guesswork", "a default",
)  # fmt: skip
HASTY = (
    "too quickly", "too soon", "too fast", "too hastily", "too early", "too generously", "too kindly",
    "by mistake", "by accident", "in error", "in haste",
    "accidentally", "mistakenly", "prematurely", "wrongly",
)  # fmt: skip
DISOWNED = (
    *(f"This rating is {word}." for word in WRONG),
    *(f"I gave {what} {way}." for way in HASTY for what in ("this", "it", "this score")),
)
KEPT = (
    "The sign reads 'I gave this too quickly'.",
    "The default score of the game is shown.",
    "It is a guessing game on a table.",
    "I gave this a quick look.",
)


@pytest.mark.parametrize("sentence", DISOWNED)
@pytest.mark.parametrize(
    "reply", ["Reasoning: ok.\nScore: 4\n{}", "Reasoning: ok. {}\nScore: 4"], ids=["behind the form", "in the reasoning"]
)
def test_a_score_that_its_judge_disowns_is_none(doubtful: dict[str, Rubric], reply: str, sentence: str) -> None:
    assert parse_reply(doubtful["alignment"], reply.format(sentence), {}).as_dict() == {"error": "ambiguous"}


@pytest.mark.parametrize("sentence", KEPT)
def test_what_takes_nothing_away_is_kept(doubtful: dict[str, Rubric], sentence: str) -> None:
    said = parse_reply(doubtful["alignment"], f"Reasoning: {sentence}\nScore: 4", {})
    assert isinstance(said, ReadScores), said
