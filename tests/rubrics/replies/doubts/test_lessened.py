"""Scores lessened, summed otherwise or taken back behind the form, and words that do none of it. Tables of replies."""

# ruff: noqa: E501 - a reply is read whole, a line each

import pytest

from rubrics.model import Rubric
from rubrics.replies.read import parse_reply
from schemas.records import ReadScores

NONE = {
    "alignment": [
        "Score: 5, which I reduce to three because the can is missing",
        "Score: 5 (before penalty)",
        "Score: 5\nPenalty: two points\nResult: three",
        "Score: 5\nOverall: 3",
        "Score: 5\nResult: 3",
        "Score: 5\nVerdict: 4",
        "Score: 5, reduced to 3 for the can",
        "Score: 5, but lowered to 4.",
        "Score: 5\nDeduction: 2",
        "Score: 5\nAfter the deduction: 3",
        "Score: 5\nThe penalty brings it down to 3.",
        "Score: 5 - before deductions",
        "Score: 5, minus one for the can",
        "Score: 4\nScratch that.",
        "Score: 4\nI take that back.",
        "Score: 4\nI'll take this score back.",
        "Score: 4\n\nWait, the can is missing. Lower by one.",
        "Score: 4\nOn reflection I would knock off a point.",
        "Score: 4\nDeduct two points for the hands.",
        "Score: 4\nNet: 3",
        "Score: 5\nDeducting two points gives 3.",
        "Score: 5\n**Overall:** 4/5",
        "Score: 5\nIn total: 4",
        "Score: 5\nThe can is missing, so two points off.",
        "Score: 5\nCorrection: two points off.",
        "Score: 5\nReasoning: The can is missing; two points off.",
        "Score: 4\nI cut it to 2.",
        "Score: 5\nMinus the penalty, this leaves 3.",
        "Score: 5\nAdjusted: 4",
        "Score: 5\nEnd result: 3",
        "Score: 4\n\nHmm, that seems too generous.",
        "Score: 4\nThis is far too lenient.",
        "Score: 4\nThat is one too high.",
        "Score: 4\nThat may be one point too high.",
        "Score: 4 (a point too high, perhaps)",
        "Score: 4\nIt is a mark too low.",
        "Score: 4\nIn hindsight, three.",
        "Score: 4\nIn retrospect: 3",
        "Score: 4\n\nThree is more accurate.",
        "Score: 4\nThree would be fairer.",
        "Score: 3\nThe score is capped at 1.",
        "Score: 3\nThe score cannot be higher than 1, as the cup is missing.",
        "Score: 3\nScore 2 because of the can.",
        'Score: 3\nReason: "Lowered to 1 for the can."',
    ],
    "rate10": [
        "Nice.\nRating: 7/10\n\nOverall: 5/10",
        "Rating: 7/10\nOverall: 5",
        "Rating: 7/10\nI take that back.",
        "Rating: 7/10\n...5/10",
        "Rating: 7/10\n...6.",
        "Rating: 7/10\n5/10",
        "Rating: 7/10\n\nCORRECTION: the prompt asked for two dogs; only one is present, so three points off.",
    ],
    "aspects": [
        '{"alignment":4,"realism":4,"overall":4}\nOverall: 3',
        '{"alignment":4,"realism":4,"overall":4}\nTotal: 11',
    ],
}  # fmt: skip
KEPT = {
    "alignment": [
        ("Score: 4\nI deducted one point for the missing can.", [4]),
        ("Score: 2\nThe score cannot be higher than 3, as the cup is missing.", [2]),
        ("Score: 1\nThe score is capped at 1.", [1]),
        ("Score: 2\nScore 2 because of the can.", [2]),
        ("Score: 2\nThat light is too harsh.", [2]),
        ("Score: 3\nThe vanishing point is too high.", [3]),
        ("Score: 3\nThe horizon is a bit too high.", [3]),
        ("Score: 3\nThe shelf is one too high for the cat.", [3]),
        ("Score: 3\nIn hindsight the prompt asks for three dogs, and all three are there.", [3]),
        ("Score 5 for a perfect match, but the can is missing.\nScore: 4", [4]),
        ("Score: 4, since one point was taken off for the can", [4]),
        ("Score: 4 (one point off for the can)", [4]),
        ("Score: 4\nReasoning: One point off for the can.", [4]),
        ("Reasoning: a penalty of two points for the hands.\nScore: 4", [4]),
        ("Reasoning: It looks blurry. I take that back: it is sharp.\nScore: 4", [4]),
        ("Score: 4\nPenalty: none", [4]),
        ("Score: 4\nDeductions: 0", [4]),
        ("Score: 4\nOverall: 4", [4]),
        ("Score: 4\nOverall: a fine picture with 3 cats.", [4]),
        ("Score: 4\nResult: 2 cats on a mat", [4]),
        ("Score: 4\nThe crowd is reduced to two.", [4]),
        ("Score: 4\nThe prompt's five cats are reduced to 2 cats.", [4]),
        ("Overall: 5 of the prompt's 6 items are there.\nScore: 4", [4]),
        ("Score: 4\nThe light takes me back.", [4]),
        ("Score: 4\nThe penalty area is drawn well.", [4]),
        ("Reasoning: from 5, minus one for the can.\nScore: 4", [4]),
        ("Score: 4\nIgnore that sign said nobody.", [4]),
        ("Reasoning: I would deduct two points if the can were gone.\nScore: 4", [4]),
        ("Score: 4\nI would deduct a point if the can were gone.", [4]),
        ("Score: 4\nTotal: 3 cups", [4]),
        ("Score: 4\nThe cat takes a box off the shelf.", [4]),
        ("Score: 4 (deducting one for the can)", [4]),
    ],
    "rate10": [
        ("Composition: 8/10\nColour: 6/10\nRating: 7/10", [7]),
        ("Nice.\nRating: 7/10\n\nOverall: 7/10", [7]),
        ("Overall: fine.\nRating: 7/10", [7]),
        ("Penalty: one point for the hands.\nRating: 7/10", [7]),
        ("Rating: 7/10\nOverall a good picture.", [7]),
        ("Rating: 7/10\nFinal thoughts: strong light.", [7]),
    ],
    "aspects": [
        ('{"alignment":4,"realism":4,"overall":4}\nTotal: 4', [4, 4, 4]),
        ('{"alignment":4,"realism":3,"overall":5}\nTotal: 12', [4, 3, 5]),
        ('{"alignment":4,"realism":3,"overall":5}\n**Total:** 12/15', [4, 3, 5]),
    ],
    "interleaved": [
        ("[Text Response Quality: 4; Image Response Quality: 3; Image Aesthetic Quality: 5; Text-Image Synergy: 4]\nOverall: 4", [4, 3, 5, 4]),
    ],
}  # fmt: skip
# Under "Style: 4, Form: 3, Light: 5", each of 1 to 5.
RIGHT_SUMS = [
    "Total: 12/15",
    "**Total:** 12/15",
    "Total: 12 out of 15",
    "**Total score: 12/15**",
    "Total: 12",
    "Sum: 12/15",
    "Total points: 12 / 15.",
    "Total of the scores: 12.0/15",
]
WRONG_SUMS = [
    "Total: 11/15",
    "Total: 12/10",
    "Total: 12/20",
    "Total: 4/5",
    "Sum: 13",
    "Total: 11",
    "Total: 12/15, or rather 11/15",
    "Overall: 8/10",
]


