"""Replies that were paid for and that the ledger did not take in the time it is waited for: a small file each, in the lake.

`unstored/<request key>-<ask index>.json`. Whoever asks next stores them first, so that none is lost or bought twice; a file goes
when its reply is durable in the ledger. Replies that are in the lake's snapshots come back by snapshot.py.
"""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Column
from sqlalchemy.engine import Connection

from schemas.errors import CorruptLakeError, RefusedLedgerError, StoreError
from schemas.records import JudgeReply
from tasks.lake.atomic_files import write_bytes
from tasks.lake.object_store.cache_folder import bucket_behind, push, refresh
from tasks.lake.object_store.client import each
from tasks.ledger import queries
from tasks.ledger.ledger import END, Ledger
from tasks.ledger.process_identity import HERE, Machine
from tasks.ledger.statements import insert_where_absent
from tasks.ledger.tables import ATTEMPTS, REPLIES
from tasks.regular_files import content_of

log = logging.getLogger("salon.ledger")
FOLDER: Final = "unstored"


@dataclass(slots=True)
class Unstored:
    """What a lake (its folder) keeps of such replies. `n_lost`: those that found no room there either."""

    root: Path
    n_lost: int = 0

    @property
    def files(self) -> list[Path]:
        """One for each reply that waits here."""
        return sorted((self.root / FOLDER).glob("*.json"))

    def keep(self, attempt_id: str, reply: JudgeReply, *, is_reasked: bool, machine: Machine = HERE) -> bool:
        """Put a reply on the disk; whether it is there. On a bucket's lake others can take it in too, once the bucket has it."""
        row = {name: _as_json(value) for name, value in queries.received_row(reply, machine).items()}
        content = json.dumps({"attempt_id": attempt_id, "is_reasked": is_reasked, "reply": row}).encode()
        target = self.root / FOLDER / f"{reply.request_key}-{reply.ask_index}.json"
        try:
            write_bytes(content, target, self.root / "staging")
        except StoreError:
            self.n_lost += 1
            return False
        with suppress(StoreError):
            push(self.root, target)
        return True

    def take_in(self, ledger: Ledger, *, is_from_all: bool = False) -> int:
        """Store what waits here; how many replies that were. `is_from_all`: what other machines put into the bucket too.

        Raises CorruptLakeError, once the rest is stored, where a file is not what was kept.
        """
        bucket = bucket_behind(self.root)
        if bucket is not None and is_from_all:
            each(partial(refresh, self.root, bucket), bucket.below(FOLDER))
        files = self.files
        if not files:
            return 0
        waiting, broken = list[dict[str, Any]](), list[CorruptLakeError]()
        for path in files:
            with suppress(FileNotFoundError):  # another process took it in meanwhile
                try:
                    waiting.append(_read(path))
                except CorruptLakeError as error:
                    broken.append(error)
                    files = [other for other in files if other != path]
        n_new = ledger.alone_now(partial(_store, waiting=waiting, machine=ledger.machine)) if waiting else 0
        if bucket is not None:
            bucket.delete(path.relative_to(self.root).as_posix() for path in files)
        for path in files:
            path.unlink(missing_ok=True)
        if broken:
            raise broken[0]
        return n_new

    @contextmanager
    def told(self) -> Iterator[None]:
        """A StoreError that ends the block says also how many replies wait here, and how many are lost."""
        try:
            yield
        except StoreError as error:
            if self.n_lost:
                log.warning(
                    "%d paid replies could be stored neither in the ledger nor in %s: they will be asked again",
                    self.n_lost,
                    self.root,
                )
            n_waiting = len(self.files)
            if not n_waiting or type(error) not in (StoreError, RefusedLedgerError) or FOLDER in str(error):
                raise
            where = f"{n_waiting:,} paid replies wait in {self.root / FOLDER}"
            raise type(error)(
                f"{error}. {where}: running the same command again stores them first, without paying again"
            ) from error


def _store(connection: Connection, waiting: list[dict[str, Any]], machine: Machine) -> int:
    """Their attempts end, and those the ledger lacks are stored, with the re-asks they are owed."""
    rows = [one["reply"] for one in waiting]
    there = queries.digests(connection, [row["request_key"] for row in rows])
    replies, reasks = list[dict[str, Any]](), list[dict[str, Any]]()
    for one, row in zip(waiting, rows, strict=True):
        key, ask_index = row["request_key"], row["ask_index"]
        ended = {"id": one["attempt_id"], "at": row["received_at_us"], "how": row["status"], "why": row["error_detail"]}
        connection.execute(END, ended)
        if (key, ask_index) not in there:
            replies.append(row)
            if one["is_reasked"]:
                reasks.append(queries.attempt_row(key, ask_index + 1, row["judge_model"], machine))
    for table, new in ((REPLIES, replies), (ATTEMPTS, reasks)):
        if new:
            connection.execute(insert_where_absent(connection.engine, table), new)
    return len(replies)


def _read(path: Path) -> dict[str, Any]:
    """What a file holds; a column that an earlier Salon did not keep is null. Raises CorruptLakeError."""
    why = "its content is something else"
    try:
        said = json.loads(content_of(path))
        row = {column.name: _of_json(said["reply"].get(column.name)) for column in REPLIES.columns}
        if (
            isinstance(said["attempt_id"], str)
            and isinstance(said["is_reasked"], bool)
            and all(map(_fits, REPLIES.columns, row.values()))
        ):
            if path.stem == f"{row['request_key']}-{row['ask_index']}":
                return {**said, "reply": row}
            why = "it is the reply to a different request than its name says"
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        why = str(error)
    raise CorruptLakeError(
        f"{path} is not a paid reply that Salon put there ({why}); restore it from a backup, or move it away, also "
        "from a bucket: its request is then asked again. The other waiting replies are stored"
    )


def _fits(column: Column[Any], value: object) -> bool:
    allowed = (int, float) if column.type.python_type is float else column.type.python_type
    return isinstance(value, allowed) if value is not None else bool(column.nullable)


def _as_json(value: object) -> object:
    return {"utf8": value.decode()} if isinstance(value, bytes) else value


def _of_json(value: Any) -> Any:
    return value["utf8"].encode() if isinstance(value, dict) else value
