"""A lake with samples, a plan and replies of many judgements, written part by part through its store. It measures nothing."""

import hashlib
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from rubrics.loading import SHIPPED, find_rubrics
from rubrics.model import Rubric
from schemas.benchmark.file import Benchmark
from schemas.records import PlannedPart
from schemas.tables.stored import JUDGEMENTS, REPLIES, REQUESTS, SAMPLES
from schemas.tables.table import Table
from tasks.context import StageContext
from tasks.lake.reading import Lake
from tasks.lake.writing import Staging, stage

N_CHECKPOINTS, N_IMAGES, CATEGORIES = 40, 4, ("single_object", "two_object", "counting", "colors", "position", "color_attr")
IDS = {"dataset_id": "d" * 64, "plan_id": "a" * 64, "snapshot_id": "b" * 64}
JUDGE = "eye-2026-01-01"
SAID = "the picture shows most of what was asked for, though one of its objects stands elsewhere and has another colour"


def opened(folder: Path, rubric: str, shard_size: int, run_date: date) -> StageContext:
    """The run a benchmark file would open; nobody is asked."""
    benchmark = Benchmark.model_validate({
        "name": "growth", "sources": [{"reader": "manifest", "path": "none", "name": "drawn"}], "rubrics": [{"id": rubric}],
        "limits": {"shard_size": shard_size}, "judges": [{"model": JUDGE, "recorded": True}],
    })  # fmt: skip
    return StageContext(benchmark, find_rubrics([rubric], [SHIPPED]), Lake(folder), "sqlite://", run_date)


def planned_parts(n_judgements: int, rubric: str, shard_size: int) -> tuple[PlannedPart, ...]:
    """The parts of the plan write_lake writes."""
    starts = range(0, n_judgements, shard_size)
    return tuple(
        PlannedPart(part, part, rubric, JUDGE, min(shard_size, n_judgements - start)) for part, start in enumerate(starts)
    )


def write_lake(folder: Path, n_judgements: int, rubric_id: str, shard_size: int) -> None:
    """Pictures of N_CHECKPOINTS checkpoints, N_IMAGES of each prompt; one reply in a hundred is no answer."""
    rubric = find_rubrics([rubric_id], [SHIPPED])[rubric_id]
    lake = Lake(folder)
    stagings = {table: stage(lake, table) for table in (SAMPLES, JUDGEMENTS, REQUESTS, REPLIES)}
    n_prompts = max(1, n_judgements // N_CHECKPOINTS // N_IMAGES)
    draw = np.random.default_rng(1)
    for part, start in enumerate(range(0, n_judgements, shard_size)):
        _write_part(stagings, part, _rows(np.arange(start, min(start + shard_size, n_judgements)), n_prompts), rubric, draw)
    keys = {SAMPLES: "dataset_id", JUDGEMENTS: "plan_id", REQUESTS: "plan_id", REPLIES: "snapshot_id"}
    for table, staging in stagings.items():
        staging.commit(IDS[keys[table]])


def _rows(index: Any, n_prompts: int) -> pl.DataFrame:
    """What samples, judgements, requests and replies have in common."""
    prompt = index // N_IMAGES % n_prompts
    return pl.DataFrame({
        "number": index, "prompt_number": prompt, "checkpoint": np.minimum(index // N_IMAGES // n_prompts, N_CHECKPOINTS - 1),
        "sample_id": digests(index, b"sample"), "image_sha256": digests(index, b"picture"),
        "request_key": digests(index, b"request"), "prompt_id": digests(prompt, b"prompt"),
        "category": [CATEGORIES[number % len(CATEGORIES)] for number in prompt.tolist()],
    }).with_columns(
        model=pl.lit("north"), checkpoint=pl.format("step-{}", "checkpoint"), judge_model=pl.lit(JUDGE),
        repeat=pl.lit(0, pl.Int64), occasion=pl.lit(""),
    )  # fmt: skip


def _write_part(stagings: dict[Table, Staging], part: int, rows: pl.DataFrame, rubric: Rubric, draw: Any) -> None:
    rows = rows.with_columns(
        rubric_id=pl.lit(rubric.id), rubric_version=pl.lit(rubric.version), rubric_digest=pl.lit(rubric.digest),
        variant=pl.lit(None, pl.String) if rubric.dispatch is None else pl.col("category"),
    )  # fmt: skip
    samples = rows.with_columns(
        source=pl.lit("drawn"), source_key=pl.format("{}.png", "number"), seed=pl.col("number") % N_IMAGES,
        prompt=pl.format("a photo of a bench right of {} green teapots", "prompt_number"), image_format=pl.lit("PNG"),
        image=pl.struct(bytes=pl.col("number").cast(pl.String).cast(pl.Binary), path=pl.format("{}.png", "number")),
        status=pl.lit("ok"),
    )  # fmt: skip
    requests = rows.sort("request_key").with_columns(
        parameters_json=pl.lit('{"max_tokens":300,"temperature":0}'), messages_json=pl.lit("[]"), facts_json=pl.lit("{}"),
        n_output_tokens_expected=pl.lit(rubric.n_output_tokens_expected, pl.Int64),
    )  # fmt: skip
    text = texts(requests["variant"].to_list(), rubric, draw)
    replies = requests.select("request_key", "judge_model").with_columns(
        ask_index=pl.lit(0, pl.Int64), status=pl.lit("answered"), reply_text=pl.Series(text), finish_reason=pl.lit("stop"),
        answered_model=pl.lit(JUDGE), n_input_tokens=pl.lit(900, pl.Int64),
        n_output_tokens=pl.Series(text).str.len_chars().cast(pl.Int64) // 4, cost_usd=pl.lit(0.001), latency_s=pl.Series(
            draw.gamma(2, 1, len(text))), n_attempts=pl.lit(1, pl.Int64), origin=pl.lit("asked"),
        received_at=pl.lit(datetime(2026, 1, 1, tzinfo=UTC)),
    )  # fmt: skip
    judgements = rows.with_columns(status=pl.lit("planned"))
    for table, frame in ((SAMPLES, samples), (JUDGEMENTS, judgements), (REQUESTS, requests), (REPLIES, replies)):
        stagings[table].write_part(part, pl.concat([table.empty(), frame], how="diagonal_relaxed"))


def texts(variants: list[str | None], rubric: Rubric, draw: Any) -> list[str]:
    """Replies of about 25 words a dimension; one in a hundred is no answer."""
    lengths, refuses = draw.integers(40, len(SAID), len(variants)), draw.random(len(variants)) < 0.01
    scores = draw.integers(0, 11, (len(variants), 8))
    found = []
    for number, variant in enumerate(variants):
        said = SAID[: lengths[number]]
        if refuses[number]:
            found.append("I cannot see a picture.")
        elif rubric.id == "alignment":
            found.append(f"Reasoning: {said}.\nScore: {scores[number, 0] % 5 + 1}")
        else:
            asked = rubric.variant(variant)
            pairs = zip(asked.keys if asked else (), scores[number], strict=False)
            found.append("{" + ", ".join(f'"{key}": {{"score": {n}, "explanation": "{said}"}}' for key, n in pairs) + "}")
    return found


def digests(index: Any, salt: bytes) -> list[str]:
    """Texts of 64 hexadecimal characters that look like digests; the same number gives the same text."""
    return [hashlib.sha256(salt + number.to_bytes(8, "big")).hexdigest() for number in index.tolist()]
