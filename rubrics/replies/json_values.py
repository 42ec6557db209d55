"""What stands under a dimension's key in a JSON object -> its numbers, each with its leaf. Which objects: json_form.py."""

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

from rubrics.model import Dimension
from rubrics.replies.labels import keys_by_label, normal
from rubrics.replies.numbers import BLANK, Value, literal, read_number, scale_stated
from rubrics.replies.tolerant_json import Bare, Number, Pairs
from schemas.pointers import steps
from schemas.statuses.rows import ParseReason

Said = tuple[Value, Any]
"""A value and the leaf (a Number, Bare or str of the tree) it was read from."""

SCORE = "score"
AMENDED = (
    "final", "revised", "revision", "adjusted", "adjustment", "corrected", "correct", "correction", "corrections", "updated",
    "update",    "amended", "amendment", "new", "actual", "overall", "total",
)  # fmt: skip
"""Before or behind a label they make it another one, whose number takes the label's back. Alone they mean the whole answer's."""
_WHOLE = frozenset({"final", "overall", "total", "new", "actual"})
SCALE_KEYS = frozenset(
    {"max", "maxscore", "maximum", "maximumscore", "outof", "scale", "scoremax", "scoringscale", "scorescale", "maxpoints",
     "range",     "scorerange", "ratingscale"}
)  # fmt: skip
_OTHER_NAMES = frozenset({"rating", "value"})
_N_LIST_MAX = 120
_N_NAME_MAX = 60
_WORDS = re.compile(r"[^\W\d_]+")


@lru_cache(maxsize=256)
def rival_keys(dimensions: tuple[Dimension, ...]) -> Mapping[str, tuple[Dimension, ...]]:
    """Normalised key -> the dimensions whose number it takes back, where it says another: `final_score`, `corrected`."""
    labels = keys_by_label(dimensions)
    found: dict[str, tuple[Dimension, ...]] = {}
    for label, named in labels.items():
        bare = label.removeprefix("overall") if len(dimensions) > 1 else ""
        for word in AMENDED:
            keys = {word + label, label + word} | (
                {word + bare, bare + word} if bare and word not in {"overall", "total"} else set()
            )
            found |= dict.fromkeys(keys - labels.keys(), named)
        if label == "overall":  # "final" beside it means the same whole
            found |= dict.fromkeys({"final"} - labels.keys(), named)
    for word in AMENDED:
        if word not in labels and (len(dimensions) == 1 or word not in _WHOLE):
            found.setdefault(word, dimensions)
    return found


_AMENDING = rf"(?:{'|'.join((*AMENDED, 'net', 'definitive', 'reconsidered', 'ultimate', 'recalculated', 'reviewed'))})"
_WHOLE_NOUN = (
    r"(?:score|rating|grade|mark|verdict|answer|value|evaluation|assessment|result|points?|decision|judge?ment|choice|winner"
    r"|preference|vote)"
)
_ANOTHER_OF_THE_WHOLE = re.compile(
    rf"(?:the|my)?(?:{_AMENDING}{{1,2}}{_WHOLE_NOUN}|{_WHOLE_NOUN}{_AMENDING}"
    rf"|(?:{_WHOLE_NOUN}|{_AMENDING})(?:after|post|with(?!out)|including)[a-z]{{3,24}}|(?:after|post)[a-z]{{3,24}}?{_WHOLE_NOUN})"
)


@lru_cache(maxsize=4096)
def is_another_of_the_whole(name: str) -> bool:
    """Whether a key names another score of the whole: `final_rating`, `score_after_review`."""
    return len(name) <= _N_NAME_MAX and _ANOTHER_OF_THE_WHOLE.fullmatch(name) is not None


def rivals_by_name(name: str, dimensions: tuple[Dimension, ...]) -> tuple[Dimension, ...]:
    """The dimension whose number a key takes back that names another score of the whole (`is_another_of_the_whole`)."""
    if len(dimensions) > 1 and ("total" in name or "sum" in name):  # of the parts
        return ()
    whole = [one for one in dimensions if normal(one.key).startswith("overall") or len(dimensions) == 1]
    return tuple(whole[:1])


@lru_cache(maxsize=1)
def _own_rivals() -> frozenset[str]:
    """The keys beside a dimension's own `score` that take it back."""
    return frozenset(
        {
            *(word for word in AMENDED if word not in _WHOLE),
            *(f"{word}score" for word in AMENDED),
            *(f"score{word}" for word in AMENDED),
        }
    )


def says(name: str, value: Any, dimension: Dimension, dimensions: Sequence[Dimension]) -> tuple[list[Said], str]:
    """What stands under the key `name` of a dimension (several where its `score` is there twice), and the words beside it."""
    if dimension.at is None:
        return _of_value(value, dimension)
    found: list[tuple[list[Said], str]] = []
    for place in (dimension.at, *dimension.or_at):
        if normal(str(steps(place)[0])) == name:
            pointed = _at_pointer(value, place, dimensions)
            is_list_in_list = "[" in place and isinstance(pointed, list) and not isinstance(pointed, Pairs)
            found.append(_of_value(None if is_list_in_list else pointed, dimension))
    fitting = [one for one in found if one[0][0][0] is not ParseReason.WRONG_TYPE]
    return (fitting or found)[0]


