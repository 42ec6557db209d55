"""Pictures fetched from the hosts a source allows: each address checked, then used and no other.

A name is resolved once for a connection; the addresses are checked and handed to the connection as they are, so a name cannot
mean one address when it is checked and another when it is used. Redirects are followed by hand and go through the same checks.
"""

import asyncio
import ipaddress
import socket
import time
from collections.abc import Collection, Sequence
from ipaddress import IPv4Address, IPv6Address

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from schemas.input_budget import PICTURE_BYTES
from schemas.statuses.rows import SampleStatus
from tasks.ingest.paths import RefusedPath, bare_url, quote

MAX_REDIRECTS = 3
DEADLINE_S = 30.0
"""Of one picture, redirects and the second attempt included."""

N_AT_ONCE = 8
_N_ATTEMPTS = 2
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PASSING = frozenset({429, 500, 502, 503, 504})

_ALWAYS_REFUSED = frozenset({IPv4Address("168.63.129.16")})
"""Addresses that look public and are a cloud's own inside: Azure's platform endpoint. The others are link-local or private."""

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


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
                raise _PrivateAddressError(f"leads to {address}, which is not a public address")
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
    urls: Sequence[str], hosts: Collection[str], *, max_bytes: int = PICTURE_BYTES, deadline_s: float = DEADLINE_S
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
    return RefusedPath(SampleStatus.REMOTE_REFUSED, f"{quote(shown_url(text))} redirects more than {MAX_REDIRECTS} times")


async def _body(response: aiohttp.ClientResponse, text: str, max_bytes: int) -> bytes | RefusedPath:
    content = bytearray()
    async for piece in response.content.iter_chunked(1 << 16):
        content += piece
        if len(content) > max_bytes:
            return RefusedPath(SampleStatus.FILE_TOO_LARGE, f"{quote(shown_url(text))} has more than {max_bytes} bytes")
    return bytes(content)


def _missing(text: str, status: int) -> RefusedPath:
    return RefusedPath(SampleStatus.MISSING_FILE, f"{quote(shown_url(text))} cannot be fetched: the server answers {status}")


def _target(asked: URL, location: str) -> str:
    """Where a redirect leads; it is checked like any other URL. Raises ValueError."""
    return str(asked.join(read_url(location)))


def allow(text: str, hosts: Collection[str]) -> URL | RefusedPath:
    """The URL, where its scheme, host and port are allowed. `hosts` holds names or addresses, with a port where it is not 443."""
    try:
        url = read_url(text)
        host, port = url.host, url.port
    except ValueError:
        return _refused(text, "is not a valid URL")
    if host is None or port is None or url.scheme not in {"http", "https"}:
        return _refused(text, "is not an https address")
    if url.user is not None or url.password is not None:
        return _refused(text, "holds a user name or a password; write the address without them")
    named = f"[{host}]" if ":" in host else host
    wanted = {f"{named}:{port}".lower(), *([named.lower()] if port == 443 else [])}
    if not wanted & {one.lower() for one in hosts}:
        listed = ", ".join(hosts) or "none"
        return _refused(text, f"is on a host that is not in the source's remote_hosts ({listed})")
    address = _address(host)
    if url.scheme == "http" and not (address is not None and address.is_loopback):
        return _refused(text, "is not https")
    return url.with_fragment(None)


def is_public(text: str) -> bool:
    """Whether an address is one of the public Internet, looked at through every form that wraps an IPv4 address."""
    address = _address(text)
    if address is None or address in _ALWAYS_REFUSED:
        return False
    if isinstance(address, IPv6Address):
        inner = _inside(address)
        if inner is not None:
            return is_public(str(inner))
        if address.teredo is not None:
            return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def shown_url(text: str) -> str:
    """A URL as it may stand in messages and tables: without its query, which may hold a signature, and without a user."""
    try:
        url = read_url(text)
        return str(url.with_query(None).with_fragment(None).with_user(None)) if url.host else bare_url(text)
    except ValueError:
        return bare_url(text)


def read_url(text: str) -> URL:
    """The text as a URL. Raises ValueError, and nothing else."""
    try:
        return URL(text.strip())
    except IndexError as error:  # yarl's, of some texts with @ and ]
        raise ValueError("not a valid URL") from error


def _inside(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 address stands for: mapped, 6to4 or NAT64."""
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None


def _refused(text: str, why: str) -> RefusedPath:
    return RefusedPath(SampleStatus.REMOTE_REFUSED, f"{quote(shown_url(text))} {why}")
