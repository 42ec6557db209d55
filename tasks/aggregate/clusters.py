"""Outcomes reduced to one row per prompt: the sums every mean, bound and standard error is made of.

Sums are exact: values are rounded to a grid on which no partial sum loses a digit, so that row order, chunking and thread
count change no byte. The grid is about as fine as the floating-point numbers themselves.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from tasks.aggregate.outcomes import Array, Judged, Outcomes

NUMBERS = ("value", "squares", "low", "high", "n_samples", "n_images", "n_judgements", "n_scored", "n_violations")


@dataclass(frozen=True, slots=True)
class PromptSums:
    """One dimension under one metric; `columns` has an entry for each prompt that is asked about it, sorted by name.

    They are `n_samples`, `n_images` (with a score), `value` (sum of the scored samples' means), `squares` (their squared
    deviations from the prompt's mean), `low` and `high` (sums over all samples, a failure at its lowest, at its highest);
    in judgements `n_judgements`, `n_scored`, `n_violations`; `stratum` and `prompt` are numbers, `is_known` as in outcomes.
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
        prompt, values, failed_prompt = judged.prompt[row], score, judged.prompt[failed_row]
        n_samples, sums_low, sums_high = n_judgements, low, high
        scored_low = scored_high = exact_sums(prompt, values, n)
    else:
        sample, failed_sample, n_all = judged.sample[row], judged.sample[failed_row], len(judged.sample_prompt)
        n_read, n_lost = np.bincount(sample, minlength=n_all), np.bincount(failed_sample, minlength=n_all)
        sums = exact_sums(sample, score, n_all)
        ends = [(sums + exact_sums(failed_sample, end, n_all)) / np.maximum(n_read + n_lost, 1) for end in (low, high)]
        scored, asked = np.flatnonzero(n_read), np.flatnonzero(n_read + n_lost)
        prompt, values = judged.sample_prompt[scored], sums[scored] / n_read[scored]
        failed_prompt, (sums_low, sums_high) = judged.sample_prompt[asked], (end[asked] for end in ends)
        n_samples = np.bincount(failed_prompt, minlength=n)
        scored_low = scored_high = np.zeros(n)
    n_images, value = np.bincount(prompt, minlength=n), exact_sums(prompt, values, n)
    means = value / np.maximum(n_images, 1)
    columns = {
        "value": value,
        "squares": exact_sums(prompt, (values - means[prompt]) ** 2, n),
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
    asked_prompts = np.flatnonzero(n_judgements)
    return PromptSums({name: values[asked_prompts] for name, values in columns.items()})


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
