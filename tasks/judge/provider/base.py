"""What a judge provider is, and how one is chosen by its name: one judge behind one endpoint, asked over plain HTTP.

A provider is a folder here, named as `judges.provider` names it; all that knows its wire format stands in that folder: addresses,
headers, bodies and what a response means. What crosses the border is exchange.py. Retries, limits, ledger: the engine's.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, ClassVar
from urllib.parse import urlsplit

from schemas.benchmark.judges import Judge
from schemas.errors import InputError
from schemas.statuses.rows import ReplyStatus
from tasks.judge.provider.batch_api import BatchApi, BatchFiles
from tasks.judge.provider.exchange import Answer, Payload, RequestPicture
from tasks.judge.provider.failures import remedy
from tasks.judge.provider.transport import RefusedReplyError, Secrets, api_key, endpoint, no_response, proxy_of
from tasks.judge.provider.wire import Wire

_HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
    "User-Agent": f"salon/{version('salon')}",
}


class Provider(ABC):
    """One judge at one endpoint, one attempt at a time. Made, it raises MissingKeyError or InputError; nothing is sent."""

    DEFAULT_BASE_URL: ClassVar[str]
    has_detail: ClassVar[bool] = False  # whether `judges.detail` means something there
    batch_files: ClassVar[BatchFiles | None] = None  # None where its batches are made and fetched by calls alone
    instead_of_detail: ClassVar[str] = "set max_side_px instead"

    def __init__(self, judge: Judge, concurrency: int, deadline_s: float) -> None:
        self.check_parameters(judge.parameters)
        self.judge = judge
        self._base_url = judge.base_url or self.DEFAULT_BASE_URL
        self._key = api_key(judge, self._base_url)
        self.endpoint = endpoint(self._base_url)  # as it may be shown
        self._secrets = Secrets(self._key, self._base_url)
        self._deadline_s = deadline_s
        proxy_of(self._base_url)  # one that is no address is told before anything is asked
        self._wire = self._make_wire(_HEADERS | self._headers(), concurrency)
        self._asked_at = self._address(self._path())

    @staticmethod
    @abstractmethod
    def check_parameters(parameters: Mapping[str, object]) -> None:
        """Raise InputError where a judge's `parameters` hold what the provider does not take from there. Needs no key."""

    @staticmethod
    @abstractmethod
    def output_bound(parameters: Mapping[str, object]) -> int | None:
        """The longest reply, in tokens, that a judge's `parameters` allow; None where they do not say."""

    @property
    @abstractmethod
    def batch(self) -> BatchApi | None:
        """The Batch API; None where the provider has none."""

    @abstractmethod
    def payload(
        self, parameters: Mapping[str, object], messages: Sequence[Mapping[str, Any]], pictures: Sequence[RequestPicture]
    ) -> Payload:
        """The body of a request, a picture for each image part in order. Raises what their `read` raises."""

    @abstractmethod
    def _headers(self) -> dict[str, str]:
        """Those of this provider, the key among them."""

    @abstractmethod
    def _path(self) -> str:
        """Where requests are sent, under the base_url."""

    @staticmethod
    @abstractmethod
    def _read(status_code: int, headers: Mapping[str, str], body: bytes) -> Answer:
        """The typed meaning of a whole response. Never raises."""

    def _make_wire(self, headers: Mapping[str, str], concurrency: int) -> Wire:
        from tasks.judge.provider.aiohttp_wire import AiohttpWire

        return AiohttpWire(self._base_url, headers, concurrency)

    def _address(self, path: str, query: str = "") -> str:
        """A path of the API under the judge's base_url, whose query stays at the end."""
        parts = urlsplit(self._base_url)
        queries = "&".join(filter(None, (query, parts.query)))
        return parts._replace(path=parts.path.rstrip("/") + path, query=queries).geturl()

    @classmethod
    def check(cls, judge: Judge) -> None:
        """Raise MissingKeyError or InputError where the judge cannot be asked as the benchmark file has it."""
        cls.check_parameters(judge.parameters)
        cls.check_detail(judge)
        api_key(judge, judge.base_url or cls.DEFAULT_BASE_URL)

    @classmethod
    def check_detail(cls, judge: Judge) -> None:
        """Raise InputError where it has a `detail` that means nothing there. Needs no key."""
        if judge.detail is not None and not cls.has_detail:
            raise InputError(
                f'judge {judge.id}: {judge.provider} does not support detail = "{judge.detail}"; {cls.instead_of_detail}'
            )

    @staticmethod
    def prompt_cache_tokens(judge: Judge) -> int | None:  # noqa: ARG004 - for providers that say so
        """Tokens that requests must begin with alike to be billed as repeated; None where that is not known of the endpoint."""
        return None

    remedy = staticmethod(remedy)

    async def ask(self, payload: Payload) -> Answer:
        """Send one body and wait, at most the deadline, for the whole reply. Never raises."""
        from aiohttp import ClientError

        started, is_begun, told = time.perf_counter(), False, payload.on_start

        def on_start() -> None:
            nonlocal is_begun
            is_begun = True
            told()

        payload.on_start = on_start  # before that a connection is still being made
        try:
            async with asyncio.timeout(self._deadline_s):
                status_code, said, body = await self._wire.post(self._asked_at, payload)
                answer = self._read(status_code, said, self._secrets.out_of_bytes(body))
        except ClientError as error:
            answer = no_response(error, is_begun=is_begun)
        except TimeoutError:
            answer = Answer(ReplyStatus.TIMED_OUT, f"no complete reply within {self._deadline_s:g} s; it may have been billed")
            if not is_begun:
                answer = Answer(ReplyStatus.UNREACHABLE, f"no connection within {self._deadline_s:g} s", is_sent=False)
        except RefusedReplyError as error:
            answer = Answer(ReplyStatus.BAD_RESPONSE, str(error))
        except Exception as error:  # noqa: BLE001 - whatever a broken peer makes the libraries raise is one failed attempt
            answer = Answer(ReplyStatus.BAD_RESPONSE, f"{type(error).__name__}: {error}")
            if not is_begun:
                answer = replace(answer, status=ReplyStatus.UNREACHABLE, is_sent=False)
        return self._secrets.out_of(replace(answer, latency_s=time.perf_counter() - started))

    async def shutdown_date(self) -> date | None:
        """When the endpoint will retire the judge; most do not say it over their API."""
        return None

    @property
    def key_digest(self) -> str:
        """Stands for the key where requests of one key are counted together: it says nothing about the key."""
        return sha256(f"salon {self._key or ''}".encode()).hexdigest()

    async def close(self) -> None:
        """Close the connections."""
        await self._wire.close()


def check_provider(judge: Judge) -> None:
    """Raise InputError where there is no provider of the judge's `provider`."""
    if judge.provider not in _names():
        raise InputError(
            f'judges.provider = "{judge.provider}" of {judge.model} is not a provider; available: {", ".join(_names())}'
        )


def provider_of(judge: Judge) -> type[Provider]:
    """The class of the judge's provider. Raises InputError where there is none."""
    check_provider(judge)
    found: type[Provider] = import_module(f"{__package__}.{judge.provider}").PROVIDER
    return found


@cache
def _names() -> tuple[str, ...]:
    return tuple(sorted(module.name for module in iter_modules([str(Path(__file__).parent)]) if module.ispkg))
