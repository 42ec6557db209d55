"""Measure a run that asks nothing: a million cached judgements of one rubric to a published table, CPU and memory by stage.

    python -m benchmarks.cached_rerun --judgements 1000000 [--rubric composition] [--shard-size 500]

The samples table, with pictures of a few bytes, and the ledger's replies are synthetic; everything else is the product: the
stages of `salon run` after ingest, each run in a process of its own. The runs are `fill` (the lake holds samples alone; the
ledger is filled between plan and judge), `again` (the same command the same day: its publication exists) and `next day` (the
same inputs under another date: checks, aggregates, publishes).
"""

import argparse
import json
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.growth_parts.lake import CATEGORIES, JUDGE, N_CHECKPOINTS, N_IMAGES, digests, texts
from benchmarks.growth_parts.usage import Usage, folder_or_temporary, measured_apart

RUNS = {"fill": date(2026, 1, 1), "again": date(2026, 1, 1), "next day": date(2026, 1, 2)}
DATASET = "d" * 64


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judgements", type=int, default=1_000_000)
    parser.add_argument("--rubric", default="alignment", choices=["alignment", "composition"])
    parser.add_argument("--shard-size", type=int, default=500)
    parser.add_argument("--folder", type=Path, help="where the synthetic lake stands and stays; default: a temporary folder")
    parser.add_argument("--ledger", help="SQLAlchemy URL of the ledger; default: ledger.db in the lake")
    parser.add_argument("--run", choices=RUNS, help="only this run, in this process")
    arguments = parser.parse_args()
    if arguments.run:
        return measure(arguments)
    with folder_or_temporary(arguments.folder) as folder:
        if not (folder / "lake" / "samples").is_dir():
            write_samples(folder, arguments.judgements, arguments.shard_size)
        given = {name: value for name, value in vars(arguments).items() if value is not None} | {"folder": folder}
        return int(not all(measured_apart("benchmarks.cached_rerun", **given | {"run": name}) for name in RUNS))


def measure(arguments: argparse.Namespace) -> int:
    """One run, with the CPU and the memory of each stage; "start" is what fills the ledger, and no part of the total."""
    usage, began = Usage(), time.monotonic()
    from flows.executors.choose import opened_executor
    from flows.run import judging, pipeline, stages
    from flows.run.context import RunContext

    opened_run = opened(arguments).having(dataset_id=DATASET, run_id="cached")
    with opened_executor(opened_run) as executor:
        run = RunContext.of(opened_run, executor)
        usage.say("start up")
        planned = stages.plan(run)
        run = run.having(plan_id=planned.plan_id)
        usage.say("plan")
        if arguments.run == "fill":
            fill_ledger(run, planned.plan_id, arguments.rubric)
            usage.say("start")
        asked = judging.judge(run, planned.parts)
        usage.say("judge")
        assert (asked.n_asked, asked.n_cached) == (0, arguments.judgements), asked
        run = run.having(snapshot_id=stages.take_snapshot(run, planned))
        usage.say("snapshot")
        run = run.having(reading_id=stages.read(run, planned))
        usage.say("read")
        published, cells = pipeline.finish(run)
        usage.say("finish")
    found = {"wall_s": round(time.monotonic() - began, 1), "is_new": published.is_new, "means": cells.height}
    print(json.dumps({"run": arguments.run, **found, **usage.told(arguments.judgements)}), flush=True)
    return 0


def opened(arguments: argparse.Namespace) -> Any:
    """The run a benchmark file would open. Its judge is an address where nobody listens: whatever is asked, fails."""
    from rubrics.loading import SHIPPED, find_rubrics
    from schemas.benchmark.file import Benchmark
    from tasks.context import StageContext
    from tasks.lake.reading import Lake

    benchmark = Benchmark.model_validate({
        "name": "cached", "sources": [{"reader": "manifest", "path": "none", "name": "drawn"}],
        "rubrics": [{"id": arguments.rubric}], "limits": {"shard_size": arguments.shard_size},
        "judges": [{"model": JUDGE, "base_url": "http://127.0.0.1:9/v1", "parameters": {"temperature": 0, "max_tokens": 300}}],
    })  # fmt: skip
    lake = Lake(arguments.folder / "lake")
    ledger = arguments.ledger or f"sqlite:///{lake.root / 'ledger.db'}"
    return StageContext(benchmark, find_rubrics([arguments.rubric], [SHIPPED]), lake, ledger, RUNS[arguments.run])


def write_samples(folder: Path, n_samples: int, shard_size: int) -> None:
    """The samples table in the lake's own form: N_CHECKPOINTS checkpoints' pictures, N_IMAGES of each prompt."""
    from schemas.tables.stored import SAMPLES
    from tasks.lake.reading import Lake
    from tasks.lake.writing import stage

    staging = stage(Lake(folder / "lake"), SAMPLES)
    n_prompts = max(1, n_samples // N_CHECKPOINTS // N_IMAGES)
    schema = SAMPLES.empty().schema
    for part, start in enumerate(range(0, n_samples, shard_size)):
        index = np.arange(start, min(start + shard_size, n_samples))
        prompt = index // N_IMAGES % n_prompts
        rows = pl.DataFrame({
            "sample_id": digests(index, b"sample"), "image_sha256": digests(index, b"picture"),
            "checkpoint": index // N_IMAGES // n_prompts,
            "prompt": prompt, "category": [CATEGORIES[number % len(CATEGORIES)] for number in prompt.tolist()],
            "image": [{"bytes": number.to_bytes(8, "big"), "path": f"{number}.png"} for number in index.tolist()],
        }).with_columns(
            source=pl.lit("drawn"), source_key=pl.format("{}.png", pl.Series(index)), model=pl.lit("north"),
            checkpoint=pl.format("step-{}", "checkpoint"),
            prompt=pl.format("a photo of a bench right of {} green teapots", "prompt"),
            seed=pl.Series(index % N_IMAGES), image_format=pl.lit("PNG"), status=pl.lit("ok"),
        )  # fmt: skip
        absent = [pl.lit(None, dtype=kind).alias(name) for name, kind in schema.items() if name not in rows.columns]
        staging.write_part(part, rows.with_columns(absent))
    staging.commit(DATASET)


def fill_ledger(run: Any, plan_id: str, rubric: str) -> None:
    """A reply for every request of the plan, part by part."""
    from schemas.tables.stored import REQUESTS
    from tasks.ledger.ledger import Ledger

    draw = np.random.default_rng(1)
    with Ledger(run.ledger_url) as ledger:
        for path in run.lake.parts(REQUESTS, plan_id):
            requests = pl.read_parquet(path, columns=["request_key", "variant"])
            said = texts(requests["variant"].to_list(), run.rubrics[rubric], draw)
            ledger.store_rows([_reply(key, text, draw) for key, text in zip(requests["request_key"], said, strict=True)])


def _reply(key: str, text: str, draw: np.random.Generator) -> dict[str, Any]:
    return {
        "request_key": key, "ask_index": 0, "status": "answered", "reply_text": text.encode(), "finish_reason": b"stop",
        "refusal_text": None, "error_detail": None, "judge_model": JUDGE, "answered_model": JUDGE.encode(), "n_input_tokens": 900,
        "n_cached_tokens": None, "n_output_tokens": len(text) // 4, "cost_usd": 0.001, "latency_s": float(draw.gamma(2, 1)),
        "n_attempts": 1, "received_at_us": 1_767_225_600_000_000 + int(draw.integers(1_000_000_000)), "origin": "asked",
        "logprobs_json": None,
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
