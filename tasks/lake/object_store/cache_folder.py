"""The working folder before a bucket: small files brought up to date, missing ones fetched, own ones sent. Tables: reading.py.

A file that never changes (a part, a marker, a published file) is fetched once. One that may change is never believed: it is
compared with the store's listing first. The folder may be deleted at any time. Its last name is the bucket's whole address
(`s3%3A%2F%2Fbucket%2Fprefix`): whatever holds the lake's path knows the bucket behind it, and none can take the one for a lake.
"""

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from schemas.errors import CorruptLakeError, InputError, StoreError
from tasks.lake.atomic_files import locked, sha256_of_file, write_bytes
from tasks.lake.object_store.client import Bucket, Stored, each
from tasks.lake.object_store.settings import endpoint, split_url
from tasks.lake.own_places import remove

CLEARED = "cleared.json"
"""Written by every clearing of a bucket's lake (flows/garbage_collection/bucket.py)."""

_NAME = "s3%3A%2F%2F"
_LONGEST_NAME = 255  # bytes, on every file system there is


def is_url(place: str) -> bool:
    """Whether a lake's place is an address, not a folder."""
    return "://" in place


def working_folder(url: str) -> Path:
    """The folder a bucket's lake is worked in, below $SALON_CACHE or the user's cache folder. Raises InputError."""
    bucket, prefix = split_url(url)
    name = quote(f"s3://{bucket}/{prefix}".rstrip("/"), safe="")
    if len(name) > _LONGEST_NAME:
        raise InputError(f"lake: {url} is too long by {len(name) - _LONGEST_NAME} characters; use a shorter prefix")
    address = endpoint()
    store = quote(urlsplit(address).netloc.rpartition("@")[2], safe="") if address else "aws"
    return _cache_folder() / store / name


def url_of(root: Path) -> str | None:
    """The address of the bucket behind a working folder; None for a folder that is a lake itself."""
    return unquote(root.name) if root.name.startswith(_NAME) else None


def working_root(path: Path) -> Path | None:
    """The working folder a path lies in, None where it lies in none."""
    return next((parent for parent in (path, *path.parents) if parent.name.startswith(_NAME)), None)


def _cache_folder() -> Path:
    said = os.environ.get("SALON_CACHE")
    try:
        return Path(said).resolve() if said else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "salon"
    except RuntimeError:
        raise InputError("this user has no home folder to cache the bucket's files in; export SALON_CACHE=/a/folder") from None


def bucket_behind(root: Path) -> Bucket | None:
    """The bucket a lake's folder is the working folder of; None where the folder is the lake."""
    url = url_of(root)
    return Bucket(url) if url else None


def bring(path: Path) -> Path:
    """A file that never changes once it is there, fetched where it is missing here. In a lake without a bucket: the path."""
    root = working_root(path)
    bucket = bucket_behind(root) if root else None
    if root and bucket and not path.is_file():
        bucket.download(_relative(root, path), path, root / "staging")
    return path


def fresh(path: Path) -> str | None:
    """Make a small file that may change the one of the bucket, gone where it has none; its e_tag, for replacing it.

    Nothing, and None, in a lake without a bucket.
    """
    root = working_root(path)
    bucket = bucket_behind(root) if root else None
    if root is None or bucket is None:
        return None
    found = bucket.get(_relative(root, path))
    if found is None:
        path.unlink(missing_ok=True)
        return None
    if not path.is_file() or path.read_bytes() != found[0]:
        write_bytes(found[0], path, root / "staging")
    return found[1]


def pull(root: Path, folder: Path | str) -> None:
    """Make the files of a folder those that the bucket holds now. Nothing in a lake without a bucket. Raises StoreError."""
    bucket = bucket_behind(root)
    if bucket is None:
        return
    there = bucket.below((root / folder).relative_to(root).as_posix())
    known = {root / one.path for one in there}
    each(lambda one: refresh(root, bucket, one), there)
    for path in (root / folder).rglob("*"):
        if path not in known and path.is_file():
            remove(root, path)


def refresh(root: Path, bucket: Bucket, one: Stored) -> Path:
    """Fetch an object that the listing shows, unless the file here has its content; its time is the object's."""
    path = root / one.path
    if not _is_same(path, one):
        bucket.download(one.path, path, root / "staging")
        with suppress(OSError):  # gone again since it was listed
            os.utime(path, (one.changed_at.timestamp(),) * 2)
    return path


def forget_cleared(root: Path) -> None:
    """Forget the partitions that a clearing took out of the bucket since this was called last. Nothing in a lake without one.

    A marker that stands here is believed elsewhere: a run would not write again what is gone, and publish from it.
    """
    bucket = bucket_behind(root)
    note = bucket.get(CLEARED) if bucket else None
    if bucket is None or note is None:
        return
    with locked(root, "cleared"):
        own = root / CLEARED
        if own.is_file() and own.read_bytes() == note[0]:
            return
        there = {one.path: one for one in bucket.below("complete")}
        for marker in (root / "complete").glob("*/*.json"):
            one = there.get(_relative(root, marker))
            if one is None or not _is_same(marker, one):
                marker.unlink(missing_ok=True)
                for folder in root.glob(f"{marker.parent.name}/*={marker.stem}"):
                    remove(root, folder)
        write_bytes(note[0], own, root / "staging")


def push(root: Path, *paths: Path) -> None:
    """Put files of the working folder into the bucket, over older ones. Nothing in a lake without a bucket."""
    bucket = bucket_behind(root)
    if bucket is not None:
        each(lambda path: bucket.put(_relative(root, path), path), paths)


def seal(root: Path, files: Iterable[tuple[Path, Path]], last: tuple[Path, Path]) -> bool:
    """Put files that never change into the bucket, then `last`, which says that all are there; whether this call sealed it.

    Each is (its place in the working folder, where it is now). Where another run sealed the same before, nothing is put. Raises
    StoreError where an unfinished attempt left other bytes: nobody can tell whether its run still lives.
    """
    bucket = bucket_behind(root)
    assert bucket is not None
    if bucket.get(_relative(root, last[0])) is not None:
        return False

    def put(file: tuple[Path, Path]) -> None:
        name = _relative(root, file[0])
        if not bucket.create(name, file[1]):
            found = bucket.get(name)
            if found is None or hashlib.sha256(found[0]).hexdigest() != sha256_of_file(file[1]):
                raise StoreError(
                    f"{bucket.url}/{name} already holds different bytes: another run is publishing the same with "
                    "other library versions, or was killed while doing so; once no run is active, delete that folder and run "
                    "again"
                )

    each(put, files)
    return bucket.create(_relative(root, last[0]), last[1])


def _relative(root: Path, path: Path) -> str:
    relative = path.relative_to(root).as_posix()
    if ".." in path.parts:
        raise CorruptLakeError(f"{relative!r} is not a place in a lake")
    return relative


def _is_same(path: Path, one: Stored) -> bool:
    """Whether a small file has an object's content. The e_tag of most stores is the MD5; where it is not, the file is fetched."""
    try:
        if path.stat().st_size != one.n_bytes:
            return False
        return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest() == one.e_tag.strip('"')
    except OSError:
        return False
