"""Looking: every drawn thing is read as it was painted, and what is no drawn scene is refused."""

from collections import Counter
from io import BytesIO
from itertools import product

import numpy as np
import pytest
from PIL import Image, ImageDraw

from demo.drawing import draw, draw_png
from demo.sight import NotAScene, look
from demo.world import COLORS, FRAME_PX, SHAPES, SIZES_PX, SMALL_PX, Scene, Thing

SIZES = (SMALL_PX, *SIZES_PX)


def content(scene: Scene) -> tuple[Counter, bool]:
    return Counter((thing.shape, thing.color, thing.is_cut, thing.is_faint) for thing in scene.things), scene.is_plain


def encoded(picture: Image.Image, form: str = "PNG", **options) -> bytes:
    out = BytesIO()
    picture.save(out, format=form, **options)
    return out.getvalue()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("is_plain", [True, False], ids=["paper", "landscape"])
def test_every_thing_is_read_as_painted(shape, is_plain):
    """Every colour at the two extreme sizes, the sizes between in the colours that lie nearest to the backdrops."""
    kinds = [*product((SIZES[0], SIZES[-1]), COLORS), *product(SIZES[1:-1], ("yellow", "orange"))]
    for (size, color), is_cut, is_faint in product(kinds, (False, True), (False, True)):
        y_px = 45 if is_cut else 150  # the second stands across the horizon
        thing = Thing(shape, color, 130, y_px, size, is_cut=is_cut, is_faint=is_faint)
        seen = look(draw_png(Scene((thing,), is_plain)))
        assert content(seen) == content(Scene((thing,), is_plain))
        assert abs(seen.things[0].size_px - size) <= 3
        assert abs(seen.things[0].y_px - y_px) <= 2
        assert abs(seen.things[0].x_px - 130) <= 16  # the middle of a cut thing is further left


def test_a_whole_painting_is_read_without_a_mistake(painting):
    for painted in painting:
        assert content(look(draw_png(painted.scene))) == content(painted.scene), painted


def test_an_empty_scene_is_a_scene():
    assert look(draw_png(Scene((), is_plain=True))) == Scene((), is_plain=True)


SCENE = Scene((Thing("star", "red", 45, 45, 60), Thing("ring", "blue", 128, 211, 60)), is_plain=False)


def test_another_png_of_the_same_pixels_is_read():
    assert content(look(encoded(draw(SCENE).convert("RGBA"), compress_level=9))) == content(SCENE)


@pytest.mark.parametrize(("form", "quality"), [("JPEG", 75), ("JPEG", 90), ("WEBP", 80)])
def test_a_lossy_copy_is_read_or_refused(painting, form, quality):
    """A copy that still can be read is judged. A few with small pale things are refused, and next to none is misread."""
    n_refused = n_misread = 0
    for painted in painting[::3]:
        try:
            seen = look(encoded(draw(painted.scene), form, quality=quality))
        except NotAScene:
            n_refused += 1
        else:
            n_misread += content(seen) != content(painted.scene)
    assert n_refused <= 8
    assert n_misread <= 1


def noise(size: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(1).integers(0, 256, (size, size, 3), dtype=np.uint8))


def gradient() -> Image.Image:
    """Smooth light and shade with a soft round subject: what a photo is to a program."""
    y, x = np.mgrid[0:256, 0:256] / 256
    ball = np.exp(-((x - 0.5) ** 2 + (y - 0.5) ** 2) * 12)
    return Image.fromarray((np.stack([y, x * y + ball / 3, 1 - x + ball / 4], axis=2).clip(0, 1) * 255).astype(np.uint8))


def framed(inside: Image.Image) -> Image.Image:
    picture = draw(Scene((), is_plain=True))
    edge = FRAME_PX
    picture.paste(inside.crop((edge, edge, 256 - edge, 256 - edge)), (edge, edge))
    return picture


def with_shape(shape: str) -> Image.Image:
    picture = draw(Scene((), is_plain=True))
    pen = ImageDraw.Draw(picture)
    if shape == "line":
        pen.line((30, 30, 220, 190), fill=COLORS["red"], width=6)
    elif shape == "ellipse":
        pen.ellipse((40, 90, 210, 140), fill=COLORS["blue"])
    elif shape == "touching":
        pen.ellipse((60, 60, 120, 120), fill=COLORS["blue"])
        pen.rectangle((110, 70, 170, 130), fill=COLORS["red"])
    elif shape == "pink":
        pen.ellipse((60, 60, 120, 120), fill=(255, 0, 220))
    return picture


@pytest.mark.parametrize(
    ("bytes_of", "why"),
    [
        (lambda: encoded(noise(256)), "frame"),
        (lambda: encoded(gradient()), "frame"),
        (lambda: encoded(gradient(), "JPEG"), "frame"),
        (lambda: encoded(framed(noise(256))), "none of the drawn|no drawn scene"),
        (lambda: encoded(framed(gradient())), "none of the drawn|no drawn scene"),
        (lambda: encoded(noise(512)), "pixels"),
        (lambda: encoded(draw(SCENE).resize((512, 512))), "pixels"),
        (lambda: encoded(draw(SCENE).crop((0, 0, 255, 256))), "pixels"),
        (lambda: encoded(Image.new("RGB", (256, 256), "white")), "frame"),
        (lambda: encoded(Image.new("RGB", (1, 1), "white")), "pixels"),
        (lambda: encoded(with_shape("line")), "none of the drawn shapes"),
        (lambda: encoded(with_shape("ellipse")), "none of the drawn shapes"),
        (lambda: encoded(with_shape("touching")), "none of the drawn shapes"),
        (lambda: encoded(with_shape("pink")), "none of the drawn|no drawn scene"),
        (lambda: encoded(draw(SCENE).rotate(90)), "none of the drawn shapes"),
        (lambda: encoded(draw(SCENE), "BMP"), "open"),
        (lambda: draw_png(SCENE)[:1000], "open"),
        (lambda: b"", "open"),
        (lambda: b"a text file", "open"),
        (lambda: b"\x89PNG\r\n\x1a\n" + b"\xff" * 200, "open"),
    ],
    ids=[
        "noise", "photo-like", "photo-like jpeg", "framed noise", "framed photo", "large noise", "enlarged scene",
        "cropped scene", "blank", "one pixel", "a line", "an ellipse", "touching shapes", "strange colour", "turned scene",
        "format not read", "cut file", "no bytes", "text", "broken png",
    ],
)  # fmt: skip
def test_what_is_no_drawn_scene_is_refused_and_the_reason_said(bytes_of, why):
    with pytest.raises(NotAScene, match=why):
        look(bytes_of())


def test_real_pictures_are_refused(needs_salon_data):
    pictures = sorted((needs_salon_data / "generated_images").glob("*.jpg"))
    assert len(pictures) == 16
    for path in pictures:
        with Image.open(path) as opened:
            small = encoded(framed(opened.convert("RGB").resize((256, 256))))
        for sent in (path.read_bytes(), small):
            with pytest.raises(NotAScene):
                look(sent)
