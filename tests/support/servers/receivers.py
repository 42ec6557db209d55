"""Doubles of W&B's server and of the Hugging Face hub, as far as a push and what is read back of it go. No tests here."""

import base64
import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import urlsplit


@dataclass
class Receiver:
    """Where it listens; what it holds by name. `refuses`: of a request, by a part of its path or body, the status it answers."""

    refuses: dict[str, int] = field(default_factory=dict)
    loses: str = ""
    """A figure that it takes and does not keep."""
    address: str = ""
    runs: dict[str, dict[str, float]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    commits: list[set[str]] = field(default_factory=list)
    """The paths of each commit."""
    logins: list[str | None] = field(default_factory=list)


@contextmanager
def running(receiver: Receiver) -> Iterator[Receiver]:
    """It listens on loopback until the block ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"receiver": receiver}))
    receiver.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    receiver: ClassVar[Receiver]

    def handle(self) -> None:
        with suppress(ConnectionError):  # wandb closes what it has read
            super().handle()

    def _answer_any(self) -> None:
        body = self._body()
        self.receiver.logins.append(self.headers.get("authorization"))
        for part, status in self.receiver.refuses.items():
            if part in self.path or part.encode() in body:
                return self._say({"error": f"bad credentials {self.headers.get('authorization')}"}, status)
        path = urlsplit(self.path).path
        if path == "/graphql":
            asked = json.loads(body)
            return self._say({"data": _graphql(self.receiver, asked["query"], asked.get("variables") or {})})
        if path.endswith("/file_stream"):
            for line in json.loads(body).get("files", {}).get("wandb-summary.json", {}).get("content", []):
                kept = {name: value for name, value in json.loads(line).items() if name != self.receiver.loses}
                self.receiver.runs.setdefault(path.split("/")[-2], {}).update(kept)
            return self._say({})
        return self._say(_hub(self.receiver, path, body))

    do_GET = do_HEAD = do_POST = do_PUT = _answer_any  # noqa: N815 - the base class's names

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("transfer-encoding", ""):
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            return gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body
        pieces = []
        while n_bytes := int(self.rfile.readline(), 16):
            pieces.append(self.rfile.read(n_bytes))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _say(self, said: Any, status: int = 200) -> None:
        content = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


def _graphql(receiver: Receiver, query: str, of: dict[str, Any]) -> dict[str, Any]:
    """The answers of W&B: a run made, the places of its files, its figures; else who asks."""
    if "upsertBucket" in query:
        project = {"id": "1", "name": of["project"], "entity": {"id": "2", "name": of["entity"] or "team"}}
        made = {"id": "x", "name": of["name"], "displayName": of["name"], "config": "{}", "project": project}
        return {"upsertBucket": {"bucket": made, "inserted": True}}
    if "RunResumeStatus" in query:
        return {"model": None}
    if "createRunFiles" in query:
        files = [{"name": name, "uploadUrl": f"{receiver.address}/upload/{name}"} for name in of["files"]]
        return {"createRunFiles": {"runID": "x", "uploadHeaders": [], "files": files}}
    if "query Run(" in query:
        figures = json.dumps(receiver.runs.get(of["name"], {}))
        run = {"projectId": 1, "id": "x", "name": of["name"], "state": "finished", "config": "{}", "summaryMetrics": figures}
        return {"project": {"run": run | {"tags": [], "systemMetrics": "{}", "historyKeys": {"keys": {}}}}}
    return {"viewer": {"id": "u", "username": "me", "entity": "team", "flags": "{}", "teams": {"edges": []}}}


def _hub(receiver: Receiver, path: str, body: bytes) -> Any:
    """The answers of the hub for the dataset acme/nightly."""
    if path.endswith("/preupload/main"):
        files = json.loads(body)["files"]
        return {"files": [{"path": one["path"], "uploadMode": "regular", "shouldIgnore": False} for one in files]}
    if path.endswith("/commit/main"):
        changes = [json.loads(line) for line in body.splitlines()][1:]
        receiver.commits.append({one["value"]["path"] for one in changes})
        for key, value in ((one["key"], one["value"]) for one in changes):
            if key == "file":
                receiver.files[value["path"]] = base64.b64decode(value["content"])
            else:
                del receiver.files[value["path"]]
        address = f"{receiver.address}/datasets/acme/nightly"
        return {"success": True, "commitOid": "0" * 40, "commitUrl": f"{address}/commit/{'0' * 40}"}
    if "/tree/" in path:
        return [{"type": "file", "path": at, "size": len(held), "oid": "0" * 40} for at, held in receiver.files.items()]
    listed = [{"rfilename": at} for at in receiver.files]
    return {
        "id": "acme/nightly",
        "name": "acme/nightly",
        "sha": "0" * 40,
        "siblings": listed,
        "url": f"{receiver.address}/datasets/acme/nightly",
    }
