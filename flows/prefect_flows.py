"""Every flow as Prefect's: what a deployment runs, and what a command starts where a Prefect server is configured.

How a run that ended well stands on the server: its state's name, and the sentence that the UI shows of it.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar, cast
from uuid import UUID

import polars as pl
from prefect import Flow, flow, get_run_logger
from prefect.client.schemas.objects import State
from prefect.context import FlowRunContext
from prefect.states import Completed, Crashed

from flows.agreement import hold_against_people
from flows.backfill import backfill as run_backfill
from flows.benchmark import benchmark as run_benchmark
from flows.nightly import NightSummary
from flows.nightly import nightly as run_nightly
from flows.nights.shortfall import commonest
from flows.observability.final_state import tell_at_the_end
from flows.observability.progress import RunSummary, current
from flows.observability.terminal import PREFECT_IS_AWAY, is_prefect_away
from flows.partitions.ends import BackfillSummary
from flows.prefect_server import now_or_due
from schemas.benchmark.file import load_benchmark
from schemas.errors import SalonError, StoppedError
from schemas.statuses.cells import CellStatus
from tasks.publish.standings.pair_boards import n_rates

Out = TypeVar("Out")
P = ParamSpec("P")

BLOCKED = "Blocked"
NOT_CURRENT = "Not current"
_ENDED: ContextVar[list[tuple[Any, Exception | None]]] = ContextVar("ended")
"""What the function of the flow that runs here gave, or raised, once it ended: its server may fail before it is told."""


def _flow(name: str, function: Callable[P, Out]) -> Flow[P, Out]:
    """The function as a flow whose runs are named after their benchmark. Its shards' threads are its executor's."""

    @wraps(function)
    def remembered(*inputs: P.args, **named: P.kwargs) -> Out:
        try:
            with _words_in_its_log():
                given = function(*inputs, **named)
        except StoppedError as error:
            _remember(None, error)
            if (
                _deployed_run() is not None
            ):  # no failure: what listens for Crashed begins it again. One that a person cancels stays so
                return cast("Out", Crashed(message=str(error)))
            raise
        except Exception as error:
            _remember(None, error)
            raise
        ended = end_of(given)
        _remember(given, None, ended)
        return given if ended is None else cast("Out", ended)

    return flow(name=name, flow_run_name=partial(_run_name, is_night=name == "nightly"))(remembered)


@contextmanager
def _words_in_its_log() -> Iterator[None]:
    """What the run says, in the log of the flow's run too."""
    reporter = current()
    reporter.on_word = get_run_logger().info
    try:
        yield
    finally:
        reporter.on_word = None


def _run_name(*, is_night: bool) -> str:
    """The benchmark's name with the run's date, a night's own; of a file that cannot be read its folder and its name."""
    context = FlowRunContext.get()
    assert context is not None
    assert context.parameters is not None
    file, day = Path(context.parameters["file"]), context.parameters.get("run_date")
    try:
        benchmark = load_benchmark(file)
    except SalonError:  # the run itself says it
        return f"{file.parent.name}/{file.stem}"
    if day is None and is_night:
        day = benchmark.nightly.newest_due(now_or_due(benchmark.nightly)[0]).date()
    return benchmark.name if day is None else f"{benchmark.name} {day}"


def end_of(given: object) -> State | None:
    """The state for what a flow returned; None where it published nothing and has nothing to say.

    Each is of the type COMPLETED, also where the command ends with 1: nothing failed, and what waits for a failure, to send a
    message or to start the run again, has nothing to do. What alarms are the events.
    """
    if isinstance(given, NightSummary):
        night = f"the night of {given.run_date}"
        if given.run is None:
            said = f"{night} was already published ({given.publication_id[:12]}); nothing was sent"
            return Completed(message=said, data=given)
        stale = "" if given.same_as is None else f"; no fresh checkpoint since the night of {given.same_as}"
        more = "".join(f"; {said}" for said in (*given.gone, *given.late, given.changed_samples) if said)
        return Completed(name=_name(given.run), message=f"{night} is {_published(given.run)}{stale}{more}", data=given)
    run = given.run if isinstance(given, BackfillSummary) else given
    if not isinstance(run, RunSummary):
        return None
    return Completed(name=_name(run), message=_published(run), data=given)


def _name(run: RunSummary) -> str:
    if run.is_blocked:
        return BLOCKED
    return "Completed" if run.published.is_current else NOT_CURRENT


def _published(run: RunSummary) -> str:
    made, reasons = run.published, Counter(run.cells.filter(pl.col("status") == CellStatus.BLOCKED.value)["reason"].to_list())
    current = "and current" if made.is_current else f"and did not become current: {made.why_not_current}"
    named = f" ({commonest(reasons)})" if reasons else ""
    said = f"published ({made.publication_id[:12]}) {current}; {run.n_cells:,} cells, {run.n_blocked or 'none'} blocked{named}"
    n, n_blocked = n_rates(run.pairs)
    return f"{said}; {n:,} win rates, {n_blocked or 'none'} blocked" if n else said


def _remember(given: Any, error: Exception | None, end: State | None = None) -> None:
    """For the command that started the flow; a process that a worker started for it sees to its end itself."""
    ended = _ENDED.get(None)
    if ended is not None:
        ended.append((given, error))
    elif (run_id := _deployed_run()) is not None:
        tell_at_the_end(run_id, error, end)


def _deployed_run() -> UUID | None:
    """Of the run that a worker started this process for, and no command."""
    run = None if _ENDED.get(None) is not None else FlowRunContext.get()
    return run.flow_run.id if run is not None and run.flow_run is not None and run.flow_run.deployment_id is not None else None


benchmark = _flow("benchmark", run_benchmark)
nightly = _flow("nightly", run_nightly)
backfill = _flow("backfill", run_backfill)
agreement = _flow("agreement", hold_against_people)
_FLOWS: Final[dict[Any, Any]] = {
    run_benchmark: benchmark, run_nightly: nightly, run_backfill: backfill, hold_against_people: agreement,
}  # fmt: skip


def flow_of(function: Callable[P, Out]) -> Callable[P, Out]:
    """What runs the function as its flow. A server that fails after its end does not change what it gave or raised."""

    @wraps(function)
    def run(*inputs: P.args, **named: P.kwargs) -> Out:
        ended = list[tuple[Out, Exception | None]]()
        token = _ENDED.set(ended)
        try:
            found = _FLOWS[function](*inputs, **named)
            return ended[-1][0] if ended else cast("Out", found)
        except Exception as error:
            if not ended or not is_prefect_away(error):
                raise
            PREFECT_IS_AWAY.set()
            current().say(f"the Prefect server was not told how the run ended ({error}): it still shows it as running")
            given, own_error = ended[-1]
            if own_error is not None:
                raise own_error from None
            return given
        finally:
            _ENDED.reset(token)

    return run
