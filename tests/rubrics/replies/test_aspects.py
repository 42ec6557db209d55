"""JSON replies with several dimensions: values in objects, wrappers, one reason for all."""

import json
from typing import Any

import pytest

from rubrics.model import Rubric
from rubrics.replies.read import parse_reply
from schemas.records import ReadScores

COMPOSITION: list[tuple[str, list[float] | str]] = [
    ("8 | 9 | 7 | 8.5", [8, 9, 7, 8.5]),
    ("8 | 9 | 7 | 10.0", [8, 9, 7, 10]),
    ('"8" | "9" | "7" | "8.25"', [8, 9, 7, 8.25]),
    ('{"score": 8, "explanation": "x"} | 9 | 7 | 8', [8, 9, 7, 8]),
    ('{"Score": "8/10", "why": "a "b" c"} | 9 | 7 | 8', [8, 9, 7, 8]),
    ("8.5/10 | 9/10 | 7/10 | 8/10", [8.5, 9, 7, 8]),
    ("1e1 | 0 | 0.0 | 1.000", [10, 0, 0, 1]),
    ("8 | 9 | 7 | 10.00000000000000000001", "out_of_range"),
    ("8 | 9 | 7 | -0.1", "out_of_range"),
    ("80 | 90 | 70 | 80", "out_of_range"),
    ("4/5 | 9 | 7 | 8", "scale_mismatch"),
    ('"85%" | 9 | 7 | 8', "scale_mismatch"),
    ('{"score": 8, "max": 5} | 9 | 7 | 8', "scale_mismatch"),
    ('"8-9" | 9 | 7 | 8', "ambiguous"),
    ('{"score": 8, "score": 7} | 9 | 7 | 8', "ambiguous"),
    ('{"rating": 8} | 9 | 7 | 8', "wrong_type"),
    ('{"score": {"score": 8}} | 9 | 7 | 8', "wrong_type"),
    ('[8, "x"] | 9 | 7 | 8', "wrong_type"),
    ("8,5 | 9 | 7 | 8", "malformed"),
    ('"8,5" | 9 | 7 | 8', "malformed"),
    ("<score> | <score> | <score> | <score>", "template_echo"),
    # several problems: the earlier in the table of reasons
    ("11 | null | 7 | 8", "wrong_type"),
    ('11 | "8-9" | 7 | 8', "out_of_range"),
    ('"4/5" | "8-9" | 7 | 8', "scale_mismatch"),
    ('"8,5" | null | 7 | 8', "malformed"),
]  # fmt: skip

KEYS = ("count_accuracy", "object_uniformity", "spatial_legibility", "overall_score")
WHOLE = '{"count_accuracy": 8, "object_uniformity": 9, "spatial_legibility": 7, "overall_score": 8}'

COMPOSITION_WHOLE: list[tuple[str, list[float] | str]] = [
    (WHOLE.replace("_", " "), [8, 9, 7, 8]),
    (WHOLE.replace("_", "-").upper(), [8, 9, 7, 8]),
    (WHOLE.replace("overall_score", "overallScore"), [8, 9, 7, 8]),
    (WHOLE.replace('"', "'"), [8, 9, 7, 8]),
    (WHOLE.replace(", ", "\n"), [8, 9, 7, 8]),
    (WHOLE.replace('"', ""), [8, 9, 7, 8]),
    (f'{{"evaluation": {WHOLE}}}', [8, 9, 7, 8]),
    (f'{{"anything at all": [{WHOLE}]}}', [8, 9, 7, 8]),
    ('{"scores": ' + WHOLE.replace(', "overall_score": 8', "") + ', "overall_score": 8}', [8, 9, 7, 8]),
    (WHOLE.replace(", ", "}\n{"), [8, 9, 7, 8]),
    (f"{WHOLE}\n{WHOLE}", [8, 9, 7, 8]),
    (f'{{"one": {WHOLE}, "two": {WHOLE.replace("8", "6")}}}', "ambiguous"),
    (WHOLE[:-1] + ', "count_accuracy": 7}', "ambiguous"),
    (WHOLE[:-1], "truncated"),
    (f'{{"scores": {WHOLE}', "truncated"),
    (WHOLE.replace(', "overall_score": 8', ""), "missing_key"),
    (WHOLE.replace("overall_score", "total"), "missing_key"),
    (WHOLE.replace("8", "8.5.5"), "malformed"),
    ("count_accuracy: 8\nobject_uniformity: 9\nspatial_legibility: 7\noverall_score: 8", [8, 9, 7, 8]),
    ("Count Accuracy: 8\nObject Uniformity: 9\nSpatial Legibility: 7\nOverall Score: 8", "not_found"),
]  # fmt: skip


def read(rubric: Rubric, text: str) -> Any:
    found = parse_reply(rubric, text, {"category": "counting"})
    return list(found.scores.values()) if isinstance(found, ReadScores) else found.reason.value


@pytest.mark.parametrize(("values", "expected"), COMPOSITION, ids=[values for values, _ in COMPOSITION])
def test_composition_values(shipped: dict[str, Rubric], values: str, expected: list[float] | str) -> None:
    text = "{" + ", ".join(f'"{key}": {value}' for key, value in zip(KEYS, values.split(" | "), strict=True)) + "}"
    assert read(shipped["composition"], text) == expected


@pytest.mark.parametrize(("text", "expected"), COMPOSITION_WHOLE, ids=[repr(text[:70]) for text, _ in COMPOSITION_WHOLE])
def test_composition(shipped: dict[str, Rubric], text: str, expected: list[float] | str) -> None:
    assert read(shipped["composition"], text) == expected


def test_whole_numbers_are_ints(shipped: dict[str, Rubric]) -> None:
    found = parse_reply(shipped["composition"], WHOLE.replace("7", "7.0"), {"category": "counting"})
    assert isinstance(found, ReadScores)
    assert [type(score) for score in found.scores.values()] == [int, int, int, int]


def test_words_beside_a_number_are_kept(shipped: dict[str, Rubric]) -> None:
    caption = parse_reply(shipped["caption"], '{"score": 3, "reason": "It is \ud800 short."}', {})
    assert isinstance(caption, ReadScores)
    assert caption.notes == {"score": "It is ? short."}
    aspects = WHOLE.replace("8,", '{"score": 8, "explanation": "Eight clocks."},', 1)
    composition = parse_reply(shipped["composition"], aspects, {"category": "counting"})
    assert isinstance(composition, ReadScores)
    assert composition.notes == {"count_accuracy": "Eight clocks."}
    of_all = WHOLE.replace("}", ', "explanation": "Eight clocks in a row."}')
    whole = parse_reply(shipped["composition"], of_all, {"category": "counting"})
    assert isinstance(whole, ReadScores)
    assert whole.notes == dict.fromkeys(json.loads(WHOLE), "Eight clocks in a row.")
    of_two = of_all.replace("}", ', "remark": "One is late."}')  # which is about which nobody says
    two = parse_reply(shipped["composition"], of_two, {"category": "counting"})
    assert isinstance(two, ReadScores)
    assert (two.scores, two.notes) == (whole.scores, {})
