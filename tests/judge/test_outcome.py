"""What is left of a run's requests: those without a final reply, and no other."""

from collections import Counter

import pytest

from schemas.records import JudgeReply
from schemas.statuses.rows import ReplyOrigin, ReplyStatus
from tasks.judge.outcome import Outcome
from tasks.judge.provider.exchange import Answer
from tasks.judge.tries import Heard

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


def _replied(key: str, status: ReplyStatus = ReplyStatus.ANSWERED, cost_usd: float = 0.5) -> JudgeReply:
    return JudgeReply(key, 0, status, "judge", ReplyOrigin.ASKED, n_input_tokens=10, n_output_tokens=1, cost_usd=cost_usd)


GOOD, REJECTED = Answer(ReplyStatus.ANSWERED), Answer(ReplyStatus.REJECTED)
LOST, NOBODY = Answer(ReplyStatus.UNREACHABLE, unseen_usd=0.25), Answer(ReplyStatus.UNREACHABLE, is_sent=False)


def test_a_shard_that_was_made_again_sent_nothing_that_was_answered() -> None:
    """The provider restarted with all that was under way; the second try began as it was back."""
    heard, last = Heard(), Outcome(n_requests=1)
    heard.hear_attempt(LOST)
    heard.hear_attempt(GOOD)
    last.count_attempt(GOOD)
    heard.hear(_replied("a"))
    last.count(_replied("a"))
    last.n_by_status = Counter({"answered": 1})
    found = heard.in_all_tries(last)
    assert (found.n_asked, found.n_in_doubt, found.n_cached, found.n_left, found.cost_usd) == (2, 1, 0, 0, 0.5)


def test_a_shard_that_was_made_again_bought_what_all_its_tries_bought() -> None:
    """Of six requests one was stored long before, two by the first try, and one whose second ask the last try made."""
    heard, last = Heard(), Outcome(n_requests=6, n_cached=3)
    for attempt in (GOOD, REJECTED, GOOD, LOST, LOST, NOBODY):
        heard.hear_attempt(attempt)
    for reply in (_replied("a"), _replied("b", ReplyStatus.REJECTED), _replied("c")):
        heard.hear(reply)
    for attempt in (GOOD, GOOD, GOOD):
        heard.hear_attempt(attempt)
        last.count_attempt(attempt)
    for reply in (_replied("c"), _replied("d"), _replied("e")):
        heard.hear(reply)
        last.count(reply)
    last.n_by_status = Counter({"answered": 3})
    found = heard.in_all_tries(last)
    assert (found.n_requests, found.n_cached, found.n_asked, found.n_replies, found.n_left) == (6, 1, 8, 6, 0)
    assert (found.n_in_doubt, found.in_doubt_usd, found.is_at_least) == (2, 0.5, True)
    assert (found.cost_usd, found.n_input_tokens, found.n_output_tokens) == (3.0, 60, 6)
    assert found.n_by_status == {"answered": 4, "rejected": 1}


def test_the_only_try_of_a_shard_is_what_it_says() -> None:
    heard, only = Heard(), Outcome(n_requests=2)
    for attempt in (GOOD, GOOD, LOST):
        heard.hear_attempt(attempt)
        only.count_attempt(attempt)
    for reply in (_replied("a"), _replied("a")):  # asked twice, and then the provider was away
        heard.hear(reply)
        only.count(reply)
    only.n_by_status = Counter({"server_error": 1})
    assert heard.in_all_tries(only) is only