@pytest.mark.parametrize(("name", "reply"), [(name, reply) for name, replies in NONE.items() for reply in replies])
def test_a_score_that_words_behind_it_change_is_none(doubtful: dict[str, Rubric], name: str, reply: str) -> None:
    assert parse_reply(doubtful[name], reply, {}).as_dict() == {"error": "ambiguous"}


@pytest.mark.parametrize(("name", "reply", "expected"), [(name, *one) for name, replies in KEPT.items() for one in replies])
def test_words_that_only_say_why_cost_no_score(doubtful: dict[str, Rubric], name: str, reply: str, expected: list[float]) -> None:
    said = parse_reply(doubtful[name], reply, {})
    assert isinstance(said, ReadScores), said
    assert list(said.scores.values()) == expected


@pytest.mark.parametrize("line", RIGHT_SUMS)
@pytest.mark.parametrize(
    "reply", ["Style: 4\nForm: 3\nLight: 5\n\n{}", "{}\nStyle: 4\nForm: 3\nLight: 5"], ids=["below", "above"]
)
def test_the_right_sum_of_several_scores_says_nothing_new(doubtful: dict[str, Rubric], reply: str, line: str) -> None:
    assert isinstance(parse_reply(doubtful["three"], reply.format(line), {}), ReadScores)


@pytest.mark.parametrize("line", WRONG_SUMS)
def test_any_other_sum_costs_the_scores(doubtful: dict[str, Rubric], line: str) -> None:
    assert "error" in parse_reply(doubtful["three"], f"Style: 4\nForm: 3\nLight: 5\n\n{line}", {}).as_dict()
