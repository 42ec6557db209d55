"""Whether nights are shut out: the current publication is of a day that has not come, and none before it becomes current.

It is what a host whose clock was ahead leaves behind, or a run date that was mistyped. The way back is withdrawing.py.
"""

from datetime import datetime

from tasks.context import StageContext
from tasks.lake.object_store.cache_folder import fresh
from tasks.publish.folders import LAYOUT, POINTER
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
        "become current. Was a machine's clock ahead, or --run-date mistyped? Fix that, then withdraw it: "
        f'salon withdraw FILE {id_} --because "…"'
    )
