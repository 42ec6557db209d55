"""Who the judge is: the model that answers is held to for a plan and across nights, a deprecation is told. Nothing is asked."""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from hashlib import sha256

from sqlalchemy import bindparam, delete, select
from sqlalchemy.engine import Connection

from schemas.benchmark.judges import Judge
from schemas.errors import JudgeChangedError
from schemas.records import ModelChange
from tasks.judge.provider.base import provider_of
from tasks.ledger.ledger import Ledger
from tasks.ledger.statements import insert_where_absent
from tasks.ledger.tables import ANSWERING

_IS_IT = (ANSWERING.c.plan_id == bindparam("of"), ANSWERING.c.judge_model == bindparam("judge"))
_READ = select(ANSWERING.c.answered_model).where(*_IS_IT)
_DELETE = delete(ANSWERING).where(*_IS_IT)


@dataclass(slots=True)
class ModelPin:
    """Remembers, in the ledger, the model that first answered for this plan and judge; resumed runs are held to it as well.

    A plan may be held, before anything is asked, to the model that answered on the nights before.
    """

    ledger: Ledger
    plan_id: str
    judge: Judge
    _first: str | None = None  # one name of several, as the judge lists them
    _first_said: str = ""  # as it answered: what is said and kept
    _is_held: bool = False
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def check(self, answered_model: str | None) -> JudgeChangedError | None:
        """The error to stop with where another model answered than before; None where it is the same, or nobody said."""
        if answered_model is None:
            return None
        one = self.judge.one_name(answered_model)
        if one == self._first:
            return None
        async with self._asking:  # the first replies come together, and one of them is enough
            if one != self._first:
                remember = partial(self._remember, answered_model=answered_model)
                self._first_said, self._is_held = await self.ledger.alone(remember)
                self._first = self.judge.one_name(self._first_said)
        if one == self._first:
            return None
        return _changed(self.judge, self._first_said, answered_model, f"answers as {answered_model} now", is_held=self._is_held)

    def _remember(self, connection: Connection, answered_model: str) -> tuple[str, bool]:
        """The model to hold to, and whether it is that of the nights before; then the one that answered is kept for hold()."""
        held, own = _Answering(_held(self.plan_id), self.judge.id).read(connection), _Answering(self.plan_id, self.judge.id)
        if held is not None and self.judge.one_name(held) != self.judge.one_name(answered_model):
            own.delete(connection)
            own.write(connection, answered_model)
            return held, True
        own.write(connection, answered_model)
        return own.read(connection) or answered_model, False


def hold(ledger: Ledger, name_in_ledger: str, plan_id: str, judges: Iterable[Judge], started: str = "this night") -> None:
    """Hold a night's plan to the models that answered on the night before, for judges with `on_model_change = "stop"` alone.

    `started`: what the plan is of, in an error's words.
    Raises JudgeChangedError where another one answered at an earlier start: each start would buy some more replies of it.
    """

    def write(connection: Connection) -> list[JudgeChangedError]:
        changed = []
        for judge in judges:
            last, held = _Answering(_nights(name_in_ledger), judge.id).read(connection), _Answering(_held(plan_id), judge.id)
            was_held, now = held.read(connection) is not None, _Answering(plan_id, judge.id).read(connection)
            held.delete(connection)
            if last is None or judge.on_model_change != "stop":
                continue
            held.write(connection, last)
            if was_held and now is not None and judge.one_name(now) != judge.one_name(last):
                changed.append(_changed(judge, last, now, f"answered as {now} when {started} was last started", is_held=True))
        return changed

    for error in ledger.alone_now(write):
        raise error


