"""Who is left after a look: known by replaying it, whatever replies others bought, and however the asking ended."""

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from rubrics.model import Rubric
from schemas.benchmark.file import Statistics
from schemas.benchmark.rounds import Stopping
from tasks.aggregate.leaving import Leaving
from tasks.aggregate.tables import Settings, headline_rows
from tests.aggregate.test_looks import FULL, NOT_ASKED, OPEN, rows_of

WORSE = [value - 4 - n % 2 for n, value in enumerate(FULL)]
"""Decided against FULL on its first ten prompts."""


@pytest.fixture
def plain(make_rubric: Callable[..., Rubric]) -> Rubric:
    return make_rubric({None: ("overall_score",)})


@pytest.mark.parametrize(
    ("n_shared", "look", "mean"),
    [(0, 1, 1.4), (4, 1, 1.4), (9, 1, 1.4), (10, 2, 3.95)],
    ids=["nothing", "some", "nearly all", "all: as good as asked"],
)
def test_replies_bought_for_another_checkpoint_are_none_of_one_that_was_left(
    n_shared: int, look: int, mean: float, all_tables: Callable[..., Any], plain: Rubric, one: Any
) -> None:
    """3 is decided after the first look; then 2, which is open, is asked on, and shares pictures with it."""
    left = rows_of("3", [*WORSE[:10], *[NOT_ASKED] * 10])
    still_open = rows_of("2", [value + n % 2 for n, value in enumerate(FULL)])
    for its, other in [*zip(left, still_open, strict=True)][10 : 10 + n_shared]:
        its["question"] = other["question"] = its["sample"]
        its["scores"] = {}
    tables = all_tables(
        rows_of("1", FULL) + still_open + left, plain, stopping=OPEN, family="pair", baseline="north/1", min_coverage=0.8
    )
    cell = one(tables["benchmark_long"], checkpoint="3", category="__macro__", estimand="prompts_like_these")
    assert (cell["look"], cell["n_failed"], cell["status"]) == (look, 0, "ok")
    assert cell["estimate"] == pytest.approx(mean)
    assert tables["failures"].is_empty()


@pytest.mark.parametrize(
    ("lost", "of"),
    [(NOT_ASKED, {"look": 2, "n_failed": 1}), (1, {"look": 2, "n_failed": 0})],
    ids=["a reply is missing", "none is"],
)
def test_a_checkpoint_that_another_run_asked_to_the_end_stands_there(
    lost: Any, of: dict[str, int], all_tables: Callable[..., Any], plain: Rubric, one: Any
) -> None:
    """By looks it would have been left after the first: what was asked for it alone since is not passed over in silence."""
    rows = rows_of("1", FULL) + rows_of("3", [*WORSE[:19], lost])
    tables = all_tables(rows, plain, stopping=OPEN, family="pair", baseline="north/1", min_coverage=0.8)
    cell = one(tables["benchmark_long"], checkpoint="3", category="__macro__", estimand="prompts_like_these")
    assert {name: cell[name] for name in of} == of


def test_beside_a_judge_that_is_asked_in_looks_a_recorded_one_may_lack_replies(
    all_tables: Callable[..., Any], plain: Rubric
) -> None:
    asked = rows_of("1", FULL) + rows_of("2", [*FULL[:13], *[NOT_ASKED] * 7])
    recorded = rows_of("1", FULL) + rows_of("2", [*FULL[:19], NOT_ASKED])
    rows = asked + [row | {"judge": "recorded", "look": None} for row in recorded]
    cells = all_tables(rows, plain, stopping=OPEN, baseline="north/1")["benchmark_long"]
    found = cells.filter(category="__macro__", estimand="prompts_like_these", judge_model="recorded").sort("checkpoint")
    assert found.select("look", "n_failed").rows() == [(None, 0), (None, 1)]


def test_where_asking_ended_amid_a_look_all_that_are_open_lack_it(all_tables: Callable[..., Any], plain: Rubric) -> None:
    """The money ended while 1 was asked: 2 was not reached, and 3 needed no more."""
    cut = {"1": [*FULL[:13], *[NOT_ASKED] * 7], "2": [*(value + n % 2 for n, value in enumerate(FULL[:10])), *[NOT_ASKED] * 10]}
    rows = [row for name, values in cut.items() for row in rows_of(name, values)]
    rows += rows_of("3", [*WORSE[:10], *[NOT_ASKED] * 10])
    cells = all_tables(rows, plain, stopping=OPEN, family="pair", baseline="north/1", min_coverage=0.8)["benchmark_long"]
    found = cells.filter(category="__macro__", estimand="prompts_like_these").sort("checkpoint")
    assert found.select("look", "n_failed", "status").rows() == [(2, 7, "blocked"), (2, 10, "blocked"), (1, 0, "ok")]


@pytest.mark.parametrize(
    ("n_of_other", "baseline", "ended"),
    [
        (0, "north/1", {"north/1": 1, "north/3": 1}),
        (0, "north/0", {"north/1": 1, "north/3": 1}),
        (4, "north/1", {"north/1": 1, "north/3": 1}),
        (5, "north/1", {}),
    ],
    ids=["decided", "another is not there", "too few prompts of another", "enough that are still to come"],
)
def test_what_can_never_be_compared_is_waited_for_by_nobody(
    n_of_other: int, baseline: str, ended: dict[str, int],
    make_frames: Callable[..., Any], plain: Rubric,
) -> None:  # fmt: skip
    """1 and 3 are decided; 4 has prompts from the second look on alone but one."""
    other = rows_of("4", FULL)[9 : 9 + n_of_other]
    judgements, scores = make_frames(rows_of("1", FULL) + rows_of("3", WORSE) + other, plain)
    by = Statistics(family="pair", stopping=Stopping(looks=[0.5, 1.0], futility=0))
    run = Settings("nightly", "d" * 64, "", date(2026, 11, 3), 0.0, by, baseline)
    leaving = Leaving.of(judgements.lazy(), {plain.id: plain}, plain, "eye", run.benchmark, by)
    assert leaving.replayed(lambda mine: headline_rows(mine, scores.lazy(), plain, run, leaving.prompts)) == ended
