"""Opening what must be a regular file: a pipe in its place would be waited for without end, a device read until memory is full.

It is asked of what was opened, not of the name, behind which another file may stand a moment later.
"""

import os
import stat
from contextlib import suppress
from io import BufferedReader
from pathlib import Path

_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
}


class NotRegularError(OSError, ValueError):
    """Something else stands where a file should; to whoever expects none or a damaged one there, it is such a one."""


def opened(path: Path) -> BufferedReader:
    """The file, to read it. Raises NotRegularError, OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe without a writer would hold us up here
    kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    if kind == stat.S_IFREG:
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise NotRegularError(f"it is {_KINDS.get(kind, 'something else')}, not a regular file")


def content_of(path: Path, n_bytes: int = -1) -> bytes:
    """What the file holds, or so many bytes of its beginning. Raises NotRegularError, OSError."""
    with opened(path) as file:
        return file.read(n_bytes)


def write_new(path: Path, content: bytes) -> None:
    """Write a file that is not there yet; none is left if it cannot be written whole. Raises FileExistsError, OSError."""
    try:
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError:
        raise
    except OSError:
        with suppress(OSError):
            path.unlink()
        raise
