"""Who the judge is: the model that answers is held to for a plan, and a deprecation is told in time. Nothing is asked of it."""

import asyncio
from dataclasses import dataclass, field
from datetime import date

from sqlalchemy import select
from sqlalchemy.engine import Connection

from schemas.benchmark import Judge
from schemas.errors import JudgeChangedError
from tasks.judge.provider.base import provider_of
from tasks.ledger.ledger import Ledger
from tasks.ledger.tables import ANSWERING, insert_where_absent


@dataclass(slots=True)
class ModelPin:
    """Remembers, in the ledger, the model that first answered for this plan and judge; resumed runs are held to it as well."""

    ledger: Ledger
    plan_id: str
    judge: Judge
    _first: str | None = None
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def check(self, answered_model: str | None) -> JudgeChangedError | None:
        """The error to stop with where another model answered than before; None where it is the same, or nobody said."""
        if answered_model is None or answered_model == self._first:
            return None
        async with self._asking:  # the first replies come together, and one of them is enough
            if self._first is None:
                self._first = await self.ledger.alone(lambda connection: self._remember(connection, answered_model))
        if answered_model == self._first:
            return None
        return JudgeChangedError(
            f"judge {self.judge.model} answered as {self._first} when this plan was begun, and answers as {answered_model} now; "
            "nothing more is asked, since scores of two judges are never mixed. What was answered is kept. "
            "Name a dated snapshot as the judge's model: its questions are asked anew, and all by one judge"
        )

    def _remember(self, connection: Connection, answered_model: str) -> str:
        row = {"plan_id": self.plan_id, "judge_model": self.judge.model, "answered_model": answered_model.encode()}
        connection.execute(insert_where_absent(connection.engine, ANSWERING), [row])
        found = select(ANSWERING.c.answered_model).where(
            ANSWERING.c.plan_id == self.plan_id, ANSWERING.c.judge_model == self.judge.model
        )
        return bytes(connection.execute(found).scalar_one()).decode("utf-8", "replace")


WARN_DAYS = 60
_DEADLINE_S = 10.0


def deprecation_warning(judge: Judge, today: date) -> str | None:
    """One sentence where the endpoint shuts the judge down within WARN_DAYS days, or has done so; None where it does not say.

    Raises MissingKeyError.
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
    provider = provider_of(judge)(judge, concurrency=1, deadline_s=_DEADLINE_S)
    try:
        return await provider.shutdown_date()
    finally:
        await provider.close()
