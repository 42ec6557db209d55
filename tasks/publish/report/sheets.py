"""Small pictures of many samples, put together in sheets of which a page shows parts. Thumbnails in the page are pictures.py.

Pictures come in the order of the lake, pages in that of the prompts: in between, each stands small in a temporary file.
"""

import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO

from PIL import Image

from schemas.input_budget import PICTURE_PIXELS
from tasks.lake.pictures import StoredDataset
from tasks.publish.report.pictures import FORMATS, pictures_of

TILE_PX = 320
"""Longest side of a picture on a sheet: what "enlarge" shows."""

N_ACROSS, N_TILES = 8, 400  # 50 rows of 320 pixels: far from what any decoder of a browser refuses
_QUALITY, _FIRST_QUALITY = 72, 92  # JPEG: a tenth of WebP's time at twice its size


@dataclass(frozen=True, slots=True)
class Shown:
    """Where a picture stands: its sheet, and the rectangle on it in pixels."""

    sheet: str
    x: int
    y: int
    width: int
    height: int


class Tiles:
    """Small pictures by sample id, in a temporary file while it is open."""

    def __init__(self, dataset: StoredDataset, sample_ids: Iterable[str]) -> None:
        self._file: IO[bytes] = TemporaryFile()  # noqa: SIM115  close() is ours
        self._places: dict[str, tuple[int, int]] = {}
        for sample_id, content in pictures_of(dataset, set(sample_ids)):
            tile = small(content)
            if tile is not None:
                self._places[sample_id] = (self._file.seek(0, io.SEEK_END), self._file.write(tile))

    def __contains__(self, sample_id: str) -> bool:
        return sample_id in self._places

    def sheets(self, name: str, sample_ids: Sequence[str]) -> Iterator[tuple[str, bytes, dict[str, Shown]]]:
        """Those of the samples that have a picture, in order: each sheet's file name, content, and where each stands."""
        mine = [one for one in sample_ids if one in self]
        for number, start in enumerate(range(0, len(mine), N_TILES), 1):
            file = f"{name}{'' if number == 1 else f'-{number}'}.jpg"
            yield file, *self._sheet(file, mine[start : start + N_TILES])

    def _sheet(self, file: str, sample_ids: list[str]) -> tuple[bytes, dict[str, Shown]]:
        n_down = -(-len(sample_ids) // N_ACROSS)
        sheet = Image.new("RGB", (TILE_PX * min(N_ACROSS, len(sample_ids)), TILE_PX * n_down), "white")
        places = {}
        for index, sample_id in enumerate(sample_ids):
            at, n_bytes = self._places[sample_id]
            self._file.seek(at)
            x, y = TILE_PX * (index % N_ACROSS), TILE_PX * (index // N_ACROSS)
            with Image.open(io.BytesIO(self._file.read(n_bytes)), formats=("JPEG",)) as tile:
                sheet.paste(tile, (x, y))
                places[sample_id] = Shown(file, x, y, tile.width, tile.height)
        buffer = io.BytesIO()
        sheet.save(buffer, "JPEG", quality=_QUALITY)
        return buffer.getvalue(), places

    def close(self) -> None:
        """Give the temporary file back."""
        self._file.close()


def small(content: bytes) -> bytes | None:
    """The picture with its longest side at most TILE_PX, as JPEG; None where the bytes are no picture that may be decoded."""
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            if image.width * image.height > PICTURE_PIXELS:
                return None
            image.draft("RGB", (TILE_PX, TILE_PX))  # a JPEG is decoded at the least fraction of its size that is no smaller
            tile = image.convert("RGB")
        tile.thumbnail((TILE_PX, TILE_PX))
        buffer = io.BytesIO()
        tile.save(buffer, "JPEG", quality=_FIRST_QUALITY)
        return buffer.getvalue()
    except Exception:  # noqa: BLE001  decoders raise ValueError, TypeError, SyntaxError, MemoryError, struct.error, ...
        return None
