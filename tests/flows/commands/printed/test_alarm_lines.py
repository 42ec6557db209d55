"""A night's alarms where its table is printed: whose, on what they are blamed, since when; of that night's publication alone."""

import json
import os
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from flows.nights.record import Night, note_night
from schemas.tables.nights import DRIFT
from tasks.publish.folders import PublicationName
from tasks.publish.living_tables import write_living_table
from tasks.publish.publication import Draft, publish
from tests.flows.commands.printed.test_table_command import DAY, cell, tables_of
from tests.flows.flow_support import Said
from tests.publish.report.night_rows import drift_row
from tests.support.night_world import MODEL, World, write_benchmark

ALARM = {
    "run_date": DAY, "checkpoint": "step-1", "dimension": "score", "is_alarm": True, "verdict": "judge",
    "changed_on": date(2026, 11, 2), "shift": -0.254,
}  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([{}], "alarm       north, small/score, judged by eye: judge, since 2026-11-02, shift -0.25"),
        (
            [{"verdict": "unknown", "reason": "no_anchor", "changed_on": None, "shift": None}],
            "alarm       north, small/score, judged by eye: unknown (no anchor)\n",
        ),
        ([{"shift": 0.5}], "shift +0.50"),
        ([{"model": "[red]{x}[/]"}], "alarm       [red]{x}[/], small/score"),
        ([{"model": f"m{n}"} for n in range(7)], "and 2 more; the nights are drawn on the index"),
        ([{"judge_model": "later"}], "judged by eye: judge, since 2026-11-02, shift -0.25"),
        (
            [{}, {"run_date": date(2026, 11, 2), "measured_by": "older", "is_alarm": False, "verdict": "quiet"}],
            "judged by eye: judge, since 2026-11-02, when older judged, shift -0.25",
        ),
        ([{"is_alarm": False, "verdict": "quiet"}], None),
        ([{"run_date": date(2026, 11, 2)}], None),
    ],
    ids=[
        "judge",
        "unknown",
        "rose",
        "a name is no markup",
        "many",
        "a bridge to a later judge",
        "an older judge moved",
        "quiet",
        "another night",
    ],
)
def test_the_table_says_the_alarms_of_its_night(
    tmp_path: Path, salon: Callable[..., Said], monkeypatch: pytest.MonkeyPatch, rows: list[dict[str, Any]], line: str | None
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    lake = tmp_path / "lake"
    publish(lake, Draft(PublicationName("nightly", "f" * 64, DAY), tables_of([cell("north", 7.0)]), {}))
    write_living_table(lake, DRIFT, "nightly", DRIFT.frame([drift_row(0, **(ALARM | row)) for row in rows]))
    told = salon("table").out
    assert ("alarm       " in told, line is None or line in told) == (line is not None, True), told
    by_row = json.loads(salon("table", "--format", "json").out)[0]["drift_alarm"]
    assert by_row == (rows[0].get("verdict", "judge") if line and rows[0].get("model") is None else None)

    note_night(lake, "nightly", Night({"north": "step-1"}), DAY, "e" * 64, is_whole=True)
    assert "alarm       " not in salon("table").out  # another publication is that night's


def test_a_spoiled_note_of_another_night_keeps_no_table_back(
    tmp_path: Path, salon: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    lake = tmp_path / "lake"
    publish(lake, Draft(PublicationName("nightly", "f" * 64, DAY), tables_of([cell("north", 7.0)]), {}))
    write_living_table(lake, DRIFT, "nightly", DRIFT.frame([drift_row(0, **ALARM)]))
    note_night(lake, "nightly", Night({"north": "step-1"}), DAY, "f" * 64, is_whole=True)
    assert "alarm       " in salon("table").out
    (lake / "nights" / "nightly" / "2026-09-05.json").write_text('{"x":')
    said = salon("table")
    assert (said.code, "north" in said.out, "alarm       " in said.out) == (0, True, False)
    assert said.err.count("whether this night has an alarm is unknown: ") == 1


@pytest.mark.slow
def test_the_night_ends_with_its_alarms(tmp_path: Path, salon: Callable[..., Said], judge_url: str) -> None:
    folder = tmp_path / "made" / MODEL / World(tmp_path).make(1)
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()
    os.utime(folder, (noon, noon))
    of_the_night = {"benchmark": "nights", "run_date": date(2026, 3, 1), "model": MODEL}
    file = write_benchmark(tmp_path, judge_url)
    first = salon("nightly", file, "--run-date", "2026-03-01")
    assert (first.code, "alarm  " in first.out) == (0, False), first
    write_living_table(tmp_path / "lake", DRIFT, "nights", DRIFT.frame([drift_row(0, **(ALARM | of_the_night))]))
    told = salon("nightly", file, "--run-date", "2026-03-01")  # finds it published
    *_, line, where = told.out.splitlines()
    assert (told.code, line.startswith(f"alarm       {MODEL}, small/score")) == (0, True), told
    assert where.endswith("salon open --index")
