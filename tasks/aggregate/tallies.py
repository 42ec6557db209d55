"""One cell's prompts and failures, and the mean and bounds over them. What is published of a cell is tables.py."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from schemas.metrics import CELL
from schemas.records import UNKNOWN
from schemas.statuses.cells import Estimand
from tasks.aggregate.intervals import ClusteredMean, clustered_mean, mean_of_means, mean_within
from tasks.aggregate.judged import Array, Judged
from tasks.aggregate.looks import Reached
from tasks.aggregate.unknown_category import ALL_KNOWN, UnknownCategory, with_worst


@dataclass(frozen=True)  # no slots: what many cells and comparisons ask for is worked out once
class Tally:
    """The prompts of one cell: the columns of prompt_sums(), sorted by category and prompt.

    `categories` says which rows are which category's; `failures_in` counts their failures by reason, `n_aside_in` the
    judgements to which the dimension does not apply, also in categories that have no others and so no row. `reached`: how far
    the cell was asked; None where all was at once. `unknown`: the failures of no known category, which have columns too.
    """

    columns: Mapping[str, Array]
    categories: Mapping[str, slice]
    failures_in: Mapping[str, Counter[str]]
    n_aside_in: Mapping[str, int] = field(default_factory=dict)
    reached: Reached | None = None
    unknown: UnknownCategory = ALL_KNOWN

    @property
    def categories_aside(self) -> list[str]:
        """The categories to all of whose judgements the dimension does not apply."""
        return sorted(self.n_aside_in.keys() - self.categories.keys())

    @cached_property
    def by_category(self) -> dict[str, "Tally"]:
        """One tally for each category the cell has, in the categories' order."""
        return {
            category: Tally(
                {name: values[rows] for name, values in self.columns.items()},
                {category: slice(None)},
                {category: self.failures_in.get(category, Counter())},
                {category: self.n_aside_in.get(category, 0)},
                self.reached,
            )
            for category, rows in self.categories.items()
        }

    @property
    def failures(self) -> Counter[str]:
        """Failures by reason."""
        return sum(self.failures_in.values(), Counter())

    def count(self, name: str) -> int:
        """The sum of one of the counts, such as n_judgements."""
        return int(self.columns[name].sum())

    @property
    def n_prompts(self) -> int:
        """Prompts with at least one score."""
        return 0 if self.scored is None else len(self.scored[0])

    def without_prompts(self, category: str) -> "Tally":
        """The tally of one of `categories_aside`."""
        nothing = {name: values[:0] for name, values in self.columns.items()}
        return Tally(nothing, {}, {}, {category: self.n_aside_in[category]}, self.reached)

    @cached_property
    def scored(self) -> tuple[Array, Array, Array, Array] | None:
        """Sum of image values, images, squares within, and number of each prompt that has a score, sorted; None without any.

        A prompt that stands in two categories is one cluster: its rows are merged, their squares taken about the joint mean.
        """
        order, starts = self._by_prompt
        if not len(order):
            return None
        value, counts, squares, prompt = (self.columns[name][order] for name in ("value", "n_images", "squares", "prompt"))
        if len(starts) == len(order):
            return value, counts, squares, prompt
        sums, images = np.add.reduceat(value, starts), np.add.reduceat(counts, starts)
        joint = np.repeat(sums / images, np.diff(starts, append=len(order)))
        within = np.add.reduceat(squares + counts * (value / counts - joint) ** 2, starts)
        return sums, images, within, prompt[starts]

    @property
    def distinct(self) -> tuple[Array, Array] | None:
        """Distinct samples of each prompt of `scored`, and their squares; None where each sample stands there once."""
        order, starts = self._by_prompt
        if "n_distinct" not in self.columns or not len(order):
            return None
        names = ("value", "n_images", "n_distinct", "distinct_squares")
        value, counts, n_distinct, squares = (self.columns[name][order] for name in names)
        joint = np.add.reduceat(value, starts) / np.add.reduceat(counts, starts)
        moved = value / counts - np.repeat(joint, np.diff(starts, append=len(order)))
        within = np.add.reduceat(squares + counts**2 / n_distinct * moved**2, starts)
        return np.add.reduceat(n_distinct, starts), within

    @cached_property
    def asked(self) -> Array:
        """What was asked of each prompt of `scored`, as a number."""
        order, starts = self._by_prompt
        return np.add.reduceat(self.columns["asked"][order], starts) if len(order) else self.columns["asked"][order]

    @cached_property
    def _by_prompt(self) -> tuple[Array, Array]:
        """The rows with a score, those of a prompt side by side, and where each prompt begins among them."""
        order = np.flatnonzero(self.columns["n_images"] > 0)
        if len(self.categories) > 1:
            order = order[np.argsort(self.columns["prompt"][order], kind="stable")]
        return order, np.flatnonzero(np.diff(self.columns["prompt"][order], prepend=-1))

    @cached_property
    def failed_shares(self) -> tuple[Array, Array]:
        """The share of failed judgements of each prompt, and the prompts, each once, sorted."""
        prompt, total, read = (self.columns[name] for name in ("prompt", "n_judgements", "n_scored"))
        if len(self.categories) > 1 or self.unknown.n:
            prompt, place = np.unique(prompt, return_inverse=True)
            total, read = (np.bincount(place, values) for values in (total, read))
        return (total - read) / total, prompt


