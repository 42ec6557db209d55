"""The dimensions of a declaration: those a reply says, and those made of them, kinds of items and figures, with their scales.

How a figure is computed is figures.py.
"""

from collections.abc import Mapping, Sequence
from math import fsum
from operator import mul
from pathlib import Path

from rubrics.declaration import Declaration, DimensionSection, FigureSection, refusal
from rubrics.model import Dimension, Figure, Probability
from rubrics.replies.labels import folded, normal
from schemas.errors import InputError
from schemas.pointers import steps


def read_dimension(folder: Path, section: DimensionSection, declared: Declaration) -> Dimension:
    """What a reply says of a section. Raises RubricError where its scale, its answers or its places cannot be."""
    answers = section.answers or (None if section.scale else declared.answers)
    scale = section.scale or declared.scale
    if answers:
        _check_answers(folder, section, answers)
    elif scale is None:
        raise refusal(
            folder,
            f"dimension {section.key!r} has no scale; write scale = {{ min = 0, max = 10 }}, or answers = {{ yes = 1, no = 0 }}",
        )
    aside = section.not_applicable or declared.not_applicable or []
    _check_aside(folder, section, answers or {}, aside)
    places = [section.at] if isinstance(section.at, str) else section.at or []
    for place in places:
        try:
            steps(place)
        except InputError as error:
            raise refusal(folder, f"dimension {section.key!r}, at: {error}") from error
        if not normal(str(steps(place)[0])):
            raise refusal(folder, f"dimension {section.key!r}, at: {place!r} begins with a name without letters; name another")
    labels, at = tuple(section.labels) or (section.key,), places[0] if places else None
    ends = (min(answers.values()), max(answers.values())) if answers else (scale.min, scale.max) if scale else (0.0, 0.0)
    return Dimension(
        section.key, labels, *ends, scale.step if scale and not answers else None, at, tuple(places[1:]),
        tuple((answers or {}).items()), tuple(aside),
        probability=_probability(folder, declared, answers), is_lower_better=section.better == "lower",
    )  # fmt: skip


def _probability(folder: Path, declared: Declaration, answers: Mapping[str, float] | None) -> Probability | None:
    section = declared.probability
    if section is None:
        return None
    by_item = declared.items is not None and "expected" in declared.items.fields and declared.items.asked == "each"
    if declared.reply != "answer" or not (answers or by_item):
        raise refusal(folder, "probability needs answers: write reply = 'answer', and give answers (or items with expected ones)")
    if not section.normalised and answers and not set(answers.values()) <= {0, 1}:
        raise refusal(folder, "probability of answers that are not 0 or 1 is an expectation: write normalised = true")
    return Probability(section.normalised, section.min_mass)


def _check_answers(folder: Path, section: DimensionSection, answers: Mapping[str, float]) -> None:
    """What a closed map of answers must be for its words to be told apart."""
    where = f"dimension {section.key!r}, answers"
    if section.scale is not None:
        raise refusal(folder, f"{where}: the answers' numbers are the scale; remove scale")
    if len(set(answers.values())) < 2:
        raise refusal(folder, f"{where}: every answer is {next(iter(answers.values())):g}; give two of them different numbers")
    words = [folded(word) for word in answers]
    for word in words:
        if words.count(word) > 1:
            raise refusal(folder, f"{where} has {word!r} twice; name it once")


def _check_aside(folder: Path, section: DimensionSection, answers: Mapping[str, float], aside: Sequence[str]) -> None:
    """A word is an answer with a number, or it says that the question does not apply."""
    for word in aside:
        if folded(word) in map(folded, answers):
            raise refusal(
                folder,
                f"dimension {section.key!r}: {word!r} is in answers, with a number, and in not_applicable, without one; "
                "remove it from one of them",
            )


def derived_dimensions(folder: Path, declared: Declaration, dimensions: Sequence[Dimension]) -> tuple[Dimension, ...]:
    """Those of one variant whose replies say `dimensions`. Raises RubricError where a figure has nothing to be made of."""
    items = declared.items
    if items is not None and len(dimensions) != 1:
        raise refusal(folder, f"with items each reply gives one dimension per item; declare one dimension, not {len(dimensions)}")
    if items is not None and not (declared.figures or items.kinds):
        raise refusal(folder, 'with items, tables need figures or kinds; add [[figures]] with key = "score", form = "mean"')
    kinds = [] if items is None else [_like(key, dimensions[0]) for key in dict.fromkeys(items.kinds.values())]
    known = {dimension.key: dimension for dimension in dimensions}
    figures: list[Dimension] = []
    for section in declared.figures:
        figures.append(_figure(folder, section, known, is_of_items=items is not None))
        known |= {} if items else {figures[-1].key: figures[-1]}  # a figure may be made of those before it
    keys = [one.key for one in (*dimensions, *kinds, *figures)]
    for key in keys:
        if keys.count(key) > 1:
            raise refusal(folder, f"dimensions, kinds and figures have {key!r} twice; rename one")
    return (*kinds, *figures)


def check_turned(folder: Path, dimensions: Sequence[Dimension], derived: Sequence[Dimension]) -> None:
    """Raise RubricError where no figure turns a dimension that is better when lower."""
    turned = {one.figure.of[0] for one in derived if one.figure and one.figure.form == "turned"}
    for one in dimensions:
        if one.is_lower_better and one.key not in turned:
            raise refusal(
                folder,
                f"dimension {one.key!r} has better = 'lower', but tables rank higher numbers first; add [[figures]] with a new "
                f"key, form = 'turned', of = ['{one.key}'], which is {one.minimum + one.maximum:g} minus the number",
            )


