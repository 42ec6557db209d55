"""Claims: a request is bought once however many run; what a dead owner held is taken over at once."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from sqlalchemy import NullPool, create_engine, event, insert, select, update

from rubrics.model import Rubric
from schemas.benchmark.file import Limits
from schemas.benchmark.judges import Judge
from schemas.records import JudgeReply
from schemas.statuses.rows import LOST_ON_THE_WAY, ReplyOrigin, ReplyStatus
from tasks.judge.outcome import Outcome
from tasks.judge.work_queue import BLOCKS_A_LOOK, QUEUED_COLUMNS, WorkQueue
from tasks.lake.reading import Lake
from tasks.ledger import claims as claims_module
from tasks.ledger import process_identity
from tasks.ledger.claims import Claims
from tasks.ledger.ledger import Ledger
from tasks.ledger.process_identity import HERE, Process, this_process
from tasks.ledger.tables import CLAIMS, OWNERS
from tests.support.asking import ask_shard
from tests.support.contexts import plan_part

KEYS = [f"{index:064x}" for index in range(6)]
REPLY = JudgeReply("", 0, ReplyStatus.ANSWERED, "m", ReplyOrigin.ASKED, text="Score: 1")

SILENT = {"expires_at_us": 1, "host": "elsewhere"}
"""An owner on another machine that was silent for too long."""


@pytest.fixture
def ledger(each_ledger: Ledger) -> Ledger:
    """All that is told of claims holds in each kind of database."""
    return each_ledger


def _take(ledger: Ledger, claims: Claims, keys: list[str]) -> Any:
    del ledger  # the claims' own
    return asyncio.run(claims.take(keys))


def _n_rows(ledger: Ledger) -> tuple[int, int]:
    tables = ledger.alone_now(lambda connection: [len(connection.execute(select(t)).all()) for t in (CLAIMS, OWNERS)])
    return tables[0], tables[1]


def test_what_one_has_claimed_another_does_not_get(ledger: Ledger) -> None:
    one, two = Claims(ledger), Claims(ledger)
    assert _take(ledger, one, KEYS[:4]).ours == set(KEYS[:4])
    found = _take(ledger, two, KEYS)
    assert (found.ours, found.elsewhere, found.done) == (set(KEYS[4:]), set(KEYS[:4]), frozenset())
    assert _take(ledger, one, KEYS[:4]).ours == set(KEYS[:4])  # one's own claim is no obstacle


def test_only_attempts_that_may_have_been_sent_count_and_a_reask_that_waits_is_owed(ledger: Ledger) -> None:
    async def ask(request_key: str, ask_index: int, *ends: tuple[ReplyStatus, str]) -> None:
        for status, detail in ends:
            await ledger.fail(await ledger.begin(request_key, ask_index, "m"), status, detail)

    async def ask_all() -> None:
        await ask(KEYS[0], 0, (ReplyStatus.NOT_ASKED, "stopped"), (ReplyStatus.UNREACHABLE, "no connection"))
        await ask(KEYS[1], 0, (ReplyStatus.UNREACHABLE, f"{LOST_ON_THE_WAY}; it may"), (ReplyStatus.SERVER_ERROR, "HTTP 500"))
        await ledger.begin(KEYS[1], 0, "m")  # of a process that was killed
        await ask(KEYS[2], 1, (ReplyStatus.NOT_ASKED, "waits for the next batch"))

    ledger.store([JudgeReply(KEYS[2], 0, ReplyStatus.ANSWERED, "m", ReplyOrigin.BATCH)])
    asyncio.run(ask_all())
    claims = Claims(ledger)
    found = _take(ledger, claims, KEYS[:3])
    assert (found.n_attempts, found.due) == ({(KEYS[0], 0): 0, (KEYS[1], 0): 3, (KEYS[2], 1): 0}, {KEYS[2]})
    assert asyncio.run(claims.tried_for_s(KEYS[:3])).keys() == {KEYS[1]}


def test_a_reply_ends_the_waiting_and_a_released_claim_is_free(ledger: Ledger) -> None:
    one, two = Claims(ledger), Claims(ledger)
    _take(ledger, one, KEYS[:2])
    _take(ledger, two, KEYS[2:3])
    ledger.store([JudgeReply(KEYS[0], 0, ReplyStatus.ANSWERED, "m", ReplyOrigin.ASKED)])
    found = _take(ledger, two, KEYS[:2])
    assert (found.done, found.elsewhere) == ({KEYS[0]}, {KEYS[1]})

    asyncio.run(one.release())
    assert _take(ledger, two, KEYS[:2]).ours == {KEYS[1]}
    assert _n_rows(ledger) == (3, 1)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(SILENT, id="silent for too long, on another machine"),
        pytest.param({"pid": 2**22 - 1, "process_started": "1"}, id="its process is gone"),
        pytest.param({"process_started": "1"}, id="its number belongs to another process now"),
    ],
)
def test_a_dead_owner_holds_nothing(ledger: Ledger, change: dict[str, Any]) -> None:
    one, two = Claims(ledger), Claims(ledger)
    _take(ledger, one, KEYS)
    ledger.alone_now(lambda connection: connection.execute(update(OWNERS).values(change)))
    assert _take(ledger, two, KEYS[:3]).ours == set(KEYS[:3])
    assert _n_rows(ledger) == (3, 1)  # the dead one's claims are swept with it


def test_an_owner_that_lives_here_is_let_renew_a_row_that_looks_expired(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock was set by years, or the process was paused; only one that says nothing for long has let go."""
    one, two = Claims(ledger), Claims(ledger)
    _take(ledger, one, KEYS)
    ledger.alone_now(lambda connection: connection.execute(update(OWNERS).values(expires_at_us=1)) and None)
    assert _take(ledger, two, KEYS).elsewhere == set(KEYS)
    assert _take(ledger, one, KEYS).ours == set(KEYS)  # it goes on, and its row is as it should be
    ledger.alone_now(lambda connection: connection.execute(update(OWNERS).values(expires_at_us=2)) and None)
    assert _take(ledger, two, KEYS).elsewhere == set(KEYS)
    monkeypatch.setattr(process_identity, "EXPIRES_AFTER_S", 0.0)
    assert _take(ledger, two, KEYS).ours == set(KEYS)


