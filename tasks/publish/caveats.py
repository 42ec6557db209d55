"""What must be known of a publication before its numbers: taken back, none is current, a newer one did not become it.

Reading it is reading.py, the rule of what becomes current promotion.py.
"""

from dataclasses import dataclass
from datetime import date
from itertools import takewhile
from pathlib import Path

import polars as pl

from schemas.errors import CorruptLakeError
from schemas.tables.published import BENCHMARK_LONG, FAILURES, PREFERENCES
from tasks.lake.reading import Lake
from tasks.publish.machine_tables import runs
from tasks.publish.promotion import standing_in, why_not_current
from tasks.publish.reading import Publication, checked_file, newest_first, readable
from tasks.publish.withdrawn import Withdrawal, taken_back


@dataclass(frozen=True, slots=True)
class Newer:
    """A publication newer than the current one, and why it did not become that, in a clause.

    Not `is_read`: it may be newer, `why` names the file that could not be read, and there may be no run date. `lacks_replies`:
    asked again, it may have more of them.
    """

    publication_id: str
    run_date: str | None
    why: str
    is_read: bool = True
    lacks_replies: bool = False

    @property
    def told(self) -> str:
        """All of it and what to do, on one line."""
        id_ = self.publication_id[:12]
        if not self.is_read:
            of = f" of {self.run_date}" if self.run_date else ""
            return f"a publication that may be newer, {id_}{of}, could not be read: {self.why}"
        again = "the same command again asks for missing replies; " if self.lacks_replies else ""
        return (
            f"a newer publication, {id_} of {self.run_date}, did not become current: {self.why}. Next: {again}"
            f"salon table --publication {id_} shows what it has"
        )


@dataclass(frozen=True, slots=True)
class Caveats:
    """`withdrawn`: it was taken back. `none_current`: nobody named it, and it is shown for want of a current one, in a clause.

    `newer`: nobody named it, and it is the current one, but a newer one did not become that.
    """

    withdrawn: Withdrawal | None = None
    none_current: str | None = None
    newer: Newer | None = None

    @property
    def told(self) -> list[str]:
        """All of it, a line each."""
        return [one if isinstance(one, str) else one.told for one in (self.withdrawn, self.none_current, self.newer) if one]


def caveats_of(lake_root: Path, shown: Publication, *, is_named: bool) -> Caveats:
    """Of a publication that is shown; `is_named`: it was asked for by its id, or as the last good one."""
    withdrawn = taken_back(lake_root, shown.publication_id).get(shown.publication_id)
    if is_named:
        return Caveats(withdrawn)
    none = f"no publication of {shown.benchmark} is current; {shown.publication_id[:12]} of {shown.run_date} is the newest"
    return Caveats(withdrawn, None if shown.is_current else none, newer_than(lake_root, shown))


def newer_than(lake_root: Path, shown: Publication) -> Newer | None:
    """The newest publication behind the current one; None where there is none, it was taken back, or `shown` is not current.

    Where none is known to be newer, one that cannot be read and whose runs, if any is noted, were not of an earlier date.
    """
    if not shown.is_current:
        return None
    found, spoiled = readable(lake_root, shown.benchmark)
    rivals = [one for one in found if one.run_date >= shown.run_date]
    try:
        ordered = newest_first(lake_root, rivals)
    except CorruptLakeError as error:  # which of one run date came last
        last = [one for one in rivals if one.publication_id != shown.publication_id][-1]
        return Newer(last.publication_id, last.run_date, str(error), is_read=False)
    for one in takewhile(lambda one: one.publication_id != shown.publication_id, ordered):
        if (newer := _if_newer(lake_root, one, shown)) is not None:
            return newer
    remedy, of = "or move its folder out of the lake", _run_dates(lake_root) if spoiled else {}
    maybe = {id_: error for id_, error in spoiled.items() if of.get(id_, shown.run_date) >= shown.run_date}
    return next((Newer(id_, of.get(id_), f"{error}, {remedy}", is_read=False) for id_, error in maybe.items()), None)


def _run_dates(lake_root: Path) -> dict[str, str]:
    """Of each publication that a run is noted to have made."""
    rows = runs(Lake(lake_root)).drop_nulls("publication_id")
    return {id_: day.isoformat() for id_, day in rows.select("publication_id", "run_date").iter_rows()}


def _if_newer(lake_root: Path, one: Publication, shown: Publication) -> Newer | None:
    """None where it may become current, or was taken back."""
    try:
        why, lacks_replies = _why_not_current(one, shown)
        is_told = why is not None and not taken_back(lake_root, one.publication_id)
    except (CorruptLakeError, OSError, ValueError, pl.exceptions.PolarsError) as error:
        said = str(error) if isinstance(error, CorruptLakeError) else f"{one.folder} ({error}); restore it, or move it away"
        return Newer(one.publication_id, one.run_date, said, is_read=False)
    if why is None or not is_told:
        return None
    return Newer(one.publication_id, one.run_date, why, lacks_replies=lacks_replies)


def _why_not_current(one: Publication, shown: Publication) -> tuple[str | None, bool]:
    """Why, and whether cells lack replies.

    Raises CorruptLakeError where what the rule looks at is not what was published: the rule takes that for no estimate.
    """
    for table in (BENCHMARK_LONG, FAILURES, PREFERENCES):
        if table is BENCHMARK_LONG or f"{table.name}.parquet" in one.files:
            checked_file(one, f"{table.name}.parquet")
    new, old = (standing_in(each.folder, date.fromisoformat(each.run_date)) for each in (one, shown))
    return why_not_current(new, old), new.n_cut_short > 0
