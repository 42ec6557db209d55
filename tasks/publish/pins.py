"""Pins: publications that somebody wants to keep whatever `salon gc` is told, `pins/<publication>.json` in the lake."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tasks.lake.atomic_files import locked
from tasks.lake.notes import drop_note, read_notes, write_note
from tasks.lake.object_store.cache_folder import pull

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
    remedy = "pin that publication again"
    found = read_notes(lake_root, lake_root / FOLDER, lambda said: Pin(**said), "a pin that Salon wrote", remedy)
    return sorted(found.values(), key=lambda pin: (pin.pinned_at, pin.publication_id))


def pin(lake_root: Path, publication_id: str, because: str = "") -> Pin:
    """Pin a publication, in place of an earlier pin of it; a clearing that takes publications away now is waited for.

    Look afterwards whether it is there: what such a clearing took was not pinned.
    """
    made = Pin(publication_id, datetime.now(UTC).isoformat(timespec="seconds"), because)
    target = lake_root / FOLDER / f"{publication_id}.json"
    with pinning(lake_root):
        write_note(lake_root, target, made)
    return made


def unpin(lake_root: Path, publication_id: str) -> bool:
    """Take a pin away; whether there was one."""
    pull(lake_root, FOLDER)
    path = lake_root / FOLDER / f"{publication_id}.json"
    if not path.is_file():
        return False
    drop_note(lake_root, path)
    return True
