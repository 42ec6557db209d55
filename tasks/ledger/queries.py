"""Rows of replies and attempts in and out, and what the ledger is asked for: many requests at once, read in chunks of keys.

A chunk's keys go as one JSON list: as a parameter each, ten thousand of them cost more to write down than to look up.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import polars as pl
import pyarrow as pa
from sqlalchemy import Select, String, bindparam, delete, func, select
from sqlalchemy.engine import Connection
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from schemas.records import REPLY_FIELDS, JudgeReply
from schemas.statuses.rows import FINAL_REPLY_STATUSES, ReplyStatus
from schemas.tables.field import Field
from schemas.tables.stored import REPLIES as LAKE_REPLIES
from tasks.ledger.process_identity import HERE, Machine
from tasks.ledger.tables import ATTEMPTS, LEDGER_META, REPLIES, VERBATIM, stored_name

KEYS_PER_QUERY = 10_000


_LAKE_TYPES = LAKE_REPLIES.empty().schema
_STORED_TYPES: dict[str, Any] = {
    column.name: pl.Binary if column.name in VERBATIM else pl.Int64 if column.name != of else kind
    for column, (of, kind) in zip(REPLIES.columns, _LAKE_TYPES.items(), strict=True)
}
"""The columns of REPLIES as the driver gives them: bytes, and moments in microseconds."""


def row_of(reply: JudgeReply) -> dict[str, Any]:
    """A reply as a row of REPLIES."""
    if reply.status not in FINAL_REPLY_STATUSES:
        raise ValueError(f"a reply with status {reply.status} is not final and is not stored; end its attempt with fail()")
    return stored_row({of.name: getattr(reply, attribute) for attribute, of in REPLY_FIELDS.items()})


def stored_row(values: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the lake's `replies` as one of REPLIES; a column that an earlier Salon did not write is null."""
    return {name: None if (value := values.get(of)) is None else kept(value) for of, name, kept in _KEPT}


