"""The engine against a provider that misbehaves: what is tried again, what is not, and what is stored when it ends."""

import asyncio
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from sqlalchemy import select

from rubrics.model import Rubric
from schemas.benchmark.file import Limits
from schemas.benchmark.judges import Judge, Price
from schemas.errors import AccountError, JudgeChangedError, ProviderDownError, ProviderError, RejectedError, StoreError
from schemas.records import JudgeReply
from schemas.statuses.rows import ReplyOrigin
from schemas.statuses.rows import ReplyStatus as S
from tasks.judge.admission import AdmissionControl, open_admission
from tasks.judge.budget.budget import Budget, attempts_per_run, leased_usd
from tasks.judge.budget.cost import Estimate
from tasks.judge.engine import judge_requests
from tasks.judge.outcome import Outcome
from tasks.judge.provider.exchange import InDoubt, NotSent, RequestPicture
from tasks.judge.provider.openai.client import OpenAIProvider
from tasks.judge.retries import N_REJECTED, RETRIES, Retry
from tasks.judge.session import Session
from tasks.judge.shard_requests import Shard
from tasks.ledger.ledger import Ledger
from tasks.ledger.shared_counter import leased
from tasks.ledger.tables import ALLOWANCES
from tests.judge.conftest import QUICK, picture
from tests.support.contexts import plan_part

FILTERED = b'{"error": {"code": "content_filter"}}'


def test_what_is_asked_once_is_not_asked_again(provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome]) -> None:
    told: list[JudgeReply] = []
    outcome = run(requests, on_reply=told.append)
    assert (outcome.n_requests, outcome.n_cached, outcome.n_asked, outcome.n_answered, provider.n) == (20, 0, 20, 20, 20)
    assert dict(outcome.n_by_status) == {"answered": 20}
    assert {reply.request_key for reply in told} == set(requests["request_key"])
    again = run(requests)
    assert (again.n_cached, again.n_asked, provider.n) == (20, 0, 20)


def test_the_same_request_twice_is_asked_once(provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome]) -> None:
    assert run(pl.concat([requests, requests])).n_requests == 20
    assert provider.n == 20


def test_never_more_in_flight_than_allowed(provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome]) -> None:
    provider.then = provider.play(body=provider.complete('{"score": 1}'), delay_s=0.03)
    run(requests, limits=Limits(concurrency=5, deadline_s=2))
    assert 1 < provider.peak <= 5


@pytest.mark.parametrize(
    "case",
    [
        (429, b"{}", QUICK[S.RATE_LIMITED].n_attempts, "rate_limited"),
        (500, b"{}", QUICK[S.SERVER_ERROR].n_attempts, "server_error"),
        (529, b"{}", QUICK[S.SERVER_ERROR].n_attempts, "server_error"),
        (200, b"<html>", QUICK[S.BAD_RESPONSE].n_attempts, "bad_response"),
        (400, b"{}", 1, "rejected"),
        (400, b'{"error": {"code": "content_filter"}}', 1, "filtered"),
    ],
)
def test_each_failure_is_tried_as_often_as_the_table_says(
    provider: Any,
    requests: pl.DataFrame,
    run: Callable[..., Outcome],
    ledger: Ledger,
    case: tuple[int, bytes, int, str],
) -> None:
    status, body, n_sent, ends_as = case
    run(requests[:1])
    provider.then = provider.play(status=status, body=body)
    outcome = run(requests[:2])
    assert (provider.n, dict(outcome.n_by_status)) == (1 + n_sent, {ends_as: 1})
    assert ledger.n_attempts(requests["request_key"][1:]) == {(requests["request_key"][1], 0): n_sent}
    again = run(requests[:2])
    assert again.n_asked == (0 if ends_as in ("rejected", "filtered") else n_sent)


HANGS, ERRS, PAGE = {"delay_s": 5}, {"status": 503, "body": b'{"detail": "upstream is gone"}'}, {"body": b"<html>busy</html>"}


