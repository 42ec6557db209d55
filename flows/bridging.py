"""A judge and its successor asked about the same anchors, and the bridge fitted. Kept bridges: flows/nights/drift.py."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

import polars as pl

from flows.nights.anchors import newest_anchor_set
from flows.nights.drift import keep_bridge
from flows.run import stages
from flows.run.begun import Begun, forget_asking
from flows.run.bought import asked_parts
from flows.run.context import RunContext
from flows.run.judging import judge
from flows.run.preview import PlannedRubric, forecasts
from flows.run.record import JUDGED, check_records, record, recorded_where_it_ends
from schemas.benchmark.judges import Judge
from schemas.errors import InputError, JudgeChangedError, ProviderError
from schemas.records import Plan, PlannedPart
from schemas.tables.stored import JUDGEMENTS, SAMPLES, SCORES
from tasks.aggregate.drift.bridge import bridges
from tasks.aggregate.reliability.components import scored
from tasks.ingest.samples import IngestResult
from tasks.judge.model_pin import answering_on_nights, hold, to_accept
from tasks.lake.pictures import StoredDataset
from tasks.ledger.ledger import Ledger
from tasks.ledger.open_ledgers import opened
from tasks.ledger.queries import names_answering
from tasks.plan.anchors import check_anchors


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
    check_anchors(StoredDataset(run.lake, anchor_set))
    pair = [judge for judge in asked if judge.id in (judge_old, judge_new)]
    both = replace(run, benchmark=run.benchmark.model_copy(update={"judges": pair})).having(dataset_id=anchor_set)
    plan = stages.plan(both)
    both = both.having(plan_id=plan.plan_id)
    with opened(run.ledger_url) as ledger:
        rows = forecasts(both, plan, ledger)
    return BridgePlan(both, judge_old, judge_new, anchor_set, plan, tuple(row for row in rows if row.forecast.n_requests))


def make_bridge(planned: BridgePlan, *, has_slope: bool = False) -> pl.DataFrame:
    """Ask what is missing, fit the bridge and keep it: BRIDGES rows, one for each rubric and dimension.

    The same date, anchors and replies give the same file again. What was asked is in `runs`. Raises ProviderError where replies
    are still missing, or where another model answered than on a judge's nights, which the judge's `on_model_change` may have told
    of alone.
    """
    run, plan = planned.run.having(run_id=secrets.token_hex(16)), planned.plan
    check_records(run.stage)
    with opened(run.ledger_url) as ledger:
        hold(ledger, run.name_in_ledger, plan.plan_id, run.benchmark.judges, "this bridge")
        _others_answering(run, ledger, asked_parts(run, plan.parts))  # of an earlier start: nothing more is bought then
    n = int(run.lake.scan(SAMPLES, planned.anchor_set).select(pl.len()).collect().item())
    begun = Begun.of(run, datetime.now(UTC), IngestResult(planned.anchor_set, n, n, {}, 0), asked_by="anchors bridge")
    with recorded_where_it_ends(run, begun, plan):
        asked = judge(run, plan.parts)
        if asked.n_left:
            raise ProviderError(
                f"{asked.n_left:,} of {asked.n_requests:,} requests to the two judges have no reply, so no bridge was made; "
                "run the same command again to ask what is missing"
            )
        with opened(run.ledger_url) as ledger:
            for said in _others_answering(run, ledger, asked_parts(run, plan.parts)):
                run.reporter.say(said)
        if asked.may_cost:
            record(run, begun, asked, JUDGED)
        else:
            forget_asking(run)
    run = run.having(snapshot_id=stages.take_snapshot(run, plan))
    judgements, scores = run.lake.scan(JUDGEMENTS, plan.plan_id), run.lake.scan(SCORES, stages.read(run, plan))
    rows = scored(judgements, scores, occasion=run.run_date.isoformat())
    found = bridges(rows, planned.judge_old, planned.judge_new, has_slope=has_slope)
    keep_bridge(run, found, planned.judge_old, planned.judge_new)
    return found


def _others_answering(run: RunContext, ledger: Ledger, parts: Sequence[PlannedPart]) -> list[str]:
    """Hold the stored replies to the models of the judges' nights; in sentences, where others may answer and did."""
    told = []
    for one in run.benchmark.judges:
        keys = [run.request_keys(part).to_list() for part in parts if part.judge_model == one.id]
        said_names = sorted({name for some in keys for name in ledger.read(partial(names_answering, keys=some))})
        names = {one.one_name(name): name for name in said_names}
        last = answering_on_nights(ledger, run.name_in_ledger, one)
        if len(names) > 1:
            said = f"answered as {' and as '.join(sorted(names.values()))} for this bridge"
            raise _changed(one, said, to_accept(one, *sorted(names.values())))
        if last is None or names.keys() <= {one.one_name(last)}:
            continue
        said = f"answered as {last} on the nights before, and as {' '.join(names.values())} for this bridge"
        if one.on_model_change == "stop":
            also = '. Or let the bridge be that of the new one: on_model_change = "alert" under [[judges]]'
            raise _changed(one, said, to_accept(one, last, *names.values()) + also)
        told.append(
            f"judge {one.id} {said}: the bridge is that of the model that answered, and is wrong for the nights by as much as "
            f"the two score apart. Once {last} answers again, make it anew, with another --run-date"
        )
    return told


def _changed(asked: Judge, said: str, advice: str) -> JudgeChangedError:
    error = JudgeChangedError(
        f"judge {asked.id} {said}, so no bridge was made: it would carry nights over by what another judge scores. Make it with "
        "another --run-date, once the model of the nights answers again. If both are the same judge under two names, as behind a "
        f"gateway, {advice}"
    )
    error.judge_id = asked.id
    return error
