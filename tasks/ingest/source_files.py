"""The files of a source's folder, in one order on every machine."""

import os
from collections.abc import Iterator
from pathlib import Path

from schemas.errors import SourceError
from tasks.ingest.sources import ResolvedSource

IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".jfif", ".webp", ".gif", ".bmp", ".tif", ".tiff"})


def files_below(root: Path) -> Iterator[str]:
    """Every file below the root as a path relative to it, in order; hidden files and folders are left out."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        place = Path(folder).relative_to(root).as_posix()
        for name in sorted(files):
            if not name.startswith("."):
                yield name if place == "." else f"{place}/{name}"


def hidden_pictures(root: Path) -> Iterator[str]:
    """What files_below leaves out and is called as pictures are; in no order."""
    for folder, _, files in os.walk(root):
        place = Path(folder).relative_to(root)
        is_hidden = any(part.startswith(".") for part in place.parts)
        for name in files:
            if (is_hidden or name.startswith(".")) and Path(name).suffix.lower() in IMAGE_SUFFIXES:
                yield (place / name).as_posix()


def files_of(source: ResolvedSource, suffix: str, advice: str) -> list[str]:
    """The source's file, or those of its folder with this suffix, below its root. Raises SourceError where there is none."""
    if source.path.is_file():
        return [source.path.name]
    found = [place for place in files_below(source.path) if place.endswith(suffix)]
    if not found:
        raise SourceError(f"source {source.name!r}: {source.path} holds no {suffix} file{advice}")
    return found
