"""What is asked with one set of texts, whoever made the picture: rendered once, remembered for a while. Rows are rows.py's."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from rubrics.items import BadItems, questions_of
from rubrics.model import Dimension, ReplyFormat, Rubric, Variant
from rubrics.rendering import MissingColumns, NoPrompt, Rendered, UnknownValue, prompt_id, render, report_category, variant_of
from rubrics.rules import facts, is_null
from schemas.benchmark_judges import DEFAULT_PROVIDER, Judge
from schemas.errors import InputError
from schemas.identities import canonical_json
from schemas.records import IMAGE, SAMPLE_TEXTS, texts_of
from schemas.statuses import JudgementStatus, SampleStatus
from tasks.plan.request_key import KeyTemplate, Slot, canonical_messages, key_template

IMAGE_STATUSES = frozenset({
    SampleStatus.MISSING_FILE, SampleStatus.NOT_A_FILE, SampleStatus.OUTSIDE_ROOT, SampleStatus.REMOTE_REFUSED,
    SampleStatus.EMPTY_FILE, SampleStatus.FILE_TOO_LARGE, SampleStatus.NOT_AN_IMAGE, SampleStatus.TOO_MANY_PIXELS,
    SampleStatus.BROKEN_IMAGE,
})  # fmt: skip
"""Statuses that are about the picture alone: the rest of the row is good."""

_TEXT = {"type": "string"}
_NAME_LENGTH = 64  # what OpenAI allows of a schema's name, of letters, digits, underscores and dashes

N_REMEMBERED = 10_000
"""Questions held at once, some kilobytes each: prompts come again with each checkpoint, and memory must not grow with them."""

TEXT_COLUMNS = (*SAMPLE_TEXTS, "texts_json")
Texts = tuple[str | None, ...]
"""The values of TEXT_COLUMNS."""
Roles = tuple[str, ...]
"""The role of each picture of a sample, in order."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked for one set of texts. `messages` holds DIGEST_SLOT at each of `slots`; `templates` is one a repeat."""

    status: JudgementStatus
    reason: str | None = None
    category: str | None = None  # the variant's
    messages: bytes | None = None
    slots: tuple[Slot, ...] = ()
    facts: bytes = b"{}"
    parameters: bytes = b"{}"
    templates: tuple[KeyTemplate, ...] = ()
    parts: tuple["Question", ...] = ()  # of a sample with items: what is asked of it
    items: tuple[Mapping[str, object], ...] = ()  # and of each item its part's number, its place there, and what figures need


@dataclass(frozen=True, slots=True)
class Unit:
    """The independent unit a sample belongs to, and the category it is reported under."""

    prompt_id: str
    category: str | None


