"""Pins: publications that somebody wants to keep whatever `salon gc` is told, `pins/<publication>.json` in the lake."""

import json
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from schemas.errors import CorruptLakeError
from tasks.lake.atomic_files import fsync_folder, locked, write_bytes
from tasks.lake.object_store.cache_folder import bucket_behind, pull, push
from tasks.regular_files import content_of

FOLDER = "pins"


@dataclass(frozen=True, slots=True)
class Pin:
    """A publication that stays, since when (ISO, UTC), and what for."""

    publication_id: str
    pinned_at: str
    because: str = ""


def pinning(lake_root: Path) -> AbstractContextManager[None]:
    """While the block runs nobody on this machine pins: what was read of pins still holds when publications have gone."""
    return locked(lake_root, FOLDER)


def pins(lake_root: Path) -> list[Pin]:
    """Every pin, the oldest first. Raises CorruptLakeError."""
    found: list[Pin] = []
    pull(lake_root, FOLDER)
    for path in (lake_root / FOLDER).glob("*.json"):
        try:
            found.append(Pin(**json.loads(content_of(path))))
        except (ValueError, TypeError, RecursionError) as error:
            raise CorruptLakeError(f"{path} is not a pin that Salon wrote ({error}); pin that publication again") from error
    return sorted(found, key=lambda pin: (pin.pinned_at, pin.publication_id))


def pin(lake_root: Path, publication_id: str, because: str = "") -> Pin:
    """Pin a publication, in place of an earlier pin of it; a clearing that takes publications away now is waited for.

    Look afterwards whether it is there: what such a clearing took was not pinned.
    """
    made = Pin(publication_id, datetime.now(UTC).isoformat(timespec="seconds"), because)
    target = lake_root / FOLDER / f"{publication_id}.json"
    with pinning(lake_root):
        write_bytes(json.dumps(asdict(made), sort_keys=True, indent=1).encode(), target, lake_root / "staging")
        push(lake_root, target)
    return made


def unpin(lake_root: Path, publication_id: str) -> bool:
    """Take a pin away; whether there was one."""
    pull(lake_root, FOLDER)
    path, bucket = lake_root / FOLDER / f"{publication_id}.json", bucket_behind(lake_root)
    if not path.is_file():
        return False
    if bucket is not None:
        bucket.delete([f"{FOLDER}/{path.name}"])
    path.unlink()
    fsync_folder(path.parent)
    return True
