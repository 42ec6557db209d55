"""Replies kept as files: the golden replies of every shipped rubric, and real judges' replies where SALON_DATA is set."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from rubrics.golden import read_replies
from rubrics.model import Dimension, Rubric, Variant
from rubrics.replies.read import parse_reply
from schemas.records import ReadScores


@pytest.mark.parametrize("rubric_id", ["interleaved", "image_aspects", "caption", "composition", "alignment"])
def test_golden_replies(shipped: dict[str, Rubric], rubric_id: str) -> None:
    replies = read_replies(shipped[rubric_id].folder)
    assert len(replies) > 5
    for reply in replies:
        assert parse_reply(shipped[rubric_id], reply["raw"], reply["context"]).as_dict() == reply["expect"], reply["raw"]


@pytest.fixture
def pointing(shipped: dict[str, Rubric]) -> Rubric:
    """A rubric whose number stands at score[0], as in the recorded VIEScore judgements."""
    dimension = Dimension("score", ("score",), 0, 10, None, "score[0]")
    return replace(shipped["image_aspects"], variants={None: Variant(None, None, None, (dimension,))})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"score": [8], "reasoning": "x"}', {"scores": {"score": 8}}),
        ('{"score": ["8.5"]}', {"scores": {"score": 8.5}}),
        ('{"score": [8, 9]}', {"error": "wrong_type"}),
        ('{"score": []}', {"error": "wrong_type"}),
        ('{"score": 8}', {"error": "wrong_type"}),
        ('{"score": [[8]]}', {"error": "wrong_type"}),
        ('{"score": [11]}', {"error": "out_of_range"}),
        ('{"reasoning": "x"}', {"error": "missing_key"}),
        ('{"score": [8], "Score": [7]}', {"error": "ambiguous"}),
        ('{"score": [8', {"error": "truncated"}),
    ],
)
def test_pointer(pointing: Rubric, text: str, expected: dict[str, object]) -> None:
    assert parse_reply(pointing, text, {}).as_dict() == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"score": [8]}', {"scores": {"score": 8}}),
        ('{"score": 6}', {"scores": {"score": 6}}),
        ('{"score": {"score": 6}}', {"scores": {"score": 6}}),
        ('{"rating": 6}', {"scores": {"score": 6}}),
        ('{"score": [8], "rating": 8}', {"scores": {"score": 8}}),
        ('{"score": [8], "rating": 6}', {"error": "ambiguous"}),
        ('{"score": [8, 9]}', {"error": "wrong_type"}),
        ('{"rating": [6, 7]}', {"error": "wrong_type"}),
        ('{"value": 6}', {"error": "missing_key"}),
    ],
)
def test_places_to_choose_from(pointing: Rubric, text: str, expected: dict[str, object]) -> None:
    dimension = Dimension("score", ("score",), 0, 10, None, "score[0]", ("score", "rating"))
    several = replace(pointing, variants={None: Variant(None, None, None, (dimension,))})
    assert parse_reply(several, text, {}).as_dict() == expected


def test_two_pointers_into_one_list(pointing: Rubric) -> None:
    dimensions = tuple(Dimension(key, (key,), 0, 10, None, f"score[{index}]") for index, key in enumerate(("first", "second")))
    two = replace(pointing, variants={None: Variant(None, None, None, dimensions)})
    assert parse_reply(two, '{"score": [8, 9]}', {}).as_dict() == {"scores": {"first": 8, "second": 9}}
    assert parse_reply(two, '{"score": [8]}', {}).as_dict() == {"error": "wrong_type"}


def test_real_judgements(pointing: Rubric, needs_salon_data: Path) -> None:
    lines = (needs_salon_data / "viescore_t2i" / "gpt4o_judgements.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["aspect"] == "SC"]
    assert len(rows) == 982
    for row in rows:
        found = parse_reply(pointing, json.dumps({"score": row["score"], "reasoning": row["reasoning"]}), {})
        if len(row["score"]) == 1:
            assert isinstance(found, ReadScores)
            assert found.scores == {"score": row["score"][0]}
        else:
            assert found.as_dict() == {"error": "wrong_type"}