@pytest.mark.parametrize(
    ("plays", "said"),
    [
        (HANGS, r"is too slow, or down: .* timed_out \(no complete reply within 0\.2 s; .*raise limits\.deadline_s"),
        (ERRS, "is down: .*upstream is gone"),
        (PAGE, "is down: .*bad_response"),
    ],
    ids=["hangs", "errs", "a page"],
)
def test_a_provider_that_answers_nothing_is_down_before_all_of_it_was_asked(
    provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome], ledger: Ledger, plays: dict[str, Any], said: str
) -> None:
    """What was answered before stays, and what was not is asked by the next run."""
    limits = Limits(concurrency=8, deadline_s=0.2)
    assert run(requests[:2], limits=limits).n_answered == 2
    provider.then = provider.play(**plays)
    with pytest.raises(ProviderDownError, match=rf"judge judge at .* {said}.*the same command") as raised:
        run(requests, limits=limits, silence_s=0.1, retries={one: Retry(50, 0.05, 0.1) for one in RETRIES})
    assert not raised.value.may_pass
    assert provider.n < 2 + 4 * 18  # of 900 attempts that 18 requests may make
    assert ledger.known(requests["request_key"]) == set(requests["request_key"][:2])
    provider.then = provider.play(body=provider.complete('{"score": 1}'))
    assert run(requests).n_answered == 18


def test_a_small_set_to_which_nothing_is_answered_is_an_outage_too(
    provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome]
) -> None:
    provider.then = provider.play(status=500, body=b"{}")
    with pytest.raises(ProviderDownError):
        run(requests[:3])


@pytest.mark.parametrize(
    ("status", "body", "advice"),
    [
        (500, b'{"error": {"message": "failed to process inputs: image: unknown format"}}', "The picture is to blame"),
        (200, b'{"object": "error", "message": "This model does not support images"}', None),
    ],
    ids=["a server error", "of no known words"],
)
def test_an_outage_says_what_to_do_about_its_words(
    provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome], status: int, body: bytes, advice: str | None
) -> None:
    provider.then = provider.play(status=status, body=body)
    with pytest.raises(ProviderDownError, match=rf"Check the provider\. {advice or 'Replies already'}"):
        run(requests[:3])


def test_a_server_without_a_picture_encoder_is_asked_no_more_than_a_wrong_address(
    provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome], ledger: Ledger
) -> None:
    provider.then = provider.play(
        status=500, body=b'{"error": {"message": "image input is not supported - hint: provide mmproj"}}'
    )
    with pytest.raises(AccountError, match="Start the server with the"):
        run(requests, limits=Limits(concurrency=2, deadline_s=2))
    assert provider.n <= 10
    assert ledger.known(requests["request_key"]) == set()


def test_identical_rejections_stop_the_asking_and_are_asked_again_when_the_cause_is_mended(
    provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome], ledger: Ledger
) -> None:
    limits = Limits(concurrency=2, deadline_s=2)
    provider.then = provider.play(status=413, body=b'{"error": {"message": "Request Entity Too Large (proxy)"}}')
    with pytest.raises(RejectedError, match=r"rejects .*Request Entity Too Large \(proxy\).*the same command"):
        run(requests, limits=limits)
    assert provider.n <= N_REJECTED + 1
    assert ledger.known(requests["request_key"]) == set()
    provider.then = provider.play(body=provider.complete('{"score": 1}'))
    assert run(requests, limits=limits).n_answered == 20


NUMBERED = {
    "vLLM: how many were requested": "This model's maximum context length is 1024 tokens. However, you requested {} tokens",
    "a gateway: the request's id": "Unsupported parameter: 'top_k' (request id: 20261128{:08}aKx9)",
    "an id of letters and digits": "`top_k` is not allowed, req_011CSHoEeqs5C35K2UUqR7F{}",
}


@pytest.mark.parametrize("said", NUMBERED.values(), ids=NUMBERED)
def test_rejections_that_differ_by_numbers_alone_are_in_the_same_words(
    provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome], ledger: Ledger, said: str
) -> None:
    bodies = (orjson.dumps({"error": {"message": said.format(index)}}) for index in range(20))
    provider.script.extend(provider.play(status=400, body=body) for body in bodies)
    with pytest.raises(RejectedError, match="rejects what it is sent"):
        run(requests, limits=Limits(concurrency=1, deadline_s=2))
    assert (provider.n, ledger.known(requests["request_key"])) == (N_REJECTED, set())


