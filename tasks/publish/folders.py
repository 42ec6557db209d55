"""What every published folder has in common: names, manifest, taking its place at once. What stands in one is elsewhere."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from schemas.errors import CorruptLakeError, StoreError
from schemas.tables.table import SCHEMA_VERSION
from tasks.lake.atomic_files import fsync_folder, make_folder, sha256_of_file
from tasks.lake.object_store.cache_folder import fresh, seal, working_root
from tasks.lake.own_places import remove

LAYOUT = "v1"
MANIFEST, PROVENANCE = "manifest.json", "provenance.json"
POINTER, GOOD_POINTER = "latest.json", "latest_good.json"
REPORT, INDEX = "report.html", "index.html"
AGREEMENTS = "agreement"
"""The folder of a benchmark's agreements with people or a judge, a pointer of their own beside them."""
PARTITIONS_PAGE = "partitions.html"


@dataclass(frozen=True, slots=True)
class PublicationName:
    """What a publication, of a benchmark's tables or of its agreement with people, is called."""

    benchmark: str
    publication_id: str
    run_date: date

    @property
    def said(self) -> dict[str, object]:
        """What every JSON file of the publication begins with."""
        return asdict(self) | {"schema_version": SCHEMA_VERSION}


@dataclass(frozen=True, slots=True)
class Published:
    """Where a publication stands; whether this call wrote it; whether the pointer says it is the current one, or why not."""

    folder: Path
    publication_id: str
    is_new: bool
    is_current: bool
    why_not_current: str | None = None


def publication_folder(lake_root: Path, benchmark: str, publication_id: str) -> Path:
    """The folder of a publication."""
    return lake_root / "publish" / LAYOUT / benchmark / publication_id


def is_published(folder: Path) -> bool:
    """Whether the folder was published: in a lake on a bucket, there. Raises CorruptLakeError where it is there and not whole."""
    if working_root(folder):
        return fresh(folder / MANIFEST) is not None
    if not folder.exists():
        return False
    if not (folder / MANIFEST).is_file():
        raise CorruptLakeError(f"{folder} has no {MANIFEST}, so it is not a complete publication; move it away and run again")
    return True


def manifest_of(staged: Path, named: Mapping[str, object]) -> bytes:
    """manifest.json: what the folder is, and each file's size and sha256."""
    files = {p.name: {"n_bytes": p.stat().st_size, "sha256": sha256_of_file(p)} for p in sorted(staged.iterdir())}
    return as_json(dict(named) | {"files": files})


def take_place(staged: Path, folder: Path, beside: Iterable[Path] = ()) -> bool:
    """Make the staged folder the published one; False where another run was quicker with the same, whose folder then counts.

    In a lake on a bucket it is put there first, the manifest last, with the files `beside` it that it names.
    """
    root = working_root(folder)
    if root is not None:
        own = [path for path in sorted(staged.iterdir()) if path.name != MANIFEST]
        files = [*((path, path) for path in beside), *((folder / path.name, path) for path in own)]
        if not seal(root, files, (folder / MANIFEST, staged / MANIFEST)):
            return False
        remove(root, folder)
    return _renamed(staged, folder)


def _renamed(staged: Path, folder: Path) -> bool:
    try:
        fsync_folder(staged)
        make_folder(folder.parent)
        staged.rename(folder)
        fsync_folder(folder.parent)
    except OSError as error:
        if (folder / MANIFEST).is_file():
            return False
        raise StoreError(
            f"publishing {folder} failed: {error}; free space or repair the disk, then run the same command again"
        ) from error
    return True


def as_json(value: Mapping[str, object]) -> bytes:
    """A published JSON file: sorted keys, dates in ISO form."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, indent=2, default=lambda day: day.isoformat())
    return f"{text}\n".encode()
