"""Batches that providers have: which requests, since when, and whether a living process is about them. Who fetches: run.py."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from sqlalchemy import select
from sqlalchemy.engine import Connection

from tasks.judge.batch.state import WITH_PROVIDER, lines_of
from tasks.ledger.ledger import Ledger
from tasks.ledger.process_identity import Process
from tasks.ledger.statements import machine_of, now_us
from tasks.ledger.tables import BATCHES, OWNERS

_OUT = (
    select(BATCHES.c.token, BATCHES.c.judge_model, BATCHES.c.intended_at_us)
    .add_columns(OWNERS.c.host, OWNERS.c.pid, OWNERS.c.process_started, OWNERS.c.expires_at_us)
    .outerjoin(OWNERS, OWNERS.c.owner_id == BATCHES.c.holder_id)
    .where(BATCHES.c.state.in_([state.value for state in WITH_PROVIDER]))
    .order_by(BATCHES.c.intended_at_us, BATCHES.c.token)
)


@dataclass(frozen=True, slots=True)
class BatchOut:
    """A batch at its provider, and its requests without a reply. Not `is_held`: the run that waited for it has ended."""

    judge_model: str
    since: datetime
    keys: frozenset[str]
    is_held: bool


def batches_out(ledger: Ledger, judges: Iterable[str]) -> list[BatchOut]:
    """Those of these judges, the oldest first."""
    wanted, found = set(judges), list[BatchOut]()
    for token, judge, since_us, is_held in ledger.read(_out):
        lines = ledger.read(partial(lines_of, token=token)) if judge in wanted else []
        keys = frozenset(line.request_key for line in lines if not line.is_stored)
        if keys:
            found.append(BatchOut(judge, datetime.fromtimestamp(since_us / 1e6, UTC), keys, is_held))
    return found


def keys_out(batches: Iterable[BatchOut]) -> dict[str, set[str]]:
    """The requests of these batches by judge, where there are any."""
    found: dict[str, set[str]] = {}
    for one in batches:
        found.setdefault(one.judge_model, set()).update(one.keys)
    return found


def _out(connection: Connection) -> list[tuple[str, str, int, bool]]:
    now, is_dead = now_us(connection), machine_of(connection).is_dead
    return [
        (token, judge, since_us, expires_us is not None and expires_us >= now and not is_dead(Process(host, pid, started)))
        for token, judge, since_us, host, pid, started, expires_us in connection.execute(_OUT)
    ]
