"""A Prefect server that fails once a run has begun: what is paid is published, and the exit code is the run's own."""

import os
import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from prefect import flow, get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey
from prefect.events import emit_event
from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings

from flows.nights.record import notes
from flows.observability.alerting import PUBLISHED, Alert
from flows.observability.artifacts import ProgressArtifact, _pause_s, show_in_prefect
from flows.observability.events import _on_server, send
from flows.observability.terminal import PREFECT_IS_AWAY
from tests.flows.flow_support import Said, runs_of
from tests.flows.prefect.failing_prefect import FailingPrefect, failing_prefect
from tests.support.night_world import World, write_benchmark
from tests.support.servers.prefect_server import RunningPrefect, shown_by, tell_what_is_left

ENDS = r'set_state .*"type":\s*"(COMPLETED|FAILED|CRASHED)"'
LOGS_AND_EVENTS = r"/api/(logs|events)"
ALL_LATER = f"{ENDS}|/api/(logs|events|artifacts)"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("failing")
    World(folder).make(1)
    return folder


@pytest.fixture
def double(prefect_server: RunningPrefect) -> Iterator[FailingPrefect]:
    with (
        failing_prefect(prefect_server.api) as passing_on,
        shown_by(passing_on.api),
        temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0}),
    ):
        yield passing_on
        passing_on.fails = None
        tell_what_is_left()
    PREFECT_IS_AWAY.clear()


@pytest.mark.parametrize(
    ("fails", "status"),
    [(ENDS, 500), (LOGS_AND_EVENTS, 500), (ALL_LATER, 503)],
    ids=["the end is not taken", "logs and events are not taken", "unavailable once it has begun"],
)
def test_a_paid_run_is_published(
    fails: str, status: int, made: Path, judge_url: str, double: FailingPrefect, salon: Callable[..., Said], tmp_path: Path
) -> None:
    (tmp_path / "made").symlink_to(made / "made")
    file = write_benchmark(tmp_path, judge_url)
    double.fails, double.status = re.compile(fails), status
    said = salon("run", file, "--run-date", "2026-03-01")
    assert double.n_failed.total() > 0, f"the fault was never met: {said}"
    assert said.code == 0, said.err
    assert "24 sent" in said.out
    assert "Traceback" not in said.err
    assert runs_of(tmp_path / "lake")["outcome"].to_list() == ["published"]
    if fails is not LOGS_AND_EVENTS:
        assert f"the Prefect server was not told how the run ended (Server error '{status}" in said.err


@pytest.mark.parametrize(
    ("options", "source", "code", "sentence"),
    [
        (("--max-usd", "0.002"), "", 1, "max_usd = 0.002 does not cover a single request"),
        ((), 'where = { tag = "none" }', 2, "source 'source-0' is empty"),
    ],
    ids=["its budget is reached", "nothing to judge"],
)
def test_a_run_that_ends_badly_keeps_its_own_exit_code(
    options: tuple[str, ...], source: str, code: int, sentence: str, made: Path, judge_url: str, double: FailingPrefect,
    salon: Callable[..., Said], tmp_path: Path,
) -> None:  # fmt: skip
    (tmp_path / "made").symlink_to(made / "made")
    file = write_benchmark(tmp_path, judge_url)
    file.write_text(file.read_text().replace('reader = "geneval"', f'reader = "geneval"\n{source}'))
    double.fails = re.compile(ENDS)
    said = salon("run", file, "--run-date", "2026-03-01", *options)
    assert double.n_failed.total() > 0, f"the fault was never met: {said}"
    assert said.code == code, said.err
    assert sentence in said.out + said.err
    assert "Prefect server does not answer" not in said.err


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Prefect's client leaves its connection open
def test_a_night_waits_for_a_server_that_is_away_when_it_begins(
    made: Path, judge_url: str, double: FailingPrefect, salon: Callable[..., Said], tmp_path: Path
) -> None:
    (tmp_path / "made").symlink_to(made / "made")
    file = write_benchmark(tmp_path, judge_url)
    due, until = (datetime.now(UTC) + timedelta(minutes=minutes) for minutes in (-1, 60))
    text = f'schedule = "{due.minute} {due.hour} * * *"\nfinish_by = "{until:%H:%M}"'
    file.write_text(file.read_text().replace('schedule = "0 2 * * *"', text))
    double.fails, double.status = re.compile(""), 503

    def come_back() -> None:
        while "GET /api/admin/version" not in double.n_failed:
            time.sleep(0.05)
        time.sleep(2)
        double.fails = None

    coming = threading.Thread(target=come_back)
    coming.start()
    said = salon("nightly", file)
    coming.join()
    assert said.code == 0, said.err
    told = " ".join(said.err.split())
    assert "try 1 failed: the Prefect server does not answer (" in told, double.n_failed
    assert f"next try in 5 s, until {until:%H:%M} UTC" in told
    assert "fault of Salon's own" not in told
    assert "24 sent" in said.out


