"""The Prefect server killed while the judge answers, and started again: nothing is lost, nothing is bought twice."""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from checks import Watch, cells
from harness import N_SAMPLES, ROOT, Recorder, make_world

from flows.run.context import RunContext, open_run
from flows.run.pipeline import run_pipeline
from tests.support.servers.prefect_server import RunningPrefect, running_prefect

RUN_DATE = date(2026, 3, 4)
pytestmark = [
    pytest.mark.skipif(not os.environ.get("SALON_TORTURE"), reason="six minutes and three Prefect servers: in `make torture`"),
]
RUN_LIMIT_S = 400
AWAY_S = 120.0  # on top of the seconds the server takes to start again
DELAY_S = 30.0  # of each reply: with 8 at once, 40 take 150 s, so that the server is back while some are still to be asked


@pytest.fixture
def server(tmp_path: Path, prefect_tables: Path) -> Iterator[RunningPrefect]:
    with running_prefect(tmp_path, prefect_tables) as started:
        yield started


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    started = Recorder(DELAY_S)
    yield started
    started.close()


def start_run(file: Path, api: str) -> subprocess.Popen[bytes]:
    """`salon run` against a server. Prefect's client tries three times instead of six: 2 + 4 s, not a minute, for each call."""
    environment = os.environ | {"PREFECT_API_URL": api, "PYTHONPATH": str(ROOT), "PREFECT_HOME": str(file.parent / "home")}
    environment["PREFECT_CLIENT_MAX_RETRIES"] = "2"
    command = [sys.executable, "-m", "flows", "run", file.name, "--run-date", RUN_DATE.isoformat()]
    return subprocess.Popen(command, cwd=file.parent, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def end_of(process: subprocess.Popen[bytes]) -> dict[str, object]:
    said, _ = process.communicate(timeout=RUN_LIMIT_S)
    return {"code": process.returncode, "said": said.decode(errors="replace")[-3000:]}


@pytest.mark.parametrize("is_back", [True, False], ids=["back in mid-run", "back after the run"])
def test_the_prefect_api_gone_in_mid_run_and_back(
    tmp_path: Path, server: RunningPrefect, recorder: Recorder, *, is_back: bool
) -> None:
    """The run ends with 0, or with 3 and the same command goes on. Each reply is bought once, whatever Prefect knows of it."""
    file = make_world(tmp_path / "world")
    patient = file.read_text().replace("deadline_s = 5", f"deadline_s = {DELAY_S + 30}")
    file.write_text(patient.replace('model = "recorder"', f'model = "recorder"\nbase_url = "{recorder.url}"'))
    watch = Watch(file.parent / "lake", recorder)
    run = start_run(file, server.api)
    try:
        wait_for(lambda: len(recorder.billed) >= 4, run)
        server.kill()
        n_at_kill, killed_s = len(recorder.billed), time.monotonic()
        if is_back:
            time.sleep(AWAY_S)
            assert run.poll() is None, "the run was over before the server was back"
            server.start()
        end = end_of(run) | {"ended_after_s": round(time.monotonic() - killed_s, 1)}
    finally:
        run.kill()
    recorder.delay_s = 0.0
    if not is_back:
        server.start()
    print(f"{n_at_kill} of {N_SAMPLES} bought before; {end['ended_after_s']} s later ended with {end['code']}: {end['said']}")
    assert n_at_kill < N_SAMPLES, "the judge was too fast: nothing was left to buy"
    assert end["code"] in (0, 3), end
    assert watch.after(end) == []
    assert len(recorder.billed) == len(set(recorder.billed)), "a reply was bought twice"
    n_before = len(recorder.billed)
    again = end_of(start_run(file, server.api))
    reference_file = make_world(tmp_path / "reference")
    run_pipeline(RunContext.of(open_run(reference_file, RUN_DATE, recorder.url)))
    del recorder.billed[N_SAMPLES:]
    assert watch.at_the_end(again, cells(reference_file.parent / "lake")) == []
    assert len(recorder.billed) == N_SAMPLES
    assert end["code"] == 3 or n_before == N_SAMPLES
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{used.ru_utime + used.ru_stime:.0f} CPU s of children so far")


def wait_for(is_there: object, run: subprocess.Popen[bytes]) -> None:
    """Wait until something is so, as long as the run is under way."""
    deadline_s = time.monotonic() + RUN_LIMIT_S
    while not is_there():  # type: ignore[operator]
        assert run.poll() is None, end_of(run)
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
