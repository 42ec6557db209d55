"""What is told of a reply beside its scores: the dimensions without one, and the figures, as a run would publish them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rubrics.explaining import explained
from rubrics.items import Item
from rubrics.loading import load_rubric
from rubrics.model import Rubric
from rubrics.replies.read import parse_reply

HEAD = """\
id = "mine"
version = "1"
title = "t"
source = "written for the tests"
prompt = "prompt.txt"
unit = ["image"]
needs = ["image"{needs}]
"""
ASPECTS = """\
reply = "{reply}"
scale = {{ min = 1, max = 5, step = 1 }}
not_applicable = ["N/A"]
[[dimensions]]
key = "truth"
[[dimensions]]
key = "style"
[[dimensions]]
key = "overall_score"
labels = ["overall"]
[[figures]]
key = "weighed"
form = "weighted_mean"
of = ["truth", "style"]
weights = [3, 1]
"""
ITEMS = """\
reply = "lines"
answers = { yes = 1, no = 0 }
[[dimensions]]
key = "answer"
[items]
column = "items"
asked = "together"
texts = { question = { each = "{question}" } }
[[figures]]
key = "score"
form = "weighted_mean"
when_parent_fails = "zero"
"""


@pytest.fixture
def loaded(tmp_path: Path) -> Callable[..., Rubric]:
    def load(declared: str, needs: str = "") -> Rubric:
        folder = tmp_path / "mine"
        folder.mkdir()
        (folder / "rubric.toml").write_text(HEAD.format(needs=needs) + declared)
        (folder / "prompt.txt").write_text("truth style overall")
        return load_rubric(folder)

    return load


def told(rubric: Rubric, raw: str, context: dict[str, Any], items: tuple[Item, ...] = ()) -> dict[str, Any]:
    return dict(explained(rubric, parse_reply(rubric, raw, context), raw, context, items))


@pytest.mark.parametrize(
    ("reply", "raw", "failed"),
    [
        ("label", "truth: 4\nstyle: fine\noverall: 3", {"style": {"reason": "wrong_type", "in": "style: fine"}}),
        ("label", "truth: 4\nstyle: 9\noverall: 3.5", {
            "style": {"reason": "out_of_range", "in": "style: 9"},
            "overall_score": {"reason": "non_integer", "in": "overall: 3.5"},
        }),
        ("label", "truth: 4\nstyle: 2", {"overall_score": {"reason": "missing_key"}}),
        ("json", '{"truth": {"score": 4},\n"style": {"score": "four"},\n"overall": {"score": 2}}', {
            "style": {"reason": "wrong_type", "in": 'style": {"score": "four"},'},
        }),
        ("bracket", "[truth: 4; style: 2; overall: high]", {"overall_score": {"reason": "wrong_type", "in": "overall: high]"}}),
        ("label", 'truth: 4\nstyle: 2\noverall: 3\n{"overall_score": 1}', {
            "overall_score": {"reason": "ambiguous", "in": 'overall_score": 1}'},
        }),
        ("label", "", None),
        ("label", "I'm sorry, but I can't assist with that.", None),
    ],
    ids=["a word", "two", "none said", "JSON", "bracket", "another form", "empty", "refusal"],
)  # fmt: skip
def test_the_dimensions_without_a_number_are_told(
    loaded: Callable[..., Rubric], reply: str, raw: str, failed: dict[str, Any] | None
) -> None:
    assert told(loaded(ASPECTS.format(reply=reply)), raw, {}) == ({} if failed is None else {"failed": failed})


@pytest.mark.parametrize(
    ("style", "score"), [pytest.param("2", 3.5, id="both"), pytest.param("N/A", 4.0, id="what does not apply is left out")]
)
def test_figures_over_dimensions_are_told(loaded: Callable[..., Rubric], style: str, score: float) -> None:
    said = told(loaded(ASPECTS.format(reply="label")), f"truth: 4\nstyle: {style}\noverall: 1", {})
    assert said["figures"]["weighed"]["score"] == score
    assert said["figures"]["weighed"]["note"].startswith("weighted_mean of truth: 4, style: ")


@pytest.mark.parametrize(
    ("raw", "score"),
    [
        pytest.param("1. yes\n2. yes\n3. no", 0.75, id="weights"),
        pytest.param("1. no\n2. yes\n3. yes", 0.25, id="a parent that failed"),
        pytest.param("1. yes\n2. maybe\n3. no", None, id="one without an answer"),
    ],
)
def test_figures_over_items_are_those_of_a_run(loaded: Callable[..., Rubric], raw: str, score: float | None) -> None:
    rubric = loaded(ITEMS, ', "items"')
    items = (Item("cup", {}, weight=2.0), Item("red", {}, depends_on=("cup",)), Item("big", {}))
    context = {"items": [{"id": item.id} for item in items]}
    assert told(rubric, raw, context, items)["figures"]["score"]["score"] == score
    assert "figures" not in told(rubric, raw, context), "without the items nobody knows what each weighs"
