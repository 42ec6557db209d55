"""The calls of a Batch API over the wire of single requests, files included, and files of results read line by line.

Which calls there are, and what a line means, is each provider's. OpenAI's own calls go through its package.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import orjson

from schemas.errors import StoreError
from schemas.input_budget import BATCH_RESULTS_BYTES, JSON_LEVELS, REPLY_BYTES, is_too_deep
from schemas.json_text import RepeatedKeyError, refuse_repeated_keys
from schemas.statuses.rows import ReplyStatus
from tasks.judge.provider.batch_api import CallFailedError
from tasks.judge.provider.exchange import Answer, Ended
from tasks.judge.provider.failures import bad, one_line
from tasks.judge.provider.json_bodies import loaded, mapping, text
from tasks.judge.provider.payload import SplicedPayload
from tasks.judge.provider.transport import RefusedReplyError, Secrets, no_response
from tasks.judge.provider.wire import Response, Wire
from tasks.lake.atomic_files import store_error

CALL_DEADLINE_S = 60.0
LEAST_BYTES_PER_S = 100_000
"""A file has the time it takes at this speed, and CALL_DEADLINE_S on top."""
_PIECE_BYTES = 128 * 1024

ReadFailure = Callable[[int, Mapping[str, str], bytes], Answer]


def transfer_s(n_bytes: int) -> float:
    """How long a file of so many bytes may be under way."""
    return CALL_DEADLINE_S + n_bytes / LEAST_BYTES_PER_S


class FilePayload:
    """A file as a body, read while it is sent: in the `pieces` made of it, or as it is."""

    def __init__(self, path: Path, n_bytes: int, pieces: Callable[[IO[bytes]], Iterator[bytes]] | None = None) -> None:
        self.n_bytes, self._path, self._pieces = n_bytes, path, pieces or _pieces
        self.on_start: Callable[[], None] = lambda: None

    def __iter__(self) -> Iterator[bytes]:
        """The file, piece by piece."""
        self.on_start()
        with self._path.open("rb") as file:
            yield from self._pieces(file)


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(_PIECE_BYTES):
        yield piece


async def write_results(pieces: AsyncIterator[bytes], path: Path) -> None:
    """Write a file of results to `path` as it comes; of a larger one, its first BATCH_RESULTS_BYTES.

    Raises TimeoutError where it comes too slowly, StoreError.
    """
    started, n_bytes = time.monotonic(), 0
    with store_error(f"writing {path}"):
        file = path.open("wb")
    with file:
        async for piece in pieces:
            with store_error(f"writing {path}"):
                file.write(piece[: BATCH_RESULTS_BYTES - n_bytes])
            n_bytes += len(piece)
            if n_bytes >= BATCH_RESULTS_BYTES:
                return
            if time.monotonic() - started > transfer_s(n_bytes):
                raise TimeoutError


def read_object(body: bytes, secrets: Secrets) -> dict[str, Any]:
    """The JSON object that is the reply to a call. Raises CallFailedError, without secrets, where it is none."""
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        content = None
    if not isinstance(content, dict) or is_too_deep(content):
        start = secrets.out_of_bytes(body)[:80].decode("utf-8", "replace")
        raise CallFailedError(secrets.out_of(bad(f"the reply is not a JSON object, or is nested too deeply: {start!r}")))
    return content


class BatchCalls:
    """One call at a time, each within a deadline of its own; what goes wrong is a CallFailedError without secrets."""

    def __init__(self, wire: Wire, secrets: Secrets, read_failure: ReadFailure) -> None:
        from tasks.judge.provider.aiohttp_wire import AiohttpWire

        assert isinstance(wire, AiohttpWire)  # no other sends files, or streams what comes
        self._wire, self._secrets, self._read_failure = wire, secrets, read_failure

    async def send(
        self,
        method: str,
        url: str,
        body: FilePayload | None = None,
        headers: Mapping[str, str] | None = None,
        content: object = None,
    ) -> Response:
        """The response to a call; `content` is sent as JSON. One that says that it failed is a CallFailedError."""
        sent = SplicedPayload([orjson.dumps(content)], []) if content is not None else body
        async with self._mapped(transfer_s(sent.n_bytes if sent else 0)):
            status_code, said, received = await self._wire.send(method, url, sent, headers or {})
        if not 200 <= status_code < 300:
            raise self._refused(status_code, said, received)
        return status_code, said, received

    async def json(
        self,
        method: str,
        url: str,
        body: FilePayload | None = None,
        headers: Mapping[str, str] | None = None,
        content: object = None,
    ) -> dict[str, Any]:
        """The JSON object that is the reply to a call."""
        _, _, received = await self.send(method, url, body, headers, content)
        return read_object(received, self._secrets)

    async def download(self, url: str, path: Path) -> None:
        """Write what stands at an address to `path` as it comes; of a larger one, its first BATCH_RESULTS_BYTES."""
        async with self._mapped(transfer_s(BATCH_RESULTS_BYTES)), self._wire.streamed(url) as response:
            if not 200 <= response.status < 300:
                received = await response.content.read(_PIECE_BYTES)
                raise self._refused(response.status, response.headers, received)
            await write_results(response.content.iter_any(), path)

    async def first_line(self, url: str) -> bytes:
        """The first line of what stands at an address."""
        async with self._mapped(CALL_DEADLINE_S), self._wire.streamed(url) as response:
            if not 200 <= response.status < 300:
                raise self._refused(response.status, response.headers, await response.content.read(_PIECE_BYTES))
            begun, n_bytes = list[bytes](), 0
            async for piece in response.content.iter_any():
                begun.append(piece)
                n_bytes += len(piece)
                if b"\n" in piece or n_bytes > REPLY_BYTES:
                    break
            return b"".join(begun).partition(b"\n")[0]

    def failed(self, detail: str, status: ReplyStatus = ReplyStatus.BAD_RESPONSE, **how: bool) -> CallFailedError:
        """The error for a call whose reply cannot be used."""
        return CallFailedError(self._secrets.out_of(Answer(status, one_line(detail))), **how)

    def _refused(self, status_code: int, headers: Mapping[str, str], body: bytes) -> CallFailedError:
        answer = self._secrets.out_of(self._read_failure(status_code, headers, self._secrets.out_of_bytes(body)))
        said = replace(answer, detail=answer.detail or "no reason given")
        return CallFailedError(said, is_absent=status_code == 404, is_unsupported=status_code in (404, 405, 501))

    @asynccontextmanager
    async def _mapped(self, deadline_s: float) -> AsyncIterator[None]:
        """Whatever the libraries raise as CallFailedError; the deadline is for the whole block."""
        from aiohttp import ClientError

        try:
            async with asyncio.timeout(deadline_s):
                yield
        except (StoreError, CallFailedError):
            raise
        except TimeoutError:
            raise self.failed(f"no complete reply within {deadline_s:.0f} s", ReplyStatus.TIMED_OUT) from None
        except ClientError as error:
            raise CallFailedError(self._secrets.out_of(no_response(error))) from None
        except RefusedReplyError as error:
            raise self.failed(str(error)) from None
        except Exception as error:  # noqa: BLE001 - whatever a broken peer makes the libraries raise is one failed call
            raise self.failed(f"{type(error).__name__}: {error}") from None


def read_result_lines(
    path: Path,
    name_key: str,
    answer_of: Callable[[dict[str, Any]], Ended],
    clean: Callable[[bytes], bytes] = bytes,
    on_line: Callable[[int, bool], object] | None = None,
) -> Iterator[tuple[str, Ended]]:
    """(name, answer) of every line of a file of results that can be told apart.

    The others are passed over. `on_line` is told the number of each that is not blank, from 1 on, and whether it is one of these.
    `clean` takes secrets out of a line before it is read: an answer holds no more than the beginning of some texts.
    """
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(REPLY_BYTES), b""), 1):
            found = None
            if len(line) == REPLY_BYTES and not line.endswith(b"\n"):
                _skip_line(file)
            else:
                found = _result(clean(line), name_key, answer_of)
            if on_line is not None and (found is not None or line.strip()):
                on_line(number, found is not None)
            if found is not None:
                yield found


def _skip_line(file: IO[bytes]) -> None:
    while (piece := file.readline(2**20)) and not piece.endswith(b"\n"):
        pass


def _result(line: bytes, name_key: str, answer_of: Callable[[dict[str, Any]], Ended]) -> tuple[str, Ended] | None:
    try:
        line, content = loaded(line)
    except orjson.JSONDecodeError:
        return None
    name = text(mapping(content).get(name_key))
    if name is None:
        return None
    if is_too_deep(content):
        return name, Answer(ReplyStatus.BAD_RESPONSE, f"a line nested in more than {JSON_LEVELS} levels")
    try:
        refuse_repeated_keys(line)
    except RepeatedKeyError as error:
        return name, Answer(ReplyStatus.BAD_RESPONSE, one_line(f"a line that contradicts itself: {error}"))
    return name, answer_of(content)
