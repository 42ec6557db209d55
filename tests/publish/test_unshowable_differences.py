"""Differences that so few prompts cannot show among so many comparisons: what is said in place of an interval."""

import pytest

from tasks.publish.standings.answers import answers
from tasks.publish.standings.wording import difference
from tests.publish.test_standings import OPEN, row

SCALE = {"delta_predecessor_low": -10.0, "delta_predecessor_high": 10.0, "scale_low": 0.0, "scale_high": 10.0}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (SCALE | {"n_family": 180}, "+0.10: 12 prompts cannot show a difference among 180 comparisons"),
        (SCALE | {"n_family": None}, "+0.10: 12 prompts cannot show a difference among the comparisons of its family"),
        (SCALE | {"n_family": 9}, "+0.10 [-10.00, +10.00] can't tell"),
        (SCALE | {"n_family": 180, "delta_predecessor_high": 9.0}, "+0.10 [-10.00, +9.00] can't tell"),
        (SCALE | {"n_family": 180, "scale_high": 20.0}, "+0.10 [-10.00, +10.00] can't tell"),
    ],
    ids=["too few", "of an unknown number", "enough, and noisy", "one end is known", "half of the scale"],
)
def test_an_interval_that_is_the_whole_scale_is_no_measurement(changes, said):
    mine = row("3", predecessor="2", **(OPEN | {"n_prompts_predecessor": 12} | changes))
    assert difference(mine, "predecessor") == said
    (told,) = (one for one in answers([mine, row("2", predecessor=None)]) if "cannot tell 3 from 2" in one)
    assert ("[-10.00" in told) == ("[-10.00" in said)
