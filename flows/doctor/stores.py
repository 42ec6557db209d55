"""Whether ledger, lake and disk can be written, and hold the same. What was tried is taken back; nothing is mended here."""

import asyncio
import secrets
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import polars as pl
from sqlalchemy import delete, insert
from sqlalchemy.engine import Connection

from flows.doctor.findings import Finding, ok, shortened, skipped, wrong
from flows.run.clock import MAX_OFF_S, how_far
from schemas.statuses.rows import FINAL_REPLY_STATUSES
from schemas.tables.stored import REPLIES
from tasks.context import StageContext
from tasks.lake.atomic_files import fsync_folder, write_bytes
from tasks.lake.identity import later_release
from tasks.lake.not_writable import barred_of_lake
from tasks.lake.reading import Lake
from tasks.ledger.connection import DAMAGED, parse_url, without_password
from tasks.ledger.ledger import Ledger
from tasks.ledger.sqlite_files import not_writable, sqlite_file
from tasks.ledger.statements import ahead_s
from tasks.ledger.tables import WRITERS

LEDGER, LEDGER_CLOCK, LAKE, SYNC, DISK = "ledger", "ledger's clock", "lake", "lake and ledger", "disk"
LEAST_FREE_BYTES = 1 << 30
"""A night of some thousand pictures takes some hundred MB; with 32 MB left for the ledger nothing is bought any more."""
_FREE = (
    f"free some space: a night needs at least {LEAST_FREE_BYTES / 1e9:.0f} GB. salon gc FILE shows what the lake does not need; "
    "with --yes it deletes it"
)
N_COMPARED = 500
"""Replies of the newest snapshot that are looked for in the ledger."""
MAX_AWAY_S = 2.0
CHECKED_S = 5.0
"""For reading through an embedded ledger: some GB. What is behind that is not looked at."""


def check_ledger(run: StageContext) -> Iterator[Finding]:
    """A row written and taken back, as the only writer. A ledger that is not there yet is not made."""
    shown = without_password(run.ledger_url)
    if not is_there(run.ledger_url):
        yield ok(LEDGER, f"{shown} does not exist yet: the first run creates it")
        return
    file = sqlite_file(parse_url(run.ledger_url))
    if file is not None and (barred := not_writable(file)) is not None:
        yield wrong(LEDGER, *barred)
        return
    if file is not None and (damage := _damage(file)) is not None:
        yield wrong(LEDGER, f"{shown}: {shortened(damage)}", DAMAGED)
        return
    with Ledger(run.ledger_url, max_away_s=MAX_AWAY_S, busy_timeout_ms=10_000) as ledger:
        asyncio.run(ledger.alone(_write, is_lasting=False))
        off_s = ledger.read(ahead_s)
    yield ok(LEDGER, f"{shown} can be written")
    if off_s is not None:
        found = f"this machine's clock is {how_far(off_s)} that of the ledger's server"
        is_well = abs(off_s) < MAX_OFF_S
        yield (
            ok(LEDGER_CLOCK, found)
            if is_well
            else wrong(LEDGER_CLOCK, found, "synchronize it with NTP: it decides which night is due")
        )


def is_there(url: str) -> bool:
    """Whether there is a ledger to look at: a server always is, a file where it was made."""
    file = sqlite_file(parse_url(url))
    return file is None or file.is_file()


def _damage(file: Path) -> str | None:
    """What SQLite finds broken in the file, as far as it comes in CHECKED_S; None where nothing is, or it is not to be read."""
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, check_same_thread=False)) as connection:
        end = threading.Timer(CHECKED_S, connection.interrupt)
        end.start()
        try:
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.OperationalError:  # interrupted, or locked, which the ledger itself is asked about next
            return None
        except sqlite3.DatabaseError as error:
            return str(error) if "malformed" in str(error) else None
        finally:
            end.cancel()
            end.join()
    return None if found == "ok" else str(found)


def _write(connection: Connection) -> None:
    writer_id = "doctor" + secrets.token_hex(13)
    connection.execute(insert(WRITERS), [{"writer_id": writer_id, "commit_id": writer_id, "committed_at_us": 0}])
    connection.execute(delete(WRITERS).where(WRITERS.c.writer_id == writer_id))


