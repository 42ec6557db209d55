"""What the drawn world is made of: shapes, colours, measures, and what a picture holds. No drawing, reading or errors."""

from dataclasses import dataclass

MODEL = "demo-painter"
JUDGE = "salon-demo-judge"
HOST = "127.0.0.1"  # where the judge is served

CANVAS_PX = 256
FRAME_PX = 4
FRAME_RGB = (44, 62, 80)
SIZES_PX = (58, 60, 62, 64)  # a thing's height
SMALL_PX = 34  # a thing drawn out of proportion: at least 1.7 times smaller than any other
CUT_SHARE = 0.62  # what is left of the width of a thing that is cut off

SHAPES = (
    "circle", "square", "triangle", "diamond", "star", "cross",
    "ring", "heart", "hexagon", "crescent", "arrow", "house",
)  # fmt: skip
COLORS = {
    "red": (214, 39, 40),
    "orange": (255, 127, 14),
    "yellow": (240, 200, 0),
    "green": (34, 139, 34),
    "blue": (31, 90, 200),
    "purple": (128, 0, 160),
    "brown": (120, 72, 30),
    "black": (20, 20, 20),
}
FAINT_RGB = {name: tuple((channel + 255) // 2 for channel in rgb) for name, rgb in COLORS.items()}  # half way to white
PAPER_RGB = (250, 248, 240)
SKY_RGB = (222, 238, 250)
GROUND_RGB = (240, 228, 205)
HORIZON_PX = 150

NUMBERS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
}  # fmt: skip
RELATIONS = ("left of", "right of", "above", "below")
CATEGORIES = ("single_object", "two_object", "counting", "colors", "position", "color_attr")


@dataclass(frozen=True, slots=True)
class Thing:
    """One shape in a picture: its centre and height in px, and whether its right part is missing or it is drawn pale."""

    shape: str
    color: str
    x_px: int
    y_px: int
    size_px: int
    is_cut: bool = False
    is_faint: bool = False


@dataclass(frozen=True, slots=True)
class Scene:
    """A picture's content: its things, and whether the backdrop is plain paper or a landscape (sky and ground)."""

    things: tuple[Thing, ...]
    is_plain: bool


@dataclass(frozen=True, slots=True)
class Item:
    """What a sentence says of one kind of thing: how many, of which colour (None: any), of which shape."""

    shape: str
    color: str | None = None
    n: int = 1


@dataclass(frozen=True, slots=True)
class Asked:
    """What a sentence asks for: one or two kinds of things, and how the first stands to the second."""

    items: tuple[Item, ...]
    relation: str | None = None


def stands(relation: str, first: Thing, second: Thing) -> bool:
    """Whether `first` is, say, left of `second`, by the centres, with 20 px to spare."""
    across_px, down_px = second.x_px - first.x_px, second.y_px - first.y_px
    return {"left of": across_px, "right of": -across_px, "above": down_px, "below": -down_px}[relation] > 20
