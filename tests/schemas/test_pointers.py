"""The path language of benchmark files and rubrics."""

import pytest

from schemas.errors import InputError
from schemas.pointers import MISSING, look_up

ROW = {"a": 1, "n": None, "deep": {"list": [10, {"x": "y"}]}, "a.b": "exact", "l[0]": "exact too", "l": ["in the list"]}


@pytest.mark.parametrize(
    ("pointer", "found"),
    [
        pytest.param("a", 1, id="column"),
        pytest.param("n", None, id="a null is there"),
        pytest.param("deep.list[0]", 10, id="name then index"),
        pytest.param("deep.list[1].x", "y", id="index then name"),
        pytest.param("a.b", "exact", id="a column whose name looks like a path comes first"),
        pytest.param("l[0]", "exact too", id="a column whose name looks like an index comes first"),
        pytest.param("b", MISSING, id="absent column"),
        pytest.param("deep.list[9]", MISSING, id="index past the end"),
        pytest.param("a.b.c", MISSING, id="below a scalar"),
        pytest.param("a[0]", MISSING, id="index into a scalar"),
        pytest.param("deep[0]", MISSING, id="index into a mapping"),
    ],
)
def test_look_up(pointer: str, found: object) -> None:
    assert look_up(ROW, pointer) is found or look_up(ROW, pointer) == found


def test_a_string_is_not_a_list() -> None:
    assert look_up({"s": "text"}, "s[0]") is MISSING


@pytest.mark.parametrize("pointer", ["", ".", "a..b", "a[", "a[x]", "a[0]b", "[", "a[-1]", "a."])
def test_what_is_not_a_pointer_is_refused(pointer: str) -> None:
    with pytest.raises(InputError, match="is not a column or a path"):
        look_up({}, pointer)
