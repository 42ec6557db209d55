"""The difficult provider as a server on loopback: its admin API and slow addresses, /stats, /v1/models, /v1/files, /v1/batches.

The same socket hands chat requests to protocol.py.
"""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
from aiohttp import BodyPartReader, web

from demo.mock_provider.batches import Batches, BatchJob
from demo.mock_provider.faults import error_object
from demo.mock_provider.native_batches import NativeBatches, json_response
from demo.mock_provider.protocol import ChatProtocol
from demo.mock_provider.provider import Provider
from demo.mock_provider.scenario import Model, Scenario
from demo.world import HOST

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_CHAT = "/v1/chat/completions"
_FINAL = ("completed", "failed", "expired", "cancelled", "cancelling")
_PIECE_BYTES = 2**18


def make_admin_api(provider: Provider, batches: Batches) -> web.Application:
    """The application; every connection to it ends with its response, so that the next chat request comes to protocol.py."""
    app = web.Application(middlewares=[_one_response])
    admin = _AdminApi(provider, batches)
    app.add_routes([*admin.routes(), *NativeBatches(batches, admin.lose).routes()])
    return app


@web.middleware
async def _one_response(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        response = await handler(request)
    except web.HTTPException as error:
        response = _error(error.status, f"{request.method} {request.path}: {error.reason}", "not_found")
    response.force_close()
    return response


class _AdminApi:
    """What the provider saw, and its models; files uploaded for batches, and their results; batches made, listed, cancelled."""

    def __init__(self, provider: Provider, batches: Batches) -> None:
        self._provider, self._batches = provider, batches

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/stats", self._stats),
            web.get("/stats/items", self._items),
            web.post("/stats/reset", self._reset),
            web.get("/v1/models", self._models),
            web.get("/v1/models/{id}", self._model),
            web.post("/v1/files", self._upload),
            web.get("/v1/files", self._files),
            web.get("/v1/files/{id}", self._file),
            web.get("/v1/files/{id}/content", self._content),
            web.delete("/v1/files/{id}", self._delete),
            web.post("/v1/batches", self._create),
            web.get("/v1/batches", self._all_batches),
            web.get("/v1/batches/{id}", self._batch),
            web.post("/v1/batches/{id}/cancel", self._cancel),
        ]

    async def _stats(self, _: web.Request) -> web.Response:
        prices = {name: model.price for name, model in self._provider.models.items()}
        return json_response(self._provider.counts.as_json(prices, self._provider.scenario.batch.price_share))

    async def _items(self, _: web.Request) -> web.Response:
        return json_response(self._provider.counts.items_as_json())

    async def _reset(self, _: web.Request) -> web.Response:
        self._provider.start_anew()
        return json_response({"is_reset": True})

    async def _models(self, _: web.Request) -> web.Response:
        return json_response({"object": "list", "data": [_model_object(model) for model in self._provider.models.values()]})

    async def _model(self, request: web.Request) -> web.Response:
        model = self._provider.models.get(request.match_info["id"])
        return _missing("model", request) if model is None else json_response(_model_object(model))

    async def _files(self, _: web.Request) -> web.Response:
        files = [file.as_json() for file in self._batches.files.values()]
        return json_response({"object": "list", "data": files, "has_more": False})

    async def _file(self, request: web.Request) -> web.Response:
        file = self._batches.files.get(request.match_info["id"])
        return _missing("file", request) if file is None else json_response(file.as_json())

    async def _content(self, request: web.Request) -> web.StreamResponse:
        file = self._batches.files.get(request.match_info["id"])
        return _missing("file", request) if file is None else web.FileResponse(file.path)

    async def _delete(self, request: web.Request) -> web.Response:
        file = self._batches.files.pop(request.match_info["id"], None)
        return _missing("file", request) if file is None else json_response({"id": file.id, "object": "file", "deleted": True})

    async def _upload(self, request: web.Request) -> web.Response:
        """Take a file in a multipart form, piece by piece to the disk."""
        batches, rules = self._batches, self._batches.rules
        path, name, purpose, n_bytes = batches.new_path(), "", "", 0
        if not request.content_type.startswith("multipart/"):
            return _error(400, "upload a file as multipart/form-data", "invalid_request")
        async for part in await request.multipart():
            if not isinstance(part, BodyPartReader):
                continue
            if part.name == "purpose":
                purpose = (await part.text()).strip()
            elif part.name == "file":
                name = part.filename or "upload"
                with path.open("wb") as file:
                    while piece := await part.read_chunk(_PIECE_BYTES):
                        n_bytes += len(piece)
                        if n_bytes <= rules.max_file_bytes:
                            file.write(piece)
        if n_bytes > rules.max_file_bytes:
            path.unlink()
            return _error(400, f"the file has {n_bytes} bytes; a batch file may have {rules.max_file_bytes}", "file_too_large")
        if purpose != "batch" or not name:
            return _error(400, 'a file needs the parts file and purpose = "batch"', "invalid_purpose")
        return json_response(batches.keep(path, name, purpose).as_json())

    async def _batch(self, request: web.Request) -> web.Response:
        batch = self._batches.batches.get(request.match_info["id"])
        return _missing("batch", request) if batch is None else json_response(batch.as_json())

    async def _all_batches(self, request: web.Request) -> web.Response:
        return _list(request, [*self._batches.batches.values()][::-1])

    async def _cancel(self, request: web.Request) -> web.Response:
        batch = self._batches.batches.get(request.match_info["id"])
        if batch is None:
            return _missing("batch", request)
        if batch.status in _FINAL:
            return _error(409, f"a batch that is {batch.status} cannot be cancelled", "invalid_status")
        batch.come_to("cancelling")
        batch.cancel.set()
        return json_response(batch.as_json())

    async def _create(self, request: web.Request) -> web.Response:
        batches = self._batches
        try:
            content = orjson.loads(await request.read())
        except ValueError:
            return _error(400, "the body is not JSON", "invalid_json")
        content = content if isinstance(content, dict) else {}
        source = batches.files.get(str(content.get("input_file_id")))
        if source is None or source.purpose != "batch":
            return _error(400, "input_file_id names no file uploaded for a batch", "invalid_input_file")
        if content.get("endpoint") != _CHAT:
            return _error(400, f"endpoint must be {_CHAT}", "invalid_endpoint")
        if content.get("completion_window") != "24h":
            return _error(400, "completion_window must be 24h", "invalid_completion_window")
        batch = batches.create(source, _CHAT, content.get("metadata"))
        self.lose(request)
        return json_response(batch.as_json())

    def lose(self, request: web.Request) -> None:
        """Break the connection of a creation where the scenario has it so."""
        if len(self._batches.batches) <= self._batches.rules.n_lost_creations:
            sock = request.transport.get_extra_info("socket") if request.transport else None
            if sock is not None and request.transport is not None:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                request.transport.abort()


