"""Simulations behind docs/agreement.md: coverage and width of corrected means, coverage of agreement intervals (`make simulate`).

Six categories of GenEval's sizes, 553 prompts × 4 images, whole scores 0–10; a judge that is 0.8 too kind, and 3 % failures.
Exit code 1 where a figure leaves its bounds. Seeds are fixed.
"""

import argparse
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from schemas.statuses import AgreementMetric
from tasks.aggregate.agreement import bootstrap
from tasks.aggregate.agreement.corrected import mean_of_prompts, powered_mean
from tasks.aggregate.agreement.metrics import Floats, pair_metric
from tasks.aggregate.intervals import LEVEL, ClusteredMean, Interval, interval

SIZES = np.array([80, 99, 80, 94, 100, 100])
CATEGORY_MEANS = np.array([7.5, 6.0, 4.5, 6.5, 3.5, 5.0])
N_IMAGES, N_LABELLED, FAIL_RATE = 4, 100, 0.03
PROMPT_SD, IMAGE_SD, RATER_SD, JUDGE_SD, KINDNESS = 1.6, 1.2, 0.8, 0.6, 0.8
OWN_TASTE_SD = {0.8: 1.45, 0.5: 3.42}
"""Standard deviation of what a judge sees in a prompt and people do not, by the correlation of prompt aggregates it makes."""
COVERAGE, NARROWER, WIDER = (0.935, 0.965), 0.25, 0.02
METRICS = (AgreementMetric.SPEARMAN, AgreementMetric.KENDALL_TAU_B, AgreementMetric.QUADRATIC_KAPPA,
           AgreementMetric.KRIPPENDORFF_ALPHA, AgreementMetric.PAIRWISE_ACCURACY, AgreementMetric.BIAS)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PpiOutcome:
    """Over all draws: how often each interval held the truth, the mean ratio of their widths, the correlation that was met."""

    n_draws: int
    correlation: float
    covered: float
    covered_by_labels: float
    covered_by_judge: float
    width_ratio: float


