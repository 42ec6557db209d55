"""Fourteen scheduled nights on a real Prefect server, its clock turned from night to night, a fault in each part: no hand needed.

Server, worker and nights see the clock of clock.c: what time passes is the test's to say, sleeps stay real.
"""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import orjson
import psutil
import pytest
from harness import COMPILER, build

from tasks.publish.reading import publications
from tests.support.night_world import N_SAMPLES, World, write_benchmark
from tests.support.servers.postgres import PostgresServer, running_postgres, why_not
from tests.support.servers.prefect_server import RunningPrefect, end, running_prefect
from tests.support.servers.provider import Play, Provider, completion

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.skipif(not os.environ.get("SALON_TORTURE"), reason="fifteen minutes: in `make torture`"),
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
    pytest.mark.skipif(COMPILER is None, reason="the clock is preloaded: a C compiler (cc) is needed"),
]
N_NIGHTS = 14
LIMIT_S = 240.0
SETTLES_S = 8.0
"""In which the server has seen the events of what ended."""
OUTAGE_S = 75.0
"""Longer than a run waits for a judge: the night's first try ends."""
GOOD = Play(body=completion("Reasoning: plain.\nScore: 3"))
OTHER = Play(body=completion("Reasoning: plain.\nScore: 3", model="judge-2026-09-09"))
DOWN = Play(503, b'{"error": {"message": "down for maintenance"}}')
SLOW = Play(body=OTHER.body, delay_s=3.0)


class Clock:
    """What the programs of this world take for the time: the machine's, and so much later."""

    def __init__(self, folder: Path) -> None:
        self._library, self._file, self._ahead = folder / "clock.so", folder / "clock", timedelta()
        self._file.write_bytes(bytes(8))
        build(Path(__file__).with_name("clock.c"), self._library)

    @property
    def settings(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self._library), "SALON_CLOCK": str(self._file)}

    @property
    def now(self) -> datetime:
        return datetime.now(UTC) + self._ahead

    def turn(self, by: timedelta) -> None:
        """Later by so much, for all of them at once."""
        self._ahead += by
        with self._file.open("r+b", buffering=0) as file:
            file.write(int(self._ahead.total_seconds()).to_bytes(8, sys.byteorder, signed=True))

    def turn_to(self, moment: datetime) -> None:
        self.turn(moment - self.now)


@dataclass
class Nights:
    """The world: pictures, judge, server, worker, clock."""

    folder: Path
    judge: Provider
    server: RunningPrefect
    clock: Clock
    worker: "subprocess.Popen[bytes] | None" = None

    def salon(self, *words: str) -> "subprocess.CompletedProcess[str]":
        command, env = [sys.executable, "-m", "flows", *words], os.environ | self.server.environment
        return subprocess.run(command, cwd=self.folder, env=env, check=False, capture_output=True, text=True, timeout=LIMIT_S)

    def start_worker(self) -> None:
        with (self.folder / "worker.log").open("ab") as log:
            env = self.server.environment | {"OPENAI_API_KEY": "sk-of-nobody", "PYTHONPATH": str(ROOT)}
            command = [sys.executable, "-m", "flows", "worker"]
            self.worker = subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=log, start_new_session=True)

    def kill_worker(self) -> None:
        """kill -9: the worker and the nights it runs."""
        assert self.worker is not None
        for process in [*psutil.Process(self.worker.pid).children(recursive=True), self.worker]:
            os.kill(process.pid, signal.SIGKILL)
        self.worker.wait()

    def ask(self, path: str, body: dict[str, Any]) -> Any:
        return httpx.post(f"{self.server.api}/{path}", json=body, timeout=60).raise_for_status().json()

    def runs_of(self, due: datetime) -> list[dict[str, Any]]:
        """The runs of a night's moment and of the hours after it, the first begun first."""
        moments = {"after_": due.isoformat(), "before_": (due + timedelta(hours=12)).isoformat()}
        found: list[dict[str, Any]] = self.ask("flow_runs/filter", {"flow_runs": {"expected_start_time": moments}})
        return sorted(found, key=lambda run: str(run["expected_start_time"]))

    def published(self) -> dict[str, bool]:
        """Run dates with a publication, each with whether one of its own is current: a try that fell short leaves one too."""
        found = dict[str, bool]()
        for one in publications(self.folder / "lake"):
            found[str(one.run_date)] = found.get(str(one.run_date), False) or one.is_current
        return found

    def until(self, look: Callable[[], object], what: str) -> None:
        give_up_s = time.monotonic() + LIMIT_S
        while not look():
            assert time.monotonic() < give_up_s, f"{what}: {self.told()}"
            time.sleep(0.5)

    def wait_for(self, day: str) -> None:
        """Until the night is published. One that is late waits for an automation: let time pass, not past heartbeats."""
        give_up_s, pass_at_s = time.monotonic() + 3 * LIMIT_S, time.monotonic() + 40
        while not self.published().get(day):
            assert time.monotonic() < give_up_s, f"{day} did not come: {self.told()}"
            time.sleep(0.5)
            if time.monotonic() > pass_at_s:
                pass_at_s += 10
                self.clock.turn(timedelta(minutes=1))

    def until_all_have_ended(self) -> None:
        """No day passes while a run is on its way, or it would have no heartbeat for a day."""
        late = {"state": {"type": {"any_": ["PENDING", "RUNNING", "CANCELLING"]}}}
        self.until(lambda: not self.ask("flow_runs/filter", {"flow_runs": late}), "a run never ended")
        time.sleep(SETTLES_S)

    def told(self) -> str:
        return (self.folder / "worker.log").read_text(errors="replace")[-4000:]

    def events(self, name: str) -> list[dict[str, Any]]:
        """Salon's events of a name, whenever they were sent."""
        since = (self.clock.now - timedelta(days=60)).isoformat()
        asked = {"filter": {"event": {"name": [name]}, "occurred": {"since": since, "until": self.clock.now.isoformat()}}}
        found: list[dict[str, Any]] = self.ask("events/filter", asked)["events"]
        return found


