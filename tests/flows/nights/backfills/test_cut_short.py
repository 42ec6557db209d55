"""A backfill that ended after its publication stood: the same command brings what was still to be written."""

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from tasks.publish.reading import current
from tests.flows.flow_support import Said, findings
from tests.support.checkpoint_folders import make_folder, write_file
from tests.support.servers.provider import Provider


@pytest.mark.parametrize(
    "gone",
    [
        ("publish/v1/*/salon.duckdb",),
        ("publish/v1/*/salon.duckdb", "publish/v1/*/latest*.json", "publish/v1/index.html", "runs/**/*.*"),
    ],
    ids=["before salon.duckdb", "before the pointers"],
)
def test_what_a_backfill_did_not_come_to_is_there_after_the_same_command(
    tmp_path: Path, salon: Callable[..., Said], scoring: Provider, gone: tuple[str, ...]
) -> None:
    make_folder(tmp_path, "step-1")
    file = write_file(tmp_path, scoring.url)
    backfill = ("backfill", file, "--all", "--run-date", "2026-03-02")
    assert salon(*backfill).code == 0
    lake, n_asked = tmp_path / "lake", scoring.n
    made = current(lake)
    for name in gone:
        for path in lake.glob(name):
            path.unlink()
    if len(gone) == 1:
        assert "there is no salon.duckdb" in findings(salon("doctor", file).out)["publications"]
    assert salon(*backfill).code == 0
    with duckdb.connect(str(next(lake.glob("publish/v1/*/salon.duckdb"))), read_only=True) as tables:
        assert tables.sql("SELECT publication_id FROM current_publication").fetchall() == [(made.publication_id,)]
    assert current(lake) == made
    assert (lake / "publish/v1/index.html").is_file()
    assert "nothing to do" in salon(*backfill).out
    assert scoring.n == n_asked
