"""`salon doctor` from outside: each part broken in turn shows its line, what to do, and the exit code.

A real Prefect server's parts: tests/flows/nights/test_a_night_comes_by_itself.py.
"""

import json
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import prefect
import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.doctor.stores import first_replies
from schemas.tables.stored import REPLIES
from tasks.lake.identity import lake_id
from tasks.lake.reading import Lake
from tests.flows.flow_support import Said, findings
from tests.support.night_world import World, n_billed, write_benchmark
from tests.support.servers.provider import Play, Provider

pytestmark = pytest.mark.slow

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


@pytest.mark.usefixtures("_no_server")
def test_what_can_be_looked_at_without_a_file(salon: Salon) -> None:
    said = salon("doctor")
    found = findings(said.out)
    assert said.code == 0
    assert "no server: nights need cron or a server" in found["Prefect server"]
    assert found["disk"].startswith("ok: ")
    assert {found[what][:8] for what in ("scheduler", "worker", "sources", "lake", "key", "judge")} == {"skipped:"}


@pytest.mark.usefixtures("_no_server")
def test_before_and_after_a_run_all_is_well_and_nothing_is_left_behind(salon: Salon, file: Path, judge_url: str) -> None:
    before, n_before = sorted(file.parent.iterdir()), n_billed(judge_url)
    said = salon("doctor", file)
    assert said.code == 0, said.out
    assert sorted(file.parent.iterdir()) == before, "neither a lake nor a ledger is made by looking"
    assert n_billed(judge_url) == n_before, "nobody is asked unless it is wanted"
    assert salon("run", file).code == 0
    stored = {path for path in (file.parent / "lake").rglob("*") if path.is_file()}
    found = findings(salon("doctor", file).out)
    assert found["lake and ledger"] == "ok: 24 of 24 replies of the newest snapshot are in the ledger"
    assert found["ledger"].endswith("ledger.db can be written")
    assert {path for path in (file.parent / "lake").rglob("*") if path.is_file()} == stored


@pytest.mark.usefixtures("_no_server")
def test_the_replies_of_every_part_are_looked_for(salon: Salon, tmp_path: Path, judge_url: str) -> None:
    World(tmp_path).make(1)
    World(tmp_path).make(2)
    file = write_benchmark(tmp_path, judge_url)
    assert salon("run", file).code == 0
    assert (
        findings(salon("doctor", file).out)["lake and ledger"] == "ok: 48 of 48 replies of the newest snapshot are in the ledger"
    )
    lake = Lake(tmp_path / "lake")
    (snapshot,) = lake.keys(REPLIES)
    assert [(len(keys), is_all) for keys, is_all in (first_replies(lake, snapshot, most) for most in (47, 48))] == [
        (47, False), (48, True),
    ]  # fmt: skip


@pytest.mark.usefixtures("_no_server")
def test_a_ledger_that_is_gone_and_one_that_is_another(salon: Salon, file: Path) -> None:
    assert salon("run", file).code == 0
    for path in (file.parent / "lake").glob("ledger.db*"):
        path.rename(file.parent / path.name)
    said = salon("doctor", file)
    assert (said.code, findings(said.out)["lake and ledger"][:6]) == (3, "wrong:")
    (file.parent / "lake" / "ledger.db").write_bytes(b"no ledger" * 200)
    said = salon("doctor", file)
    assert said.code == 3
    assert "is not a Salon ledger" in findings(said.out)["ledger"]


@pytest.mark.usefixtures("_no_server")
def test_a_ledger_damaged_where_the_checks_do_not_read(salon: Salon, file: Path) -> None:
    assert salon("run", file).code == 0
    path = file.parent / "lake" / "ledger.db"
    with closing(sqlite3.connect(path)) as ledger:
        ledger.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (root,) = ledger.execute("SELECT rootpage FROM sqlite_master WHERE name = 'attempts'").fetchone()
        (n_bytes,) = ledger.execute("PRAGMA page_size").fetchone()
    content = bytearray(path.read_bytes())
    content[(root - 1) * n_bytes : root * n_bytes] = bytes(byte ^ 0xFF for byte in content[(root - 1) * n_bytes : root * n_bytes])
    path.write_bytes(content)
    said = salon("doctor", file)
    assert (said.code, findings(said.out)["lake and ledger"][:3]) == (3, "ok:"), said.out
    assert findings(said.out)["ledger"].startswith("wrong: ")
    assert "the file is damaged. Restore it from a backup" in said.out


@pytest.mark.usefixtures("_no_server")
def test_a_ledgers_server_that_is_down(salon: Salon, file: Path) -> None:
    file.write_text(f'ledger = "postgresql+psycopg://salon@127.0.0.1:9/ledger"\n{file.read_text()}')
    said = salon("doctor", file)
    assert said.code == 3
    assert findings(said.out)["ledger"].startswith("wrong: ")
    assert findings(said.out)["ledger"].endswith("what was stored is kept"), "what to do is not cut off"
    assert findings(said.out)["lake"].startswith("ok: ")


@pytest.mark.usefixtures("_no_server")
def test_a_lake_that_cannot_be_written(salon: Salon, file: Path) -> None:
    (file.parent / "in_the_way").write_text("a file")
    file.write_text(f'lake = "in_the_way/lake"\nledger = "sqlite:///{file.parent}/ledger.db"\n{file.read_text()}')
    said = salon("doctor", file)
    assert said.code == 3
    assert findings(said.out)["lake"].startswith("wrong: ")
    assert "check the folder, its permissions" in said.out
    assert findings(said.out)["disk"].startswith("ok: "), "what comes after is told all the same"


