"""Names out of data on the terminal: none begins a line, steers the terminal or looks like another."""

from collections.abc import Callable

import polars as pl
import pytest

from flows.cli import run
from tasks.publish.folders import Published
from tests.support.small_lake import SmallLake

NAMES = {
    "a line feed": "north\nsalon: nothing was judged",
    "a carriage return": "north\rsalon: nothing was judged",
    "a line separator": "north\u2028salon: nothing was judged",
    "an escape": "north\x1b[2K\x1b[1Gsalon: nothing was judged",
    "a change of direction": "north\u202egnihton",
    "a space of no width": "nor\u200bth",
    "tags that nobody sees": "north\U000e0041",
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_a_name_is_one_visible_piece_of_a_line(
    small_lake: SmallLake, put: Callable[..., Published], capsys: pytest.CaptureFixture[str], name: str
) -> None:
    put(small_lake.lake.root, small_lake.cells.with_columns(model=pl.lit(name), checkpoint=pl.lit(name)))
    assert run(["table", "--lake", str(small_lake.lake.root)]) == 0
    said = capsys.readouterr().out
    assert name not in said
    assert not any(line.startswith("salon:") for line in said.splitlines())
    unseen = "\x1b\r\u200b\u2028\u202e\U000e0041"
    assert not set(unseen) & set(said)
