"""Claims: a request is bought by one process, however many run. Another one that wants it waits for the reply.

A claim belongs to an owner (process_identity.py), lasts as long as the owner says that it lives, and needs no release: who
wants a request whose owner is gone takes the claim over. A claim is taken before it is looked whether there is a reply, and goes
only with its owner, after the reply is stored: what is claimed and has no reply has not been bought.
"""

import asyncio
import contextlib
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sqlalchemy import BindParameter, bindparam, delete, func, insert, literal, select, union, union_all, update
from sqlalchemy.engine import Connection

from schemas.errors import StoreError
from tasks.ledger.ledger import Ledger
from tasks.ledger.pipelining import later
from tasks.ledger.process_identity import EXPIRES_AFTER_S, RENEW_EVERY_S, Doubts, Process, expiry_us
from tasks.ledger.spent import IS_SENT
from tasks.ledger.statements import insert_where_absent, now_us
from tasks.ledger.tables import ATTEMPTS, CLAIMS, OWNERS, REPLIES

_KEYS: BindParameter[list[str]] = bindparam("keys", expanding=True)
_OWNER: BindParameter[str] = bindparam("owner")
_ABOUT = (OWNERS.c.host, OWNERS.c.pid, OWNERS.c.process_started, OWNERS.c.expires_at_us)
_HOLDERS = union(
    select(CLAIMS.c.owner_id, *_ABOUT)
    .outerjoin(OWNERS, OWNERS.c.owner_id == CLAIMS.c.owner_id)
    .where(CLAIMS.c.request_key.in_(_KEYS), CLAIMS.c.owner_id != _OWNER),
    select(OWNERS.c.owner_id, *_ABOUT).where(OWNERS.c.owner_id == _OWNER),
)
"""Who holds claims of these keys, and the owner itself where it is known."""
_HOLDING = select(CLAIMS.c.owner_id)
_SWEEP = delete(OWNERS).where(OWNERS.c.expires_at_us < bindparam("long_ago_us"), OWNERS.c.owner_id.not_in(_HOLDING))
_ENTER = insert(OWNERS)
_PROLONG = update(OWNERS).where(OWNERS.c.owner_id == _OWNER).values(expires_at_us=bindparam("until_us"))
_GIVE_BACK = delete(CLAIMS).where(CLAIMS.c.request_key == bindparam("key"), CLAIMS.c.owner_id == _OWNER)
_OWNERS: BindParameter[list[str]] = bindparam("owners", expanding=True)
_FORGET = (delete(CLAIMS).where(CLAIMS.c.owner_id.in_(_OWNERS)), delete(OWNERS).where(OWNERS.c.owner_id.in_(_OWNERS)))
_HELD, _REPLY, _ATTEMPTS = range(3)
_FOUND = union_all(
    select(CLAIMS.c.request_key, literal(_HELD), literal(0), literal(0)).where(
        CLAIMS.c.request_key.in_(_KEYS), CLAIMS.c.owner_id == _OWNER
    ),
    select(REPLIES.c.request_key, literal(_REPLY), REPLIES.c.ask_index, literal(0)).where(REPLIES.c.request_key.in_(_KEYS)),
    select(ATTEMPTS.c.request_key, literal(_ATTEMPTS), ATTEMPTS.c.ask_index, func.count().filter(IS_SENT))
    .where(ATTEMPTS.c.request_key.in_(_KEYS))
    .group_by(ATTEMPTS.c.request_key, ATTEMPTS.c.ask_index),
)
"""(request_key, what, ask_index, how many): all there is to know of the keys, in one question. A re-ask that is owed has none."""
_FIRST_TRIED = (
    select(ATTEMPTS.c.request_key, func.min(ATTEMPTS.c.started_at_us))
    .where(ATTEMPTS.c.request_key.in_(_KEYS), IS_SENT)
    .group_by(ATTEMPTS.c.request_key)
)

_KEPT_US = 86_400 * 1_000_000
"""Rows of killed processes are swept after a day: after a pause, or where a clock was set, a living one's mutex looks over."""
_SPARE_S = 5.0
"""A claim is not relied on for the last seconds of its owner's row: from the look to the wire is a moment, too."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of request keys: ours to ask (of them in `due` only the re-ask), done by others, or being asked by others."""

    ours: frozenset[str]
    due: frozenset[str]
    done: frozenset[str]
    elsewhere: frozenset[str]
    n_attempts: dict[tuple[str, int], int]


