"""Several judges as one: which samples count, with what value, and what stands beside the figure."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

import polars as pl
import pytest

from schemas.tables.published import POOLED
from schemas.tables.table import conform
from tasks.aggregate.pooled import pooled
from tasks.aggregate.tables import Settings, long_table

Make = Callable[..., Any]
KEYS = {None: ("score",)}


def run(min_coverage: float = 0.0) -> Settings:
    return Settings("nightly", "d" * 64, "e" * 64, date(2026, 11, 3), min_coverage)


def both(judgements: pl.DataFrame, scores: pl.DataFrame, asked: Any, how: Settings) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(benchmark_long, pooled)"""
    given = (judgements.lazy(), scores.lazy(), {asked.id: asked}, how)
    cells = long_table(*given)
    return cells, pooled(*given, cells)


@pytest.fixture
def pool(make_rubric: Make, make_frames: Make) -> Callable[..., pl.DataFrame]:
    def made(rows: list[dict[str, Any]], variants: Any = None, floor: float = 0.0, **more: Any) -> pl.DataFrame:
        asked = make_rubric(variants or KEYS, **more)
        judgements, scores = make_frames(rows, asked)
        return both(judgements, scores, asked, run(floor))[1]

    return made


def row(judge: str, sample: str, score: Any, prompt: str | None = None, **more: Any) -> dict[str, Any]:
    return {"judge": judge, "sample": sample, "prompt": prompt or sample, "scores": {"score": score}} | more


def cell(table: pl.DataFrame, category: str = "__macro__", **more: Any) -> dict[str, Any]:
    return table.row(by_predicate=_is(category=category, estimand="prompts_like_these", **more), named=True)


def _is(**values: Any) -> pl.Expr:
    return pl.all_horizontal(pl.col(name) == value for name, value in values.items())


JURY = [("a", 2), ("b", 6), ("c", 9)]


def test_one_judge_is_no_jury(pool: Make) -> None:
    assert pool([row("one", "s", 5)]).is_empty()


def test_where_pairs_alone_are_judged_there_is_no_mean(make_rubric: Make, make_frames: Make) -> None:
    asked = replace(make_rubric(KEYS), is_of_pairs=True)
    assert both(*make_frames([row(judge, "s", 5) for judge in ("one", "two")], asked), asked, run())[1].is_empty()


def test_the_mean_is_over_judges_and_then_over_samples_that_all_scored(pool: Make) -> None:
    rows = [row("one", name, score) for name, score in JURY] + [row("two", name, score - 2) for name, score in JURY[:2]]
    table = pool([*rows, row("two", "c", "refusal")])
    conform(table, POOLED)
    found = cell(table)
    assert found["estimate"] == (1 + 5) / 2  # c is left out, though one judge gave it 9
    assert (found["n_judges"], found["n_images"], found["n_samples"], found["coverage"]) == (2, 2, 3, 2 / 3)
    assert json.loads(found["judges_json"]) == {"one": 4.0, "two": 2.0}
    assert found["judge_spread"] == 2.0
    assert found["n_failed"] == 1
    # c: the one judge gave 9, the other can have given 0 to 10
    assert (found["bound_low"], found["bound_high"]) == ((1 + 5 + 4.5) / 3, (1 + 5 + 9.5) / 3)


def test_under_the_floor_it_is_blocked_and_no_judge_is_shown(pool: Make) -> None:
    rows = [row(judge, name, score) for judge in ("one", "two") for name, score in JURY[:2]]
    found = cell(pool([*rows, row("one", "c", 9), row("two", "c", "refusal")], floor=0.99))
    assert (found["status"], found["reason"], found["estimate"], found["judge_spread"]) == ("blocked", "refusal", None, None)
    assert json.loads(found["judges_json"]) == {"one": None, "two": None}


@pytest.mark.parametrize("judges", [("one", "two"), ("two", "one")])
def test_what_is_blocked_for_two_judges_is_so_for_the_reason_of_who_lacks_most(pool: Make, judges: tuple[str, str]) -> None:
    rows = [row(judge, name, score) for judge in judges for name, score in JURY[:2]]
    failed = [("c", "refusal", 5), ("d", 5, "malformed"), ("e", 5, "malformed")]
    rows += [row(judge, name, said) for name, *both in failed for judge, said in zip(judges, both, strict=True)]
    assert cell(pool(rows, floor=0.99))["reason"] == "malformed"


def test_repeats_are_averaged_before_judges(pool: Make) -> None:
    rows = [row("one", "a", score, repeat=n) for n, score in enumerate((0, 2, 4))] + [row("two", "a", 10)]
    assert cell(pool(rows))["estimate"] == 6.0  # (2 + 10) / 2, not the mean of four scores


