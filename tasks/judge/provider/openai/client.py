"""The client of endpoints that speak OpenAI's API: addresses, headers, and the body of a request. Answers: responses.py."""

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import orjson

from schemas.benchmark.judges import Judge
from tasks.judge.provider.base import Provider
from tasks.judge.provider.batch_api import BatchFiles
from tasks.judge.provider.exchange import Payload, RequestPicture
from tasks.judge.provider.openai.batch_files import read_results, request_line
from tasks.judge.provider.openai.responses import read_answer
from tasks.judge.provider.payload import SplicedPayload, media_type, n_images, refuse, spliced
from tasks.judge.provider.wire import Wire, is_by_sdk

if TYPE_CHECKING:
    from tasks.judge.provider.openai.batch_api import OpenAIBatches

DEFAULT_BASE_URL = "https://api.openai.com/v1"
_CHAT, _MODELS = "/chat/completions", "/models"
_ACCOUNTS = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
"""Headers and the environment variables that every client of the API takes them from."""

PROMPT_CACHE_TOKENS = 1024
"""Requests that begin with fewer equal tokens meet nothing (OpenAI's guide to prompt caching, 2026-11)."""

_AZURE_HOSTS = (
    ".openai.azure.com", ".openai.azure.us", ".openai.azure.cn", ".cognitiveservices.azure.com", ".services.ai.azure.com",
)  # fmt: skip
"""Not all of Azure: its own hosts for other models' weights take a key as others do."""
_AZURE_PATH = "/openai/deployments/"
_NOT_PARAMETERS = {
    "model": "set the judge's model instead",
    "messages": "the rubric defines them",
    "stream": "replies are read whole",
    "n": "use repeats",
}
"""Keys of a request that a judge's `parameters` may not hold, and what to do instead."""


def make_payload(
    judge_model: str, parameters: Mapping[str, object], messages: Sequence[Mapping[str, Any]], pictures: Sequence[RequestPicture]
) -> SplicedPayload:
    """The body of a chat completion. Raises what the pictures' `read` raises."""

    def content(marker: str, urls: Sequence[str] = ()) -> dict[str, object]:
        named = iter(urls)
        return {**parameters, "model": judge_model, "messages": [_sendable(message, marker, named) for message in messages]}

    urls = [picture.url for picture in pictures if picture.url is not None]
    if urls and len(urls) == len(pictures) == n_images(messages):
        return SplicedPayload([orjson.dumps(content("", urls))], [])
    return spliced(content, n_images(messages), pictures, lambda picture: f"data:{media_type(picture)};base64,".encode())


def _sendable(message: Mapping[str, Any], marker: str, urls: Iterator[str]) -> dict[str, Any]:
    content = message["content"]
    if isinstance(content, list):
        content = [_image(part, next(urls, marker)) if part["type"] == "image" else part for part in content]
    return {"role": message["role"], "content": content}


def _image(part: Mapping[str, Any], marker: str) -> dict[str, Any]:
    """The picture's place, and the detail it is looked at with where the judge states one."""
    detail = part.get("shown", {}).get("detail")
    return {"type": "image_url", "image_url": {"url": marker} | ({"detail": detail} if detail else {})}


class OpenAIProvider(Provider):
    """One judge behind one endpoint: see base.Provider."""

    DEFAULT_BASE_URL = DEFAULT_BASE_URL
    has_detail = True
    batch_files = BatchFiles(make_payload, request_line, read_results)
    _batch: "OpenAIBatches | None" = None

    _read = staticmethod(read_answer)

    @staticmethod
    def check_parameters(parameters: Mapping[str, object]) -> None:
        """Raise InputError where they would change what Salon sends beyond sampling."""
        refuse(parameters, _NOT_PARAMETERS)

    def _headers(self) -> dict[str, str]:
        accounts = {name: value for name, variable in _ACCOUNTS.items() if (value := os.environ.get(variable))}
        return _key_headers(self._key, self._base_url) | accounts

    def _make_wire(self, headers: Mapping[str, str], concurrency: int) -> Wire:
        if not is_by_sdk():
            return super()._make_wire(headers, concurrency)
        from tasks.judge.provider.openai.sdk_wire import SdkWire

        return SdkWire(self._base_url, headers, concurrency, self._deadline_s)

    def _path(self) -> str:
        return _CHAT

    @staticmethod
    def prompt_cache_tokens(judge: Judge) -> int | None:
        """OpenAI's own address alone says how it bills repeated beginnings."""
        return PROMPT_CACHE_TOKENS if judge.base_url in (None, DEFAULT_BASE_URL) else None

    @staticmethod
    def output_bound(parameters: Mapping[str, object]) -> int | None:
        """The larger of both names."""
        said = [parameters.get(name) for name in ("max_completion_tokens", "max_tokens")]
        return max((value for value in said if isinstance(value, int) and not isinstance(value, bool)), default=None)

    @property
    def batch(self) -> "OpenAIBatches":
        """The Batch API at the same endpoint."""
        if self._batch is None:
            from tasks.judge.provider.openai.batch_api import OpenAIBatches

            self._batch = OpenAIBatches(self._base_url, self._key, self._secrets)
        return self._batch

    def payload(
        self, parameters: Mapping[str, object], messages: Sequence[Mapping[str, Any]], pictures: Sequence[RequestPicture]
    ) -> Payload:
        """The body of a chat completion."""
        return make_payload(self.judge.model, parameters, messages, pictures)

    async def shutdown_date(self) -> date | None:
        """When the endpoint will retire the judge, by its list of models; None where it does not say so in time."""
        try:
            async with asyncio.timeout(self._deadline_s):
                _, _, body = await self._wire.get(self._address(_MODELS))
            listed = orjson.loads(body)["data"]
            return next(date.fromisoformat(row["shutdown_date"]) for row in listed if row["id"] == self.judge.model)
        except Exception:  # noqa: BLE001 - an optional courtesy: nothing depends on it
            return None

    async def close(self) -> None:
        """Close the connections."""
        await super().close()
        if self._batch is not None:
            await self._batch.close()


def _key_headers(key: str | None, base_url: str) -> dict[str, str]:
    """The key as the address takes it. Azure has a header for it, and takes a token of Entra (a JWT) as others take keys.

    At another host with Azure's path is Azure's gateway, or a proxy that speaks as Azure does: it is sent both.
    """
    if not key:
        return {}
    address, bearer = urlsplit(base_url), {"Authorization": f"Bearer {key}"}
    is_azure = (address.hostname or "").endswith(_AZURE_HOSTS)
    if key.startswith("eyJ") or not (is_azure or _AZURE_PATH in address.path):
        return bearer
    return {"api-key": key} | ({} if is_azure else bearer)
