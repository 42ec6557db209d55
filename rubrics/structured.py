"""A rubric's reply form as a JSON schema, for judges that can be held to one. Reading the reply is rubrics/replies/read.py."""

from rubrics.model import Dimension, ReplyFormat, Rubric, Variant

EXPLANATION = "explanation"
_REASON = "reason"
_SCORE = "score"
_TEXT = {"type": "string"}
_NAME_LENGTH = 64  # what OpenAI allows of a schema's name, of letters, digits, underscores and dashes


def response_format(rubric: Rubric, variant: Variant) -> dict[str, object] | None:
    """The `response_format` of a request under this variant; None where the rubric's reply is no JSON object.

    As OpenAI's strict mode wants it (platform documentation, Structured Outputs, supported schemas): every property required,
    nothing additional, and of the bounds `minimum`, `maximum` and `multipleOf`. Properties stand in the prompt's order, which
    is the order they are written in.
    """
    if rubric.reply_format is not ReplyFormat.JSON or any(dimension.at for dimension in variant.dimensions):
        return None
    name = "".join(
        letter if letter.isascii() and letter.isalnum() else "_" for letter in f"{rubric.id}_{variant.category or 'reply'}"
    )
    schema = {"name": name[:_NAME_LENGTH], "strict": True, "schema": _schema(variant.dimensions)}
    return {"type": "json_schema", "json_schema": schema}


def _schema(dimensions: tuple[Dimension, ...]) -> dict[str, object]:
    """One dimension: its number and a reason beside it. Several: each a number, or an object of a score and its explanation."""
    if len(dimensions) == 1:
        return _object({dimensions[0].labels[0]: _number(dimensions[0]), _REASON: _TEXT})
    return _object({dimension.labels[0]: _number_or_object(dimension) for dimension in dimensions})


def _number_or_object(dimension: Dimension) -> dict[str, object]:
    number = _number(dimension)
    return {"anyOf": [_object({_SCORE: number, EXPLANATION: _TEXT}), number]}


def _number(dimension: Dimension) -> dict[str, object]:
    """The number on its scale and step. multipleOf counts from 0: where the scale does not, the reader alone sees to the step."""
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
