"""What processes share, on PostgreSQL: claims, owners, limits, money, batches; and a server that goes away in mid-run."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from sqlalchemy import create_engine, event, insert, select, text, update
from sqlalchemy.engine import Connection
from sqlalchemy.exc import OperationalError

from rubrics.model import Rubric
from schemas.benchmark.file import Limits
from schemas.benchmark.judges import Judge
from schemas.errors import ProviderError, StoreError
from schemas.records import JudgeReply
from schemas.statuses.rows import ReplyOrigin, ReplyStatus
from tasks.judge.batch.state import Batch, BatchState, ClaimsLostError, declare, hold, open_batches
from tasks.judge.budget.budget import Budget, leased_usd
from tasks.judge.budget.observed_usage import Observed, load_observed, store_observed
from tasks.judge.model_pin import ModelPin
from tasks.judge.outcome import Outcome
from tasks.judge.rate_limit.limiter import RateLimiter
from tasks.lake.reading import Lake
from tasks.ledger.claims import Claims
from tasks.ledger.ledger import Ledger
from tasks.ledger.pipelining import ONE_WRITER
from tasks.ledger.process_identity import EXPIRES_AFTER_S
from tasks.ledger.shared_counter import ProcessShare
from tasks.ledger.statements import insert_where_absent
from tasks.ledger.tables import CLAIMS, LEDGER_META, OWNERS
from tasks.ledger.transactions import Transactions
from tests.support.asking import ask_shard
from tests.support.contexts import plan_part
from tests.support.servers.postgres import PostgresServer, at_once

pytestmark = pytest.mark.slow

KEYS = [f"{index:064x}" for index in range(40)]
N = 150


@pytest.fixture
def shard(
    judge: Judge, rubric: Rubric, make_samples: Callable[..., pl.DataFrame],
    store_samples: Callable[..., tuple[Lake, str]], address: str,
) -> Callable[..., Outcome]:  # fmt: skip
    samples = make_samples(N)
    lake, _ = store_samples(samples)
    requests = plan_part(samples, rubric, judge)[1]
    limits = Limits(concurrency=8, deadline_s=5)

    def run(limits: Limits = limits, **more: Any) -> Outcome:
        return ask_shard(lake, requests, rubric, judge, address, limits, **more)

    return run


def test_four_shards_at_once_buy_each_request_once(provider: Any, shard: Callable[..., Outcome]) -> None:
    provider.then = provider.play(body=provider.complete('{"score": 1}'), delay_s=0.01)
    outcomes = at_once(*[shard] * 4)
    assert Counter(Counter(provider.seen).values()) == {1: N}
    assert sum(outcome.n_asked for outcome in outcomes) == N
    assert [outcome.n_cached + outcome.n_answered for outcome in outcomes] == [N] * 4


def test_attempts_of_a_run_are_counted_over_its_shards(provider: Any, shard: Callable[..., Outcome]) -> None:
    provider.then = provider.play(body=provider.complete("no number"))  # each is asked twice
    limits = Limits(concurrency=8, deadline_s=5, attempts_per_run=60, requests_per_minute=60_000)

    def work() -> int:
        with pytest.raises(ProviderError, match="the 60 attempts of this run are used up"):
            shard(limits=limits, run_id="a run")
        return 1

    assert at_once(work, work) == [1, 1]
    assert 60 - 2 * limits.concurrency < provider.n <= 60  # what the first to hear it had still to send, it sends no more


_HOLDER = """
import asyncio, sys, time
from tasks.ledger.claims import Claims
from tasks.ledger.ledger import Ledger
with Ledger(sys.argv[1]) as ledger:
    taken = asyncio.run(Claims(ledger).take(sys.argv[2:]))
    print(len(taken.ours), flush=True)
    time.sleep(60)