def _changed(judge: Judge, before: str, now: str, says: str, *, is_held: bool) -> JudgeChangedError:
    since = "on the nights before" if is_held else "when this plan was started"
    error = JudgeChangedError(
        f"judge {judge.id} answered as {before} {since}, and {says}; "
        "no more requests are sent, since scores of two judges are never mixed. Replies received are kept. "
        "Name a dated snapshot as the judge's model: its questions are then asked again, all of that model. If both are the "
        f"same judge under two names, as behind a gateway, {to_accept(judge, before, now)}"
        + ('. Or take the new one: on_model_change = "alert" under [[judges]]' if is_held else "")
    )
    error.judge_id = judge.id
    return error


def to_accept(judge: Judge, *names: str) -> str:
    """What to write so that these names are one judge's, which its list may hold in part."""
    if not judge.accept_models:
        return f"list them: accept_models = {json.dumps(names, ensure_ascii=False)}"
    missing = [json.dumps(name, ensure_ascii=False) for name in names if not judge.is_called(name)]
    return f"add {' and '.join(missing)} to its accept_models"


def model_changes(ledger: Ledger, name_in_ledger: str, plan_id: str, judges: Iterable[Judge]) -> list[ModelChange]:
    """The judges as which another model answered for a night's plan than on the nights before, until adopt()."""

    def read(connection: Connection) -> list[ModelChange]:
        changes = []
        for judge in judges:
            last, now = (_Answering(of, judge.id).read(connection) for of in (_nights(name_in_ledger), plan_id))
            if last is not None and now is not None and judge.one_name(now) != judge.one_name(last):
                changes.append(ModelChange(judge.id, last, now))
        return changes

    return ledger.read(read)


def adopt(ledger: Ledger, name_in_ledger: str, plan_id: str, judges: Iterable[Judge]) -> None:
    """Take the models that answered for a night's plan as those the next night is held against."""

    def write(connection: Connection) -> None:
        for judge in judges:
            of_nights, now = _Answering(_nights(name_in_ledger), judge.id), _Answering(plan_id, judge.id).read(connection)
            if now is not None and now != of_nights.read(connection):
                of_nights.delete(connection)
                of_nights.write(connection, now)

    ledger.alone_now(write)


@dataclass(frozen=True, slots=True)
class _Answering:
    """A row of the ledger's `answering`: the model that answers for a judge, `of` a plan or of what stands in place of its id."""

    of: str
    judge_model: str

    def read(self, connection: Connection) -> str | None:
        """The model; None where there is no row."""
        found = connection.execute(_READ, self._is_it).scalar_one_or_none()
        return None if found is None else bytes(found).decode("utf-8", "replace")

    def write(self, connection: Connection, answered_model: str) -> None:
        """Where a row is there already it stays."""
        row = {"plan_id": self.of, "judge_model": self.judge_model, "answered_model": answered_model.encode()}
        connection.execute(insert_where_absent(connection.engine, ANSWERING), [row])

    def delete(self, connection: Connection) -> None:
        """Without a row nothing is held to."""
        connection.execute(_DELETE, self._is_it)

    @property
    def _is_it(self) -> dict[str, str]:
        return {"of": self.of, "judge": self.judge_model}


def _nights(name_in_ledger: str) -> str:
    return sha256(f"nights of {name_in_ledger}".encode()).hexdigest()


def _held(plan_id: str) -> str:
    return sha256(f"held {plan_id}".encode()).hexdigest()


def answering_on_nights(ledger: Ledger, name_in_ledger: str, judge: Judge) -> str | None:
    """The model that answered for a judge on its last night; None where it has had none, or nobody said."""
    return ledger.read(_Answering(_nights(name_in_ledger), judge.id).read)


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
        f"judge {judge.id}: its provider shuts it down on {shutdown.isoformat()}, {when}; "
        "add its successor and run `salon anchors bridge` while both are available, or the series ends there"
    )


async def _shutdown_date(judge: Judge) -> date | None:
    provider = provider_of(judge)(judge, concurrency=1, deadline_s=_DEADLINE_S)
    try:
        return await provider.shutdown_date()
    finally:
        await provider.close()
