"""Reader `webdataset`: tar files whose consecutive members with one key are a sample: key.png, key.json, key.txt.

Rows have the JSON's keys, `__key__`, `image`, `txt`, and `prompt` from the text where the JSON has none. Archives are
streamed, never extracted: a member that is no plain file, leads elsewhere or repeats a name makes its row unusable.
"""

import hashlib
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from schemas.errors import SourceError
from schemas.input_budget import ARCHIVE_TEXT_BYTES, JSON_LEVELS, PICTURE_BYTES, is_too_deep
from schemas.json_text import loads
from schemas.statuses.rows import SampleStatus
from tasks.ingest.paths import RefusedPath, is_inside, locate, quote
from tasks.ingest.rows import DatasetReader, RawRow
from tasks.ingest.source_files import IMAGE_SUFFIXES, files_of
from tasks.ingest.sources import ResolvedSource


class _Archive:
    """An archive's file as tarfile reads its headers: none may be larger than a text, for an extension is read whole."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek, self.tell = file.seek, file.tell

    def read(self, n: int) -> bytes:
        """Of a header (a long name, PAX records)."""
        if not 0 <= n <= ARCHIVE_TEXT_BYTES:
            raise ValueError(f"a header of {n} bytes; {ARCHIVE_TEXT_BYTES} are allowed")
        return self._file.read(n)

    def content(self, member: tarfile.TarInfo) -> bytes:
        """Of a member whose size was looked at."""
        self._file.seek(member.offset_data)
        found = self._file.read(member.size)
        if len(found) < member.size:
            raise tarfile.ReadError("unexpected end of data")
        return found


@dataclass(slots=True)
class _Group:
    """One sample's members so far."""

    key: str
    members: dict[str, bytes] = field(default_factory=dict)  # by suffix; every picture under "image"
    image_name: str | None = None
    status: SampleStatus = SampleStatus.OK
    detail: str | None = None

    def refuse(self, status: SampleStatus, detail: str) -> None:
        """Make the row unusable; the first reason stands."""
        if self.status is SampleStatus.OK:
            self.status, self.detail = status, detail

    def values(self) -> dict[str, Any]:
        """The row's columns; metadata that cannot be read makes the row unusable."""
        found: Any = {}
        text: str | None = None
        try:
            found = loads(self.members.get("json", b"{}").decode("utf-8-sig"))
            text = self.members["txt"].decode("utf-8-sig") if "txt" in self.members else None
        except (ValueError, RecursionError) as error:
            self.refuse(SampleStatus.BAD_VALUE, f"the metadata of {quote(self.key)} cannot be read: {quote(str(error))}")
        if is_too_deep(found):
            self.refuse(SampleStatus.BAD_VALUE, f"the metadata of {quote(self.key)} is nested in more than {JSON_LEVELS} levels")
            found = {}
        if not isinstance(found, dict):
            self.refuse(SampleStatus.BAD_VALUE, f"{quote(self.key)}.json is a JSON {type(found).__name__}, not an object")
            found = {}
        image = {"bytes": self.members["image"], "path": self.image_name} if "image" in self.members else None
        columns: dict[str, Any] = {"prompt": text} | found
        return columns | {"__key__": self.key, "txt": text, "image": image}


def read_rows(source: ResolvedSource) -> Iterator[RawRow]:
    """Rows of every .tar, archives in order of path."""
    for place in files_of(source, ".tar", " (compressed ones must be unpacked to .tar)"):
        path = locate(source.root, place)
        if isinstance(path, RefusedPath):
            raise SourceError(f"source {source.name!r}: {path.detail}")
        times: dict[bytes, int] = {}
        for number, group in enumerate(_groups(path, place, is_alone=source.path.is_file()), 1):
            digest = hashlib.blake2b(group.key.encode("utf-8", "surrogatepass"), digest_size=16).digest()
            times[digest] = times.get(digest, 0) + 1
            if times[digest] > 1:
                detail = f"an earlier sample of the archive has the key {quote(group.key)}; that sample is used"
                group.refuse(SampleStatus.REPEATED_ID, detail)
            # A repeated key gets a number: two members with one name are never taken for each other.
            key = f"{place}:{group.key}" + (f" ({times[digest]})" if times[digest] > 1 else "")
            values = group.values()
            yield RawRow(values, place, number, key, status=group.status, detail=group.detail)


