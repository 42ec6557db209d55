"""The budget of a run: whatever the order, the threads, the processes and the kills, what is charged never passes it."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextvars import Context
from functools import partial
from pathlib import Path
from typing import TypeVarTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.benchmark.judges import Judge, Price
from schemas.statuses.rows import ReplyStatus
from tasks.judge.budget.budget import Attempts, Budget, Failures, leased_usd, used_up, why_not_kept
from tasks.judge.provider.exchange import Answer
from tasks.ledger.ledger import Ledger
from tasks.ledger.shared_counter import BLOCKS, ProcessShare, lease

_Given = TypeVarTuple("_Given")


@pytest.fixture
def ledger(each_ledger: Ledger) -> Ledger:
    """All that is told of money holds in each kind of database."""
    return each_ledger


@pytest.fixture
def run_id(request: pytest.FixtureRequest) -> str:
    """A run of the test's own: runs have ids that no other run has."""
    return str(request.node.name)[-64:]


usd = st.floats(0.0001, 0.3)
attempts = st.lists(st.tuples(usd, st.floats(0, 1)), max_size=25)  # what is reserved, and the share of it that is charged


async def _work(budget: Budget, listed: Sequence[tuple[float, float]], n_at_once: int = 4) -> tuple[float, int]:
    """Workers that ask until the budget ends; (what was charged, how many attempts were refused)."""
    waiting, charged, n_refused = iter(listed), 0.0, 0

    async def worker() -> None:
        nonlocal charged, n_refused
        for worst, share in waiting:
            if not await budget.reserve(worst):
                n_refused += 1
                return
            await asyncio.sleep(0)
            charged += worst * share
            budget.charge(worst, worst * share)

    await asyncio.gather(*(worker() for _ in range(n_at_once)))
    await budget.close()
    return charged, n_refused


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(attempts, st.floats(0, 2), st.integers(1, 8))
def test_what_is_charged_never_passes_the_budget(
    tmp_path_factory: pytest.TempPathFactory, listed: list[tuple[float, float]], max_usd: float, n_at_once: int
) -> None:
    with Ledger(f"sqlite:///{tmp_path_factory.mktemp('budget')}/ledger.db") as ledger:
        charged, n_refused = asyncio.run(_work(Budget(ledger, "run", max_usd), listed, n_at_once))
        assert charged <= max_usd + 1e-12
        assert leased_usd(ledger, "run") == pytest.approx(charged, abs=1e-6)  # all that was not spent was given back
        if sum(worst for worst, _ in listed) <= max_usd - 1e-6:
            assert n_refused == 0


@pytest.mark.parametrize("is_one_process", [True, False], ids=["threads of one process", "as two processes"])
def test_two_ledgers_on_one_file_share_a_budget(tmp_path: Path, is_one_process: bool, run_id: str) -> None:
    results: list[tuple[float, int]] = []
    pool = ProcessShare()

    def run() -> None:
        with Ledger(f"sqlite:///{tmp_path}/ledger.db") as ledger:
            budget = Budget(ledger, run_id, 1.0, pool if is_one_process else ProcessShare())
            results.append(asyncio.run(_work(budget, [(0.004, 0.7)] * 600, 20)))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    charged = sum(one for one, _ in results)
    assert len(results) == 2
    assert charged <= 1.0
    assert charged >= 0.95  # and little of it is left: 1,200 attempts would have cost 3.36
    assert all(n_refused for _, n_refused in results)


def test_hundreds_who_wait_for_an_attempt_get_theirs_by_a_few_commits(ledger: Ledger, run_id: str) -> None:
    """Leased a block at a time while the others look again and again, a thousand in flight kept a core busy and got nowhere."""

    async def run() -> int:
        attempts = Attempts(ledger, run_id, 20_000)
        n_before, stopping = ledger._open().n_commits, asyncio.Event()
        assert all(await asyncio.gather(*(attempts.take(stopping) for _ in range(2_000))))
        n_commits = ledger._open().n_commits - n_before
        await attempts.close()
        return n_commits

    assert asyncio.run(run()) <= 3  # 32 by blocks


class _Called(asyncio.SelectorEventLoop):
    """A loop that counts how often it is called from outside."""

    n_called = 0

    def call_soon_threadsafe(
        self, callback: Callable[[*_Given], object], *args: *_Given, context: Context | None = None
    ) -> asyncio.Handle:
        self.n_called += 1
        return super().call_soon_threadsafe(callback, *args, context=context)


def test_hundreds_who_wait_for_one_lease_are_woken_together_but_for_those_who_left(ledger: Ledger, run_id: str) -> None:
    async def run() -> int:
        attempts, stopping, loop = Attempts(ledger, run_id, 20_000), asyncio.Event(), asyncio.get_running_loop()
        assert isinstance(loop, _Called)
        waiting = [asyncio.create_task(attempts.take(stopping)) for _ in range(500)]
        await asyncio.sleep(0)
        for left in waiting[100:200]:
            left.cancel()
        given = await asyncio.gather(*waiting, return_exceptions=True)
        assert given[:100] + given[200:] == [True] * 400
        assert all(isinstance(one, asyncio.CancelledError) for one in given[100:200])
        n_called = loop.n_called
        await attempts.close()
        return n_called

    with asyncio.Runner(loop_factory=_Called) as runner:
        assert runner.run(run()) < 10  # one for each of 500 before


def test_the_last_money_is_waited_for_while_attempts_under_way_may_give_some_back(ledger: Ledger, run_id: str) -> None:
    async def run() -> list[bool]:
        budget = Budget(ledger, run_id, 1.0)
        assert await budget.reserve(0.9)
        waiting = asyncio.create_task(budget.reserve(0.5))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        budget.charge(0.9, 0.2)  # 0.8 are left
        first = await waiting
        second = asyncio.create_task(budget.reserve(0.5))
        await asyncio.sleep(0.1)
        budget.charge(0.5, 0.5)  # 0.3 are left
        return [first, await second, await budget.reserve(0.3), await budget.reserve(0)]

    assert asyncio.run(run()) == [True, False, True, True]


