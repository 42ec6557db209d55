"""`salon table --category`: single categories of a dimension ranked by its total have their comparison, and no rank."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schemas.tables.published import COMPARISONS, STANDINGS
from tasks.publish.folders import PublicationName
from tasks.publish.publication import Draft, publish
from tests.flows.commands.printed.test_table_command import DAY, cell, tables_of
from tests.flows.flow_support import Said
from tests.support.small_lake import filled_row, table_of

WORSE, TOTAL = "counting", "__macro__"


def cell_id(category: str, step: int) -> str:
    return f"{category:{step}<12.12}"


def compared(category: str, verdict: str, **changes: Any) -> dict[str, Any]:
    """step-2 against step-1."""
    return {
        "comparison": "predecessor", "rubric_id": "small", "judge_model": "eye", "dimension": "score", "category": category,
        "metric": "mean", "estimand": "prompts_like_these", "model_a": "north", "checkpoint_a": "step-2", "model_b": "north",
        "checkpoint_b": "step-1", "delta": -3.5, "ci_low_adjusted": -4.0, "ci_high_adjusted": -1.25, "p_adjusted": 0.041,
        "verdict": verdict, "family": "categories | small | eye", "n_prompts_paired": 10, "is_primary": False,
        "cell_id_a": cell_id(category, 2),
    } | changes  # fmt: skip


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Two checkpoints: a ranked total, a category that got worse, and one of which nothing can be told."""
    named = [(category, step) for category in (TOTAL, WORSE, "colors") for step in (1, 2)]
    cells = [cell("north", 5.0, category=name, checkpoint=f"step-{step}", cell_id=cell_id(name, step)) for name, step in named]
    ranked = {"is_headline": True, "state": "ranked", "n_ranked": 2, "n_shared_prompts": 60, "n_prompts_needed": 5}
    totals = [one | ranked | {"rank_low": 1, "rank_high": 2} for one in cells if one["category"] == TOTAL]
    standings = table_of(STANDINGS, [{name: value for name, value in row.items() if name in STANDINGS.columns} for row in totals])
    rows = [
        compared(WORSE, "lower"),
        compared("colors", "open", delta=0.5, ci_low_adjusted=-1.0, ci_high_adjusted=2.0, p_adjusted=1.0),
        compared(TOTAL, "lower", family="headline | nightly", is_primary=True),
        compared("__micro__", "lower"),
        compared(WORSE, "lower", comparison="each_other", delta=-9.0),
    ]  # fmt: skip
    tables = tables_of(cells) | {
        STANDINGS: standings,
        COMPARISONS: table_of(COMPARISONS, [filled_row(COMPARISONS, **row) for row in rows]),
    }
    publish(tmp_path / "lake", Draft(PublicationName("nightly", "f" * 64, DAY), tables, {}))
    return tmp_path / "lake"


