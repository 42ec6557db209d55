"""What is asked before and after a form is read: the provider's word, emptiness, length, declines, thinking, rules."""

import json
import re
from types import MappingProxyType
from typing import Any

import pytest

from rubrics.loading import SHIPPED
from rubrics.model import Rubric
from rubrics.replies.read import parse_reply
from schemas.input_budget import REPLY_TEXT_BYTES
from schemas.records import ReadScores, Unreadable
from schemas.statuses.rows import ParseReason

MISSING_INPUT = """\
I don't see an image.
I don’t see any image attached to your message.
No image was provided.
There is no image provided for evaluation.
It seems the image is missing.
Please provide the image you would like me to evaluate.
Please upload the image so I can evaluate it.
I'm sorry, but I can't see any image. Could you please upload it?
I cannot view the image.
I'm unable to see the image you mentioned.
It looks like the image didn't come through.
The image was not attached.
The **image** wasn't uploaded properly.
I can't evaluate without the image.
You haven't provided an image.
Could you share the picture with me?
It appears that no picture has been attached to this conversation.
I'm sorry, I cannot access the image.
The "Model Output" is missing.
No caption was given to evaluate.
Please provide the model output and the reference.
I do not have access to the image.
You forgot to attach the picture.
I need you to provide the image first.
The image failed to load.
Image not found
There isn't an image here.
I wasn't able to find an attached image.
No answer was provided.
Reasoning: no image was attached.
{"error": "I cannot see the image"}""".splitlines()

REFUSAL = """\
I'm sorry, but I can't assist with that.
I’m sorry, but I can’t help with that request.
I cannot evaluate this image.
I'm unable to provide a score for this content.
I won't rate this image.
I must decline to judge this image.
As an AI, I do not judge people.
This request violates our content policy.
I apologize, but I cannot fulfill this request.
I'm not able to help with identifying people in images.
I am not comfortable evaluating this image.
I refuse.
Unable to comply.
I cannot provide a response to this.
I'm sorry, but I can't assist with that. Please provide a different image.
Your request was rejected as a result of our safety system.
I'd rather not score this picture.
{"error": "I cannot assist with that"}
Das kann ich leider nicht bewerten.""".splitlines()

NEITHER = """\
The image shows a cat on a mat.
The cat cannot be seen, though the mat is there.
The image cannot be distinguished from a photo.
No cat is in the image.""".splitlines()

ANSWERS = {
    "interleaved": "[Text Response Quality: 4; Image Response Quality: 3; Image Aesthetic Quality: 5; Text-Image Synergy: 4]",
    "image_aspects": '{"accuracy_to_prompt": 8, "creativity_and_originality": 6, "visual_quality_and_realism": 7.5,'
    ' "consistency_and_cohesion": 9, "emotional_or_thematic_resonance": 5, "overall_score": 7.1}',
    "caption": '{"score": 3, "reason": "x"}',
    "composition": '{"count_accuracy": 8, "object_uniformity": 9, "spatial_legibility": 7, "overall_score": 8}',
    "alignment": "Reasoning: x\nScore: 3\n",
}


def read(rubric: Rubric, text: Any, context: Any) -> Any:
    if rubric.dispatch and isinstance(context, dict):
        context = {"category": "counting", **context}
    found = parse_reply(rubric, text, context)
    return list(found.scores.values()) if isinstance(found, ReadScores) else found.reason.value


@pytest.mark.parametrize("text", MISSING_INPUT)
@pytest.mark.parametrize("rubric_id", ["alignment", "caption", "interleaved"])
def test_nothing_to_judge(shipped: dict[str, Rubric], rubric_id: str, text: str) -> None:
    assert read(shipped[rubric_id], text, {}) == "missing_input"


@pytest.mark.parametrize("text", REFUSAL)
@pytest.mark.parametrize("rubric_id", ["alignment", "composition", "interleaved"])
def test_declines(shipped: dict[str, Rubric], rubric_id: str, text: str) -> None:
    assert read(shipped[rubric_id], text, {}) == "refusal"


@pytest.mark.parametrize("text", NEITHER)
def test_neither(shipped: dict[str, Rubric], text: str) -> None:
    assert read(shipped["alignment"], text, {}) == "not_found"


@pytest.mark.parametrize(
    ("rubric_id", "text", "expected"),
    [
        ("caption", '{"score": null, "reason": "No image was provided."}', "missing_input"),
        ("caption", '{"score": "N/A", "reason": "I cannot evaluate this."}', "refusal"),
        ("caption", '{"score": 0, "reason": "No image was provided."}', "missing_input"),
        ("caption", '{"score": 5, "reason": "No image was provided."}', "missing_input"),
        ("caption", '{"score": 0, "reason": "I cannot assist with that."}', "refusal"),
        ("caption", '{"score": 0, "reason": "The caption says that it cannot assist with that."}', [0]),
        ("alignment", "Reasoning: I cannot see the image.\nScore: N/A", "missing_input"),
        ("alignment", "Reasoning: I can't see the image clearly.\nScore: 2", [2]),
        ("caption", '{"reason": "I cannot assist', "truncated"),
    ],
)
def test_a_refusal_and_a_missing_input_count_beside_a_number_too(
    shipped: dict[str, Rubric], rubric_id: str, text: str, expected: Any
) -> None:
    assert read(shipped[rubric_id], text, {}) == expected


