"""What is asked with one set of texts, whoever made the picture: rendered once, remembered for a while. Rows are rows.py's."""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from rubrics.items import BadItems, Item, items_of, questions_of
from rubrics.model import Rubric, Variant
from rubrics.rendering import MissingColumns, NoPrompt, Rendered, UnknownValue, prompt_id, render, report_category, variant_of
from rubrics.rules import facts, is_null
from schemas.benchmark.judges import DEFAULT_PROVIDER, Judge
from schemas.identities import canonical_json
from schemas.records import IMAGE, TEXT_COLUMNS, texts_of
from schemas.statuses.rows import JudgementStatus, SampleStatus
from tasks.plan.parameters import request_parameters
from tasks.plan.request_key import KeyTemplate, Slot, canonical_messages, key_template

IMAGE_STATUSES = frozenset({
    SampleStatus.MISSING_FILE, SampleStatus.NOT_A_FILE, SampleStatus.OUTSIDE_ROOT, SampleStatus.REMOTE_REFUSED,
    SampleStatus.EMPTY_FILE, SampleStatus.FILE_TOO_LARGE, SampleStatus.NOT_AN_IMAGE, SampleStatus.TOO_MANY_PIXELS,
    SampleStatus.BROKEN_IMAGE,
})  # fmt: skip
"""Statuses that are about the picture alone: the rest of the row is good."""

N_REMEMBERED = 10_000
"""Questions held at once, some kilobytes each: prompts come again with each checkpoint, and memory must not grow with them."""

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
    items: tuple[Mapping[str, object], ...] = ()  # and what figures need of each, if asked its part's number and place there


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
    _asked: dict[tuple[Texts, Roles | None], Question] = field(default_factory=dict)
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
        """What is asked about a sample of this status with these texts and pictures; of one not asked, which items it has."""
        found = self._of(status, texts, shown)
        if self.rubric.items is None or found.status == JudgementStatus.PLANNED:
            return found
        with suppress(BadItems):  # nobody knows how many
            return replace(found, items=tuple(_entry(item) for item in items_of(self.rubric, _values(texts))))
        return found

    def _of(self, status: str, texts: Texts, shown: Roles) -> Question:
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
            return self._question(texts, None)
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

    def _question(self, texts: Texts, shown: Roles | None) -> Question:
        """`shown` is None where no picture can be opened here: one was judged when the reply came, of others nobody knows."""
        found = self._asked.get((texts, shown))
        if found is None:
            _make_room(self._asked)
            found = self._asked[texts, shown] = self._ask(_values(texts), shown)
        return found

    def _ask(self, values: dict[str, str | None], shown: Roles | None) -> Question:
        has_image = shown is None or IMAGE in shown
        counted = Counter(shown if shown is not None and self.is_asked else (IMAGE, *self.rubric.roles))
        about = facts(self.rubric, values, has_image, None if shown is None else Counter(shown))
        try:
            if self.rubric.is_of_lists:
                return self._ask_items(values, counted, about)
            if self.rubric.messages and self.judge.recorded:
                variant, rendered = variant_of(self.rubric, values), None
            else:
                rendered = render(self.rubric, values, has_image or not self.is_asked, counted)
                variant = rendered.variant
        except MissingColumns as error:
            return Question(JudgementStatus.MISSING_COLUMN, "missing:" + ",".join(error.columns))
        except BadItems:
            return Question(JudgementStatus.MISSING_COLUMN, f"malformed:{self.rubric.items.column if self.rubric.items else ''}")
        except NoPrompt:
            return Question(JudgementStatus.NO_PROMPT, JudgementStatus.NO_PROMPT.value)
        except UnknownValue as error:
            return Question(JudgementStatus.UNKNOWN_VALUE, f"unknown_value:{error.column}")
        return self._planned(variant, rendered, about)

    def _ask_items(self, values: dict[str, str | None], counted: Mapping[str, int], about: dict[str, object]) -> Question:
        parts: list[Question] = []
        listed: list[dict[str, object]] = []
        for items, rendered, looked_at in questions_of(self.rubric, values, IMAGE in counted, counted):
            for item in items:
                place = item.id if self.rubric.items and self.rubric.items.is_together else ""
                listed.append({"part": len(parts), "item": place, **_entry(item)})
            of_part = dict[str, object]()
            if not self.is_asked:
                of_part["part"] = len(parts)  # nothing else tells them apart
            elif (
                self.rubric.requests and parts
            ):  # texts or pictures may make one sample's request another's, which reads it otherwise
                of_part["request"] = rendered.variant.category
            parts.append(self._planned(rendered.variant, rendered, looked_at | about | of_part))
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


def _entry(item: Item) -> dict[str, object]:
    return {"id": item.id, "kinds": list(item.kinds), "weight": item.weight, "depends_on": list(item.depends_on)}


def _values(texts: Texts) -> dict[str, str | None]:
    return texts_of(dict(zip(TEXT_COLUMNS, texts, strict=True)))


def _make_room(remembered: dict[Any, Any]) -> None:
    if len(remembered) >= N_REMEMBERED:
        remembered.clear()
