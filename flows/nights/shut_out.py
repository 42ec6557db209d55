"""Whether nights are shut out: the current publication is of a later date, and none before that becomes current.

It is what a host whose clock was ahead leaves behind, a run date that was mistyped, or a run of the day on which a late night
ends. The way back is withdrawing.py.
"""

from datetime import UTC, datetime

from tasks.context import StageContext
from tasks.lake.object_store.cache_folder import fresh
from tasks.publish.folders import LAYOUT, POINTER, Published
from tasks.publish.pointer import read_pointer


def why_shut_out(run: StageContext, now: datetime) -> str | None:
    """In a sentence, that the benchmark's current publication is of a day that has not come; None where it is not."""
    home = run.lake.root / "publish" / LAYOUT / run.benchmark.name
    fresh(home / POINTER)
    current = read_pointer(home)
    if current is None or current["run_date"] <= run.benchmark.nightly.today(now).isoformat():
        return None
    id_ = current["publication_id"][:12]
    return (
        f"the current publication, {id_}, is of {current['run_date']}, a date in the future: until then no night or run can "
        f"become current. Is this machine's clock right, which says {now:%Y-%m-%d %H:%M} UTC? If it is behind, set it and "
        "withdraw nothing. If it is right, another's was ahead, or --run-date mistyped: fix that, then withdraw it: "
        f'salon withdraw FILE {id_} --because "…"'
    )


def shut_out_by(run: StageContext, published: Published) -> str | None:
    """The publication of a later date that stays current as the latest night is published; None where that is current.

    Also None of an earlier night, which is caught up on purpose and does not become current.
    """
    current = None if published.is_current else read_pointer(published.folder.parent)
    is_latest = run.run_date >= run.benchmark.nightly.newest_due(datetime.now(UTC)).date()
    return current["publication_id"] if current and is_latest and current["run_date"] > run.run_date.isoformat() else None
