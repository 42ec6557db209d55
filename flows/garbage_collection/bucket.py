"""A lake in a bucket, as `salon gc` weighs it and takes from it. What stays is retention.py, which knows nothing of buckets.

Weighed is a copy of the lake in a temporary folder: what the rules read, and of all else names, sizes and times alone.
"""

import json
import os
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from flows.garbage_collection.inventory import NOTES, PUBLICATION, Item
from flows.run.begun import FOLDER as ASKING
from schemas.errors import CorruptLakeError
from schemas.tables.stored import CHECKS, RUNS
from tasks.lake.atomic_files import store_error
from tasks.lake.object_store.cache_folder import CLEARED
from tasks.lake.object_store.client import Bucket, Stored, each
from tasks.lake.reading import PARTITION_KEYS, Lake
from tasks.publish.folders import GOOD_POINTER, MANIFEST, POINTER, PROVENANCE
from tasks.publish.withdrawn import FOLDER as WITHDRAWN
from tasks.stopping import check_not_stopped

_READ_IN = frozenset({"pins", "anchors", "nights", ASKING, WITHDRAWN, CHECKS.name, RUNS.name})
_READ = frozenset({MANIFEST, PROVENANCE, POINTER, GOOD_POINTER})
_KEPT_HERE_ALONE = frozenset({*NOTES, "data_docs", "locks"})  # of the cache folder, which may be deleted at any time


@contextmanager
def seen(lake: Lake) -> Iterator[Lake]:
    """The lake as the rules see it: itself, or the copy, which is gone when the block ends. Raises StoreError."""
    if lake.bucket is None:
        yield lake
        return
    with tempfile.TemporaryDirectory(prefix="salon-gc-") as name:
        bucket, root = lake.bucket, Path(name).resolve()
        with store_error(f"writing {root}"):
            each(lambda one: _copy(bucket, root, one), bucket.below(""))
        yield Lake(root)


def _copy(bucket: Bucket, root: Path, one: Stored) -> None:
    path = root / one.path
    first = one.path.partition("/")[0]
    if first in _KEPT_HERE_ALONE:
        return
    if first in _READ_IN or path.name in _READ:
        bucket.download(one.path, path, root / ".fetched")
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.truncate(one.n_bytes)
    if path.exists():  # gone since it was listed
        os.utime(path, (one.changed_at.timestamp(),) * 2)


def take_away(bucket: Bucket, root: Path, items: Sequence[Item]) -> None:
    """Delete the objects of items of the copy at `root`.

    Of a publication its manifest goes before the rest, of a partition its marker. All is noted in the bucket before: the next
    clearing ends one that was killed, and each machine's cache folder forgets what went.
    """
    going = {seal: below for item in items for seal, below in _sealed(root, item)}
    _note(bucket, going)
    for item in sorted(items, key=lambda item: item.kind != PUBLICATION):
        check_not_stopped()
        bucket.delete([seal for seal, _ in _sealed(root, item)])
        for path in item.paths:
            bucket.delete(_objects(root, path))


def end_killed(bucket: Bucket) -> None:
    """Take away what is left of what a clearing that was killed took the seal of. What was made anew since then stays."""
    found = bucket.get(CLEARED)
    try:
        going: Mapping[str, Sequence[str]] = json.loads(found[0])["going"] if found else {}
        left = {str(seal): [str(name) for name in names] for seal, names in going.items()}
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise CorruptLakeError(f"{bucket.url}/{CLEARED} is not a valid record of a salon gc run ({error}); delete it") from error
    for seal, names in left.items():
        if bucket.get(seal) is None:
            bucket.delete(one.path for name in names for one in bucket.below(name))
    if left:
        _note(bucket, {})


def _note(bucket: Bucket, going: Mapping[str, Sequence[str]]) -> None:
    """Each note is another than the last: by that a cache folder knows that it is behind."""
    bucket.put(CLEARED, json.dumps({"clearing": uuid.uuid4().hex, "going": going}, indent=1).encode())


def _sealed(root: Path, item: Item) -> Iterator[tuple[str, list[str]]]:
    """(the object that makes the item whole, its folders); nothing where it has none: such an item is found again."""
    names = [path.relative_to(root).as_posix() for path in item.paths]
    if item.kind == PUBLICATION:
        yield f"{names[0]}/{MANIFEST}", names
    elif item.kind in PARTITION_KEYS and names[0].endswith(".json"):
        yield names[0], names[1:]


def _objects(root: Path, path: Path) -> list[str]:
    found = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    return [one.relative_to(root).as_posix() for one in found]
