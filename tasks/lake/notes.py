"""Notes: small JSON files of the lake, a folder for each kind, written and read whole. What they say, their writers know."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from schemas.errors import CorruptLakeError
from tasks.lake.atomic_files import fsync_folder, write_bytes
from tasks.lake.object_store.cache_folder import bucket_behind, pull, push
from tasks.regular_files import content_of

Note = TypeVar("Note")


def write_note(lake_root: Path, path: Path, note: Any) -> None:
    """Write a dataclass down, in place of an earlier note at the path."""
    write_bytes(json.dumps(asdict(note), sort_keys=True, indent=1).encode(), path, lake_root / "staging")
    push(lake_root, path)


def read_notes(
    lake_root: Path, folder: Path, make: Callable[[Any], Note], what: str, remedy: str, name: str = "*"
) -> dict[str, Note]:
    """A folder's notes by their names, sorted; `make` makes one of its JSON. Raises CorruptLakeError: not `what`; `remedy`."""
    found = dict[str, Note]()
    pull(lake_root, folder)
    for path in sorted(folder.glob(f"{name}.json")):
        try:
            found[path.stem] = make(json.loads(content_of(path)))
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
            raise CorruptLakeError(f"{path} is not {what} ({error}); {remedy}") from error
    return found


def drop_note(lake_root: Path, path: Path) -> None:
    """Take a note away that is there."""
    bucket = bucket_behind(lake_root)
    if bucket is not None:
        bucket.delete([path.relative_to(lake_root).as_posix()])
    path.unlink()
    fsync_folder(path.parent)
