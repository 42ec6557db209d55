"""What bounds batches, how far one is, and short transactions on their tables, each run by `Ledger.alone` or in a read.

Whoever does a batch's next step holds it; a holder that is gone is replaced.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from sqlalchemy import BindParameter, bindparam, delete, func, insert, select, update
from sqlalchemy.engine import Connection

from schemas.errors import InputError
from tasks.judge.batch.usage import give_back_reserved
from tasks.judge.provider.base import Provider
from tasks.judge.provider.transport import is_loopback
from tasks.ledger.claims import forget
from tasks.ledger.process_identity import Process
from tasks.ledger.spent import IS_SENT
from tasks.ledger.statements import machine_of, now_us
from tasks.ledger.tables import ATTEMPTS, BATCH_LINES, BATCHES, CLAIMS, OWNERS, REPLIES

MAX_FILE_BYTES = 200 * 10**6
MAX_LINES = 50_000
"""The largest input file of a batch. Source of both: the `openai` package 3.52, types/batch_create_params.py, input_file_id."""

AUTO_AT_LEAST = 500
"""Requests from which on `mode = "auto"` goes through the Batch API: fewer are answered online before a batch has begun."""


@dataclass(frozen=True, slots=True)
class BatchRules:
    """Bounds of a run. Tests and other providers have their own."""

    max_file_bytes: int = MAX_FILE_BYTES
    max_lines: int = MAX_LINES
    n_fruitless: int = 2  # rounds of batches in a row without one final reply, after which a run gives up
    poll_s: float = 10.0  # between two looks; grows while nothing changes
    poll_at_most_s: float = 120.0
    # A creation whose reply never came is asked for again only after so long: until then the provider may still be at it.
    settle_s: float = 90.0
    patience_s: float = 900.0  # a provider that has answered before may be away for so long, or not know a batch
    first_patience_s: float = 30.0  # and one that never has


class BatchState(StrEnum):
    """How far a batch has come; each is durable before the step behind it begins."""

    INTENDED = "intended"  # its file may be on its way to the provider
    UPLOADED = "uploaded"  # the provider has the file
    CREATING = "creating"  # the provider may have the batch
    LIVE = "live"  # the provider has the batch
    ENDED = "ended"  # every line is settled


WITH_PROVIDER = frozenset({BatchState.CREATING, BatchState.LIVE})
"""The provider works on it, or may."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A row of `batches`, less when it ended and why. Moments are microseconds since 1970 UTC."""

    token: str
    endpoint: str
    api_key_env: str
    judge_model: str
    state: BatchState
    n_lines: int
    n_bytes: int
    file_id: str | None = None
    provider_id: str | None = None
    holder_id: str | None = None
    intended_at_us: int = 0
    create_sent_at_us: int | None = None
    budget_id: str | None = None

    @property
    def file_name(self) -> str:
        """The name of its file at the provider."""
        return f"salon-{self.token}.jsonl"


@dataclass(frozen=True, slots=True)
class BatchLine:
    """A line of a batch that is not settled. `n_attempts`: of this ask that were sent, this one included."""

    request_key: str
    ask_index: int
    attempt_id: str
    n_attempts: int
    is_stored: bool  # its reply is in the ledger

    @property
    def custom_id(self) -> str:
        """The line's name in the files."""
        return custom_id(self.request_key, self.ask_index)


def custom_id(request_key: str, ask_index: int) -> str:
    """The name of a request, asked for the first or the second time, in the files of a batch."""
    return f"{request_key}-{ask_index}"


