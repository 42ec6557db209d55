"""What the imaginary model writes: answers in words and captions of five types, with errors. What is drawn is scenes.py's."""

from dataclasses import replace
from random import Random

from demo.rates import TextRates
from demo.sentences import name
from demo.world import COLORS, Item, Scene

CAPTION_TYPES = ("brief", "detail", "poem", "narrative", "style")

_FORMS = {
    "brief": "A drawing of {}.",
    "detail": "The drawing shows {}, with flat colours and clean edges, inside a dark frame, and nothing else around.",
    "poem": "I looked into the frame and saw\n{},\nso still upon the evening shore,\nand then I did not ask for more.",
    "narrative": "One morning the painter woke early and set out {}. By the evening all stood in place, and she went home.",
    "style": "Ladies and gentlemen, behold, never seen before and only tonight: {}! Applause, please, for the shapes!",
}
"""The manner of each caption type; {} is where the things shown are named."""
_PADDING = " It is a very nice drawing, and one could go on and on about how nice it is, which is what is done here at length."


def items_shown(scene: Scene) -> list[Item]:
    """What a true description of the scene names: each kind with its colour and number."""
    kinds: dict[tuple[str, str], int] = {}
    for thing in scene.things:
        kinds[thing.shape, thing.color] = kinds.get((thing.shape, thing.color), 0) + 1
    return [Item(shape, color, n) for (shape, color), n in kinds.items()]


def write_answer(items: tuple[Item, ...], rates: TextRates, rng: Random) -> str:
    """An answer's text to a request for `items`."""
    return f"Here you are: {_listed(_with_errors(list(items), rates, rng))}. I hope you like the drawing."


def write_caption(caption_type: str, items: list[Item], rates: TextRates, rng: Random) -> tuple[str, str]:
    """(reference, output): a true caption, which in one of three names only the first kind, and the model's."""
    told = items[:1] if len(items) > 1 and rng.random() < 1 / 3 else items
    output = _form(caption_type, _with_errors(items, rates, rng))
    if rng.random() < rates.bad_form:
        output = output + _PADDING if caption_type in ("brief", "detail") else f"Here you see {_listed(items)}."
    return _form(caption_type, told), output


def _form(caption_type: str, items: list[Item]) -> str:
    before, after = _FORMS[caption_type].split("{}")
    return before + _listed(items) + after


def _listed(items: list[Item]) -> str:
    return " and ".join(name(item) for item in items)


def _with_errors(items: list[Item], rates: TextRates, rng: Random) -> list[Item]:
    said = list(items)
    if len(said) > 1 and rng.random() < rates.omitted:
        said.pop(rng.randrange(len(said)))
    if rng.random() < rates.wrong:
        hit = rng.randrange(len(said))
        item = said[hit]
        color = rng.choice([color for color in COLORS if color != item.color])
        said[hit] = replace(item, color=color) if item.color else replace(item, n=item.n + 1)
    return said