def events_of(benchmark: str, api: str) -> list[str]:
    """The names of the events of a benchmark that the server at this address has stored."""
    wanted = {"filter": {"resource": {"id": [f"salon.benchmark.{benchmark}"]}}}
    return [event["event"] for event in httpx.post(f"{api}/events/filter", json=wanted).raise_for_status().json()["events"]]


@pytest.mark.slow
def test_events_of_a_night_that_the_server_loses_are_sent_again(
    made: Path, judge_url: str, double: FailingPrefect, prefect_server: RunningPrefect, salon: Callable[..., Said], tmp_path: Path
) -> None:
    """As one does whose database goes away and comes back: its page is right, and the alarm never came."""
    (tmp_path / "made").symlink_to(made / "made")
    file = write_benchmark(tmp_path, judge_url)
    file.write_text(file.read_text().replace('name = "nights"', 'name = "lost"'))
    double.fails = re.compile("/api/events/filter")
    lost: list[str] = []

    def lose() -> None:
        while "POST /api/events/filter" not in double.n_failed or PUBLISHED not in lost:
            lost.extend(events_of("lost", prefect_server.api))
            time.sleep(0.2)
        with closing(sqlite3.connect(prefect_server.home / "prefect.db", timeout=60)) as stored, stored:
            stored.execute("DELETE FROM events WHERE event LIKE 'salon.%'")
            stored.execute("DELETE FROM event_resources WHERE resource_id LIKE 'salon.%'")
        double.fails = None

    losing = threading.Thread(target=lose)
    losing.start()
    said = salon("nightly", file)
    losing.join()
    assert said.code == 0, said.err
    (note,) = notes(tmp_path / "lake", "lost").values()
    assert sorted(note.told or ()) == sorted(events_of("lost", prefect_server.api)) == sorted({*lost})


def test_an_event_is_found_on_a_server_whose_clock_is_behind(prefect_api: str) -> None:
    @flow(name="its clock is ahead")
    def sends() -> list[str]:
        resource = {"prefect.resource.id": "salon.benchmark.ahead"}
        event = emit_event(PUBLISHED, resource, occurred=datetime.now(UTC) + timedelta(minutes=10))
        assert event is not None
        found: list[str] = []
        while not found:  # as long as the server takes to write it down
            found = _on_server([str(event.id)])
            time.sleep(0.2)
        return [*found, str(event.id)]

    assert len({*sends()}) == 1


def test_a_night_does_not_wait_for_events_that_it_may_not_read(
    made: Path, judge_url: str, double: FailingPrefect, salon: Callable[..., Said], tmp_path: Path
) -> None:
    (tmp_path / "made").symlink_to(made / "made")
    double.fails, double.status = re.compile("/api/events/filter"), 403
    said = salon("nightly", write_benchmark(tmp_path, judge_url))
    assert said.code == 0, said.err
    assert double.n_failed == {"POST /api/events/filter": 1}
    (note,) = notes(tmp_path / "lake", "nights").values()
    assert PUBLISHED in (note.told or ())


def test_a_fault_of_our_own_is_not_the_servers(double: FailingPrefect, caplog: pytest.LogCaptureFixture) -> None:
    @flow(name="shows what is not there")
    def shows() -> str:
        show_in_prefect(None, None, None)  # type: ignore[arg-type]
        return "went on"

    assert shows() == "went on"
    assert caplog.text.count("internal error in Salon (AttributeError") == 2
    assert "the Prefect server does not answer" not in caplog.text
    caplog.clear()
    double.fails = re.compile("/api/artifacts")

    @flow(name="is not heard")
    def moves() -> None:
        shown = ProgressArtifact("is-not-heard")
        shown("judge", 0.5)
        shown("judge", 0.6)
        double.fails = None
        shown("judge", 1.0)

    moves()
    assert caplog.text.count("the Prefect server does not answer correctly (Server error '500") == 1
    assert "fault of Salon's own" not in caplog.text
    assert artifacts_of("salon-progress-is-not-heard") == [100.0]  # its end, though it was to be left alone a while


