"""Decoded pixels made 8-bit grey or RGB, a strip at a time: a conversion holds two pictures, not five. No bytes here."""

from collections.abc import Callable

import numpy as np
from PIL import Image

BACKGROUND = (255, 255, 255)  # what transparent pixels are shown on
_STRIP_PIXELS = 500_000
_UPRIGHT_BY = {  # EXIF 2.32, tag 0x0112: what undoes each orientation
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_WITH_ALPHA = frozenset({"RGBA", "LA", "PA", "La", "RGBa"})


def to_plain(image: Image.Image, steps: list[str]) -> Image.Image:
    """A new picture, L or RGB; what was done is added to `steps`. The one given is left as it is."""
    if image.mode.startswith("I;16"):
        has_alpha = isinstance(image.info.get("transparency"), int)
        if not has_alpha:
            return _in_strips(image, "L", _scale_16_bits)
        steps.append("alpha_on_white")
        return _in_strips(image, "RGB", lambda strip: _on_white(_scale_16_bits(strip)))
    if image.mode in _WITH_ALPHA or "transparency" in image.info:
        steps.append("alpha_on_white")
        return _in_strips(image, "RGB", _on_white)
    if image.mode in {"L", "RGB"}:
        return image.copy()
    mode = "L" if image.mode == "1" else "RGB"
    steps.append(f"{image.mode.lower()}_to_{mode.lower()}")
    return image.convert(mode)


def _in_strips(image: Image.Image, mode: str, convert: Callable[[Image.Image], Image.Image]) -> Image.Image:
    shown = Image.new(mode, image.size)
    n_rows = max(1, _STRIP_PIXELS // image.width)
    for top in range(0, image.height, n_rows):
        box = (0, top, image.width, min(image.height, top + n_rows))
        shown.paste(convert(image.crop(box)), box)
    return shown


def _on_white(image: Image.Image) -> Image.Image:
    rgba = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", rgba.size, (*BACKGROUND, 255)), rgba).convert("RGB")


def _scale_16_bits(image: Image.Image) -> Image.Image:
    """0–65535 to 0–255, rounded; Pillow's own conversion clips. A transparent grey value becomes an alpha channel."""
    deep = np.asarray(image).astype(np.uint32)
    grey = Image.fromarray(((deep * 255 + 32767) // 65535).astype(np.uint8))
    transparent = image.info.get("transparency")
    if isinstance(transparent, int):
        grey.putalpha(Image.fromarray(np.where(deep == transparent, 0, 255).astype(np.uint8)))
    return grey


def turn_upright(image: Image.Image, orientation: int) -> Image.Image:
    """The picture with its EXIF orientation (2–8) undone."""
    return image.transpose(_UPRIGHT_BY[orientation])
