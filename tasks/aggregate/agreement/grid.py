"""One dimension's numbers by checkpoint and prompt: what comparisons, standings and label checks are made of."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from schemas.statuses.cells import Total
from schemas.statuses.people import Against
from tasks.aggregate.agreement.pairs import Mask, Rated, people
from tasks.aggregate.intervals import Counts, Floats

System = tuple[str, str]
_NO_CATEGORY = "\0none"  # NumPy drops NULs at the end of a text


@dataclass(frozen=True, slots=True)
class Part:
    """The prompts of one category, or of all that make a total: `rows` over the grid's, `strata` their numbers from 0."""

    rows: Mask
    strata: Counts


class Grid:
    """Means over each prompt's samples, NaN where there is none, of every checkpoint; a prompt in two categories is two.

    `systems` are the (model, checkpoint) with a rating (`are_all`: every one), sorted; `prompts` the prompt ids and
    `category` the number of each one's category in `categories`, both of shape (prompts,).
    """

    def __init__(self, rated: Rated, *, are_all: bool = False) -> None:
        self.rated = rated
        items = rated.items
        labels = people(rated, Against.RATERS_MEAN)
        self.has_scale = labels.has_scale
        names = items["category"].fill_null(Total.UNNAMED.value if items["category"].n_unique() > 1 else _NO_CATEGORY)
        self.categories, number = np.unique(names.to_numpy().astype(str), return_inverse=True)
        units = np.array([*zip(number.tolist(), items["prompt_id"].to_list(), strict=True)], dtype=object)
        keys, self.unit_of = np.unique([f"{place:06d}\0{prompt}" for place, prompt in units], return_inverse=True)
        self.prompts = tuple(str(key).partition("\0")[2] for key in keys)
        self.category: Counts = np.array([int(str(key)[:6]) for key in keys], dtype=np.int64)
        makers = [*zip(items["model"].to_list(), items["checkpoint"].to_list(), strict=True)]
        is_rated = ~np.isnan(labels.values) | are_all
        self.systems: tuple[System, ...] = tuple(sorted({maker for maker, there in zip(makers, is_rated, strict=True) if there}))
        places = {maker: place for place, maker in enumerate(self.systems)}
        self.system_of: Counts = np.array([places.get(maker, -1) for maker in makers], dtype=np.int64)
        self.labels = self.means(labels.values)
        self.judged = {judge.name: self.means(judge.values) for judge in rated.judges}
        self.n_judged = {judge.name: self.counts(judge.values) for judge in rated.judges}

    @cached_property
    def by_rater(self) -> Floats:
        """Each rater's means, shape (systems, prompts, raters)."""
        each = [self.means(rater.values) for rater in self.rated.raters]
        return np.stack(each, axis=-1) if each else np.empty((*self.labels.shape, 0))

    def means(self, values: Floats) -> Floats:
        """Each prompt's mean over a checkpoint's samples that have a number, shape (systems, prompts)."""
        n, is_there = self.counts(values), self._is_there(values)
        sums = np.bincount(self._place()[is_there], weights=values[is_there], minlength=n.size).reshape(n.shape)
        return np.where(n > 0, sums / np.maximum(n, 1), np.nan)

    def counts(self, values: Floats) -> Counts:
        """How many of a prompt's samples of a checkpoint have a number, shape (systems, prompts)."""
        shape = len(self.systems), len(self.prompts)
        return np.bincount(self._place()[self._is_there(values)], minlength=shape[0] * shape[1]).reshape(shape)

    def _is_there(self, values: Floats) -> Mask:
        return np.asarray(~np.isnan(values) & (self.system_of >= 0))

    def _place(self) -> Counts:
        return np.asarray(self.system_of * len(self.prompts) + self.unit_of)

    def is_uneven(self, judge: str, system: int, part: Part) -> bool:
        """Whether a checkpoint's prompts of one category have unequal numbers of samples that the judge scored."""
        n = self.n_judged[judge][system, part.rows]
        each = (n[(part.strata == stratum) & (n > 0)] for stratum in np.unique(part.strata))
        return any(len(np.unique(mine)) > 1 for mine in each)

    def part(self, category: str, judge: str | None = None) -> Part:
        """The prompts of a category; for `__macro__` of all in which this (any) judge has a score, or people where none has."""
        if category != Total.MACRO:
            rows = self.category == np.flatnonzero(self.categories == category)[0]
            return Part(rows, np.zeros(int(rows.sum()), dtype=np.int64))
        every = [self.judged[judge]] if judge else [*self.judged.values()]
        scored = [values for values in every if not np.isnan(values).all()] or [self.labels]
        used = np.unique(np.concatenate([self.category[~np.isnan(values).all(axis=0)] for values in scored]))
        rows = np.isin(self.category, used)
        return Part(rows, np.searchsorted(used, self.category[rows]).astype(np.int64))

    @property
    def category_names(self) -> list[str]:
        """The categories by name; none where samples have none."""
        return [str(name) for name in self.categories if name != _NO_CATEGORY]