def check_lake(lake: Lake, benchmark: str) -> Iterator[Finding]:
    """A file written, synced, read and removed; and whether this user may write the folders that the benchmark's nights do."""
    if (barred := barred_of_lake(lake.root, benchmark)) is not None:
        yield wrong(LAKE, *barred)
        return
    if (later := later_release(lake.root)) is not None:
        said, _, advice = later.partition("; ")
        yield wrong(LAKE, said, advice)
        return
    name, content = f"doctor-{secrets.token_hex(8)}", secrets.token_bytes(1 << 16)
    if lake.bucket:
        lake.bucket.put(name, content)
        found = lake.bucket.get(name)
        lake.bucket.delete([name])
        read = found[0] if found else b""
    else:
        read = content
    here = _written(lake.root, name, content)  # of a bucket the cache on this machine, which a run writes too
    if read == here == content:
        yield ok(LAKE, f"{lake.place} can be written and read")
    else:
        yield wrong(
            LAKE, f"{lake.place} returns other bytes than were written", "check the disk or the store before the next run"
        )


def _written(root: Path, name: str, content: bytes) -> bytes:
    """What is read of what was written; folders that were made for it are gone again."""
    made = [folder for folder in (root / "staging", root, *root.parents) if not folder.exists()]
    path = root / name
    try:
        (root / "staging").mkdir(parents=True, exist_ok=True)
        write_bytes(content, path, root / "staging")
        fsync_folder(root)
        return path.read_bytes()
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)
            for folder in made:
                folder.rmdir()


def check_sync(run: StageContext) -> Iterator[Finding]:
    """Whether the ledger has the first replies of the lake's newest snapshot: one that was lost or put back lacks them."""
    lake = run.lake
    written_at = lake.written_at(REPLIES)
    if not written_at:
        yield skipped(SYNC, "the lake has no snapshot of replies yet")
    elif not is_there(run.ledger_url):
        yield wrong(SYNC, f"the lake has {len(written_at)} snapshots, but there is no ledger", _REFILL)
    else:
        yield _compared(run, max(written_at, key=written_at.__getitem__))


_REFILL = "was it deleted, or restored from a copy? salon plan FILE refills it from the lake, and so does the next run"


def _compared(run: StageContext, snapshot_id: str) -> Finding:
    final, is_all = first_replies(run.lake, snapshot_id)
    first = "" if is_all else "the first "
    with Ledger(run.ledger_url, max_away_s=MAX_AWAY_S) as ledger:
        n_known = len(ledger.known(final))
    if n_known == len(final):
        return ok(SYNC, f"{n_known} of {first}{len(final)} replies of the newest snapshot are in the ledger")
    lacks = f"the ledger lacks {len(final) - n_known} of {first}{len(final)} replies of the lake's newest snapshot"
    return wrong(SYNC, lacks, _REFILL)


def first_replies(lake: Lake, snapshot_id: str, most: int = N_COMPARED) -> tuple[list[str], bool]:
    """The first requests with a final reply in a snapshot, part by part, and whether it has no more of them."""
    is_final = pl.col("status").is_in([status.value for status in FINAL_REPLY_STATUSES])
    found: dict[str, None] = {}
    for path in lake.parts(REPLIES, snapshot_id):
        found |= dict.fromkeys(pl.scan_parquet(path).filter(is_final).select("request_key").collect()["request_key"])
        if len(found) > most:
            return list(found)[:most], False
    return list(found), True


def places(run: StageContext) -> list[Path]:
    """The folders that a run writes to on this machine."""
    file = sqlite_file(parse_url(run.ledger_url))
    return [run.lake.root, *([file.parent] if file else [])]


def check_disk(*places: Path) -> Iterator[Finding]:
    """Free bytes where the lake and the ledger stand; of two on one disk the first is told."""
    seen: set[int] = set()
    for place in places:
        there = next(folder for folder in (place, *place.parents) if folder.exists())
        if there.stat().st_dev in seen:
            continue
        seen.add(there.stat().st_dev)
        n_free = shutil.disk_usage(there).free
        found = f"{f'{n_free / 1e9:.1f} GB' if n_free >= LEAST_FREE_BYTES else f'{n_free / 1e6:.0f} MB'} free at {there}"
        if n_free >= LEAST_FREE_BYTES:
            yield ok(DISK, found)
        else:
            yield wrong(DISK, found, _FREE)