def tallies(
    judged: Judged,
    sums: Mapping[str, Array],
    failed: Mapping[int, Mapping[str, int]],
    n_aside: Array,
    reached: Mapping[tuple[str, ...], Reached],
) -> Iterator[tuple[dict[str, str], Tally]]:
    """Each cell's address and tally, in the cells' order: with failure_counts(), aside_counts(), and how far each was asked.

    A cell to all of whose judgements the dimension does not apply has a tally without a prompt.
    """
    stratum = sums["stratum"]
    columns = {**sums, "prompt": _told_apart(judged, sums)}
    starts = np.flatnonzero(np.diff(stratum, prepend=-1))
    parts: dict[tuple[str, ...], dict[str, tuple[slice, int]]] = {}
    for start, end in pairwise([*starts.tolist(), len(stratum)]):
        number = int(stratum[start])
        *cell, category = judged.strata.row(number)
        parts.setdefault(tuple(cell), {})[category] = (slice(start, end), number)
    aside: dict[tuple[str, ...], dict[str, int]] = {}
    for number in np.flatnonzero(n_aside).tolist():
        *cell, category = judged.strata.row(number)
        aside.setdefault(tuple(cell), {})[category] = int(n_aside[number])
    for cell_key in judged.strata.select(CELL).unique(maintain_order=True).rows():
        found = parts.get(cell_key, {})
        if not found and cell_key not in aside:
            continue
        places = [place for rows, _ in found.values() for place in (rows.start, rows.stop)] or [0]
        first, last = min(places), max(places)
        inner = {category: slice(rows.start - first, rows.stop - first) for category, (rows, _) in found.items()}
        reasons = {category: Counter(failed.get(number, {})) for category, (_, number) in found.items()}
        mine = {name: values[first:last] for name, values in columns.items()}
        unknown = _unknown(mine, inner.pop(UNKNOWN, slice(0)))
        yield (
            dict(zip(CELL, cell_key, strict=True)),
            Tally(mine, inner, reasons, aside.get(cell_key, {}), reached.get(cell_key), unknown),
        )


def _told_apart(judged: Judged, sums: Mapping[str, Array]) -> Array:
    """The number of each prompt; of one whose category is unknown, which nobody could read either, one that no other has."""
    is_unknown = (judged.strata["category"] == UNKNOWN).to_numpy()[sums["stratum"]]
    return np.where(is_unknown, -1 - np.arange(len(is_unknown)), sums["prompt"])


def _unknown(columns: Mapping[str, Array], rows: slice) -> UnknownCategory:
    n = int(columns["n_samples"][rows].sum())
    ends = [float(np.add.reduce(columns[end][rows])) / n for end in ("low", "high")] if n else []
    return UnknownCategory(n, *ends)


def known_categories(judged: Judged, sums: Mapping[str, Array]) -> frozenset[str]:
    """The categories of the dimension that the rubric has a prompt for: the strata a macro mean needs."""
    known = np.unique(sums["stratum"][sums["is_known"]])
    return frozenset(judged.strata["category"].gather(known))


def mean_of(tally: Tally, estimand: Estimand = Estimand.PROMPTS_LIKE_THESE) -> ClusteredMean | None:
    """The image-weighted mean of the scored images; None without any."""
    if tally.scored is None:
        return None
    value, counts, squares, _ = tally.scored
    if estimand is Estimand.THESE_PROMPTS:
        return mean_within(value, counts, squares, tally.distinct)
    return clustered_mean(value, counts, squares)


def macro_of(strata: Sequence[Tally], estimand: Estimand = Estimand.PROMPTS_LIKE_THESE) -> ClusteredMean | None:
    """The mean of category means; None where a category has no score."""
    means = [mean_of(stratum, estimand) for stratum in strata]
    known = [mean for mean in means if mean]
    return mean_of_means(known) if known and len(known) == len(means) else None


def at_worst(strata: Sequence[Tally], unknown: UnknownCategory, end: str) -> list[tuple[Array, Array]]:
    """Sums and numbers of the samples of each stratum's prompts, each failure at its `end`: low or high. Of `unknown` too."""
    columns = [(stratum.columns[end], stratum.columns["n_samples"]) for stratum in strata]
    score, is_low = getattr(unknown, end), end == "low"
    return with_worst(columns, unknown.n, score, is_low=is_low) if unknown.n else columns


def bounds_of(low: Sequence[tuple[Array, Array]], high: Sequence[tuple[Array, Array]]) -> tuple[float, float]:
    """The mean of the strata's means over all their samples, each failure at the lowest, then the highest, it can have been."""
    lows, highs = ([float(np.add.reduce(sums)) / int(n.sum()) for sums, n in columns] for columns in (low, high))
    return math.fsum(lows) / len(low), math.fsum(highs) / len(high)


def bound_mean(columns: Sequence[tuple[Array, Array]]) -> ClusteredMean:
    """One of the two means with the sampling error of its prompts: a failure's lowest and highest vary as scores do."""
    return mean_of_means([clustered_mean(sums, n, np.zeros(len(n))) for sums, n in columns])


def commonest(failures: Counter[str]) -> str:
    """The commonest reason; the first in the alphabet where several are."""
    return min(failures, key=lambda reason: (-failures[reason], reason))
