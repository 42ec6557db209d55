"""Requests to a bucket: read, create, replace, copy, list, delete, with errors that say what to do. Which: cache_folder.py.

What several machines may write at once is written under a condition of the store itself: `create` (If-None-Match: *) and
`replace` (If-Match). Names out of a listing are checked before any becomes a path.
"""

import hashlib
import logging
import os
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from schemas.errors import CorruptLakeError, StoreError
from tasks.lake.atomic_files import place, store_error
from tasks.lake.object_store.failures import DEFAULT_WAIT_S, advice, said_by
from tasks.lake.object_store.settings import endpoint, split_url, store_wait_s

if TYPE_CHECKING:
    from obstore.store import ClientConfig, S3Store

N_AT_ONCE = 16
N_BYTES_WHOLE = 64 * 2**20  # larger objects are sent in pieces
_N_BYTES_SHORT = 2**17
_WHOSE = "salon-written-by"
_NAME = re.compile(r"[^/\\\x00-\x1f\x7f]+(?:/[^/\\\x00-\x1f\x7f]+)*")
_log = logging.getLogger("salon.bucket")

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Stored:
    """One object as a listing shows it; `path` is below the lake's prefix."""

    path: str
    n_bytes: int
    e_tag: str
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class Bucket:
    """A lake's part of a bucket. A store that does not answer is asked again for SALON_STORE_WAIT_S, then it is a StoreError."""

    url: str

    def get(self, path: str) -> tuple[bytes, str] | None:
        """(content, e_tag) of a small object; None where there is none."""
        with self._asked("GET", path) as client:
            try:
                found = client.get(path)
                return bytes(found.bytes()), str(found.meta["e_tag"])
            except FileNotFoundError as error:
                _check_bucket(error)
                return None

    def get_range(self, path: str, start: int, n_bytes: int) -> bytes:
        """Some bytes of an object. Raises StoreError where it is gone or shorter."""
        with self._asked("GET", path) as client:
            found = bytes(client.get_range(path, start=start, length=n_bytes))
        if len(found) != n_bytes:
            raise StoreError(f"{self.url}/{path} is shorter than its marker says; restore it, then run again")
        return found

    def notes(self, path: str) -> Mapping[str, str]:
        """What was noted on an object when it was put there."""
        with self._asked("GET", path) as client:
            found = client.get(path, options={"range": (0, 1)})
            return {str(name): str(value) for name, value in found.attributes.items()}

    def download(self, path: str, target: Path, staging: Path) -> str | None:
        """Write an object to `target`, whole or not at all; its sha256, None where there is none."""
        temporary, digest = staging / f"{uuid.uuid4().hex}.tmp", hashlib.sha256()
        with store_error(f"fetching {self.url}/{path}"):
            staging.mkdir(parents=True, exist_ok=True)
        try:
            with self._asked("GET", path) as client, store_error(f"writing {target}"), temporary.open("wb") as file:
                try:
                    chunks = client.get(path).stream()
                except FileNotFoundError as error:
                    _check_bucket(error)
                    return None
                for chunk in chunks:
                    digest.update(chunk)
                    file.write(chunk)
            with store_error(f"writing {target}"):
                place(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
        return digest.hexdigest()

    def put(self, path: str, content: bytes | Path, notes: Mapping[str, str] | None = None) -> None:
        """Put an object there, in place of an older one."""
        n_bytes = content.stat().st_size if isinstance(content, Path) else len(content)
        with self._asked("PUT", path, n_bytes) as client:
            client.put(path, content, attributes=dict(notes or {}), use_multipart=n_bytes > N_BYTES_WHOLE)

    def create(self, path: str, content: bytes | Path) -> bool:
        """Put an object there unless there is one: False then. Of several that try at once one succeeds.

        Where the store's answer is lost, the request is sent again, and finds what it made: known by whose it is.
        """
        from obstore.exceptions import AlreadyExistsError

        n_bytes = content.stat().st_size if isinstance(content, Path) else len(content)
        whose = uuid.uuid4().hex
        with self._asked("PUT", path, n_bytes) as client:
            try:
                client.put(path, content, mode="create", attributes={_WHOSE: whose}, use_multipart=False)
            except AlreadyExistsError:
                with suppress(FileNotFoundError):  # gone since
                    return whose in map(str, client.get(path).attributes.values())
                return False
            return True

    def replace(self, path: str, content: bytes, e_tag: str) -> bool:
        """Put an object in place of the one with this e_tag; False where it is another by now, or gone."""
        from obstore.exceptions import PreconditionError

        # Some stores (radosgw 16) know an e_tag in a condition only without its quotation marks.
        for tag in dict.fromkeys((e_tag, e_tag.strip('"'))):
            with self._asked("PUT", path) as client:
                try:
                    client.put(path, content, mode={"e_tag": tag}, use_multipart=False)
                except (PreconditionError, FileNotFoundError):
                    continue
                return True
        return False

    def copy(self, source: str, target: str) -> None:
        """Copy an object, with its notes, inside the store."""
        with self._asked("COPY", source, N_BYTES_WHOLE) as client:
            client.copy(source, target)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete objects; one that is gone already is no error."""
        from obstore.exceptions import GenericError

        named = list(paths)
        if named:
            with self._asked("DELETE", f"{len(named)} objects") as client:
                try:
                    client.delete(named)
                except GenericError:  # the library does not ask again where an answer was cut: it is a POST
                    client.delete(named)

    def below(self, folder: str) -> list[Stored]:
        """Every object below a folder, in the order of their names."""
        with self._asked("LIST", folder) as client:
            found = [_stored(one) for some in client.list(folder) for one in some]
        return sorted(found, key=lambda one: one.path)

    def folders(self, folder: str) -> tuple[list[str], list[Stored]]:
        """The names of the folders in a folder, and the objects that stand directly in it."""
        with self._asked("LIST", folder) as client:
            found = client.list_with_delimiter(folder)
        names = [_checked(str(path)).rpartition("/")[2] for path in found["common_prefixes"]]
        return names, [_stored(one) for one in found["objects"]]

    @contextmanager
    def _asked(self, verb: str, path: str, n_bytes: int = 0) -> Iterator["S3Store"]:
        """The client, for one request of this size. The library's own words hold headers: only a part of them is passed on."""
        from obstore.exceptions import AlreadyExistsError, BaseError, InvalidPathError, PreconditionError

        _log.debug("%s %s", verb, path)
        try:
            yield _client(self.url, endpoint(), os.getpid(), is_long=n_bytes > _N_BYTES_SHORT)
        except (AlreadyExistsError, PreconditionError):
            raise
        except InvalidPathError:
            what = "Salon did not write an object of this name (an empty part, . or ..); remove that object"
            raise CorruptLakeError(f"{self.url}/{path}: {what}") from None
        except (BaseError, FileNotFoundError, ValueError) as error:
            failed = f"{verb} {self.url}/{path} failed: {said_by(error)}"
            raise StoreError(f"{failed}; {advice(verb, error)}, then run the same command again") from None


def each(work: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """`work` on every item, some at once, results in order."""
    listed = list(items)
    if len(listed) < 2:
        return [work(item) for item in listed]
    with ThreadPoolExecutor(min(N_AT_ONCE, len(listed))) as pool:
        return list(pool.map(work, listed))


@lru_cache(maxsize=8)
def _client(url: str, address: str | None, _pid: int, *, is_long: bool) -> "S3Store":
    """One client for a process: its connections do not outlive a fork. Keys are the library's to find, in the environment.

    A store that takes a request and says nothing has as long as one that cannot be reached. That counts from the request's
    first byte, so what takes long to send (`is_long`) has as long as a whole answer.
    """
    from obstore.store import S3Store

    bucket, prefix = split_url(url)
    wait = timedelta(seconds=store_wait_s(DEFAULT_WAIT_S))
    own: dict[str, Any] = {"endpoint": address} if address else {}
    options: ClientConfig = {"allow_http": bool(address and address.startswith("http://")), "timeout": "300s"}
    if wait and not is_long:
        options["read_timeout"] = max(wait / 2, timedelta(seconds=1))  # half, so that another connection is tried
    return S3Store(
        bucket,
        prefix=prefix or None,
        client_options=options,
        retry_config={"max_retries": 1000, "retry_timeout": wait},
        **own,
    )


def _stored(one: Mapping[str, Any]) -> Stored:
    return Stored(_checked(str(one["path"])), int(one["size"]), str(one["e_tag"] or ""), one["last_modified"])


def _checked(name: str) -> str:
    """A name out of a listing, where it can be a path below the lake. Raises CorruptLakeError."""
    if not _NAME.fullmatch(name) or {".", ".."}.intersection(name.split("/")):
        raise CorruptLakeError(f"the bucket holds an object that Salon did not write: {name[:200]!r}; remove it, then run again")
    return name


def _check_bucket(error: FileNotFoundError) -> None:
    """An object that is not there is an answer; a bucket that is not there is none."""
    if "<Code>NoSuchKey" not in str(error) and "NoSuchBucket" in str(error):
        raise error