def is_text(value: Any) -> bool:
    """Whether a value stood in quotes."""
    return isinstance(value, str) and not isinstance(value, Number | Bare)


def is_words(value: Any) -> bool:
    """Whether a value is a text about a dimension and no try at its number: three words or more that open with a letter."""
    if isinstance(value, Pairs):
        return bool(value) and all(is_text(inner) and is_words(inner) for _, inner in value)
    if not is_text(value):
        return False
    text = value.strip(BLANK)
    return bool(text) and not text[0].isdigit() and len(_WORDS.findall(text[:200])) > 2


def own_numbers(value: Any, dimension: Dimension) -> Iterator[Said]:
    """The numbers a rival's value says."""
    yield from (said for said in _of_value(value, dimension)[0] if isinstance(said[0], Decimal))


def is_other_scale(stated: Any, dimension: Dimension) -> bool:
    """Whether a text or a number says an end of another scale than the dimension's."""
    return isinstance(stated, str) and len(stated) < 100 and scale_stated(stated, dimension) is not None


def note_of(pairs: Pairs, labels: Any, *, is_of_one: bool = True) -> str:
    """The texts that stand beside the number; beside several numbers the one text there is, which is about all of them."""
    texts = [value.strip() for key, value in pairs if is_text(value) and normal(key) not in labels]
    return " ".join(texts) if is_of_one or len(texts) == 1 else ""


def _of_value(value: Any, dimension: Dimension) -> tuple[list[Said], str]:
    if not isinstance(value, Pairs):
        return [_read(value, dimension)], ""
    named = [(normal(key), inner) for key, inner in value]
    said = [_read(inner, dimension) for name, inner in named if name == SCORE] or _otherwise_named(named, dimension)
    if any(is_other_scale(inner, dimension) for name, inner in named if name in SCALE_KEYS):
        said = [(ParseReason.SCALE_MISMATCH, None)]
    elif len(named) > 1:
        rivals = _own_rivals()
        said += [one for name, inner in named if name in rivals for one in own_numbers(inner, dimension)]
    return said or [(ParseReason.WRONG_TYPE, None)], note_of(value, frozenset({SCORE}))


def _otherwise_named(named: list[tuple[str, Any]], dimension: Dimension) -> list[Said]:
    """A `rating` or `value` in place of the `score`: the one number of an object that holds words about it."""
    numbers = [(name, inner) for name, inner in named if name in _OTHER_NAMES]
    if len(numbers) != 1 or not any(is_words(inner) for _, inner in named):
        return []
    return [_read(numbers[0][1], dimension)]


def _read(value: Any, dimension: Dimension) -> Said:
    if isinstance(value, Number) and not dimension.answers:
        return literal(value), value
    if isinstance(value, str):
        return (read_number(value, dimension, is_prose_allowed=False) if value.strip(BLANK) else ParseReason.WRONG_TYPE), value
    if isinstance(value, list) and not isinstance(value, Pairs) and 0 < len(value) <= _N_LIST_MAX:
        return _read_list(value, dimension)
    return ParseReason.WRONG_TYPE, None


def _read_list(items: list[Any], dimension: Dimension) -> Said:
    """[3], as the prompt's own [0-4] was copied, and [8, "why"]: one number. Any other list is none."""
    if isinstance(items[0], Number | Bare) and (len(items) == 1 or (len(items) == 2 and is_words(items[1]))):
        said = _read(items[0], dimension)
        if isinstance(said[0], Decimal):
            return said
    if all(isinstance(item, Bare | Number) for item in items):
        form = read_number("[" + ", ".join(items) + "]", dimension, is_prose_allowed=False)
        if form is ParseReason.TEMPLATE_ECHO:
            return form, None
    return ParseReason.WRONG_TYPE, None


def _at_pointer(value: Any, pointer: str, dimensions: Sequence[Dimension]) -> Any:
    """What stands at the rest of the pointer; None (no number) where a list has another length than the pointers imply."""
    path = steps(pointer)
    for index, step in enumerate(path[1:], 1):
        if isinstance(step, str):
            inner = [entry for key, entry in value if normal(key) == normal(step)] if isinstance(value, Pairs) else []
            value = inner[0] if len(inner) == 1 else None
        else:
            is_list = isinstance(value, list) and not isinstance(value, Pairs)
            value = value[step] if is_list and len(value) == _n_implied(path[:index], dimensions) else None
    return value


def _n_implied(prefix: tuple[str | int, ...], dimensions: Sequence[Dimension]) -> int:
    """One more than the highest index any dimension takes from the list at `prefix`."""
    paths = [steps(place) for d in dimensions if d.at is not None for place in (d.at, *d.or_at)]
    indices = [path[len(prefix)] for path in paths if len(path) > len(prefix) and path[: len(prefix)] == prefix]
    return 1 + max((index for index in indices if isinstance(index, int)), default=-1)
