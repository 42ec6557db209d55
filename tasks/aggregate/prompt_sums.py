"""One dimension's scores and failures, summed prompt by prompt. The prompts of one cell, and what they mean, are tallies.py."""

import math
from collections.abc import Callable

import numpy as np
import polars as pl

from tasks.aggregate.judged import Array, Judged
from tasks.aggregate.outcomes import Outcomes, averaged


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
) -> dict[str, Array]:
    """Columns with an entry for each prompt that is asked about the dimension, sorted by name.

    `metric` maps scores (and bounds) to what is averaged, None leaves them as they are. Of a kind a sample is here each of its
    items. They are `n_samples`, `n_images` (with a score), `value` (sum of the scored samples' means), `squares` (their squared
    deviations from the prompt's mean), `low` and `high` (sums over all samples, a failure at its lowest, at its highest); in
    judgements `n_judgements`, `n_scored`, `n_violations`; `stratum` and `prompt` are numbers, `is_known` as in outcomes, `asked`
    as in Judged. Where samples stand there again: `n_distinct`, those that do not, and `distinct_squares`, the squares of the
    sums of the deviations of all that are one: what varies by itself is one sample however often it stands there.
    """
    n, failed_row, row = judged.n_prompts, outcomes.failed_row, outcomes.row
    score, low, high = (values if metric is None else metric(values) for values in (outcomes.score, outcomes.low, outcomes.high))
    n_scored = np.bincount(judged.prompt[row], minlength=n)
    n_judgements = n_scored + np.bincount(judged.prompt[failed_row], minlength=n)
    has_repeats = len(judged.sample_prompt) < len(judged.prompt)
    of = averaged(judged, outcomes) if has_repeats or judged.twin is not None else None
    if of is None or not has_repeats:
        prompt, values, failed_prompt = judged.prompt[row], score, judged.prompt[failed_row]
        n_samples, sums_low, sums_high = n_judgements, low, high
        value = scored_low = scored_high = exact_sums(prompt, values, n)
        twin = None if of is None or of.twin is None else of.twin[of.row]
    else:
        n_all = len(of.prompt)
        n_read, n_lost = np.bincount(of.row, minlength=n_all), np.bincount(of.failed_row, minlength=n_all)
        sums = exact_sums(of.row, score, n_all)
        ends = [(sums + exact_sums(of.failed_row, end, n_all)) / np.maximum(n_read + n_lost, 1) for end in (low, high)]
        scored, asked = np.flatnonzero(n_read), np.flatnonzero(n_read + n_lost)
        prompt, values = of.prompt[scored], sums[scored] / n_read[scored]
        failed_prompt, (sums_low, sums_high) = of.prompt[asked], (end[asked] for end in ends)
        n_samples = np.bincount(failed_prompt, minlength=n)
        value, scored_low, scored_high = exact_sums(prompt, values, n), np.zeros(n), np.zeros(n)
        twin = None if of.twin is None else of.twin[scored]
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
        "asked": judged.asked,
    }
    if twin is not None:
        columns |= _distinct(twin, prompt, deviations, n)
    asked_prompts = np.flatnonzero(n_judgements)
    return {name: values[asked_prompts] for name, values in columns.items()}


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


def aside_counts(judged: Judged, outcomes: Outcomes) -> Array:
    """Judgements to which the dimension does not apply, by stratum."""
    return np.bincount(judged.stratum[judged.prompt[outcomes.aside_row]], minlength=judged.strata.height)