@pytest.mark.usefixtures("_no_server")
def test_a_lake_that_a_later_release_writes(salon: Salon, file: Path, judge_url: str) -> None:
    """The doctor says so, and what writes stops before it asks or writes anything."""
    lake = file.parent / "lake"
    lake.mkdir()
    (lake / "lake.json").write_text(json.dumps({"lake_id": lake_id(file.parent / "other"), "release": "99.0"}))
    n_before, told = n_billed(judge_url), "Salon 99.0 has written into the lake "
    said = salon("doctor", file)
    assert (said.code, findings(said.out)["lake"].startswith(f"wrong: {told}")) == (3, True), said
    for command in (("run",), ("nightly",), ("backfill", "--all"), ("plan",)):
        said = salon(command[0], file, *command[1:])
        assert (said.code, told in " ".join(said.err.split())) == (3, True), said
    assert n_billed(judge_url) == n_before
    assert {path.name for path in lake.iterdir()} <= {"lake.json", "ledger.db", "failed", "staging"}  # a night notes its failure


@pytest.mark.usefixtures("_no_server")
def test_money_that_a_night_cannot_keep_to_is_told_before_in_the_same_words(
    salon: Salon, tmp_path: Path, made: Path, judge_url: str
) -> None:
    (tmp_path / "made").symlink_to(made)
    file = write_benchmark(tmp_path, judge_url, models=("eye",), limits="max_usd = 50")
    words = (
        "limits.max_usd = 50 cannot be kept: the length of a reply of eye is not limited; limit it, for instance with parameters "
        "= { max_tokens = 600 }"
    )
    for command, code in (("doctor", 3), ("plan", 0), ("nightly", 2)):
        said = salon(command, file)
        assert (said.code, words in " ".join((said.out + said.err).split())) == (code, True), said
    bounded = write_benchmark(
        tmp_path, judge_url, models=("eye",), limits="max_usd = 50", judge="parameters = { max_tokens = 9 }"
    )
    assert findings(salon("doctor", bounded).out)["budget"] == "ok: limits.max_usd = 50 can be kept"


@pytest.mark.usefixtures("_no_server")
def test_a_key_is_told_by_its_name(salon: Salon, tmp_path: Path, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "made").symlink_to(made)
    file = write_benchmark(tmp_path, "https://judge.example.invalid/v1", judge='api_key_env = "EXAMPLE_JUDGE_KEY"')
    said = salon("doctor", file)
    assert said.code == 3
    assert findings(said.out)["key"].startswith("wrong: EXAMPLE_JUDGE_KEY is not set")
    assert "example-judge-key" in said.out, "the name of the Secret block that may stand for it"
    monkeypatch.setenv("EXAMPLE_JUDGE_KEY", "sk-canary-71fe")
    said = salon("doctor", file)
    assert (said.code, findings(said.out)["key"]) == (0, "ok: EXAMPLE_JUDGE_KEY is set, in the environment")
    assert "canary" not in said.out + said.err


@pytest.mark.usefixtures("_no_server")
def test_a_judge_is_asked_one_sample_where_it_is_wanted(salon: Salon, file: Path, judge_url: str) -> None:
    n_before = n_billed(judge_url)
    said = salon("doctor", file, "--ask")
    assert said.code == 0, said.out
    assert "Score: " in findings(said.out)["judge"]
    assert n_billed(judge_url) == n_before + 1
    file.write_text(file.read_text().replace(judge_url, "http://127.0.0.1:9/v1"))
    for command in (("doctor", file, "--ask"), ("check", file)):
        said = salon(*command)
        assert said.code == 3
        assert "unreachable" in findings(said.out)["judge"]


@pytest.mark.usefixtures("_no_server")
@pytest.mark.parametrize(
    ("status", "error", "advice"),
    [
        (
            200,
            {"message": "Insufficient credits", "code": 402},
            "top up the account behind the environment variable OPENAI_API_KEY; then ask again",
        ),
        (
            404,
            {"message": "No endpoints found that support image input", "code": 404},
            "name a model that accepts pictures; then ask again",
        ),
    ],
    ids=["an empty account", "no pictures"],
)
def test_what_an_asked_judge_lacks_is_told_with_what_to_do(
    salon: Salon, file: Path, judge_url: str, status: int, error: dict[str, Any], advice: str
) -> None:
    provider = Provider()
    provider.then = Play(status=status, body=json.dumps({"error": error}).encode())
    file.write_text(file.read_text().replace(judge_url, provider.url))
    with closing(provider):
        said = salon("doctor", file, "--ask")
    assert (said.code, findings(said.out)["judge"][:6]) == (3, "wrong:")
    assert advice in " ".join(said.out.split())


@pytest.mark.usefixtures("_no_server")
def test_a_check_asks_each_judge_one_sample_and_looks_at_nothing_else(salon: Salon, file: Path, judge_url: str) -> None:
    n_before, before = n_billed(judge_url), sorted(file.parent.iterdir())
    said = salon("check", file)
    assert said.code == 0, said.out
    assert set(findings(said.out)) == {"key", "judge"}
    assert "Score: " in findings(said.out)["judge"]
    assert n_billed(judge_url) == n_before + 1
    assert sorted(file.parent.iterdir()) == before


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
    found = findings(said.out)
    assert said.code == 3
    assert found["Prefect server"].startswith("ok: " if version == prefect.__version__ else "wrong: ")
    assert re.fullmatch(r"wrong: 36\d\d s ahead of the server", found["clock"])
    assert "salon deploy FILE" in said.out


def test_what_answers_there_is_no_prefect_server(salon: Salon, judge_url: str) -> None:
    with temporary_settings({PREFECT_API_URL: judge_url}):
        said = salon("doctor")
    assert said.code == 3
    assert "does not answer as a Prefect server" in findings(said.out)["Prefect server"]
    assert findings(said.out)["disk"].startswith("ok: ")
