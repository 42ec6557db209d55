"""A store that says nothing, loses an answer or cuts it: what is asked again, for how long, and what is said in the end."""

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.cli import run
from flows.run.begun import Begun, forget_asking, notes, write_note
from flows.run.context import RunContext, open_run
from schemas.errors import StoreError
from tasks.lake.object_store.client import Bucket
from tests.flows.flow_support import findings
from tests.support.night_world import write_benchmark


class Line:
    """What stands between Salon and the store: does as `fault` says with the requests whose first line matches `of`, `n` times.

    `lost`: the store does it, its answer is dropped. `cut`: the end of it is missing. `silent`: nothing is done or said.
    `refused`: 403, with `code`.
    """

    def __init__(self, address: str) -> None:
        at = urlsplit(address)
        self.store = str(at.hostname), int(at.port or 80)
        self.fault, self.of, self.n, self.code = "", "", 0, ""
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def does(self, fault: str, of: str, n: int = 1) -> None:
        self.fault, self.of, self.n = fault, of, n

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=self.listening.accept()[:1], daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            request = _whole(client)
            head = request.partition(b"\r\n")[0].decode()
            fault = self.fault if self.n and re.search(self.of, head) else ""
            self.n -= bool(fault)
            if fault == "silent":
                time.sleep(20)
            elif fault == "refused":
                body = f"<?xml version='1.0'?><Error><Code>{self.code}</Code></Error>" if self.code else ""
                head = f"HTTP/1.1 403 Forbidden\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
                client.sendall((head + body).encode())
            else:
                answer = self._of_store(request)
                client.sendall({"lost": b"", "cut": answer[:-20]}.get(fault, answer))

    def _of_store(self, request: bytes) -> bytes:
        head, _, body = request.partition(b"\r\n\r\n")
        with socket.create_connection(self.store) as store:
            store.sendall(re.sub(rb"(?i)\r\nconnection:[^\r]*", b"", head) + b"\r\nConnection: close\r\n\r\n" + body)
            return b"".join(iter(lambda: store.recv(65_536), b""))


def _whole(client: socket.socket) -> bytes:
    got = b""
    while b"\r\n\r\n" not in got:
        got += client.recv(65_536)
    length = re.search(rb"(?i)content-length: *(\d+)", got)
    while length and len(got.partition(b"\r\n\r\n")[2]) < int(length[1]):
        got += client.recv(65_536)
    return got