def test_an_owner_that_is_paused_keeps_its_claims(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = Claims(ledger), Claims(ledger)
    _take(ledger, one, KEYS)
    monkeypatch.setattr(process_identity, "EXPIRES_AFTER_S", 0.0)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        started = process_identity._started(child.pid)
        child.send_signal(signal.SIGSTOP)
        paused = {"pid": child.pid, "process_started": started, "expires_at_us": 1}
        ledger.alone_now(lambda connection: connection.execute(update(OWNERS).values(paused)) and None)
        for _ in range(3):
            assert _take(ledger, two, KEYS).elsewhere == set(KEYS)
        child.kill()
    assert _take(ledger, two, KEYS).ours == set(KEYS)


def test_an_owner_of_another_machine_is_judged_by_time_alone(ledger: Ledger) -> None:
    one, two = Claims(ledger), Claims(ledger)
    _take(ledger, one, KEYS)
    ledger.alone_now(lambda connection: connection.execute(update(OWNERS).values(host="elsewhere", pid=2**22 - 1)))
    assert _take(ledger, two, KEYS).elsewhere == set(KEYS)


def test_a_reask_that_is_owed_is_ours_again_and_only_the_reask(ledger: Ledger) -> None:
    one = Claims(ledger)
    _take(ledger, one, KEYS[:1])

    async def unreadable() -> None:
        attempt_id = await ledger.begin(KEYS[0], 0, "m")
        reply = JudgeReply(KEYS[0], 0, ReplyStatus.ANSWERED, "m", ReplyOrigin.ASKED, text="?")
        await ledger.finish(attempt_id, reply, is_reasked=True)

    asyncio.run(unreadable())
    found = _take(ledger, one, KEYS[:1])
    assert (found.ours, found.due, found.n_attempts) == ({KEYS[0]}, {KEYS[0]}, {(KEYS[0], 0): 1, (KEYS[0], 1): 1})


def _feed(ledger: Ledger, keys: list[str]) -> WorkQueue:
    rows = {name: keys if name == "request_key" else [None if name == "variant" else "{}"] * len(keys)
            for name in QUEUED_COLUMNS}  # fmt: skip
    return WorkQueue(pl.DataFrame(rows), Claims(ledger), asyncio.Event())


def test_however_much_others_are_asking_a_look_at_it_is_no_statement_of_thousands_of_parameters(ledger: Ledger) -> None:
    keys = [f"{index:064x}" for index in range(120)]

    async def run() -> tuple[list[str], int]:
        feed, other, n_given = _feed(ledger, keys), Claims(ledger), list[int]()
        feed.block, feed.poll_s = 2, 0.01
        assert (await other.take(keys)).ours == set(keys)
        event.listen(ledger._engine, "before_cursor_execute", lambda *said: n_given.append(len(said[3] or ())))
        asking = asyncio.create_task(feed.next())
        await asyncio.sleep(0.5)  # some looks
        await other.release()
        handed = [await asking, *[await feed.next() for _ in keys[1:]]]
        return [ask.request_key for ask in handed if ask is not None], max(n_given)

    handed, most_given = asyncio.run(run())
    assert sorted(handed) == keys
    assert most_given < 8 * 2 * BLOCKS_A_LOOK < len(keys)  # in all other keys at once, each some three times


def test_what_was_claimed_and_lost_is_not_handed_out(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """An owner that was silent for too long may have been swept: its renewing notices, what it had ready belongs to another."""
    monkeypatch.setattr(claims_module, "RENEW_EVERY_S", 0.02)

    async def run() -> list[str]:
        feed, other = _feed(ledger, KEYS), Claims(ledger)
        handed = [await feed.next()]
        await ledger.alone(lambda connection: connection.execute(update(OWNERS).values(SILENT)) and None)
        assert (await other.take(KEYS[:3])).ours == set(KEYS[:3])
        renewing = asyncio.create_task(feed.claims.renew())
        async with asyncio.timeout(20):
            while not feed.claims.is_lost:
                await asyncio.sleep(0.01)
        renewing.cancel()
        handed += [await feed.next() for _ in KEYS[3:]]
        return [ask.request_key for ask in handed if ask is not None]

    assert asyncio.run(run()) == [KEYS[0], *KEYS[3:]]


def test_an_owner_that_was_swept_notices_when_it_claims_more(ledger: Ledger) -> None:
    one, two = Claims(ledger), Claims(ledger)
    _take(ledger, one, KEYS[:2])
    ledger.alone_now(lambda connection: connection.execute(update(OWNERS).values(SILENT)) and None)
    _take(ledger, two, KEYS[:2])
    assert not one.is_lost
    assert _take(ledger, one, KEYS).ours == set(KEYS[2:])
    assert one.is_lost
    assert _n_rows(ledger) == (6, 2)  # and it is an owner again, or others would take those claims for a dead one's


def test_rows_that_are_over_are_swept_after_a_day(ledger: Ledger) -> None:
    """After a pause, or where a clock was set, a living process's mutex looks over."""
    now_us, hour_us = time.time_ns() // 1000, 3600 * 1_000_000
    row = {"host": "elsewhere", "pid": 1, "process_started": "1"}
    rows = [row | {"owner_id": f"{hours} h", "expires_at_us": now_us - hours * hour_us} for hours in (1, 23, 25)]
    ledger.alone_now(lambda connection: connection.execute(insert(OWNERS), rows) and None)
    _take(ledger, Claims(ledger), KEYS)
    left = ledger.read(lambda connection: set(connection.execute(select(OWNERS.c.owner_id)).scalars()))
    assert left.intersection(row["owner_id"] for row in rows) == {"1 h", "23 h"}


def test_what_was_given_back_another_gets_and_nothing_else(ledger: Ledger) -> None:
    one, two = Claims(ledger), Claims(ledger)
    _take(ledger, one, KEYS[:3])
    asyncio.run(two.give_back(KEYS[0]))  # not its own: nothing happens
    assert _take(ledger, two, KEYS[:3]).ours == set()
    asyncio.run(one.give_back(KEYS[1]))
    assert _take(ledger, two, KEYS[:3]).ours == {KEYS[1]}


def test_a_ledger_that_fails_once_does_not_end_the_renewing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims_module, "RENEW_EVERY_S", 0.02)

    async def run() -> int:
        with Ledger(f"sqlite:///{tmp_path}/ledger.db", busy_timeout_ms=50) as ledger:
            claims = Claims(ledger)
            await claims.take(KEYS)
            renewing = asyncio.create_task(claims.renew())
            with create_engine(f"sqlite:///{tmp_path}/ledger.db", poolclass=NullPool).connect() as holder:
                holder.exec_driver_sql("BEGIN IMMEDIATE")
                await asyncio.sleep(0.3)
                holder.exec_driver_sql("UPDATE owners SET expires_at_us = 1")
                holder.commit()
            await asyncio.sleep(0.3)
            assert not renewing.done()
            renewing.cancel()
            return await ledger.alone(lambda connection: int(connection.execute(select(OWNERS.c.expires_at_us)).scalar_one()))

    assert asyncio.run(run()) > 1


def test_the_running_process_is_alive_and_a_past_one_is_not() -> None:
    here = this_process()
    assert not HERE.is_dead(here)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    started = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19]
    assert not HERE.is_dead(Process(here.host, child.pid, started))
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert HERE.is_dead(Process(here.host, child.pid, started)), "killed and not yet waited for"
    child.wait()
    assert HERE.is_dead(Process(here.host, child.pid, started))
    assert HERE.is_dead(Process(here.host, here.pid, "1")), "its number belongs to another process by now"
    assert not HERE.is_dead(Process("another machine", child.pid, started))
    assert here.pid == os.getpid()


