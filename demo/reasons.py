"""Why the judge gives a score: one or two sentences, as the prompts ask, about what it saw and what was asked. No scores.

Each sentence says only what the seen scene or the request holds: names, colours, counts, heights and places.
"""

from collections.abc import Sequence
from math import dist

from demo.facts import UNEVEN_RATIO, Facts, in_words, of_shape
from demo.sentences import name, phrase
from demo.world import Asked, Scene, Thing

NO_FAULT = "I see no fault of drawing: no shape is cut off, pale, or far smaller than the others."
FLAT = "The colours are flat, without light or shade, so it looks drawn and not real."


def asked_and_shown(asked: Asked, seen: Scene) -> str:
    """The request beside the picture."""
    return f"The prompt asks for {phrase(asked)}, and the picture shows {in_words(seen)}."


def points(facts: Facts) -> str:
    """What was found of everything asked for."""
    elements = f"{facts.n_elements_found} of {facts.n_elements} kinds of object"
    relations = f", and {facts.n_relations_found} of {facts.n_relations} colours, numbers and places" if facts.n_relations else ""
    return f"Found: {elements}{relations}."


def backdrop(seen: Scene) -> str:
    """What stands around the shapes."""
    if seen.is_plain:
        return "The shapes stand on plain paper, as literal as can be. Nothing was added to set a scene for them."
    return "The shapes stand in a landscape of sky and ground that was not asked for. They themselves are flat and plain."


def subject(facts: Facts, asked: Asked, seen: Scene) -> str:
    """Whether a subject without a mood is met."""
    verdict = "met" if facts.is_as_asked else "missed"
    return f"The prompt has no mood, and its subject is {verdict}. {asked_and_shown(asked, seen)}"


def faults(seen: Scene) -> str:
    """The faults of drawing by name, or that there are none."""
    hit = [(thing.is_cut, thing.is_faint, thing in _small(seen.things)) for thing in seen.things]
    words = ("cut off", "pale", "too small")
    found = [
        f"{_the(thing)} is {_and([word for word, is_there in zip(words, flags, strict=True) if is_there])}"
        for thing, flags in zip(seen.things, hit, strict=True)
        if any(flags)
    ]
    return f"I see faults of drawing: {_and(found)}." if found else NO_FAULT


def cohesion(seen: Scene) -> str:
    """What holds the picture together: its faults, and where the shapes stand."""
    ground = "one sheet of paper" if seen.is_plain else "one ground under one sky"
    return f"{faults(seen)} What is there stands apart, without overlap, on {ground}."


def not_there(asked: Asked, seen: Scene) -> str:
    """Why an aspect of an object that is missing is 0."""
    return f"The object asked for is not there, so nothing of it can count. {asked_and_shown(asked, seen)}"


def wholeness(seen: Scene) -> str:
    """Whether the shapes are whole."""
    cut = [thing for thing in seen.things if thing.is_cut]
    if cut:
        names = _and([_the(thing) for thing in cut])
        return f"The right part of {names} is missing: it ends in a cut. What is left has a clear outline."
    heights = _and([f"{_the(thing)} is {thing.size_px} px high" for thing in seen.things])
    return f"The object is whole: its outline is closed and no part is missing. I see that {heights}, and every edge of it."


def free(seen: Scene) -> str:
    """That nothing covers anything: what touches would be seen as one shape, and be none of the drawn ones."""
    return f"Nothing stands in front of it and nothing touches it. The picture shows {in_words(seen)}, all in the open."


def contrast(seen: Scene) -> str:
    """Which shapes fade into the ground, or that none does."""
    ground = "the paper" if seen.is_plain else "the landscape"
    faint = [thing for thing in seen.things if thing.is_faint]
    if faint:
        is_all = len(faint) == len(seen.things)
        rest = (
            "Nothing else is there to stand out." if is_all else "What else is there has its full colour, and nothing is hidden."
        )
        fades = "is so pale that it fades" if len(faint) == 1 else "are so pale that they fade"
        return f"{_capital(_and([_the(thing) for thing in faint]))} {fades} into {ground}. {rest}"
    shown = f"{in_words(seen)}, in full colour before {ground}"
    return f"Everything stands out clearly: {shown}. No shape is drawn pale, and none is hidden behind another."


