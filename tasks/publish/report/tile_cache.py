"""Tiles kept in the lake's folder `tiles/`, so that each is made once. How one is made, and sheets of them: sheets.py.

A file holds what one publication had to make, and never changes. It is named by its footer's digest, for pyarrow may end the
process at a spoiled one, and each tile has a digest of its own. What is torn, spoiled, gone or made otherwise is made again.
"""

import hashlib
import os
import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import StoreError
from tasks.lake.atomic_files import IMAGE_ROWS_PER_GROUP, place, scratch, sha256_of_footer, write_tables
from tasks.lake.own_places import remove

FOLDER = "tiles"

_N_FILES = 64
"""Kept, those used last: so many footers are read at most. What the others hold is made again, and stands in one new file."""

_LEAST_FREE_BYTES = 1 << 30  # what is left of a nearly full disk is for what must be written
_SCHEMA = pa.schema({
    "image_sha256": pa.string(), "image": pa.struct({"bytes": pa.binary(), "path": pa.string()}), "sha256": pa.string(),
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class TileCache:
    """The tiles of a lake, `recipe` naming all that they depend on beside the picture, in at least 16 letters.

    Of a lake in a bucket they stand in the working folder alone.
    """

    lake_root: Path
    recipe: str

    def take(self, digests: Collection[str]) -> Iterator[tuple[str, bytes]]:
        """(picture's sha256, tile) of those of the pictures whose tile is kept, a row group in memory at a time."""
        left, used = set(digests), dict[Path, int]()
        for path in self._files():
            n_left = len(left)
            if left and path.name.startswith(self._prefix):
                with suppress(pa.ArrowException, OSError, ValueError):
                    yield from self._held(path, left)
                used[path] = n_left - len(left)
        for path in sorted((path for path, n in used.items() if n), key=lambda path: used[path]):
            with suppress(OSError):  # the one of most use goes last
                os.utime(path)

    def keep(self, tiles: Iterable[tuple[str, bytes]]) -> None:
        """Keep these, by the sha256 of their pictures; none where the lake cannot be written to or its disk is nearly full."""
        with suppress(StoreError, OSError), scratch(self.lake_root, FOLDER) as folder:
            if shutil.disk_usage(self.lake_root).free < _LEAST_FREE_BYTES:
                return
            made = folder / "made.parquet"
            write_tables(self._tables(tiles), _SCHEMA, made, folder)
            place(made, self._folder / f"{self._prefix}{sha256_of_footer(made)}.parquet")
            for path in self._files()[_N_FILES:]:
                remove(self.lake_root, path)

    @property
    def _folder(self) -> Path:
        return self.lake_root / FOLDER

    @property
    def _prefix(self) -> str:
        return f"{self.recipe[:16]}-"

    def _files(self) -> list[Path]:
        """Those of every recipe, the last used first."""
        return sorted(self._folder.glob("*.parquet"), key=_used_ns, reverse=True)

    def _held(self, path: Path, left: set[str]) -> Iterator[tuple[str, bytes]]:
        """The tiles of a file that are still asked for, taken out of `left`."""
        if path.stem != f"{self._prefix}{sha256_of_footer(path)}":
            return
        with pq.ParquetFile(path) as file:
            held, end = file.read(columns=["image_sha256"])["image_sha256"].to_pylist(), 0
            for group in range(file.num_row_groups):
                start, end = end, end + file.metadata.row_group(group).num_rows
                rows = [row for row, digest in enumerate(held[start:end]) if digest in left]
                if rows:
                    for row in file.read_row_group(group).take(rows).to_pylist():
                        digest, tile = row["image_sha256"], (row["image"] or {}).get("bytes") or b""
                        if digest in left and row["sha256"] == self._sealed(digest, tile):
                            left.remove(digest)
                            yield digest, tile

    def _tables(self, tiles: Iterable[tuple[str, bytes]]) -> Iterator[pa.Table]:
        rest = iter(tiles)
        while some := list(islice(rest, IMAGE_ROWS_PER_GROUP)):
            yield pa.Table.from_pylist(
                [
                    {"image_sha256": digest, "image": {"bytes": tile}, "sha256": self._sealed(digest, tile)}
                    for digest, tile in some
                ],
                _SCHEMA,
            )

    def _sealed(self, digest: str, tile: bytes) -> str:
        """sha256 of a tile, of whose it is and of how it was made: none can stand in for another's."""
        return hashlib.sha256(f"{self.recipe} {digest}\n".encode() + tile).hexdigest()


def _used_ns(path: Path) -> int:
    with suppress(OSError):  # another run has taken it away
        return path.stat().st_mtime_ns
    return 0
