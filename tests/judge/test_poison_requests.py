"""A provider that is down, and requests that it alone cannot bear: both fail in each run, and an outage is not published."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from sqlalchemy import update

from schemas.benchmark.file import Limits
from schemas.errors import ProviderDownError
from schemas.statuses.rows import ReplyStatus
from tasks.judge.outcome import Outcome
from tasks.judge.poison_requests import LONG_S
from tasks.judge.retries import RETRIES, Retry
from tasks.ledger.ledger import Ledger
from tasks.ledger.tables import ATTEMPTS

FAILS: dict[str, Any] = {"status": 500, "body": b"{}"}


def _asked_before(ledger: Ledger, seconds: float) -> None:
    """Put all attempts back in time."""
    earlier = update(ATTEMPTS).values(started_at_us=ATTEMPTS.c.started_at_us - int(seconds * 1e6))
    asyncio.run(ledger.alone(lambda connection: connection.execute(earlier)))


@pytest.mark.parametrize("n_bad", [3, 4], ids=["fewer than a fifth", "a fifth"])
def test_a_few_requests_that_the_provider_cannot_bear_keep_no_run_from_its_end(
    provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome], n_bad: int
) -> None:
    """Nothing else is left to ask: after three runs it is the requests, not the provider."""
    run(requests[n_bad:])
    provider.then = provider.play(**FAILS)
    for _ in range(3):
        with pytest.raises(ProviderDownError):
            run(requests, n_failures_to_stop=3)
    assert dict(run(requests, n_failures_to_stop=3).n_by_status) == {"server_error": n_bad}


@pytest.mark.parametrize("n_before", [0, 8], ids=["nothing was ever answered", "some was answered before"])
def test_a_provider_that_fails_most_of_what_is_left_is_down_however_often_it_was_tried(
    provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome], ledger: Ledger, n_before: int
) -> None:
    """Tries seconds apart are one outage; what fails for more than a day is published as failed."""
    limits = Limits(concurrency=8, deadline_s=2, requests_per_minute=60_000)  # said: who never answered is asked ten a second
    if n_before:
        run(requests[:n_before], limits=limits)
    provider.then = provider.play(**FAILS)
    for _ in range(5):
        with pytest.raises(ProviderDownError):
            run(requests, limits=limits)
    _asked_before(ledger, LONG_S + 60)
    assert dict(run(requests, limits=limits).n_by_status) == {"server_error": 20 - n_before}


@pytest.mark.parametrize(
    ("n_good", "fails", "is_down"),
    [
        (12, FAILS, True),
        (16, FAILS, False),
        (12, {"status": 429, "body": b"{}", "headers": {"retry-after-ms": "1"}}, False),
    ],
    ids=["down from the 13th on", "a few of the last", "its limits alone"],
)
def test_a_provider_that_goes_down_in_mid_shard_is_down_before_a_minute_is_over(
    provider: Any,
    requests: pl.DataFrame,
    run: Callable[..., Outcome],
    ledger: Ledger,
    n_good: int,
    fails: dict[str, Any],
    is_down: bool,
) -> None:
    """A small shard ends before: each request has had its attempts, and a table of what was answered would be published."""
    provider.script.extend(provider.play(body=provider.complete('{"score": 1}')) for _ in range(n_good))
    provider.then = provider.play(**fails)
    limits = Limits(concurrency=1, deadline_s=2)
    started = time.monotonic()
    if is_down:
        with pytest.raises(ProviderDownError, match="is down"):
            run(requests, limits=limits, n_failures_to_stop=4)
    else:
        assert run(requests, limits=limits, n_failures_to_stop=4).n_answered == n_good
    assert time.monotonic() - started < 30
    assert len(ledger.known(requests["request_key"])) == n_good


def test_requests_that_found_nobody_in_earlier_runs_tell_of_the_provider_when_it_fails_them(
    provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome], ledger: Ledger
) -> None:
    """A server that was not started for some nights, and then does not work: nothing was tried in vain."""

    async def find_nobody(request_key: str) -> None:
        for _ in range(3 * RETRIES[ReplyStatus.SERVER_ERROR].n_attempts):
            attempt_id = await ledger.begin(request_key, 0, "judge")
            await ledger.fail(attempt_id, ReplyStatus.UNREACHABLE, "no connection: refused")

    async def find_nobody_for_any() -> None:
        await asyncio.gather(*map(find_nobody, requests["request_key"]))

    asyncio.run(find_nobody_for_any())
    _asked_before(ledger, 2 * LONG_S)
    provider.then = provider.play(**FAILS)
    with pytest.raises(ProviderDownError):
        run(requests)


def test_requests_that_the_provider_fails_while_it_answers_more_others_are_the_cause_themselves(
    provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome]
) -> None:
    """A quarter that it cannot bear, at the first run: what is left at the end was failed while it was there."""
    bad = dict[str, None]()

    def answers(text: str) -> str:
        if len(bad) < 5:
            bad[text] = None
        provider.script.extend([provider.play(**FAILS)] * (text in bad))
        return '{"score": 1}'

    provider.answers = answers
    slow = {status: Retry(retry.n_attempts, 0.2, 0.2) for status, retry in RETRIES.items()}
    found = run(requests, n_failures_to_stop=4, retries=slow)
    assert dict(found.n_by_status) == {"answered": 15, "server_error": 5}


def test_an_outage_tells_what_else_its_failures_may_be(
    provider: Any, requests: pl.DataFrame, run: Callable[..., Outcome]
) -> None:
    run(requests[:8])
    provider.then = provider.play(**FAILS)
    with pytest.raises(
        ProviderDownError, match=r"8 other requests of the same shard have replies: .*three runs, the first a day ago"
    ):
        run(requests)
    with pytest.raises(ProviderDownError) as nothing_answered:
        run(requests[8:])
    assert "others" not in str(nothing_answered.value)