def apart(asked: Asked, seen: Scene) -> str:
    """Whether two kinds of things are there, and how far apart."""
    pair = [of_shape(item.shape, seen) for item in asked.items]
    if all(pair):
        first, second = (things[0] for things in pair)
        return (
            f"Both objects are there and stand apart: {_the(first)} and {_the(second)}. "
            f"Their centres are {_apart_px(first, second)} px from each other, and no part of one touches the other."
        )
    return (
        f"{sum(map(bool, pair))} of the two objects are there, so there is no pair to keep apart. {asked_and_shown(asked, seen)}"
    )


def each_whole(asked: Asked, seen: Scene) -> str:
    """What became of each of two things."""
    states = []
    for item in asked.items:
        found = of_shape(item.shape, seen)
        state = ("cut off" if any(thing.is_cut for thing in found) else "whole") if found else "missing"
        states.append(f"the {item.shape} is {state}")
    return f"{_capital(_and(states))}. Five points for each whole object, two for one cut off, none for one that is missing."


def sizes(seen: Scene) -> str:
    """How the heights of the things stand to one another."""
    small = _small(seen.things)
    heights = _and([f"{_the(thing)} is {thing.size_px} px high" for thing in seen.things])
    verdict = "One is far too small beside the other" if small else "The sizes fit" if len(seen.things) > 1 else "It stands alone"
    return f"{verdict}: {heights or 'nothing is there'}. The drawing is flat, so heights are all there is to compare."


def count(asked: Asked, seen: Scene, n_seen: int) -> str:
    """How many there are of how many."""
    item = asked.items[0]
    off = n_seen - item.n
    verdict = "exactly the number" if not off else f"{abs(off)} too {'many' if off > 0 else 'few'}"
    return f"I count {n_seen} where the prompt asks for {name(item)}. That is {verdict}: the picture shows {in_words(seen)}."


def uniformity(differing: int, seen: Scene) -> str:
    """In what the things of a kind differ."""
    return f"The objects differ in {differing} of shape, size and colour. {faults(seen)}"


def color(asked: Asked, seen: Scene, *, is_right: bool) -> str:
    """Whether the colour is the one asked for."""
    pale = ", though drawn pale" if is_right and any(thing.is_faint for thing in seen.things) else ""
    verdict = (
        f"The object has the colour that was asked for{pale}." if is_right else "No object asked for has the colour asked for."
    )
    return f"{asked_and_shown(asked, seen)} {verdict}"


def one_color(asked: Asked, seen: Scene) -> str:
    """Which colours the things of the kind asked for have."""
    shape = asked.items[0].shape
    colors = sorted({thing.color for thing in of_shape(shape, seen)})
    if not colors:
        return f"I see no {shape}, so the kind has no one colour. {asked_and_shown(asked, seen)}"
    if len(colors) > 1:
        return f"The kind has no one colour: I see it in {_and(colors)}. {asked_and_shown(asked, seen)}"
    one = f"One kind, one colour: all that I see of the kind {shape} is {colors[0]}"
    return f"{one}. No other colour of it is in the picture, so nothing disagrees."


def place(asked: Asked, seen: Scene, *, is_right: bool) -> str:
    """Where the things stand."""
    verdict = "The place is right." if is_right else "The place is not the one asked for."
    places = _and([f"{_the(thing)} {thing.x_px} px from the left and {thing.y_px} px from the top" for thing in seen.things])
    return f"{verdict} Asked for was {phrase(asked)}; I see {places or 'nothing'}."


def surfaces(seen: Scene) -> str:
    """Whether the shapes' surfaces are whole and even."""
    cut = [_the(thing) for thing in seen.things if thing.is_cut]
    first = f"The surface of {_and(cut)} ends in a cut." if cut else "Even surfaces: each shape is filled up to its edge."
    return f"{first} Every shape has one flat colour, with no pattern or shade that would clash."


def average(scores: Sequence[tuple[str, float]]) -> str:
    """How the overall score comes about."""
    listed = _and([f"{key.replace('_', ' ')} {score:g}" for key, score in scores])
    return f"The plain average of {listed}. The prompt makes none of these aspects more important than the others."


def _small(things: Sequence[Thing]) -> list[Thing]:
    """Those far smaller than the largest."""
    largest = max((thing.size_px for thing in things), default=0)
    return [thing for thing in things if largest > UNEVEN_RATIO * thing.size_px]


def _the(thing: Thing) -> str:
    return f"the {thing.color} {thing.shape}"


def _and(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _apart_px(first: Thing, second: Thing) -> int:
    return round(dist((first.x_px, first.y_px), (second.x_px, second.y_px)))
