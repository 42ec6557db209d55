"""A judge asked as a run asks it: requests stored as a plan in the lake, and the context that its stages get."""

import threading
from collections.abc import Mapping
from datetime import date
from hashlib import sha256

import polars as pl

from rubrics.model import Rubric
from schemas.benchmark.file import Benchmark, Gate, Limits, RubricChoice, Source
from schemas.benchmark.judges import Judge
from schemas.identities import RunIds
from schemas.records import PlannedPart
from schemas.tables.stored import REQUESTS
from tasks.context import StageContext
from tasks.judge.outcome import Outcome
from tasks.judge.shard import JudgeShard, judge_shard
from tasks.judge.shard_requests import OnReply
from tasks.lake.reading import Lake
from tasks.lake.writing import stage

DATASET = "1" * 64


def context_of(
    lake: Lake, rubrics: Mapping[str, Rubric], judge: Judge, ledger_url: str, ids: RunIds, gate: Gate | None = None
) -> StageContext:
    choices = [RubricChoice(id=name) for name in rubrics or ("none",)]
    benchmark = Benchmark(name="b", sources=[Source(reader="none", path=".")], rubrics=choices, judges=[judge])
    benchmark = benchmark.model_copy(update={"gate": gate or Gate()})
    return StageContext(benchmark, rubrics, lake, ledger_url, date(2026, 3, 4), ids)


def ask_shard(
    lake: Lake,
    requests: pl.DataFrame,
    rubric: Rubric,
    judge: Judge,
    ledger_url: str,
    limits: Limits,
    *,
    run_id: str = "",
    stop: threading.Event | None = None,
    on_reply: OnReply | None = None,
    gate: Gate | None = None,
) -> Outcome:
    """Store these requests as a plan of one part, and ask them."""
    plan_id = sha256("".join(requests["request_key"]).encode()).hexdigest()
    if not lake.is_complete(REQUESTS, plan_id):
        staging = stage(lake, REQUESTS)
        staging.write_part(0, requests)
        staging.commit(plan_id)
    part = PlannedPart(0, 0, rubric.id, judge.model, requests.height)
    ids = RunIds(dataset_id=DATASET, plan_id=plan_id, run_id=run_id)
    context = context_of(lake, {rubric.id: rubric}, judge, ledger_url, ids, gate)
    return judge_shard(context, JudgeShard(part, limits, on_reply), stop)