@pytest.mark.parametrize("rubric_id", ANSWERS)
@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ({"refusal": "I can't"}, "refusal"),
        ({"refusal": True}, "refusal"),
        ({"finish_reason": "content_filter"}, "refusal"),
        ({"finish_reason": "SAFETY"}, "refusal"),
        ({"refusal": "no", "finish_reason": "length"}, "refusal"),
        ({"refusal": None}, None),
        ({"refusal": ""}, None),
        ({"refusal": " \u200b"}, None),
        ({"finish_reason": "length"}, None),
        ({"finish_reason": "stop"}, None),
        ({"finish_reason": ["length"], "refusal": [], "text_is_null": "yes", "reference_words": "ten"}, None),
        ({"finish_reason": 3, "caption_type": ["brief"], "reference_words": -1, "output_words": 1e9}, None),
    ],
)
def test_the_provider_comes_first(
    shipped: dict[str, Rubric], rubric_id: str, context: dict[str, Any], expected: str | None
) -> None:
    found = read(shipped[rubric_id], ANSWERS[rubric_id], context)
    assert found == expected if expected else isinstance(found, list)


@pytest.mark.parametrize("text", [None, "", " \n\t", "\u200b\u200d\ufeff", "\u3000\u00a0\u2028", "\x1c"])
@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ({}, "empty"),
        ({"finish_reason": "stop"}, "empty"),
        ({"finish_reason": "length"}, "truncated"),
        ({"refusal": "no"}, "refusal"),
    ],
)
def test_nothing_but_white_space(shipped: dict[str, Rubric], text: str | None, context: dict[str, Any], expected: str) -> None:
    for rubric in shipped.values():
        assert read(rubric, text, context) == expected


@pytest.mark.parametrize("context", [None, 3, "x", [], object(), MappingProxyType({})])
def test_a_context_of_any_type(shipped: dict[str, Rubric], context: Any) -> None:
    assert read(shipped["alignment"], "Score: 4", context) == [4]


@pytest.mark.parametrize("category", [None, 3, "no such", ["counting"], {}])
def test_a_category_without_a_prompt_has_no_form(shipped: dict[str, Rubric], category: Any) -> None:
    assert read(shipped["composition"], ANSWERS["composition"], {"category": category}) == "not_found"


def test_the_category_chooses_the_dimensions(shipped: dict[str, Rubric]) -> None:
    assert read(shipped["composition"], ANSWERS["composition"], {"category": "colors"}) == "missing_key"


@pytest.mark.parametrize("text", [b"Score: 4", 4, ["Score: 4"], {}])
def test_what_is_no_text_is_malformed(shipped: dict[str, Rubric], text: Any) -> None:
    assert read(shipped["alignment"], text, {}) == "malformed"


LONG_STRING = json.dumps(
    json.dumps({"score": "4", "x": [1] * 21_000})
)  # strict JSON reads it, the tolerant reader gives up on it
TABLE = "| Item | Score | Max |\n|---|---|---|\n| Score | 4 | {} |"


@pytest.mark.parametrize(
    ("rubric_id", "text", "expected"),
    [
        pytest.param("alignment", TABLE.format("5²"), [4], id="a footnote at the scale's end"),
        pytest.param("alignment", TABLE.format("²"), [4], id="a footnote in place of the scale's end"),
        pytest.param("alignment", TABLE.format("①"), [4], id="a circled digit"),
        pytest.param("alignment", TABLE.format("10²"), "scale_mismatch", id="a footnote at another end"),
        pytest.param("alignment", TABLE.format("10 points"), "scale_mismatch", id="another end in words"),
        pytest.param("alignment", TABLE.format("1-5"), [4], id="both ends"),
        pytest.param("alignment", TABLE.format("5 (best), 1 (worst)"), [4], id="both ends the other way"),
        pytest.param("alignment", f"Reasoning: x &#{'9' * 5000}\nScore: 4", [4], id="no character has thousands of digits"),
        pytest.param("alignment", f"Reasoning: x &#{'0' * 5000}65;\nScore: 4", [4], id="thousands of zeros"),
        pytest.param("caption", LONG_STRING, "malformed", id="a string without places, and a flood of numbers"),
    ],
)
def test_a_reply_that_broke_the_reader(shipped: dict[str, Rubric], rubric_id: str, text: str, expected: Any) -> None:
    parsed = parse_reply(shipped[rubric_id], text, {})
    assert not isinstance(parsed, Unreadable) or not parsed.fault
    assert read(shipped[rubric_id], text, {}) == expected