"""


def test_what_a_killed_process_had_claimed_is_taken_over_at_once(each_address: str) -> None:
    address, root = each_address, Path(__file__).parents[2]
    holder = subprocess.Popen([sys.executable, "-c", _HOLDER, address, *KEYS[:5]], cwd=root, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"5\n"
    with Ledger(address) as ledger:
        claims = Claims(ledger)
        assert asyncio.run(claims.take(KEYS[:6])).elsewhere == set(KEYS[:5])
        holder.kill()
        holder.wait()
        holder.stdout.close()
        assert asyncio.run(claims.take(KEYS[:6])).ours == set(KEYS[:6])


_CLOCK = """
import os, time
true_ns = time.time_ns
time.time_ns = lambda: true_ns() + int(os.environ["HOURS_OFF"]) * 3_600_000_000_000
"""


@pytest.mark.parametrize("n_hours", [-5, 5])
def test_clocks_of_machines_that_differ_change_nothing(address: str, n_hours: int) -> None:
    """A claim of a machine whose clock is wrong lasts as long as any other: its expiry is of the server's clock."""
    holder = subprocess.Popen(
        [sys.executable, "-c", _CLOCK + _HOLDER, address, *KEYS[:5]],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        env=os.environ | {"HOURS_OFF": str(n_hours)},
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"5\n"
    with Ledger(address) as ledger:
        ledger.alone_now(lambda connection: connection.execute(update(OWNERS).values(host="elsewhere")) and None)
        assert asyncio.run(Claims(ledger).take(KEYS[:5])).elsewhere == set(KEYS[:5])
        left = text(
            "select (expires_at_us - extract(epoch from clock_timestamp()) * 1e6) / 1e6 from owners where host = 'elsewhere'"
        )
        assert 0 < ledger.read(lambda connection: float(connection.execute(left).scalar_one())) <= EXPIRES_AFTER_S
        ledger.alone_now(
            lambda connection: (
                connection.execute(update(OWNERS).values(expires_at_us=OWNERS.c.expires_at_us - 61_000_000)) and None
            )
        )
        assert asyncio.run(Claims(ledger).take(KEYS[:5])).ours == set(KEYS[:5])
    holder.kill()
    holder.wait()
    holder.stdout.close()


def test_claims_of_many_overlapping_blocks_have_one_owner_each(address: str) -> None:
    def work(start: int) -> list[str]:
        mine: list[str] = []
        with Ledger(address) as ledger:
            claims = Claims(ledger)
            for turn in range(8):
                first = (start + 5 * turn) % len(KEYS)
                mine += asyncio.run(claims.take((KEYS + KEYS)[first : first + 20])).ours
            return list(set(mine))

    found = at_once(*(partial(work, 10 * index) for index in range(4)))
    assert sorted(key for mine in found for key in mine) == KEYS


def test_eight_threads_over_two_ledgers_never_overspend(address: str) -> None:
    charged: list[float] = []

    async def spend(ledger: Ledger, pool: ProcessShare) -> None:
        budget = Budget(ledger, "run", 1.0, pool)
        while await budget.reserve(0.02):
            await asyncio.sleep(0)
            charged.append(0.015)
            budget.charge(0.02, 0.015)
        await budget.close()

    with Ledger(address) as one, Ledger(address) as other:
        pools = {one: ProcessShare(), other: ProcessShare()}
        at_once(*(lambda ledger=ledger: asyncio.run(spend(ledger, pools[ledger])) for ledger in [one, other] * 4))
        assert 0.9 <= sum(charged) <= 1.0
        assert leased_usd(one, "run") == pytest.approx(sum(charged))


def test_two_allowances_share_one_limit(address: str) -> None:
    sent: list[float] = []

    async def send() -> int:
        with Ledger(address) as ledger:
            allowance, n, stopping = RateLimiter(ledger, "key", 1200), 0, asyncio.Event()
            while len(sent) < 40:
                await allowance.wait(10, stopping)
                sent.append(time.monotonic())
                n += 1
            return n

    counts = at_once(*[lambda: asyncio.run(send())] * 2)
    assert min(counts) > 4  # both got some
    assert sent[39] - sent[0] >= 39 / 20 - 0.3  # 20 a second for both together; each alone would halve the time


def test_observed_tokens_and_the_answering_model_are_one_for_all(address: str) -> None:
    judge = Judge(model="judge")

    def work(index: int) -> bool:
        with Ledger(address) as ledger:
            for _ in range(5):
                asyncio.run(store_observed(ledger, ("r", "1", "judge"), Observed(1, 10, 11, 0, 5, 0.5)))
            return asyncio.run(ModelPin(ledger, "plan", judge).check(f"model-{index}")) is None

    assert sum(at_once(*(partial(work, index) for index in range(4)))) == 1
    with Ledger(address) as ledger:
        assert load_observed(ledger)["r", "1", "judge"].n_input_reported == 220


def test_a_batch_is_declared_once_and_held_by_one(address: str) -> None:
    def batch(claims: Claims, token: str) -> Batch:
        return Batch(token, "e", "K", "judge", BatchState.INTENDED, 5, 100, holder_id=claims.owner_id)

    with Ledger(address) as one, Ledger(address) as other:
        first, second = Claims(one), Claims(other)

        def try_to_declare(claims: Claims, token: str) -> bool:
            asyncio.run(claims.take(KEYS[:5]))
            try:
                asks = dict.fromkeys(KEYS[:5], 0)
                claims.ledger.alone_now(partial(declare, batch=batch(claims, token), ask_indexes=asks, reserved_nusd={}))
            except ClaimsLostError:
                return False
            return True

        assert sorted(at_once(partial(try_to_declare, first, "a" * 32), partial(try_to_declare, second, "b" * 32))) == [
            False,
            True,
        ]
        (found,) = one.read(partial(open_batches, judge_model="judge"))
        one.alone_now(lambda connection: connection.execute(text("update batches set holder_id = null")))
        held = at_once(
            *(partial(c.ledger.alone_now, partial(hold, token=found.token, holder_id=c.owner_id)) for c in (first, second))
        )
        assert sum(one is not None for one in held) == 1


def _n_deadlocks(address: str) -> int:
    """Of this database, once all who used it are gone: they count when they leave."""
    engine = create_engine(address, isolation_level="AUTOCOMMIT")  # within a transaction the statistics stay as first seen
    others = "from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    with engine.connect() as connection:
        while connection.execute(text(f"select count(*) {others}")).scalar_one():
            time.sleep(0.02)
        found = connection.execute(text("select deadlocks from pg_stat_database where datname = current_database()"))
        n_deadlocks = int(found.scalar_one())
    engine.dispose()
    return n_deadlocks


def _touch(connection: Connection, names: list[str]) -> None:
    for name in names:
        connection.execute(update(LEDGER_META).where(LEDGER_META.c.name == name).values(value="1"))
        time.sleep(0.01)


def test_functions_that_touch_rows_in_two_orders_never_lock_each_other_out(address: str) -> None:
    """A deadlock would be mended by trying again, a second later."""

    def work(names: list[str]) -> None:
        with Ledger(address) as ledger:
            for _ in range(5):
                ledger.alone_now(partial(_touch, names=names))

    with Ledger(address) as ledger:
        rows = [{"name": "x", "value": "0"}, {"name": "y", "value": "0"}]
        ledger.alone_now(
            lambda connection: connection.execute(insert_where_absent(connection.engine, LEDGER_META), rows) and None
        )
    at_once(partial(work, ["x", "y"]), partial(work, ["y", "x"]))
    assert _n_deadlocks(address) == 0


def test_replies_stored_in_two_orders_never_lock_each_other_out(address: str) -> None:
    keys = [f"{index:064x}" for index in range(1500)]
    replies = [JudgeReply(key, 0, ReplyStatus.ANSWERED, "judge", ReplyOrigin.ASKED, text="1") for key in keys]

    def store(listed: list[JudgeReply]) -> None:
        with Ledger(address) as ledger:
            ledger.store(listed)

    store(replies[:1])
    at_once(partial(store, replies), partial(store, replies[::-1]))
    assert _n_deadlocks(address) == 0


def test_a_function_whose_connection_is_cut_before_its_commit_is_run_again_and_counts_once(address: str) -> None:
    n_runs = 0

    def count(connection: Connection) -> int:
        nonlocal n_runs
        n_runs += 1
        connection.execute(insert_where_absent(connection.engine, CLAIMS), [{"request_key": KEYS[n_runs], "owner_id": "o"}])
        if n_runs == 1:
            connection.execute(text("select pg_terminate_backend(pg_backend_pid())"))
        return n_runs

    with Ledger(address) as ledger:
        assert ledger.alone_now(count) == 2
        assert ledger.read(lambda connection: list(connection.execute(select(CLAIMS.c.request_key)).scalars())) == [KEYS[2]]


@pytest.mark.parametrize("is_made", [True, False], ids=["made", "not made"])
def test_a_commit_without_an_answer_counts_once(address: str, postgres: PostgresServer, is_made: bool) -> None:
    """The server goes away between the commit and its answer, or right before it, and stays away for some tries."""
    n_runs, elsewhere = 0, create_engine(postgres.new_database(), isolation_level="AUTOCOMMIT")
    name = address.rpartition("/")[2]

    def claim(connection: Connection) -> int:
        nonlocal n_runs
        n_runs += 1
        connection.execute(insert_where_absent(connection.engine, CLAIMS), [{"request_key": KEYS[n_runs], "owner_id": "o"}])
        return n_runs

    with Ledger(address) as ledger, elsewhere.connect() as server:
        ledger.alone_now(lambda connection: connection.execute(update(LEDGER_META).values(value=LEDGER_META.c.value)) and None)
        to_cut = [1]

        def cut(connection: Connection, _cursor: object, statement: str, *_: object) -> None:
            if to_cut and statement == "COMMIT":
                to_cut.pop()
                pid = connection.execute(text("select pg_backend_pid()")).scalar_one()
                if is_made:
                    connection.exec_driver_sql("COMMIT")
                    connection.exec_driver_sql("SELECT 1")  # another transaction, whose commit gets no answer
                server.execute(text(f"alter database {name} allow_connections false"))
                server.execute(text(f"select pg_terminate_backend({pid}, 5000)"))
                allow = text(f"alter database {name} allow_connections true")
                threading.Timer(0.4, lambda: server.execute(allow)).start()

        assert ledger._engine is not None
        event.listen(ledger._engine, "before_cursor_execute", cut)
        n_before = n_runs
        assert ledger.alone_now(claim) == n_before + (1 if is_made else 2)
        assert to_cut == []
        kept = ledger.read(lambda connection: list(connection.execute(select(CLAIMS.c.request_key)).scalars()))
        assert kept == [KEYS[n_runs]]
        reply = JudgeReply(KEYS[0], 0, ReplyStatus.ANSWERED, "judge", ReplyOrigin.ASKED, text="1")
        to_cut.append(1)
        assert ledger.store([reply]) == 1
    elsewhere.dispose()


def test_the_words_of_writers_do_not_gather(address: str) -> None:
    with Ledger(address) as killed:
        killed.alone_now(lambda connection: connection.execute(text("delete from claims")) and None)
        killed.alone_now(_claim_one)
        words = text("update writers set committed_at_us = committed_at_us - 90000000000")
        killed.alone_now(lambda connection: connection.execute(words) and None)  # and it writes its own anew
        assert _n_words(killed) == 1
        killed.alone_now(lambda connection: connection.execute(text("insert into writers values ('x', 'y', 1)")) and None)
        with Ledger(address) as other:
            other.alone_now(lambda connection: connection.execute(text("update claims set owner_id = 'p'")) and None)
            assert _n_words(other) == 2  # the two that live
        assert _n_words(killed) == 1


def _claim_one(connection: Connection) -> None:
    connection.execute(insert_where_absent(connection.engine, CLAIMS), [{"request_key": KEYS[0], "owner_id": "o"}])


def _n_words(ledger: Ledger) -> int:
    return ledger.read(lambda connection: int(connection.execute(text("select count(*) from writers")).scalar_one()))


def test_no_owner_expires_while_the_server_is_away(address: str) -> None:
    now = int(time.time() * 1e6)
    never_us = 2**62
    rows = {"dead before": -40, "expired meanwhile": -5, "alive": 30}
    with Ledger(address) as ledger:
        for name, seconds in rows.items():
            ledger.alone_now(
                lambda c, name=name, seconds=seconds: c.execute(insert(OWNERS), _owner(name, now + seconds * 1_000_000)) and None
            )
        ledger.alone_now(lambda connection: connection.execute(insert(OWNERS), _owner("a batch", never_us)) and None)
        assert ledger._engine is not None
        Transactions(ledger._engine, lambda error: StoreError(str(error))).make([], away_s=30.0)
        found = dict(ledger.read(lambda connection: list(connection.execute(select(OWNERS.c.owner_id, OWNERS.c.expires_at_us)))))
    assert found.pop("a batch") == never_us
    left_s = {name: (expires_us - now) / 1e6 for name, expires_us in found.items()}
    assert left_s.pop("dead before") == -40
    assert all(59 < seconds < 90 for seconds in left_s.values())


def _owner(name: str, expires_at_us: int) -> dict[str, Any]:
    return {"owner_id": name, "host": "elsewhere", "pid": 1, "process_started": "1", "expires_at_us": expires_at_us}


def test_a_reply_is_stored_though_a_function_beside_it_waits_in_vain(address: str) -> None:
    async def together(ledger: Ledger) -> list[Any]:
        attempt_id = await ledger.begin(KEYS[0], 0, "judge")
        reply = JudgeReply(KEYS[0], 0, ReplyStatus.ANSWERED, "judge", ReplyOrigin.ASKED, text="1")
        slow = asyncio.create_task(ledger.alone(lambda connection: connection.execute(text("select pg_sleep(0.5)")) and None))
        await asyncio.sleep(0.1)
        engine = create_engine(address)
        with engine.connect() as holder:  # next in the queue for the lock
            locking = asyncio.create_task(asyncio.to_thread(holder.execute, text(f"select pg_advisory_lock({ONE_WRITER})")))
            await asyncio.sleep(0.2)
            both = (ledger.alone(lambda _: None), ledger.finish(attempt_id, reply))  # one transaction, once the slow one ends
            held = list(await asyncio.gather(*both, return_exceptions=True))
            await asyncio.gather(slow, locking)
            holder.execute(text(f"select pg_advisory_unlock({ONE_WRITER})"))
        engine.dispose()
        return held

    with Ledger(address, busy_timeout_ms=400) as ledger:
        held = asyncio.run(together(ledger))
        assert [type(one) for one in held] == [StoreError, type(None)]
        assert ledger.known(KEYS) == {KEYS[0]}


def _kill_one(address: str, _: PostgresServer) -> None:
    """Kill one of the server's processes: it throws out all clients, recovers from its log, and goes on."""
    engine = create_engine(address)
    with suppress(OperationalError), engine.connect() as connection:
        pid = connection.execute(text("select pg_backend_pid()")).scalar_one()
        os.kill(int(pid), signal.SIGKILL)
    engine.dispose(close=False)


def _cut_all(address: str, _: PostgresServer) -> None:
    engine = create_engine(address, isolation_level="AUTOCOMMIT")  # within a transaction the statistics stay as first seen
    others = "from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    with engine.connect() as connection:
        connection.execute(text(f"select pg_terminate_backend(pid) {others}"))
    engine.dispose()


def _restart(_: str, server: PostgresServer) -> None:
    server.stop()
    time.sleep(1.0)
    server.start()


@pytest.mark.parametrize(("fail", "n_times"), [(_cut_all, 5), (_kill_one, 1), (_restart, 1)], ids=["cut", "crash", "restart"])
def test_a_server_that_goes_in_mid_run_is_waited_for_and_each_request_bought_once(
    provider: Any, shard: Callable[..., Outcome], address: str, postgres: PostgresServer, fail: Callable[..., None], n_times: int
) -> None:
    """One run, not resumed; the provider itself says how often it was asked, and that nobody asked while the ledger was away."""
    provider.then = provider.play(body=provider.complete('{"score": 1}'), delay_s=0.05)
    told: list[str] = []
    failures: list[BaseException] = []

    def harm() -> None:
        try:
            for turn in range(n_times):
                while provider.n < 30 + 20 * turn:
                    time.sleep(0.01)
                fail(address, postgres)
        except BaseException as error:  # noqa: BLE001 - the test reports it
            failures.append(error)

    harming = threading.Thread(target=harm)
    harming.start()
    outcome = shard(on_reply=lambda reply: told.append(reply.request_key))
    harming.join()
    assert failures == []
    assert (outcome.n_answered, outcome.n_asked, provider.n) == (N, N, N)
    assert Counter(Counter(provider.seen).values()) == {1: N}
    with Ledger(address) as ledger:
        assert ledger.known(told) == set(told)
        assert len(set(told)) == N
        assert ledger.read(lambda c: c.execute(text("select count(*), count(ended_at_us) from attempts")).one()) == (N, N)


def test_nothing_is_sent_while_the_server_is_away(provider: Any, shard: Callable[..., Outcome], postgres: PostgresServer) -> None:
    provider.then = provider.play(body=provider.complete('{"score": 1}'), delay_s=0.05)
    outcomes: list[Outcome] = []
    running = threading.Thread(target=lambda: outcomes.append(shard()))
    running.start()
    while provider.n < 30:
        time.sleep(0.01)
    postgres.stop()
    try:
        time.sleep(0.5)  # what was under way has come back
        n_before = provider.n
        time.sleep(1.5)
        assert provider.n == n_before < N
    finally:
        postgres.start()
        running.join()
    assert [outcome.n_answered for outcome in outcomes] == [provider.n] == [N]


def test_a_shard_that_begins_while_the_server_is_away_waits_too(
    provider: Any, shard: Callable[..., Outcome], postgres: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where no process of this machine has ever opened the ledger: its first word may fall into a restart."""
    postgres.stop()
    back = threading.Timer(0.7, postgres.start)
    back.start()
    outcome = shard()
    back.join()
    assert outcome.n_answered == provider.n == N
    told = [record.getMessage() for record in caplog.records if record.name == "salon.ledger"]
    assert [("waiting for it, at most 60 s" in one, "is back after" in one) for one in told] == [(True, False), (False, True)]


def test_a_server_that_stays_away_is_an_error_that_resumes(address: str, postgres: PostgresServer) -> None:
    elsewhere = create_engine(postgres.new_database(), isolation_level="AUTOCOMMIT")
    name = address.rpartition("/")[2]
    reply = JudgeReply(KEYS[0], 0, ReplyStatus.ANSWERED, "judge", ReplyOrigin.ASKED, text="1")
    with Ledger(address, max_away_s=0.5) as ledger, elsewhere.connect() as server:
        attempt_id = asyncio.run(ledger.begin(KEYS[0], 0, "judge"))
        server.execute(text(f"alter database {name} allow_connections false"))
        server.execute(text(f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'"))
        with pytest.raises(StoreError, match="check that the server runs"):
            asyncio.run(ledger.finish(attempt_id, reply))
        back = threading.Timer(0.3, lambda: server.execute(text(f"alter database {name} allow_connections true")))
        back.start()
        asyncio.run(ledger.finish(attempt_id, reply))  # waited for, and stored
        back.join()
        assert ledger.known(KEYS) == {KEYS[0]}
    elsewhere.dispose()
