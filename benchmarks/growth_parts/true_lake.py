"""A lake whose every id is what its content gives: samples to plan, and replies to a plan's requests. It measures nothing.

Pictures are some bytes that nobody decodes. Unlike lake.py's rows these can be planned, kept in a ledger and verified.
"""

from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.growth_parts.lake import CATEGORIES, N_CHECKPOINTS, N_IMAGES, texts
from rubrics.loading import SHIPPED, find_rubrics
from schemas.benchmark.file import Benchmark
from schemas.identities import RunIds
from schemas.records import SAID, SAMPLE_TEXTS, reply_sha256
from schemas.statuses.rows import SampleStatus
from schemas.tables.stored import REPLIES, REQUESTS, SAMPLES
from tasks.context import StageContext
from tasks.ingest.identity import dataset_id, id_of_row, packed
from tasks.lake.reading import Lake
from tasks.lake.writing import stage
from tasks.publish.identity import code_version

JUDGE = "eye-2026-01-01"
RESTORED = "e" * 64
"""The snapshot that stands for a ledger's replies until they are in it."""


def opened(
    folder: Path,
    rubric: str,
    shard_size: int,
    ids: dict[str, str],
    run_date: date = date(2026, 1, 1),
    ledger_url: str | None = None,
) -> StageContext:
    """The run of a benchmark file over these samples, under a judge that would be asked."""
    benchmark = Benchmark.model_validate({
        "name": "growth", "sources": [{"reader": "manifest", "path": "none", "name": "drawn"}], "rubrics": [{"id": rubric}],
        "limits": {"shard_size": shard_size}, "judges": [{"model": JUDGE, "base_url": "http://127.0.0.1:9/v1"}],
        "report": {"max_pictured": 0},
    })  # fmt: skip
    known = RunIds(**{"code_version": code_version(), **ids})
    rubrics, ledger = find_rubrics([rubric], [SHIPPED]), ledger_url or f"sqlite:///{folder / 'ledger.db'}"
    return StageContext(benchmark, rubrics, Lake(folder), ledger, run_date, known)


def write_samples(lake: Lake, n_samples: int, shard_size: int) -> str:
    """Pictures of N_CHECKPOINTS checkpoints, N_IMAGES of each prompt; the dataset's id."""
    staging, n_prompts, ids = stage(lake, SAMPLES), max(1, n_samples // N_CHECKPOINTS // N_IMAGES), []
    for part, start in enumerate(range(0, n_samples, shard_size)):
        rows = [_sample(number, n_prompts) for number in range(start, min(start + shard_size, n_samples))]
        ids.append(packed(row["sample_id"] for row in rows))
        staging.write_part(part, SAMPLES.frame(rows))
    return staging.commit(dataset_id(ids))


def _sample(number: int, n_prompts: int) -> dict[str, Any]:
    prompt, content = number // N_IMAGES % n_prompts, f"picture {number}".encode()
    row: dict[str, Any] = dict.fromkeys((*SAMPLE_TEXTS, "item_id", "detail"))
    row |= {
        "source": "drawn", "source_key": f"{number}.png", "model": "north", "seed": number % N_IMAGES,
        "checkpoint": f"step-{min(number // N_IMAGES // n_prompts, N_CHECKPOINTS - 1)}",
        "prompt": f"a photo of a bench right of {prompt} green teapots", "category": CATEGORIES[prompt % len(CATEGORIES)],
        "image": {"bytes": content, "path": f"{number}.png"}, "image_sha256": sha256(content).hexdigest(),
        "file_sha256": sha256(content).hexdigest(), "image_format": "PNG", "width_px": 512, "height_px": 512,
        "n_bytes": len(content), "status": SampleStatus.OK.value,
    }  # fmt: skip
    return row | {"sample_id": id_of_row(row, SampleStatus.OK)}


def write_replies(run: StageContext) -> None:
    """An answer to every request of the run's plan, as the snapshot RESTORED; one in a hundred is no answer."""
    (rubric,), draw, staging = run.rubrics.values(), np.random.default_rng(1), stage(run.lake, REPLIES)
    for path in run.lake.parts(REQUESTS, run.ids.plan_id):
        asked = pl.read_parquet(path, columns=["request_key", "judge_model", "variant"])
        said = texts(asked["variant"].to_list(), rubric, draw)
        replies = asked.sort("request_key").select("request_key", "judge_model").with_columns(
            ask_index=pl.lit(0, pl.Int64), status=pl.lit("answered"), reply_text=pl.Series(said), finish_reason=pl.lit("stop"),
            answered_model=pl.lit(JUDGE), n_input_tokens=pl.lit(900, pl.Int64), n_output_tokens=pl.lit(40, pl.Int64),
            cost_usd=pl.lit(0.001), latency_s=pl.Series(draw.gamma(2, 1, len(said))), n_attempts=pl.lit(1, pl.Int64),
            origin=pl.lit("asked"), received_at=pl.lit(datetime(2026, 1, 1, tzinfo=UTC)),
        )  # fmt: skip
        replies = pl.concat([REPLIES.empty(), replies], how="diagonal_relaxed")
        digests = [reply_sha256(row) for row in replies.select(SAID).iter_rows(named=True)]
        index = int(path.stem.removeprefix("part-"))
        staging.write_part(index, replies.with_columns(reply_sha256=pl.Series(digests, dtype=pl.String)))
    staging.commit(RESTORED)
