"""Every flow as Prefect's: what a deployment runs, and what a command starts where a Prefect server is configured."""

from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar, cast

from prefect import Flow, flow

from flows.agreement import hold_against_people
from flows.backfill import backfill as run_backfill
from flows.benchmark import benchmark as run_benchmark
from flows.nightly import nightly as run_nightly

Out = TypeVar("Out")
P = ParamSpec("P")


def _flow(name: str, function: Callable[P, Out]) -> Flow[P, Out]:
    """The function as a flow whose runs are named after their benchmark file. Its shards' threads are its executor's."""
    return flow(name=name, flow_run_name="{file.parent.name}/{file.stem}")(function)


benchmark = _flow("benchmark", run_benchmark)
nightly = _flow("nightly", run_nightly)
backfill = _flow("backfill", run_backfill)
agreement = _flow("agreement", hold_against_people)
_FLOWS: Final[dict[Any, Any]] = {one.fn: one for one in (benchmark, nightly, backfill, agreement)}


def flow_of(function: Callable[P, Out]) -> Callable[P, Out]:
    """The flow that runs the function."""
    return cast("Callable[P, Out]", _FLOWS[function])
