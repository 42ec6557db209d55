"""A backfill that `max_usd` ends says so, what is left and what to do, with exit code 3; what became whole is published."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.publish.reading import publications
from tests.flows.flow_support import Said, cells_of
from tests.support.checkpoint_folders import N_PROMPTS, make_folder, write_file
from tests.support.servers.provider import Provider


@pytest.mark.parametrize(
    ("max_usd", "n_whole", "says"),
    [
        pytest.param("0.00001", 0, "does not cover a single request: one may cost up to $0.0", id="less than one request"),
        pytest.param("0.012", 0, "is reached: $0.0", id="before one is whole"),
        pytest.param("0.03", 1, "is reached: $0.0", id="once one is whole"),
    ],
)
def test_money_that_ends_says_what_is_left_and_what_to_do(
    tmp_path: Path, salon: Callable[..., Said], scoring: Provider, max_usd: str, n_whole: int, says: str
) -> None:
    for name in ("step-1", "step-2", "step-3"):
        make_folder(tmp_path, name)
    file = write_file(tmp_path, scoring.url)
    ended = salon("backfill", file, "--all", "--at-once", "1", "--max-usd", max_usd)
    told = " ".join(ended.err.split())
    assert (ended.code, f"max_usd = {float(max_usd):g} {says}" in told) == (3, True), told
    assert f"Remaining: {3 * N_PROMPTS - scoring.n} requests of {3 - n_whole} checkpoints (" in told
    assert "Run the same command again to continue" in told
    of_checkpoints = [line for line in ended.err.splitlines() if line.startswith("backfill: ")]
    assert of_checkpoints == [f"backfill: {n_whole} done"] * bool(n_whole), "one that money ended is not done"
    assert ("all complete checkpoints are published" in told, len(publications(tmp_path / "lake"))) == (n_whole > 0, n_whole)
    more = salon("backfill", file, "--all", "--max-usd", "1")
    assert (more.code, scoring.n) == (0, 3 * N_PROMPTS)
    assert cells_of(tmp_path / "lake")["checkpoint"].n_unique() == 3
