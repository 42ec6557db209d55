"""A small lake that is right in every respect, made of "worlds": the same rows again and again under keys of their own.

A fault planted in one world's rows is seen in that world's failing rows alone, so one run of the checks serves all faults.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rubrics.model import Condition, Dimension, ReplyFormat, Rubric, Rule, Variant
from schemas.identities import RunIds
from schemas.tables.stored import JUDGEMENTS, REPLIES, REQUESTS, SAMPLES, SCORES
from schemas.tables.table import Table
from tasks.lake.reading import Lake
from tasks.lake.writing import stage
from tasks.validate.gate_and_quarantine import ValidationResult, validate
from tests.support.contexts import stage_context
from tests.support.markers import fit_marker

TABLES = {table.name: table for table in (SAMPLES, JUDGEMENTS, REQUESTS, REPLIES, SCORES)}
IDS = RunIds("d" * 64, "a" * 64, "b" * 64, "c" * 64, "code", "7" * 64)
PARTITIONS = {
    "samples": IDS.dataset_id, "judgements": IDS.plan_id, "requests": IDS.plan_id,
    "replies": IDS.snapshot_id, "scores": IDS.reading_id,
}  # fmt: skip

Rows = dict[str, list[dict[str, object]]]


def rubric(rubric_id: str, variants: Mapping[str | None, tuple[Dimension, ...]], rules: tuple[Rule, ...] = ()) -> Rubric:
    return Rubric(
        id=rubric_id, version="1", title="", source="", folder=Path(), digest="e" * 64, reply_format=ReplyFormat.JSON,
        needs=("prompt",), may_be_null=frozenset(), unit=("prompt",), report_by=None,
        dispatch=None if None in variants else "category", value_maps={}, messages=(),
        variants={category: Variant(category, None, None, found) for category, found in variants.items()},
        rules=rules, n_output_tokens_expected=50,
    )  # fmt: skip


def _dimension(key: str, high: float, step: float | None) -> Dimension:
    return Dimension(key, (key,), 0.0, high, step)


MARKS = rubric(
    "marks",
    {None: (_dimension("words", 5, 1), _dimension("picture", 5, 0.5))},
    (Rule("no text", (Condition("text", is_null=True),), ("words",), 0.0, 0.0),),
)
ASPECTS = rubric(
    "aspects",
    {
        "one": (_dimension("shape", 10, None), _dimension("overall_score", 10, None)),
        "two": (_dimension("shape", 10, None), _dimension("colour", 10, None), _dimension("overall_score", 10, None)),
    },
)
RUBRICS = {"marks": MARKS, "aspects": ASPECTS}


def digest(world: int, what: str) -> str:
    """64 characters that say which world and row they are."""
    return f"{world:04d}{what}".ljust(64, "0")


def world_of(row_key: Mapping[str, object]) -> int | None:
    """The world a failing row's key is of; None where the key itself is null."""
    value = row_key.get("sample_id") or row_key.get("request_key")
    return int(str(value)[:4]) if value else None


def _sample(world: int, name: str, status: str = "ok", text: str | None = "words") -> dict[str, object]:
    is_ok = status == "ok"
    return {
        "sample_id": digest(world, name), "source": "drawn", "source_key": f"{name}.png", "model": "m", "checkpoint": "c",
        "prompt": "a <b>red</b> cube", "text": text, "status": status, "image_sha256": "f" * 64 if is_ok else None,
        "file_sha256": "f" * 64, "duplicate_of_sample_id": "f" * 64,
        "width_px": 8 if is_ok else None, "height_px": 8 if is_ok else None, "n_bytes": 90,
    }  # fmt: skip


def _judgement(world: int, sample: str, rubric_id: str, request: str | None, reason: str | None = None) -> dict[str, object]:
    return {
        "sample_id": digest(world, sample), "rubric_id": rubric_id, "rubric_version": "1", "judge_model": "j", "repeat": 0,
        "occasion": "", "model": "m", "checkpoint": "c", "prompt_id": "9" * 64,
        "request_key": request and digest(world, request), "status": reason or "planned", "reason": reason,
        "duplicate_of_sample_id": "f" * 64, "first_look": 1,
    }  # fmt: skip


def _request(world: int, name: str, rubric_id: str, variant: str | None, facts: str = "{}") -> dict[str, object]:
    return {
        "request_key": digest(world, name), "rubric_id": rubric_id, "rubric_version": "1", "rubric_digest": "e" * 64,
        "variant": variant, "judge_model": "j", "parameters_json": "{}", "repeat": 0, "occasion": "",
        "image_sha256": "f" * 64, "messages_json": "[]", "facts_json": facts, "n_output_tokens_expected": 50,
    }  # fmt: skip


def _reply(world: int, name: str, status: str = "answered", ask_index: int = 0) -> dict[str, object]:
    return {
        "request_key": digest(world, name), "ask_index": ask_index, "status": status, "reply_text": "<script>",
        "judge_model": "j", "n_input_tokens": 9, "n_cached_tokens": 4, "n_output_tokens": 9, "cost_usd": 0.001, "latency_s": 0.5,
        "n_attempts": 1, "reply_sha256": digest(world, "reply"), "origin": "asked",
        "answered_model": "j-1" if status == "answered" else None,
    }  # fmt: skip


