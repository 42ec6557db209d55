"""What every call to an endpoint shares: its address, the key and its removal from texts, capped replies, lost connections."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Iterator
from dataclasses import fields, replace
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit
from urllib.request import getproxies, proxy_bypass

from schemas.benchmark.judges import Judge, address_fault
from schemas.errors import InputError, MissingKeyError
from schemas.input_budget import REPLY_BYTES, REPLY_WAITING_BYTES
from schemas.statuses.rows import LOST_ON_THE_WAY, ReplyStatus
from tasks.api_keys import N_SECRET_CHARACTERS, Spelled, key_named, may_be_a_word
from tasks.judge.provider.exchange import Answer
from tasks.judge.provider.failures import one_line
from tasks.judge.provider.json_bodies import joined_tokens

if TYPE_CHECKING:
    import aiohttp

CONNECT_TIMEOUT_S = 15.0
_REMOVED = "[key removed]"
_TEXTS = tuple(one.name for one in fields(Answer) if one.type == (str | None) and one.name != "detail")
"""What an answer says in a provider's words, its error apart: a field that is added is cleaned like the others."""
_N_QUERY_CHARACTERS = 6
"""Of a value in the address's query to be taken for a secret: versions and flags are shorter."""


def is_loopback(address: str) -> bool:
    """Whether an address is this machine's."""
    host = urlsplit(address).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def proxy_of(address: str) -> str | None:
    """The proxy that the environment names for an address; none for this machine's own, where no proxy reaches.

    Raises InputError where it is no address: a sign of its password may stand there as it is. It is not shown.
    """
    parts, proxies = urlsplit(address), getproxies()
    if is_loopback(address) or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    name = next((name for name in (parts.scheme, "all") if proxies.get(name)), None)
    if name is None:
        return None
    try:
        is_address = bool(urlsplit(proxies[name]).hostname) and urlsplit(proxies[name]).port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise InputError(
            f"the environment variable {name}_proxy is not an address; write http://user:password@host:port, and "
            "percent-encode other characters than letters and digits in user and password (%23 for #)"
        )
    return proxies[name]


def endpoint(address: str) -> str:
    """An address as it may be shown: no user, password or query."""
    url = urlsplit(address)
    return f"{url.scheme}://{url.hostname}{f':{url.port}' if url.port else ''}{url.path}"


def api_key(judge: Judge, address: str) -> str | None:
    """The key, from the environment. Raises MissingKeyError where a remote judge has none; one on this machine needs none.

    Raises InputError where nothing can be sent to the address.
    """
    if why := address_fault(address):  # one from elsewhere than the benchmark file, which refuses it itself
        raise InputError(f"judges.base_url of {judge.model}: {why}")
    key = key_named(judge.api_key_env)
    if not key:
        if is_loopback(address):
            return None
        raise MissingKeyError(
            f"judge {judge.model} at {endpoint(address)} needs a key, but the environment variable {judge.api_key_env} is not "
            f"set; export {judge.api_key_env}=…, or name another variable with api_key_env"
        )
    if not (key.isascii() and key.isprintable()):
        raise MissingKeyError(
            f"the environment variable {judge.api_key_env} holds characters that no key has (a line break, a non-ASCII letter); "
            "set it again"
        )
    return key


class Secrets:
    """What a provider may repeat and nobody may read: the key, and the values in the address's query; the longest first.

    A body and a judge's words stay verbatim where the secret may be a word of theirs, such as a key that stands for none.
    """

    def __init__(self, key: str | None, address: str) -> None:
        held = {value for _, value in parse_qsl(urlsplit(address).query) if len(value) >= _N_QUERY_CHARACTERS}
        if key and len(key) >= N_SECRET_CHARACTERS:
            held.add(key)
        ordered = sorted(held, key=len, reverse=True)
        self._in_errors = tuple(map(Spelled, ordered))
        self._in_replies = tuple(Spelled(secret) for secret in ordered if not may_be_a_word(secret))

    def out_of_bytes(self, content: bytes) -> bytes:
        """A body without them, before any of it is cut short: half a key is no longer found."""
        for secret in self._in_replies:
            content = secret.sub_bytes(_REMOVED.encode(), content)
        return content

    def out_of_text(self, text: str) -> str:
        """What an error says without any copy of any of them."""
        return _without(text, self._in_errors)

    def out_of(self, answer: Answer) -> Answer:
        """The answer without them, should a provider repeat one."""
        if answer.detail is not None:
            answer = replace(answer, detail=one_line(self.out_of_text(answer.detail)))
        texts: dict[str, str] = {name: said for name in _TEXTS if (said := getattr(answer, name))}
        if any(secret.is_in(said) for said in texts.values() for secret in self._in_replies):
            without: dict[str, Any] = {name: _without(said, self._in_replies) for name, said in texts.items()}
            answer = replace(answer, **without)
        if answer.logprobs_json is not None and self._in_replies:
            said = joined_tokens(answer.logprobs_json)
            if any(secret.is_in(said) for secret in self._in_replies):  # in pieces, none of which is the secret
                answer = replace(answer, logprobs_json=None)
        return answer


