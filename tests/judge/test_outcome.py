"""What is left of a run's requests: those without a final reply, and no other."""

from collections import Counter

import pytest

from schemas.statuses.rows import ReplyStatus
from tasks.judge.outcome import Outcome

LEFT: dict[str, tuple[dict[ReplyStatus, int], int, int]] = {
    "all answered": ({ReplyStatus.ANSWERED: 4}, 0, 0),
    "some stored before": ({ReplyStatus.ANSWERED: 1}, 3, 0),
    "filtered": ({ReplyStatus.ANSWERED: 3, ReplyStatus.FILTERED: 1}, 0, 0),
    "rejected": ({ReplyStatus.ANSWERED: 3, ReplyStatus.REJECTED: 1}, 0, 0),
    "timed out": ({ReplyStatus.ANSWERED: 3, ReplyStatus.TIMED_OUT: 1}, 0, 1),
    "never asked": ({ReplyStatus.ANSWERED: 1, ReplyStatus.NOT_ASKED: 2}, 1, 2),
    "nothing at all": ({}, 0, 4),
}


@pytest.mark.parametrize(("by_status", "n_cached", "n_left"), LEFT.values(), ids=LEFT.keys())
def test_what_is_left_has_no_final_reply(by_status: dict[ReplyStatus, int], n_cached: int, n_left: int) -> None:
    counted = Counter({status.value: n for status, n in by_status.items()})
    assert Outcome(n_requests=4, n_cached=n_cached, n_by_status=counted).n_left == n_left


def test_a_request_is_out_of_reach_where_money_was_refused_and_nothing_sent() -> None:
    refused = Outcome(n_requests=3, is_spent=True, refused_usd=0.01) + Outcome(n_requests=2, is_spent=True, refused_usd=0.02)
    assert (refused.is_out_of_reach, refused.refused_usd) == (True, 0.02)
    assert not (refused + Outcome(n_requests=1, n_asked=1)).is_out_of_reach
    assert not (refused + Outcome(n_requests=1, n_in_flight=1)).is_out_of_reach
    assert not Outcome(n_requests=3).is_out_of_reach
