"""Where tables stand: a folder, or a prefix of an object store. It reads names and bytes, and writes nothing."""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from salon.errors import SalonError

if TYPE_CHECKING:
    from obstore.store import S3Store

LAYOUT = "publish/v1"
_URL = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])((?:/[A-Za-z0-9_=+@,.-]+)*)/?")


@dataclass(frozen=True, slots=True)
class Place:
    """A lake, or what of it was copied. `tables` is the part of a name that leads from it to what was published."""

    root: str
    tables: str = f"{LAYOUT}/"

    @classmethod
    def of(cls, place: str | Path) -> Self:
        """The lake at a folder or address; a folder may be its `publish` or `publish/v1` as well. Raises SalonError."""
        if str(place).startswith("s3://"):
            if not _URL.fullmatch(str(place)):
                raise SalonError("the address of a lake on an object store is s3://bucket/prefix; keys come from the environment")
            return cls(str(place).rstrip("/"))
        folder = Path(place).expanduser().resolve()
        for inside in (f"{LAYOUT}/", "v1/", ""):
            if any(any((folder / inside).glob(one)) for one in ("*/*/manifest.json", "*/agreement/*/manifest.json")):
                return cls(str(folder), inside)
        if not folder.is_dir():
            raise SalonError(f"{folder} is not a folder; name a lake, such as salon.open('lake')")
        raise SalonError(f"{folder} contains no publication: name a lake in which `salon run` or `salon demo` published one")

    @property
    def is_remote(self) -> bool:
        """Whether it is an object store."""
        return self.root.startswith("s3://")

    def read(self, name: str) -> bytes | None:
        """The content of a file; None where there is none. Raises SalonError where it cannot be read."""
        with _told(f"{self.root}/{name}"), suppress(FileNotFoundError):
            return bytes(_store(self.root).get(name).bytes()) if self.is_remote else _content_of(Path(self.root, name))
        return None

    def names(self, folder: str, ending: str) -> list[str]:
        """The files somewhere below a folder whose names end so, sorted. Raises SalonError where a store cannot be read."""
        if self.is_remote:
            with _told(f"{self.root}/{folder}"):
                found = [str(one["path"]) for batch in _store(self.root).list(prefix=folder.rstrip("/")) for one in batch]
        else:
            root = Path(self.root)
            found = [path.relative_to(root).as_posix() for path in (root / folder).rglob(f"*{ending}")]
        return sorted(name for name in found if name.endswith(ending))

    def children(self, folder: str) -> list[str]:
        """The folders in a folder, by their own names, sorted. Raises SalonError where a store cannot be read."""
        if self.is_remote:
            with _told(f"{self.root}/{folder}"):
                found = [str(one) for one in _store(self.root).list_with_delimiter(folder.rstrip("/"))["common_prefixes"]]
        else:
            found = [path.name for path in Path(self.root, folder).glob("*") if path.is_dir()]
        return sorted(name.rstrip("/").rpartition("/")[2] for name in found)


@contextmanager
def _told(place: str) -> Iterator[None]:
    """Whatever a client or the system says, in one line."""
    try:
        yield
    except Exception as error:
        said = str(error).partition("\n")[0][:300]
        raise SalonError(f"{place} cannot be read: {said}", 3) from error


def _content_of(path: Path) -> bytes:
    """A pipe would be waited for without end, and a device read so."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("it is not a regular file")
        return file.read()


@lru_cache(maxsize=8)
def _store(url: str) -> "S3Store":
    """A client; keys and region are found in the environment."""
    from obstore.store import S3Store

    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    address = os.environ.get("AWS_ENDPOINT_URL") or os.environ.get("AWS_ENDPOINT")
    own: dict[str, Any] = {"endpoint": address} if address else {}
    is_plain = bool(address and address.startswith("http://"))
    return S3Store(bucket, prefix=prefix or None, client_options={"allow_http": is_plain, "timeout": "300s"}, **own)
