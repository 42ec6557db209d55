"""Which of a run's first requests are watched, who waits to begin meanwhile, and for how long."""

import asyncio

import pytest

from schemas.statuses.rows import ParseReason as R
from tasks.judge.readings import N_UNREADABLE, FirstReplies


async def _begun(first: FirstReplies, key: str, stopping: asyncio.Event | None = None) -> "asyncio.Task[bool]":
    """A request that begins, or waits for its turn."""
    begun = asyncio.create_task(first.begin(key, stopping or asyncio.Event()))
    await asyncio.sleep(0)
    return begun


def test_only_the_first_are_counted_by_their_last_reply_and_the_next_waits_for_one_that_says_nothing() -> None:
    async def ask() -> None:
        first = FirstReplies(3)
        for key in "abc":
            assert await first.begin(key, asyncio.Event())
        waiting = await _begun(first, "d")
        first.end("a", R.EMPTY)
        first.end("a", R.EMPTY)
        await asyncio.sleep(0.02)
        assert not waiting.done(), "one of three is known, and two are under way"
        first.end("b", R.REFUSAL)
        assert await waiting
        first.end("c", R.TRUNCATED)
        assert dict(first.unreadable) == {"empty": 1, "truncated": 1}, "a refusal is no matter of the form"
        first.end("d", R.TRUNCATED)
        assert first.is_open
        assert not await first.begin("e", asyncio.Event())

    asyncio.run(ask())


def test_who_waits_goes_on_with_a_reply_that_can_be_read_and_ends_with_its_shard() -> None:
    async def ask() -> None:
        first, stopping = FirstReplies(1), asyncio.Event()
        assert await first.begin("a", stopping)
        waiting, stopped = [await _begun(first, key) for key in "bcd"], await _begun(first, "e", stopping)
        stopping.set()
        assert not await stopped
        assert not any(one.done() for one in waiting)
        first.found_readable()
        assert await asyncio.gather(*waiting) == [True] * 3
        first.end("a", R.EMPTY)
        assert not first.is_open

    asyncio.run(ask())


@pytest.mark.parametrize("reason", R)
def test_which_reasons_are_of_the_form(reason: R) -> None:
    async def ask() -> bool:
        first = FirstReplies()
        for number in range(N_UNREADABLE):
            await first.begin(str(number), asyncio.Event())
            first.end(str(number), reason)
        return first.is_open

    others = {R.REFUSAL, R.MISSING_INPUT, R.RULE_VIOLATION, R.NOT_APPLICABLE, R.NOT_ASKED_FOR}
    assert asyncio.run(ask()) == (reason not in others)
