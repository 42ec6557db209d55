"""`salon doctor` from outside: each part broken in turn shows its line, what to do, and the exit code."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import prefect
import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from tests.flows.flow_support import Said
from tests.flows.nights.night_world import World, n_billed, write_benchmark
from tests.support.prefect_server import RunningPrefect, end, running_prefect

ROOT = Path(__file__).parents[3]
Salon = Callable[..., Said]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    World(folder).make(1)
    return folder / "made"


@pytest.fixture
def file(tmp_path: Path, made: Path, judge_url: str) -> Path:
    (tmp_path / "made").symlink_to(made)
    return write_benchmark(tmp_path, judge_url)


@pytest.fixture
def _no_server() -> Iterator[None]:
    with temporary_settings(restore_defaults={PREFECT_API_URL}):
        yield


def lines(said: str) -> dict[str, str]:
    """What is said of each thing, by its name: how it is, and what was found."""
    found = {}
    for line in said.splitlines():
        state, what = line[:8].strip(), line[8:24].strip()
        if state in {"ok", "wrong", "skipped"}:
            found[what] = f"{state}: {line[24:]}"
    return found


@pytest.mark.usefixtures("_no_server")
def test_what_can_be_looked_at_without_a_file(salon: Salon) -> None:
    said = salon("doctor")
    found = lines(said.out)
    assert said.code == 0
    assert "no server: nights need cron or a server" in found["Prefect server"]
    assert found["disk"].startswith("ok: ")
    assert {found[what][:8] for what in ("scheduler", "worker", "ledger", "lake", "key", "judge")} == {"skipped:"}


@pytest.mark.usefixtures("_no_server")
def test_before_and_after_a_run_all_is_well_and_nothing_is_left_behind(salon: Salon, file: Path, judge_url: str) -> None:
    before, n_before = sorted(file.parent.iterdir()), n_billed(judge_url)
    said = salon("doctor", file)
    assert said.code == 0, said.out
    assert sorted(file.parent.iterdir()) == before, "neither a lake nor a ledger is made by looking"
    assert n_billed(judge_url) == n_before, "nobody is asked unless it is wanted"
    assert salon("run", file).code == 0
    stored = {path for path in (file.parent / "lake").rglob("*") if path.is_file()}
    found = lines(salon("doctor", file).out)
    assert found["lake and ledger"] == "ok: 24 of 24 replies of the newest snapshot are in the ledger"
    assert found["ledger"].endswith("ledger.db can be written")
    assert {path for path in (file.parent / "lake").rglob("*") if path.is_file()} == stored


@pytest.mark.usefixtures("_no_server")
def test_a_ledger_that_is_gone_and_one_that_is_another(salon: Salon, file: Path) -> None:
    assert salon("run", file).code == 0
    for path in (file.parent / "lake").glob("ledger.db*"):
        path.rename(file.parent / path.name)
    said = salon("doctor", file)
    assert (said.code, lines(said.out)["lake and ledger"][:6]) == (3, "wrong:")
    (file.parent / "lake" / "ledger.db").write_bytes(b"no ledger" * 200)
    said = salon("doctor", file)
    assert said.code == 3
    assert "is not a Salon ledger" in lines(said.out)["ledger"]


@pytest.mark.usefixtures("_no_server")
def test_a_ledgers_server_that_is_down(salon: Salon, file: Path) -> None:
    file.write_text(f'ledger = "postgresql+psycopg://salon@127.0.0.1:9/ledger"\n{file.read_text()}')
    said = salon("doctor", file)
    assert said.code == 3
    assert lines(said.out)["ledger"].startswith("wrong: ")
    assert lines(said.out)["ledger"].endswith("what was stored is kept"), "what to do is not cut off"
    assert lines(said.out)["lake"].startswith("ok: ")


@pytest.mark.usefixtures("_no_server")
def test_a_lake_that_cannot_be_written(salon: Salon, file: Path) -> None:
    (file.parent / "in_the_way").write_text("a file")
    file.write_text(f'lake = "in_the_way/lake"\nledger = "sqlite:///{file.parent}/ledger.db"\n{file.read_text()}')
    said = salon("doctor", file)
    assert said.code == 3
    assert lines(said.out)["lake"].startswith("wrong: ")
    assert "check the folder, its permissions" in said.out
    assert lines(said.out)["disk"].startswith("ok: "), "what comes after is told all the same"


@pytest.mark.usefixtures("_no_server")
def test_a_key_is_told_by_its_name(salon: Salon, tmp_path: Path, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "made").symlink_to(made)
    file = write_benchmark(tmp_path, "https://judge.example.invalid/v1", judge='api_key_env = "EXAMPLE_JUDGE_KEY"')
    said = salon("doctor", file)
    assert said.code == 3
    assert lines(said.out)["key"].startswith("wrong: EXAMPLE_JUDGE_KEY is not set")
    assert "example-judge-key" in said.out, "the name of the Secret block that may stand for it"
    monkeypatch.setenv("EXAMPLE_JUDGE_KEY", "sk-canary-71fe")
    said = salon("doctor", file)
    assert (said.code, lines(said.out)["key"]) == (0, "ok: EXAMPLE_JUDGE_KEY is set, in the environment")
    assert "canary" not in said.out + said.err


@pytest.mark.usefixtures("_no_server")
def test_a_judge_is_asked_one_sample_where_it_is_wanted(salon: Salon, file: Path, judge_url: str) -> None:
    n_before = n_billed(judge_url)
    said = salon("doctor", file, "--ask")
    assert said.code == 0, said.out
    assert "Score: " in lines(said.out)["judge"]
    assert n_billed(judge_url) == n_before + 1
    file.write_text(file.read_text().replace(judge_url, "http://127.0.0.1:9/v1"))
    said = salon("doctor", file, "--ask")
    assert said.code == 3
    assert "unreachable" in lines(said.out)["judge"]


@pytest.mark.usefixtures("_no_server")
def test_a_mistake_in_the_file_is_the_users(salon: Salon, file: Path) -> None:
    file.write_text(file.read_text().replace("[limits]", "[limit]"))
    said = salon("doctor", file)
    assert (said.code, said.out) == (2, "")


class OldServer(BaseHTTPRequestHandler):
    """A Prefect server of an earlier release whose clock stands, with nothing deployed."""

    version = "3.0.1"

    def do_GET(self) -> None:
        if self.path.endswith("/admin/version"):
            self._answer(self.version)
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer([])

    def _answer(self, found: Any) -> None:
        body = json.dumps(found).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def date_time_string(self, timestamp: float | None = None) -> str:
        return super().date_time_string((timestamp or time.time()) - 3650)

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("version", ["3.0.1", prefect.__version__])
def test_a_server_of_another_release_or_another_time(salon: Salon, version: str) -> None:
    served = HTTPServer(("127.0.0.1", 0), type("Served", (OldServer,), {"version": version}))
    threading.Thread(target=served.serve_forever, daemon=True).start()
    try:
        with temporary_settings({PREFECT_API_URL: f"http://127.0.0.1:{served.server_port}/api"}):
            said = salon("doctor")
    finally:
        served.shutdown()
        served.server_close()
    found = lines(said.out)
    assert said.code == 3
    assert found["Prefect server"].startswith("ok: " if version == prefect.__version__ else "wrong: ")
    assert re.fullmatch(r"wrong: 36\d\d s ahead of the server", found["clock"])
    assert "salon deploy FILE" in said.out


def test_what_answers_there_is_no_prefect_server(salon: Salon, judge_url: str) -> None:
    with temporary_settings({PREFECT_API_URL: judge_url}):
        said = salon("doctor")
    assert said.code == 3
    assert "does not answer as one" in lines(said.out)["Prefect server"]
    assert lines(said.out)["disk"].startswith("ok: ")


def ask(server: RunningPrefect, file: Path) -> tuple[int, dict[str, str]]:
    command, env = [sys.executable, "-m", "flows", "doctor", str(file)], os.environ | server.environment
    said = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=180, check=False)
    return said.returncode, lines(said.stdout)


def deploy(server: RunningPrefect, file: Path) -> None:
    command = [sys.executable, "-m", "flows", "deploy", str(file)]
    subprocess.run(command, cwd=ROOT, env=os.environ | server.environment, check=True, capture_output=True, timeout=180)


@pytest.mark.slow
def test_a_server_with_and_without_a_worker_and_stopped(file: Path, tmp_path: Path, prefect_tables: Path) -> None:
    with running_prefect(tmp_path, prefect_tables) as server, (tmp_path / "worker.log").open("wb") as log:
        deploy(server, file)
        code, found = ask(server, file)
        assert code == 3
        assert found["worker"] == "wrong: none is alive on work pool salon-process"
        assert found["scheduler"].startswith("ok: nights-nightly: next run ")
        assert found["clock"].startswith("ok: ")
        command = [sys.executable, "-m", "flows", "worker"]
        worker = subprocess.Popen(command, cwd=ROOT, env=server.environment, stdout=log, stderr=log, start_new_session=True)
        try:
            code, found = _until(lambda: ask(server, file), lambda said: said[0] == 0)
            assert code == 0, f"{found}\n{(tmp_path / 'worker.log').read_text()[-2000:]}"
            assert found["worker"].startswith("ok: 1 alive on work pool salon-process")
        finally:
            worker.send_signal(signal.SIGINT)
            end(worker, 60)
        server.stop()
        code, found = ask(server, file)
        assert code == 3
        assert "does not answer" in found["Prefect server"]


@pytest.mark.slow
def test_a_scheduler_that_does_not_tick(file: Path, tmp_path: Path, prefect_tables: Path) -> None:
    """Everything but the scheduler's traces is as it should be: the deployment is ready, its schedule active."""
    with running_prefect(tmp_path, prefect_tables, PREFECT_SERVER_SERVICES_SCHEDULER_ENABLED="false") as server:
        deploy(server, file)
        code, found = ask(server, file)
    assert code == 3
    assert found["Prefect server"].startswith("ok: ")
    assert found["scheduler"] == "wrong: nights-nightly has an active schedule and no run in the future: no night will come"


def _until(look: Callable[[], Any], is_so: Callable[[Any], bool]) -> Any:
    """What is seen once it is so, or after a minute and a half."""
    give_up_s = time.monotonic() + 90
    while not is_so(found := look()) and time.monotonic() < give_up_s:
        time.sleep(0.5)
    return found
