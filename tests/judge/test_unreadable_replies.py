"""A judge none of whose first replies can be read is asked no more; which replies say so, and which say nothing of it."""

from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rubrics.model import Rubric
from rubrics.replies.remedies import commonest, remedy
from schemas.benchmark.file import Gate, Limits
from schemas.benchmark.judges import Judge
from schemas.errors import UnreadableError
from schemas.records import ReadScores, Unreadable
from schemas.statuses.rows import ParseReason as R
from tasks.judge.outcome import Outcome
from tasks.judge.readings import N_UNREADABLE, FirstReplies, Sight, why_nothing
from tasks.judge.runtime import LOOP
from tasks.lake.reading import Lake
from tests.support.asking import ask_shard
from tests.support.planning import plan_part
from tests.support.provider import Play, Provider, completion

N = 100
LIMITS = Limits(concurrency=8, deadline_s=2)
GOOD, CUT = Play(body=completion('{"score": 3}')), Play(body=completion('{"sco', finish_reason="length"))
Ask = Callable[..., Outcome]


@pytest.fixture
def requests(make_samples: Callable[..., pl.DataFrame], rubric: Rubric, judge: Judge) -> pl.DataFrame:
    return plan_part(make_samples(N), rubric, judge)[1]


@pytest.fixture
def ask(
    make_samples: Callable[..., pl.DataFrame],
    store_samples: Callable[..., tuple[Lake, str]],
    rubric: Rubric,
    judge: Judge,
    tmp_path: Path,
) -> Ask:
    def ask(requests: pl.DataFrame, **options: Any) -> Outcome:
        return ask_shard(lake, requests, rubric, judge, f"sqlite:///{tmp_path}/ledger.db", LIMITS, **options)

    lake, _ = store_samples(make_samples(N))
    return ask


UNREADABLE = {
    "cut": (CUT, "truncated 32", "stopped before the answer was whole"),
    "nothing at all": (Play(body=completion("")), "empty 32", "held no text"),
    "prose": (Play(body=completion("I think it is quite good.")), "not_found 32", "the prompt must ask for the rubric's form"),
    "off the scale": (Play(body=completion('{"score": 9}')), "out_of_range 32", "must state the scale"),
    "words for numbers": (Play(body=completion('{"score": "three"}')), "wrong_type 32", "held something else than a number"),
}


