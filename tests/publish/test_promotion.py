"""What may become the current publication, and the last good one: every way a run can fall short, after every kind of run."""

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from schemas.metrics import means_for_prompts_like_these
from schemas.tables.published import BENCHMARK_LONG, FAILURES, PREFERENCES
from tasks.publish.folders import GOOD_POINTER, POINTER, PublicationName
from tasks.publish.pointer import move_back, read_pointer
from tasks.publish.promotion import Standing, standing_of, why_not_current, why_not_good
from tasks.publish.publication import Draft, publish
from tests.support.small_lake import failing, filled_row, table_of

DAY, BEFORE, AFTER = date(2026, 3, 2), date(2026, 3, 1), date(2026, 3, 3)
WHOLE = "whole"
RUNS = {
    # how a run went: (cells with an estimate, failures of each blocked cell) of 8 cells of 240 judgements; or with a third
    # entry: each has an estimate, and these failures
    WHOLE: (8, {}),
    "stopped by the budget at once": (0, {"not_asked": 24}),
    "stopped by the budget early": (1, {"not_asked": 24}),
    "stopped by the budget late": (7, {"not_asked": 24}),
    "the judge went down half way": (4, {"server_error": 20, "timed_out": 4}),
    "the key's limit was never got": (4, {"rate_limited": 24}),
    "one cell filtered": (7, {"filtered": 24}),
    "most cells filtered": (3, {"filtered": 24}),
    "all filtered": (0, {"filtered": 24}),
    "one cell refused, one reply of it lost": (7, {"refusal": 23, "timed_out": 1}),
    "half of a cell unreadable, half never asked": (7, {"malformed": 12, "not_asked": 12}),
    "one cell refused a reply and lost one": (7, {"refusal": 1, "timed_out": 1}),
    "stopped late, every cell over the floor": (0, {}, {"not_asked": 24}),
    "every cell lacks a reply": (0, {}, {"timed_out": 1}),
    "every cell lacks a reply or two": (0, {}, {"timed_out": 2}),
    "every cell has unreadable replies": (0, {}, {"malformed": 24}),
}


def listed(failures: dict[str, int]) -> dict[str, object]:
    return {"failures": [{"reason": word, "n_failed": n} for word, n in failures.items()], "n_failed": sum(failures.values())}


def cells(run: str, n_judgements: int = 240) -> pl.DataFrame:
    """The eight cells of a run, and beside them rows that cannot have an estimate: a total, categories of other questions."""
    n_estimates, failures, *of_all = RUNS[run]
    of_estimates = of_all[0] if of_all else {}
    n_estimates = 8 if of_all else n_estimates
    rows = [{"estimate": 3.0, "status": "ok"} | listed(of_estimates)] * n_estimates
    rows += [{"status": "blocked", "reason": "x"} | listed(failures)] * (8 - n_estimates)
    rows += [{"status": "null", "reason": reason} | listed({}) for reason in ["not_in_all_categories", *["not_applicable"] * 12]]
    counted = pl.List(pl.Struct({"reason": pl.String, "n_failed": pl.Int64}))
    schema = {"estimate": pl.Float64, "status": pl.String, "reason": pl.String, "failures": counted, "n_failed": pl.Int64}
    like_these = {"metric": pl.lit("mean"), "estimand": pl.lit("prompts_like_these")}
    return pl.DataFrame(rows, schema=schema).with_columns(n_judgements=pl.lit(n_judgements), **like_these)


def standing(run: str, day: date) -> Standing:
    return standing_of({BENCHMARK_LONG: cells(run)}, day)


@pytest.mark.parametrize(
    ("run", "first_ever", "after_a_whole_one", "after_one_stopped_early", "is_good"),
    [
        (WHOLE, True, True, True, True),
        ("stopped by the budget at once", False, False, False, False),
        ("stopped by the budget early", True, False, True, False),
        ("stopped by the budget late", True, False, True, False),
        ("the judge went down half way", True, False, True, False),
        ("the key's limit was never got", True, False, True, False),
        ("one cell filtered", True, True, True, False),
        ("most cells filtered", True, False, True, False),
        ("all filtered", False, False, False, False),
        ("one cell refused, one reply of it lost", True, True, True, False),
        ("half of a cell unreadable, half never asked", True, False, True, False),
        ("one cell refused a reply and lost one", True, False, True, False),
        ("stopped late, every cell over the floor", True, False, True, False),
        ("every cell lacks a reply or two", True, True, True, True),
        ("every cell has unreadable replies", True, True, True, True),
    ],
)
def test_what_may_become_current(
    run: str, *, first_ever: bool, after_a_whole_one: bool, after_one_stopped_early: bool, is_good: bool
) -> None:
    new, whole, early = standing(run, DAY), standing(WHOLE, BEFORE), standing("stopped by the budget early", BEFORE)
    assert [why_not_current(new, before) is None for before in (None, whole, early)] == [
        first_ever,
        after_a_whole_one,
        after_one_stopped_early,
    ]
    assert (why_not_good(new, whole) is None) == is_good
    later = standing(WHOLE, AFTER)
    assert why_not_current(new, later) is not None, "an older run date"
    assert why_not_good(new, later) is not None


