"""Adaptive concurrency against providers that bear only so much, played event by event; and its waiting, on a real loop."""

import asyncio
import heapq
import random
from collections.abc import Callable
from itertools import pairwise

import pytest

from schemas.statuses.rows import ReplyStatus
from tasks.judge.rate_limit.concurrency import START, AdaptiveConcurrency

OK, LIMITED = ReplyStatus.ANSWERED, ReplyStatus.RATE_LIMITED


def play(
    concurrency: AdaptiveConcurrency, n_replies: int, reply: Callable[[int, float], tuple[float, ReplyStatus]]
) -> list[tuple[float, int, ReplyStatus]]:
    """(moment, in flight, status) of each reply when every place is always taken. `reply`: (in flight, moment) -> how it ends."""
    now_s, ends, told = 0.0, [], []
    for number in range(n_replies):
        while concurrency.n_in_flight < concurrency.allowed:
            enter(concurrency)
            latency_s, status = reply(concurrency.n_in_flight, now_s)
            heapq.heappush(ends, (now_s + latency_s, number + random.random(), latency_s, status))
        now_s, _, latency_s, status = heapq.heappop(ends)
        concurrency.release(latency_s, status)
        told.append((now_s, concurrency.n_in_flight + 1, status))
    return told


def enter(concurrency: AdaptiveConcurrency) -> None:
    with pytest.raises(StopIteration) as ended:
        concurrency.acquire(asyncio.Event()).send(None)
    assert ended.value.value is True


@pytest.fixture(autouse=True)
def _same_draws() -> None:
    random.seed(3)


def test_all_places_are_used_where_the_provider_bears_it() -> None:
    concurrency = AdaptiveConcurrency(200)
    told = play(concurrency, 1000, lambda _, __: (random.lognormvariate(0.7, 0.6), OK))
    assert concurrency.allowed == 200
    assert next(index for index, (_, n, _) in enumerate(told) if n >= 190) < 500, "it doubles, it does not creep"
    assert max(n for _, n, _ in told) <= 200


@pytest.mark.parametrize("maximum", [1, 2, START])
def test_never_more_than_the_maximum(maximum: int) -> None:
    concurrency = AdaptiveConcurrency(maximum)
    assert max(n for _, n, _ in play(concurrency, 300, lambda _, __: (1.0, OK))) == maximum


def test_our_own_machines_latency_is_nothing_to_react_to() -> None:
    """A server that answers at once: what is measured is the queue of our own event loop, and it grows with what is in flight."""
    concurrency = AdaptiveConcurrency(400)
    play(concurrency, 3000, lambda n, _: (0.0006 * n, OK))
    assert concurrency.allowed == 400


def test_a_provider_that_slows_down_with_load_is_not_driven_further() -> None:
    """With more than 20 in flight each waits for the others: nothing is gained above, and nothing lost by staying near."""
    concurrency = AdaptiveConcurrency(300)
    told = play(concurrency, 6000, lambda n, _: (max(1.0, n / 20) * random.lognormvariate(0, 0.3), OK))
    steady = [n for _, n, _ in told[2000:]]
    assert 18 <= sum(steady) / len(steady) <= 70
    assert (told[-1][0] - told[2000][0]) * 20 < 4000 * 1.15


def test_a_provider_that_is_slow_for_reasons_of_its_own_keeps_its_concurrency() -> None:
    concurrency = AdaptiveConcurrency(64)
    play(concurrency, 6000, lambda _, now_s: ((1.0 if now_s < 30 else 4.0) * random.lognormvariate(0, 0.3), OK))
    assert concurrency.allowed >= 50


def test_a_provider_that_counts_connections_is_found_out() -> None:
    concurrency = AdaptiveConcurrency(64)
    told = play(concurrency, 4000, lambda n, _: (1.0, OK) if n <= 10 else (0.01, LIMITED))
    assert sum(status == LIMITED for _, _, status in told[500:]) / 3500 < 0.06
    assert told[-1][0] < 4000 / 10 * 1.35


def test_429s_that_come_together_count_once() -> None:
    concurrency = AdaptiveConcurrency(64, start=64)
    for _ in range(64):
        enter(concurrency)
    for _ in range(64):
        concurrency.release(0.1, LIMITED)
    assert concurrency.allowed == 44


