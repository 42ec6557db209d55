"""CPU of the mock provider's process for a request of 200 KB in its plain mode, beside aiohttp reading the same.

`python -m benchmarks.serve_judge_cost [--requests N] [--connections C]`. Exit code 1 where the plain mode costs over 0.06 ms.
The server's CPU is its own `getrusage` (user and system), from GET /stats. Load: bare sockets, and aiohttp's client.
"""

import argparse
import asyncio
import multiprocessing
import select
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from tempfile import TemporaryDirectory

import aiohttp
from aiohttp import web
from rich.console import Console
from rich.table import Table

from benchmarks.throughput.measuring import said_by
from demo.running import running_judge

PLAIN = Path(__file__).parents[1] / "docs" / "examples" / "scenarios" / "plain.toml"
BODY = b'{"model": "salon-demo-judge", "messages": [{"role": "user", "content": "' + b"x" * 199_900 + b'"}]}'
MOST_MS = 0.06


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--connections", type=int, default=200, help="requests in flight at once")
    arguments = parser.parse_args()
    n_requests, n_connections = arguments.requests, arguments.connections
    table = Table("server", "bare sockets", "aiohttp client", title=f"server CPU, ms per request of {len(BODY) // 1000} KB")
    plain_ms = 0.0
    for name, serve in SERVERS.items():
        with serve() as base_url:
            costs = [cost_ms(base_url, load, n_requests, n_connections) for load in (load_by_sockets, load_by_aiohttp)]
        table.add_row(name, *(f"{cost:.3f}" for cost in costs))
        plain_ms = max(costs) if name == "plain, items sampled" else plain_ms
    Console().print(table)
    return int(plain_ms > MOST_MS)


def cost_ms(base_url: str, load: Callable[[str, int, int], None], n_requests: int, n_connections: int) -> float:
    load(base_url, n_connections * 4, n_connections)  # buffers and code are warm
    before = cpu_s(base_url)
    load(base_url, n_requests, n_connections)
    return (cpu_s(base_url) - before) / n_requests * 1000


def cpu_s(base_url: str) -> float:
    return said_by(base_url, "/stats")["cpu_s"]


def load_by_sockets(base_url: str, n_requests: int, n_connections: int) -> None:
    """Keep all connections busy with whole requests in as few calls as the kernel takes."""
    address = ("127.0.0.1", int(base_url.rsplit(":", 1)[1].removesuffix("/v1")))
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(BODY)}\r\n\r\n".encode()
    request = memoryview(head + BODY)
    poll = select.epoll()
    sockets, n_sent_bytes = {}, {}
    for _ in range(n_connections):
        connection = socket.create_connection(address)
        connection.setblocking(False)
        sockets[connection.fileno()], n_sent_bytes[connection.fileno()] = connection, 0
        poll.register(connection.fileno(), select.EPOLLIN | select.EPOLLOUT)
    n_begun, n_answered = n_connections, 0
    while n_answered < n_requests:
        for number, event in poll.poll():
            if event & select.EPOLLIN:
                assert sockets[number].recv(65536).startswith(b"HTTP/1.1 200")
                n_answered += 1
                if n_begun < n_requests:
                    n_begun += 1
                    n_sent_bytes[number] = 0
                    poll.modify(number, select.EPOLLIN | select.EPOLLOUT)
            elif event & select.EPOLLOUT:
                n_sent_bytes[number] += sockets[number].send(request[n_sent_bytes[number] :])
                if n_sent_bytes[number] == len(request):
                    poll.modify(number, select.EPOLLIN)
    for connection in sockets.values():
        connection.close()


def load_by_aiohttp(base_url: str, n_requests: int, n_connections: int) -> None:
    async def ask_all() -> None:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=n_connections)) as session:
            left = iter(range(n_requests))

            async def ask() -> None:
                for _ in left:
                    async with session.post(f"{base_url}/chat/completions", data=BODY) as response:
                        assert response.status == 200
                        await response.read()

            await asyncio.gather(*(ask() for _ in range(n_connections)))

    asyncio.run(ask_all())


@contextmanager
def lane(items: str) -> Iterator[str]:
    with TemporaryDirectory() as folder:
        scenario = Path(folder) / "scenario.toml"
        scenario.write_text(PLAIN.read_text(encoding="utf-8").replace('items = "sample"', f'items = "{items}"'), encoding="utf-8")
        with running_judge(scenario) as base_url:
            yield base_url


@contextmanager
def bare_aiohttp() -> Iterator[str]:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve_bare_aiohttp, args=(theirs,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}/v1"
    finally:
        process.terminate()
        process.join()


def serve_bare_aiohttp(port_to: Connection) -> None:
    async def answer(request: web.Request) -> web.Response:
        await request.read()
        return web.json_response({"choices": []})

    async def stats(_: web.Request) -> web.Response:
        used = getrusage(RUSAGE_SELF)
        return web.json_response({"cpu_s": used.ru_utime + used.ru_stime})

    async def serve() -> None:
        app = web.Application(client_max_size=2**20)
        app.add_routes([web.post("/v1/chat/completions", answer), web.get("/stats", stats)])
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port_to.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(serve())


SERVERS: dict[str, Callable[[], contextmanager]] = {
    "plain, items not told apart": lambda: lane("none"),
    "plain, items sampled": lambda: lane("sample"),
    "canned, items by content": lambda: lane("content"),
    "aiohttp, reading the body": bare_aiohttp,
}

if __name__ == "__main__":
    sys.exit(main())
