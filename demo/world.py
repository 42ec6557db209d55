"""What the drawn world is made of, what a picture holds, and how often the imaginary checkpoints err. No drawing, no reading.

The painter draws from the table of rates, and the expected values are computed from it.
"""

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


N_PROMPTS = 10  # in each category
N_IMAGES = 2  # of each prompt

CONTENT_ERROR = {
    "single_object": "wrong_shape",
    "two_object": "missing",
    "counting": "wrong_count",
    "colors": "wrong_color",
    "position": "swapped",
    "color_attr": "swapped_colors",
}
"""What goes wrong in a category where the prompt was misread, or one picture of it slips."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Probabilities. `misread` is drawn once for a prompt and spoils all its pictures; the others once for a picture.

    `slip` is the category's content error in one picture; `cut`, `faint` and `uneven` hit one thing of the picture;
    `plain` leaves the landscape away.
    """

    misread: dict[str, float]
    slip: dict[str, float]
    cut: float
    faint: float
    uneven: float
    plain: float


RATES = {
    "step-1000": Rates(
        misread={
            "single_object": 0.15, "two_object": 0.30, "counting": 0.40, "colors": 0.25, "position": 0.45, "color_attr": 0.40,
        },
        slip={
            "single_object": 0.15, "two_object": 0.20, "counting": 0.30, "colors": 0.20, "position": 0.25, "color_attr": 0.30,
        },
        cut=0.35, faint=0.35, uneven=0.35, plain=0.70,
    ),
    "step-2000": Rates(
        misread={
            "single_object": 0.10, "two_object": 0.20, "counting": 0.25, "colors": 0.15, "position": 0.30, "color_attr": 0.30,
        },
        slip={
            "single_object": 0.10, "two_object": 0.10, "counting": 0.20, "colors": 0.10, "position": 0.15, "color_attr": 0.20,
        },
        cut=0.25, faint=0.25, uneven=0.25, plain=0.45,
    ),
    "step-3000": Rates(
        misread={
            "single_object": 0.05, "two_object": 0.10, "counting": 0.15, "colors": 0.08, "position": 0.15, "color_attr": 0.15,
        },
        slip={
            "single_object": 0.05, "two_object": 0.05, "counting": 0.10, "colors": 0.05, "position": 0.08, "color_attr": 0.10,
        },
        cut=0.15, faint=0.15, uneven=0.15, plain=0.20,
    ),
}  # fmt: skip
CHECKPOINTS = tuple(RATES)
N_ANSWERS = 24  # of each checkpoint
N_CAPTIONS = 25  # of each checkpoint, five of each type


@dataclass(frozen=True, slots=True)
class TextRates:
    """Probabilities of errors in what the imaginary model writes, drawn once for each text."""

    wrong: float  # a colour or a number is wrong in the text
    omitted: float  # something shown or asked for is not mentioned
    bad_form: float  # a caption far too long, or not in the manner of its type


TEXT_RATES = {
    "step-1000": TextRates(wrong=0.35, omitted=0.30, bad_form=0.40),
    "step-2000": TextRates(wrong=0.20, omitted=0.20, bad_form=0.25),
    "step-3000": TextRates(wrong=0.10, omitted=0.10, bad_form=0.10),
}
