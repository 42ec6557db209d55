"""The snapshot a run reads from the ledger: every planned request with its replies, or with why it has none."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

import polars as pl

from schemas.identities import canonical_json
from schemas.records import PlannedPart
from schemas.statuses import ReplyStatus
from schemas.tables import REPLIES, REQUESTS
from tasks.context import StageContext
from tasks.lake.atomic_files import write_bytes
from tasks.lake.reading import Lake
from tasks.lake.writing import Staging
from tasks.ledger.ledger import Ledger, opened
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


def snapshot_part(ledger: Ledger, requests: pl.DataFrame) -> pl.DataFrame:
    """REPLIES rows of these requests, sorted by (request_key, ask_index).

    A request without a final reply has one row: how its last attempt ended, or `not_asked`.
    """
    return _replies(ledger, requests.select(_ASKED)).select(REPLIES.columns)


def take_parts(context: StageContext, shard: TakeShard) -> list[TakenPart]:
    """Read the replies of these parts of requests from the ledger, all at once; write each part where there is a staging."""
    requests = [context.lake.read_part(REQUESTS, context.ids.plan_id, index, _ASKED) for index in shard.indices]
    requested = pl.concat([frame.with_columns(part=pl.lit(n, pl.Int64)) for n, frame in enumerate(requests)])
    with opened(context.ledger_url) as ledger:
        replies, due = _replies(ledger, requested), ledger.reasks_due(requested["request_key"])
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


def parts_to_ask(lake: Lake, plan_id: str, parts: Sequence[PlannedPart], ledger: Ledger) -> list[PlannedPart]:
    """Those of the parts with a request that has no final reply in the ledger, or is owed a re-ask."""
    found: list[PlannedPart] = []
    for some in grouped(parts):
        check_not_stopped()
        keys = [lake.read_part(REQUESTS, plan_id, part.index, ["request_key"])["request_key"] for part in some]
        every = pl.concat(keys)
        known, due = ledger.known(every), ledger.reasks_due(every)
        is_open = [not (known.issuperset(mine) and due.isdisjoint(mine)) for mine in keys]
        found += [part for part, is_to_ask in zip(some, is_open, strict=True) if is_to_ask]
    return found


def part_digest(replies: pl.DataFrame) -> str:
    """sha256 over the rows of one snapshot part as canonical JSON lines, in their order: the same on every machine."""
    frame = replies.select(REPLIES.columns).with_columns(pl.col("received_at").dt.epoch("us"))
    lines = [canonical_json(row) for row in frame.iter_rows()]
    return sha256(b"".join(line + b"\n" for line in lines)).hexdigest()


def snapshot_id(digests: Iterable[str]) -> str:
    """The snapshot's id from the digests of its parts, in the order of the parts."""
    return sha256("\n".join(digests).encode()).hexdigest()


def last_taken(lake: Lake, plan_id: str) -> LastSnapshot | None:
    """The snapshot last taken of this plan, where it stands in the lake. A note that cannot be read is no note."""
    try:
        said = json.loads(_note(lake, plan_id).read_bytes())
        taken = LastSnapshot(str(said["snapshot_id"]), str(said["ledger_state"]), said["is_answered"] is True)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return taken if lake.is_complete(REPLIES, taken.snapshot_id) else None


def still_holds(lake: Lake, plan_id: str, ledger_state: str | None) -> LastSnapshot | None:
    """The snapshot last taken, where the ledger is in the state it was in: it would be the same again."""
    taken = last_taken(lake, plan_id)
    return taken if taken is not None and taken.ledger_state == ledger_state else None


def note(lake: Lake, plan_id: str, taken: LastSnapshot) -> None:
    """Note the snapshot that was taken, once it stands in the lake; `ledger_state` is from before it was read."""
    write_bytes(json.dumps(asdict(taken)).encode(), _note(lake, plan_id), lake.root / "staging")


def _note(lake: Lake, plan_id: str) -> Path:
    return lake.root / "taken" / f"{plan_id}.json"


def _replies(ledger: Ledger, requests: pl.DataFrame) -> pl.DataFrame:
    """REPLIES rows beside the other columns of `requests` and `is_final`, sorted by (request_key, ask_index)."""
    asked = requests.unique("request_key", keep="first", maintain_order=True)
    others = [name for name in asked.columns if name not in _ASKED]
    stored = ledger.replies(asked["request_key"])
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
