"""The files of a source's folder, in one order on every machine."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from schemas.errors import SourceError
from tasks.ingest.sources import ResolvedSource

IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".jfif", ".webp", ".gif", ".bmp", ".tif", ".tiff"})


def files_below(root: Path) -> Iterator[str]:
    """Every file below the root as a path relative to it, in order; hidden files and folders are left out."""
    return _files(root, is_wanted=lambda name: not name.startswith("."))


def hidden_pictures(root: Path) -> Iterator[str]:
    """What files_below leaves out and is called as pictures are; in no order."""
    for place in _files(root, is_wanted=lambda _: True):
        if "/." in f"/{place}" and Path(place).suffix.lower() in IMAGE_SUFFIXES:
            yield place


def _files(root: Path, is_wanted: Callable[[str], bool]) -> Iterator[str]:
    """Those below the root, a folder's own before its folders'; links to folders are not followed. At any depth: no recursion."""
    places = [""]
    while places:
        place = places.pop()
        try:
            entries = sorted((one for one in os.scandir(root / place) if is_wanted(one.name)), key=lambda entry: entry.name)
        except OSError:
            continue
        folders = []
        for entry in entries:
            if not _is_folder(entry):
                yield place + entry.name
            elif not entry.is_symlink():
                folders.append(f"{place}{entry.name}/")
        places += reversed(folders)


def some_file_below(root: Path, is_wanted: Callable[[str], bool]) -> bool:
    """Whether a file below the root has a wanted name: up to the first. True where a folder cannot be looked into."""
    places = [os.fspath(root)]
    while places:
        try:
            with os.scandir(places.pop()) as entries:
                for entry in entries:
                    if entry.name.startswith("."):
                        continue
                    if not _is_folder(entry):
                        if is_wanted(entry.name):
                            return True
                    elif not entry.is_symlink():
                        places.append(entry.path)
        except OSError:
            return True
    return False


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def files_of(source: ResolvedSource, suffix: str, advice: str) -> list[str]:
    """The source's file, or those of its folder with this suffix, below its root. Raises SourceError where there is none."""
    if source.path.is_file():
        return [source.path.name]
    found = [place for place in files_below(source.path) if place.endswith(suffix)]
    if not found:
        raise SourceError(f"source {source.name!r}: {source.path} holds no {suffix} file{advice}")
    return found