def artifacts_of(key: str) -> list[object]:
    with get_client(sync_client=True) as client:
        found = client.read_artifacts(artifact_filter=ArtifactFilter(key=ArtifactFilterKey(any_=[key])))
    return [one.data for one in found]


def test_progress_that_was_not_heard_is_told_again_after_a_while(double: FailingPrefect) -> None:
    now_s = 0.0

    @flow(name="is heard again")
    def moves() -> None:
        nonlocal now_s
        shown = ProgressArtifact("heard-again", lambda: now_s)
        double.fails = re.compile("/api/artifacts")
        shown("judge", 0.1)
        n_failed = double.n_failed.total()
        shown("judge", 0.2)
        assert double.n_failed.total() == n_failed, "the server was asked again at once"
        double.fails = None
        now_s = 61.0
        shown("judge", 0.3)

    moves()
    assert artifacts_of("salon-progress-heard-again") == [30.0]


def test_an_end_that_comes_many_times_is_tried_once_in_an_outage(double: FailingPrefect) -> None:
    """Replies that are asked a second time, and the nights of a backfill, come to all of a stage again and again."""
    n_tried: list[int] = []

    @flow(name="ends many times")
    def moves() -> None:
        shown = ProgressArtifact("ends-many-times", lambda: 0.0)
        double.fails = re.compile("/api/artifacts")
        for share in (0.5, 1.0, 1.0, 0.9, 1.0):
            shown("judge", share)
            n_tried.append(double.n_failed.total())
        shown("backfill", 1.0)
        n_tried.append(double.n_failed.total())
        double.fails = None

    moves()
    assert n_tried == [1, 2, 2, 2, 2, 3]


@pytest.mark.parametrize(("n_failed", "pause_s"), [(1, 60), (2, 120), (4, 480), (5, 900), (1025, 900), (10**6, 900)])
def test_the_pause_grows_to_a_quarter_of_an_hour_and_stays(n_failed: int, pause_s: float) -> None:
    assert _pause_s(n_failed) == pause_s


@pytest.mark.parametrize(
    ("reader", "code", "state"), [("geneval", 0, "COMPLETED"), ("nobody's", 1, "FAILED")], ids=["well", "badly"]
)
def test_the_end_of_a_deployed_run_is_told_again(
    reader: str, code: int, state: str, made: Path, judge_url: str, double: FailingPrefect, tmp_path: Path
) -> None:
    """The process that a worker starts: the server takes neither COMPLETED nor FAILED, and then does."""
    (tmp_path / "made").symlink_to(made / "made")
    file = write_benchmark(tmp_path, judge_url)
    file.write_text(file.read_text().replace('reader = "geneval"', f'reader = "{reader}"'))
    with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 5}), get_client(sync_client=True) as client:
        made_of = {"entrypoint": "flows.prefect_flows.benchmark", "enforce_parameter_schema": False, "pull_steps": []}
        deployment = client.create_deployment(client.create_flow_from_name("benchmark"), name=reader, **made_of)
        run_id = client.create_flow_run_from_deployment(deployment, parameters={"file": str(file)}).id
        double.fails = re.compile(ENDS)
        own = {"PREFECT_API_URL": double.api, "PREFECT__FLOW_RUN_ID": str(run_id), "PREFECT_CLIENT_MAX_RETRIES": "0"}
        command, said = [sys.executable, "-m", "prefect.engine"], ""
        with subprocess.Popen(command, env=os.environ | own, stderr=subprocess.PIPE, text=True) as process:
            for line in process.stderr or ():
                said += line
                if "trying again for" in line:
                    double.fails = None
        found = client.read_flow_run(run_id).state
    assert process.returncode == code, said
    assert double.n_failed.total() > 1, "neither was taken"
    assert found is not None
    assert found.type.value == state
    assert "trying again for" in said
    if code == 0:
        assert runs_of(tmp_path / "lake")["outcome"].to_list() == ["published"]


def test_an_event_is_sent_without_asking_the_server(double: FailingPrefect) -> None:
    """Its sending stands where the run's own error is under way."""

    def sends() -> list[str]:
        double.fails = re.compile(".")
        try:
            return send("away", datetime.now(UTC).date(), [Alert(PUBLISHED, {"says": "it is there"})])
        finally:
            double.fails = None

    assert flow(name="sends-while-away")(sends)() == [PUBLISHED]
