"""A number that is next to nothing reads so wherever it stands: no "-0.00", and no "+0.00" of what differs."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from salon import notebook
from tasks.publish.report.formats import usd
from tasks.publish.standings import corrected_ranks, exam, pair_boards, wording
from tasks.publish.votes_page import figure


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (exam.drop({"drop": -0.001, "drop_low": -0.004, "drop_high": 0.2}), "0.00 [0.00, 0.20]"),
        (pair_boards.rating({"rating": 0.3, "ci_low": -0.4, "ci_high": 12.0, "se": 1.0}), "+0.3 [-0.4, +12]"),
        (pair_boards.rating({"rating": 0.0, "ci_low": None, "ci_high": None, "se": 0}), "0"),
        (figure({"estimate": -0.0001, "ci_low": -0.004, "ci_high": 0.5}), "0.000 [0.00, 0.50]"),
        (corrected_ranks.figure({"estimate": -0.0001, "ci_low": -0.0002, "ci_high": 0.5}), "0.000 (0.000 to 0.500)"),
        (usd(0.0), "$0"),
        (usd(0.00003), "<$.0001"),
        (usd(0.0042), "$0.0042"),
    ],
)
def test_what_is_next_to_nothing(said, expected):
    assert said == expected


@given(st.floats(-200, 200))
@example(0.003)
@example(-0.001)
def test_a_notebook_writes_differences_as_the_terminal_does(value):
    assert notebook._signed(value) == wording.signed(value)
    assert notebook._number(value) == wording.number(value, 2)


@given(st.floats(0, 1))
@example(0.9996)
@example(0.0004)
def test_a_notebook_writes_shares_as_the_terminal_does(share):
    assert notebook._percent(share) == wording.percent(share)


def test_the_notebook_s_rows_are_written_so():
    row = {
        "rank_low": 1, "rank_high": 2, "model": "m", "checkpoint": "c", "estimate": 0.4, "ci_low": -0.001, "ci_high": 1.0,
        "delta_predecessor": 0.003, "delta_predecessor_low": 0.001, "delta_predecessor_high": 0.01, "n_prompts": 9,
        "verdict_predecessor": "higher", "coverage": 0.9996, "state": "ranked",
    }  # fmt: skip
    assert notebook._standing(row)[2:] == ("0.40 [0.00, 1.00]", "+0.003 [+0.001, +0.01] higher", "9", "99.96 %", "ranked")