_NEVER_US = 2**62
_KEYS_PER_STATEMENT = 500
_KEYS: BindParameter[list[str]] = bindparam("keys", expanding=True)
_CLAIMED = (CLAIMS.c.request_key.in_(_KEYS), CLAIMS.c.owner_id == bindparam("owner"))
_COLUMNS = tuple(BATCHES.c[field.name] for field in fields(Batch))
_IS_IT = BATCHES.c.token == bindparam("of")
_IS_LINE = BATCH_LINES.c.token == bindparam("of")
_IS_OPEN = BATCHES.c.state != BatchState.ENDED.value
_OPEN = (
    select(*_COLUMNS)
    .where(_IS_OPEN, BATCHES.c.judge_model == bindparam("judge"))
    .order_by(BATCHES.c.intended_at_us, BATCHES.c.token)
)
_BATCH = select(*_COLUMNS).where(_IS_IT)
_LINE_KEYS = select(BATCH_LINES.c.request_key).where(_IS_LINE)
_WITH_HOLDER = (
    select(*_COLUMNS, OWNERS.c.host, OWNERS.c.pid, OWNERS.c.process_started, OWNERS.c.expires_at_us)
    .outerjoin(OWNERS, OWNERS.c.owner_id == BATCHES.c.holder_id)
    .where(_IS_IT, _IS_OPEN)
)
_HOLD = update(BATCHES).where(_IS_IT, BATCHES.c.holder_id.is_not_distinct_from(bindparam("before")))
_CHANGE = update(BATCHES).where(_IS_IT, BATCHES.c.holder_id == bindparam("holder"), BATCHES.c.state == bindparam("was"))
_MOVE_CLAIMS = update(CLAIMS).where(*_CLAIMED).values(owner_id=bindparam("batch"))
_SETTLE = delete(BATCH_LINES).where(_IS_LINE, BATCH_LINES.c.request_key.in_(_KEYS))
_FREE = delete(CLAIMS).where(*_CLAIMED)


class ClaimsLostError(Exception):
    """The process was thought dead, and others may be asking what it had claimed."""


class LostHoldError(Exception):
    """Another process thought this one dead and holds the batch now."""


def check_is_here(batch: Batch, provider: Provider) -> None:
    """Refuse a batch that was handed to another endpoint or account: it cannot be asked about from here."""
    judge, here = provider.judge, provider.endpoint
    was_here = is_loopback(batch.endpoint) and is_loopback(here)
    if (batch.endpoint != here and not was_here) or batch.api_key_env != judge.api_key_env:
        raise InputError(
            f"{batch.n_lines} requests of {batch.judge_model} are in a batch at {batch.endpoint} with the key of "
            f"{batch.api_key_env}, but the benchmark file now has {here} with the key of {judge.api_key_env}; "
            "set base_url and api_key_env back, so that the replies already paid for can be fetched"
        )


def declare(connection: Connection, batch: Batch, ask_indexes: Mapping[str, int], reserved_nusd: Mapping[str, int]) -> None:
    """Store a batch that is about to be uploaded, with an attempt for each line; its claims pass over from the holder.

    `ask_indexes`, and what lines hold of the budget in billionths of a dollar, are by request key. Raises ClaimsLostError, which
    undoes it all, where a claim is the holder's no more.
    """
    moment_us = now_us(connection)
    n_claimed = 0
    for keys in _chunks(ask_indexes):
        n_claimed += connection.execute(_MOVE_CLAIMS, {"keys": keys, "owner": batch.holder_id, "batch": batch.token}).rowcount
    if n_claimed < len(ask_indexes):
        raise ClaimsLostError
    owner = {"owner_id": batch.token, "host": None, "pid": 0, "process_started": "", "expires_at_us": _NEVER_US}
    connection.execute(insert(OWNERS), [owner])
    row = {field.name: getattr(batch, field.name) for field in fields(batch)} | {"intended_at_us": moment_us}
    connection.execute(insert(BATCHES), [row | {"state": batch.state.value}])
    ids = {key: f"{moment_us * 1000:016x}{machine_of(connection).getrandbits(64):016x}" for key in ask_indexes}
    attempt = {"judge_model": batch.judge_model, "started_at_us": moment_us}
    lines: list[dict[str, Any]] = [
        {"request_key": key, "ask_index": index, "attempt_id": ids[key]} for key, index in ask_indexes.items()
    ]
    connection.execute(insert(ATTEMPTS), [line | attempt for line in lines])
    held = [line | {"token": batch.token, "reserved": reserved_nusd.get(line["request_key"])} for line in lines]
    connection.execute(insert(BATCH_LINES), held)


