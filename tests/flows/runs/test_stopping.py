"""Told to stop where no reply is waited for: at the start, in the imports, between the data checks; and what is done after."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from demo.running import running_judge
from flows.night_opening import open_night
from flows.nightly import run_night
from flows.nights.record import notes
from flows.partitions.table import read_partitions
from flows.run.context import RunContext
from rubrics.loading import find_rubrics
from schemas.errors import StoppedError, StoreError
from schemas.tables.stored import REPLIES, REQUESTS
from tasks.stopping import STOP
from tasks.validate.expectations import all_checks
from tasks.validate.frames import Batch
from tasks.validate.great_expectations import evaluate
from tests.support.night_world import World, write_benchmark

ROOT = Path(__file__).parents[3]
NIGHT = date(2026, 3, 4)

IMPORTING = """\
import sys, threading
from tasks.stopping import STOP, import_heeding
from schemas.errors import StoppedError
threading.Timer(0.2, STOP.set).start()
try:
    import_heeding("great_expectations")
except StoppedError as error:
    sys.exit(error.exit_code)
"""


def test_a_heavy_import_is_not_waited_for() -> None:
    """What the process takes until it has ended, its import in a thread that nobody waits for included."""
    _, whole_s = _code_and_cpu_s("import great_expectations")
    code, cpu_s = _code_and_cpu_s(IMPORTING)
    assert code == 143
    assert cpu_s < 0.7 * whole_s


def _code_and_cpu_s(program: str) -> tuple[int, float]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run([sys.executable, "-c", program], env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.returncode, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


TWO_CALLS = """\
import os, signal
from tasks.stopping import check_not_stopped, heeding_sigterm
from schemas.errors import StoppedError
try:
    with heeding_sigterm():
        os.kill(os.getpid(), signal.{name})
        try:
            with heeding_sigterm():
                pass
        except StoppedError:
            print("a call within it is stopped")
except (StoppedError, KeyboardInterrupt) as error:
    print(type(error).__name__)
with heeding_sigterm():
    check_not_stopped()
    print("the next call runs")
"""
SAID = {
    "SIGTERM": "a call within it is stopped\nStoppedError\nthe next call runs\n",
    "SIGINT": "KeyboardInterrupt\nthe next call runs\n",
}


@pytest.mark.parametrize(("name", "said"), SAID.items(), ids=SAID)
def test_a_signal_stops_the_call_that_heeds_it_and_not_the_next_of_the_process(name: str, said: str) -> None:
    command = [sys.executable, "-c", TWO_CALLS.format(name=name)]
    ended = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True, capture_output=True, text=True)
    assert ended.stdout == said


def test_the_data_checks_end_between_two_tables() -> None:
    seen: list[str] = []

    def batches() -> Iterator[Batch]:
        for table in (REQUESTS, REPLIES):
            seen.append(table.name)
            STOP.set()
            yield Batch(table, table.empty().with_row_index("row"))

    try:
        with pytest.raises(StoppedError):
            evaluate(batches(), all_checks(find_rubrics(["alignment"])), None)
    finally:
        STOP.clear()
    assert seen == [REQUESTS.name]


def test_a_run_without_a_server_starts_none_and_a_stop_ends_it_with_143(tmp_path: Path) -> None:
    """Nothing of Prefect's is started, asked or written where its settings name no server."""
    World(tmp_path).make(0)
    with running_judge() as url:
        file = write_benchmark(tmp_path, url)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
        environment |= {
            "PYTHONPATH": str(ROOT),
            "PREFECT_HOME": str(tmp_path / "home"),
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        }
        command = [sys.executable, "-m", "flows", "run", file.name]
        run = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while not (tmp_path / "lake").exists():
            assert run.poll() is None
            time.sleep(0.05)
        children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
        run.send_signal(signal.SIGTERM)
        _, said = run.communicate(timeout=60)
    assert run.returncode == 143, said
    assert said.splitlines()[-1:] == [
        b"salon: told to stop; replies in flight are stored; run the same command again to continue"
    ]
    assert children == []
    assert not (tmp_path / "home").exists()


def test_a_night_that_ended_behind_its_publication_is_gone_on_with(tmp_path: Path) -> None:
    """It is noted as whole once all of it stands: a night taken for whole is never looked at again."""
    World(tmp_path).make(0)
    with running_judge() as url:
        run = open_night(write_benchmark(tmp_path, url), NIGHT)
        in_the_way = run.lake.root / "publish" / "v1" / "nights" / "salon.duckdb"
        in_the_way.mkdir(parents=True)
        with pytest.raises(StoreError):
            run_night(RunContext.of(run))
        noted = notes(run.lake.root, "nights")[NIGHT.isoformat()]
        in_the_way.rmdir()
        again = run_night(RunContext.of(run))
        third = run_night(RunContext.of(run))
    assert not noted.is_whole
    assert again.run is not None
    assert again.run.asked.n_asked == 0
    assert again.publication_id == noted.publication_id
    assert in_the_way.is_file()
    assert not read_partitions(run).is_empty()
    assert third.run is None