def test_it_never_falls_under_one_and_comes_back() -> None:
    concurrency = AdaptiveConcurrency(64)
    play(concurrency, 300, lambda _, __: (0.1, LIMITED))
    assert concurrency.allowed == 1
    play(concurrency, 3000, lambda _, __: (1.0, OK))
    assert concurrency.allowed == 64


def test_errors_that_come_back_at_once_do_not_make_answers_look_slow() -> None:
    concurrency = AdaptiveConcurrency(64)

    def reply(_: int, __: float) -> tuple[float, ReplyStatus]:
        return (0.01, ReplyStatus.SERVER_ERROR) if random.random() < 0.7 else (3.0, OK)

    play(concurrency, 2000, reply)
    assert concurrency.allowed == 64


def test_places_that_are_not_needed_are_not_added() -> None:
    concurrency = AdaptiveConcurrency(200)
    for _ in range(500):
        enter(concurrency)
        concurrency.release(1.0, OK)
    assert concurrency.allowed == START


async def _wait_in_line() -> None:
    concurrency, stopping = AdaptiveConcurrency(2), asyncio.Event()
    assert await concurrency.acquire(stopping)
    assert await concurrency.acquire(stopping)
    order: list[int] = []

    async def ask(number: int) -> bool:
        has_place = await concurrency.acquire(stopping)
        order.append(number)
        return has_place

    waiting = [asyncio.create_task(ask(number)) for number in range(5)]
    await asyncio.sleep(0)
    waiting[1].cancel()
    concurrency.release(None, ReplyStatus.NOT_ASKED)
    concurrency.release(1.0, OK)
    await asyncio.wait([waiting[0], waiting[2]], timeout=5)
    assert order == [0, 2]
    assert concurrency.n_in_flight == 2
    stopping.set()
    assert await asyncio.gather(*waiting[3:]) == [False, False]
    assert await concurrency.acquire(stopping) is False
    assert concurrency.n_in_flight == 2


def test_who_waits_is_let_in_by_turns_and_stopping_ends_it() -> None:
    asyncio.run(_wait_in_line())


def test_a_place_given_to_a_caller_that_is_cancelled_goes_to_the_next() -> None:
    async def main() -> None:
        concurrency, stopping = AdaptiveConcurrency(1), asyncio.Event()
        await concurrency.acquire(stopping)
        first, second = (asyncio.create_task(concurrency.acquire(stopping)) for _ in range(2))
        await asyncio.sleep(0)
        concurrency.release(1.0, OK)  # the first has the place, and does not know it yet
        first.cancel()
        assert await asyncio.wait_for(second, 5)
        assert concurrency.n_in_flight == 1

    asyncio.run(main())


async def _wait_in_a_ramp(*statuses: ReplyStatus, most: int = 200) -> int:
    """What is allowed some time after replies of 0.4 s each that end like this; no more of them come."""
    concurrency, stopping = AdaptiveConcurrency(most), asyncio.Event()
    waiting = [asyncio.create_task(concurrency.acquire(stopping)) for _ in range(300)]
    await asyncio.sleep(0)
    for ends_as in statuses:
        concurrency.release(0.4, ends_as)
    for _ in range(100):
        await asyncio.sleep(0.02)
        if concurrency.allowed == most:
            break
    stopping.set()
    await asyncio.gather(*waiting)
    return concurrency.allowed


def test_the_ramp_goes_on_with_time_while_replies_are_under_way_and_nothing_speaks_against_it() -> None:
    assert asyncio.run(_wait_in_a_ramp(*[OK] * 9)) == 200


def test_a_429_ends_the_ramp() -> None:
    assert asyncio.run(_wait_in_a_ramp(*[OK] * 8, LIMITED)) < 200


def test_the_ramp_goes_on_before_the_first_reply_says_how_long_one_takes() -> None:
    """At a judge that takes 20 s the first round would else be asked by 16 alone."""
    assert asyncio.run(_wait_in_a_ramp(most=2 * START)) == 2 * START


def test_it_begins_where_the_last_one_ended_and_goes_on_by_small_steps() -> None:
    concurrency = AdaptiveConcurrency(200, start=120)
    assert concurrency.allowed == 120
    told = play(concurrency, 240, lambda _, __: (1.0, OK))
    assert 120 < concurrency.allowed < 200, told[-1]
    assert AdaptiveConcurrency(200, start=1).allowed == START


