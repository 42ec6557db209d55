"""A canary in the place of each secret, in runs that end well and in runs that fail; then every place that keeps is searched."""

import asyncio
import contextlib
import io
import json
import logging
import os
import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import duckdb
import pyarrow.parquet as pq
import pytest
from aiohttp import web
from PIL import Image
from prefect import flow, get_run_logger, task
from prefect.settings import PREFECT_LOCAL_STORAGE_PATH

from flows.cli import run
from flows.observability import redaction
from flows.observability.progress import shown_progress
from tests.support.servers.prefect_server import RunningPrefect, shown_by

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
STARTED_S = time.time()
BENCHMARK = """\
name = "{name}"
{ledger}
[[sources]]
reader = "manifest"
path = "pictures/m.jsonl"
model = "m"
checkpoint = "c"
[[rubrics]]
id = "alignment"
{judges}
[limits]
deadline_s = 0.5
attempts_per_request = 2
[gate]
min_coverage = 0.0
[nightly]
schedule = "0 2 * * *"
[ratings]
dimension = "score"
[recorded]
columns = {{ judge_model = "judge" }}
"""


JUDGE = """
[[judges]]
model = "{behaviour}"
mode = "{mode}"
base_url = "{url}"
api_key_env = "PAINTERS_PASS"
"""


@dataclass(frozen=True)
class Case:
    """A run: how the judges behave, the exit code, what stands before its host, in its query, as its ledger."""

    behaviours: tuple[str, ...]  # a judge for each
    code: int
    login: str = ""
    query: str = ""
    ledger: str = ""
    mode: str = "online"
    key: str = "zq7-{canary}-key"
    command: str = "run b.toml --run-date 2026-01-02"


AWAY = "postgresql://salon:{canary}@127.0.0.1:1/salon"
CASES = {
    "key in the reply": Case(("echoes in the answer",), 0),
    "every way to fail": Case(
        ("500", "200 cut", "500 cut", "307", "sleeps"), 0, query="?api_key={canary}", key="zq7+/{canary}/=="
    ),
    "401 with the key": Case(("401",), 3),
    "403 in HTML": Case(("403 html",), 3),
    "batches refused with the key": Case(("401 cut",), 3, mode="batch"),
    "password in the address": Case(("answers",), 2, login="painter:{canary}@"),
    "password in a broken address": Case(("answers",), 2, login="painter:{canary}/{canary}@"),
    "key no header can hold": Case(("answers",), 2, key="zq7\n{canary}"),
    "password of the ledger": Case(("answers",), 3, ledger=AWAY),
    "password of a ledger without a driver": Case(("answers",), 2, ledger="nosuch://salon:{canary}@127.0.0.1/salon"),
    "plan": Case(("401",), 0, command="plan b.toml"),
    "night refused": Case(("401",), 3, command="nightly b.toml"),
    "backfill refused": Case(("401",), 3, command="backfill b.toml --all --run-date 2026-01-02"),
    "probe refused": Case(("401",), 3, command="probe-injection b.toml --samples 1"),
    "import into a ledger that is away": Case(("answers",), 3, ledger=AWAY, command="import b.toml --replies recorded.jsonl"),
    "agreement with a ledger that is away": Case(("answers",), 3, ledger=AWAY, command="agreement b.toml --ratings people.csv"),
    "anchors of a file with a password": Case(("answers",), 2, login="painter:{canary}@", command="anchors freeze b.toml"),
}
AFTERWARDS = {
    "explain m/c/alignment/score --json": 0,
    "table --format csv": 0,
    "verify {publication}": 0,
    "anchors freeze b.toml": 0,
    "nightly b.toml --check --run-date 2026-01-02": 1,
    "backfill b.toml --list": 0,
    "agreement b.toml --ratings people.csv": 0,
    "import b.toml --replies recorded.jsonl": 2,  # no such judge was asked
}
"""Commands over what the run with the echo left, and how each ends."""
PEOPLE = "item_id,rating\none,4\n"
RECORDED = '{"image": "a.png", "judge": "answers", "reply": "Score: 4"}\n'
BEHAVES: dict[str, tuple[int, str, str]] = {
    "401": (401, "application/json", '{"error": {"message": "Incorrect key provided: %s. See", "code": "invalid_api_key"}}'),
    "403 html": (403, "text/html", "<html>Who is %s?</html>"),
    "500": (500, "application/json", '{"error": {"message": "worker died holding %s", "type": "server_error"}}'),
    "200 html": (200, "text/html", "%s<html>"),
    "200 cut": (200, "text/html", 62 * "-" + "%s"),  # of 80 characters that are quoted the last are the canary's
    "500 cut": (500, "text/plain", 371 * "-" + "%s"),  # of 390, behind "HTTP 500: "
    "401 cut": (401, "text/plain", 371 * "-" + "%s"),
}  # fmt: skip


