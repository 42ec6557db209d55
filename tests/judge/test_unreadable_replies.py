"""A judge none of whose first replies can be read is asked no more; which replies say so, and which say nothing of it."""

from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import orjson
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
from tasks.judge.readings import N_SPREAD, N_UNREADABLE, Sight, is_reaskable, spread, why_nothing
from tasks.judge.runtime import LOOP
from tasks.lake.reading import Lake
from tasks.ledger.ledger import Ledger
from tests.support.asking import ask_shard
from tests.support.contexts import plan_part
from tests.support.servers.provider import Play, Provider, completion

N = 100
LIMITS = Limits(concurrency=8, deadline_s=2)
GOOD, CUT = Play(body=completion('{"score": 3}')), Play(body=completion('{"sco', finish_reason="length"))
FULL = Play(body=completion('{"sco', finish_reason="model_length"))
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
        limits = options.pop("limits", LIMITS)
        return ask_shard(lake, requests, rubric, judge, f"sqlite:///{tmp_path}/ledger.db", limits, **options)

    lake, _ = store_samples(make_samples(N))
    return ask


UNREADABLE = {
    "cut": (CUT, "truncated 32", "stopped before the answer was whole"),
    "no room in the model's context": (FULL, "truncated 32", "the model's context was full.*more max_tokens does not help"),
    "nothing at all": (Play(body=completion("")), "empty 32", "held no text"),
    "prose": (Play(body=completion("I think it is quite good.")), "not_found 32", "the prompt must ask for the rubric's form"),
    "off the scale": (Play(body=completion('{"score": 9}')), "out_of_range 32", "must state the scale"),
    "words for numbers": (Play(body=completion('{"score": "three"}')), "wrong_type 32", "held something else than a number"),
}