def world(categories: np.ndarray, correlation: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """People's and the judge's scores, each of shape (prompts, images); the judge's NaN where it failed."""
    n = len(categories)
    middle = CATEGORY_MEANS[categories]
    quality = middle + rng.normal(0, PROMPT_SD, n)
    image = rng.normal(0, IMAGE_SD, (n, N_IMAGES))
    people = quality[:, None] + image + rng.normal(0, RATER_SD, (n, N_IMAGES))
    if correlation > 0:
        seen = (quality + rng.normal(0, OWN_TASTE_SD[correlation], n))[:, None] + image
    else:  # a judge that scores something else altogether
        seen = 5 + rng.normal(0, 2, (n, N_IMAGES)) + rng.normal(0, PROMPT_SD, n)[:, None]
    judge = seen + KINDNESS + rng.normal(0, JUDGE_SD, (n, N_IMAGES))
    judged = np.clip(np.round(judge), 0, 10)
    judged[rng.random((n, N_IMAGES)) < FAIL_RATE] = np.nan
    return np.clip(np.round(people), 0, 10), judged


def ppi_outcome(n_draws: int, correlation: float, seed: int) -> PpiOutcome:
    """Draw worlds in which 100 of the 553 prompts, chosen at random, have ratings."""
    rng = np.random.default_rng(seed)
    categories = np.repeat(np.arange(6), SIZES)
    truth, met = _truth(correlation)
    held = np.zeros(3)
    ratios = np.zeros(n_draws)
    for draw in range(n_draws):
        people, judged = world(categories, correlation, rng)
        labels, scores = people.mean(axis=1), _prompt_means(judged)
        chosen = np.zeros(len(categories), dtype=bool)
        chosen[rng.choice(len(categories), N_LABELLED, replace=False)] = True
        is_scored = ~np.isnan(scores)
        both, rest = chosen & is_scored, ~chosen & is_scored
        powered = powered_mean(labels[both], scores[both], scores[rest], categories[both])
        assert powered is not None
        found = [_ends(one) for one in (powered.clustered(), mean_of_prompts(labels[chosen]), mean_of_prompts(scores[is_scored]))]
        held += [ends.low <= truth <= ends.high for ends in found]
        ratios[draw] = (found[0].high - found[0].low) / (found[1].high - found[1].low)
    return PpiOutcome(n_draws, met, *(held / n_draws).tolist(), width_ratio=float(ratios.mean()))


def agreement_coverage(n_draws: int, n_prompts: int, seed: int) -> dict[AgreementMetric, float]:
    """How often each bootstrap interval holds the figure of all prompts there could be."""
    rng = np.random.default_rng(seed)
    everything = world(np.repeat(np.arange(6), 400), 0.8, np.random.default_rng(1))
    truth = {metric: pair_metric(metric, *_flat(*everything)[:2]) for metric in METRICS}
    held = dict.fromkeys(METRICS, 0)
    for draw in range(n_draws):
        x, y, clusters = _flat(*world(rng.choice(6, n_prompts), 0.8, rng))
        counts = bootstrap.draws(tuple(f"{draw} {prompt}" for prompt in range(n_prompts)))
        for metric in METRICS:
            ends = bootstrap.ends(bootstrap.pair_replicates(metric, x, y, clusters, counts), LEVEL)
            held[metric] += ends is not None and ends[0] <= (truth[metric] or 0.0) <= ends[1]
    return {metric: n / n_draws for metric, n in held.items()}


def _flat(people: Floats, judged: Floats) -> tuple[Floats, Floats, np.ndarray]:
    is_there = ~np.isnan(judged)
    return judged[is_there], people[is_there], np.nonzero(is_there)[0]


def _truth(correlation: float) -> tuple[float, float]:
    """The mean of all prompts there could be, and the correlation of prompt aggregates, from 400 times as many prompts."""
    people, judged = world(np.repeat(np.arange(6), SIZES * 400), correlation, np.random.default_rng(0))
    labels, scores = people.mean(axis=1), _prompt_means(judged)
    is_there = ~np.isnan(scores)
    return float(labels.mean()), float(np.corrcoef(labels[is_there], scores[is_there])[0, 1])


def _prompt_means(values: Floats) -> Floats:
    n = np.sum(~np.isnan(values), axis=1)
    return np.where(n > 0, np.nansum(values, axis=1) / np.maximum(n, 1), np.nan)


def _ends(mean: ClusteredMean) -> Interval:
    ends = interval(mean, 0.0, 10.0)
    assert isinstance(ends, Interval)
    return ends


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--agreement-draws", type=int, default=400)
    arguments = parser.parse_args()
    console, is_good = Console(), True
    table = Table("correlation", "corrected covers", "labels cover", "judge alone covers", "corrected / labels width", box=None)
    for correlation in (0.8, 0.5, 0.0):
        found = ppi_outcome(arguments.draws, correlation, seed=7)
        figures = (found.correlation, found.covered, found.covered_by_labels, found.covered_by_judge, found.width_ratio)
        table.add_row(*(f"{figure:.3f}" for figure in figures))
        is_good &= COVERAGE[0] <= found.covered <= COVERAGE[1] and found.width_ratio <= 1 + WIDER
        is_good &= correlation < 0.8 or found.width_ratio <= 1 - NARROWER
    console.print(table)
    for n_prompts in (40, 160):
        covered = agreement_coverage(arguments.agreement_draws, n_prompts, seed=11)
        console.print(f"{n_prompts} prompts: " + ", ".join(f"{metric} {share:.3f}" for metric, share in covered.items()))
        slack = 4 * (0.95 * 0.05 / arguments.agreement_draws) ** 0.5 + 0.01
        is_good &= all(abs(share - LEVEL) <= slack for share in covered.values())
    return 0 if is_good else 1


if __name__ == "__main__":
    raise SystemExit(main())
