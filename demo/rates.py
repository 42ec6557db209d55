"""How often the imaginary checkpoints err: the one table the painter draws from and the expected values are computed from."""

from dataclasses import dataclass

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