@pytest.mark.parametrize(
    ("said", "n_answered"),
    [("the image has {} bytes, 5242880 are allowed", 0), ("you requested {} tokens", 1)],
    ids=["of pictures", "once another was answered"],
)
def test_rejections_that_differ_by_numbers_may_be_of_their_requests(
    provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome], ledger: Ledger, said: str, n_answered: int
) -> None:
    provider.script.extend([provider.play(body=provider.complete('{"score": 1}'))] * n_answered)
    bodies = (orjson.dumps({"error": {"message": said.format(1_000_000 + index)}}) for index in range(20))
    provider.script.extend(provider.play(status=400, body=body) for body in bodies)
    run(requests, limits=Limits(concurrency=1, deadline_s=2))
    assert len(ledger.known(requests["request_key"])) == requests.height


@pytest.mark.parametrize("is_answered_between", [True, False])
def test_rejections_in_different_words_or_with_replies_between_are_of_their_requests(
    provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome], *, is_answered_between: bool
) -> None:
    for index in range(20):
        said = "too long" if is_answered_between else f"{chr(97 + index)} is too long"
        if not (is_answered_between and index % 4 == 3):
            provider.script.append(provider.play(status=400, body=orjson.dumps({"error": {"message": said}})))
        else:
            provider.script.append(provider.play(body=provider.complete('{"score": 1}')))
    outcome = run(requests, limits=Limits(concurrency=1, deadline_s=2))
    assert outcome.n_by_status["rejected"] == (15 if is_answered_between else 20)


@pytest.mark.parametrize(("status", "body", "n_left"), [(400, FILTERED, 0), (200, None, 0), (429, b"{}", 19)])
def test_what_is_left_is_what_has_no_final_reply(
    provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome], status: int, body: bytes | None, n_left: int
) -> None:
    provider.script.append(provider.play(body=provider.complete('{"score": 1}')))
    provider.then = provider.play(
        status=status, body=provider.complete(None, finish_reason="content_filter") if body is None else body
    )
    assert run(requests, limits=Limits(concurrency=8, deadline_s=2, attempts_per_request=1)).n_left == n_left


def test_a_provider_that_tells_of_no_limit_is_held_to_none(
    provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome], ledger: Ledger
) -> None:
    """Until the first reply a limit is assumed; were its silence not heard, the key would be paced at that for ever."""
    run(requests)
    columns = (ALLOWANCES.c.requests_heard_us, ALLOWANCES.c.requests_per_minute, ALLOWANCES.c.tokens_per_minute)
    ((heard_us, *limits),) = ledger.read(lambda connection: connection.execute(select(*columns)).all())
    assert heard_us is not None
    assert limits == [None, None]


def test_attempts_are_counted_over_runs(
    provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome], ledger: Ledger
) -> None:
    provider.then = provider.play(status=500)
    with pytest.raises(ProviderDownError):
        run(requests[:1])
    provider.then = provider.play(body=b'{"choices": [{"message": {"content": "{\\"score\\": 2}"}}]}')
    run(requests[:1])
    assert ledger.replies(requests["request_key"])["n_attempts"].to_list() == [QUICK[S.SERVER_ERROR].n_attempts + 1]


def test_nothing_is_sent_before_retry_after_is_over(provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome]) -> None:
    arrivals: list[float] = []
    provider.on_request = lambda: arrivals.append(time.monotonic())
    provider.script.append(provider.play(status=429, headers={"retry-after-ms": "400"}))
    run(requests, limits=Limits(concurrency=1, deadline_s=2))
    assert arrivals[1] - arrivals[0] >= 0.4


def test_a_provider_that_asks_for_too_long_a_pause_is_left_for_the_next_run(
    provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome]
) -> None:
    """Also where it answered before: else each request that is left would be asked after five more minutes."""
    provider.script.append(provider.play(body=provider.complete('{"score": 1}')))
    provider.then = provider.play(status=429, headers={"retry-after": "86400"})
    started = time.monotonic()
    with pytest.raises(ProviderDownError, match=r"asks for a pause of 86,400 s .*the same command"):
        run(requests, limits=Limits(concurrency=2, deadline_s=2))
    assert provider.n <= 3
    assert time.monotonic() - started < 5


