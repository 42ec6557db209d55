"""Derived figures of one sample: closed forms over scores, with what they can have been where an operand is missing.

Which dimensions are figures, and on which scale, is dimensions.py. A missing operand makes a figure missing, never smaller; what
does not apply leaves it. Sums are math.fsum, so that the order of operands changes no digit.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rubrics.model import Dimension, Figure


@dataclass(frozen=True, slots=True)
class Operand:
    """One score a figure is made of; `score` None: it is missing, for `reason`, and lies in [low, high].

    `lowest` is the lower end of its scale: an item that has it has failed, and voids those that name it among `parents`.
    """

    name: str
    score: float | None
    low: float
    high: float
    reason: str | None = None
    does_apply: bool = True
    weight: float = 1.0
    parents: tuple[str, ...] = ()
    lowest: float = 0.0


@dataclass(frozen=True, slots=True)
class Derived:
    """A figure of one sample. `score` None with a reason: an operand is missing; without: nothing applies."""

    score: float | None
    low: float
    high: float
    reason: str | None
    note: str


def derive(dimension: Dimension, operands: Sequence[Operand]) -> Derived:
    """The figure a dimension declares, over its operands in order."""
    figure = dimension.figure
    assert figure is not None
    chosen = _weighted(figure, operands)
    in_doubt = _with_aside(chosen, {one.name for one in chosen if one.does_apply and one.score is None})
    counted, doubtful, voided = _gated(figure, chosen, in_doubt)
    note = f"{figure.form} of {', '.join(f'{one.name}: {_shown(one)}' for one in chosen)}"[:4000]
    if voided:
        note += f"; a parent failed: {', '.join(voided)}"
    if not counted or (figure.needs_all and len(counted) < len(chosen)):
        return Derived(None, dimension.minimum, dimension.maximum, None, note)
    low, high = sorted(
        _on_scale(dimension, some, [getattr(one, end) for one in some])
        for some, end in (([*counted, *doubtful], "low"), (counted, "high"))
    )
    if figure.when_parent_fails == "left_out" and any(not in_doubt.isdisjoint(one.parents) for one in counted):
        low, high = dimension.minimum, dimension.maximum  # which items count is not known either
    reasons = [one.reason or "missing_key" for one in counted if one.score is None]
    if reasons:
        return Derived(None, low, high, min(reasons, key=lambda reason: (-reasons.count(reason), reason)), note)
    score = _on_scale(dimension, counted, [one.score for one in counted if one.score is not None])
    return Derived(score, score, score, None, note)


def derive_each(dimensions: Sequence[Dimension], operands: Sequence[Operand]) -> Iterator[tuple[Dimension, Derived]]:
    """Each figure, in order; one that names those it is made of may name figures before it."""
    known = list(operands)
    for dimension in dimensions:
        made = derive(dimension, known if dimension.figure and dimension.figure.of else operands)
        known.append(
            Operand(
                dimension.key, made.score, made.low, made.high, made.reason,
                made.score is not None or made.reason is not None, lowest=dimension.minimum,
            )
        )  # fmt: skip
        yield dimension, made


def _shown(one: Operand) -> str:
    return "not applicable" if not one.does_apply else f"{one.score:g}" if one.score is not None else str(one.reason)


def _weighted(figure: Figure, operands: Sequence[Operand]) -> list[Operand]:
    """The operands the figure names, in its order and with its weights; all of them where it is one of items."""
    if not figure.of:
        return list(operands)
    by_name: Mapping[str, Operand] = {one.name: one for one in operands}
    weights = figure.weights or (1.0,) * len(figure.of)
    return [replace(by_name[name], weight=weight) for name, weight in zip(figure.of, weights, strict=True)]


def _gated(
    figure: Figure, operands: Sequence[Operand], in_doubt: set[str]
) -> tuple[list[Operand], list[Operand], list[str]]:  # fmt: skip
    """(what counts, what may yet count as the lowest score, the names of those one of whose direct parents failed).

    `in_doubt`: the operands that are missing, and with them what does not apply below one: they may have failed.
    These are left out or have the lowest score, whatever was answered: a judge may say of such a child that it does not apply.
    """
    applying = [one for one in operands if one.does_apply]
    if figure.when_parent_fails is None:
        return applying, [], []
    voided = list(failed_parents(operands))
    if figure.when_parent_fails == "left_out":
        return [one for one in applying if one.name not in voided], [], voided
    gated = [
        replace(one, score=one.lowest, low=one.lowest, high=one.lowest) if one.name in voided
        else replace(one, low=one.lowest) if not in_doubt.isdisjoint(one.parents) else one
        for one in operands if one.does_apply or one.name in voided
    ]  # fmt: skip
    doubtful = [one for one in operands if not (one.does_apply or one.name in voided or in_doubt.isdisjoint(one.parents))]
    return gated, [replace(one, low=one.lowest) for one in doubtful], voided


def failed_parents(operands: Sequence[Operand]) -> dict[str, str]:
    """The operands one of whose direct parents failed, each with the first such parent.

    One has failed that has the lowest score, or, below one that failed, is said not to apply. What a voided parent was given
    besides counts for its children: one that was answered well voids nothing (so DSG scores).
    """
    failed = _with_aside(operands, {one.name for one in operands if one.score is not None and one.score <= one.lowest})
    found = {one.name: next((name for name in one.parents if name in failed), None) for one in operands}
    return {name: parent for name, parent in found.items() if parent is not None}


def _with_aside(operands: Sequence[Operand], names: set[str]) -> set[str]:
    """These, and what does not apply below one of them, however deep."""
    while more := {one.name for one in operands if not one.does_apply and not names.isdisjoint(one.parents)} - names:
        names = names | more
    return names


def _on_scale(dimension: Dimension, operands: Sequence[Operand], values: Sequence[float]) -> float:
    """The form's value. Roots and weights, rounded to binary numbers, may miss an end of the scale or a short decimal by a digit.

    It is then that end or decimal: the root of 5 times 5, which comes out below 5, is "5 or more".
    """
    figure = dimension.figure
    assert figure is not None
    value = _value(figure, operands, values)
    near = (float(dimension.minimum), float(dimension.maximum), round(value, 6))
    return next((one for one in near if math.isclose(value, one, rel_tol=1e-12, abs_tol=1e-12)), value)


def _value(figure: Figure, operands: Sequence[Operand], values: Sequence[float]) -> float:
    n, threshold = len(values), 1.0 if figure.at_least is None else figure.at_least
    passed = [value >= threshold for value in values]
    forms: dict[str, Callable[[], float]] = {
        "mean": lambda: math.fsum(values) / n,
        "weighted_mean": lambda: (
            math.fsum(o.weight * v for o, v in zip(operands, values, strict=True)) / math.fsum(o.weight for o in operands)
        ),
        "geometric_mean": lambda: 0.0 if min(values) <= 0 else math.exp(math.fsum(map(math.log, values)) / n),
        "minimum": lambda: min(values),
        "product": lambda: math.prod(values),
        "sqrt_product": lambda: math.sqrt(math.prod(values)),
        "all": lambda: float(all(passed)),
        "share": lambda: sum(passed) / n,
        "turned": lambda: figure.sum_of_ends - values[0],
    }
    return forms[figure.form]()
