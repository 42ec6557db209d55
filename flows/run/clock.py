"""Whether this machine's clock may date what is published: held against the ledger's, where that is on a server.

A publication of a day that has not come is current until that day, and shuts out every run before it.
"""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

from flows.run.context import RunContext
from schemas.errors import InputError
from tasks.ledger.connection import parse_url
from tasks.ledger.ledger import Ledger
from tasks.ledger.open_ledgers import opened
from tasks.ledger.sqlite_files import sqlite_file
from tasks.ledger.statements import ahead_s
from tasks.stopping import STOP, check_not_stopped

MAX_OFF_S = 120.0
"""What a clock that nobody sets loses in some weeks; by less, a date is another only in the minutes about midnight."""
MAX_WAITED_S = 900.0
"""A night that a clock begins this much too early is waited for: by a schedule it comes only once."""
_SPANS = ((86_400.0, "days"), (3_600.0, "h"), (60.0, "min"))


def check_today(run: RunContext) -> None:
    """Raise InputError where the run is dated today, and it is another day by the ledger's clock."""
    if sqlite_file(parse_url(run.ledger_url)) is None:
        with opened(run.ledger_url) as ledger:
            check_date(ledger, run, run.benchmark.nightly.today, may_be_later=True)


def check_date(
    ledger: Ledger,
    run: RunContext,
    dated: Callable[[datetime], date],
    *,
    may_be_earlier: bool = False,
    may_be_later: bool = False,
) -> None:
    """Raise InputError where the run's date is not what `dated` gives by the ledger's clock; a clock that is off is told of.

    Where it is that date there within MAX_WAITED_S, it is waited for. `may_be_earlier`: an earlier date was named on purpose.
    `may_be_later`: one after this machine's own can be named, as of no night.
    """
    off_s = ledger.read(ahead_s)
    if off_s is None or abs(off_s) < MAX_OFF_S:
        return
    off = timedelta(seconds=off_s)
    there = dated(datetime.now(UTC) - off)
    said = f"this machine's clock is {how_far(off_s)} the clock of the ledger's server, which decides"
    if run.run_date == there or (may_be_earlier and run.run_date < there):
        run.reporter.say(f"{said}; set it by a time server (NTP)")
        return
    if there < run.run_date == dated(datetime.now(UTC)) and off_s <= MAX_WAITED_S:
        run.reporter.say(
            f"{said}: {run.run_date} begins there within that time; waiting for it. Set the clock by a time server (NTP)"
        )
        while dated(datetime.now(UTC) - off) < run.run_date:
            STOP.wait(1.0)
            check_not_stopped()
        return
    named = f", or give the date: --run-date {there}" if there < run.run_date or may_be_later else ""
    raise InputError(
        f"{said}: there the date is {there}, not {run.run_date}. Nothing was sent; set the clock by a time server (NTP){named}"
    )


def how_far(off_s: float) -> str:
    """How far a clock is off, as in "2.0 days ahead of"."""
    n_s, unit = next(((n_s, unit) for n_s, unit in _SPANS if abs(off_s) >= n_s), (1.0, "s"))
    return f"{abs(off_s) / n_s:.{0 if unit == 's' else 1}f} {unit} {'ahead of' if off_s > 0 else 'behind'}"