@dataclass(slots=True)
class Claims:
    """The claims of one owner. `is_lost` turns true when others must have thought it gone: then all are to be taken anew.

    `n_lost`: how often that was. What was claimed before is never sure again, whatever was claimed since.
    """

    ledger: Ledger
    owner_id: str = ""
    is_lost: bool = False
    n_lost: int = 0
    _is_known: bool = False
    _said_s: float = -math.inf
    _doubts: Doubts = field(init=False)

    def __post_init__(self) -> None:
        self.owner_id = self.owner_id or self.ledger.machine.token_hex(16)
        self._doubts = Doubts(self.ledger.machine)

    def is_sure(self, n_lost: int) -> bool:
        """Whether a claim taken when `n_lost` was this is the owner's still: its row cannot be over by this process's clock.

        Asked before what is paid for is sent.
        """
        return n_lost == self.n_lost and self.ledger.machine.monotonic_s() - self._said_s < EXPIRES_AFTER_S - _SPARE_S

    async def take(self, keys: Collection[str]) -> Taken:
        """Claim what can be claimed of these keys. Durable when it returns."""
        was_known, said_s = self._is_known, self.ledger.machine.monotonic_s()
        taken, is_new = await self.ledger.alone(lambda connection: self._take(connection, sorted(keys)))
        self._is_known, self._said_s = True, said_s
        if was_known and is_new:
            self.is_lost, self.n_lost = True, self.n_lost + 1
        return taken

    async def tried_for_s(self, keys: Collection[str]) -> dict[str, float]:
        """Seconds since the first attempt for each of these keys that has one."""
        return await self.ledger.look(partial(_tried_for_s, keys=sorted(keys))) if keys else {}

    async def renew(self) -> None:
        """Say every few seconds that the owner lives, until cancelled. A ledger that fails is asked again the next time."""
        while True:
            await asyncio.sleep(RENEW_EVERY_S)
            with contextlib.suppress(StoreError):  # else others would take over what is still being asked
                said_s = self.ledger.machine.monotonic_s()
                if self._is_known and not await self.ledger.alone(self._renew):
                    self.is_lost, self._is_known, self.n_lost = True, False, self.n_lost + 1
                else:
                    self._said_s = said_s

    async def give_back(self, *request_keys: str) -> None:
        """Let others try what was not got here: two runs that wait for what the other failed to get would wait for ever."""
        await self.ledger.alone(partial(_give_back, owner_id=self.owner_id, request_keys=request_keys))

    async def release(self) -> None:
        """Give all claims back: what was not asked may be asked by others."""
        if self._is_known:
            await self.ledger.alone(lambda connection: forget(connection, [self.owner_id]))
            self._is_known = False

    def _take(self, connection: Connection, keys: list[str]) -> tuple[Taken, bool]:
        """What was taken; whether the owner was not there, as at its first time or when it was thought gone."""
        moment_us = now_us(connection)
        holders = connection.execute(_HOLDERS, {"keys": keys, "owner": self.owner_id}).all()
        is_new = all(owner_id != self.owner_id for owner_id, *_ in holders)
        if is_new:
            process = self.ledger.machine.this_process()
            later(connection, _SWEEP, {"long_ago_us": moment_us - _KEPT_US})
            row = {"owner_id": self.owner_id, "host": process.host, "pid": process.pid, "process_started": process.started}
            later(connection, _ENTER, [row | {"expires_at_us": expiry_us(moment_us)}])
        else:
            later(connection, _PROLONG, self._prolonged(moment_us))
        gone = [
            owner_id
            for owner_id, *process, expires_us in holders
            if owner_id != self.owner_id
            and (expires_us is None or self._doubts.is_gone(owner_id, Process(*process), expires_us, moment_us))
        ]
        if gone:
            forget(connection, gone)
        rows = [{"request_key": key, "owner_id": self.owner_id} for key in keys]
        if rows:
            later(connection, insert_where_absent(connection.engine, CLAIMS), rows)
        # Only now: a reply stored by an owner that let go since is seen.
        return self._taken(keys, connection.execute(_FOUND, {"keys": keys, "owner": self.owner_id}).all()), is_new

    def _taken(self, keys: Collection[str], found: Sequence[Any]) -> Taken:
        held = {key for key, what, _, _ in found if what == _HELD}
        replies = {(key, ask_index) for key, what, ask_index, _ in found if what == _REPLY}
        n_attempts = {(key, ask_index): n for key, what, ask_index, n in found if what == _ATTEMPTS}
        known = {key for key, _ in replies}
        due = {key for key, ask_index in n_attempts if key in known and ask_index > 0 and (key, ask_index) not in replies}
        done = known - due
        ours = held - done
        return Taken(
            ours=frozenset(ours),
            due=frozenset(due & ours),
            done=frozenset(done),
            elsewhere=frozenset(keys) - ours - done,
            n_attempts={asked: n for asked, n in n_attempts.items() if asked[0] in ours},
        )

    def _renew(self, connection: Connection) -> bool:
        return connection.execute(_PROLONG, self._prolonged(now_us(connection))).rowcount == 1

    def _prolonged(self, moment_us: int) -> dict[str, Any]:
        return {"owner": self.owner_id, "until_us": expiry_us(moment_us)}


def _tried_for_s(connection: Connection, keys: list[str]) -> dict[str, float]:
    moment_us = now_us(connection)
    rows = connection.execute(_FIRST_TRIED, {"keys": keys}).all()
    return {key: (moment_us - first_us) / 1e6 for key, first_us in rows}


def _give_back(connection: Connection, owner_id: str, request_keys: Sequence[str]) -> None:
    for key in request_keys:
        later(connection, _GIVE_BACK, {"key": key, "owner": owner_id})


def forget(connection: Connection, owner_ids: list[str]) -> None:
    """Owners that are gone, or done: their claims are free."""
    for statement in _FORGET:
        later(connection, statement, {"owners": owner_ids})
