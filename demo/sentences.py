"""The language of the drawn world, both ways: a phrase for what is asked, and what a phrase asks or claims. No pictures."""

import re

from demo.world import COLORS, NUMBERS, RELATIONS, SHAPES, Asked, Item

_WORDS = {n: word for word, n in NUMBERS.items()}
_PLURALS = {shape: shape + ("es" if shape.endswith("s") else "s") for shape in SHAPES}
_SHAPE_OF = {form: shape for shape in SHAPES for form in (shape, _PLURALS[shape])}
_THING = (
    rf"(?:a|an|{'|'.join(NUMBERS)})\s+(?:(?:{'|'.join(COLORS)})\s+)?"
    rf"(?:{'|'.join(sorted(_SHAPE_OF, key=len, reverse=True))})\b"
)
_LINK = rf"\s+(?:and|(?:to\s+the\s+)?(?:{'|'.join(RELATIONS)}))\s+"
_ASKED = re.compile(rf"\b({_THING})(?:({_LINK})({_THING}))?", re.IGNORECASE)
_CLAIM = re.compile(rf"\b{_THING}", re.IGNORECASE)
_WHOLE = re.compile(rf"\s*(?:an?\s+(?:photo|picture|drawing|image)\s+of\s+)?({_ASKED.pattern})\s*\.?\s*", re.IGNORECASE)


def name(item: Item) -> str:
    """The item in words: "a red circle", "three squares"."""
    words = ([item.color] if item.color else []) + [item.shape if item.n == 1 else _PLURALS[item.shape]]
    if item.n > 1:
        return f"{_WORDS[item.n]} {' '.join(words)}"
    return f"{'an' if words[0][0] in 'aeiou' else 'a'} {' '.join(words)}"


def phrase(asked: Asked) -> str:
    """What is asked, in words: "a circle left of a square"."""
    return f" {asked.relation or 'and'} ".join(name(item) for item in asked.items)


def read_prompt(text: str) -> Asked | None:
    """What a prompt asks for, or None where the whole of it is not a sentence of the drawn world."""
    whole = _WHOLE.fullmatch(text)
    return find_asked(whole[1]) if whole else None


def find_asked(text: str) -> Asked | None:
    """The first thing a longer text asks for ("Please draw ... for me"), or None."""
    found = _ASKED.search(text)
    if not found:
        return None
    first, link, second = found.groups()
    if not second:
        return Asked((_item(first),))
    relation = next((relation for relation in RELATIONS if relation in " ".join(link.lower().split())), None)
    return Asked((_item(first), _item(second)), relation)


def claims(text: str) -> list[Item]:
    """Every kind of thing a text speaks of, once each, in order."""
    return list(dict.fromkeys(_item(found[0]) for found in _CLAIM.finditer(text)))


def without_claims(text: str) -> str:
    """The text less the things it speaks of: what is left is its manner."""
    return _CLAIM.sub(" ", text)


def _item(words: str) -> Item:
    number, *rest = words.lower().split()
    return Item(_SHAPE_OF[rest[-1]], rest[0] if len(rest) > 1 else None, NUMBERS.get(number, 1))
