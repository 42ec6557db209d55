"""Checkpoints asked look by look: what was left is in no figure, what failed before is, and intervals are those of the look."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

from rubrics.model import Items, Rubric
from schemas.benchmark.rounds import Stopping
from tasks.aggregate.looks import Asked, PlannedPrompts, Reached, planned_prompts
from tasks.aggregate.sequential import Look

NOT_ASKED = ("no_reply", "not_asked", None, 0.0, 10.0)
BAD = ("unreadable", "malformed", None, 0.0, 10.0)
LOOKS = Stopping(looks=[0.5, 1.0], decide=["predecessor"])
OPEN = Stopping(looks=[0.5, 1.0], decide=["baseline"], futility=0)


def rows_of(checkpoint: str, values: list[Any]) -> list[dict[str, Any]]:
    """Twenty prompts, the first ten asked before the first look."""
    return [
        {
            "checkpoint": checkpoint,
            "prompt": f"p{n}",
            "sample": f"s{n}",
            "look": 1 if n < 10 else 2,
            "scores": {"overall_score": v},
        }
        for n, v in enumerate(values)
    ]


FULL = [5 + n % 3 for n in range(20)]


@pytest.fixture
def plain(make_rubric: Callable[..., Rubric]) -> Rubric:
    return make_rubric({None: ("overall_score",)})


@pytest.mark.parametrize(
    ("values", "look", "n_judgements", "n_failed"),
    [
        ([*FULL[:10], *[NOT_ASKED] * 10], 1, 10, 0),
        ([*FULL[:9], BAD, *[NOT_ASKED] * 10], 1, 10, 1),
        ([*FULL[:10], *FULL[10:12], *[NOT_ASKED] * 8], 2, 20, 8),
        ([*FULL[:6], *[NOT_ASKED] * 14], 1, 10, 4),
        ([NOT_ASKED] * 20, 1, 10, 10),
        ([*FULL[:10], *[BAD] * 10], 2, 20, 10),
        (FULL, 2, 20, 0),
    ],
    ids=["left", "a failure before", "cut amid the second", "cut amid the first", "never asked",
         "all unreadable", "whole"],
)  # fmt: skip
def test_what_was_left_is_no_failure(
    values: list[Any], look: int, n_judgements: int, n_failed: int, all_tables: Callable[..., Any], plain: Rubric, one: Any
) -> None:
    tables = all_tables(rows_of("1", FULL) + rows_of("2", values), plain, stopping=OPEN, baseline="north/1")
    cell = one(tables["benchmark_long"], checkpoint="2", category="__macro__", estimand="prompts_like_these")
    assert (cell["look"], cell["n_looks"]) == (look, 2)
    assert (cell["n_judgements"], cell["n_failed"]) == (n_judgements, n_failed)
    reasons = tables["failures"].filter(checkpoint="2")["reason"].to_list()
    assert ("not_asked" in reasons) == (NOT_ASKED in values and n_failed > 1)


def test_intervals_and_p_are_those_of_the_look(all_tables: Callable[..., Any], plain: Rubric, one: Any) -> None:
    full = [5 + n % 3 for n in range(30)]
    left = [value + 1 + n % 2 for n, value in enumerate(full[:21])] + [NOT_ASKED] * 9
    rows = rows_of("1", full) + rows_of("2", left)
    for row in rows:
        row["look"] = 1 if int(row["prompt"][1:]) < 21 else 2
    tables = all_tables(rows, plain, stopping=LOOKS)
    found = one(tables["comparisons"], comparison="predecessor", category="__macro__")
    look = Look((0.7,), (1.0,))
    nominal = 2 * stats.t.sf(found["delta"] / found["se"], found["df"])
    assert (found["look"], found["n_looks"], found["n_prompts_paired"]) == (1, 2, 21)
    assert found["p"] == pytest.approx(look.p(nominal), rel=1e-6)
    half = stats.t.isf((1 - look.level(0.95)) / 2, found["df"]) * found["se"]
    assert found["ci_high"] - found["delta"] == pytest.approx(half, rel=1e-9)
    cells = tables["benchmark_long"].filter(category="__macro__", estimand="prompts_like_these")
    alone = all_tables([row for row in rows if row["look"] == 1], plain)["benchmark_long"]
    narrow = alone.filter(category="__macro__", estimand="prompts_like_these")
    for name, direction in (("ci_low", -1), ("ci_high", 1)):
        wider = (cells[name] - narrow[name]) * direction
        assert wider[1] > 0.05, "of checkpoint 2, all looks' intervals hold at once"


def test_where_all_is_asked_at_once_nothing_speaks_of_looks(all_tables: Callable[..., Any], plain: Rubric) -> None:
    rows = [row | {"look": None} for row in rows_of("1", FULL) + rows_of("2", [*FULL[:19], NOT_ASKED])]
    tables = all_tables(rows, plain)
    assert tables["benchmark_long"].select(pl.col("look", "n_looks").is_null().all()).row(0) == (True, True)
    assert tables["failures"]["reason"].to_list().count("not_asked") > 0


@pytest.fixture
def by_category(make_rubric: Callable[..., Rubric]) -> Rubric:
    return make_rubric({None: ("overall_score",)}, report_by="category")


def in_categories(checkpoint: str, category_of: list[str], look_of: list[int], last: int, values: list[Any]) -> list[Any]:
    """A prompt each; what comes after the look `last` was not asked."""
    return [
        {"checkpoint": checkpoint, "prompt": f"p{n}", "sample": f"s{n}", "category": category, "look": look,
         "scores": {"overall_score": value if look <= last else NOT_ASKED}}
        for n, (category, look, value) in enumerate(zip(category_of, look_of, values, strict=True))
    ]  # fmt: skip


NOT_APPLICABLE = ("not_applicable", "not_applicable", None, 0.0, 10.0)
TWENTY = ["b"] * 14 + ["a"] * 6


@pytest.mark.parametrize(
    ("in_first", "value", "cell", "compared"),
    [
        (0, 5, "category_missing", "no_such_total"),
        (2, 5, None, "too_few_paired_prompts"),
        (5, 5, None, None),
        (5, NOT_APPLICABLE, "not_applicable", "no_such_total"),
    ],
    ids=["none", "too few", "enough", "none that applies so far"],
)
def test_a_mean_over_categories_is_that_of_all_that_are_planned(
    in_first: int, value: Any, cell: str | None, compared: str | None,
    all_tables: Callable[..., Any], by_category: Rubric, one: Any,
) -> None:  # fmt: skip
    """Six prompts of a, so many of them before the first of two looks, after which both checkpoints were left."""
    looks = [1] * 14 + [1] * in_first + [2] * (6 - in_first)
    values = {name: [2 * by + n % 3 + n % by for n in range(14)] + [value] * 6 for name, by in (("1", 1), ("2", 2))}
    rows = [row for name, of in values.items() for row in in_categories(name, TWENTY, looks, 1, of)]
    tables = all_tables(rows, by_category, stopping=LOOKS)
    found = one(tables["benchmark_long"], checkpoint="2", category="__macro__", estimand="prompts_like_these")
    assert (found["reason"], found["estimate"] is None) == (cell, cell is not None)
    held = tables["comparisons"].filter(comparison="predecessor")
    reasons = {row["category"]: row["reason"] for row in held.iter_rows(named=True)}
    assert (reasons["__macro__"], reasons["b"]) == (compared, None)
    assert reasons["__micro__"] == (None if in_first == 5 else "too_few_paired_prompts"), "of the same prompts"
    whole = [row for name, of in values.items() for row in in_categories(name, TWENTY, looks, 2, of)]
    full = all_tables(whole, by_category, stopping=LOOKS)["benchmark_long"]
    macro = one(full, checkpoint="2", category="__macro__", estimand="prompts_like_these")["estimate"]
    of_b = 4 + 20 / 14
    assert macro == pytest.approx(of_b if value is NOT_APPLICABLE else (of_b + 5) / 2)


def test_a_mean_over_all_prompts_has_the_look_of_their_share(
    all_tables: Callable[..., Any], by_category: Rubric, one: Any
) -> None:
    """Six of six prompts of a, and 14 of 54 of b by the first of two looks: a third of all, and most of what categories tell."""
    category_of, looks = ["a"] * 6 + ["b"] * 54, [1] * 20 + [2] * 40
    values = {name: [by * (n % 5) + n % 3 for n in range(60)] for name, by in (("1", 1), ("2", 2))}
    rows = [row for name, of in values.items() for row in in_categories(name, category_of, looks, 1, of)]
    tables = all_tables(rows, by_category, stopping=LOOKS)
    found = one(tables["comparisons"], comparison="predecessor", category="__micro__")
    look = Look((0.333,), (1.0,))
    assert found["p"] == pytest.approx(look.p(2 * stats.t.sf(abs(found["delta"]) / found["se"], found["df"])), abs=1e-12)
    cell = one(tables["benchmark_long"], estimand="prompts_like_these", checkpoint="2", category="__micro__")
    assert cell["ci_high"] - cell["ci_low"] > 2 * stats.t.ppf((1 + 0.99) / 2, cell["df"]) * cell["se"], "0.978 by categories"


@given(data=st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_look_rests_on_fewer_categories_than_the_whole_run(
    data: st.DataObject, all_tables: Callable[..., Any], by_category: Rubric
) -> None:
    n = data.draw(st.integers(6, 24))
    categories = data.draw(st.lists(st.sampled_from("abc"), min_size=n, max_size=n))
    looks = data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))
    scores = st.lists(st.one_of(st.integers(0, 10), st.just(NOT_APPLICABLE)), min_size=n, max_size=n)
    values = {name: data.draw(scores) for name in ("1", "2")}

    def tables(*last: int) -> Any:
        rows = [
            row
            for (name, of), look in zip(values.items(), last, strict=True)
            for row in in_categories(name, categories, looks, look, of)
        ]
        return all_tables(rows, by_category, stopping=Stopping(looks=[0.3, 0.6, 1.0]), min_paired_prompts=2)

    whole = means_over(tables(3, 3)["benchmark_long"])
    at = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    for checkpoint, names in means_over(tables(*at)["benchmark_long"]).items():
        assert names >= whole.get(checkpoint, set())


def means_over(cells: pl.DataFrame) -> dict[str, set[str]]:
    """By checkpoint that has a mean over categories, the categories that have one."""
    cells = cells.filter(pl.col("estimate").is_not_null(), estimand="prompts_like_these")
    whole = cells.filter(category="__macro__")["checkpoint"]
    return {name: set(cells.filter(~pl.col("category").str.starts_with("__"), checkpoint=name)["category"]) for name in whole}


CELLS = {name: ("eye", "north", name) for name in "12"}
PLANNED = PlannedPrompts(
    {"eye": {"a": [0, 2, 6], "b": [5, 9, 9]}, "ear": {"c": [3, 3, 3]}}, {"q": frozenset("abc"), "only": frozenset("b")}
)


@pytest.mark.parametrize(
    ("last", "to_come"),
    [((1, 1), "abc"), ((2, 1), "abc"), ((2, 2), "ac"), ((3, 2), "ac"), ((3, 3), "c")],
    ids=["first", "one left early", "b is whole", "one asked to the end", "the other judge's"],
)
def test_what_some_cell_has_yet_to_be_asked(last: tuple[int, int], to_come: str) -> None:
    found = PLANNED.asked({CELLS[name]: look for name, look in zip("12", last, strict=True)})
    assert found.to_come == {"q": frozenset(to_come), "only": frozenset(to_come) & {"b"}}
    assert found.reached[CELLS["1"]] == Reached(last[0], PLANNED.up_to["eye"])
    assert PlannedPrompts({}, {}).asked({CELLS["1"]: 1}) == Asked()


@pytest.mark.parametrize(
    ("judge", "dimensions", "look", "floor", "is_enough"),
    [
        ("eye", ["q"], 1, 0, False),
        ("eye", ["q"], 2, 3, False),
        ("eye", ["q"], 2, 2, True),
        ("eye", ["only"], 1, 5, True),
        ("eye", ["only", "q"], 1, 5, False),
        ("ear", ["q"], 1, 3, True),
        ("ear", ["q"], 3, 5, False),
    ],
    ids=["none", "too few", "enough", "not asked there", "asked there too", "its own categories", "never enough"],
)
def test_a_look_without_enough_of_a_planned_category_decides_nothing(
    judge: str, dimensions: list[str], look: int, floor: int, is_enough: bool
) -> None:
    assert PLANNED.are_enough(judge, dimensions, look, floor) == is_enough


def test_a_category_is_planned_where_the_rubric_has_a_prompt_for_it(
    make_rubric: Callable[..., Rubric], make_frames: Callable[..., Any]
) -> None:
    asked = make_rubric({"x": ("q", "only"), "y": ("q",)})
    rows: list[Any] = [
        {"category": category, "prompt": str(n), "sample": str(n), "look": look, "status": status}
        for n, (category, look, status) in enumerate([
            ("x", 1, "planned"), ("x", 2, "planned"), ("y", 2, "missing"), ("z", 1, "no_prompt"), (None, 1, "no_prompt"),
        ])
    ]  # fmt: skip
    rows += [rows[0] | {"sample": "0b"}, rows[0] | {"sample": "0c", "occasion": "anchor", "prompt": "another"}]
    found = planned_prompts(make_frames(rows, asked)[0].lazy(), asked)
    assert found.up_to == {"eye": {"x": [1, 2], "y": [0, 1], "z": [1, 1]}}
    assert found.asked_in == {"q": frozenset("xy"), "only": frozenset("x")}


def test_a_kind_of_items_is_planned_in_the_categories_whose_lists_have_one(
    make_rubric: Callable[..., Rubric], make_frames: Callable[..., Any]
) -> None:
    asked = replace(
        make_rubric({None: ("q", "thing", "colour")}, report_by="category"),
        items=Items("items", False, {}, {}, {"t": "thing", "c": "colour"}),
    )
    frame = make_frames([{"category": name, "prompt": name, "sample": name, "look": 1} for name in "xy"], asked)[0]
    lists = ['[{"id":"0","kinds":["colour","thing"]}]', r'[{"id":"\"kinds\":[\"colour\"]","kinds":["thing"]}]']
    found = planned_prompts(frame.with_columns(items_json=pl.Series(lists)).lazy(), asked)
    assert found.asked_in == {"q": frozenset("xy"), "thing": frozenset("xy"), "colour": frozenset("x")}
