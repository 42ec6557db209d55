"""The client: one judge behind one OpenAI-compatible endpoint, one attempt at a time. What a response means is responses.py.

It is the only file that knows the `openai` package. Retries, limits and the ledger are the engine's.
"""

import asyncio
import ipaddress
import re
import time
import zlib
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import replace
from datetime import date
from hashlib import sha256
from urllib.parse import parse_qsl, urlsplit

import aiohttp
import httpx2
import orjson
from openai import AsyncOpenAI, DefaultAioHttpClient

from schemas.benchmark import Judge
from schemas.errors import InputError, MissingKeyError
from schemas.statuses import ReplyStatus
from tasks.api_keys import key_named
from tasks.judge.provider.payload import Body, check_parameters
from tasks.judge.provider.responses import Answer, one_line, read_answer
from tasks.secret_patterns import spelled

DEFAULT_BASE_URL = "https://api.openai.com/v1"
MAX_REPLY_BYTES = 8 * 1024 * 1024
CONNECT_TIMEOUT_S = 15.0
_REMOVED = "[key removed]"
N_SECRET_CHARACTERS = 6
"""Of a value in the address's query to be taken for a secret: versions and flags are shorter."""


class JudgeClient:
    """Asks one judge. Raises MissingKeyError or InputError when made, before anything is sent; `ask` itself never raises."""

    def __init__(self, judge: Judge, concurrency: int, deadline_s: float) -> None:
        check_parameters(judge.parameters)
        self.judge = judge
        self.endpoint = endpoint(judge)
        self._key = api_key(judge)
        self._secrets = secrets(judge)
        self._deadline_s = deadline_s
        # The SDK's timeouts are for each read; the deadline around the whole attempt is our own.
        timeout = httpx2.Timeout(deadline_s, connect=min(CONNECT_TIMEOUT_S, deadline_s))
        limits = httpx2.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
        self._transport = DefaultAioHttpClient(
            limits=limits, timeout=timeout, follow_redirects=False, event_hooks={"response": [cap_size]}
        )
        self._client = AsyncOpenAI(
            api_key=self._key or "none",
            base_url=judge.base_url or DEFAULT_BASE_URL,
            http_client=self._transport,
            max_retries=0,
        )
        base_url = self._client.base_url
        self._url = base_url.copy_with(raw_path=base_url.raw_path + _PATH.lstrip("/").encode())
        sent = {**self._client.default_headers, **self._client.auth_headers}
        self._headers = {name: value for name, value in sent.items() if isinstance(value, str)} | _HEADERS
        self._extensions = {"timeout": timeout.as_dict()}  # what the transport adds where it builds the request itself

    async def ask(self, body: Body) -> Answer:
        """Send one body and wait, at most the deadline, for the whole reply."""
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self._deadline_s):
                response = await self._post(body)
                answer = read_answer(response.status_code, response.headers, cleaned(response.content, self._secrets))
        except TimeoutError:
            answer = Answer(ReplyStatus.TIMED_OUT, f"no complete reply within {self._deadline_s:g} s; it may have been billed")
        except _TooLargeError:
            answer = Answer(ReplyStatus.BAD_RESPONSE, f"a reply of more than {MAX_REPLY_BYTES} bytes; it was not read")
        except httpx2.RequestError as error:
            answer = no_response(error)
        except Exception as error:  # noqa: BLE001 - whatever a broken peer makes the libraries raise is one failed attempt
            answer = Answer(ReplyStatus.BAD_RESPONSE, f"{type(error).__name__}: {error}")
        return self._without_key(replace(answer, latency_s=time.perf_counter() - started))

    async def _post(self, body: Body) -> httpx2.Response:
        """Past the SDK's building of a request, which costs as much as sending it; its transport, headers and address stay.

        The body is made as the socket takes it: hundreds of whole ones would stay in memory until their replies come.
        """
        headers = self._headers | {"content-length": str(body.n_bytes)}
        request = httpx2.Request("POST", self._url, headers=headers, stream=_Sent(body), extensions=self._extensions)
        return await self._transport.send(request)

    async def shutdown_date(self) -> date | None:
        """When the endpoint will retire the judge, by its list of models; None where it does not say so in time."""
        try:
            async with asyncio.timeout(self._deadline_s):
                response = await self._client.get("/models", cast_to=httpx2.Response, options={"headers": _HEADERS})
            listed = orjson.loads(response.content)["data"]
            return next(date.fromisoformat(row["shutdown_date"]) for row in listed if row["id"] == self.judge.model)
        except Exception:  # noqa: BLE001 - an optional courtesy: nothing depends on it
            return None

    @property
    def key_digest(self) -> str:
        """Stands for the key where requests of one key are counted together: it says nothing about the key."""
        return sha256(f"salon {self._key or ''}".encode()).hexdigest()

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _without_key(self, answer: Answer) -> Answer:
        """The answer with the key taken out, should a provider repeat it."""
        if answer.detail is not None:
            answer = replace(answer, detail=one_line(without_key(answer.detail, self._secrets)))
        said = (answer.text, answer.refusal_text, answer.answered_model, answer.finish_reason)
        if any(text and secret.search(text) for text in said for secret in self._secrets):
            text, refusal, model, finish = (text and without_key(text, self._secrets) for text in said)
            answer = replace(answer, text=text, refusal_text=refusal, answered_model=model, finish_reason=finish)
        return answer


_PATH = "/chat/completions"
_HEADERS = {"Content-Type": "application/json", "Accept-Encoding": "identity"}


