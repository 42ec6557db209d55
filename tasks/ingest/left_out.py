"""What of a source's folder is not read, or not by commas, and the note that says so. What a format reads is its reader's.

Of a million files counts are in memory, and eight bytes for each name that metadata says.
"""

import os
import posixpath
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from unicodedata import normalize

import numpy as np

from tasks.ingest.paths import encodable, is_inside, quote
from tasks.ingest.source_files import IMAGE_SUFFIXES, files_below, hidden_pictures
from tasks.ingest.sources import ResolvedSource

N_NAMED = 5
"""Suffixes and folders that a note names."""

_N_SUFFIXES, _SUFFIX_LENGTH = 1000, 12  # counted each by itself; a longer one is words behind a full stop
_AT_ONCE = 100_000  # files
_NO_SUFFIX, _OTHERS = "no suffix", "others"
_NO_PICTURES = frozenset(
    {".txt", ".md", ".rst", ".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".arrow", ".yaml", ".yml", ".toml"}
    | {".xml", ".html", ".ini", ".cfg", ".log", ".py", ".ipynb", ".sh", ".db", ".lock"}
)
"""What lies beside pictures and is none."""

_NAMES_OF_NO_PICTURE = frozenset({"readme", "license", "licence", "copying", "notice", "makefile", "checksums", "md5sums"})


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Files of a source that no row stands for; also of all the folders that the source's placeholders stand for."""

    source: str
    n_by_suffix: Mapping[str, int] = field(default_factory=dict)  # of a kind that is not read
    n_without_row: int = 0  # pictures that no metadata file names
    metadata: Sequence[str] = ()  # where those would be named
    empty: Sequence[str] = ()  # folders that a placeholder stands for and that hold no picture
    n_hidden: int = 0  # pictures whose name, or folder's, begins with a full stop
    separators: Sequence[str] = ()  # what is said of tables that are read otherwise than by commas

    def said(self) -> str:
        """What is left out, in a line of bounded length; empty where nothing is."""
        clauses = []
        if self.n_by_suffix:
            n = sum(self.n_by_suffix.values())
            what = f"{n:,} file is" if n == 1 else f"{n:,} files are"
            clauses.append(f"{what} not read ({_counted(self.n_by_suffix)}); pictures are {' '.join(sorted(IMAGE_SUFFIXES))}")
        if self.n_hidden:
            what = "1 hidden picture is" if self.n_hidden == 1 else f"{self.n_hidden:,} hidden pictures are"
            clauses.append(f"{what} not read (the name, or a folder's, begins with a dot)")
        if self.n_without_row:
            what = "1 picture has" if self.n_without_row == 1 else f"{self.n_without_row:,} pictures have"
            clauses.append(f"{what} no row in {_named(self.metadata)}")
        if self.empty:
            what = "folder holds" if len(self.empty) == 1 else "folders hold"
            clauses.append(f"{len(self.empty):,} {what} no picture: {_named(self.empty)}")
        clauses += self.separators[:N_NAMED]
        return "; ".join(clauses)


def left_out_of(source: ResolvedSource, named: "array[int] | None", metadata: Sequence[str] = ()) -> LeftOut:
    """What stands below the source's folder and is not read. `named`: numbers of the places that its metadata say, if any."""
    counts: Counter[str] = Counter()
    n_pictures = n_without_row = 0
    listed = None if named is None else np.unique(np.array(named))
    files = ((place, kind) for place in files_below(source.path) if (kind := _kind(place)) is not None)
    while some := list(islice(files, _AT_ONCE)):
        has_row = [False] * len(some) if listed is None else np.isin([number_of(place) for place, _ in some], listed)
        for (_, kind), is_read in zip(some, has_row, strict=True):
            is_picture = kind in IMAGE_SUFFIXES
            n_pictures += is_picture
            if not is_picture and not is_read:
                counts[kind if kind in counts or len(counts) < _N_SUFFIXES else _OTHERS] += 1
            n_without_row += is_picture and listed is not None and not is_read
    hidden = np.array(array("q", map(number_of, hidden_pictures(source.path))))
    n_hidden = len(hidden) if listed is None else int(np.isin(hidden, listed, invert=True).sum())
    is_empty = not n_pictures and not named and bool(source.prefix)
    where = [source.key(place) for place in metadata[: N_NAMED + 1]] if n_without_row else []
    empty = [encodable(source.prefix)] if is_empty else []
    return LeftOut(source.name, dict(counts), n_without_row, where, empty, n_hidden)


class RealPlaces:
    """Where below a root the files stand that its rows name: links of folders followed, each folder looked up once.

    Also of names that may not be followed, as ../a/1.png: a row that is refused is a row.
    """

    def __init__(self, root: Path) -> None:
        self._root = os.path.realpath(root)
        self._folder = lru_cache(100_000)(self._real_folder)

    def of(self, folder: str, path: str) -> str:
        """The place of what a row of this folder names; `path` is below the root where it may be followed."""
        if (".." in path or path.startswith("/")) and not is_inside(path):
            path = posixpath.join(folder, path)
        at, name = posixpath.split(path)
        return f"{self._folder(at)}/{name}"

    def _real_folder(self, folder: str) -> str:
        try:
            real = os.path.realpath(posixpath.join(self._root, folder))
        except (OSError, ValueError):  # a NUL, or what is no name
            return folder
        return posixpath.relpath(real, self._root)


def number_of(place: str) -> int:
    """A place below the root as a number of 64 bits, the same for each spelling that finds it."""
    return hash(normalize("NFC", posixpath.normpath(place)))


def notes_of(found: Iterable[LeftOut]) -> dict[str, str]:
    """By the name of each source of which something is left out, what that is."""
    by_source: dict[str, list[LeftOut]] = {}
    for one in found:
        by_source.setdefault(one.source, []).append(one)
    said = {name: _together(name, parts).said() for name, parts in by_source.items()}
    return {name: what for name, what in said.items() if what}


def _together(source: str, parts: Sequence[LeftOut]) -> LeftOut:
    counts: Counter[str] = Counter()
    for one in parts:
        counts.update(one.n_by_suffix)
    return LeftOut(
        source,
        counts,
        sum(one.n_without_row for one in parts),
        [place for one in parts for place in one.metadata],
        [place for one in parts for place in one.empty],
        sum(one.n_hidden for one in parts),
        [said for one in parts for said in one.separators],
    )


def _kind(place: str) -> str | None:
    """The suffix that a file is counted by; None for what is none of a data set's pictures."""
    stem, suffix = posixpath.splitext(posixpath.basename(place).lower())
    if suffix in _NO_PICTURES or stem in _NAMES_OF_NO_PICTURE:
        return None
    is_one = 1 < len(suffix) <= _SUFFIX_LENGTH and suffix[1:].isalnum() and not suffix[1:].isdecimal()
    return suffix if is_one else _NO_SUFFIX


def _counted(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda one: (one[0] == _OTHERS, -one[1], one[0]))
    shown, others = ordered[:N_NAMED], sum(n for _, n in ordered[N_NAMED:])
    return ", ".join(f"{encodable(kind)} {n:,}" for kind, n in [*shown, *([(_OTHERS, others)] if others else [])])


def _named(places: Sequence[str]) -> str:
    shown = ", ".join(quote(place, 60) for place in places[:N_NAMED])
    return shown + (", …" if len(places) > N_NAMED else "")
