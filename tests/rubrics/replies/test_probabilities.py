"""Scores that are probabilities of answers, from the token probabilities a reply came with."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rubrics.linting import lint
from rubrics.loading import load_rubric
from rubrics.model import Rubric
from rubrics.replies.jsonl import parse_jsonl
from rubrics.replies.read import parse_reply
from schemas.errors import RubricError
from schemas.records import ReadScores, Unreadable
from schemas.statuses.rows import ParseReason

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
        (YES_NO, logprobs({"yes": 0.98}, {",": 0.9}, {" yes": 0.4, " no": 0.6}), 0.98),
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
    """The text says something else throughout: no number is read from it."""
    found = parse_reply(soft(more), "no idea", {"logprobs_json": given})
    if isinstance(expected, str):
        assert found.as_dict() == {"error": expected}
    else:
        assert isinstance(found, ReadScores)
        assert found.scores["answer"] == pytest.approx(expected, abs=1e-12)
        assert found.notes["answer"].startswith("probability ")


def spoken(text: str) -> str:
    """The probabilities of a judge that was sure of each of its words."""
    return logprobs(*({piece: 1.0} for piece in re.findall(r"\s*(?:\w+|[^\w\s])", text)))


ANY_MASS = "answers = { yes = 1, no = 0 }\nprobability = {}"
LETTERS = "answers = { A = 1, B = 0 }\nprobability = {}"
SIDE = 'not_applicable = ["N/A", "cannot tell"]\n'
SAID = {
    "a bare no": (ANY_MASS, "No", 0.0),
    "a no of the picture": (ANY_MASS, "No, there is no cup in the image.", 0.0),
    "a yes with a reason": (ANY_MASS, "Yes. The image shows a cup.", 1.0),
    "in bold": (ANY_MASS, "**Yes**", 1.0),
    "a letter with its words": (LETTERS, "A) a red cup", 1.0),
    "no image was provided": (YES_NO, "No image was provided.", "missing_input"),
    "no picture is attached": (ANY_MASS, "No picture is attached, please upload the image.", "missing_input"),
    "sees none": (ANY_MASS, "I don't see an image. Please upload it.", "missing_input"),
    "an answer beside it": (ANY_MASS, "Yes. But no image was provided, so this is a placeholder score.", "missing_input"),
    "declines": (ANY_MASS, "I'm sorry, I can't help with that.", "refusal"),
    "declines, thinking first": (ANY_MASS, "<think>no</think>I cannot assist with that.", "refusal"),
    "another word": (ANY_MASS, "maybe", "not_found"),
    "not applicable, undeclared": (ANY_MASS, "N/A", "not_found"),
    "no idea": (ANY_MASS, "No idea.", "not_found"),
    "no-one": (ANY_MASS, "No-one is there.", "not_found"),
    "an article": (LETTERS, "A surfer rides a wave.", "not_found"),
    "a letter compared with another": (LETTERS, "A is better than B.", "ambiguous"),
    "a letter or another": (LETTERS, "A or B", "ambiguous"),
    "a letter that begins a phrase, then one": (LETTERS, "A surfer is on the left, so B.", "ambiguous"),
    "one beside another": (LETTERS, "A/B", "ambiguous"),
    "a letter that is no word": (LETTERS, "B because the left one is blurry", 0.0),
    "part of a word, then an answer": (ANY_MASS, "Nothing speaks against it: yes.", 1.0),
    "thinking that never ended": (ANY_MASS, "<think>yes", "truncated"),
    "thought no, answered yes": (ANY_MASS, "<think>no</think>yes", 1.0),
    "not applicable": (SIDE + ANY_MASS, "N/A", None),
    "not applicable in words": (SIDE + YES_NO, "Cannot tell.", None),
    "not applicable beside an answer": (SIDE + ANY_MASS, "Yes.\nN/A", "ambiguous"),
    "in doubt, with no word of it": (SIDE + ANY_MASS, "Yes?", 1.0),
    "an answer where some do not apply": (SIDE + ANY_MASS, "No.", 0.0),
}


@pytest.mark.parametrize("case", SAID)
def test_what_the_text_says_of_itself_comes_before_its_probabilities(soft: Callable[[str], Rubric], case: str) -> None:
    more, text, expected = SAID[case]
    found = parse_reply(soft(more), text, {"logprobs_json": spoken(text)}).as_dict()
    if expected is None:
        assert found == {"scores": {}, "not_applicable": ["answer"]}
    else:
        assert found == ({"error": expected} if isinstance(expected, str) else {"scores": {"answer": expected}})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (logprobs({"No": 0.9}, {"thing": 1.0}), "not_found"),
        (logprobs({"pia": 0.9}, {"no": 1.0}, {".": 1.0}), "not_found"),
        (logprobs({"Sure": 0.9, "maybe": 0.1}), "not_found"),
        (logprobs({"Sure": 0.9, "yes": 0.02}), 0.02),
        (logprobs({"No": 0.15}), "not_found"),
        (logprobs({"No": 0.6}), "not_found"),
        (logprobs({"No": 0.99}), 0.0),
        (logprobs({"Yes": 0.6}), "not_found"),
        (logprobs({"Yes": 0.99}), 0.99),
        (logprobs({"No": 0.6, "maybe": 0.2, "none": 0.01}), 0.0),
        (logprobs({"No": 0.6, "maybe": 0.2, "none": 0.01})[:-4] + ', {"token": "yes", "logprob": null}]}]}', "not_found"),
        (logprobs({"No": 0.9, "yes": 0.9}), "not_found"),
    ],
    ids=[
        "part of a word",
        "end of a word",
        "none on the answers",
        "little",
        "no alternatives",
        "the other answer may have the rest",
        "sure without alternatives",
        "other spellings may have the rest",
        "a sure yes",
        "the other answer is less likely than any given",
        "the other answer cannot be read",
        "shares of two questions",
    ],
)
def test_no_score_is_invented_where_no_least_mass_is_declared(
    soft: Callable[[str], Rubric], given: str, expected: object
) -> None:
    found = parse_reply(soft(ANY_MASS), "x", {"logprobs_json": given}).as_dict()
    assert found == ({"error": expected} if isinstance(expected, str) else {"scores": {"answer": pytest.approx(expected)}})


@pytest.mark.parametrize("mark", ["<|im_end|>", "<|eot_id|>", "<end_of_turn>", "</s>", "<｜end▁of▁sentence｜>"])
@pytest.mark.parametrize("between", ["", " ", "\n"])
def test_a_letter_before_the_mark_that_ends_a_reply_is_an_answer(soft: Callable[[str], Rubric], mark: str, between: str) -> None:
    tokens = [{"A": 0.75, "B": 0.25}, *([{between: 1.0}] if between else []), {mark: 1.0}]
    assert parse_reply(soft(LETTERS), "A", {"logprobs_json": logprobs(*tokens)}).as_dict() == {"scores": {"answer": 0.75}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [({"B": 0.55}, "not_found"), ({"B": 0.98}, 2.0), ({"B": 0.55, "A": 0.44, "x": 0.001}, 2 + 2 * 0.44 / 0.99),
     ({"A": 0.7, "B": 0.5, "C": 0.1}, "not_found"), ({"A": 0.505, "B": 0.5, "C": 0.005}, (4 * 0.505 + 2 * 0.5) / 1.01)],
    ids=["others may have the rest", "sure", "a third is less likely than any given", "shares of two questions", "rounded up"],
)  # fmt: skip
def test_a_normalised_score_is_of_all_answers_or_none(
    soft: Callable[[str], Rubric], given: dict[str, float], expected: object
) -> None:
    found = parse_reply(soft(GRADES), "x", {"logprobs_json": logprobs(given)}).as_dict()
    assert found == ({"error": expected} if isinstance(expected, str) else {"scores": {"answer": pytest.approx(expected)}})


def test_a_wrong_answer_is_zero_where_the_expected_one_alone_is_declared(soft: Callable[[str], Rubric]) -> None:
    more = (
        'scale = { min = 0, max = 1 }\nprobability = {}\n[items]\ncolumn = "prompt"\nasked = "each"\n'
        'fields = { expected = "right" }\ntexts = { question = { each = "{text}" } }\n'
        '[[figures]]\nkey = "score"\nform = "mean"'
    )
    rubric = soft(more)
    for text, expected in {"blue": {"scores": {"answer": 0.0}}, "I cannot assist with that.": {"error": "refusal"}}.items():
        context = {"logprobs_json": spoken(text), "items": [{"expected": ["red"]}]}
        assert parse_reply(rubric, text, context).as_dict() == expected


def test_a_line_may_hold_the_log_probabilities_and_says_where_it_lacks_them(soft: Callable[[str], Rubric]) -> None:
    """As an object, or as the text of one that a run keeps; a golden reply's context may, and lint names what it lacks."""
    rubric, given = soft(YES_NO), logprobs({"yes": 0.9, "no": 0.1})
    contexts = [{"logprobs_json": json.loads(given)}, {"logprobs_json": given}, {}, {"logprobs_json": {}}]
    lines = [json.dumps({"raw": "yes", "context": context}) for context in contexts]
    lacking = {"error": "not_found", "lacks": "logprobs_json"}
    assert [json.loads(line) for line in parse_jsonl(rubric, lines)] == [
        {"scores": {"answer": pytest.approx(0.9)}}, {"scores": {"answer": pytest.approx(0.9)}}, lacking, lacking,
    ]  # fmt: skip
    (unlikely,) = parse_jsonl(rubric, [json.dumps({"raw": "x", "context": {"logprobs_json": logprobs({"x": 0.9})}})])
    assert json.loads(unlikely) == {"error": "not_found"}
    golden = rubric.folder / "golden" / "replies.jsonl"
    golden.parent.mkdir()
    expects = [{"error": "not_found"}, lacking, {"scores": {"answer": 0.9}}]
    golden.write_text("".join(json.dumps({"raw": "yes", "context": {}, "expect": one}) + "\n" for one in expects))
    (problem,) = lint(rubric)
    assert problem.startswith("golden/replies.jsonl, line 3 is read as")
    assert problem.endswith("; its context lacks the log probabilities (logprobs_json)")


