"""A backfill by the Batch API whose endpoint is gone for a while: a batch that is worked on is no outage."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from demo.running import running_judge
from tests.flows.flow_support import Said
from tests.support.checkpoint_folders import N_PROMPTS, make_folder, write_file

pytestmark = pytest.mark.slow

N_CHECKPOINTS, GONE_S, IN_PROGRESS_S, PATIENCE_S = 2, 5.0, 15.0, 12.0
SCENARIO = f"""\
[[models]]
id = "judge-2026-01-01"
usd_per_million_input_tokens = 1
usd_per_million_output_tokens = 1
[latency]
median_s = 0.02
[batch]
validating_s = 0.1
in_progress_s = {IN_PROGRESS_S}
finalizing_s = 0.1
"""


class Relay:
    """Hands on what a client and its server say; gone for a while once each checkpoint has uploaded its file, none its batch."""

    def __init__(self, to_port: int) -> None:
        self.to_port, self.has_gone = to_port, False
        self._open: list[socket.socket] = []
        self._uploaded = threading.Barrier(N_CHECKPOINTS, self._go)
        self._listen(0)
        self.port: int = self._server.getsockname()[1]

    def close(self) -> None:
        for one in (self._server, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _listen(self, port: int) -> None:
        self._server = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, args=(self._server,), daemon=True).start()

    def _accept(self, server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = server.accept()
                provider, is_upload = socket.create_connection(("127.0.0.1", self.to_port)), threading.Event()
                self._open += [client, provider]
                threading.Thread(target=self._carry, args=(client, provider, is_upload, True), daemon=True).start()
                threading.Thread(target=self._carry, args=(provider, client, is_upload, False), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket, is_upload: threading.Event, is_client: bool) -> None:
        with suppress(OSError):
            while said := one.recv(1 << 18):
                if is_client and said.startswith(b"POST /v1/files"):
                    is_upload.set()
                other.sendall(said)
                if not is_client and is_upload.is_set() and not self.has_gone:
                    self._uploaded.wait(60)
        for each in (one, other):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _go(self) -> None:
        self.has_gone = True
        self.close()
        threading.Timer(GONE_S, self._listen, [self.port]).start()


@pytest.fixture
def relay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    with running_judge(tmp_path / "scenario.toml") as url:
        found = Relay(int(url.rpartition(":")[2].partition("/")[0]))
        yield found
        found.close()


def test_those_that_wait_go_on_once_the_provider_has_a_batch(tmp_path: Path, relay: Relay, salon: Callable[..., Said]) -> None:
    """Its results come later than their patience."""
    for number in range(N_CHECKPOINTS):
        make_folder(tmp_path, f"step-{number}")
    file = write_file(tmp_path, f"http://127.0.0.1:{relay.port}/v1", judge='mode = "batch"')
    file.write_text(file.read_text().replace("max_tokens = 16", "max_tokens = 500"))
    asked = ("backfill", file, "--all", "--at-once", f"{N_CHECKPOINTS}", "--patience-minutes", f"{PATIENCE_S / 60}")
    said = salon(*asked)
    assert relay.has_gone
    assert "Waiting for it until" in " ".join(said.err.split())
    assert "is not done" not in said.err
    assert f"backfill: {N_CHECKPOINTS} done" in said.err, said.err
    assert f"samples     {N_CHECKPOINTS * N_PROMPTS}, usable" in said.out
