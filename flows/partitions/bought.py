"""What a backfill bought since it began, as the ledger has it: a question that several checkpoints share counts once."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import polars as pl

from flows.partitions.plan import PlannedCheckpoint
from flows.partitions.shared import RequestsMet
from flows.run.context import RunContext
from flows.run.record import bought_since_then
from schemas.statuses.rows import ReplyStatus
from tasks.judge.outcome import Outcome


def bought_of_all(run: RunContext, since: datetime, planned: Sequence[PlannedCheckpoint]) -> Outcome:
    """What was bought of these checkpoints from a moment on; its requests are those of all of them, each once."""
    found, met = Outcome(), RequestsMet()

    def fresh(keys: pl.Series) -> pl.Series:
        keys = keys.unique()
        return keys.filter(met.meet(keys))

    for one in planned:
        of_one = run.having(dataset_id=one.dataset.dataset_id, plan_id=one.plan.plan_id)
        found += bought_since_then(of_one, since, one.plan, fresh)
    return replace(found, n_requests=len(met), n_by_status=Counter({ReplyStatus.ANSWERED.value: found.n_replies}))
