"""What is asked, and what is painted instead: prompts of each category, their layout, and the errors applied to it. No pixels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from demo.world import COLORS, RELATIONS, SHAPES, SIZES_PX, SMALL_PX, Asked, Item, Scene, Thing

_GRID_PX = (45, 128, 211)  # centres of a 3 x 3 grid; with the jitter no two things touch
_JITTER_PX = 5


@dataclass(frozen=True, slots=True)
class Errors:
    """What goes wrong in one picture: the category's content error by name (None: nothing), and faults of execution."""

    content: str | None = None
    is_cut: bool = False
    is_faint: bool = False
    is_uneven: bool = False
    is_plain: bool = False


def ask(category: str, n: int, rng: Random) -> list[Asked]:
    """`n` different things to ask for in a category."""
    asked: dict[Asked, None] = {}
    while len(asked) < n:
        asked[_ask_one(category, rng)] = None
    return list(asked)


def _ask_one(category: str, rng: Random) -> Asked:
    first, second = rng.sample(SHAPES, 2)
    red, blue = rng.sample(list(COLORS), 2)
    if category == "single_object":
        return Asked((Item(first),))
    if category == "counting":
        return Asked((Item(first, n=rng.randint(3, 6)),))
    if category == "colors":
        return Asked((Item(first, red),))
    if category == "color_attr":
        return Asked((Item(first, red), Item(second, blue)))
    return Asked((Item(first), Item(second)), rng.choice(RELATIONS) if category == "position" else None)


def compose(asked: Asked, errors: Errors, rng: Random) -> Scene:
    """The picture's content: what is asked, with the errors in it. Which colour, place or thing is hit comes from `rng`."""
    things = _with_content_error(_lay_out(asked, rng), errors.content, rng)
    for is_hit, change in (
        (errors.is_cut, {"is_cut": True}),
        (errors.is_faint, {"is_faint": True}),
        (errors.is_uneven, {"size_px": SMALL_PX}),
    ):
        if is_hit:
            hit = rng.randrange(len(things))
            things[hit] = replace(things[hit], **change)
    return Scene(tuple(things), errors.is_plain)


def _lay_out(asked: Asked, rng: Random) -> list[Thing]:
    """Things as asked, in cells of the grid; each kind has one colour and one size."""
    kinds = [item for item in asked.items for _ in range(item.n)]
    colors = {item: item.color or rng.choice(list(COLORS)) for item in asked.items}
    sizes = {item: rng.choice(SIZES_PX) for item in asked.items}
    cells = _cells(asked.relation, len(kinds), rng)
    return [Thing(kind.shape, colors[kind], x, y, sizes[kind]) for kind, (x, y) in zip(kinds, cells, strict=True)]


def _cells(relation: str | None, n: int, rng: Random) -> list[tuple[int, int]]:
    if relation is None:
        places = rng.sample([(x, y) for x in _GRID_PX for y in _GRID_PX], n)
    else:
        low, high = sorted(rng.sample(_GRID_PX, 2))
        along = (low, high) if relation in ("left of", "above") else (high, low)
        across = rng.choice(_GRID_PX)
        places = [(a, across) if relation in ("left of", "right of") else (across, a) for a in along]
    return [(_jitter(x, rng), _jitter(y, rng)) for x, y in places]


def _jitter(center_px: int, rng: Random) -> int:
    return center_px + rng.randint(-_JITTER_PX, _JITTER_PX)


def _with_content_error(things: list[Thing], error: str | None, rng: Random) -> list[Thing]:
    match error:
        case "wrong_shape":
            things = [replace(things[0], shape=_other(SHAPES, things[0].shape, rng)), *things[1:]]
        case "wrong_color":
            things = [replace(thing, color=_other(list(COLORS), thing.color, rng)) for thing in things]
        case "missing":
            things = rng.sample(things, len(things) - 1)
        case "wrong_count":
            things = things[:-1] if rng.random() < 0.5 else [*things, _one_more(things, rng)]
        case "swapped":
            a, b = things
            things = [replace(a, x_px=b.x_px, y_px=b.y_px), replace(b, x_px=a.x_px, y_px=a.y_px)]
        case "swapped_colors":
            a, b = things
            things = [replace(a, color=b.color), replace(b, color=a.color)]
    return things


def _other(choices: Sequence[str], present: str, rng: Random) -> str:
    return rng.choice([choice for choice in choices if choice != present])


def _one_more(things: list[Thing], rng: Random) -> Thing:
    """A copy of the first thing in a cell that is free."""
    free = [
        (x, y)
        for x in _GRID_PX
        for y in _GRID_PX
        if all(max(abs(thing.x_px - x), abs(thing.y_px - y)) > _JITTER_PX for thing in things)
    ]
    x, y = rng.choice(free)
    return replace(things[0], x_px=_jitter(x, rng), y_px=_jitter(y, rng))