@pytest.fixture
def shard(
    provider: Any, judge: Judge, rubric: Rubric, make_samples: Callable[..., pl.DataFrame],
    store_samples: Callable[..., tuple[Lake, str]], tmp_path: Path,
) -> Callable[..., Outcome]:  # fmt: skip
    samples = make_samples(150)
    lake, _ = store_samples(samples)
    requests = plan_part(samples, rubric, judge)[1]
    limits = Limits(concurrency=8, deadline_s=5)
    return lambda **more: ask_shard(lake, requests, rubric, judge, f"sqlite:///{tmp_path}/shared.db", limits, **more)


def test_shards_run_at_once_buy_each_request_once_and_all_have_it(provider: Any, shard: Callable[..., Outcome]) -> None:
    provider.then = provider.play(body=provider.complete('{"score": 1}'), delay_s=0.02)
    outcomes: list[Outcome] = []
    threads = [threading.Thread(target=lambda: outcomes.append(shard())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    times_bought = Counter(Counter(provider.seen).values())
    assert times_bought == {1: 150}
    assert sum(outcome.n_asked for outcome in outcomes) == 150
    assert [outcome.n_cached + outcome.n_answered for outcome in outcomes] == [150] * 4
    assert sum(outcome.n_asked > 0 for outcome in outcomes) > 1  # they shared the work


def test_what_an_owner_could_not_get_another_tries_itself(provider: Any, shard: Callable[..., Outcome]) -> None:
    """The first shard is stopped while it holds claims; the second does not wait for ever."""
    provider.then = provider.play(body=provider.complete('{"score": 1}'), delay_s=0.2)
    stop = threading.Event()
    first = threading.Thread(target=lambda: shard(stop=stop))
    first.start()
    while provider.n == 0:
        time.sleep(0.01)
    provider.then = provider.play(body=provider.complete('{"score": 1}'))
    threading.Timer(0.5, stop.set).start()
    outcome = shard()
    first.join()
    assert outcome.n_cached + outcome.n_answered == 150
    assert set(Counter(provider.seen).values()) == {1}
