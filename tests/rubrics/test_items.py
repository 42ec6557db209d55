"""Items: which lists cannot be asked, and replies that answer several, of which each answer must be the item's own."""

import json
from pathlib import Path
from typing import Any

import pytest

from rubrics.items import BadItems, items_of
from rubrics.loading import load_rubric
from rubrics.model import Dimension, Rubric
from rubrics.replies.item_forms import read_lines, read_list

YES_NO = Dimension("answer", ("answer",), 0, 1, answers=(("yes", 1.0), ("no", 0.0)))
NUMBER = Dimension("answer", ("answer",), 0, 10)
TWO = [{"id": "a", "text": "Is it red?"}, {"id": "b", "text": "Is it big?"}]
DECLARED = """\
id = "asked"
version = "1"
title = "Items"
source = "written for the tests"
prompt = "prompt.txt"
reply = "lines"
needs = ["items", "image"]
unit = ["items"]
{scale}
[[dimensions]]
key = "answer"
[items]
column = "items"
asked = "together"
texts = {{ questions = {{ each = "{{question}}" }} }}
[[figures]]
key = "score"
form = "mean"
[[messages]]
role = "user"
parts = [{{ kind = "template" }}, {{ kind = "image" }}]
"""


def rubric_of(folder: Path, scale: str = "answers = { yes = 1, no = 0 }") -> Rubric:
    (folder / "asked").mkdir()
    (folder / "asked" / "rubric.toml").write_text(DECLARED.format(scale=scale))
    (folder / "asked" / "prompt.txt").write_text("{questions}")
    return load_rubric(folder / "asked")


@pytest.mark.parametrize(
    ("reply", "dimension", "said"),
    [
        ("1.5\n2.5", NUMBER, [1.5, 2.5]),
        ("- 7.5\n- 3.5", NUMBER, [7.5, 3.5]),
        ("1. 7.5\n2. 3", NUMBER, [7.5, 3]),
        ("0) 7.5\n1) 3", NUMBER, [7.5, 3]),
        ("4: 2, since it has two legs\n3: 1, since one is cut", NUMBER, ["ambiguous", "ambiguous"]),
        ("1. yes\n2. no\n\nOnce more:\n1. yes\n2. no", YES_NO, [1, 0]),
        ("1. yes\n2. no\n\nOnce more:\n1. no\n2. no", YES_NO, "ambiguous"),
        ("1. yes\n1. no\n2. yes", YES_NO, "ambiguous"),
    ],
)
def test_lines(reply: str, dimension: Dimension, said: object) -> None:
    assert read_lines(reply, dimension, TWO) == said


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("<answer>[yes, no]</answer>", [1, 0]),
        ("<answer>[yes, no,]</answer>", [1, 0]),
        ("<answer>[yes,, no]</answer>", "missing_key"),
        ("<answer>[, yes, no]</answer>", "missing_key"),
        ('[{"id": "b", "answer": "yes"}, {"id": "a", "answer": "no"}]', [0, 1]),
        ('[{"question": "Is it big?", "answer": "yes"}, {"question": "Is it red?", "answer": "no"}]', [0, 1]),
        ('[{"id": "a", "question": "big?", "answer": "yes"}, {"id": "b", "question": "red?", "answer": "no"}]', [1, 0]),
        ('[{"id": "b", "question": "big?", "answer": "yes"}, {"id": "a", "question": "red?", "answer": "no"}]', "malformed"),
        ('[{"index": 0, "answer": "yes"}, {"index": 1, "answer": "no"}]', [1, 0]),
        ('[{"index": 1, "answer": "yes"}, {"index": 2, "answer": "no"}]', [1, 0]),
        ('[{"index": 2, "answer": "yes"}, {"index": 1, "answer": "no"}]', "malformed"),
        ('[{"id": "a", "answer": "yes"}, {"id": "a", "answer": "no"}]', "malformed"),
        ('[{"id": "b", "answer": "yes"}, {"id": "c", "answer": "no"}]', "malformed"),
    ],
)
def test_lists(reply: str, said: object) -> None:
    assert read_list(reply, YES_NO, TWO, is_cut=False) == said


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("\ud800", "not JSON"),
        ({"question": "?", "id": "\udfff"}, "not JSON"),
        ({"question": "?", "id": ""}, "no usable id"),
        ({"question": "?", "id": []}, "no usable id"),
        ({"question": "?", "id": "a" * 201}, "no usable id"),
        ({"question": " ", "kind": "thing"}, "no text for question"),
        ({"text": "Is it red?"}, "no text for question"),
        ({"question": "?", "expected": "yeah"}, "expects 'yeah'"),
        ({"question": "?", "expected": ""}, "empty answer"),
        ({"question": "?", "expected": "red", "choices": ["red", " "]}, "empty answer"),
        ({"question": "?", "expected": "red", "choices": ["blue", "green"]}, "expects 'red'"),
    ],
)
def test_a_list_that_cannot_be_asked_or_would_give_one_score_whatever_is_said(item: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(BadItems, match=message):
        items_of(rubric_of(tmp_path), {"items": json.dumps([item])})


def test_an_expected_answer_needs_others_beside_it(tmp_path: Path) -> None:
    rubric = rubric_of(tmp_path, "scale = { min = 0, max = 9 }")
    with pytest.raises(BadItems, match="names no others"):
        items_of(rubric, {"items": '[{"question": "?", "expected": "3"}]'})
    (item,) = items_of(rubric, {"items": '[{"question": "?", "expected": " RED", "choices": ["red", "blue"]}]'})
    assert item.expected == (" RED",)
