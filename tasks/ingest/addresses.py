"""Which hosts and addresses a picture may be fetched from. What is done over the network is fetching.py."""

import ipaddress
from collections.abc import Collection
from ipaddress import IPv4Address, IPv6Address

from yarl import URL

from schemas.statuses import SampleStatus
from tasks.ingest.paths import RefusedPath, bare_url, quote

_ALWAYS_REFUSED = frozenset({IPv4Address("168.63.129.16")})
"""Addresses that look public and are a cloud's own inside: Azure's platform endpoint. The others are link-local or private."""

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def allow(text: str, hosts: Collection[str]) -> URL | RefusedPath:
    """The URL, where its scheme, host and port are allowed. `hosts` holds names or addresses, with a port where it is not 443."""
    try:
        url = read_url(text)
        host, port = url.host, url.port
    except ValueError:
        return _refused(text, "is not a URL that can be read")
    if host is None or port is None or url.scheme not in {"http", "https"}:
        return _refused(text, "is no https address")
    if url.user is not None or url.password is not None:
        return _refused(text, "holds a user name or a password; write the address without them")
    named = f"[{host}]" if ":" in host else host
    wanted = {f"{named}:{port}".lower(), *([named.lower()] if port == 443 else [])}
    if not wanted & {one.lower() for one in hosts}:
        listed = ", ".join(hosts) or "none"
        return _refused(text, f"is on a host that the source's remote_hosts does not name ({listed})")
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
        raise ValueError("not a URL that can be read") from error


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
