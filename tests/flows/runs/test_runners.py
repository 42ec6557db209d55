"""Shards in other processes: the same table whatever runs them, what is refused, and what a killed or stopped run leaves."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import cloudpickle
import httpx
import pytest
from prefect import flow
from prefect.blocks.system import Secret

from benchmarks import runner_world
from benchmarks.throughput.measuring import said_by
from demo.running import running_judge
from flows.executors import keys
from flows.executors.base import ShardCall, Threads, stage_task
from flows.executors.choose import check_runner, n_processors
from flows.executors.local import PlainThreads
from flows.executors.pools import LOST_MOST, WorkerLostError
from flows.executors.prefect_threads import PrefectThreads
from flows.executors.remote import RemoteExecutor
from flows.executors.worker import FlowLease, WorkerCall
from flows.observability import redaction
from flows.run.judging import together
from rubrics.loading import SHIPPED, load_rubric
from schemas.benchmark.file import Benchmark, Limits, Runner
from schemas.errors import InputError, SalonError, StoppedError, StoreError
from schemas.records import PlannedPart, Sample
from tasks.api_keys import key_named
from tasks.context import StageContext
from tasks.ingest.samples import SampleList
from tasks.lake.reading import Lake
from tasks.ledger import open_ledgers
from tasks.ledger.ledger import Ledger
from tasks.ledger.mutex import has_heartbeat, heartbeat
from tasks.publish.identity import benchmark_digest
from tasks.stopping import STOP
from tests.flows.flow_support import Said, cells_of, runs_of
from tests.support.painting import paint, scenes
from tests.support.servers.postgres import running_postgres, why_not

BENCHMARK = scenes("anywhere", "[limits]\nshard_size = 60\nconcurrency = 8\n")
ROOT = Path(__file__).parents[3]
LIMIT_S = 900.0  # of a run that takes ten seconds where the machine is idle


def settings(runner: Runner = "local", **more: Any) -> Benchmark:
    file = {"name": "b", "sources": [{"reader": "manifest", "path": "m"}], "rubrics": [{"id": "alignment"}]}
    return Benchmark.model_validate(file | {"judges": [{"model": "eye"}], "runner": runner, "workers": more})


def opened(runner: Runner, ledger_url: str = "sqlite:///l.db", **more: Any) -> StageContext:
    rubric = load_rubric(SHIPPED / "alignment")
    return StageContext(settings(runner, **more), {rubric.id: rubric}, Lake(Path("lake")), ledger_url, date(2026, 1, 1))


# --- what is refused, before anything is started ------------------------------------------------------------------
def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    check_runner(opened("dask"))
    monkeypatch.setitem(sys.modules, "prefect_dask", None)
    with pytest.raises(InputError, match=r"extra `dask`.*requirements/dask\.txt"):
        check_runner(opened("dask"))


def test_a_cluster_elsewhere_wants_a_shared_ledger() -> None:
    for address in ("10.0.0.7", "0.0.0.0"):
        with pytest.raises(InputError, match="may be another machine, but the ledger is a SQLite file"):
            check_runner(opened("dask", address=f"tcp://{address}:8786"))
    check_runner(opened("dask", address="tcp://127.0.0.1:8786"))
    check_runner(opened("dask", "postgresql+psycopg://user@db/ledger", address="tcp://10.0.0.7:8786"))


def test_processors_are_those_that_a_container_or_a_mac_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quota, n_here = tmp_path / "cpu.max", len(os.sched_getaffinity(0))
    for said, n in (("50000 100000\n", 1), ("max 100000\n", n_here), ("6400000 100000\n", min(n_here, 64))):
        quota.write_text(said)
        assert n_processors(quota) == n
    monkeypatch.delattr(os, "sched_getaffinity")
    assert n_processors(tmp_path / "none") == os.cpu_count()


def test_where_shards_run_is_no_part_of_what_is_published() -> None:
    elsewhere = settings("dask", n=40, address="tls://scheduler.example:8786")
    assert benchmark_digest(elsewhere) == benchmark_digest(settings())


# --- what a worker does around a shard ----------------------------------------------------------------------------
def say(_context: object, secret: str) -> str:
    log = logging.getLogger("salon.test")
    log.addHandler(logging.StreamHandler())
    log.warning("the key is %s", secret)
    raise InputError(f"no good: {secret}")


def is_stopping(context: object, shard: object) -> bool:
    return STOP.wait(10)


def test_a_worker_says_no_secret_and_its_errors_hold_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process of its own: this one cleans what it says already."""
    monkeypatch.setenv("SALON_WORD", "correct-horse-battery")
    code = (
        "from flows.executors.worker import WorkerCall\n"
        "try: WorkerCall('tests.flows.runs.test_runners', 'say', ('SALON_WORD',))(None, 'correct-horse-battery')\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT}/tests/flows"},
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert said.stdout == f"InputError no good: {redaction.REMOVED}\n"
    assert f"the key is {redaction.REMOVED}" in said.stderr
    assert "horse" not in said.stderr


