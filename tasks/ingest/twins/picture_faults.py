"""Faults planted in pixels: mirrored, recoloured, blurred, a region erased or doubled. Faults of prompts are text_faults.py's.

Nothing is drawn by lot: the same picture has the same fault on every machine.
"""

import io
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageFilter

from schemas.benchmark.exam import PlantedFault

Pixels = npt.NDArray[np.uint8]
Box = tuple[int, int, int, int]
"""Top, left, bottom, right; the lower and right ends are outside."""

_N_CELLS = 12  # a side, of the grid on which regions are looked for
_SIZES = (2, 3, 4, 5)  # of a region, in cells: at most a sixth of the picture
_CELL_PX = 8  # of the small copy that is looked at
_BLUR = 1 / 50  # of the shorter side: fine detail is gone, what is shown can still be told
_VISIBLE_LEVELS, _VISIBLE_SHARE = 24, 0.005


def opened(content: bytes) -> Pixels:
    """The picture's pixels in RGB, shape (height, width, 3)."""
    with Image.open(io.BytesIO(content)) as image:
        return np.asarray(image.convert("RGB"))


def as_png(pixels: Pixels) -> bytes:
    """The pixels as PNG, nothing lost."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def alike(pixels: Pixels) -> Pixels:
    """The picture as anybody sees it, yet not the same one: the last bit of its blue is turned.

    A judge whose score hangs on what nobody sees would not be found out by the very same pixels.
    """
    return pixels ^ np.array([0, 0, 1], np.uint8)


def with_fault(pixels: Pixels, fault: PlantedFault) -> Pixels | None:
    """The picture with the fault; None where that is no visible change: an even picture, its own mirror, one too small."""
    changed = _CHANGES[fault](pixels)
    if changed is None:
        return None
    difference = np.abs(changed.astype(np.int16) - pixels).max(axis=2)
    return changed if np.count_nonzero(difference > _VISIBLE_LEVELS) >= _VISIBLE_SHARE * difference.size else None


def _mirrored(pixels: Pixels) -> Pixels:
    return np.ascontiguousarray(pixels[:, ::-1])


def _recoloured(pixels: Pixels) -> Pixels:
    """Every hue a third of the circle on, saturation and value as they were: that is what turning the channels round does."""
    return np.ascontiguousarray(pixels[..., [2, 0, 1]])


def _blurred(pixels: Pixels) -> Pixels:
    return np.asarray(Image.fromarray(pixels).filter(ImageFilter.GaussianBlur(max(2.0, _BLUR * min(pixels.shape[:2])))))


def _erased(pixels: Pixels) -> Pixels | None:
    box = _region(pixels, _energy(pixels))
    if box is None:
        return None
    top, left, bottom, right = _in_pixels(box, pixels)
    filled = pixels.copy()
    filled[top:bottom, left:right] = _from_around(pixels, (top, left, bottom, right))
    return filled


def _doubled(pixels: Pixels) -> Pixels | None:
    energy = _energy(pixels)
    box = _region(pixels, energy)
    place = None if box is None else _calmest(energy, box)
    if box is None or place is None:
        return None
    top, left, bottom, right = _in_pixels(box, pixels)
    to_top, to_left, *_ = _in_pixels(place, pixels)
    height, width = min(bottom - top, pixels.shape[0] - to_top), min(right - left, pixels.shape[1] - to_left)
    doubled = pixels.copy()
    doubled[to_top : to_top + height, to_left : to_left + width] = pixels[top : top + height, left : left + width]
    return doubled


_CHANGES: Mapping[PlantedFault, Callable[[Pixels], Pixels | None]] = {
    PlantedFault.MIRRORED: _mirrored, PlantedFault.RECOLOURED: _recoloured, PlantedFault.BLURRED: _blurred,
    PlantedFault.ERASED: _erased, PlantedFault.DOUBLED: _doubled,
}  # fmt: skip


def _energy(pixels: Pixels) -> npt.NDArray[np.float64]:
    """How much goes on in each of the grid's cells, in whole levels so that no processor's last digit decides."""
    side = _N_CELLS * _CELL_PX
    small = np.asarray(Image.fromarray(pixels).resize((side, side), Image.Resampling.BOX)).astype(np.int64)
    down, across = np.abs(np.diff(small, axis=0, prepend=small[:1])), np.abs(np.diff(small, axis=1, prepend=small[:, :1]))
    cells = (down + across).sum(axis=2).reshape(_N_CELLS, _CELL_PX, _N_CELLS, _CELL_PX).sum(axis=(1, 3))
    return np.asarray(cells, dtype=np.float64)


def _region(pixels: Pixels, energy: npt.NDArray[np.float64]) -> Box | None:
    """The most conspicuous region; None also where a side has fewer pixels than the grid has cells: one may have none."""
    return None if min(pixels.shape[:2]) < _N_CELLS else _conspicuous(energy)


def _conspicuous(energy: npt.NDArray[np.float64]) -> Box | None:
    """The region in which most goes on and around which least does, off the edges; None where there is no such region."""
    energy = np.pad(energy[1:-1, 1:-1], 1)  # a frame, or a horizon at the edge, is no neighbour to keep away from
    best: tuple[float, Box] | None = None
    for size in _SIZES:
        for top in range(1, _N_CELLS - size):
            for left in range(1, _N_CELLS - size):
                inside = energy[top : top + size, left : left + size].sum()
                around = energy[top - 1 : top + size + 1, left - 1 : left + size + 1].sum() - inside
                if best is None or inside - around > best[0]:  # of equal ones the smallest, the uppermost
                    best = float(inside - around), (top, left, top + size, left + size)
    return best[1] if best is not None and best[0] > 0 else None


def _calmest(energy: npt.NDArray[np.float64], box: Box) -> Box | None:
    """Where least goes on beside a region; None where it leaves no place of its size."""
    size = box[2] - box[0]
    places = [
        (float(energy[top : top + size, left : left + size].sum()), top, left)
        for top in range(_N_CELLS - size + 1)
        for left in range(_N_CELLS - size + 1)
        if top >= box[2] or top + size <= box[0] or left >= box[3] or left + size <= box[1]
    ]
    _, top, left = min(places, default=(0.0, -1, -1))
    return None if top < 0 else (top, left, top + size, left + size)


def _in_pixels(box: Box, pixels: Pixels) -> Box:
    height, width = pixels.shape[:2]
    rows, columns = ([place * side // _N_CELLS for place in ends] for ends, side in ((box[::2], height), (box[1::2], width)))
    return rows[0], columns[0], rows[1], columns[1]


def _from_around(pixels: Pixels, box: Box) -> Pixels:
    """A box filled smoothly from the four lines of pixels around it: a bilinearly blended Coons patch (1967)."""
    top, left, bottom, right = box
    around = pixels[top - 1 : bottom + 1, left - 1 : right + 1].astype(np.float64)
    height, width = bottom - top, right - left
    v = (np.arange(1, height + 1) / (height + 1))[:, None, None]
    u = (np.arange(1, width + 1) / (width + 1))[None, :, None]
    upper, lower, near, far = around[:1, 1:-1], around[-1:, 1:-1], around[1:-1, :1], around[1:-1, -1:]
    a, b, c, d = around[:1, :1], around[:1, -1:], around[-1:, :1], around[-1:, -1:]
    corners = (1 - u) * (1 - v) * a + u * (1 - v) * b + (1 - u) * v * c + u * v * d
    return np.clip((1 - v) * upper + v * lower + (1 - u) * near + u * far - corners, 0, 255).round().astype(np.uint8)
