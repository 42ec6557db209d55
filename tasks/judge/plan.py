"""Which samples are asked what: one part of samples into judgements and requests. What makes a plan whole is plan_checks.py.

A sample that ingest could not use is not asked. Two kinds of request need less of it, since nothing is sent: those of a
rubric without messages need only the texts the rubric declares, and those of a judge whose replies are recorded elsewhere
need only the category that chooses the prompt. For both, a picture that is missing or broken does no harm.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from rubrics.model import Rubric, Variant
from rubrics.rendering import MissingColumns, NoPrompt, prompt_id, render, report_category
from rubrics.rules import facts, is_null, mapped
from schemas.benchmark import Judge
from schemas.records import SAMPLE_TEXTS
from schemas.statuses import JudgementStatus, SampleStatus
from schemas.tables import JUDGEMENTS, REQUESTS
from tasks.judge.keys import DIGEST_SLOT, canonical_json, canonical_messages, request_key

IMAGE_STATUSES = frozenset({
    SampleStatus.MISSING_FILE, SampleStatus.NOT_A_FILE, SampleStatus.OUTSIDE_ROOT, SampleStatus.REMOTE_REFUSED,
    SampleStatus.EMPTY_FILE, SampleStatus.FILE_TOO_LARGE, SampleStatus.NOT_AN_IMAGE, SampleStatus.TOO_MANY_PIXELS,
    SampleStatus.BROKEN_IMAGE,
})  # fmt: skip
"""Statuses that are about the picture alone: the rest of the row is good."""

PLAN_COLUMNS = ["sample_id", "status", "model", "checkpoint", "image_sha256", *SAMPLE_TEXTS]
"""The columns of `samples` a plan reads; pictures are not among them."""


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked for one set of texts, whoever made the picture. `messages` holds DIGEST_SLOT where the picture goes."""

    status: JudgementStatus
    reason: str | None = None
    category: str | None = None  # the variant's
    messages: bytes | None = None
    n_images: int = 0
    facts: bytes = b"{}"


@dataclass(slots=True)
class _Planner:
    """One rubric, one judge, one occasion; remembers the texts it has rendered (many pictures share a prompt)."""

    rubric: Rubric
    judge: Judge
    occasion: str
    questions: dict[tuple[object, ...], _Question] = field(default_factory=dict)
    units: dict[tuple[object, ...], tuple[str, str | None]] = field(default_factory=dict)

    @property
    def is_asked(self) -> bool:
        """Whether messages are sent at all."""
        return bool(self.rubric.messages) and not self.judge.recorded

    def question(self, texts: tuple[str | None, ...], has_image: bool) -> _Question:
        """What is asked about a sample with these texts."""
        found = self.questions.get((texts, has_image))
        if found is None:
            found = self.questions[(texts, has_image)] = self._ask(dict(zip(SAMPLE_TEXTS, texts, strict=True)), has_image)
        return found

    def _ask(self, values: dict[str, str | None], has_image: bool) -> _Question:
        try:
            if self.rubric.messages and self.judge.recorded:
                variant, rendered = _variant(self.rubric, values), None
            else:
                rendered = render(self.rubric, values, has_image or not self.is_asked)
                variant = rendered.variant
        except MissingColumns as error:
            return _Question(JudgementStatus.MISSING_COLUMN, "missing:" + ",".join(error.columns))
        except NoPrompt:
            return _Question(JudgementStatus.NO_PROMPT, JudgementStatus.NO_PROMPT.value)
        looked_at = canonical_json(facts(self.rubric, values, has_image))
        messages, n_images = canonical_messages(rendered.messages) if rendered and self.is_asked else (None, 0)
        return _Question(JudgementStatus.PLANNED, None, variant.category, messages, n_images, looked_at)

    def unit(self, texts: tuple[str | None, ...], image_sha256: str | None) -> tuple[str, str | None]:
        """(prompt_id, category). Remembered by texts where the rubric's unit is made of texts that are there."""
        found = self.units.get(texts)
        if found is None:
            values = dict(zip(SAMPLE_TEXTS, texts, strict=True))
            found = (prompt_id(self.rubric, values, image_sha256), report_category(self.rubric, values))
            if "image" not in self.rubric.unit and not all(is_null(values.get(name)) for name in self.rubric.unit):
                self.units[texts] = found
        return found


