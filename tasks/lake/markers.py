"""Completion markers: what they say of a partition's parts, and whether a part is still that."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import CorruptLakeError
from tasks.lake.atomic_files import sha256_of_file, sha256_of_footer, sha256_without_pictures
from tasks.regular_files import content_of

WITHOUT_PICTURES = "sha256_without_pictures"
FOOTER = "sha256_of_footer"
"""What a marker says beside a part's sha256, of a table that holds pictures: whoever reads none need not read them to be sure.
The footer's own, because it says which bytes are pictures, and pyarrow can end the process at one that is spoiled."""
PART = re.compile(r"part-\d{5,9}\.parquet")  # a longer name no file system may take
_SAID = {"name", "n_rows", "n_bytes", "sha256"}
_MAY_SAY = _SAID | {WITHOUT_PICTURES, FOOTER}  # under another name, a spoiled one too, a digest would not be looked at


def part_name(index: int) -> str:
    """The file name of a part."""
    return f"part-{index:05d}.parquet"


@lru_cache(maxsize=16)
def entries_in(marker: Path, changed_ns: int) -> dict[str, dict[str, Any]]:  # noqa: ARG001
    """What a marker that was written at this time says of each part, by name: read once, not for each of thousands."""
    return {entry["name"]: entry for entry in entries_of(marker, content_of(marker))}


def entries_of(marker: Path, content: bytes) -> list[dict[str, Any]]:
    """What a completion marker says of each part: name, n_rows, n_bytes, sha256. Raises CorruptLakeError."""
    try:
        entries = [dict(entry) for entry in json.loads(content)["parts"]]
        if all(PART.fullmatch(entry["name"]) and _SAID <= entry.keys() <= _MAY_SAY for entry in entries):
            return entries
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    raise CorruptLakeError(
        f"{marker} is not a marker that Salon wrote; delete it, also in the bucket if there is one, and run again"
    )


def content_of_marker(entries: Sequence[Mapping[str, Any]], shard_size: int | None) -> bytes:
    """A marker of these parts, and of the size by which its dataset was cut into them, if it is one."""
    return json.dumps({"parts": entries} | ({} if shard_size is None else {"shard_size": shard_size}), indent=1).encode()


def describe(path: Path) -> dict[str, Any]:
    """What a marker says of a part."""
    return {
        "name": path.name,
        "n_rows": pq.read_metadata(path).num_rows,
        "n_bytes": path.stat().st_size,
        "sha256": sha256_of_file(path),
    }


def describe_the_rest(path: Path) -> dict[str, str]:
    """What a marker says of a part beside its pictures."""
    return {WITHOUT_PICTURES: sha256_without_pictures(path), FOOTER: sha256_of_footer(path)}


def what_is_wrong(path: Path, entry: Mapping[str, Any], has_pictures: bool) -> str | None:
    """Why a part is not what its marker says, in a clause. Pictures are left out: each has a digest of its own."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return "is missing"
    if found.st_size != entry["n_bytes"]:
        return f"is {found.st_size} bytes long, not {entry['n_bytes']}"
    if has_pictures and FOOTER in entry and sha256_of_footer(path) != entry[FOOTER]:
        return "is not what was written: its footer differs"
    said = entry.get(WITHOUT_PICTURES) if has_pictures else entry["sha256"]
    if said is not None and _sha256_of(path, has_pictures, found.st_mtime_ns, found.st_ino) != said:
        return "is not what was written: its sha256 differs"
    return None


@lru_cache(maxsize=65_536)
def _sha256_of(path: Path, has_pictures: bool, _changed_ns: int, _inode: int) -> str:
    """Each file is read for this once in a process, 0.6 s for each GB."""
    try:
        return sha256_without_pictures(path) if has_pictures else sha256_of_file(path)
    except (pa.ArrowException, ValueError, OverflowError):  # a footer that cannot be read, or names places that are none
        return ""
    except OSError as error:
        if error.errno:
            raise
        return ""  # pyarrow's, of a footer too