@pytest.mark.parametrize(("play", "counted", "told"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_judge_of_which_nothing_can_be_read_is_asked_no_more(
    provider: Provider, requests: pl.DataFrame, ask: Ask, play: Play, counted: str, told: str
) -> None:
    """Once the judge is mended, the rest is asked."""
    provider.then = play
    with pytest.raises(UnreadableError, match=told) as raised:
        ask(requests)
    said = f"none of the first 32 requests under rubric plain has a reply that can be read ({counted}); no more requests are sent"
    assert said in str(raised.value)
    assert "Replies already stored are kept" in str(raised.value)
    n_bought = provider.n
    assert n_bought == 2 * N_UNREADABLE
    provider.then = GOOD
    outcome = ask(requests)
    assert (outcome.n_left, outcome.n_requests) == (0, N)
    assert provider.n - n_bought == outcome.n_asked


PACES = {
    "at once": (0.0, {}),
    "slowly": (0.4, {}),
    "slower than all could be sent": (1.2, {}),
    "by many requests a minute": (0.0, {"requests_per_minute": 3000}),
    "slowly, by many requests a minute": (0.4, {"requests_per_minute": 3000}),
    "by few requests a minute": (0.05, {"requests_per_minute": 900}),
}


@pytest.mark.parametrize(("delay_s", "more"), PACES.values(), ids=PACES.keys())
def test_it_is_known_from_as_many_replies_however_fast_they_come(
    provider: Provider, requests: pl.DataFrame, ask: Ask, delay_s: float, more: dict[str, int]
) -> None:
    """Second asks stood behind all first ones, and there were hundreds of these in flight before the first were read."""
    provider.then = Play(body=completion("It is quite good."), delay_s=delay_s)
    with pytest.raises(UnreadableError):
        ask(requests, limits=Limits(concurrency=64, deadline_s=5, **more))
    assert provider.n == 2 * N_UNREADABLE


def test_the_first_reply_that_can_be_read_lets_all_others_begin(provider: Provider, requests: pl.DataFrame, ask: Ask) -> None:
    """The others of the first ones are not waited for: here they come last."""
    slow = Play(body=completion("It is quite good."), delay_s=3)
    provider.script, provider.then = deque([GOOD, *[slow] * 15]), GOOD
    assert ask(requests, limits=Limits(concurrency=64, deadline_s=5)).n_left == 0
    assert provider.n == N + 15
    assert len(set(provider.seen[:N])) == N, "all were asked before a slow reply was there to be asked for again"


def test_one_readable_reply_is_enough(provider: Provider, requests: pl.DataFrame, ask: Ask) -> None:
    provider.script, provider.then = deque([GOOD]), CUT
    outcome = ask(requests)
    assert (outcome.n_asked, outcome.n_reasked) == (2 * N - 1, N - 1)


NOT_OF_FORM = {
    "refusals": (Play(body=completion("I'm sorry, but I can't assist with that request.")), {}),
    "filtered": (Play(400, b'{"error": {"code": "content_filter"}}'), {}),
    "it is asked for on purpose": (CUT, {"gate": Gate(stop_when_unreadable=False)}),
}


@pytest.mark.parametrize(("play", "options"), NOT_OF_FORM.values(), ids=NOT_OF_FORM.keys())
def test_what_says_nothing_of_the_form_stops_nobody(
    provider: Provider, requests: pl.DataFrame, ask: Ask, play: Play, options: dict[str, Any]
) -> None:
    provider.then = play
    assert ask(requests, **options).n_left == 0


@pytest.mark.parametrize("n", [N_UNREADABLE, N_UNREADABLE - 1])
def test_where_all_is_bought_there_is_nothing_to_stop(provider: Provider, requests: pl.DataFrame, ask: Ask, n: int) -> None:
    """What there is of it is published: the same command again would say so too."""
    provider.then = CUT
    assert ask(requests[:n]).n_left == 0
    assert provider.n == 2 * n


def test_replies_that_cannot_be_read_come_first_and_say_nothing_of_the_others(
    provider: Provider, requests: pl.DataFrame, ask: Ask
) -> None:
    """Prose is there at once, a reasoned answer takes its time: the first that were sent are waited for."""
    slow = Play(body=completion('{"score": 3}'), delay_s=0.5)
    provider.script = deque([slow if place % 8 == 0 else CUT for place in range(16)])
    provider.then = CUT
    assert ask(requests).n_left == 0


def test_some_of_all_requests_are_asked_first(requests: pl.DataFrame) -> None:
    """A category that none can read may stand at the beginning."""
    keys = spread(requests)["request_key"].to_list()
    places = requests["request_key"].to_list()
    assert sorted(keys) == sorted(places)
    assert [places.index(key) for key in keys[:N_SPREAD]] == [0, 12, 25, 37, 50, 62, 75, 87]
    assert spread(requests[:N_SPREAD]).equals(requests[:N_SPREAD])


def test_a_judge_that_was_read_before_is_asked_on(provider: Provider, requests: pl.DataFrame, ask: Ask) -> None:
    provider.then = GOOD
    ask(requests[:20])
    provider.then = CUT
    assert ask(requests).n_left == 0, "its stored replies say that it knows the form"


def test_a_runs_shards_know_of_one_another(provider: Provider, requests: pl.DataFrame, ask: Ask) -> None:
    """Each has too few requests to tell by itself; another run of the process looks anew."""
    provider.then = CUT
    shards = [requests[first : first + 25] for first in range(0, N, 25)]
    with LOOP.held():
        ask(shards[0], run_id="first")
        for shard in shards[1:]:
            with pytest.raises(UnreadableError):
                ask(shard, run_id="first")
        n_bought = provider.n
        assert n_bought == 2 * N_UNREADABLE
        provider.then = GOOD
        assert ask(shards[-1], run_id="second").n_left == 0


READ = {
    "scores": (ReadScores({"a": 1}), None),
    "scores that break a rule": (ReadScores({"a": 1}, violated={"a": (0, 0)}), None),
    "nothing applies": (ReadScores({}, not_applicable=frozenset("a")), None),
    "one item of two": (ReadScores({"a": 1}, unreadable={"b": R.MALFORMED}), None),
    "an item left out": (ReadScores({"a": 1}, unreadable={"b": R.MISSING_KEY}), None),
    "no item of two": (ReadScores({}, unreadable={"a": R.MALFORMED, "b": R.AMBIGUOUS}), R.MALFORMED),
    "none": (Unreadable(R.EMPTY), R.EMPTY),
}


@pytest.mark.parametrize(("read", "reason"), READ.values(), ids=READ.keys())
def test_why_no_number_can_be_taken(read: Any, reason: R | None) -> None:
    assert why_nothing(read) is reason


def test_a_reply_that_leaves_an_item_out_is_asked_for_once_more_and_one_that_answers_all_is_not() -> None:
    assert is_reaskable(ReadScores({"a": 1}, unreadable={"b": R.MISSING_KEY}))
    assert not is_reaskable(ReadScores({"a": 1}, unreadable={"b": R.MALFORMED}))
    assert not is_reaskable(None), "a filtered reply"


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


def test_a_reply_whose_reading_raises_is_stored_and_not_bought_again(
    provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome], ledger: Ledger
) -> None:
    """No reply is known that does so: here the facts beside it cannot be read."""
    damaged = requests[:1].with_columns(facts_json=pl.lit("{"))
    with pytest.raises(orjson.JSONDecodeError):
        run(damaged)
    assert ledger.known(damaged["request_key"]) == set(damaged["request_key"])
    assert (run(damaged).n_cached, provider.n) == (1, 1)
