"""The Batch APIs of Anthropic and Gemini, on the batches of batches.py: requests put into OpenAI's lines, results out of them.

By platform.claude.com/docs/en/build-with-claude/batch-processing and ai.google.dev/api/batch-api, /api/files (2026-11).
"""

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from demo.mock_provider.anthropic_form import ANTHROPIC, message_result
from demo.mock_provider.batches import Batches, BatchJob, StoredFile
from demo.mock_provider.forms import Form
from demo.mock_provider.gemini_form import GEMINI, content_result
from demo.mock_provider.request import BadRequest

_CHAT = "/v1/chat/completions"
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_FINAL = ("completed", "failed", "expired", "cancelled")
_STATES = {"validating": "PENDING", "completed": "SUCCEEDED"} | {
    name: name.upper() for name in ("failed", "expired", "cancelled")
}
_LARGEST_BYTES = 256 * 2**20


class NativeBatches:
    """The routes of both. `lose`: break the connection of a creation, as the scenario may have it."""

    def __init__(self, batches: Batches, lose: Callable[[web.Request], None]) -> None:
        self._batches, self._lose = batches, lose
        self._uploads: dict[str, str] = {}  # the name of a file by the upload that is open for it

    def routes(self) -> list[web.RouteDef]:
        """The addresses."""
        return [
            web.post("/v1/messages/batches", self._create_messages),
            web.get("/v1/messages/batches", self._list_messages),
            web.get("/v1/messages/batches/{id}", self._message_batch),
            web.post("/v1/messages/batches/{id}/cancel", self._cancel_messages),
            web.get("/v1/messages/batches/{id}/results", self._message_results),
            web.post("/upload/v1beta/files", self._upload),
            web.get("/v1beta/files", self._list_files),
            web.post("/v1beta/models/{model}:batchGenerateContent", self._create_contents),
            web.get("/v1beta/batches", self._list_contents),
            web.get("/v1beta/batches/{id}", self._content_batch),
            web.post("/v1beta/batches/{id}:cancel", self._cancel_contents),
            web.get("/download/v1beta/files/{id}:download", self._download),
        ]

    async def _create_messages(self, request: web.Request) -> web.Response:
        content = orjson.loads(await request.clone(client_max_size=_LARGEST_BYTES).read())
        asked = content.get("requests") if isinstance(content, dict) else None
        if not isinstance(asked, list) or not asked:
            return _failure(ANTHROPIC, 400, "requests: Field required")
        names = [str(one.get("custom_id")) for one in asked]
        if len(set(names)) < len(names) or not all(map(_NAME.fullmatch, names)):
            return _failure(ANTHROPIC, 400, "requests: a custom_id must be unique and match ^[a-zA-Z0-9_-]{1,64}$")
        lines = ((name, ANTHROPIC, one.get("params"), "") for name, one in zip(names, asked, strict=True))
        batch = self._make(_chat_lines(lines), len(asked), "inline", {"form": "anthropic"})
        self._lose(request)
        return json_response(_message_object(batch, request))

    async def _list_messages(self, request: web.Request) -> web.Response:
        found = [batch for batch in self._of("anthropic") if batch.n_lines][::-1]
        ids = [f"msg{batch.id}" for batch in found]
        after, limit = request.query.get("after_id"), int(request.query.get("limit", "20"))
        start = ids.index(after) + 1 if after in ids else 0
        page = [_message_object(batch, request) for batch in found[start : start + limit]]
        return json_response({"data": page, "has_more": start + limit < len(found), "last_id": page[-1]["id"] if page else None})

    async def _message_batch(self, request: web.Request) -> web.Response:
        batch = self._batches.batches.get(request.match_info["id"].removeprefix("msg"))
        return _failure(ANTHROPIC, 404, "no such batch") if batch is None else json_response(_message_object(batch, request))

    async def _cancel_messages(self, request: web.Request) -> web.Response:
        batch = self._batches.batches.get(request.match_info["id"].removeprefix("msg"))
        if batch is None:
            return _failure(ANTHROPIC, 404, "no such batch")
        _cancel(batch)
        return json_response(_message_object(batch, request))

    async def _message_results(self, request: web.Request) -> web.Response:
        batch = self._batches.batches.get(request.match_info["id"].removeprefix("msg"))
        if batch is None or batch.status not in _FINAL:
            return _failure(ANTHROPIC, 404, "no results yet")
        return web.Response(body=b"".join(map(message_result, _lines(batch))), content_type="application/binary")

    async def _upload(self, request: web.Request) -> web.Response:
        """Open an upload, or take the file of an open one, piece by piece to the disk."""
        command = request.headers.get("X-Goog-Upload-Command", "")
        if command == "start":
            content = orjson.loads(await request.read())
            number = f"upload{len(self._uploads)}"
            self._uploads[number] = content["file"].get("displayName", "")
            url = f"{request.scheme}://{request.host}/upload/v1beta/files?upload_id={number}&upload_protocol=resumable"
            return web.Response(headers={"X-Goog-Upload-URL": url, "X-Goog-Upload-Status": "active"})
        name = self._uploads.get(request.query.get("upload_id", ""))
        if name is None or command != "upload, finalize":
            return _failure(GEMINI, 400, "there is no such upload")
        path = self._batches.new_path()
        with path.open("wb") as file:
            async for piece in request.content.iter_any():
                file.write(piece)
        return json_response({"file": _file_object(self._batches.keep(path, name, "batch"))})

    async def _list_files(self, _: web.Request) -> web.Response:
        return json_response({"files": [_file_object(file) for file in self._batches.files.values()]})

    async def _create_contents(self, request: web.Request) -> web.Response:
        asked = orjson.loads(await request.read())["batch"]
        source = self._batches.files.get(str(asked["inputConfig"].get("fileName")).replace("files/", "file-"))
        if source is None:
            return _failure(GEMINI, 404, "no such file")
        rows = [orjson.loads(line) for line in source.path.read_bytes().splitlines()]
        lines = ((row["key"], GEMINI, row["request"], request.match_info["model"]) for row in rows)
        said = {"form": "gemini", "displayName": str(asked.get("displayName"))}
        batch = self._make(_chat_lines(lines), len(rows), source.name, said)
        self._lose(request)
        return json_response(self._operation(batch))

    async def _list_contents(self, _: web.Request) -> web.Response:
        return json_response({"operations": [self._operation(batch) for batch in self._of("gemini")][::-1]})

    async def _content_batch(self, request: web.Request) -> web.Response:
        batch = self._batches.batches.get(f"batch_{request.match_info['id']}")
        return _failure(GEMINI, 404, "no such batch") if batch is None else json_response(self._operation(batch))

    async def _cancel_contents(self, request: web.Request) -> web.Response:
        batch = self._batches.batches.get(f"batch_{request.match_info['id']}")
        if batch is None:
            return _failure(GEMINI, 404, "no such batch")
        _cancel(batch)
        return json_response({})

    async def _download(self, request: web.Request) -> web.StreamResponse:
        file = self._batches.files.get(f"file-{request.match_info['id']}")
        return _failure(GEMINI, 404, "no such file") if file is None else web.FileResponse(file.path)

    def _make(self, lines: Iterable[bytes], n_lines: int, name: str, said: dict[str, str]) -> BatchJob:
        path = self._batches.new_path()
        path.write_bytes(b"".join(lines))
        batch = self._batches.create(self._batches.keep(path, name, "converted"), _CHAT, said)
        batch.n_lines = n_lines
        return batch

    def _of(self, form: str) -> list[BatchJob]:
        return [batch for batch in self._batches.batches.values() if (batch.metadata or {}).get("form") == form]

    def _operation(self, batch: BatchJob) -> dict[str, Any]:
        said: dict[str, Any] = {
            "displayName": (batch.metadata or {}).get("displayName"),
            "state": f"BATCH_STATE_{_STATES.get(batch.status, 'RUNNING')}",
            "createTime": _moment(batch.stamps["created"]),
            "batchStats": {
                "requestCount": str(batch.n_lines),
                "successfulRequestCount": str(len(batch.output)),
                "failedRequestCount": str(len(batch.error_output)),
            },
        }
        found: dict[str, Any] = {"name": f"batches/{batch.id.removeprefix('batch_')}", "metadata": said}
        if batch.status == "completed":
            if "native" not in batch.file_ids:
                path = self._batches.new_path()
                path.write_bytes(b"".join(map(content_result, _lines(batch))))
                batch.file_ids["native"] = self._batches.keep(path, f"{batch.id}.jsonl", "batch_output").id
            output = {"responsesFile": batch.file_ids["native"].replace("file-", "files/")}
            return found | {"metadata": said | {"output": output}, "done": True, "response": output}
        if batch.status == "failed":
            return found | {"done": True, "error": {"code": 8, "message": batch.errors[0]["message"]}}
        return found | {"done": batch.status in _FINAL}