def test_a_provider_that_says_429_alone_is_down_after_ten_times_the_silence_of_one_that_says_nothing(
    provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome]
) -> None:
    provider.then = provider.play(status=429, headers={"retry-after-ms": "5"}, body=b"{}")
    options: dict[str, Any] = {"silence_s": 0.1, "retries": {one: Retry(500, 0.01, 0.02) for one in RETRIES}}
    started = time.monotonic()
    with pytest.raises(ProviderDownError) as raised:
        run(requests, limits=Limits(concurrency=8, deadline_s=2, attempts_per_request=500), **options)
    told = re.search(r"answers nothing: for (\d+) s its rate limits refused every attempt", str(raised.value))
    assert told is not None, raised.value
    assert 1 <= int(told[1]) <= round(time.monotonic() - started)
    assert provider.n < 20 * 500


def test_requests_per_minute_spaces_what_is_sent(provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome]) -> None:
    started = time.monotonic()
    run(requests[:11], limits=Limits(concurrency=11, deadline_s=2, requests_per_minute=1200))
    assert time.monotonic() - started >= 10 * 60 / 1200


UNREADABLE = ["no number here", '{"score": 9}', '{"score": "three"}', "", '{"score": 2.5}']
NOT_ASKED_AGAIN = ['{"score": 3}', "I'm sorry, but I can't assist with that request."]


@pytest.mark.parametrize("text", UNREADABLE)
def test_an_unreadable_reply_is_asked_once_more_and_counted(
    text: str,
    provider: Any,
    requests: pl.DataFrame,
    run: Callable[..., Outcome],
    ledger: Ledger,
) -> None:
    provider.then = provider.play(body=provider.complete(text))
    outcome = run(requests[:1])
    assert (provider.n, outcome.n_reasked, outcome.n_asked) == (2, 1, 2)
    found = ledger.replies(requests["request_key"]).sort("ask_index")
    assert found.select("ask_index", "reply_text").rows() == [(0, text), (1, text)]
    assert run(requests[:1]).n_asked == 0  # never a third time


@pytest.mark.parametrize("text", NOT_ASKED_AGAIN)
def test_what_asking_again_does_not_mend_is_not_asked_again(
    text: str, provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome]
) -> None:
    provider.then = provider.play(body=provider.complete(text))
    assert (run(requests[:1]).n_reasked, provider.n) == (0, 1)


def test_a_reask_that_failed_is_made_by_the_next_run(
    provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome], ledger: Ledger
) -> None:
    provider.script.append(provider.play(body=provider.complete("nothing")))
    provider.then = provider.play(status=500)
    run(requests[:1])
    provider.then = provider.play(body=provider.complete('{"score": 1}'))
    n_before = provider.n
    assert (run(requests[:1]).n_answered, provider.n - n_before) == (1, 1)
    assert sorted(ledger.replies(requests["request_key"])["ask_index"]) == [0, 1]