def received_row(reply: JudgeReply, machine: Machine = HERE) -> dict[str, Any]:
    """A reply that arrives now as a row of REPLIES."""
    return row_of(reply) | {"received_at_us": machine.time_ns() // 1000}


def attempt_row(request_key: str, ask_index: int, judge_model: str, machine: Machine = HERE) -> dict[str, Any]:
    """An attempt that begins now as a row of ATTEMPTS."""
    return {
        # Ordered by time, so that new rows are neighbours; random bits make it unique among processes.
        "attempt_id": f"{machine.time_ns():016x}{machine.getrandbits(64):016x}",
        "request_key": request_key,
        "ask_index": ask_index,
        "judge_model": judge_model,
        "started_at_us": machine.time_ns() // 1000,
    }


def end_row(attempt_id: str, status: ReplyStatus, detail: str | None, machine: Machine = HERE) -> dict[str, Any]:
    """The values of an attempt that ends now."""
    at_us = machine.time_ns() // 1000
    return {"id": attempt_id, "at": at_us, "how": status.value, "why": None if detail is None else utf8(detail)}


def utf8(text: object) -> bytes:
    """What others wrote, as it is kept."""
    return str(text).encode("utf-8", "replace")


def _kept(of: Field) -> Callable[[Any], Any]:
    if pa.types.is_timestamp(of.arrow_type):
        return _microseconds
    if of.arrow_type == pa.string():
        return utf8 if of.name in VERBATIM else str
    return lambda number: number


def _microseconds(moment: object) -> int | None:
    if not isinstance(moment, datetime):  # of a Parquet file of somebody else's
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


_KEPT = tuple((of.name, stored_name(of), _kept(of)) for of in LAKE_REPLIES.fields)


class _Listed(FunctionElement[str]):
    """The texts of a JSON list as rows."""

    name = "listed"
    inherit_cache = True


@compiles(_Listed, "sqlite")
def _listed_by_sqlite(element: _Listed, compiler: Any, **options: Any) -> str:
    return f"json_each({compiler.process(element.clauses, **options)})"


@compiles(_Listed, "postgresql")
def _listed_by_postgresql(element: _Listed, compiler: Any, **options: Any) -> str:
    return f"json_array_elements_text(CAST({compiler.process(element.clauses, **options)} AS JSON))"


KEYS_LISTED = select(_Listed(bindparam("keys", type_=String)).table_valued("value").c.value)
_R, _A = REPLIES.c, ATTEMPTS.c

_KNOWN = select(_R.request_key).where(_R.request_key.in_(KEYS_LISTED)).distinct()
_N_STORED = select(func.count()).where(_R.request_key.in_(KEYS_LISTED))
_DIGESTS = select(_R.request_key, _R.ask_index, _R.reply_sha256).where(_R.request_key.in_(KEYS_LISTED))
_REPLIES = select(*REPLIES.columns).where(_R.request_key.in_(KEYS_LISTED))
_FORGET = delete(REPLIES).where(_R.request_key.in_(KEYS_LISTED), _R.status == ReplyStatus.REJECTED.value)
_SAID = (
    select(_R.error_detail, func.count()).where(_R.request_key.in_(KEYS_LISTED), _R.status == ReplyStatus.REJECTED.value)
).group_by(_R.error_detail)
_REASKS = (
    select(_A.request_key)
    .outerjoin(REPLIES, (_R.request_key == _A.request_key) & (_R.ask_index == _A.ask_index))
    .where(_A.request_key.in_(KEYS_LISTED), _A.ask_index > 0, _R.request_key.is_(None))
    .distinct()
)
_UNANSWERED = (
    select(_A.request_key, _A.ask_index, _A.started_at_us, _A.attempt_id, _A.status, _A.detail)
    .outerjoin(REPLIES, (_R.request_key == _A.request_key) & (_R.ask_index == _A.ask_index))
    .where(_A.request_key.in_(KEYS_LISTED), _R.request_key.is_(None))
)
_N_ATTEMPTS = (
    select(_A.request_key, _A.ask_index, func.count())
    .where(_A.request_key.in_(KEYS_LISTED))
    .group_by(_A.request_key, _A.ask_index)
)

_ANSWERED_BY = select(_R.request_key, _R.answered_model).where(_R.request_key.in_(KEYS_LISTED), _R.answered_model.is_not(None))
_NAMES_ANSWERING = select(_R.answered_model).where(_R.request_key.in_(KEYS_LISTED), _R.answered_model.is_not(None)).distinct()

NEVER_ENDED = "the process stopped before a reply arrived; the request may have been billed"


def state(connection: Connection, _: Sequence[str] = ()) -> str | None:
    """The ledger's state: a random word drawn in every transaction that writes; None where nothing was written yet."""
    found: str | None = connection.execute(select(LEDGER_META.c.value).where(LEDGER_META.c.name == "state")).scalar()
    return found


def known(connection: Connection, keys: Sequence[str]) -> list[str]:
    """Those of the keys that have a final reply."""
    return [row[0] for row in _rows(connection, _KNOWN, keys)]


def n_stored(connection: Connection, keys: Sequence[str]) -> int:
    """How many replies, re-asks included, are stored for these keys."""
    return sum(row[0] for row in _rows(connection, _N_STORED, keys))


def digests(connection: Connection, keys: Sequence[str]) -> dict[tuple[str, int], str | None]:
    """What was said, as a digest, by (request_key, ask_index); None in rows from before there were digests."""
    return {(key, ask_index): digest for key, ask_index, digest in _rows(connection, _DIGESTS, keys)}


def forget_rejected(connection: Connection, keys: Sequence[str], ask_index: int | None = None) -> int:
    """Delete the rejections among the replies to these keys, or to one ask of each; how many. Nothing paid for is one."""
    statement = _FORGET if ask_index is None else _FORGET.where(_R.ask_index == ask_index)
    return sum(connection.execute(statement, chunk).rowcount for chunk in chunks_of(keys))


def rejections(connection: Connection, keys: Sequence[str]) -> Counter[str]:
    """How many requests were rejected, by what the provider said of it."""
    found: Counter[str] = Counter()
    for said, n in _rows(connection, _SAID, keys):
        found["no message" if said is None else bytes(said).decode("utf-8", "replace")] += n
    return found


def reasks_due(connection: Connection, keys: Sequence[str]) -> list[str]:
    """Keys with an attempt of a re-ask and no reply to it."""
    return [row[0] for row in _rows(connection, _REASKS, keys)]


def n_attempts(connection: Connection, keys: Sequence[str]) -> dict[tuple[str, int], int]:
    """Attempts recorded, by (request_key, ask_index)."""
    return {(key, ask_index): n for key, ask_index, n in _rows(connection, _N_ATTEMPTS, keys)}


def names_answering(connection: Connection, keys: Sequence[str]) -> set[str]:
    """The models that say they answered these requests, each once."""
    return {bytes(name).decode("utf-8", "replace") for (name,) in _rows(connection, _NAMES_ANSWERING, keys)}


def answered_by(connection: Connection, keys: Sequence[str]) -> list[tuple[str, str]]:
    """(request key, the model that says it answered) of each stored reply that says so."""
    return [(key, bytes(name).decode("utf-8", "replace")) for key, name in _rows(connection, _ANSWERED_BY, keys)]


def replies(connection: Connection, keys: Sequence[str]) -> pl.DataFrame:
    """The stored replies in the columns of the lake's `replies`."""
    frames = [_framed(_raw_rows(connection, _REPLIES, chunk), _STORED_TYPES) for chunk in chunks_of(keys)]
    frame = pl.concat(frames) if frames else pl.DataFrame(schema=_STORED_TYPES)
    return frame.rename({stored_name(of): of.name for of in LAKE_REPLIES.fields}).cast(_LAKE_TYPES)


def last_failures(connection: Connection, keys: Sequence[str]) -> pl.DataFrame:
    """One row for every ask without a final reply: how its last attempt ended. One that never ended counts as timed out."""
    schema = {
        "request_key": pl.String, "ask_index": pl.Int64, "started_at_us": pl.Int64, "attempt_id": pl.String,
        "status": pl.String, "error_detail": pl.Binary,
    }  # fmt: skip
    frame = pl.DataFrame(list(_rows(connection, _UNANSWERED, keys)), schema=schema, orient="row")
    has_ended = pl.col("status").is_not_null()
    return (
        frame.sort("started_at_us", "attempt_id")
        .group_by("request_key", "ask_index", maintain_order=True)
        .agg(pl.col("status").last(), pl.col("error_detail").last(), n_attempts=pl.len().cast(pl.Int64))
        .with_columns(
            error_detail=pl.when(has_ended).then(pl.col("error_detail").cast(pl.String)).otherwise(pl.lit(NEVER_ENDED)),
            status=pl.col("status").fill_null(ReplyStatus.TIMED_OUT.value),
        )
        .sort("request_key", "ask_index")
    )


def _rows(connection: Connection, statement: Select[Any], keys: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    for chunk in chunks_of(keys):
        yield from _raw_rows(connection, statement, chunk)


def chunks_of(keys: Sequence[str]) -> Iterator[dict[str, str]]:
    """The keys as parameters of KEYS_LISTED, some at a time."""
    ordered = sorted(set(keys))  # neighbouring keys share pages of the index
    for start in range(0, len(ordered), KEYS_PER_QUERY):
        yield {"keys": orjson.dumps(ordered[start : start + KEYS_PER_QUERY]).decode()}


def _framed(rows: list[tuple[Any, ...]], schema: dict[str, Any]) -> pl.DataFrame:
    """Rows as a frame, column by column: several times quicker than row by row."""
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pl.DataFrame([pl.Series(n, c, dtype=t, strict=False) for (n, t), c in zip(schema.items(), columns, strict=True)])


def _raw_rows(connection: Connection, statement: Select[Any], chunk: Mapping[str, str]) -> list[tuple[Any, ...]]:
    """All rows as the driver gives them: a million rows need no Row objects and no type conversions."""
    cursor = connection.execute(statement, chunk).cursor
    return [] if cursor is None else list(cursor.fetchall())
