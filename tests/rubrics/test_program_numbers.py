"""Numbers of programs: what a row's values are read as, and declarations that a program's numbers cannot have."""

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubrics.figures import Operand, derive
from rubrics.linting import lint
from rubrics.loading import load_rubric
from rubrics.model import Rubric
from rubrics.replies.program_numbers import said_by_program
from rubrics.replies.read import parse_reply
from schemas.errors import RubricError

DECLARED = """\
id = "measured"
version = "1"
title = "t"
source = "s"
program = { name = "ocr", version = "3.2" }
unit = ["prompt"]
scale = { min = -1, max = 2 }
[[dimensions]]
key = "distance"
better = "lower"
[[dimensions]]
key = "n"
scale = { min = 0, max = 5, step = 1 }
[[figures]]
key = "closeness"
form = "turned"
of = ["distance"]
"""


BOTH = '[[figures]]\nkey = "both"\nof = ["closeness", "n"]\nform = '


def rubric_of(tmp_path: Path, *changes: tuple[str, str]) -> Rubric:
    declared = DECLARED
    for old, new in changes:
        assert old in declared
        declared = declared.replace(old, new)
    (tmp_path / "measured").mkdir()
    (tmp_path / "measured" / "rubric.toml").write_text(declared)
    return load_rubric(tmp_path / "measured")


def read(rubric: Rubric, value: object) -> object:
    """What is read of a value of `distance`, beside a good `n`, which it never costs."""
    found = parse_reply(rubric, said_by_program({"distance": value, "n": 3}), {}).as_dict()
    scores: Any = found["scores"]
    assert scores["n"] == 3
    return scores.get("distance", found.get("unreadable", {}).get("distance"))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.25, 0.25), (-1, -1), (2, 2), ("0.25", 0.25), (" +.5 ", 0.5), ("1e-3", 0.001), ("1.", 1), (Decimal("0.3"), 0.3),
        (2.0000001, "out_of_range"), (-1e300, "out_of_range"), (10**400, "wrong_type"), (10**30, "out_of_range"),
        ("1" * 500, "wrong_type"), ("1e999", "wrong_type"),
        (float("nan"), "wrong_type"), (float("inf"), "wrong_type"), ("NaN", "wrong_type"), ("-inf", "wrong_type"),
        (None, "missing_key"), ("", "missing_key"), ("  ", "missing_key"),
        (True, "wrong_type"), ("true", "wrong_type"), ([0.5], "wrong_type"), ({"value": 0.5}, "wrong_type"),
        ("0,5", "wrong_type"), ("50 %", "wrong_type"), ("1_0", "wrong_type"), ("٣", "wrong_type"), ("0x1", "wrong_type"),
        ("1/2", "wrong_type"), ("0.5 0.6", "wrong_type"), ("\ud800", "wrong_type"),
    ],
    ids=lambda value: ascii(value)[:20],
)  # fmt: skip
def test_a_value_is_its_number_or_a_reason(tmp_path: Path, value: object, expected: object) -> None:
    assert read(rubric_of(tmp_path), value) == expected


def test_whole_numbers_are_whole_and_a_missing_one_costs_no_other(tmp_path: Path) -> None:
    rubric = rubric_of(tmp_path)
    assert parse_reply(rubric, '{"distance": 0.5, "n": 2.5}', {}).as_dict() == {
        "scores": {"distance": 0.5}, "unreadable": {"n": "non_integer"},
    }  # fmt: skip
    assert parse_reply(rubric, "{}", {}).as_dict()["unreadable"] == {"distance": "missing_key", "n": "missing_key"}
    for text, reason in (("[1]", "not_found"), ("{", "malformed"), ("", "empty"), ('{"n": NaN}', "malformed")):
        assert parse_reply(rubric, text, {}).as_dict() == {"error": reason}


@given(number=st.floats(-1, 2))
def test_what_was_measured_is_what_is_read_to_the_last_digit(number: float, tmp_path_factory: pytest.TempPathFactory) -> None:
    rubric = rubric_of(tmp_path_factory.mktemp("r"))
    assert read(rubric, number) == number == read(rubric, repr(number))


def test_a_program_is_no_judge_that_is_asked(tmp_path: Path) -> None:
    rubric = rubric_of(tmp_path)
    assert lint(rubric) == []
    assert (rubric.program, rubric.messages) == ("ocr-3.2", ())
    assert [one.key for one in rubric.dimensions] == ["n", "closeness"], "what is better the lower it is stands in no table"
    assert json.loads(said_by_program({"n": 1})) == {"n": 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("unit", 'reply = "json"\nunit'),
         "reply applies to a judge that is asked, but a program is not asked; remove reply, or program"),
        (("unit", 'prompt = "p.txt"\nunit'), "remove prompt, or program"),
        (("scale = { min = -1, max = 2 }", "answers = { yes = 1, no = 0 }"), "remove answers, or program"),
        (('program = { name = "ocr", version = "3.2" }\n', ""), "reply is missing; add it, or program = { name, version }"),
        ((', version = "3.2" }', " }"), "program.version is missing; add it"),
        (('"ocr"', '"o c r"'), "program.name"),
        (("scale = { min = -1, max = 2 }", "scale = { min = -1 }"), "scale.max is missing; add it"),
        (('form = "turned"', 'form = "mean"'), "is made of 'distance', of which lower is better; make a figure with"),
        (('better = "lower"\n', ""), "form = 'turned' takes exactly one dimension, with better = 'lower'"),
        (('of = ["distance"]', 'of = ["distance", "n"]'), "form = 'turned' takes exactly one dimension, with better = 'lower'"),
        (
            ('[[figures]]\nkey = "closeness"\nform = "turned"\nof = ["distance"]\n', ""),
            "add \\[\\[figures\\]\\] with a new key, form = 'turned', of = \\['distance'\\], which is 1 minus the number",
        ),
        *(
            (
                ('of = ["distance"]', f'of = ["distance"]\n{BOTH}"{form}"'),
                f"figure 'both': form = '{form}' takes scores of one scale, but closeness is -1 to 2 and n is 0 to 5; use form",
            )
            for form in ("mean", "minimum")
        ),
    ],
    ids=[
        "reply", "prompt", "answers", "no program", "no version", "a name of several words", "one end", "not turned",
        "higher is better", "turned of two", "lower in no figure", "mean of two scales", "least of two scales",
    ],
)  # fmt: skip
def test_declarations_that_cannot_be_meant(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    with pytest.raises(RubricError) as caught:
        rubric_of(tmp_path, change)
    assert re.search(message, str(caught.value)) or message in str(caught.value), str(caught.value)


def test_a_weighted_mean_of_two_scales_has_the_scale_that_it_can_have_and_needs_both(tmp_path: Path) -> None:
    rubric = rubric_of(tmp_path, ('of = ["distance"]', f'of = ["distance"]\n{BOTH}"weighted_mean"\nweights = [1, 3]'))
    both = rubric.dimensions[-1]
    assert (both.minimum, both.maximum) == (-1 / 4, (2 + 15) / 4)
    closeness, n = Operand("closeness", 2.0, 2.0, 2.0), Operand("n", 5.0, 5.0, 5.0)
    assert derive(both, [closeness, n]).score == both.maximum
    assert derive(both, [closeness, Operand("n", None, 0.0, 5.0, does_apply=False)]).score is None