class Broken(dict[str, Any]):
    """Raises as a reader would whose fault is not known yet, with a piece of the reply in its words."""

    def get(self, *_: object) -> Any:
        raise LookupError("\x1b[2J" + "n" * 500)


def test_a_fault_of_the_reader_is_malformed_and_told(shipped: dict[str, Rubric]) -> None:
    parsed = parse_reply(shipped["alignment"], "Score: 4", Broken())
    assert isinstance(parsed, Unreadable)
    assert parsed.reason is ParseReason.MALFORMED
    assert re.fullmatch(r"LookupError: '\\x1b\[2Jn{196}' \(test_policy\.py, line [0-9]+\)", parsed.fault)


def test_the_limit_is_in_bytes(shipped: dict[str, Rubric]) -> None:
    answer = "\nScore: 4"
    assert read(shipped["alignment"], "x" * (REPLY_TEXT_BYTES - len(answer)) + answer, {}) == [4]
    assert read(shipped["alignment"], "x" * (REPLY_TEXT_BYTES + 1 - len(answer)) + answer, {}) == "malformed"
    assert read(shipped["alignment"], "é" * ((REPLY_TEXT_BYTES - len(answer)) // 2) + answer, {}) == [4]
    assert read(shipped["alignment"], "é" * (REPLY_TEXT_BYTES // 2) + answer, {}) == "malformed"
    assert read(shipped["alignment"], " " * (REPLY_TEXT_BYTES + 1), {"finish_reason": "content_filter"}) == "refusal"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>Is it 3?</think>Score: 3", [3]),
        ("<think>Score: 3</think>\nScore: 3", [3]),
        ("<think>Score: 4</think>\nScore: 3", [3]),
        ("<think>Score: 4</think>\nScore: 3\nScore: 4", "ambiguous"),
        ("<think>Score: n/a</think>\nScore: 3", [3]),
        ("It is a 3.</think>\nScore: 3", [3]),
        ("Reasoning: a </think> in a text\nScore: 3", [3]),
        ("\ufeff <Think>Score: 3", "truncated"),
        ("<THINKING>\nhm", "truncated"),
        ("<think>Score: 3</think>", "not_found"),
        ("<think>no image was provided?</think>A fine cat.", "not_found"),
        ("<think>A cat.</think><think>No image is attached. I will make something up.</think>Score: 3", "missing_input"),
        ("Here it is:\n<think>No image is attached. I will make something up.</think>Score: 3", "missing_input"),
        ("Here it is:\n<think>Score: 3", "not_found"),
    ],
)
def test_thinking_is_no_answer(shipped: dict[str, Rubric], text: str, expected: Any) -> None:
    assert read(shipped["alignment"], text, {}) == expected


@pytest.mark.parametrize(
    ("context", "violated"),
    [
        ({}, {}),
        ({"text_is_null": False, "image_is_null": False}, {}),
        ({"text_is_null": True}, {"text_response_quality": (0, 0), "text_image_synergy": (0, 0)}),
        ({"text_is_null": "true"}, {}),
    ],
)
def test_a_rule_leaves_the_number(shipped: dict[str, Rubric], context: dict[str, Any], violated: dict[str, Any]) -> None:
    found = parse_reply(shipped["interleaved"], ANSWERS["interleaved"], context)
    assert isinstance(found, ReadScores)
    assert list(found.scores.values()) == [4, 3, 5, 4]
    assert found.violated == violated
    assert found.as_dict().get("error") == ("rule_violation" if violated else None)


def documented() -> list[tuple[str, str, str]]:
    """(reason, rubric, reply) of the table in docs/replies.md."""
    lines = (SHIPPED.parent / "docs" / "replies.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("| `")]
    rows = (row for row in cells if len(row) == len(("reason", "when", "rubric", "example")))
    return [(reason.strip("`"), rubric, reply[1:-1].replace("\\n", "\n")) for reason, _, rubric, reply in rows]


def test_every_reason_has_an_example_in_the_docs_in_order() -> None:
    assert [reason for reason, _, _ in documented()] == [
        reason.value
        for reason in ParseReason
        if reason not in (ParseReason.NOT_APPLICABLE, ParseReason.NOT_ASKED_FOR)  # no failures
    ]


@pytest.mark.parametrize(("reason", "rubric_id", "reply"), documented())
def test_documented_example(shipped: dict[str, Rubric], reason: str, rubric_id: str, reply: str) -> None:
    context = {"caption_type": "brief", "reference_words": 10, "output_words": 20} if reason == "rule_violation" else {}
    assert parse_reply(shipped[rubric_id], reply, context).as_dict()["error"] == reason
