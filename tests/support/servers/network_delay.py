"""A server a network away: a relay on loopback that hands on what it is sent later, and counts the round trips. No tests."""

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from sqlalchemy.engine import make_url

CHUNK_BYTES = 1 << 18


@dataclass(slots=True)
class Distance:
    """What stands between a client and its server. `delay_s`: there and back, may be changed."""

    delay_s: float
    port: int = 0
    n_round_trips: list[int] = field(default_factory=list)
    """By connection, in the order they were made: how often the client spoke after it had been answered.

    What it sent in one go, and waited for, counts once.
    """


@contextmanager
def distant(address: str, delay_s: float = 0.0) -> Iterator[tuple[str, Distance]]:
    """The same database by another address, which is `delay_s` away; and what lies between."""
    url, found = make_url(address), Distance(delay_s)
    carrying: list[tuple[asyncio.Task[None] | None, asyncio.StreamWriter]] = []
    ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def relay() -> None:
        async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            carrying.append((asyncio.current_task(), writer))
            with suppress(OSError):
                await _carry(reader, writer, *await asyncio.open_connection(url.host, url.port), found)

        server = await asyncio.start_server(client, "127.0.0.1", 0, limit=CHUNK_BYTES)
        found.port = server.sockets[0].getsockname()[1]
        over = asyncio.Event()
        ready.set_result((asyncio.get_running_loop(), over))
        await over.wait()
        server.close()
        for _, writer in carrying:
            writer.close()
        await asyncio.gather(*(task for task, _ in carrying if task is not None))

    thread = threading.Thread(target=asyncio.run, args=(relay(),), name="distance", daemon=True)
    thread.start()
    loop, over = ready.result(10)
    try:
        yield url.set(port=found.port).render_as_string(hide_password=False), found
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()


async def _carry(
    of_client: asyncio.StreamReader,
    to_client: asyncio.StreamWriter,
    of_server: asyncio.StreamReader,
    to_server: asyncio.StreamWriter,
    distance: Distance,
) -> None:
    has_answered, mine = True, len(distance.n_round_trips)
    distance.n_round_trips.append(0)

    async def one_way(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_there: bool) -> None:
        nonlocal has_answered
        under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        arriving = asyncio.create_task(_arrive(under_way, writer))
        content = b"begin"
        while content:
            content = await _read(reader)
            distance.n_round_trips[mine] += is_there and has_answered and bool(content)
            has_answered = not is_there
            under_way.put_nowait((time.monotonic() + distance.delay_s / 2, content))
        await arriving

    await asyncio.gather(one_way(of_client, to_server, is_there=True), one_way(of_server, to_client, is_there=False))


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(CHUNK_BYTES)
    except OSError:
        return b""


async def _arrive(under_way: "asyncio.Queue[tuple[float, bytes]]", writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while content := (found := await under_way.get())[1]:
            if (wait_s := found[0] - time.monotonic()) > 0:
                await asyncio.sleep(wait_s)
            writer.write(content)
    writer.close()
