"""Looking at a picture: encoded bytes in, the drawn scene they show out, or why it is none. No prompts, no scores."""

from functools import lru_cache
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from demo.drawing import sprite
from demo.world import (
    CANVAS_PX,
    COLORS,
    FAINT_RGB,
    FRAME_PX,
    FRAME_RGB,
    GROUND_RGB,
    HORIZON_PX,
    PAPER_RGB,
    SHAPES,
    SIZES_PX,
    SKY_RGB,
    SMALL_PX,
    Scene,
    Thing,
)

_FORMATS = ("PNG", "JPEG", "WEBP")
_INKS = [(color, False, rgb) for color, rgb in COLORS.items()] + [(color, True, rgb) for color, rgb in FAINT_RGB.items()]
_GROUNDS = (PAPER_RGB, SKY_RGB, GROUND_RGB)
_UNKNOWN = len(_GROUNDS) + len(_INKS)
_TOLERANCE = 60  # RGB distance beyond which a pixel has none of the world's colours; blends at smooth edges stay within
_MAX_UNKNOWN_SHARE = 0.02
_MIN_FRAME_SHARE = 0.95
_FRAME_TOLERANCE = 40  # a channel
_SPECK_PX = 12  # what re-encoding leaves here and there; the smallest thing has 150
_TALL, _WIDE = 32, 40  # every mask is brought to this height, its width in proportion
_MIN_OVERLAP = 0.72  # intersection over union with the best of the shapes; the worst of all drawn things has 0.76
_MIN_LEAD = 0.05  # and how far the next shape must stay behind; the worst has 0.07
Mask = NDArray[np.bool_]


class NotAScene(Exception):  # noqa: N818 - it is an answer, not a fault
    """The picture is not one of the drawn scenes; the text says why."""


def look(encoded: bytes) -> Scene:
    """The scene an encoded picture shows, as seen: things from top to bottom. Raises NotAScene."""
    labels = _labels(_pixels(encoded))
    n_unknown = int(np.count_nonzero(labels == _UNKNOWN))
    if n_unknown > _MAX_UNKNOWN_SHARE * labels.size:
        raise NotAScene("it has colours that no drawn scene has")
    is_ink = labels >= len(_GROUNDS)
    parts, _ = ndimage.label(is_ink)
    things = []
    for number, box in enumerate(ndimage.find_objects(parts), 1):
        mask = parts[box] == number
        if np.count_nonzero(mask) > _SPECK_PX:
            things.append(_thing(mask, labels[box][mask], box))
    below = labels[HORIZON_PX - FRAME_PX :]
    n_ground, n_paper = (int(np.count_nonzero(below == _GROUNDS.index(rgb))) for rgb in (GROUND_RGB, PAPER_RGB))
    return Scene(tuple(things), is_plain=n_paper > n_ground)


def _pixels(encoded: bytes) -> NDArray[np.uint8]:
    """RGB pixels inside the frame. Raises NotAScene where the bytes, the size or the frame are not a scene's."""
    pixels = _decoded(encoded)
    if pixels.shape[:2] != (CANVAS_PX, CANVAS_PX):
        raise NotAScene(f"it does not have the {CANVAS_PX} x {CANVAS_PX} pixels of a drawn scene")
    near, far = FRAME_PX, CANVAS_PX - FRAME_PX
    frame = np.concatenate([part.reshape(-1, 3) for part in (pixels[:near], pixels[far:], pixels[:, :near], pixels[:, far:])])
    is_frame = (np.abs(frame.astype(np.int16) - FRAME_RGB) <= _FRAME_TOLERANCE).all(axis=1)
    if np.count_nonzero(is_frame) < _MIN_FRAME_SHARE * is_frame.size:
        raise NotAScene("it lacks the frame of a drawn scene")
    return pixels[near:far, near:far]


def _decoded(encoded: bytes) -> NDArray[np.uint8]:
    """RGB pixels; of a picture of another size nothing is decoded and no pixels come back."""
    try:
        with Image.open(BytesIO(encoded), formats=_FORMATS) as opened:
            if opened.size != (CANVAS_PX, CANVAS_PX):
                return np.empty((0, 0, 3), dtype=np.uint8)
            return np.asarray(opened.convert("RGB"))
    except Exception as error:  # decoders raise anything on hostile bytes
        raise NotAScene("its bytes are not a picture I can open") from error


