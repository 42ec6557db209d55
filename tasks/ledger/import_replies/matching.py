"""Which planned request a recorded row answers, by whatever the row says about its sample."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import polars as pl

from schemas.benchmark.exam import EXAM
from schemas.statuses.rows import JudgementStatus
from schemas.tables.stored import JUDGEMENTS, SAMPLES
from tasks.context import StageContext
from tasks.lake.pictures import with_picture_path

IDENTIFIERS = ("request_key", "sample_id", "item_id", "image", "prompt")
"""What can name a sample, the surest first: the first one a row has is looked up, all others it has must agree."""
NARROWING = ("model", "checkpoint", "seed", "prompt", "rubric", "judge_model", "item")


class NoMatchError(Exception):
    """A recorded row answers no planned request, or not one alone; the text says why."""


@dataclass(slots=True)
class PlanIndex:
    """The planned judgements of a plan, looked up by one identifier at a time; each index is made when first needed."""

    columns: Mapping[str, Sequence[Any]]
    _indices: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    _n_matched: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def match(self, row: Mapping[str, object]) -> str:
        """The request key the row answers; the nth row for a sample answers its nth repeat. Raises NoMatchError."""
        identifier = name_of(row)
        found = self._look_up(identifier, _text(row[identifier]))
        if not found:
            raise NoMatchError(f"{identifier} {_text(row[identifier])[:80]!r} is not in the plan{self._such_as(identifier)}")
        for name in NARROWING:
            value = row.get(name)
            if value is not None and name != identifier:
                found = [index for index in found if _text(self.columns[name][index]) == _text(value)]
                if not found:
                    raise NoMatchError(f"no planned sample with this {identifier} has {name} {_text(value)[:80]!r}")
        firsts = [index for index in found if self.columns["duplicate_of_sample_id"][index] is None]
        if not firsts:  # else two rows, one of each, would contradict one another, and neither be taken
            twin = self.columns["duplicate_of_sample_id"][found[0]]
            raise NoMatchError(
                f"names a sample that duplicates an earlier one; the reply to that one ({twin[:12]}) counts for both"
            )
        return self._choose(firsts)

    def start_over(self) -> None:
        """The rows are given from the first one on again."""
        self._n_matched.clear()

    def _choose(self, found: list[int]) -> str:
        by_question: dict[tuple[str, str], dict[int, str]] = {}
        for index in found:
            question = (self.columns["rubric"][index], self.columns["judge_model"][index])
            by_question.setdefault(question, {})[self.columns["repeat"][index]] = self.columns["request_key"][index]
        n_keys = len({self.columns["request_key"][index] for index in found})
        repeats = next(iter(by_question.values()))
        if len(by_question) > 1 or n_keys > len(repeats):
            samples = len({self.columns["sample_id"][index] for index in found})
            items = len({self.columns["item"][index] for index in found})
            what = (
                f"{samples} samples"
                if samples > 1
                else f"{items} items"
                if items > 1
                else f"{len(by_question)} rubrics or judges"
            )
            raise NoMatchError(f"matches {what}; map one more of {', '.join((*IDENTIFIERS, *NARROWING))}")
        first = repeats[min(repeats)]
        n_before = self._n_matched[(first, *next(iter(by_question)))]
        self._n_matched[(first, *next(iter(by_question)))] += 1
        ordered = sorted(repeats)
        return repeats[ordered[min(n_before, len(ordered) - 1)]]

    def _look_up(self, identifier: str, value: str) -> list[int]:
        """A picture by its source's path or key; else by its file, where one of the two paths is the end of the other."""
        if identifier != "image":
            return self._index(identifier).get(value, [])
        path = PurePosixPath(value.replace("\\", "/"))
        exact = next((found for name in ("image", "source_key") if (found := self._index(name).get(str(path)))), None)
        same_file = self._index("file_name").get(path.name, [])
        return exact or [place for place in same_file if _is_end(PurePosixPath(self.columns["image"][place]).parts, path.parts)]

    def _index(self, name: str) -> dict[str, list[int]]:
        if name not in self._indices:
            index: dict[str, list[int]] = {}
            column = self.columns["image" if name == "file_name" else name]
            for place, value in enumerate(column):
                if value is not None:
                    index.setdefault(PurePosixPath(value).name if name == "file_name" else _text(value), []).append(place)
            self._indices[name] = index
        return self._indices[name]

    def _such_as(self, identifier: str) -> str:
        """What the plan's samples have there, and what to do where they have nothing."""
        known = next((value for value in self.columns[identifier] if value is not None), None)
        if known is not None:
            return f", whose samples have values such as {_text(known)[:80]!r}"
        others = [name for name in IDENTIFIERS if any(value is not None for value in self.columns[name])]
        return f": its samples have none; name them by {', '.join(others)}"


def name_of(row: Mapping[str, object]) -> str:
    """Which of IDENTIFIERS names the row's sample. Raises NoMatchError where none does."""
    identifier = next((name for name in IDENTIFIERS if row.get(name) is not None), None)
    if identifier is None:
        raise NoMatchError(f"does not name a sample: it has none of {', '.join(IDENTIFIERS)}")
    return identifier


def plan_index(context: StageContext) -> PlanIndex:
    """Everything the plan asks, with what recorded rows may know a sample by. Picture bytes are not read."""
    parts = context.lake.parts_without_pictures(SAMPLES, context.ids.dataset_id)
    samples = pl.concat(with_picture_path(path, _SAMPLE_COLUMNS) for path in parts)
    samples = samples.filter(pl.col("model") != EXAM)  # who names a sample by prompt or picture does not mean an exam's twins
    planned = (
        context.lake.scan(JUDGEMENTS, context.ids.plan_id)
        .filter(pl.col("status") == JudgementStatus.PLANNED)
        .select("sample_id", "duplicate_of_sample_id", "judge_model", "repeat", "request_key", "items_json", rubric="rubric_id")
        .collect()
    )
    twin = pl.col("duplicate_of_sample_id")
    planned = planned.with_columns(
        pl.when(twin.is_in(planned["sample_id"].implode())).then(twin)
    )  # else the copy alone is judged
    frame = _by_item(planned).join(samples, on="sample_id", how="left", maintain_order="left")
    return PlanIndex({name: frame[name].to_list() for name in frame.columns})


def _by_item(planned: pl.DataFrame) -> pl.DataFrame:
    """A row for each request of a judgement: of one about items, which the items asked one by one are told apart by."""
    of_items = planned.filter(pl.col("items_json").is_not_null())
    if of_items.is_empty():
        return planned.drop("items_json").with_columns(item=pl.lit(None, pl.String))
    kind = pl.List(pl.Struct({"id": pl.String, "item": pl.String, "request_key": pl.String}))
    each = (
        of_items.drop("request_key")
        .with_columns(pl.col("items_json").str.json_decode(kind))
        .explode("items_json")
        .unnest("items_json")
    )
    together = pl.col("item") != ""  # where all are asked in one, a row is about the sample
    each = each.with_columns(item=pl.when(~together).then("id")).drop("id").unique(maintain_order=True)
    whole = planned.filter(pl.col("items_json").is_null()).drop("items_json").with_columns(item=pl.lit(None, pl.String))
    return pl.concat([whole, each.select(whole.columns)])


_SAMPLE_COLUMNS = ["sample_id", "source_key", "item_id", "model", "checkpoint", "seed", "prompt"]


def _is_end(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether the shorter one is the end of the longer."""
    n_parts = min(len(one), len(other))
    return one[-n_parts:] == other[-n_parts:]


def _text(value: object) -> str:
    return value if isinstance(value, str) else str(value)
