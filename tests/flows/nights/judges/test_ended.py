"""What a night and `salon doctor` say of a replaced judge: which series end, with which night, and who took its place."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import polars as pl
import pytest

from flows.nights.ended import found_ended
from schemas.statuses.nights import N_BASELINE

FIRST = date(2026, 1, 1)
ALARM = ", with 1 open alarm (since 2026-02-12)"
Bridges = tuple[tuple[str, str, str], ...]  # rubric, old judge, new judge


@dataclass(frozen=True)
class Series:
    """Of one judge and rubric, in nights from the first one; the last one alarms where it is said."""

    judge: str
    rubric: str
    begins: int
    end: int
    has_limits: bool = True
    is_alarm: bool = False


@dataclass(frozen=True)
class Case:
    """`judges`: those of the file from a night on. `night` and `doctor`: who says it; the night is the last that has rows."""

    series: tuple[Series, ...]
    judges: dict[int, str]
    says: str = ""
    bridges: Bridges = ()
    night: bool = True
    doctor: bool = True
    version: str = "1"


A, B = Series("A", "r", 0, 45), Series("B", "r", 45, 46)
ENDS, ENDS_ALARMED = (f"1 series of judge A ends with the night of 2026-02-14{and_so}. " for and_so in ("", ALARM))
Q_ENDS = "1 series of judge A that no bridge joins (q score) ends with the night of 2026-02-14. "
NEW = "begins anew: no limits, and so no alarms, before 30 nights"
OF_TWO = "The new judges (B and D) begin anew: no limits, and so no alarms, before 30 nights"
OWN = "B has limits of its own there"
B_ENDS = f"1 series of judge B ends with the night of 2026-02-14. C {NEW}"
CASES = {
    "replaced": Case((A, B), {0: "A", 45: "B"}, f"{ENDS}B {NEW}"),
    "replaced in the file, before a night": Case((A,), {0: "A", 45: "B"}, f"{ENDS}B {NEW}", night=False),
    "on the second night": Case((A, Series("B", "r", 45, 47)), {0: "A", 45: "B"}, f"{ENDS}B {NEW}", night=False),
    "once the new one has limits": Case((A, Series("B", "r", 45, 76)), {0: "A", 45: "B"}),
    "both for some nights": Case(
        (Series("A", "r", 0, 45, is_alarm=True), Series("B", "r", 40, 46)), {0: "A", 40: "AB", 45: "B"}, f"{ENDS_ALARMED}B {NEW}"
    ),
    "both until the new one had limits": Case(
        (A, Series("B", "r", 10, 46)), {0: "A", 10: "AB", 45: "B"}, ENDS + OWN, doctor=False
    ),
    "one of two series joined": Case(
        (Series("B", "r", 0, 46), Series("A", "q", 0, 45), Series("B", "q", 45, 46)), {0: "A", 45: "B"}, f"{Q_ENDS}B {NEW}",
        bridges=(("r", "A", "B"),),
    ),
    "joined since the night": Case((A, B), {0: "A", 45: "B"}, bridges=(("r", "A", "B"),)),
    "joined, and then its successor replaced": Case(
        (Series("B", "r", 0, 45), Series("C", "r", 45, 46)), {0: "A", 40: "B", 45: "C"}, B_ENDS, bridges=(("r", "A", "B"),)
    ),
    "joined to it and back, then taken out": Case(
        (Series("A", "r", 0, 46, has_limits=False),), {0: "A", 45: "B"}, bridges=(("r", "A", "B"), ("r", "B", "A"))
    ),
    "by one that had limits before": Case(
        (Series("B", "r", 0, 40), Series("A", "r", 40, 45), B), {0: "B", 40: "A", 45: "B"}, ENDS + OWN, doctor=False
    ),
    "beside one that never has limits": Case(
        (A, Series("C", "r", 0, 46, has_limits=False), B), {0: "CA", 45: "CB"}, f"{ENDS}B {NEW}"
    ),
    "beside one of pairs alone": Case((A, B), {0: "CA", 45: "CB"}, f"{ENDS}B {NEW}"),
    "by two": Case((A, B, Series("D", "r", 45, 46)), {0: "A", 45: "BD"}, ENDS + OF_TWO),
    "taken out, and another stays": Case((A, Series("C", "r", 0, 46)), {0: "CA", 45: "C"}),
    "long ago, and its successor now": Case(
        (Series("A", "r", 0, 10), Series("B", "r", 10, 45), Series("C", "r", 45, 46)), {0: "A", 10: "B", 45: "C"}, B_ENDS
    ),
    "with another version of the rubric": Case((A, B), {0: "A", 45: "B"}, version="2"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_is_said_of_a_replaced_judge(case: Case) -> None:
    rows = _rows(case)
    night = rows["run_date"].max()
    assert isinstance(night, date)
    now = _said(max(case.judges), case)
    for looks_at, is_told in ((night, case.night), (None, case.doctor)):
        said = [says for says, _ in found_ended(rows, _bridges(case), _provenances(case), now, looks_at)]
        assert said == ([case.says] if case.says and is_told else [])


@pytest.mark.parametrize(("name", "to"), [("replaced", "--new B lets"), ("by two", "--new JUDGE (JUDGE: B or D) lets")])
def test_the_advice_names_who_took_the_place(name: str, to: str) -> None:
    case = CASES[name]
    ((_, advice),) = found_ended(_rows(case), None, _provenances(case), _said(max(case.judges), case), None)
    assert f"salon anchors bridge FILE --old A {to} them continue" in advice


def test_a_renamed_judge_is_told_of_elsewhere() -> None:
    case = CASES["replaced"]
    renamed = _said(45, case) | {"settings": {"judges": [{"model": "A", "name": "B"}, {"model": "C"}]}}
    assert list(found_ended(_rows(case), None, lambda day: renamed if day >= _day(45) else _said(0, case), renamed, None)) == []


def _day(number: int) -> date:
    return FIRST + timedelta(number)


def _rows(case: Case) -> pl.DataFrame:
    """drift_rows(), with what a bridge joins under its successor."""
    rows = [
        {
            "run_date": _day(n), "rubric_id": one.rubric, "rubric_version": "1", "judge_model": one.judge, "dimension": "score",
            "measured_by": _measured(case, one.judge, n), "is_alarm": one.is_alarm and n == one.end - 1,
            "limit_low": 1.0 if one.has_limits and n - one.begins >= N_BASELINE else None, "changed_on": _day(one.end - 3),
        }
        for one in case.series
        for n in range(one.begins, one.end)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema_overrides={"limit_low": pl.Float64})


def _measured(case: Case, judge: str, number: int) -> str:
    asked = _asked(case, number)
    return judge if judge in asked or not case.bridges else asked


def _asked(case: Case, number: int) -> str:
    return case.judges[max(since for since in case.judges if since <= number)]


def _said(number: int, case: Case) -> dict[str, Any]:
    version = case.version if number >= max(case.judges) else "1"
    rubrics = {"r": {"version": version}, "q": {"version": version}}
    return {"settings": {"judges": [{"model": judge} for judge in _asked(case, number)]}, "rubrics": rubrics}


def _provenances(case: Case) -> Callable[[date], dict[str, Any]]:
    return lambda day: _said((day - FIRST).days, case)


def _bridges(case: Case) -> pl.DataFrame | None:
    named = ("rubric_id", "judge_old", "judge_new")
    rows = [dict(zip(named, one, strict=True)) | {"rubric_version": "1", "dimension": "score"} for one in case.bridges]
    return pl.DataFrame(rows) if rows else None