def _without(text: str, secrets: tuple[Spelled, ...]) -> str:
    for secret in secrets:
        text = secret.sub(_REMOVED, text)
    return text


class RefusedReplyError(Exception):
    """A reply that is not read to its end; the text says why."""


_TOO_LARGE = f"a reply of more than {REPLY_BYTES} bytes; it was not read"


def refuse_packed(encoding: str) -> None:
    """Raise RefusedReplyError for a reply in this content-encoding, unless it is as it was asked for: none."""
    if any(name.strip().lower() not in ("", "identity") for name in encoding.split(",")):
        raise RefusedReplyError(
            f"a reply in content-encoding {encoding[:40]!r}, which was not requested; it was not decompressed"
        )


async def capped(chunks: AsyncIterable[bytes], turn: asyncio.Lock) -> AsyncGenerator[bytes]:
    """The chunks of a body up to REPLY_BYTES, past which it is a RefusedReplyError; past REPLY_WAITING_BYTES in its turn alone.

    Each is held several times while it is read: dozens at once took gigabytes.
    """
    n_bytes, has_turn = 0, False
    try:
        async for chunk in chunks:
            n_bytes += len(chunk)
            if n_bytes > REPLY_BYTES:
                raise RefusedReplyError(_TOO_LARGE)
            if n_bytes > REPLY_WAITING_BYTES and not has_turn:
                has_turn = await turn.acquire()
            yield chunk
    finally:
        if has_turn:
            turn.release()


def no_response(error: Exception, *, is_begun: bool = True) -> Answer:
    """A timeout or a lost connection, told apart by the transport's own exception: the SDK calls both timeouts.

    `is_begun`: whether any of the request's body was asked for; before that a proxy, or TLS, may still be on its way there.
    """
    import aiohttp
    from aiohttp.http import HttpProcessingError
    from aiohttp.http_exceptions import PayloadEncodingError

    causes = list(_causes(error))
    refused = next((str(cause) for cause in causes if isinstance(cause, RefusedReplyError)), None)
    if refused is not None:
        return Answer(ReplyStatus.BAD_RESPONSE, refused)
    by_proxy = next((cause for cause in causes if isinstance(cause, aiohttp.ClientHttpProxyError)), None)
    if by_proxy is not None:
        return _refused_by_proxy(by_proxy)
    connecting = (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError)
    malformed = next((cause for cause in causes if isinstance(cause, HttpProcessingError)), None)
    is_head = malformed is not None and not isinstance(malformed, PayloadEncodingError)
    is_cut = any(isinstance(cause, aiohttp.ServerDisconnectedError) for cause in causes)
    detail = next((str(cause) for cause in reversed(causes) if str(cause)), type(error).__name__)
    detail = malformed.message if malformed else "the server closed it" if is_cut else detail
    if is_head:
        detail = f"the server's response is not valid HTTP: {detail}"
    by_way_of = next((cause for cause in causes if isinstance(cause, aiohttp.ClientProxyConnectionError)), None)
    if by_way_of is not None:
        detail = f"the proxy set in the environment does not answer: {detail}; start it, or name the judge's host in no_proxy"
    if not is_begun or any(isinstance(cause, connecting) for cause in causes):
        return Answer(ReplyStatus.UNREACHABLE, f"no connection: {detail}", is_sent=False)
    if any(isinstance(cause, aiohttp.ServerTimeoutError) for cause in causes):
        return Answer(ReplyStatus.TIMED_OUT, f"no complete reply in time; it may have been billed: {detail}")
    return Answer(ReplyStatus.UNREACHABLE, f"{LOST_ON_THE_WAY}; the request may have been billed: {detail}")


def _refused_by_proxy(error: "aiohttp.ClientHttpProxyError") -> Answer:
    """A proxy that opens no way to the provider. It is shown without its login, which the error's own text holds."""
    where, said = endpoint(str(error.request_info.real_url)), f"HTTP {error.status} {error.message}".strip()
    advice = "check that it is allowed and able to reach that host"
    if error.status == 407:
        advice = "add its user and password to the environment variable https_proxy"
    detail = f"the proxy {where} does not connect to the judge's host ({said}); {advice}, or name that host in no_proxy"
    return Answer(ReplyStatus.UNREACHABLE, f"no connection, and nothing was sent: {detail}", is_sent=False)


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__
