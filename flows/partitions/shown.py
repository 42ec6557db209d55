"""Which checkpoints stand in a night's table, and why the one before a newest does not. What is asked of them: nightly.py.

Rows of partitions say what a run found when it wrote them, and a run that was killed wrote none. Of the checkpoints that would be
shown next, those whose rows say that something is missing are counted in the ledger.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import polars as pl

from flows.nights.checkpoints import Checkpoint, newest
from flows.partitions.plan import partitions_now
from flows.partitions.table import PartitionState, asked_alone, read_partitions
from flows.run import stages
from flows.run.context import RunContext
from schemas.errors import InputError, NothingToJudgeError, SourceError
from tasks.context import StageContext
from tasks.judge.batch.out import batches_out, keys_out
from tasks.ledger.open_ledgers import opened
from tasks.ledger.snapshot import restore

_HANDFUL = 0.1
"""The share of a partition's requests that a night asks again, so that a checkpoint that lost some replies stays in its table."""
_N_SAID = 2
_NONE: Mapping[tuple[str, str], Mapping[str, Any]] = MappingProxyType({})


def shown_checkpoints(run: RunContext, known: Sequence[Checkpoint]) -> tuple[list[str], list[str]]:
    """The checkpoints of a night's table as model/checkpoint; in sentences, why the one before a newest is none of them.

    The baseline is one of them, also where no source has it: missing.py says so. Raises InputError where there is none.
    """
    latest = newest(known)
    if not latest:
        raise InputError("there is no checkpoint yet: the table under [nightly] checkpoints lists none that is in a source")
    shown, baseline = [one.name for one in latest.values()], run.benchmark.nightly.baseline
    partitions, reasons = read_partitions(run), dict[str, str]()
    for model, own in latest.items():
        earlier: list[str] = []
        for place, one in enumerate(reversed([one for one in known if one.model == model and one != own])):
            if len(earlier) == run.benchmark.nightly.n_earlier:
                break
            why = _why_left_out(run, partitions, (model, one.checkpoint))
            if why is not None and place < run.benchmark.nightly.n_earlier:  # thousands were never asked, and stay uncounted
                why = _why_left_out(run, partitions, (model, one.checkpoint), _counted(run, one.name))
            if why is None:
                earlier.insert(0, one.name)
            else:
                reasons[one.name] = why
        shown += earlier
    shown += [] if baseline is None or baseline in shown else [baseline]
    return shown, [
        f"{one.checkpoint}, the one before {after.checkpoint}, is not in this table, and no other is compared in its place: "
        + reasons.get(one.name, "[nightly] n_earlier = 0")
        for one, after in pairwise(known)
        if after == latest[after.model] and one.model == after.model and one.name not in shown
    ]


def _counted(run: RunContext, name: str) -> dict[tuple[str, str], dict[str, Any]]:
    """A checkpoint's rows by (rubric, judge) as the ledger has it now; none where it cannot be read.

    What an ended run left with a Batch API is not left to ask: who shows the checkpoint fetches it.
    """
    alone = RunContext.of(run.stage, run.executor)
    try:
        alone = alone.having(dataset_id=stages.ingest(alone, [name]).dataset_id)
        plan = stages.plan(alone)
    except (SourceError, NothingToJudgeError):
        return {}
    alone = alone.having(plan_id=plan.plan_id)
    with opened(run.ledger_url) as ledger:
        restore(run.lake, ledger)
        out = keys_out(one for one in batches_out(ledger, {part.judge_model for part in plan.parts}) if not one.is_held)
    n_out = Counter[tuple[str, str]]()
    for part in plan.parts:
        if part.judge_model in out:
            n_out[part.rubric_id, part.judge_model] += len(out[part.judge_model].intersection(alone.request_keys(part)))
    rows = partitions_now(alone, plan, ()).with_columns(detail=pl.when(pl.col("mixed").is_not_null()).then(pl.lit("mixed")))
    by_series = {(row["rubric_id"], row["judge_model"]): row for row in rows.iter_rows(named=True)}
    return {one: row | {"n_left": row["n_left"] - n_out[one]} for one, row in by_series.items()}


def _why_left_out(
    run: StageContext, partitions: pl.DataFrame, name: tuple[str, str], now: Mapping[tuple[str, str], Mapping[str, Any]] = _NONE
) -> str | None:
    """Why much would have to be asked about a checkpoint; None where it was asked, if not in full.

    `partitions`: as read; `now`: as counted, where it was.
    """
    mine = partitions.filter(model=name[0], checkpoint=name[1]).sort("changed_at")
    sources = {source for listed in mine["sources_json"] for source in json.loads(listed)}
    by_series = {(row["rubric_id"], row["judge_model"]): row for row in mine.iter_rows(named=True)}  # the newest of each
    of_sources = [one for one in asked_alone(run) if mine.is_empty() or sources & set(run.sources_for(one[0]))]
    due = [one for one in asked_alone(run) if one in now] if now else of_sources
    reasons = [why for one in due if (why := _why_to_ask_now(one, by_series.get(one), now.get(one)))]
    n_more = len(reasons) - _N_SAID
    return "; ".join(reasons[:_N_SAID]) + (f"; and {n_more} more" if n_more > 0 else "") or None


def _why_to_ask_now(series: tuple[str, str], row: Mapping[str, Any] | None, now: Mapping[str, Any] | None) -> str | None:
    """Why much is left to ask by what the ledger has now; where that is nothing, or something changed, in the row's words."""
    why = _why_to_ask(series, row)
    if why is None or now is None:
        return why
    is_in_rows_words = now["n_left"] == now["n_requests"] or (row is not None and row["state"] == PartitionState.STALE)
    why_now = _why_to_ask(series, now)
    return why if why_now and is_in_rows_words else why_now


def _why_to_ask(series: tuple[str, str], row: Mapping[str, Any] | None) -> str | None:
    """Why much is left to ask by this rubric and judge; None where nothing is, or a handful."""
    asked = f"{series[0]} by {series[1]}"
    if row is None:
        return f"no reply is stored under {asked}"
    if row["state"] == PartitionState.STALE:
        return f"{row['detail']} it was asked under {asked}"
    if row["n_left"] > _HANDFUL * row["n_requests"]:
        return f"{row['n_left']:,} of its {row['n_requests']:,} replies under {asked} are missing"
    return f"different models answered under {asked}" if row["detail"] == "mixed" else None