def open_batches(connection: Connection, judge_model: str) -> list[Batch]:
    """The judge's batches with lines that are not settled, oldest first."""
    return [_batch(row) for row in connection.execute(_OPEN, {"judge": judge_model}).mappings()]


def batch_of(connection: Connection, token: str) -> Batch | None:
    """The batch as it stands now."""
    row = connection.execute(_BATCH, {"of": token}).mappings().first()
    return None if row is None else _batch(row)


def keys_of(connection: Connection, token: str) -> list[str]:
    """The request keys of a batch's lines that are not settled."""
    return list(connection.execute(_LINE_KEYS, {"of": token}).scalars())


def lines_of(connection: Connection, token: str) -> list[BatchLine]:
    """The lines of a batch that are not settled."""
    ask = (ATTEMPTS.c.request_key == BATCH_LINES.c.request_key) & (ATTEMPTS.c.ask_index == BATCH_LINES.c.ask_index)
    n_sent = select(func.count()).select_from(ATTEMPTS).where(ask, IS_SENT).scalar_subquery()
    stored = (REPLIES.c.request_key == BATCH_LINES.c.request_key) & (REPLIES.c.ask_index == BATCH_LINES.c.ask_index)
    line = (BATCH_LINES.c.request_key, BATCH_LINES.c.ask_index, BATCH_LINES.c.attempt_id)
    found = select(*line, n_sent, REPLIES.c.status).outerjoin(REPLIES, stored).where(BATCH_LINES.c.token == token)
    return [
        BatchLine(key, index, attempt_id, n, status is not None)
        for key, index, attempt_id, n, status in connection.execute(found)
    ]


def hold(connection: Connection, token: str, holder_id: str) -> Batch | None:
    """Become the one that does the batch's next step; None where a living process is about it, or the batch has ended."""
    row = connection.execute(_WITH_HOLDER, {"of": token}).mappings().first()
    if row is None:
        return None
    before, process = row["holder_id"], Process(row["host"], row["pid"], row["process_started"])
    is_gone = row["expires_at_us"] is None or row["expires_at_us"] < now_us(connection) or machine_of(connection).is_dead(process)
    if before not in (None, holder_id) and not is_gone:
        return None
    if before not in (None, holder_id):  # what it had claimed and not handed over is free
        forget(connection, [before])
    taken = connection.execute(_HOLD, {"of": token, "before": before, "holder_id": holder_id})
    return _batch({**row, "holder_id": holder_id}) if taken.rowcount == 1 else None


def change(connection: Connection, batch: Batch, values: Mapping[str, Any]) -> bool:
    """Change a batch's row; False where another process holds it by now, or has brought it to another state."""
    is_it = {"of": batch.token, "holder": batch.holder_id, "was": batch.state.value}
    return connection.execute(_CHANGE, {**is_it, **values}).rowcount == 1


def release_lines(connection: Connection, token: str, keys: Collection[str]) -> None:
    """Let go of lines whose attempts have ended, and of what they hold of a budget. With its last line the batch ends."""
    for chunk in _chunks(keys):
        give_back_reserved(connection, token, chunk)
        connection.execute(_SETTLE, {"of": token, "keys": chunk})
        connection.execute(_FREE, {"keys": chunk, "owner": token})
    if connection.execute(_LINE_KEYS.limit(1), {"of": token}).first() is None:
        values = {"state": BatchState.ENDED.value, "ended_at_us": now_us(connection)}
        connection.execute(update(BATCHES).where(_IS_IT), {"of": token, **values})
        forget(connection, [token])


def _batch(row: Mapping[Any, Any]) -> Batch:
    return Batch(
        **{field.name: row[field.name] for field in fields(Batch) if field.name != "state"}, state=BatchState(row["state"])
    )


def _chunks(keys: Iterable[str]) -> Iterable[list[str]]:
    listed = sorted(keys)
    return (listed[start : start + _KEYS_PER_STATEMENT] for start in range(0, len(listed), _KEYS_PER_STATEMENT))