def test_a_sample_one_judge_could_not_be_asked_about_is_a_failure(pool: Make) -> None:
    lost = {"judge": "two", "sample": "b", "prompt": "b", "status": "unusable_sample", "reason": "broken_image"}
    found = cell(pool([row("one", "a", 4), row("two", "a", 6), row("one", "b", 9), lost]))
    assert (found["estimate"], found["n_samples"], found["n_failed"]) == (5.0, 2, 1)


ASIDE = ("not_applicable", None, None, 0.0, 10.0)


@pytest.mark.parametrize(
    ("one", "two", "n_samples", "reason"),
    [(9, ASIDE, 3, "not_scored_by_every_judge"), ("refusal", ASIDE, 3, "refusal"), (ASIDE, ASIDE, 2, None)],
    ids=["one scored it", "one refused", "both say so"],
)
def test_what_does_not_apply_for_every_judge_is_no_failure(
    pool: Make, one: Any, two: Any, n_samples: int, reason: str | None
) -> None:
    """A rubric of one dimension: such a reply has no other row that stands for the request."""
    rows = [row(judge, name, score) for judge in ("one", "two") for name, score in JURY[:2]]
    found = cell(pool([*rows, row("one", "c", one), row("two", "c", two)], floor=0.99))
    assert (found["estimate"], found["n_samples"], found["n_failed"]) == (None if reason else 4.0, n_samples, n_samples - 2)
    assert found["reason"] == reason


def test_a_repeat_that_failed_counts_before_one_that_does_not_apply(pool: Make) -> None:
    rows = [
        row("one", "a", ASIDE),
        row("one", "a", "refusal", repeat=1),
        row("two", "a", ASIDE),
        row("one", "b", 4),
        row("two", "b", 6),
    ]
    found = cell(pool(rows))
    assert (found["estimate"], found["n_samples"], found["n_failed"]) == (5.0, 2, 1)


def test_the_interval_is_the_one_of_a_judge_who_gave_the_means(pool: Make, make_rubric: Make, make_frames: Make) -> None:
    gave = [(f"p{n}", f"s{n}{m}", (n * 7 + m * 3) % 10) for n in range(6) for m in range(2)]
    table = pool([row(judge, s, score + shift, prompt=p) for judge, shift in (("one", 0), ("two", 1)) for p, s, score in gave])
    asked = make_rubric(KEYS)
    judgements, scores = make_frames([row("mean", s, score + 0.5, prompt=p) for p, s, score in gave], asked)
    alone = long_table(judgements.lazy(), scores.lazy(), {asked.id: asked}, run()).filter(category="__macro__")
    same = ["estimate", "se", "ci_low", "ci_high", "ci_method", "df", "n_prompts", "n_images", "estimand"]
    assert table.filter(category="__macro__").select(same).sort("estimand").rows() == alone.select(same).sort("estimand").rows()


def test_categories_and_checkpoints_are_cells_of_their_own(pool: Make) -> None:
    variants = {"colors": ("score",), "counting": ("score",)}
    rows = [
        row(judge, f"{category}{checkpoint}", score + shift, category=category, checkpoint=checkpoint)
        for judge, shift in (("one", 0), ("two", 2))
        for category, checkpoint, score in (("colors", "1", 1), ("counting", "1", 5), ("colors", "2", 3), ("counting", "2", 7))
    ]
    table = pool(rows, variants)
    assert cell(table, "colors", checkpoint="1")["estimate"] == 2.0
    assert cell(table, "__macro__", checkpoint="2")["estimate"] == 6.0
    assert json.loads(cell(table, "__macro__", checkpoint="2")["judges_json"]) == {"one": 5.0, "two": 7.0}


def test_the_order_of_rows_changes_nothing(make_rubric: Make, make_frames: Make) -> None:
    asked = make_rubric(KEYS)
    rows = [row(judge, f"s{n}", (n * k) % 11 / 3) for k, judge in enumerate(("one", "two", "three"), 3) for n in range(40)]
    tables = []
    for shuffled in (rows, rows[::-1]):
        judgements, scores = make_frames(shuffled, asked)
        tables.append(both(judgements, scores.sort("request_key"), asked, run())[1])
    assert tables[0].equals(tables[1])


def test_anchors_are_not_pooled(pool: Make) -> None:
    rows = [row(judge, "a", 5) for judge in ("one", "two")] + [row("one", "b", 9, occasion="2026-11-03")]
    assert cell(pool(rows))["n_samples"] == 1
