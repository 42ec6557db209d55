"""What speaks against a publication, told by whatever reads it: it was taken back, none is current, it is another benchmark's."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from flows.nights.record import Night, note_night
from schemas.tables.stored import RUNS
from tasks.lake.reading import Lake
from tasks.publish.folders import PublicationName
from tasks.publish.machine_tables import record_run
from tasks.publish.publication import Draft, publish
from tasks.publish.withdrawn import Withdrawal, note_withdrawn
from tests.flows.commands.printed.test_table_command import cell, tables_of
from tests.flows.commands.test_gate import DAY, tables_that_pass
from tests.flows.flow_support import Said
from tests.support.night_world import write_benchmark
from tests.support.small_lake import filled_row

OLDER, NEWER = "e" * 64, "f" * 64
AHEAD = Withdrawal(NEWER, "nightly", "2026-11-04", "2026-11-05T08:09:10.5+00:00", "host", "a clock was ahead", 0)
TOLD = f"publication {NEWER[:12]} of 2026-11-04 was taken back on 2026-11-05 08:09 UTC: a clock was ahead"
NONE = "no publication of nightly is current"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Two publications of a benchmark, the newer one current. The gate passes each."""
    root = tmp_path / "lake"
    for id_, day in ((OLDER, DAY), (NEWER, date(2026, 11, 4))):
        publish(root, Draft(PublicationName("nightly", id_, day), tables_that_pass(), {}, {"report.html": b""}))
    return root


@pytest.mark.usefixtures("lake")
def test_of_what_was_not_taken_back_nothing_is_told(salon: Callable[..., Said]) -> None:
    for said in (salon("gate"), salon("gate", OLDER), salon("table", "--publication", OLDER), salon("open")):
        assert (said.code, "taken back" in said.out + said.err, NONE in said.out + said.err) == (0, False, False), said


def test_all_who_read_what_was_taken_back_say_so_and_the_gate_does_not_pass(salon: Callable[..., Said], lake: Path) -> None:
    note_withdrawn(lake, AHEAD)
    chosen = ("--publication", NEWER)
    table, csv, page = salon("table", *chosen), salon("table", "--format", "csv", *chosen), salon("open", *chosen)
    assert f"publication {NEWER[:16]} (taken back)" in table.out
    explained = salon("explain", "step-1000000", *chosen)
    for text in (table.out, csv.err, page.err, explained.err):
        assert TOLD in " ".join(text.split())
    assert (table.code, csv.code, page.code) == (0, 0, 0)
    for more in ((), ("--allow-unknown",)):
        gate = salon("gate", NEWER, *more)
        assert (gate.code, f"Undecided: {TOLD}. Nothing is ruled by it" in gate.out) == (1, True), gate
        assert "against" not in gate.out, "it has no table of rulings"
    said = json.loads(salon("gate", NEWER, "--format", "json").out)
    assert (said["outcome"], said["withdrawn"]["because"]) == ("unknown", "a clock was ahead")
    assert (said["rulings"], said["unruled"]) == ([], [])
    assert "no drop found" not in salon("gate", NEWER, "--format", "markdown").out
    export = salon("export", NEWER, "--to", "eee", "--name", "acme", "--out", "out")
    assert (export.code, TOLD in export.err, (lake.parent / "out").exists()) == (2, True, False), export


def test_what_a_run_made_again_is_taken_back_no_more(salon: Callable[..., Said], lake: Path) -> None:
    note_withdrawn(lake, AHEAD)
    ended = datetime(2026, 11, 6, tzinfo=UTC)
    record_run(Lake(lake), filled_row(RUNS, benchmark="nightly", publication_id=NEWER, started_at=ended, finished_at=ended))
    assert salon("gate", NEWER).code == 0
    assert "taken back" not in salon("table", "--publication", NEWER).out


def test_who_takes_back_a_night_that_may_still_be_tried_is_told(salon: Callable[..., Said], lake: Path) -> None:
    due, until = (datetime.now(UTC) + timedelta(minutes=minutes) for minutes in (-1, 60))
    file = write_benchmark(lake.parent, "http://127.0.0.1:9/v1", nightly=f'finish_by = "{until:%H:%M}"')
    said = file.read_text().replace('"0 2 * * *"', f'"{due.minute} {due.hour} * * *"')
    file.write_text(said.replace('name = "nights"', 'name = "nightly"'))
    tonight = "d" * 64
    publish(lake, Draft(PublicationName("nightly", tonight, due.date()), tables_that_pass(), {}, {"report.html": b""}))
    for id_, day in ((tonight, due.date()), (OLDER, DAY)):
        note_night(lake, "nightly", Night({"north": "step-1"}), day, id_, is_whole=False)
    again = f"a start of {due.date()} that still tries (until {until:%H:%M} UTC) publishes it again"
    for id_, is_tried in ((OLDER, False), (tonight, True)):
        back = salon("withdraw", file, id_, "--because", "it is wrong")
        assert (back.code, "no longer a night: " in back.out, again in " ".join(back.out.split())) == (0, True, is_tried), back


def test_where_none_is_current_the_newest_that_stands_is_shown_and_said_to_be_that(
    salon: Callable[..., Said], lake: Path
) -> None:
    (lake / "publish" / "v1" / "nightly" / "latest.json").unlink()
    gate = salon("gate")
    assert (gate.code, f"Undecided: {NONE}; {NEWER[:12]} of 2026-11-04 is the newest, ruled on below." in gate.out) == (1, True)
    assert salon("gate", "--allow-unknown").code == salon("gate", NEWER).code == 0
    assert json.loads(salon("gate", "--format", "json").out)["is_current"] is False
    table, csv, page = salon("table"), salon("table", "--format", "csv"), salon("open")
    for text in (table.out, csv.err, page.err):
        assert f"{NONE}; {NEWER[:12]} of 2026-11-04 is the newest" in text
    assert NONE not in salon("table", "--publication", NEWER).out
    note_withdrawn(lake, AHEAD)
    assert f"{NONE}; {OLDER[:12]} of {DAY} is the newest" in salon("table").out
    note_withdrawn(lake, replace(AHEAD, publication_id=OLDER, run_date=str(DAY)))
    assert f"Undecided: {TOLD}" in salon("gate").out, "there is no other"


def test_a_publication_of_another_benchmark_than_was_named_is_refused(salon: Callable[..., Said], lake: Path) -> None:
    publish(lake, Draft(PublicationName("weekly", "a" * 64, DAY), tables_of([cell("painter", 7.0)]), {}, {"report.html": b""}))
    export = ("export", NEWER, "--to", "eee", "--name", "acme", "--out", "out")
    bundle = ("export", NEWER, "--to", "bundle", "--out", "out.zip")
    chosen = ("--publication", NEWER)
    for command in (("table", *chosen), ("open", *chosen), ("gate", NEWER), ("explain", "painter", *chosen), export, bundle):
        said = salon(*command, "--benchmark", "weekly")
        assert (said.code, said.out) == (2, ""), said
        assert f"{NEWER[:12]} is of 'nightly', but --benchmark names 'weekly'; leave one of them out" in said.err
    assert salon("table", *chosen, "--benchmark", "nightly").code == 0
