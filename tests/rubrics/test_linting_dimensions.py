"""Lint: dimensions that replies could not be read by, or not as their writer means, are told before a judge is paid.

And what is a remark, or no problem at all.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from rubrics.linting import lint
from rubrics.linting_messages import remarks
from rubrics.loading import load_rubric
from schemas.errors import RubricError

Write = Callable[..., Path]
ITEMS = """\
id = "listed"
version = "1"
title = "Items"
source = "written for the tests"
prompt = "prompt.txt"
reply = "{reply}"
needs = [{needs}"image"]
unit = ["image"]
{scale}
[[dimensions]]
key = "answer"
[items]
column = "items"
asked = "{asked}"
texts = {{ question = {{ each = "{{question}}" }} }}
[[figures]]
key = "score"
{figure}
[[messages]]
role = "user"
parts = [{{ kind = "template" }}, {{ kind = "image" }}]
"""
YES_NO = "answers = { yes = 1, no = 0 }"


@pytest.fixture
def listed(tmp_path: Path) -> Callable[..., Path]:
    """Writes a rubric of items and returns its folder."""

    def write(
        *,
        reply: str = "answer",
        asked: str = "each",
        scale: str = YES_NO,
        figure: str = 'form = "mean"',
        needs: str = '"items", ',
    ) -> Path:
        folder = tmp_path / "listed"
        folder.mkdir()
        declared = ITEMS.format(reply=reply, asked=asked, scale=scale, figure=figure, needs=needs)
        (folder / "rubric.toml").write_text(declared)
        (folder / "prompt.txt").write_text("{question} answer")
        return folder

    return write


@pytest.mark.parametrize("reply", ["answer", "json", "label", "bracket"])
def test_one_answer_is_not_asked_for_of_items_together(listed: Callable[..., Path], reply: str) -> None:
    problems = lint(load_rubric(listed(reply=reply, asked="together")))
    assert any(f"reply = {reply!r} is a single answer, but items asked together have one each" in one for one in problems), (
        problems
    )


@pytest.mark.parametrize(("reply", "asked"), [("answer", "each"), ("lines", "together"), ("list", "together")])
def test_items_that_can_be_answered_have_no_problem(listed: Callable[..., Path], reply: str, asked: str) -> None:
    assert lint(load_rubric(listed(reply=reply, asked=asked))) == []


def test_the_column_of_items_is_a_needed_one(listed: Callable[..., Path]) -> None:
    assert lint(load_rubric(listed(needs=""))) == ["items.column names 'items', which is not in needs; add it there"]


TRUTH = 'key = "truth"\nlabels = ["truth"]'
ALIKE = {
    "case": 'key = "truth"\nlabels = ["Beauty"]',
    "a hyphen and a blank": 'key = "truth"\nlabels = ["beau-ty"]',
    "a key": 'key = "b_eauty"\nlabels = ["truth"]',
}


@pytest.mark.parametrize("case", ALIKE)
def test_labels_that_a_reader_does_not_tell_apart_are_found(write_rubric: Write, case: str) -> None:
    folder = write_rubric((TRUTH, ALIKE[case]), prompt="Judge beauty and truth (Beauty, beau-ty) of this: ")
    assert any(
        "have the same label or key ('beauty') when case, blanks, hyphens and _ are ignored" in one
        for one in lint(load_rubric(folder))
    )


def test_pointers_may_take_several_numbers_of_one_list(write_rubric: Write) -> None:
    pointed = [('labels = ["beauty"]', 'labels = ["beauty"]\nat = "score[0]"'), (TRUTH, TRUTH + '\nat = "score[1]"')]
    assert lint(load_rubric(write_rubric(*pointed))) == []


@pytest.mark.parametrize(
    ("scale", "is_found"),
    [
        ("{ min = 0.5, max = 10, step = 1 }", True),
        ("{ min = 0.5, max = 10 }", False),
        ("{ min = -3, max = 10, step = 1 }", False),
    ],
)
def test_whole_numbers_begin_at_a_whole_number(write_rubric: Write, scale: str, is_found: bool) -> None:
    problems = lint(load_rubric(write_rubric(("{ min = 0, max = 10 }", scale))))
    told = [one for one in problems if "whole numbers (step = 1) and a scale that begins at 0.5" in one]
    assert bool(told) == is_found, problems


@pytest.mark.parametrize(
    ("figure", "message"),
    [
        (
            'form = "share"\nat_least = 7',
            r"at_least = 7 separates no scores of 'answer', whose scale is 0 to 1; write a number above 0",
        ),
        ('form = "all"\nat_least = 0', r"at_least = 0 separates no scores of 'answer'"),
        ('form = "share"\nat_least = 1', None),
        ('form = "share"\nat_least = 0.5', None),
    ],
)
def test_from_where_a_score_counts_lies_on_its_scale(listed: Callable[..., Path], figure: str, message: str | None) -> None:
    folder = listed(figure=figure)
    if message is None:
        assert lint(load_rubric(folder)) == []
    else:
        with pytest.raises(RubricError, match=message):
            load_rubric(folder)


UNSEEN = {
    "byte order mark": ("\ufeff", "prompt.txt has a byte order mark, which is sent as it is; remove it unless it is intended"),
    "NUL": ("\0\0", "prompt.txt has a NUL character 2 times, which is sent as it is; remove it unless it is intended"),
    "CRLF": ("\r\n", "prompt.txt has a Windows line ending (CRLF), which is sent as it is; remove it unless it is intended"),
    "nothing": (" ", None),
}


@pytest.mark.parametrize("case", UNSEEN)
def test_what_nobody_sees_in_a_prompt_is_a_remark(write_rubric: Write, case: str) -> None:
    sign, remark = UNSEEN[case]
    folder = write_rubric()
    (folder / "prompt.txt").write_bytes(f"{sign}Judge beauty and truth, in JSON, of this: ".encode())
    rubric = load_rubric(folder)
    assert lint(rubric) == []
    assert list(remarks(rubric)) == ([remark] if remark else [])


@pytest.mark.parametrize(("declared", "n"), [("{}", 1), ("{ min_mass = 0.5 }", 0)])
def test_a_probability_of_any_mass_is_a_remark(listed: Callable[..., Path], declared: str, n: int) -> None:
    said = list(remarks(load_rubric(listed(scale=f"{YES_NO}\nprobability = {declared}"))))
    assert said == ["probability of 'answer' has no min_mass: any mass on the answers counts; set one, such as 0.5"] * n


@pytest.mark.parametrize(("field", "n"), [("questoin", 1), ("question", 0), ("prompt_of_it", 0), ("ask", 0)])
def test_a_field_of_items_that_looks_misspelt_is_a_remark(listed: Callable[..., Path], field: str, n: int) -> None:
    """Of their own, items may have any."""
    folder = listed()
    declared = (folder / "rubric.toml").read_text().replace('each = "{question}"', f'each = "{{{field}}}"')
    (folder / "rubric.toml").write_text(declared)
    rubric = load_rubric(folder)
    assert lint(rubric) == []
    said = f"items.texts.question takes {{{field}}} from each item, which looks like a misspelling of 'question'"
    assert list(remarks(rubric)) == [said] * n


def test_a_brace_that_is_text_can_be_written(write_rubric: Write) -> None:
    template = ('    { kind = "prompt" },\n', '    { kind = "template" },\n')
    (problem,) = lint(load_rubric(write_rubric(template, prompt="Judge beauty and truth {x} of this: ")))
    assert problem.endswith("If it is literal text, put blanks inside its braces: { x }")
    text = 'Judge beauty and truth { x } {"score": 1} {0} of this: '
    assert lint(load_rubric(write_rubric(template, prompt=text))) == []


CLASHES = {
    "scale and answers": (
        YES_NO + "\nscale = { min = 1, max = 5 }",
        "scale is 1 to 5 and the answers beside it are 0 to 1: their",
    ),
    "answered and not applicable": (YES_NO + '\nnot_applicable = ["NO"]', "'NO' is in answers, with a number, and in not_appl"),
}


@pytest.mark.parametrize("case", CLASHES)
def test_what_cannot_both_be_meant_is_refused(listed: Callable[..., Path], case: str) -> None:
    scale, message = CLASHES[case]
    with pytest.raises(RubricError, match=message):
        load_rubric(listed(scale=scale))


def test_a_scale_that_says_what_the_answers_do_is_no_clash(listed: Callable[..., Path]) -> None:
    assert lint(load_rubric(listed(scale=YES_NO + "\nscale = { min = 0, max = 1 }"))) == []
