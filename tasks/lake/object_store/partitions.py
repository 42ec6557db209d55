"""A table's partitions in a bucket: parts fetched and checked, parts staged by any machine, one marker by whoever is first.

`<table>/<key_name>=<key>/part-00000.<first 16 of its sha256>.parquet`: a part's name in the bucket says what it holds, so that
two runs that write the same partition cut otherwise never put one over the other's; which of them count, its marker says.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from schemas.errors import CorruptLakeError, StoreError
from tasks.lake.atomic_files import sha256_of_file
from tasks.lake.markers import PART, content_of_marker, describe, entries_of
from tasks.lake.object_store.client import Bucket, Stored, each
from tasks.lake.own_places import LEFTOVER_AGE_S

STAGING = "staging"


def bring_parts(
    bucket: Bucket, root: Path, folder: Path, entries: Iterable[Mapping[str, Any]], *, is_checked: bool = True
) -> None:
    """Fetch the parts that are missing here. Raises CorruptLakeError for one that is gone or not what its marker says.

    Without `is_checked` they are fetched as they are, and those that are gone left out.
    """

    def bring(entry: Mapping[str, Any]) -> None:
        path = folder / entry["name"]
        if path.is_file() and path.stat().st_size == entry["n_bytes"]:
            return
        name = f"{folder.relative_to(root).as_posix()}/{object_name(entry)}"
        digest = bucket.download(name, path, root / STAGING)
        if is_checked and digest != entry["sha256"]:
            path.unlink(missing_ok=True)
            what = "is gone" if digest is None else f"has the sha256 {digest}, not {entry['sha256']} as its marker says"
            raise CorruptLakeError(
                f"{bucket.url}/{name} {what}; restore it, or delete {folder.name} and its marker in the bucket and run again"
            )

    each(bring, entries)


def object_name(entry: Mapping[str, Any]) -> str:
    """A part's name in the bucket."""
    return f"{Path(entry['name']).stem}.{entry['sha256'][:16]}.parquet"


def put_staged(bucket: Bucket, root: Path, path: Path) -> None:
    """Put a staged part into the bucket, with what its marker will say of it; an earlier one of its number is replaced."""
    entry = describe(path)
    notes = {"rows": str(entry["n_rows"]), "sha256": str(entry["sha256"])}
    bucket.put(path.relative_to(root).as_posix(), path, notes)


def bring_staged(bucket: Bucket, root: Path, folder: Path, only: str | None = None) -> list[dict[str, Any]]:
    """Fetch the parts of a staging that other machines wrote, or one of them; what there is, in order."""

    def bring(found: tuple[Stored, dict[str, Any]]) -> None:
        one, entry = found
        path = root / one.path
        if not path.is_file() or path.stat().st_size != one.n_bytes or sha256_of_file(path) != entry["sha256"]:
            bucket.download(one.path, path, root / STAGING)

    there = [one for one in parts_staged(bucket, root, folder) if only in (None, Path(one.path).name)]
    entries = each(lambda one: _entry(bucket, one), there)
    each(bring, zip(there, entries, strict=True))
    return entries


def commit_staged(
    bucket: Bucket, root: Path, there: Sequence[Stored], target: Path, marker: Path, shard_size: int | None
) -> bytes:
    """Copy a staging's parts (parts_staged) to their partition and put its marker, if none is there; the marker that is.

    The marker is created under the store's condition, so one of several wins; who loses takes away what he put and is not named.
    """
    entries = each(lambda one: _entry(bucket, one), there)
    home, name = target.relative_to(root).as_posix(), marker.relative_to(root).as_posix()
    mine = [f"{home}/{object_name(entry)}" for entry in entries]
    each(lambda pair: bucket.copy(pair[0].path, pair[1]), zip(there, mine, strict=True))
    content = content_of_marker(entries, shard_size)
    if bucket.create(name, content):
        return content
    found = bucket.get(name)
    if found is None:
        raise StoreError(f"{bucket.url}/{name} was deleted in the meantime; run the same command again")
    theirs = {f"{home}/{object_name(entry)}" for entry in entries_of(marker, found[0])}
    bucket.delete(path for path in mine if path not in theirs)
    return found[0]


def sweep_bucket(bucket: Bucket, age_s: float = LEFTOVER_AGE_S) -> None:
    """Delete what killed runs left staged. A staging is as old as its youngest part."""
    stagings: dict[str, list[Stored]] = defaultdict(list)
    for one in bucket.below(STAGING):
        stagings[one.path.split("/")[1]].append(one)
    oldest_s = time.time() - age_s
    old = [found for found in stagings.values() if max(one.changed_at.timestamp() for one in found) < oldest_s]
    bucket.delete(one.path for found in old for one in found)


def parts_staged(bucket: Bucket, root: Path, folder: Path) -> Sequence[Stored]:
    """The parts of a staging, in order. None is fetched."""
    found = bucket.below(folder.relative_to(root).as_posix())
    return [one for one in found if PART.fullmatch(Path(one.path).name)]


def _entry(bucket: Bucket, one: Stored) -> dict[str, Any]:
    """What the marker says of a staged part, from the notes of the machine that wrote it."""
    notes = bucket.notes(one.path)
    try:
        return {"name": Path(one.path).name, "n_rows": int(notes["rows"]), "n_bytes": one.n_bytes, "sha256": notes["sha256"]}
    except KeyError as error:
        raise CorruptLakeError(f"{bucket.url}/{one.path} was not written by Salon; remove it, then run again") from error