def test_a_whole_number_that_no_float_holds_is_no_logarithm(soft: Callable[[str], Rubric]) -> None:
    context = {"logprobs_json": {"content": [{"token": "yes", "logprob": -(10**400)}]}}
    assert parse_reply(soft(YES_NO), "yes", context) == Unreadable(ParseReason.NOT_FOUND)


def test_a_refusal_by_the_provider_comes_before_any_probability(soft: Callable[[str], Rubric]) -> None:
    context = {"logprobs_json": logprobs({"yes": 1.0}), "finish_reason": "content_filter"}
    assert parse_reply(soft(YES_NO), "yes", context).as_dict() == {"error": "refusal"}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("scale = { min = 0, max = 1 }\nprobability = { min_mass = 0.5 }", "give answers"),
        ("answers = { A = 4, B = 2 }\nprobability = { min_mass = 0.5 }", "write normalised = true"),
        ("answers = { yes = 1, no = 0 }\nprobability = { min_mass = 2 }", "less than or equal to 1"),
        ("answers = { yes = 1, no = 0 }\nprobability = { normalised = true }", "set min_mass"),
    ],
)
def test_what_is_no_probability(soft: Callable[[str], Rubric], more: str, message: str) -> None:
    with pytest.raises(RubricError, match=message):
        soft(more)