@pytest.fixture
def line(url: str, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    made = Line(endpoint)
    monkeypatch.setenv("AWS_ENDPOINT_URL", made.url)
    monkeypatch.setenv("SALON_STORE_WAIT_S", "3")
    yield made
    made.listening.close()


def test_who_made_an_object_knows_it_where_the_answer_was_lost(url: str, line: Line) -> None:
    """Else a new publication would be another run's, and its alerts nobody's."""
    line.does("lost", "PUT .*manifest")
    assert Bucket(url).create("manifest.json", b"{}")
    assert line.n == 0
    assert not Bucket(url).create("manifest.json", b"{}")


def test_a_deletion_whose_answer_was_cut_is_asked_for_again(url: str, line: Line) -> None:
    bucket = Bucket(url)
    bucket.put("a", b"a")
    line.does("cut", "POST .*delete")
    bucket.delete(["a", "b"])
    assert (line.n, bucket.below("")) == (0, [])


@pytest.mark.parametrize(
    "asked",
    [lambda bucket: bucket.get("a"), lambda bucket: bucket.put("a", b"a"), lambda bucket: bucket.below("")],
    ids=["GET", "PUT", "LIST"],
)
def test_a_store_that_says_nothing_is_waited_for_as_one_that_is_away(
    url: str, line: Line, asked: Callable[[Bucket], None]
) -> None:
    line.does("silent", ".", n=100)
    began = time.monotonic()
    with pytest.raises(StoreError, match=r"or set SALON_STORE_WAIT_S \(3 s now\)"):
        asked(Bucket(url))
    assert time.monotonic() - began < 10


@pytest.fixture
def noted(url: str, line: Line, tmp_path: Path) -> RunContext:
    """A run of a lake in a bucket, which is noted as asking."""
    file = write_benchmark(tmp_path, "http://127.0.0.1:9/v1")
    file.write_text(f'lake = "{url}"\nledger = "sqlite:///{tmp_path}/ledger.db"\n' + file.read_text())
    run = RunContext.of(open_run(file))
    began, sample = datetime.now(UTC), {"dataset_id": "d" * 64, "n_samples": 1, "n_samples_ok": 1, "code_version": "c" * 64}
    write_note(run, Begun.model_validate({"started_at": began, "run_date": began.date(), "asked_by": "run", **sample}), [])
    return run


@pytest.mark.parametrize("of", ["GET .*asking", "POST .*delete"])
def test_a_run_that_has_its_row_does_not_fail_of_its_note(noted: RunContext, line: Line, of: str) -> None:
    line.does("refused", of)
    forget_asking(noted)
    assert line.n == 0
    assert len(list(notes(noted))) == 1
    forget_asking(noted)
    assert list(notes(noted)) == []


def test_a_note_that_its_own_machine_took_away_does_not_come_back_from_another(noted: RunContext, url: str) -> None:
    (stored,) = Bucket(url).below("asking")
    assert len(list(notes(noted))) == 1
    Bucket(url).delete([stored.path])
    assert list(notes(noted)) == []
    assert Bucket(url).below("asking") == []


def test_a_note_of_an_earlier_release_which_stands_here_alone_is_put_into_the_bucket(noted: RunContext, url: str) -> None:
    (stored,) = Bucket(url).below("asking")
    Bucket(url).delete([stored.path])
    here = noted.lake.root / stored.path
    here.rename(here.with_name(here.name.replace(".put.json", ".json")))
    for _ in range(2):
        assert len(list(notes(noted))) == 1
        assert [one.path for one in Bucket(url).below("asking")] == [stored.path]
    Bucket(url).delete([stored.path])
    assert list(notes(noted)) == [], "it is put there once"


def test_a_connection_that_says_nothing_is_given_up_for_another(url: str, line: Line) -> None:
    line.does("silent", "PUT")
    Bucket(url).put("a", b"a")
    assert Bucket(url).get("a") is not None


def test_who_is_refused_is_not_told_to_wait_longer(url: str, line: Line) -> None:
    line.does("refused", "GET")
    with pytest.raises(StoreError, match="403 Forbidden") as raised:
        Bucket(url).get("a")
    assert "SALON_STORE_WAIT_S" not in str(raised.value)


@pytest.mark.parametrize(("verb", "code", "is_told"), [
    ("GET", "", True), ("GET", "AccessDenied", True), ("GET", "ExpiredToken", False), ("PUT", "AccessDenied", False),
])  # fmt: skip
def test_a_refused_get_may_be_of_an_object_that_is_not_there(
    url: str, line: Line, verb: str, code: str, *, is_told: bool
) -> None:
    line.does("refused", verb)
    line.code = code
    with pytest.raises(StoreError, match="403 Forbidden") as raised:
        Bucket(url).get("a") if verb == "GET" else Bucket(url).put("a", b"a")
    assert ("s3:ListBucket" in str(raised.value)) is is_told


@pytest.mark.parametrize(("code", "what"), [
    ("InvalidAccessKeyId", "AWS_ACCESS_KEY_ID"), ("SignatureDoesNotMatch", "AWS_SECRET_ACCESS_KEY"),
    ("ExpiredToken", "AWS_SESSION_TOKEN"), ("RequestTimeTooSkewed", "clock"), ("AuthorizationHeaderMalformed", "AWS_REGION"),
    ("NoSuchBucket", "make the bucket"),
])  # fmt: skip
def test_a_refusal_says_what_is_to_be_set(url: str, line: Line, code: str, what: str) -> None:
    line.does("refused", "GET")
    line.code = code
    with pytest.raises(StoreError, match=f"fix this: .*{what}"):
        Bucket(url).below("a")


def test_where_no_keys_are_set_it_is_said_which(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", line.url)
    line.does("refused", "latest", n=1000)
    with pytest.raises(StoreError, match="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
        Bucket("s3://without-keys/here").get("a")


@pytest.mark.slow
@pytest.mark.parametrize(("code", "told"), [
    ("InvalidAccessKeyId", {"last night"}), ("AccessDenied", {"last night", "anchors", "lake"}),
], ids=["once", "a right once for each verb"])  # fmt: skip
def test_the_doctor_tells_a_stores_error_once(
    url: str, line: Line, tmp_path: Path, capsys: pytest.CaptureFixture[str], code: str, told: set[str]
) -> None:
    file = write_benchmark(tmp_path, "http://127.0.0.1:9/v1")
    file.write_text(f'lake = "{url}"\nledger = "sqlite:///{tmp_path}/ledger.db"\n{file.read_text()}')
    line.does("refused", ".", n=1000)
    line.code = code
    with temporary_settings(restore_defaults={PREFECT_API_URL}):
        assert run(["doctor", str(file)]) == 3
    found = {what: said for what, said in findings(capsys.readouterr().out).items() if "s3://" in said}
    assert {*found} == {"last night", "series", "anchors", "lake", "publications", "records", "lake and ledger"}
    assert {what for what, said in found.items() if f"403 Forbidden ({code}); fix this" in said} == told
    assert {what for what, said in found.items() if said.endswith(" failed as above")} == {*found} - told
    assert found["records"] == f"wrong: LIST {url}/runs failed as above"
