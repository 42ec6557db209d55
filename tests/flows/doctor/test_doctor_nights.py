"""What `salon doctor` says of the last night: published, under way, lost, or none yet."""

from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.nights.record import Night, note_night
from flows.run.context import open_run
from tasks.ledger.ledger import Ledger
from tasks.ledger.mutex import mutex
from tasks.publish.folders import PublicationName
from tasks.publish.publication import Draft, publish
from tests.flows.commands.test_gate import tables_that_pass
from tests.flows.flow_support import Said, findings
from tests.support.night_world import write_benchmark


@pytest.mark.parametrize(
    ("published", "is_under_way", "found"),
    [
        ([], False, "skipped: no night is published yet"),
        ([0, 1], False, "ok: the night of {0} is published"),
        ([1, 2], False, "wrong: the night of {0} was due at {due} and is not published; the last one is of {1}"),
        ([1], True, "ok: the night of {0} is under way"),
    ],
    ids=["none yet", "published", "lost", "under way"],
)
def test_the_last_night(published: list[int], is_under_way: bool, found: str, tmp_path: Path, salon: Callable[..., Said]) -> None:
    """`published` counts nights back from the latest that is due."""
    file = write_benchmark(tmp_path, "http://127.0.0.1:9/v1")
    run = open_run(file)
    due = run.benchmark.nightly.newest_due(datetime.now(UTC))
    days = [due.date() - timedelta(days=back) for back in range(3)]
    run.lake.root.mkdir(exist_ok=True)
    (run.lake.root / "staging").mkdir(exist_ok=True)
    for back in published:
        name = PublicationName(run.benchmark.name, f"{back}" * 64, days[back])
        publish(run.lake.root, Draft(name, tables_that_pass(), {}, {"report.html": b""}))
        note_night(run.lake.root, run.benchmark.name, Night({"m": "c"}), days[back], name.publication_id, is_whole=True)
    with Ledger(run.ledger_url) as ledger:
        ledger.known([])
        held = mutex(ledger, f"nightly {run.name_in_ledger}") if is_under_way else nullcontext()
        with held, temporary_settings(restore_defaults={PREFECT_API_URL}):
            said = salon("doctor", file)
    assert findings(said.out)["last night"] == found.format(*days, due=f"{due:%H:%M %Z}")
    assert ("salon nightly FILE starts or continues it" in said.out) is found.startswith("wrong")
