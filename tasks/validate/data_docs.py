"""The files of Data Docs that are the library's own: kept once for all runs. The pages are written by expecting.py."""

import filecmp
import uuid
from contextlib import suppress
from pathlib import Path


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