@pytest.mark.parametrize(
    ("category", "told"),
    [(WORSE, "-3.50 [-4.00, -1.25] worse, exploratory"), ("colors", "+0.50 [-1.00, +2.00] can't tell")],
    ids=["worse", "open"],
)
def test_a_category_has_its_comparison_and_no_rank(
    lake: Path, salon: Callable[..., Said], monkeypatch: Any, category: str, told: str
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert told in salon("table", "--category", category).out
    assert told in salon("table", "--category", category, "--format", "markdown").out.replace("\\", "")
    as_json = {row["checkpoint"]: row for row in json.loads(salon("table", "--category", category, "--format", "json").out)}
    assert (as_json["step-2"]["predecessor"], as_json["step-1"]["predecessor"]) == (told, "")
    assert {(row["rank"], row["rank_low"], row["state"]) for row in as_json.values()} == {("–", None, None)}
    as_csv = {
        row["checkpoint"]: row
        for row in csv.DictReader(io.StringIO(salon("table", "--category", category, "--format", "csv").out))
    }
    for name in ("delta_predecessor", "delta_predecessor_low", "delta_predecessor_high", "p_predecessor"):
        assert float(as_csv["step-2"][name]) == as_json["step-2"][name]
        assert as_csv["step-1"][name] == ""


def test_the_categories_that_got_worse_are_named_below_the_table(
    lake: Path, salon: Callable[..., Said], monkeypatch: Any
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    last = salon("table").out.splitlines()[-1]
    assert last == (
        "worse than its predecessor in single categories, exploratory: counting (small, eye, score: step-2 -3.50); "
        "--category NAME shows one"
    )
    assert "worse than its predecessor" not in salon("table", "--rubric", "small").out
    (page,) = lake.glob("publish/v1/nightly/*/leaderboard.md")
    told = page.read_text().replace("\\", "")
    assert "\n- worse than its predecessor in single categories, exploratory: counting (small, eye, score: step-2 -3.50)" in told


def test_of_several_models_the_one_that_fell_is_named_and_a_small_fall_is_one(
    tmp_path: Path, salon: Callable[..., Said], monkeypatch: Any
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    cells = [
        cell(model, 5.0, category=name, cell_id=f"{model}{name:_<7.7}") for model in ("north", "south") for name in (TOTAL, WORSE)
    ]
    fell = [compared(WORSE, "lower"), compared(WORSE, "lower", delta=-0.004, model_a="south", model_b="south", p_adjusted=0.05)]
    filled = table_of(COMPARISONS, [filled_row(COMPARISONS, **row) for row in fell])
    publish(tmp_path / "lake", Draft(PublicationName("nightly", "f" * 64, DAY), tables_of(cells) | {COMPARISONS: filled}, {}))
    named = "counting (small, eye, score: north / step-2 -3.50), counting (small, eye, score: south / step-2 -0.004); "
    assert named in salon("table").out


def falling(category: str, p: float, high: float, **changes: Any) -> dict[str, Any]:
    """step-2 against step-1 in a category in which nothing is sure."""
    return compared(category, "open", delta=-2.0, ci_low=-3.5, ci_high=high, p=p, p_adjusted=1.0, **changes)


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ([falling("colors", 0.04, -0.1), falling(WORSE, 0.01, -0.5)], WORSE),
        ([falling("colors", 0.2, 0.5), falling(WORSE, 0.04, -0.1, family="aspects | small | eye")], WORSE),
        ([falling("colors", 0.2, 0.5), falling(WORSE, 0.3, 0.9)], None),
        ([falling("colors", 0.04, -0.1, comparison="baseline"), falling(TOTAL, 0.01, -0.1)], None),
    ],
    ids=["the clearest of two", "an aspect", "none clear", "neither the predecessor nor a category"],
)
def test_the_clearest_fall_is_named_as_one_of_many(
    tmp_path: Path, salon: Callable[..., Said], monkeypatch: Any, rows: list[dict[str, Any]], named: str | None
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    tables = tables_of([cell("north", 5.0, category=name, cell_id=cell_id(name, 2)) for name in (TOTAL, WORSE, "colors")])
    filled = table_of(COMPARISONS, [filled_row(COMPARISONS, **row) for row in rows])
    publish(tmp_path / "lake", Draft(PublicationName("nightly", "f" * 64, DAY), tables | {COMPARISONS: filled}, {}))
    said = salon("table").out
    high = next((row["ci_high"] for row in rows if row["category"] == named), None)
    line = (
        "the clearest fall of 2 comparisons of single categories, not corrected (a hint, not a finding): "
        f"{named} (small, eye, score: step-2 -2.00 [-3.50, {high}0]); --category NAME shows one\n"
    )
    assert ("the clearest fall" in said, line in said) == (named is not None,) * 2, said


def test_a_rubric_s_categories_are_those_of_its_primary_dimension(tmp_path: Path, salon: Callable[..., Said]) -> None:
    named = [(key, category) for key in ("overall_score", "accuracy") for category in (TOTAL, WORSE, "colors")]
    cells = [
        cell("north", 5.0, dimension=key, category=category, cell_id=f"{key[:4]}{category:_<8.8}") for key, category in named
    ]
    ranked = {"state": "ranked", "n_ranked": 1, "n_shared_prompts": 60, "n_prompts_needed": 5, "rank_low": 1, "rank_high": 1}
    totals = [one | ranked | {"is_headline": one["dimension"] == "accuracy"} for one in cells if one["category"] == TOTAL]
    standings = table_of(STANDINGS, [{name: value for name, value in row.items() if name in STANDINGS.columns} for row in totals])
    publish(tmp_path / "lake", Draft(PublicationName("nightly", "f" * 64, DAY), tables_of(cells) | {STANDINGS: standings}, {}))
    for arguments, key in (((), "accuracy"), (("--dimension", "overall_score"), "overall_score")):
        told = salon("table", "--rubric", "small", *arguments).out
        assert [line.split()[0] for line in told.splitlines() if " by category" in line] == [key]


def test_a_total_is_what_its_standing_says(lake: Path, salon: Callable[..., Said]) -> None:
    rows = json.loads(salon("table", "--format", "json").out)
    assert {(row["rank"], row["delta_predecessor"]) for row in rows} == {("1–2", None)}