def test_a_dead_endpoint_stops_the_shard(requests: pl.DataFrame, run: Callable[..., Outcome], ledger: Ledger) -> None:
    dead = Judge(model="judge", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(ProviderError, match=r"http://127\.0\.0\.1:9/v1 cannot be reached.*the same command"):
        run(requests, dead, n_failures_to_stop=3, limits=Limits(concurrency=2, deadline_s=2))
    assert 3 <= len(ledger.n_attempts(requests["request_key"])) < 20


def test_one_request_is_enough_to_see_that_an_endpoint_is_dead(requests: pl.DataFrame, run: Callable[..., Outcome]) -> None:
    with pytest.raises(ProviderError, match="cannot be reached"):
        run(requests[:1], Judge(model="judge", base_url="http://127.0.0.1:9/v1"))


@pytest.mark.parametrize(
    "case",
    [(401, b"{}", "check the key in the environment variable SALON_TEST_KEY"),
     (429, b'{"error": {"code": "insufficient_quota"}}', "SALON_TEST_KEY .* has no credit left")],
)  # fmt: skip
def test_an_account_that_is_refused_stops_the_shard_and_replies_stay(
    provider: Any,
    requests: pl.DataFrame,
    run: Callable[..., Outcome],
    ledger: Ledger,
    case: tuple[int, bytes, str],
) -> None:
    status, body, advice = case
    provider.script.extend(provider.play(body=provider.complete('{"score": 1}')) for _ in range(5))
    provider.then = provider.play(status=status, body=body)
    with pytest.raises(ProviderError, match=advice):
        run(requests, n_failures_to_stop=3, limits=Limits(concurrency=1, deadline_s=2))
    assert len(ledger.known(requests["request_key"])) == 5
    assert provider.n == 8  # terminal: each asked once, and the breaker opened at the third


def test_a_storm_ends_with_every_item_answered_or_typed(
    provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome], ledger: Ledger
) -> None:
    good = provider.play(body=provider.complete('{"score": 1}'))
    play = provider.play
    html = play(body=b"<html>", headers={"content-type": "text/html"})
    limited = play(status=429, headers={"retry-after": "0"})
    storm = [limited, play(status=503), play(reset=True), good, html, play(body=b"null"), good, play(status=529)]
    provider.script.extend(storm * 5)
    provider.then = good
    outcome = run(requests, limits=Limits(concurrency=6, deadline_s=1))
    assert sum(outcome.n_by_status.values()) == 20
    assert outcome.n_answered == len(ledger.known(requests["request_key"]))
    assert outcome.n_asked == provider.n == sum(ledger.n_attempts(requests["request_key"]).values())


def test_stopping_stores_what_is_under_way(
    provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome], ledger: Ledger
) -> None:
    provider.then = provider.play(body=provider.complete('{"score": 1}'), delay_s=0.5)

    def stop_soon(stop: asyncio.Event) -> asyncio.Event:
        async def once_all_are_under_way() -> None:
            while provider.n < 4:
                await asyncio.sleep(0.01)
            stop.set()

        stop.task = asyncio.create_task(once_all_are_under_way())
        return stop

    outcome = run(requests, stop=stop_soon, limits=Limits(concurrency=4, deadline_s=2))
    assert outcome.is_stopped
    assert len(ledger.known(requests["request_key"])) == provider.n == 4


def test_a_cancelled_run_stores_what_is_under_way(
    provider: Any, requests: pl.DataFrame, ledger: Ledger, judge: Judge, rubric: Rubric
) -> None:
    provider.then = provider.play(body=provider.complete('{"score": 1}'), delay_s=1.5)

    async def ask() -> None:
        client = OpenAIProvider(judge, 4, 5)
        limits = Limits(concurrency=4, deadline_s=5)
        async with open_admission(ledger, await Session.begin(ledger, client, limits), rubric, limits, "run") as admission:
            task = asyncio.create_task(judge_requests(Shard(requests, picture, ledger, client, rubric, limits), admission))
            while provider.n < 4:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await client.close()

    asyncio.run(ask())
    assert len(ledger.known(requests["request_key"])) == provider.n == 4


def test_a_ledger_that_fails_stops_the_asking(
    provider: Any, requests: pl.DataFrame, judge: Judge, rubric: Rubric, tmp_path: Path
) -> None:

    async def ask() -> None:
        client = OpenAIProvider(judge, 4, 2)
        limits = Limits(concurrency=4)
        with Ledger(f"sqlite:///{tmp_path}/full.db", reserve_bytes=2**62) as full, pytest.raises(StoreError, match="free space"):
            async with open_admission(full, await Session.begin(full, client, limits), rubric, limits, "run") as admission:
                await judge_requests(Shard(requests, picture, full, client, rubric, limits), admission)
        await client.close()

    asyncio.run(ask())
    assert provider.n == 0