@pytest.mark.parametrize(("run", "n_judgements", "becomes"), [
    ("every cell lacks a reply", 12, True), ("every cell lacks a reply", 1, True), ("every cell lacks a reply or two", 12, False),
    ("every cell lacks a reply or two", 199, False), ("every cell lacks a reply or two", 200, True),
    ("one cell refused, one reply of it lost", 24, True),
])  # fmt: skip
def test_of_a_small_cell_one_reply_that_never_came_holds_no_night_back(run: str, n_judgements: int, *, becomes: bool) -> None:
    new = standing_of({BENCHMARK_LONG: cells(run, n_judgements)}, DAY)
    assert (why_not_current(new, standing(WHOLE, BEFORE)) is None) == becomes


def test_of_two_that_fall_short_the_one_that_shows_more_stays() -> None:
    late, early = standing("stopped by the budget late", BEFORE), standing("stopped by the budget early", DAY)
    assert why_not_current(early, late) == (
        "7 of its 8 cells lack replies, and the current one has a larger share of estimates (7 of 8 cells; here 1 of 8)"
    )
    assert why_not_current(standing("stopped by the budget late", DAY), late) is None, "the latest of equals"


def test_the_reason_is_what_the_rule_looked_at() -> None:
    current = Standing(BEFORE, n_cells=30, n_estimates=30)
    more_cells = Standing(DAY, n_cells=45, n_estimates=45, n_cut_short=9)
    assert why_not_current(more_cells, current) == "9 of its 45 cells lack replies, and none of the current one's 30"
    no_estimates = Standing(DAY, n_cells=8, n_estimates=3, n_blocked=5)
    some = Standing(BEFORE, n_cells=8, n_estimates=7, n_blocked=1)
    assert why_not_current(no_estimates, some) == "5 of its 8 cells have no estimate, and 1 of the current one's 8"


def test_a_current_one_that_is_gone_gives_way(tmp_path, small_cells, put, name_digest):  # type: ignore[no-untyped-def]
    old = put(tmp_path, small_cells)
    (old.folder / "benchmark_long.parquet").unlink()
    short = small_cells.with_columns(failing(not_asked=9), status=pl.lit("blocked"), n_failed=pl.lit(9))
    assert put(tmp_path, short, publication_id=name_digest("short"), run_date=AFTER.replace(year=2027)).is_current


def test_two_pointers(tmp_path, small_cells, put, name_digest):  # type: ignore[no-untyped-def]
    """A complete table with a blocked cell is current and not good; one that was cut short is neither."""
    is_one = pl.col("cell_id") == means_for_prompts_like_these(small_cells).drop_nulls("estimate")["cell_id"][0]

    def with_a_blocked_cell(**failures: int) -> pl.DataFrame:
        blocked = {"estimate": pl.lit(None), "status": pl.lit("blocked"), "failures": failing(**failures), "n_failed": pl.lit(9)}
        return small_cells.with_columns(
            pl.when(is_one).then(value).otherwise(name).alias(name) for name, value in blocked.items()
        )

    good = put(tmp_path, small_cells)
    refused = put(tmp_path, with_a_blocked_cell(refusal=9), publication_id=name_digest("refused"))
    short = put(tmp_path, with_a_blocked_cell(not_asked=9), publication_id=name_digest("short"))
    assert [one.is_current for one in (good, refused, short)] == [True, True, False]
    assert short.why_not_current is not None
    assert "lack replies" in short.why_not_current
    named = [read_pointer(good.folder.parent, name) for name in (POINTER, GOOD_POINTER)]
    assert [found and found["publication_id"] for found in named] == [refused.publication_id, good.publication_id]


