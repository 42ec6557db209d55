"""The client: one judge behind one OpenAI-compatible endpoint, one attempt at a time. Retries, limits, ledger: the engine's."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from hashlib import sha256
from typing import Any

import aiohttp
import httpx2
import orjson
from openai import AsyncOpenAI, DefaultAioHttpClient

from schemas.benchmark import Judge
from schemas.statuses import ReplyStatus
from tasks.judge.provider.base import Answer, Payload, RequestPicture
from tasks.judge.provider.openai.batch_api import OpenAIBatches
from tasks.judge.provider.openai.payload import check_parameters, make_payload
from tasks.judge.provider.openai.picture_tokens import picture_rule
from tasks.judge.provider.openai.responses import read_answer
from tasks.judge.provider.openai.transport import (
    CONNECT_TIMEOUT_S,
    DEFAULT_BASE_URL,
    RefusedReplyError,
    ReplyCap,
    Secrets,
    api_key,
    endpoint,
    no_response,
)
from tasks.judge.provider.openai.wire import AiohttpWire, SdkWire, Wire, is_by_sdk

_PATH = "/chat/completions"
_HEADERS = {"Content-Type": "application/json", "Accept-Encoding": "identity"}


class OpenAIProvider:
    """One judge behind one endpoint: see base.Provider."""

    def __init__(self, judge: Judge, concurrency: int, deadline_s: float) -> None:
        check_parameters(judge.parameters)
        self.judge = judge
        self.endpoint = endpoint(judge)
        self._key = api_key(judge)
        self._secrets = Secrets(judge)
        self._deadline_s = deadline_s
        self._batch: OpenAIBatches | None = None
        # The SDK's timeouts are for each read; the deadline around the whole attempt is our own.
        timeout = httpx2.Timeout(deadline_s, connect=min(CONNECT_TIMEOUT_S, deadline_s))
        limits = httpx2.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
        self._transport = DefaultAioHttpClient(
            limits=limits, timeout=timeout, follow_redirects=False, event_hooks={"response": [ReplyCap()]}
        )
        self._client = AsyncOpenAI(
            api_key=self._key or "none",
            base_url=judge.base_url or DEFAULT_BASE_URL,
            http_client=self._transport,
            max_retries=0,
        )
        base_url = self._client.base_url
        url = base_url.copy_with(raw_path=base_url.raw_path + _PATH.lstrip("/").encode())
        sent = {**self._client.default_headers, **self._client.auth_headers}
        headers = {name: value for name, value in sent.items() if isinstance(value, str)} | _HEADERS
        self._wire: Wire = (
            SdkWire(url, headers, self._transport, deadline_s) if is_by_sdk() else AiohttpWire(str(url), headers, concurrency)
        )

    @staticmethod
    def check(judge: Judge) -> None:
        """Raise MissingKeyError or InputError where the judge cannot be asked as the benchmark file has it."""
        check_parameters(judge.parameters)
        api_key(judge)

    check_parameters = staticmethod(check_parameters)
    picture_rule = staticmethod(picture_rule)

    @property
    def batch(self) -> OpenAIBatches:
        """The Batch API at the same endpoint."""
        if self._batch is None:
            self._batch = OpenAIBatches(self.judge.base_url or DEFAULT_BASE_URL, self._key, self._secrets)
        return self._batch

    def payload(
        self, parameters: Mapping[str, object], messages: Sequence[Mapping[str, Any]], picture: RequestPicture | None
    ) -> Payload:
        """The body of a chat completion."""
        return make_payload(self.judge.model, parameters, messages, picture)

    async def ask(self, payload: Payload) -> Answer:
        """Send one body and wait, at most the deadline, for the whole reply."""
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self._deadline_s):
                status_code, said, body = await self._wire.post(payload)
                answer = read_answer(status_code, said, self._secrets.out_of_bytes(body))
        except (httpx2.RequestError, aiohttp.ClientError) as error:
            answer = no_response(error)
        except TimeoutError:
            answer = Answer(ReplyStatus.TIMED_OUT, f"no complete reply within {self._deadline_s:g} s; it may have been billed")
        except RefusedReplyError as error:
            answer = Answer(ReplyStatus.BAD_RESPONSE, str(error))
        except Exception as error:  # noqa: BLE001 - whatever a broken peer makes the libraries raise is one failed attempt
            answer = Answer(ReplyStatus.BAD_RESPONSE, f"{type(error).__name__}: {error}")
        return self._secrets.out_of(replace(answer, latency_s=time.perf_counter() - started))

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
        await self._wire.close()
        await self._client.close()
        if self._batch is not None:
            await self._batch.close()
