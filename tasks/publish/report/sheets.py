"""Small pictures of many samples, put together in sheets of which a page shows parts. Thumbnails in the page are pictures.py.

Pictures come in the order of the lake, pages in that of the prompts: in between, each stands small in a temporary file. Those of
earlier publications are kept in tile_cache.py.
"""

import hashlib
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO

from PIL import Image, features

from schemas.input_budget import PICTURE_PIXELS
from tasks.context import StageContext
from tasks.lake.pictures import StoredDataset
from tasks.publish.report.pictures import FORMATS, contents_of, judged_digests
from tasks.publish.report.tile_cache import TileCache

TILE_PX = 320
"""Longest side of a picture on a sheet: what "enlarge" shows."""

N_ACROSS, N_TILES = 8, 400  # 50 rows of 320 pixels: far from what any decoder of a browser refuses
_QUALITY = 72
"""JPEG: a tenth of WebP's time at twice its size. A tile keeps its grid of blocks of 16 pixels on a sheet: there it is rounded
once more to the steps it was rounded to when it was made, and looks the same."""
_LIBRARIES = ("pil", "jpg", "libjpeg_turbo", "webp", "zlib")


@dataclass(frozen=True, slots=True)
class Shown:
    """Where a picture stands: its sheet, and the rectangle on it in pixels."""

    sheet: str
    x: int
    y: int
    width: int
    height: int


class Tiles:
    """Small pictures by sample id, in a temporary file while it is open; each picture is looked at once, however many show it."""

    def __init__(self, dataset: StoredDataset, sample_ids: Iterable[str], cache: TileCache | None = None) -> None:
        self._file: IO[bytes] = TemporaryFile()  # noqa: SIM115  close() is ours
        self._digests = judged_digests(dataset, set(sample_ids))
        self._places: dict[str, tuple[int, int]] = {}  # by the picture's digest
        wanted, lasting = set(self._digests.values()), list[str]()
        for digest, tile in cache.take(wanted) if cache else ():
            self._add(digest, tile)
        for digest, content in contents_of(dataset, wanted - self._places.keys()):
            tile_of_it = small(content)
            if tile_of_it is not None:
                self._add(digest, tile_of_it)
                if cache and hashlib.sha256(content).hexdigest() == digest:  # of what a disk spoiled none is kept
                    lasting.append(digest)
        if cache and lasting:
            cache.keep((digest, self._read(digest)) for digest in lasting)

    def __contains__(self, sample_id: str) -> bool:
        return self._digests.get(sample_id) in self._places

    def sheets(self, name: str, sample_ids: Sequence[str]) -> Iterator[tuple[str, bytes, dict[str, Shown]]]:
        """Those of the samples that have a picture, in order: each sheet's file name, content, and where each stands."""
        mine = [one for one in sample_ids if one in self]
        for number, start in enumerate(range(0, len(mine), N_TILES), 1):
            file = f"{name}{'' if number == 1 else f'-{number}'}.jpg"
            yield file, *self._sheet(file, mine[start : start + N_TILES])

    def _add(self, digest: str, tile: bytes) -> None:
        self._places[digest] = (self._file.seek(0, io.SEEK_END), self._file.write(tile))

    def _read(self, digest: str) -> bytes:
        at, n_bytes = self._places[digest]
        self._file.seek(at)
        return self._file.read(n_bytes)

    def _sheet(self, file: str, sample_ids: list[str]) -> tuple[bytes, dict[str, Shown]]:
        n_down = -(-len(sample_ids) // N_ACROSS)
        sheet = Image.new("RGB", (TILE_PX * min(N_ACROSS, len(sample_ids)), TILE_PX * n_down), "white")
        places = {}
        for index, sample_id in enumerate(sample_ids):
            x, y = TILE_PX * (index % N_ACROSS), TILE_PX * (index // N_ACROSS)
            with Image.open(io.BytesIO(self._read(self._digests[sample_id])), formats=("JPEG",)) as tile:
                sheet.paste(tile, (x, y))
                places[sample_id] = Shown(file, x, y, tile.width, tile.height)
        buffer = io.BytesIO()
        sheet.save(buffer, "JPEG", quality=_QUALITY)
        return buffer.getvalue(), places

    def close(self) -> None:
        """Give the temporary file back."""
        self._file.close()


def kept_tiles(context: StageContext) -> TileCache:
    """What the run's lake keeps of the tiles that this code makes with these libraries."""
    made_by = [context.ids.code_version, *(f"{name} {features.version(name)}" for name in _LIBRARIES)]
    return TileCache(context.lake.root, hashlib.sha256("\n".join(made_by).encode()).hexdigest())


def small(content: bytes) -> bytes | None:
    """The picture with its longest side at most TILE_PX, as JPEG; None where the bytes are no picture that may be decoded."""
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            if image.width * image.height > PICTURE_PIXELS:
                return None
            image.draft("RGB", (TILE_PX, TILE_PX))  # a JPEG is decoded at the least fraction of its size that is no smaller
            image.load()
            tile = image if image.mode == "RGB" else image.convert("RGB")
        tile.thumbnail((TILE_PX, TILE_PX), Image.Resampling.HAMMING)  # as sharp as bicubic at half its time
        buffer = io.BytesIO()
        tile.save(buffer, "JPEG", quality=_QUALITY)
        return buffer.getvalue()
    except Exception:  # noqa: BLE001  decoders raise ValueError, TypeError, SyntaxError, MemoryError, struct.error, ...
        return None