def _groups(path: Path, place: str, *, is_alone: bool) -> Iterator[_Group]:
    """The archive's samples; where it breaks off, a last one that says so (or a SourceError, if it is all there is)."""
    group: _Group | None = None
    usual: set[str] = set()  # the members that samples before it have
    after = "its beginning"
    problem: str | None = None
    n_bytes = path.stat().st_size
    try:
        with path.open("rb") as file, tarfile.TarFile(fileobj=cast("BinaryIO", content := _Archive(file))) as archive:
            for member in _members(archive):
                key, suffix = _split(member.name)
                if group is None or group.key != key:
                    if group is not None:
                        usual |= group.members.keys()
                        yield group
                    group = _Group(key)
                _take(group, content, member, suffix)
                after = member.name
                if archive.offset > n_bytes:
                    problem = f"a member of {member.size} bytes extends beyond the end of the archive"
                    break
            else:
                problem = _what_follows(path, archive.offset)
    except Exception as error:  # noqa: BLE001  hostile headers raise far more than tarfile.TarError
        problem = str(error) or type(error).__name__
    if group is not None:
        yield _as_cut(group, usual, place, problem)
    elif problem and is_alone:
        raise SourceError(f"{place} cannot be read as a tar file: {quote(problem)}")
    if problem:
        broken = _Group(f"after {quote(after)}")
        broken.refuse(SampleStatus.BAD_VALUE, f"{quote(place)} is broken after {quote(after)}: {quote(problem)}")
        yield broken


def _members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Those of samples. Raises TarError for one of a negative size: the next header would be its own, its content all behind."""
    while member := archive.next():
        archive.members.clear()  # type: ignore[attr-defined]  # a stream of a million members must not be remembered
        if member.size < 0 or archive.offset < member.offset_data:
            raise tarfile.ReadError("a member of a negative size")
        if not member.isdir() and _is_of_a_sample(member.name):
            yield member


def _as_cut(group: _Group, usual: set[str], place: str, problem: str | None) -> _Group:
    """An archive's last sample, unusable where it lacks what earlier ones have: a break has cut that off."""
    if problem and not usual <= group.members.keys():
        group.refuse(SampleStatus.BAD_VALUE, f"{quote(place)} is broken within {quote(group.key)}: {quote(problem)}")
    return group


def _what_follows(path: Path, offset: int) -> str | None:
    """What is wrong behind the last member, where tarfile stops without a word: an archive ends in two blocks of zeros."""
    n_bytes = 0
    with path.open("rb") as file:
        file.seek(offset)
        while block := file.read(1 << 20):
            n_bytes += len(block)
            if block.strip(b"\0"):
                return "what follows is not a tar header"
    return None if n_bytes >= 1024 else "its end marker is missing"


def _split(name: str) -> tuple[str, str]:
    """A member's key and suffix: the first dot of its last part divides them."""
    folder, slash, last = name.rpartition("/")
    stem, _, suffix = last.partition(".")
    return folder + slash + stem, suffix.lower()


def _is_of_a_sample(name: str) -> bool:
    """Not `README`, nor what begins with a dot: macOS puts a `._0001.png` beside each file."""
    key, suffix = _split(name)
    return bool(suffix and key.rpartition("/")[2])


def _take(group: _Group, archive: _Archive, member: tarfile.TarInfo, suffix: str) -> None:
    """Add one member to its sample, or the reason why it cannot be."""
    name = quote(member.name)
    is_image = f".{suffix}" in IMAGE_SUFFIXES
    slot = "image" if is_image else suffix
    limit = PICTURE_BYTES if is_image else ARCHIVE_TEXT_BYTES
    if not is_inside(member.name):
        group.refuse(SampleStatus.OUTSIDE_ROOT, f"the path of member {name} leads out of the archive")
    elif not member.isreg() or member.issparse():  # a sparse one is 64 MiB out of 512 bytes
        group.refuse(SampleStatus.NOT_A_FILE, f"the member {name} is a link, a device or a sparse file")
    elif slot not in {"image", "json", "txt"}:
        return
    elif slot in group.members:
        group.refuse(SampleStatus.REPEATED_ID, f"the member {name} occurs twice, or is a second picture of its key")
    elif member.size > limit:
        group.refuse(SampleStatus.FILE_TOO_LARGE, f"the member {name} has {member.size} bytes; {limit} are allowed")
    else:
        group.members[slot] = archive.content(member)
        group.image_name = PurePosixPath(member.name).name if is_image else group.image_name


READER = DatasetReader(read_rows)
