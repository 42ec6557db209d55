"""The Prefect tasks of judging: a shard asked, its replies taken from the ledger. The work is elsewhere."""

from collections.abc import Callable, Mapping, Sequence

from prefect import task

from rubrics.model import Rubric
from schemas.benchmark import Judge, Limits
from schemas.records import JudgeReply, PlannedPart
from schemas.tables import REQUESTS
from tasks.judge.batch.money import BatchMoney
from tasks.judge.batch.run import OnProgress, judge_by_batch
from tasks.judge.outcome import Outcome
from tasks.judge.shard import judge_shard
from tasks.lake.reading import Lake
from tasks.ledger.snapshot import take_parts
from tasks.prefect_options import OPTIONS
from tasks.stopping import STOP

OnReply = Callable[[JudgeReply], None]


@task(name="ask judge", task_run_name="ask {judge.model}, {rubric.id}, shard {part.index}", **OPTIONS)
def ask_judge(
    lake: Lake,
    dataset_id: str,
    plan_id: str,
    part: PlannedPart,
    rubric: Rubric,
    judge: Judge,
    limits: Limits,
    ledger_url: str,
    run_id: str,
    on_reply: OnReply | None = None,
) -> Outcome:
    """Ask what the ledger lacks of a shard's requests."""
    requests = lake.read_part(REQUESTS, plan_id, part.index)
    return judge_shard(
        lake, dataset_id, part.samples_part, requests, rubric, judge, limits, ledger_url,
        plan_id=plan_id, run_id=run_id, on_reply=on_reply, stop=STOP,
    )  # fmt: skip


@task(name="ask judge by batch", task_run_name="ask {judge.model} by batch", **OPTIONS)
def ask_by_batch(
    lake: Lake,
    dataset_id: str,
    plan_id: str,
    parts: Sequence[PlannedPart],
    rubrics: Mapping[str, Rubric],
    judge: Judge,
    limits: Limits,
    ledger_url: str,
    run_id: str,
    on_reply: OnReply | None = None,
    on_progress: OnProgress | None = None,
    *,
    is_asking: bool = True,
) -> Outcome:
    """Ask what the ledger lacks of all of a judge's requests through its provider's Batch API."""
    money = BatchMoney(judge, rubrics, limits.max_usd, ledger_url, run_id)
    return judge_by_batch(
        lake, dataset_id, parts, plan_id, rubrics, judge, limits, ledger_url,
        cost_of=money.cost_of, reserve=money.reserve if limits.max_usd is not None else None,
        on_reply=on_reply, on_progress=on_progress, stop=STOP, is_asking=is_asking,
    )  # fmt: skip


take_replies = task(name="take replies", task_run_name="take replies, from shard {indices[0]} on", **OPTIONS)(take_parts)
"""Write some shards' replies as the ledger holds them now; return their digests."""
