"""Lint: a remark where a prompt tells the judge otherwise than its rubric reads, and none where it does not."""

from pathlib import Path

import pytest

from rubrics.linting import lint
from rubrics.linting_messages import remarks
from rubrics.loading import SHIPPED, list_rubrics, load_rubric
from rubrics.replies.read import parse_reply
from rubrics.replies.remedies import remedy
from schemas.records import Unreadable

RUBRIC = """\
id = "mine"
version = "1"
title = "t"
source = "written for the tests"
prompt = "prompt.txt"
reply = "{reply}"
needs = ["prompt", "image"]
unit = ["prompt"]
{scale}
[[dimensions]]
key = "score"
labels = ["Score"]
{more}
[[messages]]
role = "user"
parts = [{{ kind = "template" }}, {{ kind = "image" }}]
"""
FIVE = "scale = { min = 1, max = 5, step = 1 }"
WORDS = "answers = { good = 1, bad = 0 }"
MEAN = '[[figures]]\nkey = "f"\nform = "mean"\nof = ["score", "score"]'


def written(folder: Path, prompt: str, reply: str = "label", scale: str = FIVE, more: str = "") -> Path:
    folder = folder / "mine"
    folder.mkdir()
    (folder / "rubric.toml").write_text(RUBRIC.format(reply=reply, scale=scale, more=more))
    (folder / "prompt.txt").write_text(prompt + "\n{prompt}")
    return folder


@pytest.mark.parametrize(
    ("prompt", "declared", "said"),
    [
        pytest.param("Score: n, from 1 to 5", {}, None, id="as it should be"),
        pytest.param("Score: n, from 0 to 10", {}, "states the scale 0 to 10, but 'score' has 1 to 5", id="a span"),
        pytest.param("Score: X/100", {}, "states the scale / 100", id="a top"),
        pytest.param("Score: 1-10", {}, "states the scale 1 to 10", id="a span with a dash"),
        pytest.param("Score: n. Keep to 2 or 3 sentences. Not 3/4 view", {}, None, id="numbers that are no scale"),
        pytest.param("good or bad", {"reply": "answer", "scale": WORDS}, None, id="answers told"),
        pytest.param("great or bad", {"reply": "answer", "scale": WORDS}, "does not name the answers 'good'", id="one not told"),
        pytest.param(
            "a fine one? B", {"reply": "answer", "scale": "answers = { A = 1, B = 0 }"}, "the answers 'A'", id="an article"
        ),
        pytest.param("Is it?", {"reply": "answer", "scale": "answers = { yes = 1, no = 0 }"}, None, id="yes and no are evident"),
        pytest.param(
            "Score: n", {"scale": FIVE + '\nnot_applicable = ["skip"]'}, "no word of not_applicable of 'score'", id="aside"
        ),
        pytest.param("Score: n", {"scale": FIVE + '\nnot_applicable = ["N/A"]'}, None, id="N/A is evident"),
        pytest.param('{"Score": 3}', {}, "shows a JSON object, but reply = 'label' does not read one", id="JSON, not read"),
        pytest.param("Score: n", {"reply": "json"}, "shows no JSON", id="JSON, not shown"),
        pytest.param('{"Score": 3, "why": "a text"}', {"reply": "json"}, None, id="a key that is no dimension's"),
        pytest.param('{"Score": 1-5, "Style": 1-5}', {"reply": "json"}, "asks for 'Style'", id="a criterion that none has"),
        pytest.param("Score: n, such as 3,5", {}, "writes '3,5'", id="decimal comma"),
        pytest.param("Score: n, of 1,000 pictures, or 1,2,3", {}, None, id="other commas"),
        pytest.param("Score: ５", {}, "writes '５'", id="full-width digit"),
        pytest.param("Score: n\n{{prompt}}", {}, "'{{prompt}}', of which {prompt} is filled", id="Jinja"),
        pytest.param("Score: n\n${prompt}", {}, "'${prompt}', of which {prompt} is filled", id="shell"),
        pytest.param("Score: n", {"more": MEAN}, "figure 'f' names 'score' 2 times", id="twice in a figure"),
    ],
)
def test_what_a_prompt_says_otherwise_is_a_remark(
    tmp_path: Path, prompt: str, declared: dict[str, str], said: str | None
) -> None:
    rubric = load_rubric(written(tmp_path, prompt, **declared))
    assert lint(rubric) == []
    found = list(remarks(rubric))
    assert len(found) == (said is not None)
    assert not found or str(said) in found[0]


def test_no_shipped_rubric_nor_starter_has_a_remark() -> None:
    starters = [load_rubric(one.parent) for one in (SHIPPED / "starters").glob("*/rubric.toml")]
    assert len(starters) > 4
    assert [remark for rubric in [*list_rubrics([SHIPPED]), *starters] for remark in remarks(rubric)] == []


def test_a_whole_number_s_scale_ends_at_one(tmp_path: Path) -> None:
    (said,) = lint(load_rubric(written(tmp_path, "Score: n", scale="scale = { min = 1, max = 5.5, step = 1 }")))
    assert "ends at 5.5" in said


@pytest.mark.parametrize("reply", ["Score: 3,5", "Score: ５"])
def test_what_a_reply_with_such_digits_becomes_is_what_is_said_of_it(tmp_path: Path, reply: str) -> None:
    rubric = load_rubric(written(tmp_path, reply))
    (remark,) = remarks(rubric)
    read = parse_reply(rubric, reply, {})
    assert isinstance(read, Unreadable)
    assert f"({read.reason.value})" in remark
    assert "neither 7,5 nor ７" in remedy(read.reason, 3, {})
