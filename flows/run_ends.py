"""How a run that ended well stands on a Prefect server: its state's name, and the sentence that the UI shows of it."""

from collections import Counter

import polars as pl
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.nightly import NightSummary
from flows.nights.shortfall import commonest
from flows.observability.progress import RunSummary
from flows.partitions.ends import BackfillSummary
from schemas.statuses.cells import CellStatus
from tasks.publish.standings.pair_boards import n_rates

BLOCKED = "Blocked"
NOT_CURRENT = "Not current"


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
