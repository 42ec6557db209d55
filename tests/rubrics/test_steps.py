"""Scales whose step is not 1: what lies on a step is read as it stands, what lies off it is no score, however near."""

from dataclasses import replace

import pytest

from rubrics.model import Dimension, Rubric, Variant
from rubrics.replies import parse_reply

STEPS = {"halves": (0, 0.5), "halves from a quarter": (0.25, 0.5), "twos": (0, 2), "twos from one": (1, 2), "tenths": (0, 0.1)}
SAID = {
    "halves": {"2.5": 2.5, "3": 3, "2.25": "non_integer", "2.5000000000000000000001": "non_integer"},
    "halves from a quarter": {"2.25": 2.25, "2.5": "non_integer", "2": "non_integer"},
    "twos": {"4": 4, "3": "non_integer", "2.5": "non_integer", "9": "out_of_range"},
    "twos from one": {"3": 3, "2": "non_integer", "1": 1, "0.5": "out_of_range"},
    "tenths": {"0.3": 0.3, "0.35": "non_integer", "1e-60": "non_integer"},
}


@pytest.mark.parametrize(("name", "said", "expected"), [(name, *one) for name in SAID for one in SAID[name].items()])
@pytest.mark.parametrize("form", ['{{"score": {}}}', '{{"score": "{}"}}'], ids=["number", "text"])
def test_a_value_off_the_step_is_refused(
    shipped: dict[str, Rubric], name: str, said: str, expected: float | str, form: str
) -> None:
    low, step = STEPS[name]
    variant = Variant(None, "P", "p.txt", (Dimension("score", ("score",), low, 7, step),))
    rubric = replace(shipped["caption"], variants={None: variant}, rules=())
    found = parse_reply(rubric, form.format(said), {}).as_dict()
    assert found == ({"error": expected} if isinstance(expected, str) else {"scores": {"score": expected}})