def test_what_a_killed_worker_held_counts_as_spent_and_no_more_than_a_block(ledger: Ledger, run_id: str) -> None:
    async def run() -> None:
        killed = Budget(ledger, run_id, 1.0, ProcessShare())
        assert await killed.reserve(0.001)
        held = leased_usd(ledger, run_id)
        assert held == pytest.approx(1 / BLOCKS)
        charged, _ = await _work(Budget(ledger, run_id, 1.0, ProcessShare()), [(0.01, 1.0)] * 200)
        assert charged == pytest.approx(1.0 - held)

    asyncio.run(run())


def test_an_attempt_that_cost_more_than_was_reserved_is_taken_from_the_rest(ledger: Ledger, run_id: str) -> None:
    async def run() -> None:
        budget = Budget(ledger, run_id, 1.0)
        assert await budget.reserve(0.1)
        budget.charge(0.1, 0.6)
        assert not await budget.reserve(0.5)
        assert await budget.reserve(0.4)
        budget.charge(0.4, 0.4)
        await budget.close()

    asyncio.run(run())
    assert leased_usd(ledger, run_id) == pytest.approx(1.0)


def test_neither_a_price_nor_the_budget_is_rounded_in_the_runs_favour(ledger: Ledger, run_id: str) -> None:
    async def run() -> list[bool]:
        budget, found = Budget(ledger, run_id, 1.5e-9), []
        for _ in range(2):
            found.append(await budget.reserve(0.9e-9))
            budget.charge(0.9e-9, 0.9e-9)
        return found

    assert asyncio.run(run()) == [True, False]


def test_less_than_what_is_asked_for_at_least_is_not_leased(ledger: Ledger, run_id: str) -> None:
    ask = partial(lease, counter_id=run_id, most=10, block=8)
    assert [ledger.alone_now(partial(ask, least=least)) for least in (8, 3, 2, 1)] == [8, 0, 2, 0]


def test_each_run_has_a_budget_of_its_own(ledger: Ledger) -> None:
    async def run(run_id: str) -> tuple[float, int]:
        return await _work(Budget(ledger, run_id, 0.5), [(0.1, 1.0)] * 10)

    for run_id in ("monday", "tuesday"):
        charged, n_refused = asyncio.run(run(run_id))
        assert charged == pytest.approx(0.5)
        assert n_refused
    assert leased_usd(ledger, "wednesday") == 0


USED_UP = {
    "none failed": ([], "None of them failed in this shard: run the same"),
    "one failed": ([Answer(ReplyStatus.SERVER_ERROR)], "Find out why the provider fails, then run the same"),
}


@pytest.mark.parametrize(("failed", "advice"), USED_UP.values(), ids=USED_UP)
def test_attempts_used_up_are_called_the_providers_failure_only_where_some_failed(failed: list[Answer], advice: str) -> None:
    failures = Failures()
    for answer in failed:
        failures.count(answer)
    assert advice in str(used_up(Judge(model="m"), "http://h/v1", 50, failures))


def test_a_cancelled_wait_leaves_the_budget_usable(ledger: Ledger, run_id: str) -> None:
    async def run() -> bool:
        budget = Budget(ledger, run_id, 1.0)
        for _ in range(3):
            waiting = asyncio.create_task(budget.reserve(0.2))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        return await budget.reserve(0.2)

    assert asyncio.run(run())


def test_nobody_waits_for_what_a_worker_that_closed_had_reserved(ledger: Ledger, run_id: str) -> None:
    async def run() -> bool:
        gave_up, other = Budget(ledger, run_id, 1.0), Budget(ledger, run_id, 1.0)
        assert await gave_up.reserve(0.9)
        waiting = asyncio.create_task(other.reserve(0.5))
        await asyncio.sleep(0.1)
        await gave_up.close()  # its attempt may have been billed: it stays spent
        is_granted = await waiting
        await other.close()
        return is_granted

    assert not asyncio.run(run())
    assert leased_usd(ledger, run_id) == pytest.approx(0.9)


FREE = Price(input_usd_per_million=0, output_usd_per_million=0)


@pytest.mark.parametrize(
    ("judge", "words"),
    [
        pytest.param(Judge(model="gpt-4.1"), None, id="known, and so is the longest reply"),
        pytest.param(Judge(model="salon-demo-judge"), None, id="the demo's"),
        pytest.param(Judge(model="qwen-vl", recorded=True), None, id="nobody is asked"),
        pytest.param(Judge(model="qwen-vl", price=FREE, parameters={"max_tokens": 9}), None, id="given"),
        pytest.param(Judge(model="qwen-vl"), ["qwen-vl", "[judges.price]", "input_usd_per_million"], id="no price"),
        pytest.param(Judge(model="qwen-vl", price=FREE), ["qwen-vl", "max_tokens"], id="no bound of a reply"),
        pytest.param(Judge(model="gpt-4.1", parameters={"service_tier": "fast"}), ["fast", "[judges.price]"], id="dearer tier"),
    ],
)
def test_a_limit_that_cannot_be_kept_stops_before_anything_is_sent(judge: Judge, words: list[str] | None) -> None:
    assert why_not_kept([judge], None) is None
    said = why_not_kept([Judge(model="gpt-4o"), judge], 5.0)
    assert (said is None) == (words is None)
    assert said is None or said.startswith("limits.max_usd = 5 cannot be kept: ")
    assert all(word in str(said) for word in words or [])