@dataclass
class Found:
    """Everything one run left: a name for each place, and what stands there."""

    code: int
    places: dict[str, bytes] = field(default_factory=dict)
    further: dict[str, int] = field(default_factory=dict)  # exit codes of the commands afterwards


def canary_of(name: str) -> str:
    """A canary for each case, so that a hit names the case."""
    return f"canary{list(CASES).index(name):02}Xe5f2"


class Echo:
    """A judge that repeats, one way or the other, all the secrets a request came with. The way is the first part of the path."""

    def __init__(self) -> None:
        self.n_asked = 0
        self._loop, ready = asyncio.new_event_loop(), threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(ready,), daemon=True)
        self._thread.start()
        assert ready.wait(60)

    def _serve(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/{way}/{rest:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None)
        self._loop.run_until_complete(runner.setup())
        self._loop.run_until_complete(web.TCPSite(runner, "127.0.0.1", 0).start())
        self.port = runner.addresses[0][1]
        ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())
        self._loop.close()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.n_asked += request.method == "POST"
        way = request.match_info["way"]
        said = request.headers.get("Authorization", "").removeprefix("Bearer ") + request.query_string
        if b"answered amid failures" in await request.read():
            way = "answers"
        if way == "sleeps":
            await asyncio.sleep(1)
        if way == "307":
            return web.Response(status=307, headers={"Location": f"http://127.0.0.1:{self.port}/x?again={quote(said, safe='')}"})
        if way in BEHAVES:
            status, kind, text = BEHAVES[way]
            return web.Response(status=status, text=text % said, content_type=kind)
        text = f"Reasoning: {said}\nScore: 4" if way == "echoes in the answer" else "Reasoning: all.\nScore: 4"
        model = said[:150] if way == "echoes in the answer" else "echo-1"
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return web.json_response({"model": model, "choices": [choice], "usage": {"prompt_tokens": 5, "completion_tokens": 5}})

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, prefect_server: RunningPrefect) -> Iterator[dict[str, Found]]:
    """Every case run once, and what it left. Prefect's database is read once, after the last of them."""
    echo = Echo()
    before = Path.cwd()
    try:
        with shown_by(prefect_server.api):
            cases = CASES.items()
            yield {name: _run_case(case, canary_of(name), echo, tmp_path_factory.mktemp("secrets")) for name, case in cases}
    finally:
        os.chdir(before)
        echo.close()


