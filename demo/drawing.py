"""A scene as pixels: smooth-edged shapes on a framed canvas, as PNG bytes. What stands in the scene is decided elsewhere."""

from functools import cache, lru_cache
from io import BytesIO
from math import cos, pi, sin

from PIL import Image, ImageChops, ImageDraw

from demo.world import (
    CANVAS_PX,
    COLORS,
    CUT_SHARE,
    FAINT_RGB,
    FRAME_PX,
    FRAME_RGB,
    GROUND_RGB,
    HORIZON_PX,
    PAPER_RGB,
    SKY_RGB,
    Scene,
)

_BIG = 480  # px of a shape's drawing board; a shape fills its height
Points = list[tuple[float, float]]

_POLYGONS: dict[str, Points] = {
    "square": [(0, 0), (1, 0), (1, 1), (0, 1)],
    "triangle": [(0.5, 0), (1, 1), (0, 1)],
    "diamond": [(0.5, 0), (0.9, 0.5), (0.5, 1), (0.1, 0.5)],
    "hexagon": [(0.5, 0), (0.93, 0.25), (0.93, 0.75), (0.5, 1), (0.07, 0.75), (0.07, 0.25)],
    "cross": [
        (0.34, 0), (0.66, 0), (0.66, 0.34), (1, 0.34), (1, 0.66), (0.66, 0.66),
        (0.66, 1), (0.34, 1), (0.34, 0.66), (0, 0.66), (0, 0.34), (0.34, 0.34),
    ],
    "arrow": [(0.5, 0), (1, 0.55), (0.64, 0.55), (0.64, 1), (0.36, 1), (0.36, 0.55), (0, 0.55)],
    "house": [(0.5, 0), (1, 0.42), (0.88, 0.42), (0.88, 1), (0.12, 1), (0.12, 0.42), (0, 0.42)],
}  # fmt: skip


def draw_png(scene: Scene) -> bytes:
    """The scene as a PNG of 256 x 256 px, RGB; the same bytes for the same scene."""
    out = BytesIO()
    draw(scene).save(out, format="PNG", compress_level=1)
    return out.getvalue()


def draw(scene: Scene) -> Image.Image:
    """The scene as an RGB picture of 256 x 256 px with its frame."""
    picture = _backdrop(scene.is_plain).copy()
    for thing in scene.things:
        mask = sprite(thing.shape, thing.size_px, is_cut=thing.is_cut)
        rgb = FAINT_RGB[thing.color] if thing.is_faint else COLORS[thing.color]
        corner = (thing.x_px - thing.size_px // 2, thing.y_px - thing.size_px // 2)
        picture.paste(rgb, (*corner, corner[0] + mask.width, corner[1] + mask.height), mask)
    return picture


@cache
def sprite(shape: str, size_px: int, *, is_cut: bool) -> Image.Image:
    """The shape's coverage (0-255) on a square of `size_px`; a cut one lacks the right part of its own width."""
    board = Image.new("L", (_BIG, _BIG), 0)
    _draw_shape(ImageDraw.Draw(board), board, shape)
    if is_cut:
        left, _, right, _ = board.getbbox() or (0, 0, _BIG, _BIG)
        board.paste(0, (round(left + CUT_SHARE * (right - left)), 0, _BIG, _BIG))
    return board.resize((size_px, size_px), Image.Resampling.BOX)


def _draw_shape(pen: ImageDraw.ImageDraw, board: Image.Image, shape: str) -> None:
    if shape in ("circle", "ring", "crescent"):
        pen.ellipse((0, 0, _BIG, _BIG), fill=255)
        if shape == "ring":
            pen.ellipse(_box(0.26, 0.26, 0.74, 0.74), fill=0)
        if shape == "crescent":
            pen.ellipse(_box(0.38, 0.1, 1.18, 0.9), fill=0)
    elif shape == "heart":
        board.paste(_heart())
    else:
        points = _star() if shape == "star" else _POLYGONS[shape]
        pen.polygon([(x * _BIG, y * _BIG) for x, y in points], fill=255)


def _heart() -> Image.Image:
    board = Image.new("L", (_BIG, _BIG), 0)
    pen = ImageDraw.Draw(board)
    pen.ellipse(_box(0, 0, 0.54, 0.54), fill=255)
    pen.ellipse(_box(0.46, 0, 1, 0.54), fill=255)
    tip = Image.new("L", (_BIG, _BIG), 0)
    ImageDraw.Draw(tip).polygon([(x * _BIG, y * _BIG) for x, y in [(0.04, 0.39), (0.5, 0.2), (0.96, 0.39), (0.5, 1)]], fill=255)
    return ImageChops.lighter(board, tip)


def _star() -> Points:
    """A five-pointed star stretched to fill its height and width."""
    corners = [(sin(pi * k / 5) * (1 if k % 2 == 0 else 0.42), -cos(pi * k / 5) * (1 if k % 2 == 0 else 0.42)) for k in range(10)]
    low, high = min(y for _, y in corners), max(y for _, y in corners)
    width = max(x for x, _ in corners)
    return [(0.5 + x / width / 2, (y - low) / (high - low)) for x, y in corners]


def _box(left: float, top: float, right: float, bottom: float) -> tuple[float, float, float, float]:
    return (left * _BIG, top * _BIG, right * _BIG, bottom * _BIG)


@lru_cache(maxsize=2)
def _backdrop(is_plain: bool) -> Image.Image:
    picture = Image.new("RGB", (CANVAS_PX, CANVAS_PX), FRAME_RGB)
    far = CANVAS_PX - FRAME_PX
    picture.paste(PAPER_RGB if is_plain else SKY_RGB, (FRAME_PX, FRAME_PX, far, far))
    if not is_plain:
        picture.paste(GROUND_RGB, (FRAME_PX, HORIZON_PX, far, far))
    return picture