@dataclass(slots=True)
class Questions:
    """One rubric, one judge, one occasion. Raises InputError where a schema is wanted and the rubric has none."""

    rubric: Rubric
    judge: Judge
    occasion: str = ""
    _asked: dict[tuple[Texts, Roles], Question] = field(default_factory=dict)
    _units: dict[Texts, Unit] = field(default_factory=dict)
    _parameters: dict[str | None, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Parameters of every variant, so that what cannot be asked is said before anything is planned."""
        for rubric in self.rubric.requests.values() or [self.rubric]:
            for variant in rubric.variants.values():
                self._parameters[variant.category] = request_parameters(rubric, variant, self.judge)

    @property
    def is_asked(self) -> bool:
        """Whether messages are sent at all."""
        return bool(self.rubric.messages) and not self.judge.recorded

    def of(self, status: str, texts: Texts, shown: Roles) -> Question:
        """What is asked about a sample of this status with these texts and pictures."""
        if status == SampleStatus.DUPLICATE:
            return Question(JudgementStatus.DUPLICATE, "same_sample")  # an older release did not say of which
        if status != SampleStatus.OK:
            roles = self.rubric.roles
            if (self.is_asked and roles) or status not in IMAGE_STATUSES:
                lacking = self._question(texts, ())
                if (
                    status in IMAGE_STATUSES
                    and lacking.status == JudgementStatus.MISSING_COLUMN
                    and not set(str(lacking.reason).removeprefix("missing:").split(",")) <= set(roles)
                ):
                    return lacking  # mending the picture would not be enough: name all that is missing
                return Question(JudgementStatus.UNUSABLE_SAMPLE, str(status))
            shown = (IMAGE, *roles)  # a picture was there when the reply was given, though it cannot be opened here
        return self._question(texts, shown)

    def shared_unit(self, texts: Texts) -> Unit | None:
        """The unit of all samples with these texts; None where it depends on the picture too."""
        found = self._units.get(texts)
        if found is None and not self.unit_roles:
            values = _values(texts)
            if all(is_null(values.get(name)) for name in self.rubric.unit):
                return None
            _make_room(self._units)
            found = self._units[texts] = self.unit(texts, {})
        return found

    @property
    def unit_roles(self) -> set[str]:
        """The roles of pictures that tell units apart."""
        return {IMAGE, *self.rubric.pictures}.intersection(self.rubric.unit)

    def unit(self, texts: Texts, shown: Mapping[str, str | None]) -> Unit:
        """The unit of one sample; `shown` as in prompt_id()."""
        values = _values(texts)
        return Unit(prompt_id(self.rubric, values, shown), report_category(self.rubric, values))

    def _question(self, texts: Texts, shown: Roles) -> Question:
        found = self._asked.get((texts, shown))
        if found is None:
            _make_room(self._asked)
            found = self._asked[texts, shown] = self._ask(_values(texts), shown)
        return found

    def _ask(self, values: dict[str, str | None], shown: Roles) -> Question:
        has_image, counted = IMAGE in shown, Counter(shown if self.is_asked else (IMAGE, *self.rubric.roles))
        try:
            if self.rubric.is_of_lists:
                return self._ask_items(values, has_image, counted)
            if self.rubric.messages and self.judge.recorded:
                variant, rendered = variant_of(self.rubric, values), None
            else:
                rendered = render(self.rubric, values, has_image or not self.is_asked, counted)
                variant = rendered.variant
        except MissingColumns as error:
            return Question(JudgementStatus.MISSING_COLUMN, "missing:" + ",".join(error.columns))
        except BadItems:
            return Question(JudgementStatus.MISSING_COLUMN, f"missing:{self.rubric.items.column if self.rubric.items else ''}")
        except NoPrompt:
            return Question(JudgementStatus.NO_PROMPT, JudgementStatus.NO_PROMPT.value)
        except UnknownValue as error:
            return Question(JudgementStatus.UNKNOWN_VALUE, f"unknown_value:{error.column}")
        return self._planned(variant, rendered, facts(self.rubric, values, has_image))

    def _ask_items(self, values: dict[str, str | None], has_image: bool, counted: Mapping[str, int]) -> Question:
        parts: list[Question] = []
        listed: list[dict[str, object]] = []
        for items, rendered, looked_at in questions_of(self.rubric, values, has_image or not self.is_asked, counted):
            for item in items:
                place = item.id if self.rubric.items and self.rubric.items.is_together else ""
                listed.append({
                    "part": len(parts), "item": place, "id": item.id, "kinds": list(item.kinds), "weight": item.weight,
                    "depends_on": list(item.depends_on),
                })  # fmt: skip
            of_part = {} if self.is_asked else {"part": len(parts)}  # nothing else tells what is not sent apart
            parts.append(self._planned(rendered.variant, rendered, looked_at | of_part))
        return replace(parts[0], templates=(), parts=tuple(parts), items=tuple(listed))

    def _planned(self, variant: Variant, rendered: Rendered | None, about: Mapping[str, object]) -> Question:
        looked_at = canonical_json(about)
        messages, slots = canonical_messages(rendered.messages, self.judge.shown) if rendered and self.is_asked else (None, ())
        parameters = self._parameters[variant.category]
        shared = {
            "model": self.judge.model, "parameters": orjson.Fragment(parameters), "rubric_id": self.rubric.id,
            "rubric_version": self.rubric.version, **({"shown": self.judge.shown} if self.judge.shown else {}),
            **({"deployment": self.judge.deployment} if self.judge.deployment else {}),
            **({"provider": self.judge.provider} if self.judge.provider != DEFAULT_PROVIDER else {}),
        }  # fmt: skip
        templates = tuple(
            key_template(messages=messages, judge=shared, repeat=repeat, occasion=self.occasion, facts=looked_at)
            for repeat in range(self.judge.repeats)
        )
        return Question(
            JudgementStatus.PLANNED, None, variant.category, messages, slots, looked_at, parameters, templates
        )  # fmt: skip


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
            f"judge {judge.id} has structured_output = true, and rubric {rubric.id} asks for no JSON object "
            f"(its replies are of the form {rubric.reply_format.value!r}); set structured_output = false for this judge, or "
            "judge by this rubric in a benchmark file of its own"
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
            f"rubric {rubric.id} is read from the probabilities of the judge's tokens, and judge {judge.id} is asked for none; "
            + _PROBABILITIES.get(judge.provider, "add parameters = { logprobs = true, top_logprobs = 20 } to the judge")
        )


_PROBABILITIES = {
    "gemini": "add parameters = { generationConfig = { responseLogprobs = true, logprobs = 20 } } to the judge",
    "anthropic": "Anthropic gives none: judge by another",
}


def _asks_for_probabilities(parameters: Mapping[str, Any]) -> bool:
    config = parameters.get("generationConfig")
    is_by_gemini = isinstance(config, dict) and config.get("responseLogprobs") and config.get("logprobs")
    return bool(is_by_gemini or (parameters.get("logprobs") and parameters.get("top_logprobs")))


def _values(texts: Texts) -> dict[str, str | None]:
    return texts_of(dict(zip(TEXT_COLUMNS, texts, strict=True)))


def _make_room(remembered: dict[Any, Any]) -> None:
    if len(remembered) >= N_REMEMBERED:
        remembered.clear()


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