def _like(key: str, dimension: Dimension) -> Dimension:
    return Dimension(key, (key,), dimension.minimum, dimension.maximum, dimension.step)


def _figure(folder: Path, section: FigureSection, known: dict[str, Dimension], *, is_of_items: bool) -> Dimension:
    where = f"figure {section.key!r}"
    if is_of_items == bool(section.of):
        raise refusal(
            folder,
            f"{where}: with items, a figure is made from the items and takes no `of`; without items, `of` names dimensions",
        )
    for key in section.of:
        if key not in known:
            raise refusal(
                folder,
                f"{where} is made of {key!r}, which is neither a dimension nor an earlier figure; available: {', '.join(known)}",
            )
    if section.when_parent_fails and not is_of_items:
        raise refusal(folder, f"{where}: when_parent_fails is for items; remove it")
    lower = [key for key in section.of if known[key].is_lower_better]
    if section.form == "turned" and not len(lower) == len(section.of) == 1:
        raise refusal(folder, f"{where}: form = 'turned' takes exactly one dimension, with better = 'lower'")
    if section.form != "turned" and lower:
        raise refusal(
            folder,
            f"{where} is made of {lower[0]!r}, of which lower is better; make a figure with form = 'turned' of it before, "
            "and name that one here",
        )
    if section.weights and (section.form != "weighted_mean" or len(section.weights) != len(section.of)):
        raise refusal(folder, f"{where}: weights need form = 'weighted_mean' and as many entries as `of`")
    if section.form == "weighted_mean" and section.of and not section.weights:
        raise refusal(folder, f"{where}: form = 'weighted_mean' needs weights, one for each of `of`")
    operands = [known[key] for key in section.of] or list(known.values())
    low, high = _scale(folder, where, section, operands)
    is_of_unlike = section.form == "weighted_mean" and _unlike(operands) is not None
    figure = Figure(
        section.form, tuple(section.of), tuple(section.weights), section.at_least, low + high, section.when_parent_fails,
        needs_all=is_of_unlike or (section.form in {"product", "sqrt_product"} and high > 1),
    )  # fmt: skip
    return Dimension(section.key, (section.key,), low, high, 1 if section.form == "all" else None, figure=figure)


def _scale(folder: Path, where: str, section: FigureSection, operands: Sequence[Dimension]) -> tuple[float, float]:
    """What the figure can be, from what its operands can be."""
    lows, highs = [one.minimum for one in operands], [one.maximum for one in operands]
    if section.form in {"all", "share"}:
        if section.at_least is None and any(low != 0 or high != 1 for low, high in zip(lows, highs, strict=True)):
            raise refusal(
                folder,
                f"{where}: form = {section.form!r} of scores that are not 0 or 1 needs at_least, the lowest score that counts",
            )
        _check_threshold(folder, where, section, operands)
        return 0.0, 1.0
    if section.at_least is not None:
        raise refusal(folder, f"{where}: at_least is only for the forms 'all' and 'share'; remove it")
    if section.form in {"geometric_mean", "product", "sqrt_product"} and min(lows) < 0:
        raise refusal(folder, f"{where}: form = {section.form!r} takes no scores below 0, but the scale begins at {min(lows):g}")
    if section.form in {"product", "sqrt_product"}:
        if not section.of:
            raise refusal(folder, f"{where}: form = {section.form!r} of any number of items has no scale; use geometric_mean")
        low, high = _product(lows), _product(highs)
        return (low, high) if section.form == "product" else (low**0.5, high**0.5)
    unlike = _unlike(operands)
    if unlike is None:
        return lows[0], highs[0]
    if section.form != "weighted_mean":
        one, other = (f"{each.key} is {each.minimum:g} to {each.maximum:g}" for each in unlike)
        raise refusal(
            folder,
            f"{where}: form = {section.form!r} takes scores of one scale, but {one} and {other}; use form = 'weighted_mean' "
            "with weights that say what a point of each counts",
        )
    low, high = (fsum(map(mul, section.weights, ends)) / fsum(section.weights) for ends in (lows, highs))
    return low, high


def _unlike(operands: Sequence[Dimension]) -> tuple[Dimension, Dimension] | None:
    """Two of them that are on different scales; None where all are on one."""
    first = operands[0]
    return next(((first, one) for one in operands if (one.minimum, one.maximum) != (first.minimum, first.maximum)), None)


def _check_threshold(folder: Path, where: str, section: FigureSection, operands: Sequence[Dimension]) -> None:
    """From where a score counts must lie on the scale: above its lower end, where every score would, and not above its upper."""
    for one in operands:
        if section.at_least is not None and not one.minimum < section.at_least <= one.maximum:
            raise refusal(
                folder,
                f"{where}: at_least = {section.at_least:g} separates no scores of {one.key!r}, whose scale is "
                f"{one.minimum:g} to {one.maximum:g}; write a number above {one.minimum:g} and at most {one.maximum:g}",
            )


def _product(values: Sequence[float]) -> float:
    found = 1.0
    for value in values:
        found *= value
    return found
