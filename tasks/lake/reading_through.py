"""A lake in which nothing may be written, read through a folder that may be: for what looks ahead and publishes nothing.

The folder holds links to all that the lake holds, and beside them what is made meanwhile; it is gone when the block ends.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tasks.lake.atomic_files import store_error
from tasks.lake.reading import Lake

_NOT_READ = frozenset({"staging", "locks"})
_DEPTHS = {"complete": 2}
"""Folders below the lake's root of which folders are made, not links: something is written beside what stands in them."""


def is_read_only(lake: Lake) -> bool:
    """Whether it is a folder that is there and that this process may not write into."""
    return lake.bucket is None and lake.root.is_dir() and not os.access(lake.root, os.W_OK)


@contextmanager
def read_through(lake: Lake) -> Iterator[Lake]:
    """The lake itself; where nothing may be written in it, a lake of links to it in a temporary folder."""
    if not is_read_only(lake):
        yield lake
        return
    with tempfile.TemporaryDirectory(prefix="salon-lake-") as name:
        root = Path(name).resolve()
        with store_error(f"linking {lake.place} into {root}"):
            for path in lake.root.resolve().iterdir():
                if path.name not in _NOT_READ:
                    _link(path, root / path.name, _DEPTHS.get(path.name, 1))
        yield Lake(root)


def _link(source: Path, target: Path, depth: int) -> None:
    if depth == 0 or not source.is_dir():
        target.symlink_to(source)
        return
    target.mkdir()
    for path in source.iterdir():
        _link(path, target / path.name, depth - 1)
