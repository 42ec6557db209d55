"""Amid a run something ends for good: the Dask scheduler, a worker, the flow, its terminal. What is paid, who goes on."""

import os
import pty
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks import runner_world
from benchmarks.throughput.measuring import said_by
from schemas.benchmark.file import Runner
from tests.flows.flow_support import Said
from tests.support.processes import hearing_hangups
from tests.support.servers.dask_cluster import running_cluster

N, PART, N_WORKERS = 120, 30, 2
N_A_KILL_CUTS_OFF = 36  # 64 in flight is the default; a process of two has 32, and an eighth more are prepared
LIMIT_S = 600.0  # of a run that takes ten seconds where the machine is idle
TOLD_WITHIN_S = 60.0  # a second where the machine is idle


@dataclass
class World:
    """A benchmark of N questions to a provider that counts, and the ledger of its runs."""

    folder: Path
    judge: str

    @property
    def ledger(self) -> str:
        return f"sqlite:///{self.folder}/ledger.db"

    def write(self, runner: Runner, address: str | None = None) -> None:
        """The benchmark file, for a runner."""
        runner_world.write_world(self.folder, self.judge, self.ledger, runner, N_WORKERS, n_samples=N, shard_size=PART)
        if address:
            file = self.folder / "b.toml"
            file.write_text(file.read_text().replace(f"n = {N_WORKERS}", f'address = "{address}"'))

    def start(self, n_asked: int = 0) -> "subprocess.Popen[bytes]":
        """`salon run`; it has asked so many questions when this returns."""
        flow = runner_world.start(self.folder, None)
        self.until_asked(flow, n_asked)
        return flow

    def until_asked(self, flow: "subprocess.Popen[bytes]", n: int) -> None:
        """Wait until so many questions were asked."""
        while self.asked("n_requests") < n:
            assert flow.poll() is None, f"the run ended before it could be disturbed: {self.said}"
            time.sleep(0.05)

    def asked(self, count: str) -> int:
        return int(said_by(self.judge, "/stats")[count])

    @property
    def said(self) -> str:
        return (self.folder / "said.txt").read_text()

    def check_all_is_bought_once(self, n_cut_off_most: int) -> None:
        """Every reply is stored, and no more was paid twice than a kill cut off."""
        n_cut_off = runner_world.attempts_cut_off(self.ledger)
        assert runner_world.count(self.ledger, "replies") == self.asked("n_items") == N
        assert self.asked("n_answers_billed") - N <= n_cut_off <= n_cut_off_most


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with runner_world.provider(tmp_path, burst=30, per_minute=2400) as judge:
        yield World(tmp_path, judge)


def test_a_worker_is_killed_and_then_the_scheduler(world: World, salon: Callable[..., Said]) -> None:
    with running_cluster(world.folder, N_WORKERS + 1) as cluster:
        world.write("dask", cluster.address)
        flow = world.start(n_asked=N // 4)
        cluster.workers[0].kill()
        world.until_asked(flow, N // 2)
        cluster.scheduler.kill()
        assert flow.wait(TOLD_WITHIN_S) == 3, world.said
        assert f"the Dask scheduler at {cluster.address} is gone; replies already paid for are stored." in world.said
        assert "Its workers end with it: start all of them again, then run the same command again to continue" in world.said
        ended = [worker.wait(LIMIT_S) for worker in cluster.workers[1:]]
        assert ended == [0] * N_WORKERS, "they store what is under way, and end"
    assert N // 4 <= runner_world.count(world.ledger, "replies") < N
    world.write("local")
    again = salon("run", "b.toml")
    assert again.code == 0, again.err
    world.check_all_is_bought_once(n_cut_off_most=N_A_KILL_CUTS_OFF)


def test_a_process_of_this_machine_is_killed(world: World) -> None:
    world.write("processes")
    flow = world.start(n_asked=N // 3)
    os.kill(runner_world.worker_pids(flow.pid)[0], signal.SIGKILL)
    assert flow.wait(LIMIT_S) == 0, world.said
    world.check_all_is_bought_once(n_cut_off_most=N_A_KILL_CUTS_OFF)


class Terminal:
    """A terminal that is read: of a full one every print waits."""

    def __init__(self) -> None:
        self._ours, self.theirs = pty.openpty()
        self._said = b""
        self._is_closed = threading.Event()
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def close(self) -> str:
        """What was printed there until it was closed, as a lost connection closes it."""
        self._is_closed.set()
        self._reading.join()
        os.close(self._ours)
        return " ".join(self._said.decode(errors="replace").split())

    def _read(self) -> None:
        while not self._is_closed.is_set():
            if select.select([self._ours], [], [], 0.05)[0]:
                with suppress(OSError):
                    self._said += os.read(self._ours, 65536)


@pytest.mark.parametrize(
    ("runner", "sent", "code"),
    [("local", "INT", 130), ("dask", "INT", 130), ("dask", "TERM", 143), ("local", "HUP", 143), ("processes", "HUP", 143)],
)
def test_what_all_of_a_terminal_get_loses_no_reply(world: World, runner: Runner, sent: str, code: int) -> None:
    """Ctrl-C and a lost terminal reach the workers too; so does SIGTERM, where systemd sends it to all of a service."""
    world.write(runner)
    terminal = Terminal()
    with hearing_hangups():
        flow = runner_world.start(world.folder, None, terminal=terminal.theirs)
    try:
        os.close(terminal.theirs)
        world.until_asked(flow, N // 4)
        if sent == "HUP":
            terminal.close()
        else:
            os.killpg(flow.pid, signal.Signals[f"SIG{sent}"])
        assert flow.wait(60) == code
    finally:
        flow.kill()
        flow.wait()
        said = "" if sent == "HUP" else terminal.close()
    assert runner_world.attempts_cut_off(world.ledger) == 0, said
    assert N // 4 <= runner_world.count(world.ledger, "replies") == world.asked("n_answers_billed") < N
    assert "Traceback" not in said, said[-6000:]
    assert ("stopping: replies in flight" in said) == (sent != "HUP")
    assert ("interrupted; run the same command again to continue" in said) == (sent == "INT")


@pytest.mark.skipif(not os.environ.get("SALON_TORTURE"), reason="half a minute: in `make torture`")
def test_the_flow_is_killed_and_the_next_one_starts_at_once(world: World) -> None:
    """Workers of a cluster store what is under way and turn to the next run, which buys none of it again."""
    with running_cluster(world.folder, N_WORKERS) as cluster:
        world.write("dask", cluster.address)
        flow = world.start(n_asked=N // 3)
        flow.kill()
        flow.wait()
        assert world.start().wait(LIMIT_S) == 0, world.said
        assert [worker.poll() for worker in cluster.workers] == [None, None]
    world.check_all_is_bought_once(n_cut_off_most=0)