@pytest.mark.parametrize(("n_replies", "learned"), [(20, None), (2000, 200)])
def test_what_a_ramp_reached_is_known_once_it_has_ended(n_replies: int, learned: int | None) -> None:
    concurrency = AdaptiveConcurrency(200)
    play(concurrency, n_replies, lambda _, __: (1.0, OK))
    assert concurrency.learned == learned


def test_callers_of_an_earlier_turn_go_first() -> None:
    async def main() -> None:
        concurrency, stopping, order = AdaptiveConcurrency(1), asyncio.Event(), list[int]()
        await concurrency.acquire(stopping)

        async def ask(turn: int) -> None:
            await concurrency.acquire(stopping, turn)
            order.append(turn)
            concurrency.release(1.0, OK)

        waiting = [asyncio.create_task(ask(turn)) for turn in (3, 1, 2, 1)]
        await asyncio.sleep(0)
        concurrency.release(1.0, OK)
        await asyncio.wait_for(asyncio.gather(*waiting), 10)
        assert order == [1, 1, 2, 3]

    asyncio.run(main())


@pytest.mark.parametrize(("maximum", "n_through"), [(6, 3), (1, 0)], ids=["of six", "one is the most"])
def test_requests_that_hang_do_not_hold_up_the_others(maximum: int, n_through: int) -> None:
    """429s left one place, and what took it never comes back: others go beside it, up to half of the maximum."""

    async def main() -> None:
        concurrency, stopping, loop = AdaptiveConcurrency(maximum), asyncio.Event(), asyncio.get_running_loop()
        for status in [OK] * 8 + [LIMITED] * 20:
            await concurrency.acquire(stopping)
            concurrency.release(0.05, status)
        assert concurrency.allowed == 1
        began_s = loop.time()
        waiting = [asyncio.create_task(concurrency.acquire(stopping)) for _ in range(5)]
        came_s = list[float]()
        for _ in range(n_through + 1):
            await asyncio.wait([one for one in waiting if not one.done()], timeout=10, return_when=asyncio.FIRST_COMPLETED)
            came_s.append(loop.time() - began_s)
        await asyncio.sleep(2.5)
        assert sum(one.done() for one in waiting) == 1 + n_through
        assert all(after_s - before_s >= 1.9 for before_s, after_s in pairwise(came_s))
        stopping.set()
        await asyncio.gather(*waiting)

    asyncio.run(main())


def test_beside_requests_that_hang_there_are_never_more_than_the_maximum() -> None:
    async def main() -> None:
        concurrency, stopping = AdaptiveConcurrency(4), asyncio.Event()
        for _ in range(8):
            await concurrency.acquire(stopping)
            concurrency.release(0.05, OK)
        for _ in range(4):
            assert await concurrency.acquire(stopping)
        waiting = asyncio.create_task(concurrency.acquire(stopping))
        await asyncio.sleep(2.5)
        assert (waiting.done(), concurrency.n_in_flight) == (False, 4)
        stopping.set()
        assert not await waiting

    asyncio.run(main())


def test_where_all_replies_are_slow_none_hangs() -> None:
    """Too many are in flight then: whoever asked beside the slow ones would make them slower."""

    async def main() -> None:
        concurrency, stopping = AdaptiveConcurrency(200), asyncio.Event()
        for status, latency_s in [(OK, 0.05)] * 8 + [(OK, 3.0)] * 16 + [(LIMITED, 0.05)] * 20:
            await concurrency.acquire(stopping)
            concurrency.release(latency_s, status)
        assert concurrency.allowed == 1
        waiting = [asyncio.create_task(concurrency.acquire(stopping)) for _ in range(3)]
        await asyncio.sleep(2.5)
        assert sum(one.done() for one in waiting) == 1
        stopping.set()
        await asyncio.gather(*waiting)

    asyncio.run(main())


def test_a_slow_judge_that_answers_one_at_a_time_is_not_asked_more() -> None:
    async def main() -> None:
        concurrency, stopping = AdaptiveConcurrency(200), asyncio.Event()
        for status in [OK] * 8 + [LIMITED] * 20:
            await concurrency.acquire(stopping)
            concurrency.release(1.0, status)
        waiting = [asyncio.create_task(concurrency.acquire(stopping)) for _ in range(4)]
        for n_done in range(1, 4):
            await asyncio.sleep(1)
            assert sum(one.done() for one in waiting) == n_done
            concurrency.release(1.0, OK)
        await asyncio.gather(*waiting)

    asyncio.run(main())
