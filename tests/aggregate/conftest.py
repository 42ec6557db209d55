"""Fixtures of the aggregate tests: small rubrics, and judgements and scores written down as short rows."""

import hashlib
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rubrics.model import Dimension, ReplyFormat, Rubric, Variant
from schemas.benchmark.file import Statistics
from schemas.tables.stored import JUDGEMENTS, REPLIES, SCORES
from tasks.aggregate.tables import Settings, aggregated, cells

RUN = {"benchmark": "nightly", "dataset_id": "d" * 64, "publication_id": "e" * 64, "run_date": date(2026, 11, 3)}


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def rubric(
    variants: Mapping[str | None, tuple[str, ...]], report_by: str | None = None, scale: tuple[float, float] = (0, 10)
) -> Rubric:
    dispatch = "category" if None not in variants else None
    return Rubric(
        id="plain", version="1", title="", source="", folder=Path(), digest="f" * 64, reply_format=ReplyFormat.JSON, needs=(),
        may_be_null=frozenset(), unit=("prompt",), report_by=report_by or dispatch, dispatch=dispatch, value_maps={}, messages=(),
        variants={v: Variant(v, None, None, tuple(Dimension(k, (k,), *scale) for k in keys)) for v, keys in variants.items()},
        rules=(), n_output_tokens_expected=10,
    )  # fmt: skip


def frames(rows: list[dict[str, Any]], asked: Rubric) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows {model, category, prompt, sample, repeat, scores}: `scores` by dimension is a number, a reason, or
    (status, reason, score, low, high); a row with a `status` was not planned, one with `again` is that sample once more, and
    one with a `question` asks the very same as others with it."""
    judgements, scores = [], []
    for row in rows:
        where = {"model": "north", "checkpoint": "1", "category": None, "repeat": 0, "judge": "eye"} | row
        again = where.get("again")
        status, name = (
            where.get("status", "planned"),
            "/".join(str(where[k]) for k in ("judge", "model", "checkpoint", "again" if again else "sample", "repeat")),
        )
        key = digest(f"request {where.get('question', name)}") if status == "planned" else None
        version = where.get("version", asked.version)
        common = {"rubric_id": asked.id, "rubric_version": version, "judge_model": where["judge"], "request_key": key}
        judgements.append(common | {
            "sample_id": digest(f"{where['model']}/{where['checkpoint']}/{where['sample']}"), "repeat": where["repeat"],
            "occasion": where.get("occasion", ""), "model": where["model"], "checkpoint": where["checkpoint"],
            "category": where["category"], "prompt_id": digest(str(where["prompt"])), "status": status,
            "reason": where.get("reason"),
            "duplicate_of_sample_id": digest(f"{where['model']}/{where['checkpoint']}/{again}") if again else None,
            "first_look": where.get("look"),
        })  # fmt: skip
        for dimension, value in (where.get("scores") or {}).items():
            scores.append(common | {"dimension": dimension, "variant": None, "note": None} | _read(value))
    empty = {t.name: t.empty().schema for t in (JUDGEMENTS, SCORES)}
    return pl.DataFrame(judgements, schema=empty["judgements"]), pl.DataFrame(scores, schema=empty["scores"])


def _read(value: Any) -> dict[str, Any]:
    if isinstance(value, tuple):
        status, reason, score, low, high = value
    elif isinstance(value, str):
        status, reason, score, low, high = "unreadable", value, None, 0.0, 10.0
    else:
        status, reason, score, low, high = "scored", None, float(value), float(value), float(value)
    verdict = None if score is None else True
    return {
        "score": score, "status": status, "reason": reason, "bound_low": low, "bound_high": high, "item": "", "ask_index": 0,
        "is_in_range": verdict, "is_on_step": verdict, "is_rule_kept": verdict,
    }  # fmt: skip


@pytest.fixture(scope="session")
def make_rubric() -> Callable[..., Rubric]:
    return rubric


@pytest.fixture(scope="session")
def make_frames() -> Callable[..., tuple[pl.DataFrame, pl.DataFrame]]:
    return frames


@pytest.fixture
def aggregate() -> Callable[..., pl.DataFrame]:
    """Rows and a rubric to the published cells."""

    def run(rows: list[dict[str, Any]], asked: Rubric, min_coverage: float = 0.0) -> pl.DataFrame:
        return cells(*frames(rows, asked), {asked.id: asked}, Settings(**RUN, min_coverage=min_coverage))

    return run


@pytest.fixture
def all_tables() -> Callable[..., dict[str, pl.DataFrame]]:
    """Rows and a rubric to every table a run publishes, by name. Every request was answered once unless `replies` say else."""

    def run(
        rows: list[dict[str, Any]], asked: Rubric, replies: pl.DataFrame | None = None, min_coverage: float = 0.0, **settings: Any
    ) -> dict[str, pl.DataFrame]:
        judgements, scores = frames(rows, asked)
        baseline = settings.pop("baseline", None)
        described = Settings(**RUN, min_coverage=min_coverage, statistics=Statistics(**settings), baseline=baseline)
        answered = answers(judgements) if replies is None else replies
        found = aggregated(judgements.lazy(), scores.lazy(), answered.lazy(), {asked.id: asked}, described)
        return {table.name: frame for table, frame in found.items()}

    return run


def answers(judgements: pl.DataFrame, **changes: Any) -> pl.DataFrame:
    schema = REPLIES.empty().schema
    keys = judgements["request_key"].drop_nulls().unique().sort()
    common = {"ask_index": 0, "status": "answered", "judge_model": "eye", "answered_model": "eye", "n_attempts": 1} | changes
    return pl.DataFrame([common | {"request_key": key} for key in keys], schema=schema)


@pytest.fixture
def make_answers() -> Callable[..., pl.DataFrame]:
    return answers


@pytest.fixture
def one() -> Callable[..., dict[str, Any]]:
    """The one cell with these values, as a dict."""

    def pick(table: pl.DataFrame, **address: str) -> dict[str, Any]:
        return table.row(by_predicate=pl.all_horizontal(pl.col(k) == v for k, v in address.items()), named=True)

    return pick


@pytest.fixture
def run_arguments() -> dict[str, Any]:
    return dict(RUN)
