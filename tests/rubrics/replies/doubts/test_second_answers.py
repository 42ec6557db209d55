"""Answers that are words, taken back behind the form, and words that take nothing back. Tables of replies."""

# ruff: noqa: E501 - a reply is read whole, a line each

import pytest

from rubrics.model import Rubric
from rubrics.replies.read import parse_reply
from schemas.records import ReadScores

# What each reply opens with, where the table holds but what follows.
OPENS = {
    "preference": '{"reason": "The first keeps the cat.", "alignment": "first", "quality": "first", "overall": "first"}',
    "checklist": "Q1: yes\nQ2: yes\nQ3: yes",
}
TAKEN_BACK = {
    "preference": [
        "\n\nActually, second.",
        "\nCorrection: second.",
        "\nFinal answer: second",
        "\nI change my answer to second.",
        "\nOn reflection, the second is better.",
        "\nI meant second.",
        "\nOverall should be second.",
        "\nWait, tie.",
        "\nI'd now say the second one.",
        "\nMake that a tie.",
        "\nNot first but second.",
        "\nSecond, not first.",
        "\nSecond instead of first.",
        "\nSorry, my mistake: the second.",
        "\nI take that back.",
        "\nPlease disregard the verdict above.",
        "\nFinal verdict: **second**",
        "\nVerdict: second",
    ],
    "duel": [
        "Winner: A\n\nFinal answer: B",
        "Winner: A\nI change my answer to B.",
        "Winner: A\nScratch that, B.",
        "Winner: A\nOverall winner: B",
        "Winner: A\nFinal verdict: B",
        "Winner: tie → B",
        "Winner: A\nActually, B.",
        "Winner: A\nActually, B is better.",
        "Winner: A\nOn second thought: B",
        "Winner: A\nI'd rather go with B.",
        "Winner: A\nHm, no, B.",
        "Winner: A\nI take it back.",
        "Winner: A\nVerdict: B",
        "Winner: A. Wait, it should be B.",
        "Winner: A\nCorrection: tie",
        "Winner: A\nResult: tie",
        "Winner: A\n(edit: B)",
        "Winner: A\nI switch my vote from A to B.",
    ],
    "yesno": [
        "Answer: yes\nI meant no.",
        "Yes -> No",
        "Yes → no",
        "Answer: yes\nActually, no.",
        "Answer: yes\nFinal answer: no",
        "Answer: yes\nOn closer inspection: no.",
        "yes\n\nSorry, no.",
        "Answer: yes\nIt should be no.",
        "Answer: yes\nCorrection: no",
        "Answer: yes\nI change it to no.",
        "Answer: yes\nVerdict: no",
        "Yes. Scratch that.",
        "Yes\nI take that back.",
        "Answer: yes\nMake that a no.",
        "Answer: yes\n修正：no",
        "Answer: yes\nKorrektur: no",
    ],
    "verdict": [
        "bad -> unsure",
        "Verdict: bad\nActually, good.",
        "Verdict: good\nOn reflection: unsure.",
        "Verdict: good\nI'd now call it bad.",
        "Verdict: good\nFinal verdict: bad",
    ],
    "checklist": [
        "\n\nSorry, Q2 should be no.",
        "\nCorrection: Q3: no",
        "\nActually, Q3 is no.",
        "\nI meant no for Q2.",
        "\nQ2 should be no.",
    ],
}  # fmt: skip
KEPT = {
    "preference": [
        ("\n\nActually, first.", 1),
        ("\n\nThe second has better colours, though.", 1),
        ("\nActually, the second has better hands, but the first follows the prompt.", 1),
        ("\nFinal answer: first", 1),
        ("\nSecond, the colours are dull.", 1),
        ("\nFirst, the cat; second, the mat.", 1),
        ("\nOn a second look the cat is still there.", 1),
        ("\nActually, both are good.", 1),
        ("\nThe second image should be sharper.", 1),
        ("\nI prefer the second's colours.", 1),
    ],
    "duel": [
        ("Winner: A\nActually, a better light would help B.", 1),
        ("Winner: A\nOn reflection, a cat is a cat.", 1),
        ("Winner: A\nFinal answer: A", 1),
        ("Winner: A\nA tie was close.", 1),
        ("Winner: A\nSorry, a bit short.", 1),
        ("Winner: A\nActually, A is a bit dark, but fine.", 1),
        ("Winner: A\nIn the end a close call.", 1),
    ],
    "yesno": [
        ("Yes, there should be no doubt.", 1),
        ("Answer: yes\nActually, no element is missing.", 1),
        ("Answer: yes\nThere is no cat in the prompt.", 1),
        ("Answer: yes\nI see no fault.", 1),
        ("Yes: on a second look no part is missing.", 1),
        ("Answer: yes\nIn the end no artefact matters.", 1),
        ("Answer: yes. I changed no settings.", 1),
        ("Answer: yes\nReason: no people were asked for.", 1),
        ("Answer: yes\nFinal remark: no faults.", 1),
    ],
    "verdict": [
        ("Verdict: bad\nReason: The light is good.", 0),
        ("Verdict: bad\nReason: Actually, the light is good.", 0),
        ("Verdict: bad\nActually, good light does not help here.", 0),
        ("Verdict: good\nReason: in the end the bad hands are small.", 1),
        ("Verdict: good\nSorry, my bad spelling.", 1),
        ("Verdict: good\nThe overall look is good.", 1),
    ],
    "checklist": [
        ("\nOverall: no", 1),
        ("\n\nActually, no further remarks.", 1),
        ("\nThere should be no doubt about Q2.", 1),
        ("\nOverall: yes", 1),
    ],
}  # fmt: skip
KEYS = [
    ('{"alignment":"first","quality":"first","overall":"first","final":"second"}', "ambiguous"),
    ('{"alignment":"first","quality":"first","overall":"first -> second"}', "ambiguous"),
    ('{"alignment":"first","quality":"first","overall":"first","final_answer":"second"}', "ambiguous"),
    ('{"alignment":"first","quality":"first","overall":"first","revised_overall":"second"}', "ambiguous"),
    (
        '{"alignment":"first","quality":"first","overall":"first","final":"first"}',
        {"overall_score": 1, "alignment": 1, "quality": 1},
    ),
    (
        '{"alignment":"first","quality":"second","overall":"first","reason":"Actually the first wins."}',
        {"overall_score": 1, "alignment": 1, "quality": 0},
    ),
    (
        '{"reason": "At first the second looked better. Actually, second was worse.", "alignment": "first", "quality": "first", "overall": "first"}',
        {"overall_score": 1, "alignment": 1, "quality": 1},
    ),
    (OPENS["preference"].replace("first", "tie"), {"overall_score": 0.5, "alignment": 0.5, "quality": 0.5}),
    (OPENS["preference"].replace('"first"}', '"first", "final_choice": "second, for its light"}'), "ambiguous"),
]


@pytest.mark.parametrize(("name", "reply"), [(name, reply) for name, replies in TAKEN_BACK.items() for reply in replies])
def test_another_answer_behind_the_first_makes_it_none(doubtful: dict[str, Rubric], name: str, reply: str) -> None:
    assert parse_reply(doubtful[name], OPENS.get(name, "") + reply, {}).as_dict() == {"error": "ambiguous"}


@pytest.mark.parametrize(("name", "reply", "expected"), [(name, *one) for name, replies in KEPT.items() for one in replies])
def test_words_of_english_that_are_answers_elsewhere_take_nothing_back(
    doubtful: dict[str, Rubric], name: str, reply: str, expected: float
) -> None:
    said = parse_reply(doubtful[name], OPENS.get(name, "") + reply, {})
    assert isinstance(said, ReadScores), said
    assert set(said.scores.values()) == {expected}


@pytest.mark.parametrize(("reply", "expected"), KEYS)
def test_a_key_beside_the_answers(doubtful: dict[str, Rubric], reply: str, expected: object) -> None:
    said = parse_reply(doubtful["preference"], reply, {}).as_dict()
    assert said == ({"error": expected} if isinstance(expected, str) else {"scores": expected})
