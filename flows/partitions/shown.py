"""Which checkpoints stand in a night's table, and why the one before a newest does not. What is asked of them: nightly.py."""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import polars as pl

from flows.nights.checkpoints import Checkpoint, newest
from flows.partitions.table import PartitionState, asked_alone, read_partitions
from schemas.errors import InputError
from tasks.context import StageContext

_HANDFUL = 0.1
"""The share of a partition's requests that a night asks again, so that a checkpoint that lost some replies stays in its table."""
_N_SAID = 2


def shown_checkpoints(run: StageContext, known: Sequence[Checkpoint]) -> tuple[list[str], list[str]]:
    """The checkpoints of a night's table as model/checkpoint; in sentences, why the one before a newest is none of them.

    Raises InputError where there is none, or not the baseline.
    """
    latest = newest(known)
    if not latest:
        raise InputError("there is no checkpoint yet: the table under [nightly] checkpoints lists none that is in a source")
    shown, baseline = [one.name for one in latest.values()], run.benchmark.nightly.baseline
    partitions, reasons = read_partitions(run), dict[str, str]()
    for model, own in latest.items():
        earlier: list[str] = []
        for one in reversed([one for one in known if one.model == model and one != own]):
            if len(earlier) == run.benchmark.nightly.n_earlier:
                break
            why = _why_left_out(run, partitions, (model, one.checkpoint))
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


def _why_left_out(run: StageContext, partitions: pl.DataFrame, name: tuple[str, str]) -> str | None:
    """Why much would have to be asked about a checkpoint; None where it was asked, if not in full. `partitions`: as read."""
    mine = partitions.filter(model=name[0], checkpoint=name[1]).sort("changed_at")
    sources = {source for listed in mine["sources_json"] for source in json.loads(listed)}
    by_series = {(row["rubric_id"], row["judge_model"]): row for row in mine.iter_rows(named=True)}  # the newest of each
    due = [one for one in asked_alone(run) if mine.is_empty() or sources & set(run.sources_for(one[0]))]
    reasons = [why for one in due if (why := _why_to_ask(one, by_series.get(one)))]
    n_more = len(reasons) - _N_SAID
    return "; ".join(reasons[:_N_SAID]) + (f"; and {n_more} more" if n_more > 0 else "") or None


def _why_to_ask(series: tuple[str, str], row: Mapping[str, Any] | None) -> str | None:
    """Why much is left to ask by this rubric and judge; None where nothing is, or a handful."""
    asked = f"{series[0]} by {series[1]}"
    if row is None:
        return f"nothing was asked under {asked}"
    if row["state"] == PartitionState.STALE:
        return f"{row['detail']} it was asked under {asked}"
    if row["n_left"] > _HANDFUL * row["n_requests"]:
        return f"{row['n_left']:,} of its {row['n_requests']:,} replies under {asked} are missing"
    return f"different models answered under {asked}" if row["detail"] == "mixed" else None