def _labels(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """For each pixel the nearest of the world's colours: grounds first, then inks, or _UNKNOWN."""
    coarse = (pixels >> 3).astype(np.int32)
    labels: NDArray[np.uint8] = _color_table()[(coarse[..., 0] << 10) | (coarse[..., 1] << 5) | coarse[..., 2]]
    return labels


@lru_cache(maxsize=1)
def _color_table() -> NDArray[np.uint8]:
    """Label of every colour at 5 bits a channel: 32,768 entries."""
    channel = np.arange(32) * 8 + 4
    colors = np.stack(np.meshgrid(channel, channel, channel, indexing="ij"), axis=-1).reshape(-1, 1, 3)
    known = np.array([*_GROUNDS, *(rgb for _, _, rgb in _INKS)])
    distance = np.sqrt(((colors - known) ** 2).sum(axis=2))
    nearest = np.where(distance.min(axis=1) <= _TOLERANCE, distance.argmin(axis=1), _UNKNOWN)
    return nearest.astype(np.uint8)


def _thing(mask: Mask, labels: NDArray[np.uint8], box: tuple[slice, slice]) -> Thing:
    down, across = box
    height_px, width_px = mask.shape
    if not 0.2 < width_px / height_px < _WIDE / _TALL:
        raise NotAScene("it holds something that is none of the drawn shapes")
    shape, is_cut = _shape(mask)
    ink = int(np.bincount(labels, minlength=_UNKNOWN + 1).argmax()) - len(_GROUNDS)
    if ink == len(_INKS):
        raise NotAScene("it holds something in none of the drawn colours")
    color, is_faint, _ = _INKS[ink]
    x_px, y_px = ((part.start + part.stop) // 2 + FRAME_PX for part in (across, down))
    return Thing(shape, color, x_px, y_px, height_px, is_cut=is_cut, is_faint=is_faint)


def _shape(mask: Mask) -> tuple[str, bool]:
    """The shape a mask covers best, and whether it is cut off. Raises NotAScene where none fits, or two fit about as well."""
    masks, n_covered, names = _templates()
    seen = _standard(mask).ravel().astype(np.float32)
    common = masks @ seen
    overlap = common / (n_covered + seen.sum() - common)
    best = int(overlap.argmax())
    runner_up = max(float(value) for value, name in zip(overlap, names, strict=True) if name != names[best])
    if overlap[best] < _MIN_OVERLAP or overlap[best] - runner_up < _MIN_LEAD:
        raise NotAScene("it holds something that is none of the drawn shapes")
    return names[best]


@lru_cache(maxsize=1)
def _templates() -> tuple[NDArray[np.float32], NDArray[np.float32], list[tuple[str, bool]]]:
    """Masks of every shape, whole and cut, small and large, (48, 32 * 40); their sizes; and which is which."""
    kinds = [(shape, is_cut, size) for shape in SHAPES for is_cut in (False, True) for size in (SMALL_PX, SIZES_PX[0])]
    masks = []
    for shape, is_cut, size_px in kinds:
        full = np.asarray(sprite(shape, size_px, is_cut=is_cut)) > 96
        rows, columns = np.flatnonzero(full.any(axis=1)), np.flatnonzero(full.any(axis=0))
        masks.append(_standard(full[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]).ravel())
    stacked = np.array(masks, dtype=np.float32)
    return stacked, stacked.sum(axis=1), [(shape, is_cut) for shape, is_cut, _ in kinds]


def _standard(mask: Mask) -> Mask:
    """The mask at the common height, nearest pixel, padded to the common width."""
    height, width = mask.shape
    wide = max(1, min(_WIDE, round(width * _TALL / height)))
    rows = (np.arange(_TALL) * 2 + 1) * height // (2 * _TALL)
    columns = (np.arange(wide) * 2 + 1) * width // (2 * wide)
    out: NDArray[Any] = np.zeros((_TALL, _WIDE), dtype=np.bool_)
    out[:, :wide] = mask[np.ix_(rows, columns)]
    return out
