"""What a published figure is of: the names of metrics both ways, the address and the order of a cell, the headline dimension."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import polars as pl

from schemas.identities import address_id
from schemas.statuses.cells import CellReason, Estimand, Total

MEAN = "mean"
_SHARE = "share_at_least_"

CELL = ("judge_model", "model", "checkpoint")
"""What a mean is never taken across, beside rubric and dimension."""

RUBRIC_CELL = ("rubric_id", *CELL)
ADDRESS = (*RUBRIC_CELL, "dimension", "category")
CELL_ORDER = [*ADDRESS, "metric", "estimand"]
"""How the rows of `benchmark_long` are sorted."""

BOARD = ("rubric_id", "judge_model", "dimension")
"""What is compared with one another: the cells of a leaderboard."""

TOTALS = (Total.MACRO.value, Total.MICRO.value)
NO_TOTAL = (CellReason.NOT_IN_ALL_CATEGORIES.value, CellReason.SCALES_DIFFER.value)
"""Why a total can never have an estimate, whatever is judged."""

IS_OF_WHOLE = pl.col("item").fill_null("") == ""
"""Whether a row of `scores` is one of a sample's figures, not of one item: these have no fellow under another judge."""

_FIRST = frozenset({"base", "init", "initial", "pretrained"})
"""What the checkpoint is called that was before those with a number."""
_LAST = "final"
"""And the one after them. `last` and `latest` are names that a trainer keeps writing over: nothing would ever be newer."""

HEADLINE = "overall_score"
"""The dimension a rubric's other dimensions lead up to, where it has one."""


@dataclass(frozen=True, slots=True)
class Metric:
    """What is averaged: the scores (`at_least` None), or whether a score is `at_least` so much."""

    at_least: float | None = None

    @classmethod
    def named(cls, name: str) -> Self:
        """The metric of a word in the column metric."""
        return cls(None if name == MEAN else float(name.removeprefix(_SHARE)))

    @property
    def name(self) -> str:
        """The word in the column metric: a K of six digits would be another threshold than 7.2000001."""
        return MEAN if self.at_least is None else f"{_SHARE}{str(self.at_least).removesuffix('.0')}"

    def ends(self, ends: tuple[float, float]) -> tuple[float, float]:
        """The scale of the figure, from that of the scores."""
        return ends if self.at_least is None else (0.0, 1.0)


def is_headline(dimension: str, dimensions: Iterable[str]) -> bool:
    """Whether it is what its rubric's `dimensions` lead up to: `overall_score` where there is one, else every one."""
    return dimension == HEADLINE or HEADLINE not in dimensions


def is_primary(rubric_id: str, dimension: str, dimensions: Iterable[str], declared: Iterable[str]) -> bool:
    """Whether claims are made of it: where nothing is declared (as dimension or rubric.dimension), of a rubric's headline."""
    named = set(declared)
    return not named.isdisjoint({dimension, f"{rubric_id}.{dimension}"}) if named else is_headline(dimension, dimensions)


def dimension_names(known: Iterable[tuple[str, str]]) -> dict[str, str]:
    """How ratings may call the (rubric, dimension)s, and what they are called in their table: alone where one rubric has it."""
    every = list(known)
    n_rubrics = Counter(dimension for _, dimension in every)
    own = {f"{rubric}.{one}": one if n_rubrics[one] == 1 else f"{rubric}.{one}" for rubric, one in every}
    return own | {dimension: dimension for dimension in n_rubrics}


def primary_of(rubric_id: str, dimensions: Sequence[str], declared: Iterable[str]) -> list[str]:
    """A rubric's dimensions that claims are made of; all of them where that is none."""
    return [one for one in dimensions if is_primary(rubric_id, one, dimensions, declared)] or list(dimensions)


def headlines(cells: pl.DataFrame) -> set[tuple[str, str]]:
    """The primary (rubric, dimension)s of placed cells; by their names where a publication is older than its standings."""
    known = cells.filter(pl.col("is_headline").is_not_null())
    if not known.is_empty():
        return set(known.filter("is_headline").select("rubric_id", "dimension").iter_rows())
    by_rubric: dict[str, set[str]] = {}
    for rubric_id, dimension in cells.select("rubric_id", "dimension").unique().iter_rows():
        by_rubric.setdefault(rubric_id, set()).add(dimension)
    return {(rubric, one) for rubric, dimensions in by_rubric.items() for one in dimensions if is_headline(one, dimensions)}


def is_mean_for_prompts_like_these(row: Mapping[str, object]) -> bool:
    """Whether a row of `benchmark_long` is one that leaderboards and a cell's path mean."""
    return row["metric"] == MEAN and row["estimand"] == Estimand.PROMPTS_LIKE_THESE


def means_for_prompts_like_these(cells: pl.DataFrame) -> pl.DataFrame:
    """The same rows of a frame: one for each address. The table holds other metrics and estimands beside them."""
    return cells.filter(pl.col("metric") == MEAN, pl.col("estimand") == Estimand.PROMPTS_LIKE_THESE.value)


def cell_id(benchmark: str, row: Mapping[str, object]) -> str:
    """The id of a cell's address.

    A mean for prompts like these is addressed without metric and estimand.
    """
    address = [benchmark, *(row[name] for name in ADDRESS)]
    if not is_mean_for_prompts_like_these({"metric": MEAN, "estimand": Estimand.PROMPTS_LIKE_THESE, **row}):
        address += [row["metric"], row["estimand"]]
    return address_id(*address)


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Sorts numbers inside names as numbers, step-900 before step-1000; `base` is before all others and `final` after them."""
    parts = re.split(r"([0-9]+)", name)
    key = [_number_key(part) if part.isdecimal() else (1, 0, part) for part in parts if part]
    called = name.casefold()
    return [(-1, 0, ""), *key] if called in _FIRST else [(2, 0, ""), *key] if called == _LAST else key


def _number_key(digits: str) -> tuple[int, int, str]:
    """Sorts as the number does: Python turns no more than 4,300 digits into one."""
    number = digits.lstrip("0")
    return 0, len(number), f"{number} {digits}"
