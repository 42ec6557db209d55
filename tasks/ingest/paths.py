"""Paths that data names: found under their root or refused. What the bytes are is images/open.py's business.

Data is a manifest, an archive or a folder listing; the root is the user's own word and trusted.
"""

import os
import re
import stat
import unicodedata
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from schemas.input_budget import PICTURE_BYTES
from schemas.statuses.rows import SampleStatus

UNREADABLE = "cannot be read: "
"""Said of a file that is there: the next try may find it readable."""

_URL = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]+://|data:)")
_LOGIN = re.compile(r"(?<=//)[^/]*@")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


@dataclass(frozen=True, slots=True)
class RefusedPath:
    """A path that gives no bytes, and why."""

    status: SampleStatus
    detail: str


def read_file(root: Path, relative: str, max_bytes: int = PICTURE_BYTES) -> bytes | RefusedPath:
    """The bytes of the regular file `relative` names below `root`, or why there are none."""
    found = locate(root, relative)
    if isinstance(found, RefusedPath):
        return found
    try:
        # O_NONBLOCK: a pipe put in the file's place since locate() looked must not hold us up.
        with os.fdopen(os.open(found, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb", buffering=0) as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode):
                return _not_a_file(relative)
            if facts.st_size > max_bytes:
                detail = f"{quote(relative)} has {facts.st_size} bytes; {max_bytes} are allowed"
                return RefusedPath(SampleStatus.FILE_TOO_LARGE, detail)
            # As much as it says: room for all that is allowed would be mapped, and unmapped, for each picture.
            content = file.read(facts.st_size + 1)
            return content if len(content) == facts.st_size else content + file.read(max(0, max_bytes - len(content)))
    except OSError as error:
        return RefusedPath(SampleStatus.MISSING_FILE, f"{quote(relative)} {UNREADABLE}{error.strerror}")


def locate(root: Path, relative: str) -> Path | RefusedPath:
    """The real path of the regular file `relative` names below `root`, links followed, or why there is none.

    Tried in turn: the name as written, with backslashes as separators, and in the two Unicode normal forms (manifests
    are often written on another system than the one that holds the files).
    """
    refusal = _refuse_by_name(relative)
    if refusal:
        return refusal
    real_root = root.resolve()
    slashed = relative.replace("\\", "/")
    spellings = (relative, slashed, unicodedata.normalize("NFC", slashed), unicodedata.normalize("NFD", slashed))
    for spelling in dict.fromkeys(spellings):
        try:
            real = (real_root / spelling).resolve(strict=True)
            mode = real.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, RuntimeError, ValueError) as error:  # too long a name, a loop of links, not encodable
            return RefusedPath(SampleStatus.MISSING_FILE, f"{quote(relative)} cannot be looked up: {quote(str(error))}")
        if not real.is_relative_to(real_root):
            return RefusedPath(SampleStatus.OUTSIDE_ROOT, f"{quote(relative)} is a link out of the source's folder")
        return real if stat.S_ISREG(mode) else _not_a_file(relative)
    return RefusedPath(SampleStatus.MISSING_FILE, f"there is no file {quote(relative)} in the source's folder")


def is_remote(name: str) -> bool:
    """Whether a name is a URL."""
    return _URL.match(name) is not None


def bare_url(text: str) -> str:
    """A URL, readable or not, without what may be secret: a login, and whatever stands behind ? or #."""
    return _LOGIN.sub("", re.split(r"[?#]", text, maxsplit=1)[0])


def is_inside(name: str) -> bool:
    """Whether a name, taken as a path, can only lead below the folder it is seen from (links apart)."""
    return _refuse_by_name(name) is None


def quote(text: str, limit: int = 120) -> str:
    """Text out of data as it may stand in a message: quoted, one line, clipped, and encodable."""
    shown = repr(text if len(text) <= limit else text[: limit - 1] + "…")
    return encodable(shown)


def encodable(text: str) -> str:
    """The text with what UTF-8 cannot hold (bytes of undecodable file names) written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _refuse_by_name(relative: str) -> RefusedPath | None:
    slashed = relative.replace("\\", "/")
    name = quote(relative)
    if not relative.strip():
        return RefusedPath(SampleStatus.MISSING_VALUE, "the picture's path is blank; write null where a row has no picture")
    if is_remote(relative):
        where = quote(bare_url(relative))
        advice = "put the file in the folder, or name its host in the source's remote_hosts"
        return RefusedPath(SampleStatus.REMOTE_REFUSED, f"{where} is a URL; {advice}")
    if "\0" in relative:
        return RefusedPath(SampleStatus.OUTSIDE_ROOT, f"{name} holds a NUL character")
    if slashed.startswith("/") or _DRIVE.match(relative):
        return RefusedPath(SampleStatus.OUTSIDE_ROOT, f"{name} is absolute; write paths relative to the source's folder")
    if ".." in PurePosixPath(slashed).parts:
        return RefusedPath(SampleStatus.OUTSIDE_ROOT, f"{name} leaves the source's folder by '..'")
    return None


def _not_a_file(relative: str) -> RefusedPath:
    return RefusedPath(SampleStatus.NOT_A_FILE, f"{quote(relative)} is not a regular file")
