"""The parameters of a request, and the JSON schema that its reply is held to. What is asked with them is questions.py."""

from collections.abc import Mapping
from typing import Any

import orjson

from rubrics.model import Dimension, ReplyFormat, Rubric, Variant
from schemas.benchmark.judges import Judge
from schemas.errors import InputError
from schemas.identities import canonical_json

_TEXT = {"type": "string"}
_NAME_LENGTH = 64  # what OpenAI allows of a schema's name, of letters, digits, underscores and dashes


def request_parameters(rubric: Rubric, variant: Variant, judge: Judge) -> bytes:
    """The parameters of a request as JSON with sorted keys; a schema in it keeps the prompt's order, in which it is answered.

    Raises InputError where the judge is to be held to a schema and the rubric's reply is no JSON object.
    """
    _check_probabilities(rubric, variant, judge)
    if not judge.structured_output:
        return canonical_json(judge.parameters)
    structure = response_format(rubric, variant)
    if structure is None:
        raise InputError(
            f"judge {judge.id} has structured_output = true, but rubric {rubric.id} does not ask for a JSON object "
            f"(its reply form is {rubric.reply_format.value!r}); set structured_output = false for this judge, or use this "
            "rubric in a separate benchmark file"
        )
    if "response_format" in judge.parameters:
        raise InputError(
            f"judge {judge.id} has structured_output = true and a response_format among its parameters; remove one of them"
        )
    return canonical_json({**judge.parameters, "response_format": orjson.Fragment(orjson.dumps(structure))})


def _check_probabilities(rubric: Rubric, variant: Variant, judge: Judge) -> None:
    """Raise InputError where a score is a probability and the judge is not asked for any."""
    is_wanted = any(dimension.probability for dimension in variant.dimensions)
    if is_wanted and not judge.recorded and not _asks_for_probabilities(judge.parameters):
        raise InputError(
            f"rubric {rubric.id} is read from the probabilities of the judge's tokens, but judge {judge.id} is not asked for "
            "them; " + _PROBABILITIES.get(judge.provider, "add parameters = { logprobs = true, top_logprobs = 20 } to the judge")
        )


_PROBABILITIES = {
    "gemini": "add parameters = { generationConfig = { responseLogprobs = true, logprobs = 20 } } to the judge",
    "anthropic": "Anthropic does not return them: use another judge",
}


def _asks_for_probabilities(parameters: Mapping[str, Any]) -> bool:
    config = parameters.get("generationConfig")
    is_by_gemini = isinstance(config, dict) and config.get("responseLogprobs") and config.get("logprobs")
    return bool(is_by_gemini or (parameters.get("logprobs") and parameters.get("top_logprobs")))


def response_format(rubric: Rubric, variant: Variant) -> dict[str, object] | None:
    """The `response_format` of a request under this variant, a JSON schema; None where the rubric's reply is no JSON object.

    As OpenAI's strict mode wants it (platform documentation, Structured Outputs, supported schemas): every property required,
    nothing additional, and of the bounds `minimum`, `maximum` and `multipleOf`. Properties stand in the prompt's order, which
    is the order they are written in.
    """
    if rubric.reply_format is not ReplyFormat.JSON or rubric.items or any(dimension.at for dimension in variant.dimensions):
        return None
    name = "".join(
        letter if letter.isascii() and letter.isalnum() else "_" for letter in f"{rubric.id}_{variant.category or 'reply'}"
    )
    schema = {"name": name[:_NAME_LENGTH], "strict": True, "schema": _schema(variant.dimensions)}
    return {"type": "json_schema", "json_schema": schema}


def _schema(dimensions: tuple[Dimension, ...]) -> dict[str, object]:
    """One dimension: its number and a reason beside it. Several: each a number, or an object of a score and its explanation."""
    if len(dimensions) == 1:
        return _object({dimensions[0].labels[0]: _number(dimensions[0]), "reason": _TEXT})
    return _object({dimension.labels[0]: _number_or_object(dimension) for dimension in dimensions})


def _number_or_object(dimension: Dimension) -> dict[str, object]:
    number = _number(dimension)
    return {"anyOf": [_object({"score": number, "explanation": _TEXT}), number]}


def _number(dimension: Dimension) -> dict[str, object]:
    """The number on its scale and step, or a word. multipleOf counts from 0: where the scale does not, the reader sees to it."""
    if dimension.answers:
        return {**_TEXT, "enum": [*(word for word, _ in dimension.answers), *dimension.not_applicable]}
    low, high, step = dimension.minimum, dimension.maximum, dimension.step
    bounds: dict[str, object] = {"minimum": _plain(low), "maximum": _plain(high)}
    if step == 1 and float(low).is_integer():
        return {"type": "integer", **bounds}
    if step is not None and float(step).is_integer() and float(low).is_integer():
        return {"type": "integer", "enum": list(range(int(low), int(high) + 1, int(step)))}
    if step is not None and (low / step).is_integer():
        bounds["multipleOf"] = step
    return {"type": "number", **bounds}


def _object(properties: dict[str, object]) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _plain(number: float) -> float:
    """A whole number without its ".0"."""
    return int(number) if float(number).is_integer() else number