def test_a_shard_stops_with_its_flow(tmp_path: Path) -> None:
    lease = FlowLease(f"sqlite:///{tmp_path}/ledger.db", "a run")
    shard = WorkerCall(__name__, "is_stopping", (), lease)
    with pytest.raises(StoppedError, match="stopped or is gone"):
        shard(None, None)  # the flow is gone before the shard begins
    flow = ExitStack()
    flow.enter_context(heartbeat(flow.enter_context(open_ledgers.opened(lease.ledger_url)), lease.run_id))
    told = WorkerCall(__name__, "end_and_wait", (), lease)
    _ended.append(flow)
    with pytest.raises(StoppedError):
        told(None, None)
    assert _seen == [True]
    assert not STOP.is_set(), "the process may work for another run"


_ended: list[Any] = []
_seen: list[bool] = []


def end_and_wait(context: object, shard: object) -> None:
    _ended.pop().close()
    _seen.append(STOP.wait(10))


def test_other_code_is_not_run() -> None:
    with pytest.raises(InputError, match="a different version of Salon's code"):
        WorkerCall(__name__, "is_stopping", (), None, "0" * 64)(None, None)


@pytest.mark.usefixtures("prefect_api")
def test_a_key_comes_from_the_environment_else_from_the_block_of_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("A_RUNNERS_KEY", "B_RUNNERS_KEY", "C_RUNNERS_KEY"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("B_RUNNERS_KEY", "own-value")
    for name in ("a-runners-key", "b-runners-key"):
        Secret(value=f"of-{name}").save(name, overwrite=True)
    keys.fetch_keys(["A_RUNNERS_KEY", "B_RUNNERS_KEY", "C_RUNNERS_KEY"])
    assert [key_named(f"{letter}_RUNNERS_KEY") for letter in "ABC"] == ["of-a-runners-key", "own-value", ""]
    assert os.environ["A_RUNNERS_KEY"] == "", "a child process would inherit it"
    assert redaction.redacted("it was of-a-runners-key") == f"it was {redaction.REMOVED}"


def test_a_key_is_looked_for_again_where_the_server_was_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second try at a night, in the same process, is not to end for a key that is there."""
    answers = iter([httpx.ConnectError("All connection attempts failed"), ValueError("no such block"), Secret(value="not asked")])

    def load(*_: object, **__: object) -> Secret[str]:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(Secret, "load", load)
    with pytest.raises(httpx.ConnectError):
        keys.fetch_keys(["D_RUNNERS_KEY"], "http://127.0.0.1:1/api")
    keys.fetch_keys(["D_RUNNERS_KEY"], "http://127.0.0.1:1/api")
    keys.fetch_keys(["D_RUNNERS_KEY"], "http://127.0.0.1:1/api")
    assert key_named("D_RUNNERS_KEY") == "", "what the server said it has not is not asked for each shard"
    assert next(answers, None) is not None


# --- what the flow does when a worker dies, or when it is told to stop ---------------------------------------------
class Doubled:
    """A pool whose workers are threads of the test: each of the first `n_deaths` calls loses its worker."""

    n, has_other_code = 1, False

    def __init__(self, n_deaths: int = 0) -> None:
        self.n_deaths, self.submitted = n_deaths, list[Future[Any]]()
        self.at_work = list[Future[Any]]()

    def check(self) -> None:
        """Its threads are there as long as the test is."""

    def submit(self, function: WorkerCall, _context: Any, shard: int | None) -> Future[Any]:
        future: Future[Any] = Future()
        self.submitted.append(future)
        if function.lease is not None:
            future.set_running_or_notify_cancel()
            threading.Thread(target=self._spend, args=(function.lease, future)).start()
        elif shard is not None:
            future.set_result(shard)
            return future
        self.at_work.append(future)
        return future

    def result(self, submitted: Any) -> Any:
        if len(self.submitted) <= self.n_deaths:
            raise WorkerLostError
        return submitted.result()

    @staticmethod
    def _spend(lease: FlowLease, future: Future[Any]) -> None:
        with Ledger(lease.ledger_url) as ledger:
            while has_heartbeat(ledger, lease.run_id):
                time.sleep(0.05)
        future.set_result("stored")


@stage_task("numbered")
def numbered(context: StageContext, shard: int | None) -> str:
    return f"{shard} {context.ids.run_id}"


def call_of(folder: Path, number: int | None = None, *, spends_money: bool = False) -> ShardCall[int | None, str]:
    context = opened("local", f"sqlite:///{folder}/ledger.db").having(run_id="r")
    return ShardCall(numbered, context, number, spends_money=spends_money)


@contextmanager
def among(pool: Doubled) -> Iterator[RemoteExecutor]:
    with PlainThreads(2) as here, PlainThreads(2) as waiting:
        yield RemoteExecutor(here, waiting, 2, pool, (), 60.0)


def test_a_lost_shard_is_handed_on_until_it_has_cost_too_many_workers(tmp_path: Path) -> None:
    pool = Doubled(n_deaths=3)
    with among(pool) as executor:
        assert list(executor.run([call_of(tmp_path, 7)])) == [7]
    assert len(pool.submitted) == 4
    pool = Doubled(n_deaths=1000)
    with among(pool) as executor, pytest.raises(StoreError, match=rf"'numbered' lost its worker {LOST_MOST} times"):
        list(executor.run([call_of(tmp_path, 7)]))
    assert len(pool.submitted) == LOST_MOST, "tries of the task itself would cost as many workers again"


@pytest.mark.parametrize("threads", [PlainThreads, PrefectThreads])
def test_a_shard_that_fails_of_what_may_pass_is_tried_again(threads: type[Threads], prefect_api: str) -> None:
    tries: list[str] = []

    @stage_task("fails")
    def fails(context: str, error: SalonError) -> str:
        tries.append(context)
        if len(tries) < 2:
            raise error
        return context

    def twice(error: SalonError) -> str:
        tries.clear()
        with threads(1) as open_threads:
            return open_threads.submit(fails, "done", error).result()

    run = flow(name="twice")(twice) if threads is PrefectThreads else twice
    assert run(StoreError("away")) == "done"
    assert len(tries) == 2
    with pytest.raises(InputError, match="wrong"):
        run(InputError("wrong"))
    assert len(tries) == 1


def test_at_the_end_what_spends_is_waited_for_and_the_rest_is_taken_back(tmp_path: Path) -> None:
    def ended_after_one(pool: Doubled, *calls: ShardCall[int | None, str]) -> Future[Any]:
        with among(pool) as executor:
            results: Any = executor.run([call_of(tmp_path, 1), *calls])
            assert next(results) == 1
            while not pool.at_work:
                time.sleep(0.01)
            results.close()
        return pool.at_work[0]

    spending = ended_after_one(Doubled(), call_of(tmp_path, spends_money=True), call_of(tmp_path))
    assert spending.result(0) == "stored"
    assert ended_after_one(Doubled(), call_of(tmp_path), call_of(tmp_path)).cancelled()


# --- what travels -------------------------------------------------------------------------------------------------
def test_pictures_in_memory_do_not_travel() -> None:
    paths = [Sample("s", str(n), "m", "c", {"prompt": "a dot"}, image_path=f"{n}.png") for n in range(500)]
    assert not SampleList(paths).has_pictures
    assert len(cloudpickle.dumps(SampleList(paths))) < 100_000
    assert SampleList([*paths, Sample("s", "x", "m", "c", {}, image_bytes=b"png")]).has_pictures


# --- whole runs ---------------------------------------------------------------------------------------------------
SCENARIO = """\
[[models]]
id = "salon-demo-judge"
usd_per_million_input_tokens = 0
usd_per_million_output_tokens = 0
"""
FIGURES = ["cell_id", "estimate", "se", "ci_low", "ci_high", "n_scored", "n_failed", "status", "reason"]


TOGETHER: dict[str, tuple[int, int, str, list[int]]] = {
    "a shard is much for a process: each alone": (8, 2, "aaaa", [1, 1, 1, 1]),
    "ten times what is in flight": (150, 2, "a" * 12, [3, 3, 3, 3]),
    "never so many that a process has none": (2_000, 4, "a" * 8, [2, 2, 2, 2]),
    "a judge's alone": (2_000, 1, "aaabb", [3, 2]),
    "nothing": (8, 2, "", []),
}


@pytest.mark.parametrize(("concurrency", "n_processes", "judges", "expected"), TOGETHER.values(), ids=TOGETHER)
def test_a_worker_is_given_shards_together(concurrency: int, n_processes: int, judges: str, expected: list[int]) -> None:
    parts = [PlannedPart(index, index, "alignment", judge, 500) for index, judge in enumerate(judges)]
    found = [*together(parts, Limits(concurrency=concurrency), n_processes)]
    assert [len(shards.parts) for shards in found] == expected
    assert [part for shards in found for part in shards.parts] == parts


def test_processes_give_the_same_table_and_the_same_publication(tmp_path: Path, salon: Callable[..., Said]) -> None:
    paint(tmp_path)
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    with running_judge(tmp_path / "scenario.toml") as url:
        text = BENCHMARK.format(url=url)
        (tmp_path / "here.toml").write_text('lake = "here"\n' + text)
        (tmp_path / "there.toml").write_text('lake = "there"\nrunner = "processes"\nworkers = { n = 2 }\n' + text)
        assert salon("run", "here.toml", "--run-date", "2026-03-04").code == 0
        n_before = said_by(url, "/stats")["n_connections"]
        said = salon("run", "there.toml", "--run-date", "2026-03-04")
        n_connections = said_by(url, "/stats")["n_connections"] - n_before
        assert said.code == 0, said.err
        assert "judge: 360 done" in said.err
        assert n_connections <= 8 + 2, "a worker's next shard finds the connections of the last"
        first, second = (cells_of(tmp_path / name, "anywhere").select(FIGURES) for name in ("here", "there"))
        assert first.equals(second)
        (tmp_path / "there.toml").write_text('lake = "there"\n' + text)
        again = salon("run", "there.toml", "--run-date", "2026-03-04")
    assert "unchanged" in again.out
    assert runs_of(tmp_path / "there").get_column("outcome").to_list() == ["published", "unchanged"]


@pytest.mark.skipif(not os.environ.get("SALON_TORTURE"), reason="a minute of CPU: in `make torture`")
@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_dask_workers_killed_and_the_flow_stopped(tmp_path: Path, prefect_api: str, salon: Callable[..., Said]) -> None:
    """A worker is killed -9, later the flow gets SIGTERM; where shards run next makes no difference. One limit, PostgreSQL."""
    n, per_minute = 200, 2400
    with running_postgres() as postgres, runner_world.provider(tmp_path, burst=30, per_minute=per_minute) as url:
        ledger = postgres.new_database()
        runner_world.write_world(tmp_path, url, ledger, "dask", 2, n_samples=n, shard_size=50)
        flow = runner_world.start(tmp_path, prefect_api)
        _until(flow, url, n // 5)
        os.kill(runner_world.worker_pids(flow.pid)[0], signal.SIGKILL)
        _until(flow, url, n // 2)
        flow.send_signal(signal.SIGTERM)
        said = tmp_path / "said.txt"
        assert flow.wait(LIMIT_S) == 143, said.read_text()
        stopped = said_by(url, "/stats")
        # What was on its way at the kill may be paid twice; SIGTERM lets everything be stored.
        n_cut_off = runner_world.attempts_cut_off(ledger)
        assert (
            0 <= stopped["n_answers_billed"] - runner_world.count(ledger, "replies") <= n_cut_off <= 36
        )  # 32 in flight, an eighth prepared
        (tmp_path / "b.toml").write_text((tmp_path / "b.toml").read_text().replace('"dask"', '"local"'))
        again = salon("run", "b.toml")
        assert again.code == 0, again.err
        stats = said_by(url, "/stats")
        assert runner_world.count(ledger, "replies") == stats["n_items"] == n
    assert stats["n_answers_billed"] - n <= n_cut_off
    assert stats["n_429"] <= 0.02 * stats["n_requests"]


def _until(flow: "subprocess.Popen[bytes]", url: str, n_requests: int) -> None:
    while said_by(url, "/stats")["n_requests"] < n_requests:
        assert flow.poll() is None, "the run ended before it could be disturbed"
        time.sleep(0.05)