@pytest.fixture
def nights(tmp_path: Path, prefect_tables: Path, provider: Provider) -> Iterator[Nights]:
    clock, world = Clock(tmp_path), World(tmp_path)
    for number in range(1, N_NIGHTS + 3):
        world.make(number)
    file = write_benchmark(tmp_path, provider.url, nightly='finish_by = "08:00"\ncheckpoints = "ready.jsonl"')
    (tmp_path / "ready.jsonl").write_text("")
    file.write_text(file.read_text().replace("concurrency = 4", "concurrency = 4\nshard_size = 8"))
    with running_postgres() as postgres, prefect_on(postgres, tmp_path, prefect_tables, clock) as server:
        made = Nights(tmp_path, provider, server, clock)
        try:
            yield made
        finally:
            if made.worker is not None:
                end(made.worker, 60)


@contextmanager
def prefect_on(postgres: PostgresServer, folder: Path, tables: Path, clock: Clock) -> Iterator[RunningPrefect]:
    """The server on PostgreSQL, as operations.md has it."""
    url = postgres.new_database().replace("+psycopg", "+asyncpg")
    more = {"PREFECT_SERVER_DATABASE_CONNECTION_URL": url, "PREFECT_SERVER_EVENTS_RETENTION_PERIOD": "P60D"}  # 60 days, not 7
    with running_prefect(folder, tables, **clock.settings, **more) as server:
        yield server


def test_fourteen_nights_come_once_each_and_every_fault_is_told(nights: Nights) -> None:
    clock, judge = nights.clock, nights.judge
    judge.then = GOOD
    first = (clock.now + timedelta(days=1)).replace(hour=2, minute=0, second=0, microsecond=0)
    list_until(nights, first)
    deployed = nights.salon("deploy", "b.toml")
    assert deployed.returncode == 0, deployed.stderr
    nights.start_worker()
    due, days, missed = first, [], first + timedelta(days=8)
    for number in range(1, N_NIGHTS + 1):
        due += timedelta(days=number == 9)  # the night before it is missed
        list_until(nights, due)
        judge.then = {5: DOWN, 7: OTHER, 11: SLOW}.get(number, OTHER if number > 7 else GOOD)
        if number == 9:
            machine_off_until(nights, due + timedelta(minutes=5))
        else:
            clock.turn_to(due - timedelta(seconds=20))
        if number == 3:
            server_killed_while_pending(nights, due)
        if number == 5:
            n_before = judge.n
            nights.until(lambda: judge.n > n_before, "the judge that is down was never asked")  # noqa: B023
            time.sleep(OUTAGE_S)
            judge.then = GOOD
        if number == 11:
            worker_killed_in_mid_run(nights, due)
            judge.then = OTHER
        day = due.date().isoformat()
        nights.wait_for(day)
        nights.until_all_have_ended()
        days.append(day)
        due += timedelta(days=1)
    assert sorted(nights.published()) == days, "one publication a night, and no other"
    notes = (nights.folder / "lake" / "nights" / "nights").glob("*.json")
    assert [orjson.loads(path.read_bytes())["is_whole"] for path in notes] == [True] * N_NIGHTS
    time.sleep(5)  # events are on their way
    (told,) = nights.events("salon.night.missed")
    assert told["payload"]["dates"] == [missed.date().isoformat()]
    (changed,) = nights.events("salon.judge.changed")
    assert changed["payload"]["run_date"] == days[6]
    assert not nights.events("salon.night.failed")
    assert len({event["payload"]["publication"] for event in nights.events("salon.table.published")}) == N_NIGHTS
    with closing(sqlite3.connect(nights.folder / "lake" / "ledger.db")) as ledger, ledger:
        (n_replies,) = ledger.execute("SELECT count(*) FROM replies").fetchone()
    assert n_replies == N_NIGHTS * N_SAMPLES


def list_until(nights: Nights, due: datetime) -> None:
    """A new checkpoint is ready each night."""
    listed = nights.folder / "ready.jsonl"
    n = len(listed.read_text().splitlines()) + 1
    row = {"model": "demo-painter", "checkpoint": f"step-{n}", "date": due.date().isoformat()}
    with listed.open("ab") as file:
        file.write(orjson.dumps(row) + b"\n")


def machine_off_until(nights: Nights, moment: datetime) -> None:
    """No night of the time in between came; of those that are late then, the latest is caught up."""
    nights.kill_worker()
    nights.server.stop()
    nights.clock.turn_to(moment)
    nights.server.start()
    nights.start_worker()


def server_killed_while_pending(nights: Nights, due: datetime) -> None:
    """The server goes as soon as the night's run is taken, and is back."""
    taken = {"PENDING", "RUNNING"}
    nights.until(lambda: {run["state"]["type"] for run in nights.runs_of(due)} & taken, "no worker took the run")
    nights.server.kill()
    nights.server.start()


def worker_killed_in_mid_run(nights: Nights, due: datetime) -> None:
    """The worker and the night die together; systemd would start the worker again, the automation starts the night."""
    n_before = nights.judge.n
    nights.until(lambda: nights.judge.n > n_before + 6, "the night never asked")
    nights.kill_worker()
    nights.start_worker()
