"""Whether a judge is about to be retired by its provider. Nothing is asked of the judge itself."""

import asyncio
from datetime import date

from schemas.benchmark import Judge
from tasks.judge.provider.client import JudgeClient

WARN_DAYS = 60
_DEADLINE_S = 10.0


def sunset_warning(judge: Judge, today: date) -> str | None:
    """One sentence where the endpoint shuts the judge down within WARN_DAYS days, or has done so; None where it does not say.

    Raises MissingKeyError as JudgeClient does.
    """
    shutdown = asyncio.run(_shutdown_date(judge))
    if shutdown is None or (shutdown - today).days > WARN_DAYS:
        return None
    n_days = (shutdown - today).days
    when = f"in {n_days} days" if n_days > 1 else "tomorrow" if n_days == 1 else "today" if n_days == 0 else f"{-n_days} days ago"
    return (
        f"judge {judge.model}: its provider shuts it down on {shutdown.isoformat()}, {when}; "
        "list its successor too and run `salon anchors bridge` while both answer, or the series ends there"
    )


async def _shutdown_date(judge: Judge) -> date | None:
    client = JudgeClient(judge, concurrency=1, deadline_s=_DEADLINE_S)
    try:
        return await client.shutdown_date()
    finally:
        await client.close()
