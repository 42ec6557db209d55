"""The judge behind an OpenAI-compatible server on loopback. Running it as a process of its own is running.py.

The same judge with limits, faults and batches: mock_provider/admin_api.py.
"""

import argparse
import asyncio
import json
import math
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from aiohttp import web

from demo.mock_provider.request import BadRequest, check_messages, judged
from demo.world import HOST, JUDGE
from schemas.errors import SalonError

_MAX_BODY_BYTES = 64 * 2**20
_IMAGE_TOKENS = 255  # the common tile rule for one tile: 85 + 170
_CHARACTERS_PER_TOKEN = 4


@dataclass(slots=True)
class Stats:
    """What GET /stats shows, since the server started."""

    n_requests: int = 0
    n_in_flight: int = 0
    peak_in_flight: int = 0


def make_app() -> web.Application:
    """The server: POST /v1/chat/completions, GET /v1/models, GET /stats. It listens to no key and keeps nothing."""
    app = web.Application(client_max_size=_MAX_BODY_BYTES)
    stats = Stats()

    async def chat(request: web.Request) -> web.Response:
        stats.n_requests += 1
        stats.n_in_flight += 1
        stats.peak_in_flight = max(stats.peak_in_flight, stats.n_in_flight)
        try:
            return _answer(await request.read())
        finally:
            stats.n_in_flight -= 1

    async def models(_: web.Request) -> web.Response:
        return web.json_response(
            {"object": "list", "data": [{"id": JUDGE, "object": "model", "created": 0, "owned_by": "salon"}]}
        )

    async def show_stats(_: web.Request) -> web.Response:
        return web.json_response(asdict(stats))

    app.add_routes([web.post("/v1/chat/completions", chat), web.get("/v1/models", models), web.get("/stats", show_stats)])
    return app


def _answer(body: bytes) -> web.Response:
    try:
        return web.json_response(completion(body))
    except BadRequest as error:
        content = {"message": str(error), "type": "invalid_request_error", "param": None, "code": error.code}
        return web.json_response({"error": content}, status=error.status)


def completion(body: bytes) -> dict[str, Any]:
    """The chat completion for a request's body. Sampling parameters make no difference. Raises BadRequest."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequest("the body is not JSON", "invalid_json") from error
    messages = check_messages(content, (JUDGE,))
    reply = judged(messages)
    usage = {"prompt_tokens": _n_tokens(messages), "completion_tokens": math.ceil(len(reply) / _CHARACTERS_PER_TOKEN)}
    message = {"role": "assistant", "content": reply, "refusal": None}
    return {
        "id": f"chatcmpl-{sha256(body).hexdigest()[:24]}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": JUDGE,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": usage | {"total_tokens": sum(usage.values())},
    }


def _n_tokens(messages: Sequence[Mapping[str, Any]]) -> int:
    """Tokens of the input: a quarter of the characters of all texts, and 255 for each picture."""
    n_characters, n_images = 0, 0
    for message in messages:
        content = message["content"]
        for part in [{"text": content}] if isinstance(content, str) else content or []:
            n_characters += len(part.get("text", ""))
            n_images += "image_url" in part
    return math.ceil(n_characters / _CHARACTERS_PER_TOKEN) + _IMAGE_TOKENS * n_images


@asynccontextmanager
async def serving_judge(port: int) -> AsyncIterator[int]:
    """Serve the judge on loopback for as long as the block lasts; yields the port."""
    runner = web.AppRunner(make_app(), access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, port, backlog=4096).start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


async def serve(server: AbstractAsyncContextManager[int], say: Callable[[int], None], *, is_tied_to_stdin: bool) -> None:
    """Run a server until SIGTERM or SIGINT, or until standard input closes; `say` is told its port."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if is_tied_to_stdin:
        loop.add_reader(sys.stdin.fileno(), _stop_at_end_of_stdin, stop)
    async with server as port:
        say(port)
        await stop.wait()


def _stop_at_end_of_stdin(stop: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        stop.set()


def main() -> None:
    """`python -m demo.server [--port N] [--scenario FILE] [--until-stdin-closes]`; the port goes out as a line of JSON."""
    parser = argparse.ArgumentParser(description="A program that looks at drawn scenes, behind an OpenAI-compatible server.")
    parser.add_argument("--port", type=int, default=0, help="0: any free port, printed at the start")
    parser.add_argument("--scenario", type=Path, help="play the misbehaving provider of this scenario file")
    parser.add_argument("--until-stdin-closes", action="store_true", help="stop when the process that started this one has ended")
    arguments = parser.parse_args()
    server = serving_judge(arguments.port)
    if arguments.scenario is not None:
        from demo.mock_provider.admin_api import serving
        from demo.mock_provider.scenario import load_scenario  # pydantic is heavy, and the plain judge has no use for it

        try:
            server = serving(load_scenario(arguments.scenario), arguments.port)
        except SalonError as error:
            parser.error(str(error))
    asyncio.run(serve(server, _say_port, is_tied_to_stdin=arguments.until_stdin_closes))


def _say_port(port: int) -> None:
    print(json.dumps({"port": port}), flush=True)


if __name__ == "__main__":
    main()