def plan_part(samples: pl.DataFrame, rubric: Rubric, judge: Judge, occasion: str = "") -> tuple[pl.DataFrame, pl.DataFrame]:
    """(judgements, requests) of one part of samples: every sample × repeat is a judgement; requests are distinct by key."""
    planner = _Planner(rubric, judge, occasion)
    shared = {"model": judge.model, "parameters": judge.parameters, "rubric_id": rubric.id, "rubric_version": rubric.version}
    judgements: list[tuple[Any, ...]] = []
    requests: dict[str, tuple[Any, ...]] = {}
    for sample_id, status, model, checkpoint, image_sha256, *listed in samples.select(PLAN_COLUMNS).iter_rows():
        texts = tuple(listed)
        unit, category = planner.unit(texts, image_sha256)
        question = _question(planner, status, texts, image_sha256)
        messages = question.messages
        if messages is not None and question.n_images:
            messages = messages.replace(_SLOT, image_sha256.encode())
        asked = {"sample_id": sample_id} if messages is None else {"messages": messages}
        for repeat in range(judge.repeats):
            key = None
            if question.status is JudgementStatus.PLANNED:
                key = request_key(asked=asked, judge=shared, repeat=repeat, occasion=occasion, facts=question.facts)
                if key not in requests:
                    digest = image_sha256 if question.n_images else None
                    requests[key] = (key, question.category, repeat, digest, messages, question.facts)
            judgements.append((sample_id, repeat, model, checkpoint, category, unit, key, question.status, question.reason))
    return _judgements(judgements, rubric, judge, occasion), _requests(list(requests.values()), rubric, judge, occasion)


_SLOT = DIGEST_SLOT.encode()
_JUDGED = ("sample_id", "repeat", "model", "checkpoint", "category", "prompt_id", "request_key", "status", "reason")
_ASKED = ("request_key", "variant", "repeat", "image_sha256", "messages_json", "facts_json")


def _question(planner: _Planner, status: str, texts: tuple[str | None, ...], image_sha256: str | None) -> _Question:
    has_image = image_sha256 is not None
    if status != SampleStatus.OK:
        needs_image = planner.is_asked and "image" in planner.rubric.needs
        if needs_image or status not in IMAGE_STATUSES:
            lacking = planner.question(texts, has_image=False)
            if (
                status in IMAGE_STATUSES
                and lacking.status == JudgementStatus.MISSING_COLUMN
                and lacking.reason != "missing:image"
            ):
                return lacking  # mending the picture would not be enough: name all that is missing
            return _Question(JudgementStatus.UNUSABLE_SAMPLE, str(status))
        has_image = True  # a picture was there when the reply was given, though it cannot be opened here
    return planner.question(texts, has_image)


def _variant(rubric: Rubric, values: Mapping[str, str | None]) -> Variant:
    word = values.get(rubric.dispatch) if rubric.dispatch else None
    variant = rubric.variant(mapped(rubric, rubric.dispatch, word) if rubric.dispatch and word is not None else word)
    if variant is None:
        raise NoPrompt(rubric, word)
    return variant


def _frame(rows: list[tuple[Any, ...]], schema: Mapping[str, Any]) -> pl.DataFrame:
    """A frame from rows, column by column: several times quicker than row by row."""
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pl.DataFrame([pl.Series(n, c, dtype=t) for (n, t), c in zip(schema.items(), columns, strict=True)])


def _judgements(rows: list[tuple[Any, ...]], rubric: Rubric, judge: Judge, occasion: str) -> pl.DataFrame:
    schema = dict.fromkeys(_JUDGED, pl.String) | {"repeat": pl.Int64}
    frame = _frame(rows, schema).with_columns(
        rubric_id=pl.lit(rubric.id), rubric_version=pl.lit(rubric.version), judge_model=pl.lit(judge.model),
        occasion=pl.lit(occasion),
    )  # fmt: skip
    return frame.select(JUDGEMENTS.columns)


def _requests(rows: list[tuple[Any, ...]], rubric: Rubric, judge: Judge, occasion: str) -> pl.DataFrame:
    # JSON goes in as bytes: decoding it in Python and encoding it again costs more than all the rest
    schema = dict.fromkeys(_ASKED, pl.String) | {"repeat": pl.Int64, "messages_json": pl.Binary, "facts_json": pl.Binary}
    frame = _frame(rows, schema).with_columns(
        pl.col("messages_json", "facts_json").cast(pl.String),
        rubric_id=pl.lit(rubric.id), rubric_version=pl.lit(rubric.version), rubric_digest=pl.lit(rubric.digest),
        judge_model=pl.lit(judge.model), parameters_json=pl.lit(canonical_json(judge.parameters).decode()),
        occasion=pl.lit(occasion), n_output_tokens_expected=pl.lit(rubric.n_output_tokens_expected, dtype=pl.Int64),
    )  # fmt: skip
    return frame.select(REQUESTS.columns)
