"""Pictures fetched from the hosts a source allows: each address checked, then used and no other. Which are allowed: addresses.py.

A name is resolved once for a connection; the addresses are checked and handed to the connection as they are, so a name cannot
mean one address when it is checked and another when it is used. Redirects are followed by hand and go through the same checks.
"""

import asyncio
import socket
import time
from collections.abc import Collection, Sequence

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from schemas.statuses import SampleStatus
from tasks.ingest.addresses import allow, is_public, read_url, shown_url
from tasks.ingest.paths import MAX_FILE_BYTES, RefusedPath, quote

MAX_REDIRECTS = 3
DEADLINE_S = 30.0
"""Of one picture, redirects and the second attempt included."""

N_AT_ONCE = 8
_N_ATTEMPTS = 2
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PASSING = frozenset({429, 500, 502, 503, 504})


class _PrivateAddressError(OSError):
    """A name that leads to an address which is not public."""


class _CheckedResolver(AbstractResolver):
    """Resolves by the system; gives the connection what was checked, all of it public, or raises."""

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC) -> list[ResolveResult]:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM, family=family)
        results: list[ResolveResult] = []
        for kind, _, protocol, _, where in found:
            address = str(where[0])
            if not is_public(address):
                raise _PrivateAddressError(f"leads to {address}, which is no public address")
            results.append(
                {
                    "hostname": host, "host": address, "port": port, "family": kind, "proto": protocol,
                    "flags": socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
                }
            )  # fmt: skip
        return results

    async def close(self) -> None:
        """Nothing is held."""


def fetch(
    urls: Sequence[str], hosts: Collection[str], *, max_bytes: int = MAX_FILE_BYTES, deadline_s: float = DEADLINE_S
) -> list[bytes | RefusedPath]:
    """The bytes of each URL, in order, or why there are none; N_AT_ONCE at a time. Raises nothing for what a server does."""
    return asyncio.run(_fetch_all(urls, hosts, max_bytes, deadline_s))


async def _fetch_all(urls: Sequence[str], hosts: Collection[str], max_bytes: int, deadline_s: float) -> list[bytes | RefusedPath]:
    slots = asyncio.Semaphore(N_AT_ONCE)
    connector = aiohttp.TCPConnector(resolver=_CheckedResolver(), use_dns_cache=False, limit=N_AT_ONCE)
    async with aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False, headers={"Accept-Encoding": "identity"}
    ) as session:

        async def one(url: str) -> bytes | RefusedPath:
            async with slots:
                return await _fetch(session, url, hosts, max_bytes, deadline_s)

        return list(await asyncio.gather(*(one(url) for url in urls)))


async def _fetch(
    session: aiohttp.ClientSession, text: str, hosts: Collection[str], max_bytes: int, deadline_s: float
) -> bytes | RefusedPath:
    until = time.monotonic() + deadline_s
    why = ""
    for attempt in range(_N_ATTEMPTS):
        try:
            async with asyncio.timeout(until - time.monotonic()):
                found = await _follow(session, text, hosts, max_bytes)
            if not isinstance(found, int):
                return found
            why = f"the server answers {found}"
        except TimeoutError:
            why = f"it took more than {deadline_s:g} s"
            break
        except (aiohttp.ClientError, OSError, ValueError) as error:
            cause = error.__cause__ if isinstance(error.__cause__, _PrivateAddressError) else error
            if isinstance(cause, _PrivateAddressError):
                return RefusedPath(SampleStatus.REMOTE_REFUSED, f"{quote(shown_url(text))} {cause}")
            why = f"{type(error).__name__}: {quote(str(error))}"
        if attempt + 1 < _N_ATTEMPTS and until - time.monotonic() > 1:
            await asyncio.sleep(0.5)
    return RefusedPath(SampleStatus.MISSING_FILE, f"{quote(shown_url(text))} cannot be fetched: {why}")


async def _follow(session: aiohttp.ClientSession, text: str, hosts: Collection[str], max_bytes: int) -> bytes | RefusedPath | int:
    """The bytes, a refusal, or a status that may pass."""
    wanted = text
    for _ in range(MAX_REDIRECTS + 1):
        allowed = allow(wanted, hosts)
        if isinstance(allowed, RefusedPath):
            return allowed
        async with session.get(allowed, allow_redirects=False) as response:
            if response.status == 200:
                return await _body(response, text, max_bytes)
            if response.status not in _REDIRECTS:
                return response.status if response.status in _PASSING else _missing(text, response.status)
            wanted = _target(allowed, response.headers.get("Location", ""))
    return RefusedPath(SampleStatus.REMOTE_REFUSED, f"{quote(shown_url(text))} is redirected more than {MAX_REDIRECTS} times")


async def _body(response: aiohttp.ClientResponse, text: str, max_bytes: int) -> bytes | RefusedPath:
    content = bytearray()
    async for piece in response.content.iter_chunked(1 << 16):
        content += piece
        if len(content) > max_bytes:
            return RefusedPath(SampleStatus.FILE_TOO_LARGE, f"{quote(shown_url(text))} has over {max_bytes} bytes")
    return bytes(content)


def _missing(text: str, status: int) -> RefusedPath:
    return RefusedPath(SampleStatus.MISSING_FILE, f"{quote(shown_url(text))} cannot be fetched: the server answers {status}")


def _target(asked: URL, location: str) -> str:
    """Where a redirect leads; it is checked like any other URL. Raises ValueError."""
    return str(asked.join(read_url(location)))
