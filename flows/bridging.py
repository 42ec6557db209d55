"""A judge and its successor asked about the same anchors, and the bridge fitted. Kept bridges: flows/nights/drift.py."""

import secrets
from dataclasses import dataclass, replace

import polars as pl

from flows.nights.anchors import newest_anchor_set
from flows.nights.drift import keep_bridge
from flows.run import stages
from flows.run.context import RunContext
from flows.run.judging import judge
from flows.run.preview import PlannedRubric, forecasts
from schemas.errors import InputError, ProviderError
from schemas.records import Plan
from schemas.tables.stored import JUDGEMENTS, SCORES
from tasks.aggregate.drift.bridge import bridges
from tasks.aggregate.reliability.components import scored
from tasks.ledger.open_ledgers import opened


@dataclass(frozen=True, slots=True)
class BridgePlan:
    """What a bridge takes: the anchors of a date asked of both judges. `rubrics`: a forecast for each rubric and judge."""

    run: RunContext
    judge_old: str
    judge_new: str
    anchor_set: str
    plan: Plan
    rubrics: tuple[PlannedRubric, ...]

    @property
    def n_to_ask(self) -> int:
        """Questions without a stored reply: what the night of the same date has asked is there already."""
        return sum(row.n_to_ask for row in self.rubrics)


def plan_bridge(run: RunContext, judge_old: str, judge_new: str) -> BridgePlan:
    """Plan the anchors of `run.run_date` for both judges and price them; nothing is sent.

    Raises InputError where the benchmark file does not list both, or there are no anchors.
    """
    asked = run.benchmark.asked_judges
    missing = [name for name in (judge_old, judge_new) if name not in [judge.id for judge in asked]]
    if missing or judge_old == judge_new:
        lacking = f"lists no {missing[0]!r}" if missing else f"was given {judge_old!r} twice"
        raise InputError(
            f"a bridge needs two judges that can be asked, and the file of {run.benchmark.name} {lacking}; list the old "
            "and the new judge under [[judges]] while the bridge is made, and remove the old one afterwards"
        )
    anchor_set = newest_anchor_set(run.lake.root, run.benchmark.name)
    if anchor_set is None:
        raise InputError(
            f"{run.benchmark.name} has no anchors for both judges to score; salon anchors freeze FILE chooses them from its "
            "current publication"
        )
    pair = [judge for judge in asked if judge.id in (judge_old, judge_new)]
    both = replace(run, benchmark=run.benchmark.model_copy(update={"judges": pair})).having(dataset_id=anchor_set)
    plan = stages.plan(both)
    both = both.having(plan_id=plan.plan_id)
    with opened(run.ledger_url) as ledger:
        rows = forecasts(both, plan, ledger)
    return BridgePlan(both, judge_old, judge_new, anchor_set, plan, tuple(row for row in rows if row.forecast.n_requests))


def make_bridge(planned: BridgePlan, *, has_slope: bool = False) -> pl.DataFrame:
    """Ask what is missing, fit the bridge and keep it: BRIDGES rows, one for each rubric and dimension.

    The same date, anchors and replies give the same file again. Raises ProviderError where replies are still missing.
    """
    run, plan = planned.run.having(run_id=secrets.token_hex(16)), planned.plan
    asked = judge(run, plan.parts)
    if asked.n_left:
        raise ProviderError(
            f"{asked.n_left:,} of {asked.n_requests:,} requests to the two judges have no reply, so no bridge was made; "
            "run the same command again to ask what is missing"
        )
    run = run.having(snapshot_id=stages.take_snapshot(run, plan))
    judgements, scores = run.lake.scan(JUDGEMENTS, plan.plan_id), run.lake.scan(SCORES, stages.read(run, plan))
    rows = scored(judgements, scores, occasion=run.run_date.isoformat())
    found = bridges(rows, planned.judge_old, planned.judge_new, has_slope=has_slope)
    keep_bridge(run, found, planned.judge_old, planned.judge_new)
    return found