def _chat_lines(asked: Iterable[tuple[str, Form, Any, str]]) -> Iterator[bytes]:
    """OpenAI's lines of native requests; one that cannot be put into it is a line that the batch refuses."""
    for name, form, content, model in asked:
        try:
            body = form.chat(content, {"model": model})
        except BadRequest:
            body = content
        yield orjson.dumps({"custom_id": name, "method": "POST", "url": _CHAT, "body": body}, option=orjson.OPT_APPEND_NEWLINE)


def _lines(batch: BatchJob) -> Iterator[dict[str, Any]]:
    return (orjson.loads(line) for line in [*batch.output, *batch.error_output])


def _message_object(batch: BatchJob, request: web.Request) -> dict[str, Any]:
    counts = dict.fromkeys(("succeeded", "errored", "canceled", "expired"), 0)
    is_ended = batch.status in _FINAL
    if is_ended:
        for line in map(message_result, _lines(batch)):
            counts[orjson.loads(line)["result"]["type"]] += 1
    where = f"{request.scheme}://{request.host}/v1/messages/batches/msg{batch.id}/results"
    return {
        "id": f"msg{batch.id}",
        "type": "message_batch",
        "processing_status": "ended" if is_ended else "canceling" if batch.cancel.is_set() else "in_progress",
        "request_counts": counts | {"processing": 0 if is_ended else batch.n_lines},
        "created_at": _moment(batch.stamps["created"]),
        "expires_at": _moment(batch.stamps["expires"]),
        "cancel_initiated_at": _moment(batch.stamps["cancelling"]) if "cancelling" in batch.stamps else None,
        "ended_at": _moment(batch.stamps[batch.status]) if is_ended else None,
        "archived_at": None,
        "results_url": where if is_ended else None,
    }


def _file_object(file: StoredFile) -> dict[str, Any]:
    size = Path(file.path).stat().st_size
    name = file.id.replace("file-", "files/")
    return {"name": name, "displayName": file.name, "sizeBytes": str(size), "state": "ACTIVE", "mimeType": "application/jsonl"}


def _cancel(batch: BatchJob) -> None:
    if batch.status not in _FINAL:
        batch.come_to("cancelling")
        batch.cancel.set()


def _moment(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat().replace("+00:00", "Z")


def _failure(form: Form, status: int, message: str) -> web.Response:
    status, content = form.failed(status, {"message": message, "code": None}, {})
    return json_response(content, status)


def json_response(content: object, status: int = 200) -> web.Response:
    """Content as JSON."""
    return web.Response(body=orjson.dumps(content), status=status, content_type="application/json")
