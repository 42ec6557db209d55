"""A ledger that is a SQLite file: the file itself, who may write it and the two beside it. What it holds is tables.py."""

import os
import pwd
import shlex
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
    """Which of the ledger's files this user may not write, whose they are, and what to do; None where that is not the cause."""
    found = dict[Path, os.stat_result]()
    for path in (Path(f"{file}{end}") for end in _BESIDE):
        with suppress(OSError):  # there is none, or nobody may look
            before = path.stat()
            is_barred = not os.access(path, os.W_OK) and not os.statvfs(path).f_flag & os.ST_RDONLY
            after = path.stat()
            # the last of several processes takes the files beside it away, and the next makes others
            if is_barred and (before.st_ino, before.st_ctime_ns) == (after.st_ino, after.st_ctime_ns):
                found[path] = after
    if not found:
        return None
    named = " and ".join(f"{path} (of {_owner(one)}, {stat.filemode(one.st_mode)})" for path, one in found.items())
    paths, is_mine = shlex.join(map(str, found)), all(one.st_uid == os.geteuid() for one in found.values())
    advice = f"chmod u+w {paths}" if is_mine else f"to share the ledger with its group, their owner runs: chmod g+w {paths}"
    return f"this user may not write {named}", advice


def _owner(of: os.stat_result) -> str:
    try:
        return pwd.getpwuid(of.st_uid).pw_name
    except KeyError:
        return f"user {of.st_uid}"


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