def test_attempts_are_given_back_where_money_cannot_be(
    provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome], ledger: Ledger, judge: Judge, tmp_path: Path
) -> None:
    provider.then = provider.play(body=provider.complete('{"score": 1}'))
    priced = judge.model_copy(update={"price": PRICED, "parameters": {"max_tokens": 9}})
    is_returned = "NEW.budget_id = 'run' AND NEW.leased < OLD.leased"
    refuse = f"CREATE TRIGGER full BEFORE UPDATE ON budgets WHEN {is_returned} BEGIN SELECT RAISE(ABORT, 'no room'); END"
    ledger.known([])  # makes it
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection, connection:
        connection.execute(refuse)
    with pytest.raises(StoreError, match="no room"):
        run(requests, judge=priced, limits=Limits(max_usd=1, attempts_per_run=1000))
    attempts_id = sha256(b"attempts of run").hexdigest()
    assert ledger.read(lambda connection: leased(connection, attempts_id)) == provider.n == requests.height


def test_the_key_is_nowhere_in_the_ledger(
    provider: Any,
    requests: pl.DataFrame,
    run: Callable[..., Outcome],
    ledger: Ledger,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SALON_TEST_KEY", "key-abcdef-0123456789")
    echo = orjson.dumps({"error": {"message": "Authorization: Bearer key-abcdef-0123456789"}})
    provider.script.extend(
        [
            provider.play(status=500, body=echo),
            provider.play(status=400, body=echo),
            provider.play(body=provider.complete("key-abcdef-0123456789")),
        ]
    )
    provider.script.append(provider.play(status=302, headers={"location": "https://key-abcdef-0123456789.example/"}))
    run(requests)
    ledger.close()
    held = b"".join(path.read_bytes() for path in Path(ledger._url.database or "").parent.glob("ledger.db*"))
    assert b"Judge" not in held  # no prompt either
    assert b"abcdef-0123456789" not in held
    assert b"iVBOR" not in held


def test_another_model_under_the_same_name_stops_the_asking(
    provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome], ledger: Ledger
) -> None:
    one_by_one = Limits(concurrency=1, deadline_s=2)
    provider.script.extend(provider.play(body=provider.complete('{"score": 1}')) for _ in range(3))
    provider.then = provider.play(body=provider.complete('{"score": 1}', model="judge-2026-06-30"))
    with pytest.raises(JudgeChangedError, match=r"judge answered as judge-2026-01-01 .* answers as judge-2026-06-30 now"):
        run(requests, limits=one_by_one)
    assert (provider.n, len(ledger.known(requests["request_key"]))) == (4, 4)  # the reply that told is bought, and kept
    with pytest.raises(JudgeChangedError):
        run(requests, limits=one_by_one)  # also a resumed run is held to the first one
    assert provider.n == 5
    assert run(requests, limits=one_by_one, plan_id="another plan").n_answered == 15


def test_an_endpoint_that_goes_away_at_the_end_of_a_shard_is_an_outage_and_not_a_lost_item(
    provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome], ledger: Ledger
) -> None:
    """Fewer requests are left than the breaker needs: they were never sent, so nothing is known about them."""

    good = provider.complete('{"score": 1}')
    provider.script.extend([provider.play(body=good)] * 17 + [provider.play(body=good, is_last=True)])
    with pytest.raises(ProviderError, match="cannot be reached") as raised:
        run(requests, limits=Limits(concurrency=1, deadline_s=2))
    assert raised.value.may_pass, "it answered before: its shard is tried again"
    assert len(ledger.known(requests["request_key"])) == provider.n == 18


def _two_at_once(provider: Any, ledger: Ledger, judge: Judge, rubric: Rubric, requests: pl.DataFrame) -> list[Any]:
    async def one() -> Outcome:
        limits = Limits(concurrency=4, deadline_s=2, requests_per_minute=60_000)
        client = OpenAIProvider(judge, limits.concurrency, limits.deadline_s)
        try:
            async with open_admission(ledger, await Session.begin(ledger, client, limits), rubric, limits, "run") as admission:
                return await judge_requests(Shard(requests, picture, ledger, client, rubric, limits, retries={}), admission)
        finally:
            await client.close()

    async def both() -> list[Any]:
        return list(await asyncio.wait_for(asyncio.gather(one(), one(), return_exceptions=True), 40))

    return asyncio.run(both())


