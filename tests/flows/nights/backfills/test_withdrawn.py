"""A backfill after its publication was taken back: what is done is published again, for what was taken back publishes nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.publish.reading import current
from tests.flows.flow_support import Said, cells_of
from tests.support.checkpoint_folders import make_folder, write_file
from tests.support.servers.provider import Provider


@pytest.mark.parametrize("day", ["2026-03-02", "2026-03-03"], ids=["of the same day", "of a later day"])
def test_what_is_done_is_published_again_once_its_table_was_taken_back(
    tmp_path: Path, salon: Callable[..., Said], scoring: Provider, day: str
) -> None:
    make_folder(tmp_path, "step-1")
    file = write_file(tmp_path, scoring.url)
    assert salon("run", file, "--run-date", "2026-03-01").code == 0
    make_folder(tmp_path, "step-2")
    assert salon("backfill", file, "--all", "--run-date", "2026-03-02").code == 0
    n_asked, taken_back = scoring.n, current(tmp_path / "lake").publication_id
    assert salon("withdraw", file, taken_back[:12], "--because", "a test").code == 0
    assert set(cells_of(tmp_path / "lake")["checkpoint"]) == {"step-1"}
    again = salon("backfill", file, "--checkpoints", "step-1", "--run-date", day)
    assert (again.code, "nothing to do" in again.out) == (0, False)
    assert set(cells_of(tmp_path / "lake")["checkpoint"]) == {"step-1", "step-2"}
    assert scoring.n == n_asked, "nothing is asked for it"
    assert "nothing to do" in salon("backfill", file, "--all", "--run-date", day).out
