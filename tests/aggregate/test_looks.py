"""Checkpoints asked look by look: what was left is in no figure, what failed before is, and intervals are those of the look."""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from scipy import stats

from rubrics.model import Rubric
from schemas.benchmark.rounds import Stopping
from tasks.aggregate.sequential import Look

NOT_ASKED = ("no_reply", "not_asked", None, 0.0, 10.0)
BAD = ("unreadable", "malformed", None, 0.0, 10.0)
LOOKS = Stopping(looks=[0.5, 1.0], decide=["predecessor"])


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
        ([*FULL[:10], *FULL[10:14], *[NOT_ASKED] * 6], 1, 10, 0),
        ([*FULL[:10], *FULL[10:15], *[NOT_ASKED] * 5], 2, 20, 5),
        ([*FULL[:6], *[NOT_ASKED] * 14], 1, 10, 4),
        ([NOT_ASKED] * 20, 1, 10, 10),
        ([*FULL[:10], *[BAD] * 10], 2, 20, 10),
        (FULL, 2, 20, 0),
    ],
    ids=["left", "a failure before", "replies others asked for", "cut amid the second", "cut amid the first", "never asked",
         "all unreadable", "whole"],
)  # fmt: skip
def test_what_was_left_is_no_failure(
    values: list[Any], look: int, n_judgements: int, n_failed: int, all_tables: Callable[..., Any], plain: Rubric, one: Any
) -> None:
    tables = all_tables(rows_of("1", FULL) + rows_of("2", values), plain, stopping=LOOKS)
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
