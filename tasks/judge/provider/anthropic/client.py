"""The client of Anthropic's Messages API: addresses, headers, and the body of a request. What comes back is messages.py.

By https://platform.claude.com/docs/en/api/messages and the package anthropic's types (2026-11).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from schemas.errors import InputError
from tasks.judge.provider.anthropic.batch_api import AnthropicBatches
from tasks.judge.provider.anthropic.messages import read_answer, read_failure
from tasks.judge.provider.base import Provider
from tasks.judge.provider.batch_calls import BatchCalls
from tasks.judge.provider.exchange import Payload, RequestPicture
from tasks.judge.provider.payload import media_type, n_images, refuse, spliced, without

API_VERSION = "2023-06-01"
_NOT_PARAMETERS = {
    "model": "set the judge's model instead",
    "messages": "the rubric defines them",
    "system": "the rubric defines it",
    "stream": "replies are read whole",
    "n": "use repeats",
    "max_completion_tokens": "Anthropic calls it max_tokens",
    "response_format": "set structured_output = true for the judge, or output_config in its parameters",
    "seed": "Anthropic does not support it",
    "logprobs": "Anthropic does not return them",
}
_NOT_IN_SCHEMAS = frozenset({"minimum", "maximum", "multipleOf"})
"""Of a JSON schema, what structured outputs do not take (platform.claude.com, "Structured outputs", 2026-11)."""
_SYSTEM_ROLES = ("system", "developer")


class AnthropicProvider(Provider):
    """One judge behind Anthropic's API, or an endpoint that speaks it: see base.Provider."""

    DEFAULT_BASE_URL = "https://api.anthropic.com/v1"
    _read = staticmethod(read_answer)

    @staticmethod
    def check_parameters(parameters: Mapping[str, object]) -> None:
        """Raise InputError where they hold what Salon sets itself or Anthropic does not know, or no `max_tokens`."""
        refuse(parameters, _NOT_PARAMETERS)
        most = parameters.get("max_tokens")
        if not isinstance(most, int) or isinstance(most, bool) or most < 1:
            said = "is missing" if most is None else f"= {most!r} is not a number of tokens"
            raise InputError(f"max_tokens {said}; Anthropic requires it in each request; set, for instance, max_tokens = 1000")
        control = parameters.get("cache_control")
        if isinstance(control, dict) and control.get("ttl", "5m") != "5m":
            raise InputError(
                f'cache_control.ttl = "{control["ttl"]}" has a price that Salon does not know; remove it (the default is 5m)'
            )

    @staticmethod
    def output_bound(parameters: Mapping[str, object]) -> int | None:
        """What it thinks is among them."""
        most = parameters.get("max_tokens")
        return most if isinstance(most, int) else None

    def _headers(self) -> dict[str, str]:
        return {"anthropic-version": API_VERSION} | ({"x-api-key": self._key} if self._key else {})

    def _path(self) -> str:
        return "/messages"

    def payload(
        self, parameters: Mapping[str, object], messages: Sequence[Mapping[str, Any]], pictures: Sequence[RequestPicture]
    ) -> Payload:
        """The body of a message: what the system says beside what the user says, each picture as a base64 source."""
        system = "\n\n".join(filter(None, (_text(one["content"]) for one in messages if one["role"] in _SYSTEM_ROLES)))
        said = [one for one in messages if one["role"] not in _SYSTEM_ROLES]

        def content(marker: str) -> dict[str, object]:
            sources = ({"type": "base64", "media_type": media_type(picture), "data": marker} for picture in pictures)
            listed = [{"role": one["role"], "content": _content(one["content"], sources)} for one in said]
            return {
                **_parameters(parameters),
                "model": self.judge.model,
                **({"system": system} if system else {}),
                "messages": listed,
            }

        return spliced(content, n_images(messages), pictures)

    @property
    def batch(self) -> AnthropicBatches:
        """The Message Batches API at the same endpoint."""
        return AnthropicBatches(BatchCalls(self._wire, self._secrets, read_failure), self._address, self._secrets)


def _text(content: str | list[dict[str, Any]]) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content if part["type"] == "text")


def _content(content: str | list[dict[str, Any]], sources: Iterator[Mapping[str, str]]) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return content
    return [{"type": "image", "source": next(sources)} if part["type"] == "image" else part for part in content]


def _parameters(parameters: Mapping[str, object]) -> dict[str, Any]:
    """The judge's parameters; the schema that its reply is held to as `output_config` has it."""
    sent: dict[str, Any] = dict(parameters)
    asked = sent.pop("response_format", None)
    if asked is not None:
        schema = without(asked["json_schema"]["schema"], _NOT_IN_SCHEMAS)
        sent["output_config"] = {**sent.get("output_config", {}), "format": {"type": "json_schema", "schema": schema}}
    return sent