def _model_object(model: Model) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": model.id, "object": "model", "created": 0, "owned_by": "salon"}
    return shown if model.shutdown_date is None else shown | {"shutdown_date": model.shutdown_date.isoformat()}


def _list(request: web.Request, found: list[BatchJob]) -> web.Response:
    """Newest first, as many as `limit` says, behind the batch `after`."""
    ids = [batch.id for batch in found]
    after, limit = request.query.get("after"), request.query.get("limit", "20")
    start = ids.index(after) + 1 if after in ids else 0
    stop = start + (int(limit) if limit.isdigit() else 20)
    page = [batch.as_json() for batch in found[start:stop]]
    ends = {"first_id": page[0]["id"], "last_id": page[-1]["id"]} if page else {"first_id": None, "last_id": None}
    return json_response({"object": "list", "data": page, "has_more": stop < len(found)} | ends)


def _missing(what: str, request: web.Request) -> web.Response:
    return _error(404, f"there is no {what} {request.match_info['id']!r}", "not_found")


def _error(status: int, message: str, code: str) -> web.Response:
    return json_response({"error": error_object(message, "invalid_request_error", code)}, status)


@asynccontextmanager
async def serving(scenario: Scenario, port: int = 0) -> AsyncIterator[int]:
    """Serve the scenario for as long as the block lasts; yields the port (0 asks for any free one). Raises OSError."""
    provider = Provider(scenario)
    with TemporaryDirectory(prefix="salon-provider-") as folder:
        batches = Batches(provider, Path(folder))
        runner = web.AppRunner(make_admin_api(provider, batches), access_log=None)
        await runner.setup()
        admin_api = runner.server
        assert admin_api is not None
        connections: set[ChatProtocol] = set()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: ChatProtocol(provider, connections, admin_api), HOST, port, backlog=4096)
        try:
            yield int(server.sockets[0].getsockname()[1])
        finally:
            server.close()
            for connection in list(connections):
                connection.close()
            await batches.close()
            await runner.cleanup()
