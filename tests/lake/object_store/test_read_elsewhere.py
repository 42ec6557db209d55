"""Publications read on a machine that never saw them: nothing of them is here but what is fetched when it is asked for."""

from datetime import date, timedelta

import pytest

from flows.nights.drift import read_otherwise
from schemas.tables.published import PREFERENCES
from tasks.publish.explain.cells import find_row
from tasks.publish.folders import PROVENANCE
from tasks.publish.reading import current
from tasks.publish.standings.pair_boards import boards_in
from tasks.verify.publication import read_provenance
from tests.aggregate.preferences.conftest import said, tables
from tests.support.small_lake import IDS

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