def _run_case(case: Case, canary: str, echo: Echo, folder: Path) -> Found:
    (folder / "pictures").mkdir()
    Image.new("RGB", (16, 16), (9, 9, 9)).save(folder / "pictures" / "a.png")
    rows = [{"image": "a.png", "prompt": "a grey square", "item_id": "one"}]
    if len(case.behaviours) > 1:  # with no answer at all a judge would be down, and the run end with its first word
        rows.append({"image": "a.png", "prompt": "answered amid failures", "item_id": "two"})
    (folder / "pictures" / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "b.toml").write_text(_benchmark(case, echo.port).replace("{name}", canary[:8]).replace("{canary}", canary))
    (folder / "people.csv").write_text(PEOPLE)
    (folder / "recorded.jsonl").write_text(RECORDED)
    further: dict[str, int] = {}
    log, out, err = io.StringIO(), io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    os.environ["SALON_STORE_WAIT_S"] = "0.2"
    os.environ["PAINTERS_PASS"] = case.key.replace("{canary}", canary)
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(case.command.split())
            if code == 0 and case.command.startswith("run") and len(case.behaviours) == 1:
                (publication,) = {path.parent.name for path in folder.glob("lake/publish/v1/*/*/manifest.json")}
                further = {said: run(said.format(publication=publication).split()) for said in AFTERWARDS}
    finally:
        logging.getLogger().removeHandler(handler)
        del os.environ["PAINTERS_PASS"], os.environ["SALON_STORE_WAIT_S"]
    places = {"stdout": out.getvalue().encode(), "stderr": err.getvalue().encode(), "log": log.getvalue().encode()}
    return Found(code, places | dict(_kept(folder / "lake")), further)


def _benchmark(case: Case, port: int) -> str:
    urls = {way: f"http://{case.login}127.0.0.1:{port}/{quote(way)}/v1{case.query}" for way in case.behaviours}
    judges = "".join(JUDGE.format(behaviour=way, url=url, mode=case.mode) for way, url in urls.items())
    ledger = f'ledger = "{case.ledger}"' if case.ledger else ""
    return BENCHMARK.format(name="{name}", ledger=ledger, judges=judges)