def _score(
    world: int, name: str, dimension: str, score: float | None, high: float, *, variant: str | None = None,
    reason: str | None = None, ask_index: int | None = 0,
) -> dict[str, object]:  # fmt: skip
    status = "scored" if reason is None else "unreadable" if reason == "refusal" else "no_reply"
    verdict = None if score is None else True
    return {
        "request_key": digest(world, name), "dimension": dimension, "rubric_id": "aspects" if variant else "marks",
        "rubric_version": "1", "judge_model": "j", "variant": variant, "score": score, "status": status, "reason": reason,
        "note": "<script>", "ask_index": None if score is None else ask_index, "bound_low": 0.0 if score is None else score,
        "bound_high": high if score is None else score, "item": "",
        "is_in_range": verdict, "is_on_step": verdict, "is_rule_kept": verdict,
    }  # fmt: skip


def world(number: int) -> Rows:
    """Four samples, five requests: one shared and read at the second ask, one without text, one refused, one timed out."""
    n = number
    return {
        "samples": [_sample(n, "51"), _sample(n, "52"), _sample(n, "53", "broken_image"), _sample(n, "54", text=None)],
        "judgements": [
            _judgement(n, "51", "marks", "a1"), _judgement(n, "52", "marks", "a1"),
            _judgement(n, "53", "marks", None, "unusable_sample"), _judgement(n, "54", "marks", "a2"),
            _judgement(n, "51", "aspects", "a3"), _judgement(n, "52", "aspects", "a4"), _judgement(n, "54", "aspects", "a5"),
        ],
        "requests": [
            _request(n, "a1", "marks", None, '{"text_is_null":false}'), _request(n, "a2", "marks", None, '{"text_is_null":true}'),
            _request(n, "a3", "aspects", "one"), _request(n, "a4", "aspects", "two"), _request(n, "a5", "aspects", "one"),
        ],
        "replies": [
            _reply(n, "a1"), _reply(n, "a1", ask_index=1), _reply(n, "a2"), _reply(n, "a3"), _reply(n, "a4", "filtered"),
            _reply(n, "a5", "timed_out"),
        ],
        "scores": [
            _score(n, "a1", "picture", 3.0, 5, ask_index=1), _score(n, "a1", "words", 4.0, 5, ask_index=1),
            _score(n, "a2", "picture", 5.0, 5), _score(n, "a2", "words", 0.0, 5),
            _score(n, "a3", "overall_score", 7.5, 10, variant="one"), _score(n, "a3", "shape", 7.5, 10, variant="one"),
            _score(n, "a4", "colour", None, 10, variant="two", reason="refusal"),
            _score(n, "a4", "overall_score", None, 10, variant="two", reason="refusal"),
            _score(n, "a4", "shape", None, 10, variant="two", reason="refusal"),
            _score(n, "a5", "overall_score", None, 10, variant="one", reason="timed_out"),
            _score(n, "a5", "shape", None, 10, variant="one", reason="timed_out"),
        ],
    }  # fmt: skip


def together(worlds: Iterable[Rows]) -> Rows:
    """All worlds' rows, table by table."""
    rows: Rows = {name: [] for name in TABLES}
    for one in worlds:
        for name, found in one.items():
            rows[name].extend(found)
    return rows


def write_lake(root: Path, rows: Rows) -> Lake:
    """A lake that holds the rows, written as the pipeline writes it: through Lake and Staging, in two parts."""
    lake = Lake(root)
    for name, table in TABLES.items():
        frame = pl.from_arrow(_arrow(rows[name], table))
        assert isinstance(frame, pl.DataFrame)
        staging = stage(lake, table)
        half = frame.height // 2
        for index, part in enumerate((frame[:half], frame[half:])):
            staging.write_part(index, part)
        staging.commit(PARTITIONS[name])
    return lake


def plant(lake: Lake, name: str, rows: list[dict[str, object]]) -> None:
    """Put other rows behind the lake's back: into the stored Parquet, nulls wherever they like, and the marker made to fit."""
    table = TABLES[name]
    marker = lake.marker(table, PARTITIONS[name])
    entries = json.loads(marker.read_text())["parts"]
    half = len(rows) // 2
    for entry, part in zip(entries, (rows[:half], rows[half:]), strict=True):
        path = lake.partition(table, PARTITIONS[name]) / str(entry["name"])
        pq.write_table(_arrow(part, table), path)
    fit_marker(lake, table, PARTITIONS[name])


def _arrow(rows: list[dict[str, object]], table: Table) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=pa.schema([column.with_nullable(True) for column in table.schema]))


SOURCES = [{"name": "drawn", "reader": "geneval", "path": "outputs"}]


def check(
    lake: Lake, docs_folder: Path | None = None, rubrics: Mapping[str, Rubric] = RUBRICS, **options: int
) -> ValidationResult:
    """validate() on a lake of this file's."""
    return validate(stage_context(lake, rubrics, IDS, sources=SOURCES), docs_folder, **options)


@dataclass(frozen=True)
class Lakes:
    """What the tests need of this file."""

    world: Callable[[int], Rows] = world
    world_of: Callable[[Mapping[str, object]], int | None] = world_of
    together: Callable[[Iterable[Rows]], Rows] = together
    write: Callable[[Path, Rows], Lake] = write_lake
    plant: Callable[[Lake, str, list[dict[str, object]]], None] = plant
    check: Callable[..., ValidationResult] = check
    rubrics: Mapping[str, Rubric] = field(default_factory=lambda: RUBRICS)


@pytest.fixture(scope="session")
def lakes() -> Lakes:
    return Lakes()
