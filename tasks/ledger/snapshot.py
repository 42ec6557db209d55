"""The snapshot a run reads from the ledger: requests with replies, or why there is none; and back. Imports: import_replies/."""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path

import polars as pl
from sqlalchemy import select
from sqlalchemy.engine import Connection

from schemas.errors import CorruptLakeError
from schemas.identities import canonical_json
from schemas.records import SAID, PlannedPart, reply_sha256
from schemas.statuses.rows import FINAL_REPLY_STATUSES, ReplyStatus
from schemas.tables.stored import REPLIES, REQUESTS
from tasks.context import StageContext
from tasks.lake.atomic_files import write_bytes
from tasks.lake.reading import Lake
from tasks.lake.writing import Staging
from tasks.ledger.ledger import Ledger
from tasks.ledger.open_ledgers import opened
from tasks.ledger.queries import stored_row
from tasks.ledger.statements import insert_where_absent
from tasks.ledger.tables import LEDGER_META
from tasks.regular_files import content_of
from tasks.stopping import check_not_stopped

_ASKED = ["request_key", "judge_model"]
REQUESTS_AT_ONCE = 50_000
"""Requests read from the ledger or written together, whole parts at a time."""


@dataclass(frozen=True, slots=True)
class TakenPart:
    """One part of a snapshot: its digest, and whether the ledger held a final reply to each request and owed no re-ask."""

    digest: str
    is_answered: bool


@dataclass(frozen=True, slots=True)
class LastSnapshot:
    """The snapshot last taken of a plan, and the ledger's state from before it was read."""

    snapshot_id: str
    ledger_state: str
    is_answered: bool  # nothing was left to ask


@dataclass(frozen=True, slots=True)
class TakeShard:
    """Some parts of the plan's requests, and where their replies are written; None: they are only looked at."""

    indices: tuple[int, ...]
    staging: Staging | None = None


def grouped(parts: Sequence[PlannedPart]) -> Iterator[list[PlannedPart]]:
    """The parts in runs of some REQUESTS_AT_ONCE requests: what one task reads from the ledger or writes."""
    run: list[PlannedPart] = []
    for part in parts:
        run.append(part)
        if sum(one.n_requests for one in run) >= REQUESTS_AT_ONCE:
            yield run
            run = []
    if run:
        yield run


def take_parts(context: StageContext, shard: TakeShard) -> list[TakenPart]:
    """Read the replies of these parts of requests from the ledger, all at once; write each part where there is a staging."""
    requests = [context.lake.read_part(REQUESTS, context.ids.plan_id, index, _ASKED) for index in shard.indices]
    requested = pl.concat([frame.with_columns(part=pl.lit(n, pl.Int64)) for n, frame in enumerate(requests)])
    with opened(context.ledger_url) as ledger:
        replies, due = replies_to(ledger, requested), ledger.reasks_due(requested["request_key"])
    by_part = replies.partition_by("part", as_dict=True)
    found: list[TakenPart] = []
    for n, index in enumerate(shard.indices):
        check_not_stopped()
        part = by_part.get((n,), replies[:0])
        if shard.staging is not None:
            shard.staging.write_part(index, part)
        is_answered = bool(part["is_final"].all()) and due.isdisjoint(requests[n]["request_key"])
        found.append(TakenPart(part_digest(part), is_answered))
    return found


def parts_to_ask(context: StageContext, parts: Sequence[PlannedPart], ledger: Ledger) -> list[PlannedPart]:
    """Those of the parts with a request that has no final reply in the ledger, or is owed a re-ask."""
    found: list[PlannedPart] = []
    for some in grouped(parts):
        check_not_stopped()
        keys = [context.request_keys(part) for part in some]
        every = pl.concat(keys)
        known, due = ledger.known(every), ledger.reasks_due(every)
        is_open = [not (known.issuperset(mine) and due.isdisjoint(mine)) for mine in keys]
        found += [part for part, is_to_ask in zip(some, is_open, strict=True) if is_to_ask]
    return found


def forget_rejected(context: StageContext, parts: Sequence[PlannedPart], ledger: Ledger) -> int:
    """Take back the rejections among the replies to these parts; how many. They are asked again."""
    n_forgotten = 0
    for part in parts:
        check_not_stopped()
        n_forgotten += ledger.forget_rejected_now(context.request_keys(part))
    return n_forgotten


def part_digest(replies: pl.DataFrame) -> str:
    """sha256 over the rows of one snapshot part as canonical JSON lines, in their order: the same on every machine.

    Of the columns that it has: a part of before a column came keeps the digest that it had.
    """
    frame = replies.select(name for name in REPLIES.columns if name in replies.columns).with_columns(
        pl.col("received_at").dt.epoch("us")
    )
    lines = [canonical_json(row) for row in frame.iter_rows()]
    return sha256(b"".join(line + b"\n" for line in lines)).hexdigest()


def snapshot_id(digests: Iterable[str]) -> str:
    """The snapshot's id from the digests of its parts, in the order of the parts."""
    return sha256("\n".join(digests).encode()).hexdigest()


def last_taken(context: StageContext) -> LastSnapshot | None:
    """The snapshot last taken of the run's plan, where it stands in the lake. A note that cannot be read is no note."""
    try:
        said = json.loads(content_of(_note_of_plan(context)))
        taken = LastSnapshot(str(said["snapshot_id"]), str(said["ledger_state"]), said["is_answered"] is True)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return taken if context.lake.is_complete(REPLIES, taken.snapshot_id) else None


def still_holds(context: StageContext, ledger_state: str | None) -> LastSnapshot | None:
    """The snapshot last taken, where the ledger is in the state it was in: it would be the same again."""
    taken = last_taken(context)
    return taken if taken is not None and taken.ledger_state == ledger_state else None


