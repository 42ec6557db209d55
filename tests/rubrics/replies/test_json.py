"""Replies in the JSON form, nasty ones above all: what each says, or the one reason it says nothing."""

from collections.abc import Mapping
from typing import Any

import pytest

from rubrics.model import Rubric
from rubrics.replies.read import parse_reply
from schemas.records import ReadScores

LENGTH = {"finish_reason": "length"}

# (reply, what caption's one score is read as)
CAPTION: list[tuple[str, int | str]] = [
    # formatting that leaves every digit where it was
    ('{"score": 4, "reason": "x"}', 4),
    ('{"score": 4}', 4),
    ('{"score": 0, "reason": "x"}', 0),
    ('{"score": -0}', 0),
    ('{"score": 4.0}', 4),
    ('{"score": 4.000}', 4),
    ('{"score": "4"}', 4),
    ('{"score": " 4 "}', 4),
    ('{"score": +3}', 3),
    ('{"score": 03}', 3),
    ('{"score": 3.}', 3),
    ('{"score": (3)}', 3),
    ('{"score":\n\n3}', 3),
    ('{"Score": 3, "Reason": "x"}', 3),
    ('{"SCORE": 3}', 3),
    ('{"sc\u200bore": 3}', 3),
    ('\ufeff{"score": 4}', 4),
    ('```json\n{"score": 4, "reason": "x"}\n```', 4),
    ('```\n{"score": 4}', 4),
    ('Sure! Here it is:\n\n{"score": 4}\n\nThanks {name}!', 4),
    ('I think {this} is it. {"score": 2}', 2),
    ('<answer>{"score": 4}</answer>', 4),
    ('{{"score": 4}}', 4),
    ('{"score": 3}}', 3),
    ('[{"score": 2}]', 2),
    ('"{\\"score\\": 4}"', 4),
    ('{**"score"**: **4**}', 4),
    ('{"**score**": 4}', 4),
    ("{`score`: 3}", 3),
    ("{'score': 3, 'reason': 'It's fine'}", 3),
    ("{'score': 3, 'reason': \"It's\"}", 3),
    ("{“score”: 3, “reason”: “x”}", 3),
    ("{‘score’: 3, ‘reason’: ‘it’s x’}", 3),
    ('{score: 3, reason: "x"}', 3),
    ('{"score": 3,}', 3),
    ('{"score": 3, // good\n "reason": "x"}', 3),
    ('{"score": 3 /* good */, "reason": "x"}', 3),
    ('{"score": 3, # good\n "reason": "x"}', 3),
    ('{"score": 3; "reason": "x"}', 3),
    ('{"score" = 3}', 3),
    ('{"score"： 3，"reason"：“x”}', 3),
    ('{"score": 3 "reason": "x"}', 3),
    ('{"score": 3\n"reason": "x"}', 3),
    ('{"reason": "x"\n"score": 3}', 3),
    ('{"reason": "line one\nline two\t", "score": 2}', 2),
    ('{"score": 3, "reason": """so"""}', 3),
    ('{"score": 3, "reason": None, "sure": True}', 3),
    ('{"score": 3, "reason": null, "tags": ["a", "b"], "n": {"deep": [1, {"x": 2}]}}', 3),
    ('{"score": 3/4}', 3),
    ('{"score": "3 / 4"}', 3),
    ('{"score": "3 out of 4"}', 3),
    ('{"score": {"score": 3, "reason": "x"}}', 3),
    ('{"result": {"score": 2, "reason": "z"}}', 2),
    ('{"caption_evaluation": {"final_scores": {"score": 2}}}', 2),
    ('{"score": 4}\n{"score": 4}', 4),
    ('{"score": 4, "score": 4.0}', 4),
    ('{"score": [3]}', 3),
    # what stands in a string is not looked at
    ('{"score": 3, "reason": "Score: 2, not {"}', 3),
    ('{"score": 3, "reason": "{\\"score\\": 2}"}', 3),
    ('{"score": 4, "reason": "The "red" car is fine"}', 4),
    ('{"score": 4, "reason": "names "red", and "blue""}', 4),
    # a line that is a number alone says nothing of what it is, whatever blanks end it
    ('{"score": 3}\n4', 3),
    ('{"score": 3}\n4 ', 3),
    ('{"score": 3}\n4\r\n', 3),
    ('{"score": 3}\n3/4', 3),
    ('{"score": 3}\n1/4 of the prompt is missing.', 3),
    ('{"score": 3}\nObjects found: 2/4', 3),
    # the same key elsewhere is another thing's
    ('{"hallucination": {"score": 2}, "quality": {"score": 3}, "score": 1}', 1),
    # an unfilled form beside the answer says nothing
    ('{"score": [0-4], "reason": "1-2 sentence explanation"}\n{"score": 3, "reason": "x"}', 3),
    # not said once
    ('{"score": 4, "score": 3}', "ambiguous"),
    ('{"score": 4, "Score": 3}', "ambiguous"),
    ('{"score": 4}{"score": 3}', "ambiguous"),
    ('{"score": 4}\nOn reflection:\n{"score": 3}', "ambiguous"),
    ('{"score": 4}\n{"score": null}', "ambiguous"),
    ('"score": 4,\n"reason": "x"\n}\n{"score": 3}', "ambiguous"),
    ('{"final": {"score": 3}, "score": 2}', "ambiguous"),
    ('{"score": {"score": 3, "score": 2}}', "ambiguous"),
    ('{"score": "3-4"}', "ambiguous"),
    ('{"score": 3-4}', "ambiguous"),
    ('{"score": "3 to 4"}', "ambiguous"),
    ('{"score": "3 or 4"}', "ambiguous"),
    ('{"score": "3, 4"}', "ambiguous"),
    ('{"score": "3±1"}', "ambiguous"),
    ('{"score": "2~3"}', "ambiguous"),
    ('{"score": "~3"}', "ambiguous"),
    ('{"score": "about 3"}', "ambiguous"),
    ('{"score": "3+"}', "ambiguous"),
    ('{"score": "3?"}', "ambiguous"),
    ('{"score": 3 4}', "ambiguous"),
    ('{"score": 3}4', "ambiguous"),
    ('{"score": 3} 4', "ambiguous"),
    ('{"score": 3}\n2/4', "ambiguous"),
    ('{"score": 3}\n\n**2 / 4**', "ambiguous"),
    ('{"score": 3}4 \r\n', "ambiguous"),
    ('{"score": 3}\n4.', "ambiguous"),
    # on another scale
    ('{"score": "3/5"}', "scale_mismatch"),
    ('{"score": 3/10}', "scale_mismatch"),
    ('{"score": "3 out of 5"}', "scale_mismatch"),
    ('{"score": "75%"}', "scale_mismatch"),
    ('{"score": 3%}', "scale_mismatch"),
    ('{"score": "3 stars"}', "scale_mismatch"),
    ('{"score": 3, "scale": "0-10"}', "scale_mismatch"),
    ('{"score": {"score": 3, "max_score": 5}}', "scale_mismatch"),
    # off the scale
    ('{"score": 5}', "out_of_range"),
    ('{"score": -1}', "out_of_range"),
    ('{"score": "−1"}', "out_of_range"),
    ('{"score": 1e400}', "out_of_range"),
    ('{"score": 1e99999999999999999999}', "out_of_range"),
    ('{"score": ' + "9" * 5000 + "}", "out_of_range"),
    # no whole number
    ('{"score": 3.5}', "non_integer"),
    ('{"score": 4.5}', "non_integer"),
    ('{"score": .5}', "non_integer"),
    ('{"score": 3e-1}', "non_integer"),
    ('{"score": 2.0000000000000000000000000000000000000001}', "non_integer"),
    # no number
    ('{"score": null}', "wrong_type"),
    ('{"score": true}', "wrong_type"),
    ('{"score": NaN}', "wrong_type"),
    ('{"score": Infinity}', "wrong_type"),
    ('{"score": -Infinity}', "wrong_type"),
    ('{"score": None}', "wrong_type"),
    ('{"score": {}}', "wrong_type"),
    ('{"score": []}', "wrong_type"),
    ('{"score": [3, 4]}', "wrong_type"),
    ('{"score": {"value": 3}}', "wrong_type"),
    ('{"score": ""}', "wrong_type"),
    ('{"score": "high"}', "wrong_type"),
    ('{"score": "three"}', "wrong_type"),
    ('{"score": "n/a"}', "wrong_type"),
    ('{"score": "3 (Good)"}', "wrong_type"),
    ('{"score": "3rd"}', "wrong_type"),
    ('{"score": "0x3"}', "wrong_type"),
    ('{"score": "III"}', "wrong_type"),
    ('{"score": "★★★"}', "wrong_type"),
    ('{"score": ３}', "wrong_type"),  # full width
    ('{"score": "٣"}', "wrong_type"),  # Arabic-Indic
    ('{"score": "3²"}', "wrong_type"),
    # not readable without choosing
    ('{"score": 3,5}', "malformed"),
    ('{"score": "3,5"}', "malformed"),
    ('{"score": "1,000"}', "malformed"),
    ('{"score": "3..5"}', "malformed"),
    ('{"score": "1.2.3"}', "malformed"),
    ('{"score": "3½"}', "malformed"),
    ('{"score": 3, 4}', "malformed"),
    ('{"score": 3, ...}', "malformed"),
    ('{"score" 3}', "malformed"),
    ('{"score"; 3}', "malformed"),
    ('{"score": 3]', "malformed"),
    ('{"score": {3}}', "malformed"),
    ('{\\"score\\": 3}', "malformed"),
    ('{"score": 4, "reason": "he said "score": 3 ok"}', "malformed"),
    ('{"reason": "good, "score": 4, "note": "x"}', "malformed"),
    ('{"score": 4, "reason": "x}', "malformed"),
    ('{"a": ' * 100_000 + "1" + "}" * 100_000, "malformed"),
    ('{"score": 3, "deep": ' + "[" * 5000 + "]" * 5000 + "}", "malformed"),
    ('{"score": 3, "deep": ' + "[" * 63 + "1" + "]" * 63 + "}", 3),
    ('{"score": 3, "deep": ' + "[" * 64 + "1" + "]" * 64 + "}", "malformed"),
    ('{"score": 3, /**/ "deep": ' + "[" * 63 + "1" + "]" * 63 + "}", 3),
    ('{"score": 3, /**/ "deep": ' + "[" * 64 + "1" + "]" * 64 + "}", "malformed"),
    # the form unfilled
    ('{"score": [0-4], "reason": "1-2 sentence explanation"}', "template_echo"),
    ('{"score": "[0-4]", "reason": "x"}', "template_echo"),
    ('{"score": <0-4>, "reason": "x"}', "template_echo"),
    ('{"score": 0-4}', "template_echo"),
    ('{"score": [0, 1, 2, 3, 4]}', "template_echo"),
    ('{"score": "<score>"}', "template_echo"),
    ('{"score": int, "reason": str}', "template_echo"),
    ('{"score": ..., "reason": ...}', "template_echo"),
    # the form, without the key
    ("{}", "missing_key"),
    ('{"reason": "good"}', "missing_key"),
    ('{"rating": 3}', "missing_key"),
    ('{"scores": 3}', "missing_key"),
    ('{"hallucination": {"score": 2}}', "missing_key"),
    ('{"\u0455core": 3}', "missing_key"),  # a Cyrillic letter
    # cut
    ('{"score": 4', "truncated"),
    ('{"score": 4, "reason": "x', "truncated"),
    ('{"score": 4, "reason": "x"', "truncated"),
    ('{"scores": {"score": 4}', "truncated"),
    ('{"sco', "truncated"),
    ("{", "truncated"),
    ('```json\n{"score": 3,', "truncated"),
    ('{"score": 4}\n{"score": ', "truncated"),
    ('{"score": 3 /* and', "truncated"),
    # an object, and what is left of another
    ('score": 3.0}\n{"score": 4}', "ambiguous"),
    ('"score: 3, {"score": 4}', "ambiguous"),
    ('{"score": 4} \'score\': 3}', "ambiguous"),
    ('score": 4}\n{"score": 4}', 4),
    ('{"score": 4}}', 4),
    (' out of 5\n{"score": 4}', "scale_mismatch"),  # as without the blank before it
    # no object at all
    ("4", "not_found"),
    ("[]", "not_found"),
    ("null", "not_found"),
    ("Score: 3", "not_found"),
    ('"score": 3, "reason": "x"', "not_found"),
    ("score 3 of 4, it is good", "not_found"),
    ("\x00", "not_found"),
    ("The set {a, b} is fine.", "not_found"),
]  # fmt: skip


def read(rubric: Rubric, text: str, context: Mapping[str, Any]) -> Any:
    found = parse_reply(rubric, text, context)
    return list(found.scores.values()) if isinstance(found, ReadScores) else found.reason.value


@pytest.mark.parametrize(("text", "expected"), CAPTION, ids=[repr(text[:60]) for text, _ in CAPTION])
def test_caption(shipped: dict[str, Rubric], text: str, expected: int | str) -> None:
    assert read(shipped["caption"], text, {}) == (expected if isinstance(expected, str) else [expected])


@pytest.mark.parametrize(
    ("text", "context", "expected"),
    [
        ('{"score": 4}', LENGTH, [4]),
        ('{"score": 4}\n', LENGTH, [4]),
        ('{"score": 4} and then', LENGTH, [4]),
        ('{"score": 4', {"finish_reason": "stop"}, "truncated"),
        ('{"score": 4, "reason": "it ends}', LENGTH, "malformed"),
        ("The caption is", LENGTH, "truncated"),
        ('{"reason": "x"}', LENGTH, "missing_key"),
    ],
)
def test_length_stops_what_is_open(shipped: dict[str, Rubric], text: str, context: Mapping[str, Any], expected: Any) -> None:
    assert read(shipped["caption"], text, context) == expected
