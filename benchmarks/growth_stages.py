"""Measure each stage's CPU and memory as the number of judgements grows, from the plan to the verification.

    python -m benchmarks.growth_stages --judgements 100000 1000000 [--stages plan verify] [--folder FOLDER]

Samples and replies are made up; plan, ledger, snapshot, scores, tables and verification are Salon's own. Each stage runs in a
process of its own, so that its peak is its own. A larger number than a ledger is filled with in minutes: growth.py.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.growth_parts.true_lake import RESTORED, opened, write_replies, write_samples
from benchmarks.growth_parts.usage import Usage, folder_or_temporary, measured_apart
from schemas.records import Plan
from schemas.tables.stored import REPLIES
from tasks.context import StageContext

Ids = Mapping[str, str]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judgements", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--rubric", default="alignment", choices=["alignment", "composition"])
    parser.add_argument("--shard-size", type=int, default=5_000)
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=list(STAGES))
    parser.add_argument("--folder", type=Path, help="where the lakes stand and stay; default: a temporary folder")
    parser.add_argument("--one", choices=STAGES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        return measure(arguments)
    with folder_or_temporary(arguments.folder) as folder:
        for n_judgements in arguments.judgements:
            lake = folder / f"stages-{n_judgements}-{arguments.rubric}"
            if not all(_measured_apart(lake, n_judgements, stage, arguments) for stage in arguments.stages):
                return 1
    return 0


def _measured_apart(lake: Path, n_judgements: int, stage: str, arguments: argparse.Namespace) -> bool:
    sizes = {"judgements": n_judgements, "rubric": arguments.rubric, "shard_size": arguments.shard_size}
    return measured_apart("benchmarks.growth_stages", **sizes, folder=lake, one=stage)


def measure(arguments: argparse.Namespace) -> int:
    """One stage over what the ones before it left; what it makes is noted beside the lake."""
    from flows.run import context, pipeline  # noqa: F401  # imported before: what a stage takes is not what it imports

    (n_judgements,), noted = arguments.judgements, arguments.folder / "ids.json"
    ids = json.loads(noted.read_bytes()) if noted.is_file() else {}
    run = opened(arguments.folder, arguments.rubric, arguments.shard_size, ids)
    if arguments.one == "plan" and not ids:
        arguments.folder.mkdir(parents=True)
        ids = {"dataset_id": write_samples(run.lake, n_judgements, arguments.shard_size), "code_version": run.ids.code_version}
        noted.write_text(json.dumps(ids))
        return measure_again(arguments)
    if arguments.one == "restore" and not run.lake.is_complete(REPLIES, RESTORED):
        write_replies(run)
        return measure_again(arguments)
    usage, began = Usage(), time.monotonic()
    usage.say("start")
    made = STAGES[arguments.one](run, usage)
    wall_s = round(time.monotonic() - began, 1)
    usage.say(arguments.one)
    noted.write_text(json.dumps(ids | made))
    told = usage.told(n_judgements)
    print(json.dumps({"judgements": n_judgements, "stage": arguments.one, "wall_s": wall_s, **told}), flush=True)
    return 0


def measure_again(arguments: argparse.Namespace) -> int:
    """In a new process: what making up samples or replies takes is no stage's."""
    return int(not _measured_apart(arguments.folder, arguments.judgements[0], arguments.one, arguments))


def _plan(run: StageContext, _: Usage) -> Ids:
    from flows.run import stages
    from flows.run.context import RunContext

    return {"plan_id": stages.plan(RunContext.of(run)).plan_id}


def _restore(run: StageContext, _: Usage) -> Ids:
    from tasks.ledger.open_ledgers import opened as opened_ledger
    from tasks.ledger.snapshot import restore

    with opened_ledger(run.ledger_url) as ledger:
        restore(run.lake, ledger)
    return {}


def _preview(run: StageContext, _: Usage) -> Ids:
    """What `salon plan` and a backfill count before anything is asked."""
    from flows.run.context import RunContext
    from flows.run.preview import forecasts
    from tasks.ledger.open_ledgers import opened as opened_ledger

    with opened_ledger(run.ledger_url) as ledger:
        forecasts(RunContext.of(run), _planned(run), ledger)
    return {}


def _partitions(run: StageContext, _: Usage) -> Ids:
    """What a night and a backfill look for: the partitions of the plan, and what is left to ask of each."""
    from flows.partitions.table import find_partitions

    find_partitions(run)
    return {}


def _judge(run: StageContext, _: Usage) -> Ids:
    """What is left to ask where nothing is."""
    from flows.run.context import RunContext
    from flows.run.judging import judge

    judge(RunContext.of(run), _planned(run).parts)
    return {}


def _snapshot(run: StageContext, _: Usage) -> Ids:
    from flows.run import stages
    from flows.run.context import RunContext

    return {"snapshot_id": stages.take_snapshot(RunContext.of(run), _planned(run))}


def _parse(run: StageContext, _: Usage) -> Ids:
    from flows.run import stages
    from flows.run.context import RunContext

    return {"reading_id": stages.read(RunContext.of(run), _planned(run))}


def _publish(run: StageContext, usage: Usage) -> Ids:
    """Data checks and aggregation are told apart."""
    from flows.run import pipeline
    from flows.run.context import RunContext

    with usage.of(pipeline, {"_check": "check", "tables_of": "aggregate"}):
        published, _ = pipeline.finish(RunContext.of(run))
    return {"publication_id": published.publication_id}


def _verify(run: StageContext, _: Usage) -> Ids:
    from flows.observability.progress import Reporter
    from flows.verification.verifying import verify
    from tasks.verify.publication import find_folder

    verdict = verify(find_folder(run.lake.root, run.ids.publication_id), run.lake, Reporter())
    if not verdict.is_verified:
        raise SystemExit(f"not verified: {verdict.differences[:5]}")
    return {}


def _planned(run: StageContext) -> Plan:
    from tasks.plan.dataset import known_plan

    planned = known_plan(run)
    if planned is None:
        raise SystemExit("the lake holds no plan by this code; begin with --stages plan in a new folder")
    return planned


STAGES: dict[str, Callable[[StageContext, Usage], Ids]] = {
    "plan": _plan, "restore": _restore, "preview": _preview, "partitions": _partitions, "judge": _judge, "snapshot": _snapshot,
    "parse": _parse, "publish": _publish, "verify": _verify,
}  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