def note(context: StageContext, taken: LastSnapshot) -> None:
    """Note the snapshot that was taken, once it stands in the lake; `ledger_state` is from before it was read."""
    write_bytes(json.dumps(asdict(taken)).encode(), _note_of_plan(context), context.lake.root / "staging")


def _note_of_plan(context: StageContext) -> Path:
    return context.lake.root / "taken" / f"{context.ids.plan_id}.json"


def replies_to(ledger: Ledger, requests: pl.DataFrame) -> pl.DataFrame:
    """REPLIES rows beside the other columns of `requests` and `is_final`, sorted by (request_key, ask_index).

    A request without a final reply has one row: how its last attempt ended, or `not_asked`.
    """
    asked = requests.unique("request_key", keep="first", maintain_order=True)
    others = [name for name in asked.columns if name not in _ASKED]
    stored = ledger.replies(asked["request_key"])
    check_replies(stored, "the ledger", "restore the ledger from an earlier copy (docs/ledger.md) and run again")
    missing = asked.join(stored, on="request_key", how="anti")
    failures = ledger.last_failures(missing["request_key"]).filter(pl.col("ask_index") == 0)
    unanswered = missing.join(failures, on="request_key", how="left").with_columns(
        ask_index=pl.lit(0, dtype=pl.Int64),
        status=pl.col("status").fill_null(ReplyStatus.NOT_ASKED.value),
        n_attempts=pl.col("n_attempts").fill_null(0),
        is_final=pl.lit(value=False),
    )
    final = stored.join(asked.select("request_key", *others), on="request_key").with_columns(is_final=pl.lit(value=True))
    rows = pl.concat([final, unanswered], how="diagonal")
    return rows.select(*REPLIES.columns, *others, "is_final").sort("request_key", "ask_index")


def changed_replies(replies: pl.DataFrame) -> Iterator[tuple[str, int, str, str]]:
    """(request_key, ask_index, digest stored, digest of what is stored) of replies that are not what was received."""
    for row in replies.select(*SAID, "reply_sha256").iter_rows(named=True):
        digest = row["reply_sha256"]
        if digest is not None and reply_sha256(row) != digest:
            yield row["request_key"], row["ask_index"], digest, reply_sha256(row)


def check_replies(replies: pl.DataFrame, place: str, remedy: str) -> None:
    """Raise CorruptLakeError where a reply is not what was received."""
    changed = list(changed_replies(replies))
    if changed:
        key, ask_index, _, _ = changed[0]
        raise CorruptLakeError(
            f"{len(changed)} of the replies in {place} are not what was received, the first to request {key}, ask {ask_index}: "
            f"its text was changed afterwards; {remedy}"
        )


_HELD = "held"
"""The value in `ledger_meta`, under a snapshot's id, that says this ledger holds its replies."""
_KEY = ["request_key", "ask_index"]
_BOUGHT = FINAL_REPLY_STATUSES - {ReplyStatus.REJECTED}
_ROWS_PER_COMMIT = 2_000


def restore(lake: Lake, ledger: Ledger) -> int:
    """Store every final reply of the lake's snapshots that the ledger lacks. Returns how many there were.

    A snapshot is compared once with a ledger, so that a run pays for those taken since the last one alone; a ledger that was
    lost or put back from a copy does not know of any, or of the later ones, and gets them all. What was rejected and asked again
    stands in two snapshots: the rejection comes last, and makes room. Raises StoreError, CorruptLakeError.
    """
    n_stored, snapshots = 0, sorted(lake.keys(REPLIES) - ledger.read(_compared))
    for statuses in (_BOUGHT, {ReplyStatus.REJECTED}):
        n_stored += sum(_take_back(lake, snapshot, ledger, statuses) for snapshot in snapshots)
    for snapshot in snapshots:
        ledger.alone_now(partial(_note_compared, snapshot=snapshot))
    return n_stored


def _compared(connection: Connection) -> set[str]:
    return set(connection.execute(select(LEDGER_META.c.name).where(LEDGER_META.c.value == _HELD)).scalars())


def _note_compared(connection: Connection, snapshot: str) -> None:
    connection.execute(insert_where_absent(connection.engine, LEDGER_META), [{"name": snapshot, "value": _HELD}])


def _take_back(lake: Lake, snapshot: str, ledger: Ledger, statuses: Collection[ReplyStatus]) -> int:
    is_wanted = pl.col("status").is_in([status.value for status in statuses])
    final = lake.scan(REPLIES, snapshot).filter(is_wanted).select(_KEY).collect()
    if statuses == _BOUGHT:
        for (ask_index,), bought in final.group_by("ask_index"):
            ledger.forget_rejected_now(bought["request_key"], ask_index)
    lacking = _lacking(ledger, final)
    if lacking.is_empty():
        return 0
    n_stored = 0
    for path in lake.parts(REPLIES, snapshot):
        mine = pl.read_parquet(path).filter(is_wanted).join(lacking, on=_KEY, how="semi")
        for some in mine.iter_slices(_ROWS_PER_COMMIT):
            check_not_stopped()
            n_stored += ledger.store_rows([stored_row(row) for row in some.iter_rows(named=True)])
    return n_stored


def _lacking(ledger: Ledger, final: pl.DataFrame) -> pl.DataFrame:
    """Those (request_key, ask_index) the ledger has no reply to. Where it has the first one, the re-ask may still be missing."""
    is_known = pl.col("request_key").is_in(list(ledger.known(final["request_key"])))
    reasked = final.filter(is_known, pl.col("ask_index") > 0)
    stored = ledger.replies(reasked["request_key"]).select(_KEY)
    return pl.concat([final.filter(~is_known), reasked.join(stored, on=_KEY, how="anti")])
