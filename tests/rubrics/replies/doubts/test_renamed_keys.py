"""A number given again on a line of its own, under a key that takes the score back, in each way that keys are spelled."""

import json

import pytest

from rubrics.model import Rubric
from rubrics.replies.read import parse_reply

OPENS = {
    "alignment": "Score: 4",
    "caption": '{"score": 4, "reason": "ok"}',
    "interleaved": "[Text Response Quality: 4; Image Response Quality: 4; Image Aesthetic Quality: 4; Text-Image Synergy: 4]",
}
KEYS = [
    "final_score", "Final_Score", "FINAL_SCORE", "final-score", "FinalScore", "finalScore", "`final_score`", "**final_score**",
    "- final_score", "revised_score", "corrected_score", "adjusted_score", "updated_score", "final_rating", "overall_score",
]  # fmt: skip


def numbers(rubric: Rubric, text: str) -> set[object]:
    """The numbers that are read, or the reason."""
    said = parse_reply(rubric, text, {}).as_dict()
    return {said["error"]} if "error" in said else set(said["scores"].values())  # type: ignore[attr-defined]


@pytest.mark.parametrize("parted", [": ", " = "], ids=["colon", "equals"])
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("rubric_id", ["alignment", "caption"])
def test_another_number_makes_both_doubtful_and_the_same_none(
    shipped: dict[str, Rubric], rubric_id: str, key: str, parted: str
) -> None:
    for n, expected in ((3, "ambiguous"), (4, 4)):
        assert numbers(shipped[rubric_id], f"{OPENS[rubric_id]}\n{key}{parted}{n}") == {expected}, n


@pytest.mark.parametrize("key", ["final_text_response_quality", "revised_text_image_synergy", "FinalTextResponseQuality"])
def test_a_key_of_one_dimension_takes_that_one_back(shipped: dict[str, Rubric], key: str) -> None:
    for n, expected in ((3, "ambiguous"), (4, 4)):
        assert numbers(shipped["interleaved"], f"{OPENS['interleaved']}\n{key}: {n}") == {expected}, n


@pytest.mark.parametrize("key", ["revised_overall_score", "final_score"])
def test_a_key_of_the_whole_reads_as_its_words_do(shipped: dict[str, Rubric], key: str) -> None:
    rubric = shipped["image_aspects"]
    scores = json.dumps({one.key: 6 if one.key == "overall_score" else 5 for one in rubric.dimensions})
    assert numbers(rubric, f"{scores}\n{key}: 3") == {"ambiguous"}
    assert numbers(rubric, f"{scores}\n{key}: 6") == numbers(rubric, f"{scores}\n{key.replace('_', ' ')}: 6")


@pytest.mark.parametrize(
    "reason",
    [
        "The file final_2.png shows it.",
        "An iPhone and a MacBook lie there.",
        "A well-scored panel of 3 tiles.",
        "img_3 is sharp.",
    ],
    ids=["a file", "camels", "a hyphen", "a number in a name"],
)
def test_names_with_such_signs_in_a_reason_take_nothing_back(shipped: dict[str, Rubric], reason: str) -> None:
    assert numbers(shipped["alignment"], f"Reasoning: {reason}\nScore: 4") == {4}
