"""The client: one judge behind one OpenAI-compatible endpoint, one attempt at a time. Retries, limits, ledger: the engine's."""

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from hashlib import sha256
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import aiohttp
import orjson

from schemas.benchmark import Judge
from schemas.statuses import ReplyStatus
from tasks.judge.provider.base import Answer, Payload, RequestPicture
from tasks.judge.provider.openai.failures import remedy
from tasks.judge.provider.openai.payload import check_parameters, make_payload
from tasks.judge.provider.openai.responses import read_answer
from tasks.judge.provider.openai.transport import (
    DEFAULT_BASE_URL,
    RefusedReplyError,
    Secrets,
    api_key,
    endpoint,
    no_response,
)
from tasks.judge.provider.openai.wire import AiohttpWire, Wire, is_by_sdk

if TYPE_CHECKING:
    from tasks.judge.provider.openai.batch_api import OpenAIBatches

_CHAT, _MODELS = "/chat/completions", "/models"
_HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
    "User-Agent": f"salon/{version('salon')}",
}
_ACCOUNTS = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
"""Headers and the environment variables that every client of the API takes them from."""


def _wire(base_url: str, headers: Mapping[str, str], n_connections: int, deadline_s: float) -> Wire:
    if not is_by_sdk():
        return AiohttpWire(base_url, headers, n_connections)
    from tasks.judge.provider.openai.sdk_wire import SdkWire

    return SdkWire(base_url, headers, n_connections, deadline_s)


def _noted(payload: Payload) -> asyncio.Event:
    """An event that is set when the payload is being sent: before that a connection is still being made."""
    begun, told = asyncio.Event(), payload.on_start

    def on_start() -> None:
        begun.set()
        told()

    payload.on_start = on_start
    return begun


def _accounts() -> dict[str, str]:
    return {name: value for name, variable in _ACCOUNTS.items() if (value := os.environ.get(variable))}


PROMPT_CACHE_TOKENS = 1024
"""Requests that begin with fewer equal tokens meet nothing (OpenAI's guide to prompt caching, 2026-11)."""


class OpenAIProvider:
    """One judge behind one endpoint: see base.Provider."""

    def __init__(self, judge: Judge, concurrency: int, deadline_s: float) -> None:
        check_parameters(judge.parameters)
        self.judge = judge
        self.endpoint, self._base_url = endpoint(judge), judge.base_url or DEFAULT_BASE_URL
        self._key = api_key(judge)
        self._secrets = Secrets(judge)
        self._deadline_s = deadline_s
        self._batch: OpenAIBatches | None = None
        headers = _HEADERS | ({"Authorization": f"Bearer {self._key}"} if self._key else {}) | _accounts()
        self._wire = _wire(self._base_url, headers, concurrency, deadline_s)

    def _address(self, path: str) -> str:
        """A path of the API under the judge's base_url, whose query stays at the end."""
        parts = urlsplit(self._base_url)
        return parts._replace(path=parts.path.rstrip("/") + path).geturl()

    @staticmethod
    def check(judge: Judge) -> None:
        """Raise MissingKeyError or InputError where the judge cannot be asked as the benchmark file has it."""
        check_parameters(judge.parameters)
        api_key(judge)

    @staticmethod
    def prompt_cache_tokens(judge: Judge) -> int | None:
        """OpenAI's own address alone says how it bills repeated beginnings."""
        return PROMPT_CACHE_TOKENS if judge.base_url in (None, DEFAULT_BASE_URL) else None

    check_parameters = staticmethod(check_parameters)
    remedy = staticmethod(remedy)

    @property
    def batch(self) -> "OpenAIBatches":
        """The Batch API at the same endpoint."""
        if self._batch is None:
            from tasks.judge.provider.openai.batch_api import OpenAIBatches

            self._batch = OpenAIBatches(self._base_url, self._key, self._secrets)
        return self._batch

    def payload(
        self, parameters: Mapping[str, object], messages: Sequence[Mapping[str, Any]], picture: RequestPicture | None
    ) -> Payload:
        """The body of a chat completion."""
        return make_payload(self.judge.model, parameters, messages, picture)

    async def ask(self, payload: Payload) -> Answer:
        """Send one body and wait, at most the deadline, for the whole reply."""
        started, begun = time.perf_counter(), _noted(payload)
        try:
            async with asyncio.timeout(self._deadline_s):
                status_code, said, body = await self._wire.post(self._address(_CHAT), payload)
                answer = read_answer(status_code, said, self._secrets.out_of_bytes(body))
        except aiohttp.ClientError as error:
            answer = no_response(error)
        except TimeoutError:
            answer = Answer(ReplyStatus.TIMED_OUT, f"no complete reply within {self._deadline_s:g} s; it may have been billed")
            if not begun.is_set():
                answer = Answer(ReplyStatus.UNREACHABLE, f"no connection within {self._deadline_s:g} s", is_sent=False)
        except RefusedReplyError as error:
            answer = Answer(ReplyStatus.BAD_RESPONSE, str(error))
        except Exception as error:  # noqa: BLE001 - whatever a broken peer makes the libraries raise is one failed attempt
            answer = Answer(ReplyStatus.BAD_RESPONSE, f"{type(error).__name__}: {error}")
        return self._secrets.out_of(replace(answer, latency_s=time.perf_counter() - started))

    async def shutdown_date(self) -> date | None:
        """When the endpoint will retire the judge, by its list of models; None where it does not say so in time."""
        try:
            async with asyncio.timeout(self._deadline_s):
                _, _, body = await self._wire.get(self._address(_MODELS))
            listed = orjson.loads(body)["data"]
            return next(date.fromisoformat(row["shutdown_date"]) for row in listed if row["id"] == self.judge.model)
        except Exception:  # noqa: BLE001 - an optional courtesy: nothing depends on it
            return None

    @property
    def key_digest(self) -> str:
        """Stands for the key where requests of one key are counted together: it says nothing about the key."""
        return sha256(f"salon {self._key or ''}".encode()).hexdigest()

    async def close(self) -> None:
        """Close the connections."""
        await self._wire.close()
        if self._batch is not None:
            await self._batch.close()
