"""Numbers that a reason names beside a score, and second thoughts that look like one. A table of each."""

import json

import pytest

from rubrics.model import Rubric
from rubrics.replies.read import parse_reply

# Beside a 7 of 1 to 10.
REASONS = [
    "I deducted 3 points for the can.",
    "I deducted 1 point for the can.",
    "Deducted 2 points for the hands and 1 for the hat.",
    "It loses 3 points because the hat is missing.",
    "It loses 2 points for the hands, 1 point for the hat.",
    "Compared to the ideal 10, it loses 3 points because two cats are missing.",
    "I took off 3 points since the can is missing.",
    "I took 3 points off for the can.",
    "I deducted 3 points from 10.",
    "The missing hat costs it 2 points.",
    "The can is missing, so I deducted 2 points.",
    "It is not a 10 because the hat is missing.",
    "Not quite an 8.",
    "It falls short of a 10 because the hat is missing.",
    "A perfect 10 would need the hat.",
    "A 10 would have required the hat.",
    "It is better than a 6 but worse than an 8.",
    "This would have been an 8 without the extra finger.",
    "Would be 8 if the dog was there.",
    "Es fehlt der Hut, daher keine 8.",
    "J'ai retiré 3 points pour le chapeau.",
    "Ce n'est pas un 10 car le chapeau manque.",
]
SECOND_THOUGHTS = [
    "I deducted 3 points for the can, so 4.",
    "I should have deducted 2 points.",
    "Then I deducted 2 points.",
    "On a second look I deducted 2 points.",
    "I deducted 3 points from the 7.",
    "I deducted 4 points for the can.",
    "I deducted 2 points too few.",
    "Deduct 2 points for the hands.",
    "I would deduct 2 points.",
    "It is worse than a 6.",
    "It is better than an 8.",
    "It falls short of a 5.",
    "Not a 7 but a 5.",
    "A 3 would be fairer.",
    "A perfect 10.",
    "It would be a 5.",
    "Eher eine 5.",
    "J'ai retiré 3 points, donc 4.",
    "After deducting 3 points: 4",
    "Deducting 3 points gives 4.",
    "A 9 would need to be given.",
    "I removed 2 points from this score.",
    "I subtracted 2 points from the score above.",
    "From which I deducted 2 points.",
]


def said_of(doubtful: dict[str, Rubric], words: str) -> list[dict[str, object]]:
    """What is read of a line with the words below it, and of one with them on it."""
    return [parse_reply(doubtful["rate10"], f"Rating: 7{between}{words}", {}).as_dict() for between in ("\nReasoning: ", ". ")]


@pytest.mark.parametrize("words", REASONS, ids=str)
def test_a_reason_s_number_takes_nothing_back(doubtful: dict[str, Rubric], words: str) -> None:
    assert said_of(doubtful, words) == [{"scores": {"overall_score": 7}}] * 2


@pytest.mark.parametrize("words", SECOND_THOUGHTS, ids=str)
def test_a_second_thought_does(doubtful: dict[str, Rubric], words: str) -> None:
    assert said_of(doubtful, words) == [{"error": "ambiguous"}] * 2


@pytest.mark.parametrize("words", REASONS, ids=str)
def test_in_an_object_too(doubtful: dict[str, Rubric], words: str) -> None:
    reply = json.dumps({"score": 7, "reason": words})
    assert parse_reply(doubtful["json10"], reply, {}).as_dict() == {"scores": {"overall_score": 7}}


def test_what_is_deducted_from_a_full_score_takes_it_back(doubtful: dict[str, Rubric]) -> None:
    assert parse_reply(doubtful["rate10"], "Rating: 10, deducted 3 points for the can", {}).as_dict() == {"error": "ambiguous"}
