"""What of a lake is its own: what no link within it leads to. Whatever Salon sweeps, locks or clears there is reached here.

Whoever may write into a lake may put a link in the place of a folder. Tables are read and written through one, as the lake itself
may stand behind one; nothing is deleted, and no lock taken. By descriptors, so that no link can take a folder's place meanwhile.
"""

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from schemas.errors import CorruptLakeError

LEFTOVER_AGE_S = 2 * 86_400.0

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_LOCK = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a network disk locks what is open for writing


@contextmanager
def own_folder(root: Path, folder: Path) -> Iterator[int]:
    """A descriptor of a folder of the lake. Raises CorruptLakeError where it, or one above it in the lake, is a link; OSError."""
    descriptor, path = os.open(root, _FOLDER), root
    try:
        for name in folder.relative_to(root).parts:
            path /= name
            inner = _opened(descriptor, name, path, _FOLDER | os.O_NOFOLLOW)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def open_lock(root: Path, path: Path) -> int:
    """A descriptor of a lock's file, made where there is none; what it holds stays. Raises CorruptLakeError, OSError."""
    with own_folder(root, path.parent) as folder:
        descriptor = _opened(folder, path.name, path, _LOCK)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise CorruptLakeError(f"{path} is not a regular file, as a lock must be; delete it and run the same command again")


def linked_at(root: Path, path: Path) -> Path | None:
    """The first link between the lake's root and the end of this path; None where what stands there is the lake's own."""
    places = [path, *path.parents]
    below = reversed(places[: places.index(root)])
    return next((place for place in below if place.is_symlink()), None)


def remove(root: Path, path: Path) -> None:
    """Remove a file or folder of the lake. A link, and what is behind one, stays, and so does what cannot be removed."""
    with suppress(OSError, CorruptLakeError), own_folder(root, path.parent) as folder:
        remove_in(folder, path.name)


def remove_in(folder: int, name: str) -> None:
    """The same within a folder that own_folder() opened. Raises OSError."""
    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if stat.S_ISDIR(mode):
        shutil.rmtree(name, dir_fd=folder)
    elif not stat.S_ISLNK(mode):
        os.unlink(name, dir_fd=folder)


def sweep(lake_root: Path) -> None:
    """Remove what killed runs left in staging days ago; what a living run stages is younger: each part touches its folder.

    By the file system's own clock: to a machine whose clock is days ahead, what its neighbours write is old. Raises
    CorruptLakeError where staging is a link: nothing is taken away through one.
    """
    staging = lake_root / "staging"
    with suppress(OSError), own_folder(lake_root, staging) as folder:
        oldest_s = _file_clock_s(staging) - LEFTOVER_AGE_S
        for entry in list(os.scandir(folder)):
            with suppress(OSError):  # another run may sweep too
                if entry.stat(follow_symlinks=False).st_mtime < oldest_s:
                    remove_in(folder, entry.name)


def _file_clock_s(folder: Path) -> float:
    """What time it is where the folder is kept."""
    with suppress(OSError), tempfile.NamedTemporaryFile(dir=folder, suffix=".tmp") as file:
        return os.fstat(file.fileno()).st_mtime
    return time.time()


def _opened(folder: int, name: str, path: Path, flags: int) -> int:
    try:
        return os.open(name, flags, 0o666, dir_fd=folder)
    except OSError:
        if path.is_symlink():
            raise CorruptLakeError(
                f"{path} is a link (to {path.readlink()}): what is locked or deleted in a lake must be inside the lake. Replace "
                "the link by a folder or file; to keep a lake elsewhere, link the whole lake"
            ) from None
        raise
