"""What stands in a lake, item by item: files, bytes and age. Which of it stays is retention.py, taking it away collecting.py."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from schemas.tables.field import DIGEST_LENGTH
from tasks.ingest.known_sources import FOLDER as SOURCES
from tasks.lake.reading import PARTITION_KEYS, Lake
from tasks.publish.folders import AGREEMENTS, LAYOUT
from tasks.publish.machine_tables import FOLDER as TABLES
from tasks.publish.machine_tables import tables_folder
from tasks.publish.report.tile_cache import FOLDER as TILES_FOLDER

PUBLICATION, DATA_DOCS, STAGING, NOTE, LOCK, PART, SOURCE, TILES = (
    "publication",
    "data docs",
    "staging",
    "note",
    "lock",
    "tables of a publication",
    "known source",
    "small pictures",
)
NOTES: Final = ("planned", "taken", "verdicts")
TRASH: Final = "gc-"
"""How the folders in staging/ begin that a clearing moves things to: what is left there was on its way out."""


@dataclass(frozen=True, slots=True)
class Item:
    """What goes or stays as one: `paths` in the order in which they are taken away, so that no reader meets a half."""

    kind: str
    name: str
    paths: tuple[Path, ...]
    benchmark: str = ""
    changed_at_s: float = field(init=False)

    def __post_init__(self) -> None:
        """Its time is that of its newest path: of a partition that of its marker, written last."""
        times = [path.stat().st_mtime for path in self.paths if path.exists()]
        object.__setattr__(self, "changed_at_s", max(times, default=0.0))


def inventory(lake: Lake) -> list[Item]:
    """Everything in the lake that a clearing may take away. What Salon did not write is not among it."""
    found = [*_publications(lake.root), *_agreements(lake.root)]
    known = {item.name for item in found}
    found += _orphans(lake.root, known)
    for table, key_name in PARTITION_KEYS.items():
        found += _partitions(lake.root, table, key_name)
    docs = (path for path in (lake.root / "data_docs").glob("*/") if len(path.name) == DIGEST_LENGTH)
    found += [Item(DATA_DOCS, path.name, (path,)) for path in docs]
    found += [Item(NOTE, f"{name}/{path.stem}", (path,)) for name in NOTES for path in (lake.root / name).glob("*.json")]
    found += [Item(SOURCE, path.stem, (path,)) for path in (lake.root / SOURCES).glob("*.z")]
    found += [Item(TILES, path.stem, (path,)) for path in (lake.root / TILES_FOLDER).glob("*.parquet")]
    found += [Item(STAGING, path.name, (path,)) for path in (lake.root / "staging").glob("*")]
    found += [Item(LOCK, path.name, (path,)) for path in (lake.root / "locks").glob("*.lock")]
    return sorted(found, key=lambda item: (item.kind, item.benchmark, item.changed_at_s, item.name))


def n_bytes_of(items: Iterable[Item], *, is_linked_too: bool = False) -> int:
    """Bytes that are free once these items are gone: a file that something else links to stays, unless `is_linked_too`."""
    sizes: dict[tuple[int, int], tuple[int, int]] = {}
    n_taken: Counter[tuple[int, int]] = Counter()
    for found in (path.lstat() for item in items for path in _files(item.paths)):
        inode = found.st_dev, found.st_ino
        sizes[inode] = found.st_size, found.st_nlink
        n_taken[inode] += 1
    return sum(size for inode, (size, n_links) in sizes.items() if is_linked_too or n_taken[inode] >= n_links)


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            for folder, _, names in os.walk(path):
                yield from (Path(folder) / name for name in names)
        elif path.exists():
            yield path


def _publications(root: Path) -> Iterator[Item]:
    """Each with its rows among the tables for machines: nobody finds those once the publication is gone."""
    for folder in (root / "publish" / LAYOUT).glob("*/*/"):
        if len(folder.name) == DIGEST_LENGTH and folder.parent.name != TABLES:
            rows = sorted(tables_folder(root).glob(f"*/benchmark_name={folder.parent.name}/publication={folder.name}"))
            yield Item(PUBLICATION, folder.name, (folder, *rows), folder.parent.name)


def _agreements(root: Path) -> Iterator[Item]:
    for folder in (root / "publish" / LAYOUT).glob(f"*/{AGREEMENTS}/*/"):
        if len(folder.name) == DIGEST_LENGTH:
            yield Item(PUBLICATION, folder.name, (folder,), f"{folder.parents[1].name}/{AGREEMENTS}")


def _orphans(root: Path, known: set[str]) -> Iterator[Item]:
    """Rows among the tables for machines whose publication was never finished, or went in a clearing that was killed."""
    for path in tables_folder(root).glob("*/benchmark_name=*/publication=*/"):
        if path.name.partition("=")[2] not in known:
            yield Item(PART, path.name.partition("=")[2], (path,), path.parent.name.partition("=")[2])


def _partitions(root: Path, table: str, key_name: str) -> Iterator[Item]:
    """The marker goes first: a partition without one is no partition."""
    folders = {path.name.partition("=")[2]: path for path in (root / table).glob(f"{key_name}=*/")}
    markers = {path.stem: path for path in (root / "complete" / table).glob("*.json")}
    for key in sorted(folders.keys() | markers.keys()):
        yield Item(table, key, tuple(path for path in (markers.get(key), folders.get(key)) if path is not None))
