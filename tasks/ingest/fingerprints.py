"""Fingerprints of a source's files, and of a shard's samples: other where a file is. Who remembers them is known_sources.py.

A file counts as unchanged by its size, times and inode, as in git's index, so no fingerprint stands for one that changed in the
moment before it was read.
"""

import os
import stat
import time
from dataclasses import dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

from schemas.records import Sample
from schemas.statuses.rows import SampleStatus
from tasks.ingest.paths import is_inside, locate
from tasks.ingest.shards import files_of, is_fetched

RESTLESS_NS = 2_000_000_000
"""A file that changed so shortly before it was read may change again within one tick of its file system's clock (FAT: 2 s)."""


@dataclass(slots=True)
class Fingerprint:
    """Of files below `root`, as they are when they are noted: before anyone opens them."""

    root: Path
    restless_ns: int = RESTLESS_NS
    n_absent: int = 0
    is_blind: bool = False  # some of it cannot be watched
    _seen: Any = field(default_factory=sha256)
    _newest_ns: int = 0
    _began_ns: int = field(default_factory=time.time_ns)

    @property
    def digest(self) -> str:
        """Other where a file is."""
        found: str = self._seen.hexdigest()
        return found

    def stands_for(self, n_missing: int) -> bool:
        """Whether all will be as it was read as long as the digest is the same. `n_missing`: pictures that were not found."""
        return not self.is_blind and self._newest_ns <= self._began_ns - self.restless_ns and n_missing <= self.n_absent

    def look(self, picture: str) -> os.stat_result | None:
        """Note the file of this name, or that there is none, as it is now."""
        found = _stat(f"{self.root}/{picture}")
        if found is None:
            other = locate(self.root, picture)  # in another spelling
            found = _stat(str(other)) if isinstance(other, Path) else None
        self.note(picture, found)
        return found

    def note(self, picture: str, found: os.stat_result | None) -> None:
        """Note a file that was looked at just now."""
        self.n_absent += found is None
        self._add(picture, found)

    def note_file(self, path: Path) -> None:
        """The file itself."""
        self._add("", _stat(str(path)))

    def note_folder(self, folder: Path) -> None:
        """Every file below the folder, at any depth."""
        places = [""]
        while places:
            place = places.pop()
            try:
                entries = sorted(os.scandir(f"{folder}{place}"), key=lambda entry: entry.name)
            except OSError:
                self.is_blind = True
                continue
            for entry in entries:
                name, found = f"{place}/{entry.name}", _stat(entry.path)
                if found is None or not stat.S_ISDIR(found.st_mode):  # None: a link that leads nowhere
                    self._add(name, found)
                elif entry.is_symlink():  # it may lead anywhere, round in a circle too
                    self.is_blind = True
                else:
                    self._add(f"{name}/", None)
                    places.append(name)

    def note_sample(self, sample: Sample) -> list[tuple[str, os.stat_result | None]]:
        """Note all that a sample says, and the pictures it names or carries; (its name, its file) of each that is named."""
        said: list[object] = [type(sample).__name__, *(getattr(sample, name) for name in _SAID), sorted(sample.texts.items())]
        said += [(one.role, one.path, one.content and sha256(one.content).hexdigest()) for one in sample.pictures]
        self._seen.update(repr(said).encode("utf-8", "surrogateescape"))
        self.is_blind |= is_fetched(sample)
        self.n_absent += sample.status is SampleStatus.MISSING_FILE  # its reader looked: a prompt's folder without a picture
        return [(name, self.look(name)) for name in files_of(sample) if is_inside(name)]

    def _add(self, name: str, found: os.stat_result | None) -> None:
        said = ""
        if found is not None:
            said = f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino} {found.st_mode}"
            self._newest_ns = max(self._newest_ns, found.st_mtime_ns, found.st_ctime_ns)
        self._seen.update(f"{name}\0{said}\n".encode("utf-8", "surrogateescape"))


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116 - a Path for each of a million files costs more than the look at it
    except (OSError, ValueError):
        return None


_SAID = [one.name for one in fields(Sample) if one.name not in {"texts", "image_path", "image_bytes", "others"}]
