"""Lint: the shipped rubrics have no problem, and each planted fault is found and told in one sentence."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rubrics.golden import read_requests, rewrite_requests, write_request
from rubrics.linting import lint
from rubrics.loading import SHIPPED, list_rubrics, load_rubric
from rubrics.model import Condition, Rubric, Rule

Write = Callable[..., Path]
SHIPPED_RUBRICS = {rubric.id: rubric for rubric in list_rubrics([SHIPPED])}


@pytest.mark.parametrize("name", SHIPPED_RUBRICS)
def test_the_shipped_rubrics_have_no_problem(name: str) -> None:
    assert lint(SHIPPED_RUBRICS[name]) == []


def test_the_example_and_a_plain_users_rubric_have_no_problem(write_rubric: Write) -> None:
    assert lint(load_rubric(SHIPPED.parent / "docs" / "examples" / "rubrics" / "viescore_sc")) == []
    assert lint(load_rubric(write_rubric())) == []


PROMPT_PART = '    { kind = "prompt" },\n'
TEMPLATE = (PROMPT_PART, '    { kind = "template" },\n')
WORDS = "Judge beauty and truth of this: "
FAULTS = {
    "no prompt file": ([('prompt = "prompt.txt"\n', "")], WORDS, "rubric 'plain' has no prompt; name its file"),
    "empty prompt": ([], " \n", "prompt.txt is empty"),
    "prompt never sent": ([(PROMPT_PART, "")], WORDS, "no message holds the prompt"),
    "placeholder nobody fills": (
        [TEMPLATE],
        WORDS + "{promt}",
        r"placeholder {promt}, but no text of that name is in needs; needs: prompt",
    ),
    "placeholder in capitals": ([TEMPLATE], WORDS + "{Prompt}", "placeholder {Prompt}, but no text of that name is in needs"),
    "placeholder of the picture": ([TEMPLATE], WORDS + "{image}", "placeholder {image}, but no text of that name is in needs"),
    "placeholder that may be null": ([TEMPLATE], WORDS + "{text}", "{text}, which may be null; use a column part"),
    "template sent as it is": ([], WORDS + "{prompt}", "has {prompt} but is sent as it is"),
    "prompt text does not reach the judge": (
        [('    { kind = "column", value = "prompt" },\n', "")],
        WORDS,
        "'prompt' is needed but is not sent to the judge",
    ),
    "picture does not reach the judge": (
        [(',\n    { kind = "image" }', "")],
        WORDS,
        "'image' is needed but is not sent to the judge in rubric 'plain'",
    ),
    "sent without being needed": (
        [('["prompt", "text", "image"]', '["prompt", "text"]')],
        WORDS,
        "'image' is sent but is not in needs",
    ),
    "two pictures": ([('{ kind = "image" }', '{ kind = "image" }, { kind = "image" }')], WORDS, "the picture is sent 2 times"),
    "picture to the system": ([('role = "user"', 'role = "system"')], WORDS, "a message of role 'system'"),
    "nobody asks": ([('role = "user"', 'role = "assistant"')], WORDS, "no message has the role 'user'"),
    "null without a word": ([(', null_as = "none"', "")], WORDS, "'text' may be null, but a part of kind 'column' does not say"),
    "word for what is never null": (
        [('value = "prompt" }', 'value = "prompt", null_as = "" }')],
        WORDS,
        "'prompt' has null_as but is not",
    ),
    "label the prompt does not hold": (
        [('labels = ["truth"]', 'labels = ["Truth"]')],
        WORDS,
        "does not contain the label 'Truth' of 'truth'",
    ),
    "rule on no dimension": (
        [('dimensions = ["truth"]', 'dimensions = ["thruth"]')],
        WORDS,
        "dimension 'thruth'; available: beauty, truth",
    ),
    "rule on a column not needed": (
        [('column = "text"', 'column = "question"')],
        WORDS,
        "asks about 'question', which is not in needs",
    ),
    "rule that never holds": (
        [('column = "text"', 'column = "prompt"')],
        WORDS,
        "asks whether 'prompt' is null, but it cannot be",
    ),
    "rule off the scale": ([("equals = 0", "at_most = 11")], WORDS, "bounds 'truth' at 11, outside its scale of 0 to 10"),
    "unit not needed": ([('unit = ["prompt"]', 'unit = ["question"]')], WORDS, "unit names 'question', which is not in needs"),
    "reported by what is not needed": ([("scale =", 'report_by = "reference"\nscale =')], WORDS, "report_by names 'reference'"),
    "rule on a word that is mapped away": (
        [("is_null = true", 'one_of = ["old"]'), ("scale =", 'value_maps.text = { old = "new" }\nscale =')],
        WORDS,
        "asks for text 'old', which is mapped to 'new'; use that",
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_each_fault_is_found(write_rubric: Write, case: str) -> None:
    changes, prompt, sentence = FAULTS[case]
    problems = lint(load_rubric(write_rubric(*changes, prompt=prompt)))
    assert any(sentence in problem for problem in problems), problems
    assert len(problems) <= 3, problems


def test_a_category_without_a_prompt_is_found() -> None:
    rubric = SHIPPED_RUBRICS["composition"]
    variants = dict(rubric.variants) | {"colors": replace(rubric.variants["colors"], prompt=None, prompt_file=None)}
    assert lint(replace(rubric, variants=variants)) == ["category 'colors' has no prompt; name its file: prompt = \"prompt.txt\""]


def test_a_dispatch_column_that_may_be_null_is_found() -> None:
    problems = lint(replace(SHIPPED_RUBRICS["composition"], may_be_null=frozenset({"category"})))
    assert problems[0].startswith("dispatch column 'category' may be null")


def test_rules_that_leave_one_score_are_fine(tmp_path: Path) -> None:
    rules = tuple(
        Rule(name, (Condition("text", is_null=True),), ("text_image_synergy",), low, high)
        for name, low, high in [("a", None, 2), ("b", 2, None)]
    )
    assert lint(replace(SHIPPED_RUBRICS["interleaved"], rules=rules, folder=tmp_path)) == []


@pytest.mark.parametrize("name", ["promt", "prompts", "texts", "questions", "refrence", "catgory"])
def test_a_column_that_looks_misspelt_is_found(name: str) -> None:
    assert f"{name!r} looks like " in lint(replace(SHIPPED_RUBRICS["alignment"], unit=(name,)))[0]


@pytest.mark.parametrize("name", ["explanation", "instruction", "task", "instruction_text", "style", "caption"])
def test_a_column_of_ones_own_is_none_misspelt(write_rubric: Write, name: str) -> None:
    needed = ('["prompt", "text", "image"]', f'["prompt", "text", "image", "{name}"]')
    changes = [needed, (PROMPT_PART, PROMPT_PART + f'    {{ kind = "column", value = "{name}" }},\n')]
    assert lint(load_rubric(write_rubric(*changes))) == []


def test_a_rule_about_a_column_that_is_not_needed_is_found() -> None:
    rule = Rule("r", (Condition("colour", one_of=("red",)),), ("score",), None, 3)
    problems = lint(replace(SHIPPED_RUBRICS["alignment"], rules=(rule,)))
    assert problems == ["rule 'r' asks about 'colour', which is not in needs; add it there"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"words": {"caption_type": ("brief", "detail", "poem")}},
            "value_maps.caption_type maps to 'style', which is not in words.",
        ),
        (
            {"words": {"caption_type": ("brief", "style")}},
            "rule 'length' asks for caption_type 'detail', which is not in words.caption_type",
        ),
    ],
)
def test_words_that_a_closed_list_does_not_hold_are_found(changes: dict[str, object], sentence: str) -> None:
    problems = lint(replace(SHIPPED_RUBRICS["caption"], **changes))
    assert [problem for problem in problems if problem.startswith(sentence)] == problems[:1]
    composition = replace(SHIPPED_RUBRICS["composition"], words={"category": ("colors",)})
    assert "there is a variant for category 'single_object', which is not in words.category; add it" in lint(composition)


@pytest.mark.parametrize(
    ("first", "second", "is_found"),
    [
        (Condition("text", is_null=True), Condition("image", is_null=True), True),
        (Condition("text", is_null=True), Condition("text", is_null=True), True),
        (Condition("text", is_null=True), Condition("text", is_null=False), False),
        (Condition("text", is_null=True), Condition("text", one_of=("a",)), False),
        (Condition("text", one_of=("a",)), Condition("text", one_of=("b",)), False),
        (Condition("text", one_of=("a", "b")), Condition("text", one_of=("b",)), True),
    ],
)
def test_rules_that_leave_no_score_are_found(tmp_path: Path, first: Condition, second: Condition, is_found: bool) -> None:
    key = ("text_response_quality",)
    rules = (Rule("low", (first,), key, None, 1), Rule("high", (second,), key, 2, None))
    problems = lint(replace(SHIPPED_RUBRICS["interleaved"], rules=rules, folder=tmp_path))
    assert bool(problems) == is_found
    assert all("rules 'low' and 'high' can both apply and then leave no score for 'text_response_quality'" in p for p in problems)


def golden_rubric(folder: Path) -> Rubric:
    rubric = load_rubric(folder)
    write_request(rubric, "plain", {"prompt": "a cup", "text": None}, has_image=True)
    assert lint(rubric) == []
    return rubric


def test_a_changed_prompt_no_longer_matches_its_golden_request(write_rubric: Write) -> None:
    golden_rubric(write_rubric())
    changed = load_rubric(write_rubric(prompt=WORDS + " "))
    assert re.match(r"golden/requests/plain\.json differs from what is rendered now", lint(changed)[0])
    rewrite_requests(changed)
    assert lint(changed) == []


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "plain.json: not JSON in UTF-8 (Expecting"),
        ("[]", "must hold values, has_image and messages"),
        ("[" * 100_000, "a golden request cannot be read"),
        ('{"values": {}, "has_image": true, "messages": []}', "plain.json cannot be rendered: rubric plain needs prompt"),
        ('{"values": {"prompt": 3}, "has_image": true, "messages": []}', "plain.json cannot be rendered"),
        ('{"values": 3, "has_image": true, "messages": []}', "plain.json cannot be rendered"),
    ],
    ids=["half", "list", "deep", "null", "number", "no values"],
)
def test_a_broken_golden_request_is_a_sentence(write_rubric: Write, content: str, sentence: str) -> None:
    rubric = golden_rubric(write_rubric())
    (rubric.folder / "golden" / "requests" / "plain.json").write_text(content)
    assert any(sentence in problem for problem in lint(rubric)), lint(rubric)


def test_a_golden_reply_read_otherwise_is_found(write_rubric: Write) -> None:
    rubric = golden_rubric(write_rubric())
    reply = {"raw": '{"beauty": 3, "truth": 4}', "context": {}, "expect": {"scores": {"beauty": 3, "truth": 4}}}
    path = rubric.folder / "golden" / "replies.jsonl"
    path.write_text(json.dumps(reply) + "\n")
    assert lint(rubric) == []
    path.write_text(json.dumps(reply) + "\n" + json.dumps(reply | {"context": {"text_is_null": True}}) + "\n")
    (problem,) = lint(rubric)
    assert problem.startswith("golden/replies.jsonl, line 2 is read as {'error': 'rule_violation'")
    path.write_text('{"raw": "", "context": {}}\n')
    assert "line 1: must hold raw, context and expect" in lint(rubric)[0]
    path.write_text('\n{"raw": 3, "context": {}, "expect": {}}\n')
    assert "line 2: raw must be a text or null" in lint(rubric)[0]
    wrong = json.dumps(reply | {"expect": {"scores": {}}})
    path.write_bytes(f"{wrong}\nnot json\n{{}}\n".encode() + b'"\xff"\n')
    found = lint(rubric)
    assert [problem.partition(" is read as")[0].partition(" (")[0] for problem in found] == [
        "golden/replies.jsonl, line 1",
        "golden/replies.jsonl, line 2: not JSON",
        "golden/replies.jsonl, line 3: must hold raw, context and expect, and nothing else",
        "golden/replies.jsonl, line 4: not JSON in UTF-8",
    ]


def test_golden_requests_are_text_a_person_can_read() -> None:
    for rubric in SHIPPED_RUBRICS.values():
        for name in read_requests(rubric.folder):
            text = (rubric.folder / "golden" / "requests" / name).read_text(encoding="utf-8")
            assert "\\n" not in text.replace('"values"', "", 1).split('"messages"')[1]
