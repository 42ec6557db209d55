"""A ledger that is a SQLite file: the file itself, who may write it and the two beside it. What it holds is tables.py."""

import os
import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy.engine import URL

from schemas.errors import StoreError
from tasks.lake.atomic_files import make_folder
from tasks.lake.not_writable import barred, told
from tasks.regular_files import NotRegularError, content_of

_LARGEST_PAGE = 65_536  # of SQLite, in bytes
_BESIDE = ("", "-wal", "-shm")


def sqlite_file(url: URL) -> Path | None:
    """The file of a SQLite database, named by its path or as `file:PATH?uri=true`; None for other databases."""
    if url.get_backend_name() != "sqlite" or not url.database or url.database == ":memory:":
        return None
    return Path(url.database.removeprefix("file:")).resolve()


def prepare(file: Path, *, is_uri: bool = False) -> None:
    """What must be there before SQLite opens the file: its folder, and the file with the mode that the umask leaves.

    SQLite makes the file itself where it is named by a URI, which may say that there is none, or nothing to write.
    SQLite would let no group write what it makes. The two files beside it get the mode of the file, and the owner that opens
    it: of one that may not write, they would lock out those who may. Raises StoreError, OSError.
    """
    make_folder(file.parent)
    with suppress(FileExistsError):
        if not is_uri:
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666))
    _forget_unwritten(file)
    if os.access(file.parent, os.W_OK) and (found := not_writable(file)) is not None:
        raise StoreError(f"the ledger {file} cannot be used: {'; '.join(found)}")


def not_writable(file: Path) -> tuple[str, str] | None:
    """Which of the ledger's files, or its folder, this user may not write, and what to do; None where that is not the cause."""
    if not os.access(file, os.F_OK):
        return None
    found = barred((*(Path(f"{file}{end}") for end in _BESIDE), file.parent))  # in the folder SQLite makes the two beside it
    return told(found, "the ledger") if found else None


def _forget_unwritten(path: Path) -> None:
    """Empty a file of one page of zeros: a power cut left it of a ledger being made, and SQLite calls it no database.

    One that is larger, or in use, is not even opened: closing it would undo the locks of another connection of this process.
    Raises StoreError where no file stands there: SQLite would wait for a pipe.
    """
    try:
        is_used = path.stat().st_size > _LARGEST_PAGE or Path(f"{path}-wal").exists()
        begun = b"" if is_used else content_of(path, _LARGEST_PAGE + 1)
        if 0 < len(begun) <= _LARGEST_PAGE and not any(begun):
            os.truncate(path, 0)
    except NotRegularError as error:
        raise StoreError(f"the ledger {path} cannot be used: {error}; check the folder it is in, or name another") from error
    except OSError:
        return  # SQLite says what is in the way


def set_up_sqlite(connection: Any, busy_timeout_ms: int) -> None:
    """Every commit is on the disk before it returns; readers do not wait for the writer."""
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {busy_timeout_ms}")
    _switch_to_wal(cursor, time.monotonic() + busy_timeout_ms / 1000)
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA temp_store = MEMORY")  # else what undoes a savepoint goes to TMPDIR, and a full one undoes all
    cursor.close()


def _switch_to_wal(cursor: Any, give_up_at: float) -> None:
    """SQLite does not wait for other processes that open the same new file: its busy timeout leaves out this one statement."""
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if time.monotonic() > give_up_at or "readonly" in str(error):
                raise
            time.sleep(0.02)
        else:
            return