def test_two_runs_do_not_wait_for_what_each_failed_to_get(
    provider: Any, ledger: Ledger, judge: Judge, rubric: Rubric, make_samples: Callable[..., pl.DataFrame]
) -> None:
    """Each claims a block and fails; with the claims kept, each would wait for ever for the other's reply."""
    requests = plan_part(make_samples(130), rubric, judge)[1]
    provider.then = provider.play(status=500)
    outcomes = _two_at_once(provider, ledger, judge, rubric, requests)
    assert list(map(type, outcomes)) == [ProviderDownError, ProviderDownError]
    assert Counter(Counter(provider.seen).values()) == {2: 130}


async def _admission(ledger: Ledger, judge: Judge, rubric: Rubric, limits: Limits, then: Callable[..., Any]) -> Any:
    client = OpenAIProvider(judge, limits.concurrency, limits.deadline_s)
    try:
        async with open_admission(ledger, await Session.begin(ledger, client, limits), rubric, limits, "admission") as admission:
            return await then(admission)
    finally:
        await client.close()


PICTURE = RequestPicture(lambda: b"png", "PNG", 64, 64)
PRICED = Price(input_usd_per_million=1, output_usd_per_million=1)
WORST = Estimate(10, 10, 10, 10, 9, 9, 0.1, 0.3)


def test_who_is_let_in_after_the_money_was_refused_to_another_keeps_no_money(
    ledger: Ledger, rubric: Rubric, judge: Judge
) -> None:
    """A reservation nobody settles would make every other worker wait for ever."""

    async def enter(admission: AdmissionControl) -> bool:
        admission.is_spent = True
        stopping = asyncio.Event()
        is_in = await admission.enter(WORST, stopping)
        if is_in:
            await admission.leave(WORST, NotSent())
        assert admission.budget is not None
        return await asyncio.wait_for(admission.budget.reserve(1.0), 10)  # all of it is there

    priced = judge.model_copy(update={"price": PRICED, "parameters": {"max_tokens": 9}})
    limits = Limits(concurrency=4, max_usd=1.0, requests_per_minute=60_000)
    assert asyncio.run(_admission(ledger, priced, rubric, limits, enter))


@pytest.mark.parametrize(("ended", "usd"), [(InDoubt(), 0.3), (NotSent(), 0.0)], ids=["in doubt", "not sent"])
def test_what_no_answer_came_of_is_charged_at_its_worst_once_it_was_sent(
    ledger: Ledger, rubric: Rubric, judge: Judge, ended: InDoubt | NotSent, usd: float
) -> None:
    async def end(admission: AdmissionControl) -> None:
        assert await admission.enter(WORST, asyncio.Event())
        await admission.leave(WORST, ended)

    priced = judge.model_copy(update={"price": PRICED, "parameters": {"max_tokens": 9}})
    asyncio.run(_admission(ledger, priced, rubric, Limits(concurrency=4, max_usd=1.0), end))
    assert leased_usd(ledger, "admission") == pytest.approx(usd)


def test_money_that_comes_back_while_the_ledger_is_asked_is_counted_with_what_the_ledger_has(ledger: Ledger) -> None:
    async def run() -> bool:
        budget = Budget(ledger, "race", 1.0)
        assert await budget.reserve(0.5)
        waiting = asyncio.create_task(budget.reserve(0.6))
        await asyncio.sleep(0)  # it asks the ledger for 0.6, which has 0.5
        budget.charge(0.5, 0.05)  # 0.45 here and 0.5 there
        return await waiting

    assert asyncio.run(run())


def test_a_wait_for_money_ends_when_the_run_is_stopped(ledger: Ledger) -> None:
    async def run() -> bool:
        budget, stopping = Budget(ledger, "stopped", 1.0), asyncio.Event()
        assert await budget.reserve(0.9)
        waiting = asyncio.create_task(budget.reserve(0.5, stopping))
        await asyncio.sleep(0.1)
        stopping.set()
        return await asyncio.wait_for(waiting, 5)

    assert not asyncio.run(run())


