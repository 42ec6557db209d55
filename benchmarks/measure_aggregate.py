"""Measure aggregation on synthetic judgements: CPU seconds and peak memory, from Parquet to all tables.

    python -m benchmarks.measure_aggregate --judgements 1000000 --dimensions 6

The judgements are 40 checkpoints' of prompts × 4 pictures in six categories, 1 % of them failed.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.growth_parts.lake import digests
from benchmarks.growth_parts.usage import folder_or_temporary
from rubrics.model import Dimension, ReplyFormat, Rubric, Variant
from schemas.tables.stored import JUDGEMENTS, REPLIES, SCORES

N_CHECKPOINTS, N_IMAGES, N_CATEGORIES, PART = 40, 4, 6, 100_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--judgements", type=int, default=1_000_000)
    parser.add_argument("--dimensions", type=int, default=6)
    parser.add_argument("--folder", type=Path, help="where the synthetic lake stands; default: a temporary folder")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        return measure(arguments.folder, arguments.dimensions)
    with folder_or_temporary(arguments.folder) as folder:
        if not (folder / "scores").is_dir():
            write(folder, arguments.judgements, arguments.dimensions)
        again = ["--measure", "--folder", str(folder), "--dimensions", str(arguments.dimensions)]
        return subprocess.run([sys.executable, "-m", "benchmarks.measure_aggregate", *again], check=False).returncode


def measure(folder: Path, n_dimensions: int) -> int:
    from tasks.aggregate.tables import Settings, aggregated

    run = Settings("measured", "d" * 64, "e" * 64, date(2026, 1, 1), min_coverage=0.9)
    names = ("judgements", "scores", "replies")
    judgements, scores, replies = (pl.scan_parquet(folder / name / "*.parquet") for name in names)
    before, started = time.process_time(), time.monotonic()
    tables = aggregated(judgements, scores, replies, {"measured": rubric(n_dimensions)}, run)
    spent, took = time.process_time() - before, time.monotonic() - started
    peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    sizes = ", ".join(f"{table.name} {frame.height:,}" for table, frame in tables.items())
    print(f"CPU {spent:.1f} s, wall {took:.1f} s, peak {peak_gb:.2f} GB on {os.cpu_count()} cores; rows: {sizes}")
    return 0


def rubric(n_dimensions: int) -> Rubric:
    dimensions = tuple(Dimension(f"dimension_{n}", (f"Dimension {n}",), 0, 10) for n in range(n_dimensions))
    return Rubric(
        id="measured", version="1", title="", source="", folder=Path(), digest="f" * 64, reply_format=ReplyFormat.JSON, needs=(),
        may_be_null=frozenset(), unit=("prompt",), report_by="category", dispatch=None, value_maps={}, messages=(),
        variants={None: Variant(None, None, None, dimensions)}, rules=(), n_output_tokens_expected=10,
    )  # fmt: skip


def write(folder: Path, n_judgements: int, n_dimensions: int) -> None:
    """Parts of PART judgements each, in the lake's shape; the prompts are dealt so that a part holds several checkpoints."""
    draw = np.random.default_rng(1)
    n_prompts = max(1, n_judgements // N_CHECKPOINTS // N_IMAGES)
    for name in ("judgements", "scores", "replies"):
        (folder / name).mkdir(parents=True)
    for part, start in enumerate(range(0, n_judgements, PART)):
        index = np.arange(start, min(start + PART, n_judgements))
        prompt = index // N_IMAGES % n_prompts
        checkpoint = np.minimum(index // (n_prompts * N_IMAGES), N_CHECKPOINTS - 1)
        keys = digests(index, b"request")
        common = {"request_key": keys, "rubric_id": ["measured"] * len(index), "judge_model": ["eye"] * len(index)}
        numbered = pl.DataFrame(common | {"checkpoint": checkpoint, "category": prompt % N_CATEGORIES})
        judgements = numbered.with_columns(
            sample_id=pl.Series(digests(index, b"sample")), rubric_version=pl.lit("1"), repeat=pl.lit(0, pl.Int64),
            occasion=pl.lit(""), model=pl.lit("north"), checkpoint=pl.format("step-{}", "checkpoint"),
            category=pl.format("category {}", "category"), prompt_id=pl.Series(digests(prompt, b"prompt")),
            status=pl.lit("planned"),
        )  # fmt: skip
        scores = scores_of(keys, prompt, n_dimensions, draw)
        for table, frame in ((JUDGEMENTS, judgements), (SCORES, scores), (REPLIES, replies_of(keys, draw))):
            whole = pl.concat([table.empty(), frame], how="diagonal_relaxed")
            whole.write_parquet(folder / table.name / f"{part:05}.parquet")


def scores_of(keys: list[str], prompt: np.ndarray, n_dimensions: int, draw: np.random.Generator) -> pl.DataFrame:
    shape = (len(keys), n_dimensions)
    level = np.random.default_rng(0).normal(6, 2, prompt.max() + 1)[prompt][:, None]
    score = np.clip(np.rint(level + draw.normal(0, 1.5, shape)), 0, 10).ravel()
    failed = np.repeat(draw.random(len(keys)) < 0.01, n_dimensions)
    long = pl.DataFrame({
        "request_key": np.repeat(np.array(keys, dtype=object), n_dimensions).tolist(),
        "dimension": [f"dimension_{n}" for n in range(n_dimensions)] * len(keys), "number": score, "failed": failed,
    })  # fmt: skip
    is_failed = pl.col("failed")
    return long.select(
        "request_key", "dimension", rubric_id=pl.lit("measured"), rubric_version=pl.lit("1"), judge_model=pl.lit("eye"),
        score=pl.when(~is_failed).then("number"),
        status=pl.when(is_failed).then(pl.lit("unreadable")).otherwise(pl.lit("scored")),
        reason=pl.when(is_failed).then(pl.lit("refusal")), bound_low=pl.when(is_failed).then(0.0).otherwise("number"),
        bound_high=pl.when(is_failed).then(10.0).otherwise("number"),
    )  # fmt: skip


def replies_of(keys: list[str], draw: np.random.Generator) -> pl.DataFrame:
    n = len(keys)
    return pl.DataFrame({
        "request_key": keys, "ask_index": np.zeros(n, np.int64), "status": ["answered"] * n, "answered_model": ["eye"] * n,
        "n_input_tokens": np.full(n, 900), "n_output_tokens": draw.integers(50, 200, n), "cost_usd": np.full(n, 0.001),
        "latency_s": draw.gamma(2, 1, n), "n_attempts": np.ones(n, np.int64),
    })  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
