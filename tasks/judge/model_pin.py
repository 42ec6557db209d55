"""Which model answers under the judge's name: the first one seen for a plan is held to. What a judge is asked is elsewhere."""

import asyncio
from dataclasses import dataclass, field

from sqlalchemy import select
from sqlalchemy.engine import Connection

from schemas.benchmark import Judge
from schemas.errors import JudgeChangedError
from tasks.ledger.ledger import Ledger
from tasks.ledger.tables import ANSWERING, insert_where_absent


@dataclass(slots=True)
class AnsweringModel:
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
