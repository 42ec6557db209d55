"""Publications read on a machine that never saw them: nothing of them is here but what is fetched when it is asked for."""

import time
from dataclasses import replace
from datetime import date, timedelta

import pytest

from flows.doctor.stores import check_sync
from flows.nights.drift import read_otherwise
from schemas.identities import RunIds
from schemas.tables.published import PREFERENCES
from schemas.tables.stored import REPLIES
from tasks.lake.writing import stage
from tasks.ledger.ledger import Ledger
from tasks.ledger.statements import ahead_s
from tasks.publish.explain.cells import find_row
from tasks.publish.folders import PROVENANCE
from tasks.publish.reading import current
from tasks.publish.standings.pair_boards import boards_in
from tasks.verify.publication import read_provenance
from tests.aggregate.preferences.conftest import said, tables
from tests.support.contexts import stage_context
from tests.support.small_lake import IDS, filled_row, table_of

DAY = date(2026, 11, 3)


@pytest.fixture
def night(put, small_cells, name_digest):
    """Publish a night of this number into a lake, as read by code of this version."""

    def publish(root, number, code="this"):
        run_date = DAY + timedelta(number)
        provenance = {"identities": IDS | {"code_version": name_digest(code)}, "run_date": run_date.isoformat()}
        named = {"publication_id": name_digest(f"night {number}"), "run_date": run_date, "provenance": provenance}
        return put(root, small_cells, further=tables(said("2", "1", "a " * 30)), **named)

    return publish


def test_pairs_and_provenance_are_fetched_when_they_are_asked_for(machine, night):
    night(machine("one").root, 0)
    (board,) = boards_in(current(machine("table").root).folder)
    pair_id = board.comparisons[0]["pair_id"]
    assert find_row(current(machine("explain").root), PREFERENCES, "pair_id", pair_id[:8])["pair_id"] == pair_id
    assert read_provenance(current(machine("run").root).folder)["run_date"] == DAY.isoformat()


def test_the_doctor_of_an_empty_machine_compares_the_newest_snapshot(machine, small_lake, name_digest, tmp_path):
    for n_replies in (1, 2):
        rows = [filled_row(REPLIES, request_key=name_digest(f"{n}"), status="answered") for n in range(n_replies)]
        staging = stage(machine("one"), REPLIES)
        staging.write_part(0, table_of(REPLIES, rows))
        staging.commit(f"of {n_replies}")
        time.sleep(1.1)  # a store tells whole seconds
    lake, ledger_url = machine("next"), f"sqlite:///{tmp_path}/ledger.db"
    with Ledger(ledger_url) as ledger:
        ledger.read(ahead_s)
    lake.parts(REPLIES, "of 1")  # fetched last here
    run = replace(stage_context(lake, {"small": small_lake.rubric}, RunIds()), ledger_url=ledger_url)
    (found,) = check_sync(run)
    assert found.found == "the ledger lacks 2 of 2 replies of the lake's newest snapshot"


@pytest.mark.parametrize(("code", "is_told"), [("this", False), ("an older one", True)])
def test_a_night_of_an_empty_machine_knows_by_which_code_those_before_were_read(machine, night, code, is_told):
    night(machine("one").root, 0, code)
    root = machine("next").root
    told = read_otherwise(root, "nightly", night(root, 1).publication_id)
    assert (told is not None) == is_told


def test_a_provenance_that_cannot_be_read_is_of_no_other_version(tmp_path, night):
    for number, code in enumerate(("an older one", "lost", "this", "lost", "this")):
        made = night(tmp_path, number, code)
        if code == "lost":
            (made.folder / PROVENANCE).write_text("{")
    assert read_otherwise(tmp_path, "nightly", made.publication_id) is None
    made = night(tmp_path, 5, "the next one")
    told = read_otherwise(tmp_path, "nightly", made.publication_id)
    assert "earlier nights of the series (3: 2026-11-03 to 2026-11-07)" in told