def test_one_that_was_cut_short_does_not_become_current_by_starting_it_again(tmp_path, small_cells, put, name_digest):  # type: ignore[no-untyped-def]
    """Then its cells alone are at hand; why they lack replies stands in its folder."""
    put(tmp_path, small_cells)
    is_first = pl.col("cell_id") == means_for_prompts_like_these(small_cells).drop_nulls("estimate")["cell_id"][0]
    lacks = {"estimate": pl.lit(None, pl.Float64), "status": pl.lit("blocked"), "n_failed": pl.lit(9)}
    short = small_cells.with_columns(pl.when(is_first).then(to).otherwise(name).alias(name) for name, to in lacks.items())
    short = short.drop("failures", strict=False)
    blocked = short.filter(is_first)
    of_cell = [name for name in FAILURES.empty().columns if name not in {"reason", "n_failed"}]
    lost = [filled_row(FAILURES, **row, reason="not_asked", n_failed=9) for row in blocked.select(of_cell).to_dicts()]
    named = PublicationName("nightly", name_digest("short"), AFTER.replace(year=2027))
    further = {FAILURES: table_of(FAILURES, lost)}
    once = put(tmp_path, short, publication_id=named.publication_id, run_date=named.run_date, further=further)
    again = publish(tmp_path, Draft(named, {BENCHMARK_LONG: short}, {}, is_there=True))
    assert (once.is_new, once.is_current) == (True, False)
    assert (again.is_new, again.is_current, again.why_not_current) == (False, False, once.why_not_current)


@pytest.mark.parametrize(
    ("unanswered", "status", "is_held_back"),
    [
        pytest.param({"n_unanswered": 0}, "blocked", False, id="the judge refused them: asking again changes nothing"),
        pytest.param({"n_unanswered": 4}, "blocked", False, id="blocked by what it refused, four lack replies of 1,000"),
        pytest.param({"n_unanswered": 150}, "blocked", True, id="blocked by replies that never came"),
        pytest.param({"n_unanswered": 11}, "ok", True, id="more than 1 % never came"),
        pytest.param({"n_unanswered": 10}, "ok", False, id="1 % never came"),
        pytest.param({}, "blocked", True, id="an older release's, which does not say why"),
        pytest.param({}, "ok", False, id="an older release's that is not blocked"),
    ],
)
def test_comparisons_by_pairs_are_held_back_for_replies_that_never_came_alone(
    unanswered: dict[str, int], status: str, is_held_back: bool
) -> None:
    counts = {"n_verdicts_asked": 1000, "n_verdicts": 700} | unanswered
    row = filled_row(PREFERENCES, category="__macro__", status=status, win_rate=None if status == "blocked" else 0.5, **counts)
    told = pl.DataFrame([row], PREFERENCES.empty().schema).select(pl.all() if unanswered else pl.exclude("n_unanswered"))
    new = standing_of({BENCHMARK_LONG: cells(WHOLE), PREFERENCES: told}, DAY)
    held_back = "1 of its 9 cells lack replies, and none of the current one's 8"
    assert why_not_current(new, standing(WHOLE, BEFORE)) == (held_back if is_held_back else None)


LATE, FILTERED, NONE = "stopped by the budget late", "one cell filtered", "all filtered"


@pytest.mark.parametrize(
    ("others", "is_current", "is_good"),
    [
        ([WHOLE, LATE], 0, 0),
        ([WHOLE, FILTERED, LATE], 1, 0),
        ([LATE, "stopped by the budget early"], 0, None),
        ([WHOLE, NONE], 0, 0),
        ([NONE], None, None),
        ([], None, None),
    ],
)
def test_one_taken_back_leaves_what_would_stand_without_it(
    tmp_path: Path, name_digest: Callable[[str], str], others: list[str], is_current: int | None, is_good: int | None
) -> None:
    home = tmp_path / "publish" / "v1" / "nights"
    folders = [home / name_digest(f"night {number}") for number in range(len(others) + 1)]
    for folder, run in zip(folders, [*others, WHOLE], strict=True):
        folder.mkdir(parents=True)
        cells(run).write_parquet(folder / "benchmark_long.parquet")
        (folder / "manifest.json").write_text('{"files": {}}')
    named = {"publication_id": folders[-1].name, "run_date": "2099-01-01", "manifest_sha256": ""}
    for name in (POINTER, GOOD_POINTER):
        (home / name).write_text(json.dumps(named))
    move_back(tmp_path, folders[-1], [(folder, date(2026, 3, 1 + number)) for number, folder in enumerate(folders[:-1])])
    back = [read_pointer(home, name) for name in (POINTER, GOOD_POINTER)]
    expected = [None if number is None else folders[number].name for number in (is_current, is_good)]
    assert [found and found["publication_id"] for found in back] == expected


def test_taking_back_one_that_no_pointer_names_moves_none(tmp_path: Path, name_digest: Callable[[str], str]) -> None:
    """A run may have moved it since it was read."""
    home, named = tmp_path / "publish" / "v1" / "nights", name_digest("night 2")
    home.mkdir(parents=True)
    for name in (POINTER, GOOD_POINTER):
        (home / name).write_text(json.dumps({"publication_id": named, "run_date": "2026-03-02", "manifest_sha256": ""}))
    move_back(tmp_path, home / name_digest("night 1"), [])
    assert [(read_pointer(home, name) or {}).get("publication_id") for name in (POINTER, GOOD_POINTER)] == [named] * 2