@pytest.mark.parametrize(("play", "counted", "told"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_judge_of_which_nothing_can_be_read_is_asked_no_more(
    provider: Provider, requests: pl.DataFrame, ask: Ask, play: Play, counted: str, told: str
) -> None:
    """What was in flight when it was known is bought, and no second asks; once the judge is mended, the rest is asked."""
    provider.then = play
    with pytest.raises(UnreadableError, match=told) as raised:
        ask(requests)
    assert f"none of its first 32 replies under rubric plain can be read ({counted}); nothing more is asked" in str(raised.value)
    assert "Replies already stored are kept" in str(raised.value)
    n_bought = provider.n
    assert N_UNREADABLE <= n_bought <= N_UNREADABLE + LIMITS.concurrency
    provider.then = GOOD
    outcome = ask(requests)
    assert (outcome.n_left, outcome.n_requests) == (0, N)
    assert provider.n - n_bought == outcome.n_asked


def test_the_reasons_are_counted_and_the_commonest_one_is_explained(provider: Provider, requests: pl.DataFrame, ask: Ask) -> None:
    provider.script, provider.then = deque([Play(body=completion("")) for _ in range(5)]), CUT
    with pytest.raises(UnreadableError, match=r"\(truncated 27, empty 5\).*truncated: 27 replies stopped before"):
        ask(requests)


def test_one_readable_reply_is_enough(provider: Provider, requests: pl.DataFrame, ask: Ask) -> None:
    provider.script, provider.then = deque([GOOD]), CUT
    outcome = ask(requests)
    assert (outcome.n_asked, outcome.n_reasked) == (2 * N - 1, N - 1)


NOT_OF_FORM = {
    "refusals": (Play(body=completion("I'm sorry, but I can't assist with that request.")), {}),
    "filtered": (Play(400, b'{"error": {"code": "content_filter"}}'), {}),
    "no coverage is asked for": (CUT, {"gate": Gate(min_coverage=0)}),
}


@pytest.mark.parametrize(("play", "options"), NOT_OF_FORM.values(), ids=NOT_OF_FORM.keys())
def test_what_says_nothing_of_the_form_stops_nobody(
    provider: Provider, requests: pl.DataFrame, ask: Ask, play: Play, options: dict[str, Any]
) -> None:
    provider.then = play
    assert ask(requests, **options).n_left == 0


def test_a_runs_shards_know_of_one_another(provider: Provider, requests: pl.DataFrame, ask: Ask) -> None:
    """Each has too few requests to tell by itself; another run of the process looks anew."""
    provider.then = CUT
    shards = [requests[first : first + 10] for first in range(0, N, 10)]
    with LOOP.held():
        for shard in shards[:1]:
            ask(shard, run_id="first")
        for shard in shards[1:]:
            with pytest.raises(UnreadableError):
                ask(shard, run_id="first")
        n_bought = provider.n
        assert N_UNREADABLE <= n_bought <= N_UNREADABLE + LIMITS.concurrency
        provider.then = GOOD
        assert ask(shards[-1], run_id="second").n_left == 0


READ = {
    "scores": (ReadScores({"a": 1}), None),
    "scores that break a rule": (ReadScores({"a": 1}, violated={"a": (0, 0)}), None),
    "nothing applies": (ReadScores({}, not_applicable=frozenset("a")), None),
    "one item of two": (ReadScores({"a": 1}, unreadable={"b": R.MALFORMED}), None),
    "no item of two": (ReadScores({}, unreadable={"a": R.MALFORMED, "b": R.AMBIGUOUS}), R.MALFORMED),
    "none": (Unreadable(R.EMPTY), R.EMPTY),
}


@pytest.mark.parametrize(("read", "reason"), READ.values(), ids=READ.keys())
def test_why_no_number_can_be_taken(read: Any, reason: R | None) -> None:
    assert why_nothing(read) is reason


@pytest.mark.parametrize("reason", R)
def test_which_reasons_are_of_the_form(reason: R) -> None:
    first = FirstReplies()
    for _ in range(N_UNREADABLE):
        first.record(reason)
    others = {R.REFUSAL, R.MISSING_INPUT, R.RULE_VIOLATION, R.NOT_APPLICABLE, R.NOT_ASKED_FOR}
    assert first.is_open == (reason not in others)


def test_a_judge_that_was_blind_stays_so_whatever_is_still_under_way_says() -> None:
    """Workers have stopped by then: what would open their ears again would end the run without a word."""
    sight = Sight(most=0.1)
    for reason in [None] * 20 + [R.MISSING_INPUT] * 8 + [None] * 200:
        sight.record(reason)
    assert sight.n_unseen < sight.most * sight.n_read
    assert sight.is_blind


def test_each_reason_has_its_sentence_with_numbers_and_limits_as_they_are() -> None:
    told = partial(remedy, R.TRUNCATED)
    assert told(300, {"max_tokens": 60}).startswith("truncated: 300 replies were cut at max_tokens = 60; raise it in the judge's")
    assert told(1, {"max_completion_tokens": 9}).startswith("truncated: 1 reply was cut at max_completion_tokens = 9; raise it")
    assert told(2_000, {}, whose="gpt{0}").startswith("truncated: 2,000 replies of gpt{0} stopped before the answer was whole; ")
    assert "whole (look at it); give" in told(1, {}, shown="look at it")
    counts = {"empty": 2, "no_reply": 9, "out_of_range": 2, "not_found": 3, "rate_limited": 4}
    assert commonest(counts) == [(R.NOT_FOUND, 3), (R.EMPTY, 2), (R.OUT_OF_RANGE, 2)]
    silent = {R.RULE_VIOLATION, R.NOT_APPLICABLE, R.NOT_ASKED_FOR}
    assert {reason for reason, _ in commonest(dict.fromkeys(R, 1))} == set(R) - silent
