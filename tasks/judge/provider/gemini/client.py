"""The client of the Gemini API: addresses, headers, and the body of a request. What comes back is responses.py.

By https://ai.google.dev/api/generate-content and the package google-genai's converters (2026-11).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from schemas.errors import InputError
from tasks.judge.provider.base import Provider
from tasks.judge.provider.batch_calls import BatchCalls
from tasks.judge.provider.exchange import Payload, RequestPicture
from tasks.judge.provider.gemini.batch_api import GeminiBatches
from tasks.judge.provider.gemini.responses import read_answer, read_failure
from tasks.judge.provider.payload import media_type, n_images, refuse, spliced

_CONFIG = "generationConfig"
_CONFIG_NAMES = {
    "temperature": "temperature", "top_p": "topP", "topP": "topP", "top_k": "topK", "topK": "topK", "seed": "seed",
    "max_tokens": "maxOutputTokens", "max_completion_tokens": "maxOutputTokens", "maxOutputTokens": "maxOutputTokens",
    "stop": "stopSequences", "stopSequences": "stopSequences", "thinkingConfig": "thinkingConfig",
    "mediaResolution": "mediaResolution", "responseMimeType": "responseMimeType", "responseSchema": "responseSchema",
    "logprobs": "responseLogprobs",
}  # fmt: skip
"""What stands in generationConfig alone, by the names it is looked for under."""
_NOT_PARAMETERS = {
    "model": "set the judge's model instead",
    "messages": "the rubric defines them",
    "contents": "the rubric defines them",
    "systemInstruction": "the rubric defines it",
    "system_instruction": "the rubric defines it",
    "stream": "replies are read whole",
    "n": "use repeats",
    "generation_config": f"write {_CONFIG}",
    "response_format": "set structured_output = true for the judge",
    **{name: f"write {_CONFIG} = {{ {to} = … }}" for name, to in _CONFIG_NAMES.items()},
}
_NOT_CONFIG = {"candidateCount": "use repeats", "candidate_count": "use repeats"}
_ROLES = {"user": "user", "assistant": "model"}


class GeminiProvider(Provider):
    """One judge behind the Gemini API, or an endpoint that speaks it: see base.Provider."""

    DEFAULT_BASE_URL = "https://generativelanguage.googleapis.com/v1beta"
    instead_of_detail = f'set max_side_px, or write {_CONFIG} = {{ mediaResolution = "MEDIA_RESOLUTION_LOW" }} in its parameters'
    _read = staticmethod(read_answer)

    @staticmethod
    def check_parameters(parameters: Mapping[str, object]) -> None:
        """Raise InputError where they hold what Salon sets itself, or what stands elsewhere in this API."""
        refuse(parameters, _NOT_PARAMETERS)
        config = parameters.get(_CONFIG, {})
        if not isinstance(config, dict):
            raise InputError(f"{_CONFIG} must be a table; write {_CONFIG} = {{ temperature = 0, maxOutputTokens = 1000 }}")
        refuse(config, _NOT_CONFIG)

    @staticmethod
    def output_bound(parameters: Mapping[str, object]) -> int | None:
        """What it thinks is among them."""
        config = parameters.get(_CONFIG)
        most = config.get("maxOutputTokens") if isinstance(config, dict) else None
        return most if isinstance(most, int) and not isinstance(most, bool) else None

    def _headers(self) -> dict[str, str]:
        return {"x-goog-api-key": self._key} if self._key else {}

    def _path(self) -> str:
        return f"{self._model_path()}:generateContent"

    def _model_path(self) -> str:
        name = self.judge.model
        return "/" + quote(name if "/" in name else f"models/{name}", safe="/")

    def payload(
        self, parameters: Mapping[str, object], messages: Sequence[Mapping[str, Any]], pictures: Sequence[RequestPicture]
    ) -> Payload:
        """The body of generateContent: what the system says beside the contents, each picture as inline data."""
        system = [part for one in messages if one["role"] not in _ROLES for part in _parts(one["content"], iter(()))]

        def content(marker: str) -> dict[str, object]:
            inline = ({"mimeType": media_type(picture), "data": marker} for picture in pictures)
            said = [one for one in messages if one["role"] in _ROLES]
            contents = [{"role": _ROLES[one["role"]], "parts": _parts(one["content"], inline)} for one in said]
            told = {"systemInstruction": {"parts": system}} if system else {}
            return {**_parameters(parameters), **told, "contents": contents}

        return spliced(content, n_images(messages), pictures)

    @property
    def batch(self) -> GeminiBatches:
        """The Batch API at the same endpoint."""
        calls = BatchCalls(self._wire, self._secrets, read_failure)
        return GeminiBatches(calls, self._base_url, self._model_path(), self._secrets)


def _parts(content: str | list[dict[str, Any]], inline: Iterator[Mapping[str, str]]) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"text": content}]
    return [{"inlineData": next(inline)} if part["type"] == "image" else {"text": part["text"]} for part in content]


def _parameters(parameters: Mapping[str, object]) -> dict[str, Any]:
    """The judge's parameters; the schema that its reply is held to as generationConfig has it."""
    sent: dict[str, Any] = dict(parameters)
    asked = sent.pop("response_format", None)
    if asked is not None:
        schema = {"responseMimeType": "application/json", "responseJsonSchema": asked["json_schema"]["schema"]}
        sent[_CONFIG] = {**sent.get(_CONFIG, {}), **schema}
    return sent
