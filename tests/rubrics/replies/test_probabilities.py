"""Scores that are probabilities of answers, from the token probabilities a reply came with."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rubrics.loading import load_rubric
from rubrics.model import Rubric
from rubrics.replies.read import parse_reply
from schemas.errors import RubricError
from schemas.records import ReadScores

HEAD = """\
id = "soft"
version = "1"
title = "Soft answers"
source = "written for the tests"
prompt = "prompt.txt"
reply = "answer"
needs = ["prompt", "image"]
unit = ["prompt"]
{more}
[[dimensions]]
key = "answer"
[[messages]]
role = "user"
parts = [{{ kind = "template" }}, {{ kind = "image" }}]
"""
YES_NO = "answers = { yes = 1, no = 0 }\nprobability = { min_mass = 0.5 }"
GRADES = "answers = { A = 4, B = 2, C = 0 }\nprobability = { normalised = true, min_mass = 0.25 }"


@pytest.fixture
def soft(tmp_path: Path) -> Callable[[str], Rubric]:
    def write(more: str) -> Rubric:
        folder = tmp_path / "soft"
        folder.mkdir()
        (folder / "rubric.toml").write_text(HEAD.format(more=more))
        (folder / "prompt.txt").write_text("{prompt}: yes or no?")
        return load_rubric(folder)

    return write


def logprobs(*tokens: dict[str, float]) -> str:
    """Each token's alternatives with their probabilities, the one that was said first."""
    listed = []
    for shares in tokens:
        top = [{"token": token, "logprob": math.log(share)} for token, share in shares.items()]
        listed.append(top[0] | {"top_logprobs": top})
    return json.dumps({"content": listed})


@pytest.mark.parametrize(
    ("more", "given", "expected"),
    [
        (YES_NO, logprobs({"Yes": 0.9, "No": 0.08}), 0.9),
        (YES_NO, logprobs({"Yes": 0.5, "yes": 0.2, " YES": 0.1, "no": 0.2}), 0.8),
        (YES_NO, logprobs({"No": 0.7, "Yes": 0.2}), 0.2),
        (YES_NO, logprobs({"\n": 0.99}, {"yes": 0.75, "no": 0.25}), 0.75),
        (YES_NO, logprobs({"Answer": 0.9}, {":": 1.0}, {" yes": 0.6, " no": 0.4}), 0.6),
        (YES_NO, logprobs({"yes": 0.3, "Sure": 0.6}), "not_found"),  # 0.3 on the answers, and 0.5 is declared
        (YES_NO, logprobs({"I": 0.8, "yes": 0.1}), "not_found"),
        (YES_NO, logprobs({"yes": 0.9}, {" or": 0.9}, {" no": 0.9}), "ambiguous"),
        (YES_NO, logprobs({"yes": 0.9}, {",": 0.9}, {" yes": 0.4, " no": 0.6}), 0.9),
        (YES_NO, None, "not_found"),
        (YES_NO, "null", "not_found"),
        (YES_NO, "{", "not_found"),
        (YES_NO, '{"content": [{"token": "yes"}]}', "not_found"),
        (YES_NO, '{"content": [{"token": "yes", "logprob": 3}]}', "not_found"),
        (YES_NO, '{"content": [{"token": "yes", "logprob": 0, "top_logprobs": null}]}', 1.0),
        (GRADES, logprobs({"A": 0.25, "B": 0.25, "X": 0.5}), 3.0),
        (GRADES, logprobs({"B": 0.5, "A": 0.25, "C": 0.25}), 2.0),
        (GRADES, logprobs({"A": 0.2, "X": 0.8}), "not_found"),
    ],
)
def test_the_score_is_the_expectation_over_the_declared_answers(
    soft: Callable[[str], Rubric], more: str, given: Any, expected: object
) -> None:
    """The text says something else throughout: it is not what is read."""
    found = parse_reply(soft(more), "no idea", {"logprobs_json": given})
    if isinstance(expected, str):
        assert found.as_dict() == {"error": expected}
    else:
        assert isinstance(found, ReadScores)
        assert found.scores["answer"] == pytest.approx(expected, abs=1e-12)
        assert found.notes["answer"].startswith("probability ")


def test_a_refusal_by_the_provider_comes_before_any_probability(soft: Callable[[str], Rubric]) -> None:
    context = {"logprobs_json": logprobs({"yes": 1.0}), "finish_reason": "content_filter"}
    assert parse_reply(soft(YES_NO), "yes", context).as_dict() == {"error": "refusal"}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("scale = { min = 0, max = 1 }\nprobability = { min_mass = 0.5 }", "give answers"),
        ("answers = { A = 4, B = 2 }\nprobability = { min_mass = 0.5 }", "say normalised = true"),
        ("answers = { yes = 1, no = 0 }\nprobability = { min_mass = 2 }", "less than or equal to 1"),
        ("answers = { yes = 1, no = 0 }\nprobability = { normalised = true }", "state min_mass"),
    ],
)
def test_what_is_no_probability(soft: Callable[[str], Rubric], more: str, message: str) -> None:
    with pytest.raises(RubricError, match=message):
        soft(more)
