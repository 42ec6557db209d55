"""Where Data Docs stand: a run's pages are put there whole, the library's own files kept once. expecting.py writes them."""

import filecmp
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tasks.durable import locked, place_folder, store_error


@contextmanager
def put_in_place(folder: Path, lake_root: Path) -> Iterator[Path]:
    """Where to write pages that take the place of `folder` when the block ends.

    The library empties a folder before it writes there, and runs of the same replies may write the same one at once.
    Raises StoreError.
    """
    written = lake_root / "staging" / f"data_docs-{uuid.uuid4().hex}"
    try:
        with store_error(f"writing {folder}"):
            yield written
            with locked(lake_root, f"data_docs-{folder.name}"):
                place_folder(written, folder)
    finally:
        shutil.rmtree(written, ignore_errors=True)


def share_static(folder: Path, shared: Path) -> None:
    """Make the fonts and pictures below `folder/static` links to those below `shared`, where they are the same.

    They are 20 of a run's 31 files and 4 of its 4.5 MB. The first run's become the shared ones; on a file system without links,
    or where another version of the library wrote others, each folder keeps its own.
    """
    for path in sorted((folder / "static").rglob("*")):
        if path.is_file():
            with suppress(OSError):  # whatever fails, the file that is there is as good
                _share(path, shared / path.relative_to(folder / "static"))


def _share(path: Path, same: Path) -> None:
    if not same.exists():
        same.parent.mkdir(parents=True, exist_ok=True)
        same.hardlink_to(path)
    elif not path.samefile(same) and filecmp.cmp(path, same, shallow=False):
        linked = path.with_name(f"{uuid.uuid4().hex}.tmp")
        linked.hardlink_to(same)
        linked.replace(path)
