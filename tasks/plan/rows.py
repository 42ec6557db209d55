"""Which samples are asked what: samples into judgements and requests. What makes a plan whole is checks.py.

A sample that ingest could not use is not asked. Two kinds of request need less of it, since nothing is sent: those of a
rubric without messages need only the texts the rubric declares, and those of a judge whose replies are recorded elsewhere
need only the category that chooses the prompt. For both, a picture that is missing or broken does no harm.

Samples that share their texts are one question: it is rendered once, and the keys of its samples differ by a digest alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, cast

import numpy as np
import polars as pl

from rubrics.model import Rubric
from schemas.benchmark.exam import OCCASION as EXAM_OCCASION
from schemas.benchmark.judges import Judge
from schemas.identities import canonical_json
from schemas.tables.stored import JUDGEMENTS, REQUESTS
from tasks.plan.questions import Question, Questions, Unit
from tasks.plan.request_key import Slot, filled
from tasks.plan.samples import JUDGED, PAIR_COLUMNS, by_role, groups, slots_of

_OF_ENTRY = {"category": pl.String, "prompt_id": pl.String, "status": pl.String, "reason": pl.String, "first_look": pl.Int64}
_OF_PART = {"raw": pl.Binary, "sample": pl.Int64, "repeat": pl.Int64, "part": pl.Int64}
_OF_REQUEST = {
    "variant": pl.String, "image_sha256": pl.String, "parameters_json": pl.Binary, "messages_json": pl.Binary,
    "facts_json": pl.Binary,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Planned:
    """Samples planned under one rubric and judge.

    `judgements` per JUDGEMENTS, every sample × repeat in order. `asked` has a row for each distinct request, in order of
    appearance: request_key, raw (32 bytes), repeat, `sample`, the row of the first sample that asks it, and `part`, which of
    the questions about its items it is.
    """

    rubric: Rubric
    judge: Judge
    occasion: str
    judgements: pl.DataFrame
    asked: pl.DataFrame
    shown: list[Any]  # the digests of each sample's pictures
    questions: list[Question]  # of each sample
    places: list[Sequence[Slot]]  # of each sample, whose each of its pictures is

    def requests(self, asked: pl.DataFrame) -> pl.DataFrame:
        """The REQUESTS rows of these rows of `asked`."""
        rows = [self._content(sample, part) for sample, part in asked.select("sample", "part").iter_rows()]
        # JSON goes in as bytes: decoding it in Python and encoding it again costs more than all the rest
        frame = asked.select("request_key", "repeat").hstack(_frame(rows, _OF_REQUEST)).with_columns(
            pl.col("parameters_json", "messages_json", "facts_json").cast(pl.String),
            rubric_id=pl.lit(self.rubric.id), rubric_version=pl.lit(self.rubric.version),
            rubric_digest=pl.lit(self.rubric.digest), judge_model=pl.lit(self.judge.id), occasion=pl.lit(self.occasion),
            n_output_tokens_expected=pl.lit(self.rubric.n_output_tokens_expected, dtype=pl.Int64),
        )  # fmt: skip
        return frame.select(REQUESTS.columns)

    def _content(self, sample: int, part: int) -> tuple[Any, ...]:
        question = self.questions[sample]
        question = question.parts[part] if question.parts else question
        digests = [self.shown[sample][self.places[sample].index(slot)] for slot in question.slots]
        messages = filled(question.messages, digests) if question.messages is not None else None
        image = digests[question.slots.index(JUDGED) if JUDGED in question.slots else 0] if digests else None
        return question.category, image, question.parameters, messages, question.facts


@dataclass(slots=True)
class Planner:
    """One rubric, one judge, one occasion, samples piece by piece. Raises InputError where the judge cannot be asked so."""

    rubric: Rubric
    judge: Judge
    occasion: str = ""
    known: Questions | None = None
    looks: Sequence[float] = ()  # shares of the prompts, rising to 1; none: all are asked at once

    @property
    def _questions(self) -> Questions:
        if self.known is None:
            self.known = Questions(self.rubric, self.judge, self.occasion)
        return self.known

    def drawn(self, samples: pl.DataFrame) -> pl.DataFrame:
        """Those of these samples (PLAN_COLUMNS at least) the judge is asked about: of the prompts in its share. Anchors all are.

        Each prompt is drawn by its own digest and nothing else: it is in the share or not for every checkpoint, night and
        machine, and a larger share holds every smaller one.
        """
        share, known = self.judge.share, self._questions
        if share is None or self.occasion not in ("", EXAM_OCCASION):
            return samples
        is_in = [False] * samples.height
        for *listed, _, roles, rows, _, images, digests in groups(samples):
            texts = tuple(listed)
            for row, image, joined in zip(rows, images, digests, strict=True):
                unit = known.shared_unit(texts) or known.unit(texts, by_role(image, roles, joined))
                is_in[row] = is_drawn(unit.prompt_id, share)
        return samples.filter(pl.Series(is_in, dtype=pl.Boolean))

    def plan(self, samples: pl.DataFrame) -> Planned:
        """What these samples (PLAN_COLUMNS) are asked."""
        known, n_repeats = self._questions, self.judge.repeats
        entries: list[tuple[str | None, ...]] = []
        number = [0] * samples.height
        raw: list[bytes | None] = [None] * (samples.height * n_repeats)
        lists: list[bytes | None] = [None] * len(raw)
        of_items: list[tuple[Any, ...]] = []
        questions: list[Any] = [None] * samples.height
        shown: list[Any] = [()] * samples.height
        places: list[Sequence[Slot]] = [()] * samples.height
        for *listed, status, roles, rows, sample_ids, images, digests in groups(samples):
            texts = tuple(listed)
            slots = slots_of(roles)
            question = known.of(status, texts, tuple(role for role, _ in slots))
            at = tuple(slots.index(slot) for slot in question.slots)
            shared = known.shared_unit(texts)
            if shared:
                entries.append(self._entry(shared, question))
            for row, sample_id, digest, joined in zip(rows, sample_ids, images, digests, strict=True):
                own = (
                    tuple(joined.split(",")) if len(slots) != 1 else (joined,)
                )  # the collector forgets a tuple of texts, no list
                shown[row], places[row] = own, slots
                if not shared:
                    unit = known.unit(texts, by_role(digest, roles, joined))
                    entries.append(self._entry(unit, question))
                number[row], questions[row] = len(entries) - 1, question
                named = [sample_id] if question.messages is None else [own[place] for place in at]
                for repeat, template in enumerate(question.templates):
                    raw[row * n_repeats + repeat] = template.key(named)
                if question.items and not question.parts:
                    lists[row * n_repeats : (row + 1) * n_repeats] = [canonical_json(question.items)] * n_repeats
                for repeat in range(n_repeats) if question.parts else ():
                    place = row * n_repeats + repeat
                    of_parts = [
                        one.templates[repeat].key(
                            named if one.messages is None else [own[slots.index(slot)] for slot in one.slots]
                        )
                        for one in question.parts
                    ]
                    lists[place] = _listed(question.items, of_parts)
                    raw[place] = sha256(lists[place]).digest()
                    of_items += [(key, row, repeat, part) for part, key in enumerate(of_parts)]
        keys = pl.DataFrame({"raw": pl.Series(raw, dtype=pl.Binary)}).with_columns(request_key=pl.col("raw").bin.encode("hex"))
        judgements = self._judgements(samples, _frame(entries, _OF_ENTRY)[number], keys["request_key"], lists)
        place = pl.int_range(pl.len(), dtype=pl.Int64)
        asked = keys.with_columns(sample=place // n_repeats, repeat=place % n_repeats, part=pl.lit(0, pl.Int64)).drop_nulls("raw")
        if self.rubric.is_of_lists:
            asked = _frame(of_items, _OF_PART).with_columns(request_key=pl.col("raw").bin.encode("hex")).select(asked.columns)
        asked = asked.unique("raw", keep="first", maintain_order=True)
        return Planned(self.rubric, self.judge, self.occasion, judgements, asked, shown, questions, places)

    def _entry(self, unit: Unit, question: Question) -> tuple[Any, ...]:
        look = first_look(unit.prompt_id, self.looks) if self.looks else None
        return unit.category, unit.prompt_id, question.status.value, question.reason, look

    def _judgements(
        self, samples: pl.DataFrame, of_entries: pl.DataFrame, keys: pl.Series, lists: list[bytes | None]
    ) -> pl.DataFrame:
        own = ["sample_id", "model", "checkpoint", "duplicate_of_sample_id"]
        each = samples.select(pl.col(*own, f"^{'|'.join(PAIR_COLUMNS)}$")).hstack(of_entries)
        each = each.with_columns(pl.lit(None, pl.String).alias(name) for name in PAIR_COLUMNS if name not in each.columns)
        repeats = np.arange(self.judge.repeats)
        if len(repeats) > 1:
            each = each[np.repeat(np.arange(samples.height), len(repeats))]
        frame = each.with_columns(
            keys, repeat=pl.Series(np.tile(repeats, samples.height), dtype=pl.Int64),
            rubric_id=pl.lit(self.rubric.id), rubric_version=pl.lit(self.rubric.version),
            judge_model=pl.lit(self.judge.id), occasion=pl.lit(self.occasion),
            items_json=pl.Series(lists, dtype=pl.Binary).cast(pl.String),
        )  # fmt: skip
        return frame.select(JUDGEMENTS.columns)


def _listed(items: Sequence[Mapping[str, object]], keys: Sequence[bytes]) -> bytes:
    """The items of a judgement as canonical JSON, each with the key of the request that asks it."""
    return canonical_json([
        {name: value for name, value in item.items() if name != "part"} | {"request_key": keys[cast("int", item["part"])].hex()}
        for item in items
    ])  # fmt: skip


def is_drawn(prompt_id: str, share: float) -> bool:
    """Whether a share of the prompts, drawn evenly, holds this one."""
    return _drawn("share", prompt_id) < share * 2**64


def first_look(prompt_id: str, looks: Sequence[float]) -> int:
    """The look, from 1, before which a prompt is asked: it is drawn by its own digest, and the same for every checkpoint."""
    drawn = _drawn("look", prompt_id)
    return next((number for number, share in enumerate(looks, 1) if drawn < share * 2**64), len(looks))


def _drawn(what: str, prompt_id: str) -> int:
    return int.from_bytes(sha256(f"salon {what} {prompt_id}".encode()).digest()[:8])


def _frame(rows: list[tuple[Any, ...]], schema: Mapping[str, Any]) -> pl.DataFrame:
    """A frame from rows, column by column: several times quicker than row by row."""
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pl.DataFrame([pl.Series(n, c, dtype=t) for (n, t), c in zip(schema.items(), columns, strict=True)])
