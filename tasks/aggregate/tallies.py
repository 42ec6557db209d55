"""One cell's prompts and failures, and the mean and bounds over them. What is published of a cell is tables.py."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl

from schemas.metrics import CELL
from schemas.statuses.cells import Estimand
from tasks.aggregate.intervals import ClusteredMean, clustered_mean, mean_of_means, mean_within
from tasks.aggregate.judged import Array, Judged
from tasks.aggregate.looks import Reached
from tasks.aggregate.outcomes import Outcomes


@dataclass(frozen=True, slots=True)
class PromptSums:
    """One dimension under one metric; `columns` has an entry for each prompt that is asked about it, sorted by name.

    They are `n_samples`, `n_images` (with a score), `value` (sum of the scored samples' means), `squares` (their squared
    deviations from the prompt's mean), `low` and `high` (sums over all samples, a failure at its lowest, at its highest);
    in judgements `n_judgements`, `n_scored`, `n_violations`; `stratum` and `prompt` are numbers, `is_known` as in outcomes.
    Where samples stand there again: `n_distinct`, those that do not, and `distinct_squares`, the squares of the sums of the
    deviations of all that are one: what varies by itself is one sample however often it stands there.
    """

    columns: Mapping[str, Array]


def exact_sums(index: Array, values: Array, n: int) -> Array:
    """Sums of values by index (0 to n - 1), shape (n,), the same in whatever order the rows come.

    Values are rounded to multiples of 2**-g, the largest g with which every partial sum of the largest group is a whole
    number of less than 53 bits; whole numbers stay as they are.
    """
    if not len(index):
        return np.zeros(n)
    limit = float(np.abs(values).max()) * int(np.bincount(index).max())
    if limit == 0:
        return np.zeros(n)
    grid = 2.0 ** min(51 - math.frexp(limit)[1], 900)  # above that is no score, and no finite number
    return np.bincount(index, np.rint(values * grid), n) / grid


def prompt_sums(
    judged: Judged, outcomes: Outcomes, is_known: Array, metric: Callable[[Array], Array] | None = None
) -> PromptSums:
    """The sums of one dimension; `metric` maps scores (and bounds) to what is averaged, None leaves them as they are."""
    n, failed_row, row = judged.n_prompts, outcomes.failed_row, outcomes.row
    score, low, high = (values if metric is None else metric(values) for values in (outcomes.score, outcomes.low, outcomes.high))
    n_scored = np.bincount(judged.prompt[row], minlength=n)
    n_judgements = n_scored + np.bincount(judged.prompt[failed_row], minlength=n)
    if len(judged.sample_prompt) == len(judged.prompt):
        scored, prompt, values, failed_prompt = row, judged.prompt[row], score, judged.prompt[failed_row]
        n_samples, sums_low, sums_high = n_judgements, low, high
        value = scored_low = scored_high = exact_sums(prompt, values, n)
    else:
        sample, failed_sample, n_all = judged.sample[row], judged.sample[failed_row], len(judged.sample_prompt)
        n_read, n_lost = np.bincount(sample, minlength=n_all), np.bincount(failed_sample, minlength=n_all)
        sums = exact_sums(sample, score, n_all)
        ends = [(sums + exact_sums(failed_sample, end, n_all)) / np.maximum(n_read + n_lost, 1) for end in (low, high)]
        scored, asked = np.flatnonzero(n_read), np.flatnonzero(n_read + n_lost)
        prompt, values = judged.sample_prompt[scored], sums[scored] / n_read[scored]
        failed_prompt, (sums_low, sums_high) = judged.sample_prompt[asked], (end[asked] for end in ends)
        n_samples = np.bincount(failed_prompt, minlength=n)
        value, scored_low, scored_high = exact_sums(prompt, values, n), np.zeros(n), np.zeros(n)
    n_images = np.bincount(prompt, minlength=n)
    deviations = values - (value / np.maximum(n_images, 1))[prompt]
    columns = {
        "value": value,
        "squares": exact_sums(prompt, deviations**2, n),
        "low": scored_low + exact_sums(failed_prompt, sums_low, n),
        "high": scored_high + exact_sums(failed_prompt, sums_high, n),
        "n_samples": n_samples,
        "n_images": n_images,
        "n_judgements": n_judgements,
        "n_scored": n_scored,
        "n_violations": np.bincount(judged.prompt[failed_row], outcomes.is_violation, n).astype(np.int64),
        "stratum": judged.stratum,
        "prompt": judged.prompt_code,
        "is_known": is_known,
    }
    if judged.twin is not None:
        columns |= _distinct(judged.twin[scored], prompt, deviations, n)
    asked_prompts = np.flatnonzero(n_judgements)
    return PromptSums({name: values[asked_prompts] for name, values in columns.items()})


def _distinct(twin: Array, prompt: Array, deviations: Array, n: int) -> dict[str, Array]:
    """The columns on distinct samples, of each scored sample's `twin`, prompt and deviation from the prompt's mean."""
    _, first, place = np.unique(twin, return_index=True, return_inverse=True)
    squares = exact_sums(place, deviations, len(first)) ** 2
    return {"n_distinct": np.bincount(prompt[first], minlength=n), "distinct_squares": exact_sums(prompt[first], squares, n)}


def failure_counts(judged: Judged, outcomes: Outcomes) -> dict[int, dict[str, int]]:
    """Failures by stratum and reason."""
    counted = pl.DataFrame({
        "stratum": judged.stratum[judged.prompt[outcomes.failed_row]],
        "reason": pl.Series(outcomes.reason, dtype=pl.String),
    }).group_by("stratum", "reason").len("n").sort("stratum", "reason")  # fmt: skip
    found: dict[int, dict[str, int]] = {}
    for stratum, reason, n in counted.iter_rows():
        found.setdefault(stratum, {})[reason] = n
    return found


@dataclass(frozen=True)  # no slots: what many cells and comparisons ask for is worked out once
class Tally:
    """The prompts of one cell: the columns of PromptSums, sorted by category and prompt.

    `categories` says which rows are which category's; `failures_in` counts their failures by reason, `n_aside_in` the
    judgements to which the dimension does not apply. `reached`: how far the cell was asked; None where all was at once.
    """

    columns: Mapping[str, Array]
    categories: Mapping[str, slice]
    failures_in: Mapping[str, Counter[str]]
    n_aside_in: Mapping[str, int] = field(default_factory=dict)
    reached: Reached | None = None

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
        if len(self.categories) > 1:
            prompt, place = np.unique(prompt, return_inverse=True)
            total, read = (np.bincount(place, values) for values in (total, read))
        return (total - read) / total, prompt


def aside_counts(judged: Judged, outcomes: Outcomes) -> Array:
    """Judgements to which the dimension does not apply, by stratum."""
    return np.bincount(judged.stratum[judged.prompt[outcomes.aside_row]], minlength=judged.strata.height)


def tallies(
    judged: Judged,
    sums: PromptSums,
    failed: Mapping[int, Mapping[str, int]],
    n_aside: Array | None = None,
    reached: Mapping[tuple[str, ...], Reached] | None = None,
) -> Iterator[tuple[dict[str, str], Tally]]:
    """Each cell's address and tally, in the cells' order. `n_aside` as aside_counts(), `reached` by cell; None: without."""
    stratum = sums.columns["stratum"]
    starts = np.flatnonzero(np.diff(stratum, prepend=-1))
    ends = [*starts[1:].tolist(), len(stratum)]
    parts: dict[tuple[str, ...], dict[str, tuple[slice, int]]] = {}
    for start, end in zip(starts.tolist(), ends, strict=True):
        number = int(stratum[start])
        *cell, category = judged.strata.row(number)
        parts.setdefault(tuple(cell), {})[category] = (slice(start, end), number)
    for cell_key, found in parts.items():
        first, last = min(rows.start for rows, _ in found.values()), max(rows.stop for rows, _ in found.values())
        inner = {category: slice(rows.start - first, rows.stop - first) for category, (rows, _) in found.items()}
        reasons = {category: Counter(failed.get(number, {})) for category, (_, number) in found.items()}
        mine = {name: values[first:last] for name, values in sums.columns.items()}
        aside = {category: int(n_aside[number]) if n_aside is not None else 0 for category, (_, number) in found.items()}
        yield dict(zip(CELL, cell_key, strict=True)), Tally(mine, inner, reasons, aside, (reached or {}).get(cell_key))


def known_categories(judged: Judged, sums: PromptSums) -> frozenset[str]:
    """The categories of the dimension that the rubric has a prompt for: the strata a macro mean needs."""
    known = np.unique(sums.columns["stratum"][sums.columns["is_known"]])
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


def bounds_of(strata: Sequence[Tally]) -> tuple[float, float]:
    """The mean of the strata's means over all their samples, each failure at the lowest, then the highest, it can have been."""
    lows, highs = (
        [float(np.add.reduce(stratum.columns[end])) / stratum.count("n_samples") for stratum in strata] for end in ("low", "high")
    )
    return math.fsum(lows) / len(strata), math.fsum(highs) / len(strata)


def bound_means(strata: Sequence[Tally]) -> tuple[ClusteredMean, ClusteredMean]:
    """The same two means with the sampling error of their prompts: a failure's lowest and highest vary as scores do."""
    found = []
    for end in ("low", "high"):
        columns = [(stratum.columns[end], stratum.columns["n_samples"]) for stratum in strata]
        found.append(mean_of_means([clustered_mean(sums, n, np.zeros(len(n))) for sums, n in columns]))
    return found[0], found[1]


def commonest(failures: Counter[str]) -> str:
    """The commonest reason; the first in the alphabet where several are."""
    return min(failures, key=lambda reason: (-failures[reason], reason))
