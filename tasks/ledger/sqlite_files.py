"""A ledger that is a SQLite file: the file itself, who may write it and the two beside it. What it holds is tables.py."""

import os
import sqlite3
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy.engine import URL

from schemas.errors import StoreError
from tasks.lake.atomic_files import make_folder
from tasks.regular_files import NotRegularError, content_of

_LARGEST_PAGE = 65_536  # of SQLite, in bytes
_BESIDE = ("", "-wal", "-shm")


def sqlite_file(url: URL) -> Path | None:
    """The file of a SQLite database, named by its path or as `file:PATH?uri=true`; None for other databases."""
    if url.get_backend_name() != "sqlite" or not url.database or url.database == ":memory:":
        return None
    return Path(url.database.removeprefix("file:")).resolve()


def prepare(file: Path) -> None:
    """What must be there before SQLite opens the file: its folder, and the file with the mode that the umask leaves.

    SQLite would let no group write what it makes. The two files beside it get the mode of the file, and the owner that opens
    it: of one that may not write, they would lock out those who may. Raises StoreError, OSError.
    """
    make_folder(file.parent)
    with suppress(FileExistsError):
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666))
    _forget_unwritten(file)
    if os.access(file.parent, os.W_OK) and (said := not_writable(file)) is not None:
        raise StoreError(f"the ledger {file} cannot be used: {said}")


def not_writable(file: Path) -> str | None:
    """Which of the ledger's files this user may not write, whose they are, and what to do; None where all can be written."""
    paths = [path for path in (Path(f"{file}{end}") for end in _BESIDE) if path.is_file() and not os.access(path, os.W_OK)]
    if not paths:
        return None
    found = [path.stat() for path in paths]
    named = [f"{path} (of {_owner(path)}, {stat.filemode(one.st_mode)})" for path, one in zip(paths, found, strict=True)]
    return (
        f"this user may not write {' and '.join(named)}; to share the ledger with their group, its owner runs: "
        f"chmod g+w {' '.join(map(str, paths))}"
    )


def _owner(path: Path) -> str:
    try:
        return path.owner()
    except KeyError:
        return f"user {path.stat().st_uid}"


def _forget_unwritten(path: Path) -> None:
    """Empty a file of one page of zeros: a power cut left it of a ledger being made, and SQLite calls it no database.

    A larger file is not even opened: closing it would undo the locks of another connection of this process. Raises StoreError
    where no file stands there: SQLite would wait for a pipe.
    """
    try:
        size = path.stat().st_size
        begun = b"" if size > _LARGEST_PAGE else content_of(path, _LARGEST_PAGE + 1)
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
