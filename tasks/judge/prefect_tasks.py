"""The Prefect tasks of judging: a rubric planned, a shard asked, its replies taken from the ledger. The work is elsewhere."""

from collections.abc import Callable

from prefect import task

from rubrics.model import Rubric
from schemas.benchmark import Judge, Limits
from schemas.records import JudgeReply
from schemas.tables import REQUESTS
from tasks.judge.ledger import Ledger
from tasks.judge.outcome import Outcome
from tasks.judge.planning import PlannedPart, plan_rubric
from tasks.judge.shard import judge_shard
from tasks.judge.snapshot import part_digest, snapshot_part
from tasks.prefect_options import OPTIONS
from tasks.stopping import STOP
from tasks.store import Lake, Staging

OnReply = Callable[[JudgeReply], None]


plan_questions = task(name="plan questions", task_run_name="plan questions, {rubric.id} for {judge.model}", **OPTIONS)(
    plan_rubric
)
"""Write down what every sample is asked under a rubric."""


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


@task(name="take replies", task_run_name="take replies, shard {index}", **OPTIONS)
def take_replies(lake: Lake, plan_id: str, index: int, ledger_url: str, staging: Staging) -> str:
    """Write a shard's replies as the ledger holds them now; return their digest."""
    with Ledger(ledger_url) as ledger:
        replies = snapshot_part(ledger, lake.read_part(REQUESTS, plan_id, index))
    staging.write_part(index, replies)
    return part_digest(replies)