def test_a_run_that_is_stopped_while_it_waits_for_money_has_not_spent_it(ledger: Ledger, rubric: Rubric, judge: Judge) -> None:
    async def stop(admission: AdmissionControl) -> bool:
        stopping = asyncio.Event()
        assert await admission.enter(WORST, stopping)
        waiting = [asyncio.create_task(admission.enter(WORST, stopping)) for _ in range(3)]  # of 1.0, 0.3 each
        await asyncio.sleep(0.2)
        stopping.set()
        assert sum(await asyncio.gather(*waiting)) == 2
        return admission.is_spent

    priced = judge.model_copy(update={"price": PRICED, "parameters": {"max_tokens": 9}})
    limits = Limits(concurrency=4, max_usd=1.0, requests_per_minute=60_000)
    assert not asyncio.run(_admission(ledger, priced, rubric, limits, stop))


def test_an_attempt_that_could_not_be_recorded_costs_nothing(
    provider: Any, requests: pl.DataFrame, judge: Judge, rubric: Rubric, tmp_path: Path
) -> None:
    priced = judge.model_copy(update={"price": PRICED, "parameters": {"max_tokens": 9}})
    limits = Limits(concurrency=4, max_usd=1.0, requests_per_minute=60_000)
    with Ledger(f"sqlite:///{tmp_path}/full.db", reserve_bytes=2**62) as full:

        async def ask(admission: AdmissionControl) -> None:
            client = OpenAIProvider(priced, 4, 2)
            with pytest.raises(StoreError, match="free space"):
                await judge_requests(Shard(requests, lambda _: PICTURE, full, client, rubric, limits), admission)
            await client.close()

        asyncio.run(_admission(full, priced, rubric, limits, ask))
        assert leased_usd(full, "admission") == 0
    assert provider.n == 0


def test_nothing_is_sent_that_was_let_in_before_the_stop(ledger: Ledger, rubric: Rubric, judge: Judge) -> None:
    async def stop(admission: AdmissionControl) -> bool:
        stopping = asyncio.Event()
        assert await admission.enter(WORST, stopping)
        stopping.set()  # while the attempt's row is written
        async with admission.sending(stopping) as is_sent:
            return is_sent is not None

    assert not asyncio.run(_admission(ledger, judge, rubric, Limits(concurrency=4), stop))


def test_what_the_database_cannot_hold_is_an_error_and_the_ledger_goes_on(ledger: Ledger) -> None:
    async def run() -> None:
        attempt_id = await ledger.begin("a" * 64, 0, "judge")
        reply = JudgeReply("a" * 64, 0, S.ANSWERED, "judge", ReplyOrigin.ASKED, n_input_tokens=2**70)
        with pytest.raises(OverflowError):  # a fault of Salon's own: answers are held to what columns can hold before
            await asyncio.wait_for(ledger.finish(attempt_id, reply), 20)
        await asyncio.wait_for(ledger.fail(attempt_id, S.BAD_RESPONSE, None), 20)

    asyncio.run(run())


QUICKLY = Limits(concurrency=4, deadline_s=2, requests_per_minute=60_000)


def test_a_run_whose_attempts_are_used_up_stops_and_says_what_failed_most(
    provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome], ledger: Ledger
) -> None:
    good = provider.play(body=provider.complete('{"score": 1}'))
    provider.script.extend([good] * 5 + [provider.play(body=b"<html>")])
    provider.then = provider.play(status=503, body=b'{"error": {"message": "upstream is tired"}}')
    with pytest.raises(ProviderError) as raised:
        run(requests, limits=QUICKLY.model_copy(update={"attempts_per_run": 17}))
    words = ["17 attempts", "12 that failed", "11 ended in server_error", "upstream is tired", "limits.attempts_per_run"]
    assert all(word in str(raised.value) for word in words)
    assert not raised.value.may_pass  # a retry of the shard has no attempt left either
    assert (provider.n, len(ledger.known(requests["request_key"]))) == (17, 5)


def test_as_many_attempts_as_are_needed_are_enough(
    provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome], ledger: Ledger
) -> None:
    assert run(requests, limits=QUICKLY.model_copy(update={"attempts_per_run": 20})).n_answered == 20
    used = sha256(b"attempts of run").hexdigest()
    assert ledger.read(lambda connection: leased(connection, used)) == 20


def test_the_attempts_of_a_run_are_two_for_each_request_and_a_hundred() -> None:
    assert attempts_per_run(Limits(), 500) == 1100
    assert attempts_per_run(Limits(attempts_per_run=7), 500) == 7
