"""A Prefect server's double on loopback: it passes all on to a real one, but for what it is told to answer with an error."""

import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

_OF_THE_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}
_BUSY_LIMIT_S = 55.0
"""Less than the 60 s that Prefect's client waits for an answer."""


@dataclass
class FailingPrefect:
    """`fails`: what a request line and its body together match is answered with `status`. Counts what it was asked and failed."""

    api: str
    real: str
    fails: re.Pattern[str] | None = None
    status: int = 500
    n_failed: Counter[str] = field(default_factory=Counter)
    n_passed: Counter[str] = field(default_factory=Counter)

    def is_to_fail(self, request: str, body: bytes) -> bool:
        """Whether this request is to fail; it is counted."""
        named = re.sub(r"[0-9a-f-]{36}", "ID", request)
        is_failing = self.fails is not None and self.fails.search(f"{request} {body.decode(errors='replace')}") is not None
        (self.n_failed if is_failing else self.n_passed)[named] += 1
        return is_failing


@contextmanager
def failing_prefect(real: str) -> Iterator[FailingPrefect]:
    """The double before the server at this address; to begin with it fails nothing."""
    there = urlsplit(real)
    double = FailingPrefect("", real)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            if double.is_to_fail(f"{self.command} {self.path}", body):
                self._answer(double.status, [("content-type", "text/plain")], b"Internal Server Error")
            elif "websocket" in self.headers.get("upgrade", "").lower():
                self._tunnel()
            else:
                self._answer(*self._asked_of_the_real_one(body))

        def _asked_of_the_real_one(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
            """What the real server answers. A 503 (its database is locked: many tests use it) is retried, as a client would."""
            headers = {k: v for k, v in self.headers.items() if k.lower() != "connection"}
            give_up_s = time.monotonic() + _BUSY_LIMIT_S
            while True:
                asked = HTTPConnection(str(there.hostname), there.port or 80, timeout=_BUSY_LIMIT_S)
                asked.request(self.command, self.path, body, headers)
                answer = asked.getresponse()
                content = answer.read()
                asked.close()
                if answer.status != 503 or time.monotonic() > give_up_s:
                    return answer.status, answer.getheaders(), content
                time.sleep(0.2)

        def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
            self.send_response_only(status)
            for name, value in headers:
                if name.lower() not in _OF_THE_HOP:
                    self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _tunnel(self) -> None:
            with socket.create_connection((str(there.hostname), there.port or 80)) as behind:
                behind.sendall(self.raw_requestline + bytes(self.headers))
                back = threading.Thread(target=_copy, args=(behind, self.connection), daemon=True)
                back.start()
                _copy(self.connection, behind)
                back.join(5)
            self.close_connection = True

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _pass_on  # noqa: N815

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    double.api = f"http://127.0.0.1:{server.server_address[1]}{there.path}"
    try:
        yield double
    finally:
        server.shutdown()
        server.server_close()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while content := source.recv(65536):
            target.sendall(content)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
