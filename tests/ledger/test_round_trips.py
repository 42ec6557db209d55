"""How often a ledger's server is waited for: behind a slow network each round trip costs every judgement its time."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from schemas.errors import StoreError
from schemas.records import JudgeReply
from schemas.statuses.rows import ReplyOrigin, ReplyStatus
from tasks.judge.budget.observed_usage import Observed, store_observed
from tasks.judge.rate_limit.limiter import RateLimiter
from tasks.ledger.claims import Claims
from tasks.ledger.ledger import Ledger
from tasks.ledger.shared_counter import SharedCounter
from tasks.ledger.tables import ATTEMPTS, REPLIES
from tests.support.servers.network_delay import Distance, distant
from tests.support.servers.postgres import PostgresServer

pytestmark = pytest.mark.slow

KEYS = [f"{index:064x}" for index in range(50)]


@contextmanager
def opened_far(address: str) -> Iterator[tuple[Ledger, Distance]]:
    """A ledger whose connections are open, and what lies between it and its server."""
    with distant(address) as (url, distance), Ledger(url) as ledger:
        asyncio.run(_begin(ledger, "f" * 64))
        ledger.alone_now(lambda _: None)
        yield ledger, distance


@pytest.fixture
def far(address: str) -> Iterator[tuple[Ledger, Distance]]:
    with opened_far(address) as opened:
        yield opened


def _reply(key: str) -> JudgeReply:
    return JudgeReply(key, 0, ReplyStatus.ANSWERED, "judge", ReplyOrigin.ASKED, text="3")


async def _begin(ledger: Ledger, *keys: str) -> list[str]:
    return await asyncio.gather(*(ledger.begin(key, 0, "judge") for key in keys))


async def _finish(ledger: Ledger) -> None:
    await ledger.finish("0" * 32, _reply(KEYS[0]), is_reasked=True)


async def _claim(ledger: Ledger) -> None:
    assert len((await Claims(ledger).take(KEYS)).ours) == len(KEYS)


async def _lease(ledger: Ledger) -> None:
    await RateLimiter(ledger, "a", 6_000).wait(10, asyncio.Event())


async def _lease_money(ledger: Ledger) -> None:
    assert await SharedCounter(ledger, "p", 1_000).take(5)


async def _known(ledger: Ledger) -> None:
    ledger.known(KEYS)


MOST: dict[str, tuple[Callable[[Ledger], Coroutine[Any, Any, object]], int]] = {
    "one attempt begun": (lambda ledger: _begin(ledger, KEYS[0]), 1),
    "a reply and its re-ask": (_finish, 1),
    "what has replies": (_known, 1),
    "a block claimed": (_claim, 4),
    "a first lease of a limit": (_lease, 4),
    "a lease of money": (_lease_money, 2),
    "prices observed": (lambda ledger: store_observed(ledger, ("r", "1", "j"), Observed(1, 1, 1, 1, 1, 1.0)), 1),
}


@pytest.mark.parametrize(("work", "n_most"), MOST.values(), ids=MOST)
def test_how_often_the_server_is_waited_for(
    postgres: PostgresServer, work: Callable[[Ledger], Coroutine[Any, Any, object]], n_most: int
) -> None:
    """The least of three: on a busy machine an answer may be seen before the end of what was sent in one go."""
    found = []
    while len(found) < 3 and min(found, default=n_most + 1) > n_most:
        with opened_far(postgres.new_database()) as (ledger, distance):
            before = list(distance.n_round_trips)
            asyncio.run(work(ledger))
            mine = distance.n_round_trips[: len(before)]  # a connection that is made meanwhile is no part of the work
        found.append(sum(mine) - sum(before))
    assert min(found) <= n_most


@pytest.mark.parametrize("work", [work for work, _ in MOST.values()], ids=MOST)
def test_a_slow_network_costs_its_time_and_ends_nothing(
    far: tuple[Ledger, Distance], work: Callable[[Ledger], Coroutine[Any, Any, object]]
) -> None:
    """What is leased far away is older than a lease lives when it is heard of: a limiter would ask for ever."""
    ledger, distance = far
    distance.delay_s = 0.3
    asyncio.run(asyncio.wait_for(work(ledger), 30))


@pytest.mark.parametrize("work", [_known, _finish, _claim], ids=["read", "written", "in turn"])
def test_a_server_that_acknowledges_and_says_nothing_is_given_up(
    address: str, work: Callable[[Ledger], Coroutine[Any, Any, object]]
) -> None:
    """A proxy whose server is gone: no system timer ends the wait. Afterwards the same ledger works again."""
    with distant(address) as (url, distance), Ledger(url, max_away_s=1, max_silent_s=1) as ledger:
        ledger.known(KEYS)
        distance.delay_s = 10.0
        with pytest.raises(StoreError, match="check that the server runs"):
            asyncio.run(asyncio.wait_for(work(ledger), 8))
        distance.delay_s = 0.0
        asyncio.run(work(ledger))


def test_a_statement_that_fails_undoes_what_was_sent_with_it(far: tuple[Ledger, Distance]) -> None:
    """The second function's row is refused when it is waited for; neither its first row nor the state stays."""
    ledger, _ = far
    state = ledger.state()

    def write(connection: Any) -> None:
        connection.execute(
            REPLIES.insert(),
            [{"request_key": KEYS[0], "ask_index": 0, "status": "answered", "judge_model": "j", "n_attempts": 1}],
        )
        connection.execute(
            ATTEMPTS.insert(),
            [{"attempt_id": "1", "request_key": "k" * 65, "ask_index": 0, "judge_model": "j", "started_at_us": 0}],
        )

    with pytest.raises(StoreError, match="too long"):
        ledger.alone_now(write)
    assert (ledger.known(KEYS), ledger.state()) == (set(), state)


def test_rows_do_not_wait_for_a_turn(far: tuple[Ledger, Distance]) -> None:
    """A function that takes long, or waits long for its turn, holds up no attempt and no reply."""
    ledger, _ = far

    async def both() -> bool:
        slow = asyncio.create_task(ledger.alone(lambda connection: connection.exec_driver_sql("SELECT pg_sleep(1)") and None))
        await asyncio.sleep(0.1)
        await ledger.begin(KEYS[0], 0, "judge")
        is_first = not slow.done()
        await slow
        return is_first

    assert asyncio.run(both())
