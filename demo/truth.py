"""The exact expected scores of the imaginary checkpoints: every outcome of the error rates, weighted by its probability.

No pictures and no chance: an outcome's scene is composed as the painter composes it and scored by the judge's own scoring
functions. A score depends on which errors happened, never on which colour, place or thing they hit (the tests hold it to that).
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from random import Random

from demo.scenes import Errors, ask, compose
from demo.scoring import alignment, composition, image_aspects
from demo.world import CATEGORIES, CHECKPOINTS, CONTENT_ERROR, RATES

MACRO = "__macro__"
Key = tuple[str, str, str, str]


@lru_cache(maxsize=1)
def expected() -> dict[Key, float]:
    """(rubric, checkpoint, dimension, category or "__macro__") -> expected score.

    The macro is the unweighted mean over the six categories, for the dimensions asked in all of them.
    """
    values: dict[Key, float] = {}
    for checkpoint, category in product(CHECKPOINTS, CATEGORIES):
        for errors, probability in outcomes(checkpoint, category):
            for (rubric, dimension), score in scores_of(category, errors).items():
                key = (rubric, checkpoint, dimension, category)
                values[key] = values.get(key, 0.0) + probability * score
    return values | _macros(values)


def outcomes(checkpoint: str, category: str) -> Iterator[tuple[Errors, float]]:
    """Every combination of errors one picture can have, with its probability; they sum to 1.

    A picture has the content error where its prompt was misread (m) or, if not, where it slips (s): m + (1 - m) s.
    """
    rates = RATES[checkpoint]
    misread, slip = rates.misread[category], rates.slip[category]
    chances = (misread + (1 - misread) * slip, rates.cut, rates.faint, rates.uneven, rates.plain)
    for happened in product((False, True), repeat=len(chances)):
        probability = 1.0
        for is_there, chance in zip(happened, chances, strict=True):
            probability *= chance if is_there else 1 - chance
        yield Errors(CONTENT_ERROR[category] if happened[0] else None, *happened[1:]), probability


def scores_of(category: str, errors: Errors, seed: int = 0) -> dict[tuple[str, str], float]:
    """(rubric, dimension) -> score of a picture with these errors, for one of the scenes it can be."""
    rng = Random(seed)
    asked = ask(category, 1, rng)[0]
    seen = compose(asked, errors, rng)
    found = {("composition", key): score for key, (score, _) in composition(category, asked, seen).items()}
    found |= {("image_aspects", key): score for key, (score, _) in image_aspects(asked, seen).items()}
    return found | {("alignment", "score"): alignment(asked, seen)[0]}


def _macros(values: dict[Key, float]) -> dict[Key, float]:
    macros: dict[Key, float] = {}
    for rubric, checkpoint, dimension, _ in values:
        per_category = [values.get((rubric, checkpoint, dimension, category)) for category in CATEGORIES]
        known = [value for value in per_category if value is not None]
        if len(known) == len(CATEGORIES):
            macros[rubric, checkpoint, dimension, MACRO] = sum(known) / len(known)
    return macros
