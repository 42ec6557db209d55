"""Derived figures: their closed forms, what is missing, what does not apply, and what an item's failed parent does."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rubrics.figures import Operand, derive, derive_each
from rubrics.model import Dimension, Figure


def scored(name: str, score: float, **more: object) -> Operand:
    return replace(Operand(name, score, score, score), **more)  # type: ignore[arg-type]


def missing(name: str, **more: object) -> Operand:
    return replace(Operand(name, None, 0.0, 1.0, "refusal"), **more)  # type: ignore[arg-type]


def of(form: str, **more: object) -> Dimension:
    return Dimension("f", ("f",), 0, 1, figure=Figure(form, **more))  # type: ignore[arg-type]


THREE = [scored("a", 0.25), scored("b", 0.5), scored("c", 1.0)]


@pytest.mark.parametrize(
    ("form", "more", "expected"),
    [
        ("mean", {}, 1.75 / 3),
        ("weighted_mean", {"of": ("a", "c"), "weights": (0.75, 0.25)}, 0.4375),
        ("geometric_mean", {}, math.cbrt(0.125)),
        ("minimum", {}, 0.25),
        ("product", {}, 0.125),
        ("sqrt_product", {"of": ("a", "c")}, 0.5),
        ("all", {"at_least": 0.25}, 1.0),
        ("all", {}, 0.0),
        ("share", {"at_least": 0.5}, 2 / 3),
    ],
)
def test_a_form_is_its_formula(form: str, more: dict[str, object], expected: float) -> None:
    found = derive(of(form, **more), THREE)
    assert found.score == pytest.approx(expected, abs=1e-15)
    assert found.low == found.high == found.score


def test_a_zero_makes_a_geometric_mean_zero() -> None:
    assert derive(of("geometric_mean"), [*THREE, scored("d", 0.0)]).score == 0.0


@pytest.mark.parametrize("form", ["mean", "geometric_mean", "minimum", "product", "sqrt_product", "all", "share"])
def test_a_missing_operand_makes_it_missing_with_its_bounds_and_never_smaller(form: str) -> None:
    found = derive(of(form), [*THREE, missing("d")])
    assert (found.score, found.reason) == (None, "refusal")
    ends = [derive(of(form), [*THREE, scored("d", end)]).score for end in (0.0, 1.0)]
    assert (found.low, found.high) == tuple(ends)


def test_what_does_not_apply_leaves_it_and_where_nothing_applies_there_is_none() -> None:
    aside = missing("d", does_apply=False)
    assert derive(of("mean"), [*THREE, aside]).score == derive(of("mean"), THREE).score
    nothing = derive(of("mean"), [aside])
    assert (nothing.score, nothing.reason, nothing.low, nothing.high) == (None, None, 0, 1)


def on(form: str, low: float, high: float, **more: object) -> Dimension:
    return Dimension("f", ("f",), low, high, figure=Figure(form, **more))  # type: ignore[arg-type]


@pytest.mark.parametrize(("form", "high"), [("product", 100), ("sqrt_product", 10)])
def test_a_product_of_which_something_does_not_apply_does_not_apply(form: str, high: float) -> None:
    """Of 8 and nothing it is neither 8 of 100 nor the root of 8 of 10. On 0 to 1 the rest is on the same scale."""
    aside = missing("b", does_apply=False)
    found = derive(on(form, 0, high, of=("a", "b"), needs_all=True), [scored("a", 8.0), aside])
    assert (found.score, found.reason, found.low, found.high) == (None, None, 0, high)
    assert (
        derive(of(form, of=("a", "b")), [scored("a", 0.25), aside]).score
        == derive(of(form, of=("a",)), [scored("a", 0.25)]).score
    )


@pytest.mark.parametrize("top", [3.0, 7.0, 10.0, 100.0])
@pytest.mark.parametrize(
    ("form", "more"),
    [("geometric_mean", {}), ("weighted_mean", {"of": ("a", "b", "c"), "weights": (0.1, 0.2, 0.3)}), ("mean", {})],
)
def test_perfect_scores_give_the_scales_end_and_not_a_digit_more(form: str, more: dict[str, object], top: float) -> None:
    found = derive(on(form, 1, top, **more), [scored(name, top) for name in "abc"])
    assert (found.score, found.low, found.high) == (top, top, top)


@pytest.mark.parametrize(
    ("form", "more", "score"),
    [
        pytest.param("geometric_mean", {}, 5.0, id="root of fives"),
        pytest.param("weighted_mean", {"of": ("a", "b"), "weights": (0.7, 0.3)}, 3.0, id="weighted threes"),
        pytest.param("mean", {}, 0.7, id="mean of a decimal"),
        pytest.param("mean", {}, 0.5, id="mean of a binary fraction"),
    ],
)
def test_a_figure_of_equal_scores_is_that_score_and_at_least_it(form: str, more: dict[str, object], score: float) -> None:
    first = replace(on(form, 0, 10, **more), key="first")
    above = replace(on("all", 0, 1, of=("first",), at_least=score), key="above")
    (_, figure), (_, reached) = derive_each([first, above], [scored(name, score) for name in "abc"])
    assert (figure.score, figure.low, figure.high) == (score, score, score)
    assert reached.score == 1.0


def test_what_is_off_the_scale_by_more_stays_to_be_seen() -> None:
    assert derive(on("mean", 0, 10), [scored("a", 11.0)]).score == 11.0


CHAIN = [scored("a", 0.0), scored("b", 1.0, parents=("a",)), scored("c", 1.0, parents=("b",)), scored("d", 1.0)]


def test_a_failed_parent_voids_its_children_and_no_grandchild() -> None:
    zero, left_out = of("mean", when_parent_fails="zero"), of("mean", when_parent_fails="left_out")
    assert derive(zero, CHAIN).score == 0.5
    assert derive(left_out, CHAIN).score == pytest.approx(2 / 3)
    assert derive(of("mean"), CHAIN).score == 0.75
    assert "a parent failed: b" in derive(zero, CHAIN).note


def aside(name: str, **more: object) -> Operand:
    return replace(Operand(name, None, 0.0, 1.0, "not_applicable", does_apply=False), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("gate", ["zero", "left_out"])
def test_a_child_of_a_failed_parent_counts_alike_whether_a_judge_says_no_or_that_it_does_not_apply(gate: str) -> None:
    dimension, rest = of("mean", when_parent_fails=gate), [scored("cup", 0.0), scored("table", 1.0)]
    said_no, said_na = (
        derive(dimension, [*rest, *(make(name, parents=("cup",)) for name in ("red", "full"))])
        for make in (lambda name, **more: scored(name, 0.0, **more), aside)
    )
    assert said_na.score == said_no.score == (0.25 if gate == "zero" else 0.5)
    assert "a parent failed: red, full" in said_na.note
    assert derive(dimension, [scored("cup", 1.0), aside("red", parents=("cup",))]).score == 1.0


@pytest.mark.parametrize("gate", ["zero", "left_out"])
def test_what_does_not_apply_below_a_failed_one_fails_what_is_below_it(gate: str) -> None:
    """A cup that is not there has no handle, which is not golden: whether a judge says no or that it does not apply."""
    dimension, rest = of("mean", when_parent_fails=gate), [scored("cup", 0.0), scored("table", 1.0)]
    below = (("golden", ("handle",)), ("handle", ("cup",)), ("round", ("handle",)))
    said_no, said_na = (
        derive(dimension, [*rest, *(make(name, parents=parents) for name, parents in below)])
        for make in (lambda name, **more: scored(name, 0.0, **more), aside)
    )
    assert said_na.score == said_no.score == (0.2 if gate == "zero" else 0.5)
    alone = derive(dimension, [*rest, *(aside(name, parents=parents) for name, parents in below[:1]), scored("handle", 1.0)])
    assert alone.score == 2 / 3, "a handle that is there voids nothing"


def test_the_bounds_hold_what_a_missing_parent_makes_of_a_childs_child() -> None:
    rest, dimension = (
        [aside("b", parents=("a",)), aside("c", parents=("b",)), scored("d", 1.0)],
        of("mean", when_parent_fails="zero"),
    )
    found = derive(dimension, [missing("a"), *rest])
    ends = [derive(dimension, [scored("a", end), *rest]).score for end in (0.0, 1.0)]
    assert ends == [1 / 4, 1.0]
    assert (found.score, found.low, found.high) == (None, *ends)


def test_the_bounds_hold_what_a_missing_parent_makes_of_a_child_that_does_not_apply() -> None:
    rest, dimension = [aside("b", parents=("a",)), scored("c", 1.0)], of("mean", when_parent_fails="zero")
    found = derive(dimension, [missing("a"), *rest])
    ends = [derive(dimension, [scored("a", end), *rest]).score for end in (0.0, 1.0)]
    assert ends == [1 / 3, 1.0]
    assert (found.score, found.low, found.high) == (None, *ends)


def test_a_child_of_a_missing_parent_may_be_void_and_the_bounds_say_so() -> None:
    found = derive(of("mean", when_parent_fails="zero"), [missing("a"), scored("b", 1.0, parents=("a",))])
    assert (found.score, found.low, found.high) == (None, 0.0, 1.0)


def test_where_a_missing_parent_may_take_a_child_out_the_bounds_hold_what_either_gives() -> None:
    rest, dimension = [scored("b", 1.0, parents=("a",)), scored("c", 0.0)], of("mean", when_parent_fails="left_out")
    found = derive(dimension, [missing("a"), *rest])
    ends = [derive(dimension, [scored("a", end), *rest]).score for end in (0.0, 1.0)]
    assert ends == [0.0, 2 / 3]
    assert found.score is None
    assert all(end is not None and found.low <= end <= found.high for end in ends)


scores = st.lists(st.floats(0, 1), min_size=1, max_size=8)


@given(scores, st.sampled_from(["mean", "geometric_mean", "minimum", "product", "share"]), st.data())
@settings(max_examples=80, deadline=None)
def test_bounds_hold_whatever_the_missing_ones_were_and_order_changes_nothing(
    values: list[float], form: str, data: st.DataObject
) -> None:
    operands = [scored(str(place), value) for place, value in enumerate(values)]
    whole = derive(of(form), operands).score
    assert whole is not None
    lost = [one if data.draw(st.booleans()) else missing(one.name) for one in operands]
    found = derive(of(form), lost)
    assert found.low - 1e-12 <= whole <= found.high + 1e-12
    if form in ("mean", "minimum", "share"):
        assert derive(of(form), data.draw(st.permutations(operands))).score == whole