def _kept(lake: Path) -> Iterator[tuple[str, bytes]]:
    """Every file below the lake as bytes, and the values of those that are packed or paged."""
    for path in sorted(path for path in lake.rglob("*") if path.is_file()):
        name = str(path.relative_to(lake))
        yield name, path.read_bytes()
        if path.suffix == ".parquet":
            table = pq.read_table(path)
            yield f"values of {name}", f"{table.schema.metadata} {table.to_pydict()}".encode()
        elif path.suffix == ".db":
            yield f"values of {name}", _dumped(path)
        elif path.suffix == ".duckdb":
            with duckdb.connect(str(path), read_only=True) as database:
                names = [row[0] for row in database.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
                rows = {table: database.execute(f'SELECT * FROM "{table}"').fetchall() for table in names}
            yield f"values of {name}", repr(rows).encode()


def _dumped(database: Path) -> bytes:
    """Every value of every table; sqlite's own dump would write the binary ones in hexadecimal."""
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return repr({table: connection.execute(f'SELECT * FROM "{table}"').fetchall() for table in tables}).encode()


PICKLE = re.compile(rb"\x80[\x02-\x05]")  # how one begins: with its protocol
IN_BASE64 = re.compile(rb"[\"'>]gA[IJM-S][A-Za-z0-9+/]{6,}")


@pytest.fixture(scope="module")
def prefect_storage(found: dict[str, Found]) -> dict[str, bytes]:
    """The files in which Prefect keeps results, so far as the runs made them."""
    folder = Path(PREFECT_LOCAL_STORAGE_PATH.value())
    return {str(path): path.read_bytes() for path in folder.glob("*") if path.is_file() and path.stat().st_mtime >= STARTED_S}


@pytest.fixture(scope="module")
def prefect_database(found: dict[str, Found], prefect_server: RunningPrefect) -> bytes:
    """Prefect's whole database, once what the runs told it has arrived."""
    path = prefect_server.home / "prefect.db"
    _log_and_raise("marks the end of the runs")
    dumped, deadline_s = b"", time.monotonic() + 20
    while b"marks the end of the runs, said by a task" not in dumped and time.monotonic() < deadline_s:
        time.sleep(0.3)
        dumped = _dumped(path)
    assert b"marks the end of the runs, said by a task" in dumped
    return dumped + path.read_bytes() + path.with_name(path.name + "-wal").read_bytes()


@pytest.mark.parametrize("name", CASES)
def test_a_canary_is_nowhere(found: dict[str, Found], name: str) -> None:
    """The places are the screen, the log, the ledger, Parquet, Data Docs, the tables, the page, the DuckDB file."""
    hits = [place for place, content in found[name].places.items() if canary_of(name).encode() in content]
    assert hits == []
    assert found[name].code == CASES[name].code, found[name].places["stderr"].decode()


def test_what_was_searched_is_what_there_is(found: dict[str, Found]) -> None:
    """A search of an empty place finds nothing: each kind of place is there, and holds what it should."""
    places = found["key in the reply"].places
    assert {Path(place).suffix for place in places} >= {".parquet", ".db", ".duckdb", ".html", ".csv", ".md", ".tex", ".json"}
    assert any("data_docs" in place for place in places)
    removed = [place for place, content in places.items() if b"[key removed]" in content]
    assert any(place.startswith("values of ledger.db") for place in removed), "the judge's echo is not in the ledger at all"
    for name in ("401 with the key", "night refused", "probe refused"):
        assert "HTTP 401: invalid_api_key: Incorrect key provided: [" in found[name].places["stderr"].decode()
    assert found["key in the reply"].further == AFTERWARDS, found["key in the reply"].places["stderr"].decode()


def test_prefect_keeps_the_words_of_errors_alone_as_json(found: dict[str, Found], prefect_storage: dict[str, bytes]) -> None:
    """And neither a canary nor anything else of the runs, nor a pickle."""
    kept = [json.loads(content) for content in prefect_storage.values()]
    assert all(set(said) == {"__exc_type__", "message"} for said in kept if "__exc_type__" in said)
    assert any("[removed]" in str(said) or "[key removed]" in str(said) for said in kept), "what failed is to be there"
    assert [name for name in CASES if canary_of(name).encode() in b"".join(prefect_storage.values())] == []
    stored = {name: content for name, content in found["key in the reply"].places.items() if not name.startswith("values of ")}
    pickled = (name for name, content in (stored | prefect_storage).items() if PICKLE.match(content) or IN_BASE64.search(content))
    assert list(pickled) == []


def test_no_canary_is_in_prefects_database(prefect_database: bytes) -> None:
    hits = [name for name in CASES if canary_of(name).encode() in prefect_database]
    assert hits == []
    assert prefect_database.count(b"canary00") > 3, "the names of the runs are to be there"


@task
def _say(what: str) -> None:
    get_run_logger().warning("%s, said by a task", what)


@flow
def _secretive(what: str) -> None:
    with redaction.redacted_errors():
        logger = get_run_logger()
        _say(what)
        try:
            raise ValueError(what)  # noqa: TRY301
        except ValueError:
            logger.exception("caught %s", what)
            logging.getLogger("prefect.someone").exception("caught %s", what)
        raise RuntimeError(f"raised {what}") from OSError(what)


def _log_and_raise(what: str) -> str:
    with pytest.raises(RuntimeError) as raised:
        _secretive(what)
    return f"{raised.value} {raised.value.__cause__}"


def test_a_canary_in_an_exception_reaches_no_log_and_no_state(monkeypatch: pytest.MonkeyPatch, prefect_database: bytes) -> None:
    monkeypatch.setenv("PAINTERS_PASS", "zq7-canary-in-an-exception")
    redaction.watch(["PAINTERS_PASS"])
    said = _log_and_raise(os.environ["PAINTERS_PASS"][:0] + "holds zq7-canary-in-an-exception")
    assert said == "raised holds [removed] holds [removed]"


SAID = {
    "the value of a named variable": ("key c4n/ary+9 it is", "key [removed] it is"),
    "in an address": ("got ?x=c4n%2Fary%2B9&y=1", "got ?x=[removed]&y=1"),
    "escaped in JSON": (r"c4n\/ary+9, c4n/ary\u002B9, c4n\u002fary+9", "[removed], [removed], [removed]"),
    "escaped in HTML": ("<b>c4n&#x2F;ary&#43;9</b>", "<b>[removed]</b>"),
    "in small letters in an address": ("c4n%2fary%2b9", "[removed]"),
    "a password in an address": ("http://user:p/w@d@host:80/v1", "http://[removed]@host:80/v1"),
    "a token in an address": ("https://t0ken@host/x", "https://[removed]@host/x"),
    "a query": ("GET /v1?api_key=abc&n=1", "GET /v1?api_key=[removed]&n=1"),
    "a header": ("authorization: Basic dXNlcjpwYXNz", "authorization: Basic [removed]"),
    "a key by its looks": ("with sk-proj-abc123XYZ.", "with [removed]."),
    "no secret": ("port http://h:80/a?mail=me@x max_tokens=600 a basic colour", None),
    "a value that is a word": ("none of them", None),
}


@pytest.mark.parametrize("name", SAID)
def test_what_is_taken_out_of_a_text(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("SOME_TOKEN", "c4n/ary+9")
    monkeypatch.setenv("OTHER_API_KEY", "none")
    text, clean = SAID[name]
    assert redaction.redacted(text) == (text if clean is None else clean)


LOGGED: dict[str, Callable[[logging.Logger, str], None]] = {
    "message": lambda log, key: log.warning("it is " + key),  # noqa: G003
    "argument": lambda log, key: log.warning("it is %s of %d", key, 3),
    "argument that is no text": lambda log, key: log.warning("it is %s", {"held": key}),
    "beside a command to the terminal": lambda log, key: log.warning("\x1b]52;;aGV5\x07 %s", key),
    "mapping": lambda log, key: log.warning("it is %(key)s", {"key": key}),
    "message whose arguments do not fit": lambda log, key: log.warning("it is %d and %s", key),  # noqa: PLE1206
    "exception": lambda log, key: log.warning("failed", exc_info=ValueError(key)),
    "cause of an exception": lambda log, key: log.warning("failed", exc_info=_caused_by(key)),
}


def _caused_by(key: str) -> Exception:
    error = RuntimeError("of something else")
    error.__cause__ = OSError(13, key)
    return error


@pytest.mark.parametrize("name", LOGGED)
def test_every_way_to_log(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str) -> None:
    """By a logger and a handler that were there before, and know nothing of it."""
    monkeypatch.setenv("SOME_TOKEN", "zq7-canary-logged")
    log, stream = logging.getLogger(f"elsewhere.{name}"), io.StringIO()
    log.addHandler(logging.StreamHandler(stream))
    redaction.install()
    LOGGED[name](log, "zq7-canary-logged")
    assert "canary" not in stream.getvalue() + capsys.readouterr().err
    assert redaction.REMOVED in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


def test_a_note_above_the_bars_is_said_without_it(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_progress() as reporter:
        reporter.say("the server does not answer (https://nightly:hunter22@prefect.example/api)")
    said = " ".join(capsys.readouterr().err.split())
    assert said.startswith("note: the server does not answer")
    assert "hunter22" not in said


def test_an_uncaught_error_is_printed_without_it(tmp_path: Path) -> None:
    """In a process of its own, in its main thread and in another: what the interpreter itself prints at the end."""
    program = tmp_path / "program.py"
    program.write_text(
        "import os, threading\n"
        "from flows.observability import redaction\n"
        "redaction.install()\n"
        "def fail(): raise ValueError('held ' + os.environ['SOME_TOKEN'])\n"
        "other = threading.Thread(target=fail, name='other'); other.start(); other.join()\n"
        "fail()\n"
    )
    environment = os.environ | {"SOME_TOKEN": "zq7-canary-uncaught", "PYTHONPATH": str(ROOT)}
    ended = subprocess.run([sys.executable, str(program)], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "canary" not in ended.stdout + ended.stderr.replace("os.environ['SOME_TOKEN']", "")
    assert ended.stderr.count("ValueError: held [removed]") == 2