def endpoint(judge: Judge) -> str:
    """The judge's address as it may be shown: no user, password or query. Raises InputError where it is not an http(s) URL."""
    address = judge.base_url or DEFAULT_BASE_URL
    try:
        url = urlsplit(address)
        is_usable = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        shown = address.rpartition("@")[2].partition("?")[0][:80]
        raise InputError(f'judges.base_url = "{shown}" is not an address; write https://host/v1 (or http://localhost:8000/v1)')
    return f"{url.scheme}://{url.hostname}{f':{url.port}' if url.port else ''}{url.path}"


def is_loopback(judge: Judge) -> bool:
    """Whether the judge runs on this machine."""
    host = urlsplit(judge.base_url or DEFAULT_BASE_URL).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def api_key(judge: Judge) -> str | None:
    """The key, from the environment. Raises MissingKeyError where a remote judge has none; one on this machine needs none.

    Raises InputError where the address holds a login: the transport could not send it beside a key.
    """
    if "@" in (judge.base_url or ""):
        raise InputError(
            f"judges.base_url of {judge.model} holds a user name or a password; write https://host/v1, put the key into an "
            "environment variable and name that one with api_key_env"
        )
    key = key_named(judge.api_key_env)
    if not key:
        if is_loopback(judge):
            return None
        raise MissingKeyError(
            f"judge {judge.model} at {endpoint(judge)} needs a key, and the environment variable {judge.api_key_env} is not set; "
            f"export {judge.api_key_env}=…, or name another variable with api_key_env"
        )
    if not (key.isascii() and key.isprintable()):
        raise MissingKeyError(
            f"the environment variable {judge.api_key_env} holds characters no key has (a line break, a letter outside ASCII); "
            "set it again"
        )
    return key


class _Sent(httpx2.AsyncByteStream):
    """A body as the transport takes it."""

    def __init__(self, body: Body) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._body:
            yield piece


class _TooLargeError(Exception):
    """The reply is longer than MAX_REPLY_BYTES."""


class _Capped(httpx2.AsyncByteStream):
    """A response stream that ends in an error past MAX_REPLY_BYTES, unpacked where the endpoint packed it unasked.

    The library would unpack without a limit: 8 MB of zeros, gzipped, are 8 GB.
    """

    def __init__(self, stream: httpx2.AsyncByteStream, is_packed: bool) -> None:
        self._stream = stream
        self._unpacker = zlib.decompressobj(wbits=47) if is_packed else None  # 47: gzip or zlib, by its header

    async def __aiter__(self) -> AsyncIterator[bytes]:
        n_bytes = 0
        async for packed in self._stream:
            chunk = self._unpacker.decompress(packed, MAX_REPLY_BYTES + 1) if self._unpacker else packed
            n_bytes += len(chunk)
            if n_bytes > MAX_REPLY_BYTES:
                raise _TooLargeError
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


async def cap_size(response: httpx2.Response) -> None:
    """A response hook that ends a reply of more than MAX_REPLY_BYTES in an error.

    A plain one that says its length is held to it by the transport already.
    """
    is_packed = response.headers.get("content-encoding", "") in ("gzip", "deflate")
    said = response.headers.get("content-length", "")
    is_short = not is_packed and said.isdecimal() and len(said) < 12 and int(said) <= MAX_REPLY_BYTES
    if isinstance(response.stream, httpx2.AsyncByteStream) and not is_short:
        if is_packed:
            del response.headers["content-encoding"]
        response.stream = _Capped(response.stream, is_packed)


def no_response(error: Exception) -> Answer:
    """A timeout or a lost connection, told apart by the transport's own exception: the SDK calls both timeouts."""
    causes = list(_causes(error))
    if any(isinstance(cause, _TooLargeError) for cause in causes):
        return Answer(ReplyStatus.BAD_RESPONSE, f"a reply of more than {MAX_REPLY_BYTES} bytes; it was not read")
    connecting = (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError)
    detail = next((str(cause) for cause in reversed(causes) if str(cause)), type(error).__name__)
    if any(isinstance(cause, connecting) for cause in causes):
        return Answer(ReplyStatus.UNREACHABLE, f"no connection: {detail}", is_sent=False)
    if any(isinstance(cause, aiohttp.ServerTimeoutError) for cause in causes):
        return Answer(ReplyStatus.TIMED_OUT, f"no complete reply in time; it may have been billed: {detail}")
    return Answer(ReplyStatus.UNREACHABLE, f"the connection was lost; the request may have been billed: {detail}")


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


def secrets(judge: Judge) -> tuple[re.Pattern[str], ...]:
    """What a provider may repeat and nobody may read: the key, the values in the address's query; longest first."""
    query = urlsplit(judge.base_url or DEFAULT_BASE_URL).query
    held = {api_key(judge) or "", *(value for _, value in parse_qsl(query) if len(value) >= N_SECRET_CHARACTERS)} - {""}
    return tuple(map(spelled, sorted(held, key=len, reverse=True)))


def cleaned(content: bytes, secrets: Iterable[re.Pattern[str]]) -> bytes:
    """A body without secrets, before any of it is cut short: half a key is no longer found."""
    for secret in secrets:
        content = re.sub(secret.pattern.encode(), _REMOVED.encode(), content)
    return content


def without_key(text: str, secrets: Iterable[re.Pattern[str]]) -> str:
    """The text with every copy of every secret taken out."""
    for secret in secrets:
        text = secret.sub(_REMOVED, text)
    return text
