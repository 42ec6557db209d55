"""Replies whose answers are words, letters or marks by a declared map; what is not applicable."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rubrics.linting import lint
from rubrics.loading import load_rubric
from rubrics.replies.read import parse_reply
from schemas.errors import RubricError

HEAD = """\
id = "{id}"
version = "1"
title = "Words"
source = "written for the tests"
prompt = "prompt.txt"
reply = "{reply}"
needs = ["prompt", "image"]
unit = ["prompt"]
{more}
[[messages]]
role = "user"
parts = [{{ kind = "template" }}, {{ kind = "image" }}]
"""
YES_NO = 'answers = { yes = 1, no = 0 }\nnot_applicable = ["N/A", "not applicable"]\n[[dimensions]]\nkey = "answer"'
LETTERS = 'answers = { A = 1, B = 0, C = 0.5 }\n[[dimensions]]\nkey = "answer"'
GRADES = 'answers = { A = 3, B = 2, C = 1, D = 0 }\n[[dimensions]]\nkey = "answer"'
MARKS = 'answers = { "[[A]]" = 1, "[[B]]" = 0 }\n[[dimensions]]\nkey = "answer"'
TWO = """\
scale = { min = 0, max = 2, step = 1 }
not_applicable = ["N/A"]
[[dimensions]]
key = "style"
labels = ["Style"]
[[dimensions]]
key = "verdict"
labels = ["Verdict"]
answers = { PASS = 1, FAIL = 0 }"""
NA = {"scores": {}, "not_applicable": ["answer"]}


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    def write(reply: str, more: str, prompt: str = "{prompt}: yes or no? Style, Verdict") -> Path:
        folder = tmp_path / "words"
        folder.mkdir()
        (folder / "rubric.toml").write_text(HEAD.format(id="words", reply=reply, more=more))
        (folder / "prompt.txt").write_text(prompt)
        return folder

    return write


@pytest.mark.parametrize(
    ("answers", "reply", "expected"),
    [
        (YES_NO, "yes", 1),
        (YES_NO, " No!\n", 0),
        (YES_NO, "**YES.**", 1),
        (YES_NO, '"no"', 0),
        (YES_NO, "no picnic bench", "not_found"),
        (YES_NO, "Yes - it is on the left, no doubt about it.", 1),
        (YES_NO, "The answer is yes.", 1),
        (YES_NO, "The sky is dark.\n\nAnswer: no", 0),
        (YES_NO, "The sky is dark.\n\nno", 0),
        (YES_NO, "\\boxed{yes}", 1),
        (YES_NO, "<think>no?</think>\nyes", 1),
        (YES_NO, "n/a", NA),
        (YES_NO, "Not applicable.", NA),
        (YES_NO, "yeah", "not_found"),
        (YES_NO, "y", "not_found"),
        (YES_NO, "yesterday", "not_found"),
        (YES_NO, "not visible", "not_found"),
        (YES_NO, "No idea.", "not_found"),
        (YES_NO, "maybe", "not_found"),
        (YES_NO, "1", "not_found"),
        (YES_NO, "yes and no", "ambiguous"),
        (YES_NO, "yes/no", "ambiguous"),
        (YES_NO, "yes or no", "ambiguous"),
        (YES_NO, "Yes, no.", "ambiguous"),
        (YES_NO, "Yes?", "ambiguous"),
        (YES_NO, "Yes\nNo", "ambiguous"),
        (YES_NO, "Yes. Actually, no.", "ambiguous"),
        (YES_NO, "Answer: yes\nAnswer: no", "ambiguous"),
        (YES_NO, "yes or N/A", "ambiguous"),
        (YES_NO, "no\n<1000000", "malformed"),
        (YES_NO, "I can't see any image.", "missing_input"),
        (YES_NO, "I'm sorry, but I can't help with that.", "refusal"),
        (YES_NO, "", "empty"),
        (LETTERS, "A", 1),
        (LETTERS, "(B)", 0),
        (LETTERS, "C) neither", 0.5),
        (LETTERS, "A surfer stands there.", "not_found"),
        (LETTERS, "A or B", "ambiguous"),
        (LETTERS, "D", "not_found"),
        (GRADES, "A-", "not_found"),
        (GRADES, "**B-**", "not_found"),
        (GRADES, "Answer: B-", "not_found"),
        (GRADES, "A\N{MINUS SIGN}", "not_found"),
        (GRADES, "A\N{EN DASH}", "not_found"),
        (GRADES, "B+", "not_found"),
        (GRADES, "A- because of the hat", "not_found"),
        (GRADES, "The hat is off.\n\nB-", "not_found"),
        (GRADES, "A - the hat is there", 3),
        (GRADES, "A\N{EM DASH} the hat is there", 3),
        (GRADES, "A\N{EN DASH} the hat is there", 3),
        (GRADES, "B--the hat is off", 2),
        (GRADES, "B) - the hat is off", 2),
        (GRADES, "A->B", "ambiguous"),
        (GRADES, "B because the hat is missing.", 2),
        (GRADES, "**B** because the hat is missing.", 2),
        (GRADES, "Answer: C because the hat is missing.", 1),
        (GRADES, "D since nothing fits.", 0),
        (GRADES, "B as the hat is missing", 2),
        (GRADES, "B due to the hat", 2),
        (GRADES, "A given that all is there", 3),
        (GRADES, "A given image", "not_found"),
        (GRADES, "A due date is shown", "not_found"),
        (GRADES, "A as-yet unseen cat", "not_found"),
        (GRADES, "B because of it\nC", "ambiguous"),
        (MARKS, "The first is sharper, so [[A]].", 1),
        (MARKS, "[[A]] at first, but [[B]]", "ambiguous"),
        (MARKS, "A", "not_found"),
    ],
)  # fmt: skip
def test_an_answer_is_taken_where_it_is_one(written: Callable[..., Path], answers: str, reply: str, expected: object) -> None:
    said = parse_reply(load_rubric(written("answer", answers)), reply, {}).as_dict()
    if isinstance(expected, dict):
        assert said == expected
    else:
        assert said == ({"error": expected} if isinstance(expected, str) else {"scores": {"answer": expected}})


def test_an_answer_that_was_cut_may_have_gone_on(written: Callable[..., Path]) -> None:
    rubric = load_rubric(written("answer", YES_NO))
    assert parse_reply(rubric, "no", {"finish_reason": "length"}).as_dict() == {"error": "truncated"}
    assert parse_reply(rubric, "no, there is", {"finish_reason": "length"}).as_dict() == {"scores": {"answer": 0}}


@pytest.mark.parametrize(
    ("form", "reply", "expected"),
    [
        ("label", "Style: 2\nVerdict: pass", {"scores": {"style": 2, "verdict": 1}}),
        ("label", "Style: N/A\nVerdict: FAIL, too dark", {"scores": {"verdict": 0}, "not_applicable": ["style"]}),
        ("label", "Style: N/A\nVerdict: N/A", {"scores": {}, "not_applicable": ["style", "verdict"]}),
        ("label", "Style: 2\nVerdict: good", {"error": "wrong_type"}),
        ("label", "Style: 2\nVerdict: PASS or FAIL", {"error": "ambiguous"}),
        ("label", "Style: N/A\nStyle: 2\nVerdict: PASS", {"error": "ambiguous"}),
        ("json", '{"Style": 1, "Verdict": "PASS"}', {"scores": {"style": 1, "verdict": 1}}),
        ("json", '{"Style": "N/A", "Verdict": "Fail"}', {"scores": {"verdict": 0}, "not_applicable": ["style"]}),
        ("json", '{"Style": {"score": 1, "why": "so"}, "Verdict": 1}', {"error": "wrong_type"}),
        ("bracket", "[Style: 0; Verdict: PASS]", {"scores": {"style": 0, "verdict": 1}}),
    ],
)  # fmt: skip
def test_words_in_the_other_forms_and_what_does_not_apply_costs_nothing_else(
    written: Callable[..., Path], form: str, reply: str, expected: object
) -> None:
    rubric = load_rubric(written(form, TWO))
    assert lint(rubric) == []
    found = parse_reply(rubric, reply, {})
    assert found.as_dict() == expected
    for key, (start, end) in getattr(found, "spans", {}).items():
        assert reply[start:end].strip('"').lower() in {"0", "1", "2", "pass", "fail"} or key == "verdict"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("N/A (no text)", "not applicable"),
        ("N/A - no text", "not applicable"),
        ("N/A, no text", "not applicable"),
        ("N/A. No text is asked for.", "not applicable"),
        ("N/A because there is no text", "not applicable"),
        ("N/A: no text", "not applicable"),
        ("**N/A** (no text)", "not applicable"),
        ("1 (no text)", 1),
        ("N/A (would be 2)", "wrong_type"),
        ("N/A, but 2", "wrong_type"),
        ("N/A/2", "template_echo"),
        ("N/A or a bit", "wrong_type"),
        ("N/A text", "wrong_type"),
        ("no text, N/A", "wrong_type"),
    ],
)  # fmt: skip
def test_a_reason_may_follow_what_does_not_apply(written: Callable[..., Path], value: str, said: object) -> None:
    """As one may follow a number: in text, without another digit."""
    found = parse_reply(load_rubric(written("label", TWO)), f"Style: {value}\nVerdict: PASS", {}).as_dict()
    scores = {"verdict": 1} if said == "not applicable" else {"style": said, "verdict": 1}
    aside = {"not_applicable": ["style"]} if said == "not applicable" else {}
    assert found == ({"error": said} if said in ("wrong_type", "template_echo") else {"scores": scores, **aside})


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ('answers = { yes = 1 }\n[[dimensions]]\nkey = "a"', "at least 2"),
        ('answers = { yes = 1, no = 1 }\n[[dimensions]]\nkey = "a"', "every answer is 1"),
        ('answers = { yes = 1, Yes = 0 }\n[[dimensions]]\nkey = "a"', "'yes' twice"),
        ('[[dimensions]]\nkey = "a"\nanswers = { yes = 1, no = 0 }\nscale = { min = 0, max = 1 }', "are the scale"),
        ('answers = { yes = "1", no = 0 }\n[[dimensions]]\nkey = "a"', "is not a number; write one, without"),
        ('[[dimensions]]\nkey = "a"', "or answers = { yes = 1, no = 0 }"),
    ],
)  # fmt: skip
def test_what_is_no_map_of_answers(written: Callable[..., Path], answers: str, message: str) -> None:
    with pytest.raises(RubricError, match=message):
        load_rubric(written("answer", answers))


@pytest.mark.parametrize("unit", ["yes ", "yes\n", "no, yes. ", "Answer: ", "and no ", "* ", "yes/no ", "( ", "<b>", "actually "])
def test_a_long_reply_is_no_answer_and_ends(written: Callable[..., Path], unit: str) -> None:
    said = parse_reply(load_rubric(written("answer", YES_NO)), "yes " + unit * (1_000_000 // len(unit)), {}).as_dict()
    assert said == {"error": "malformed"}
