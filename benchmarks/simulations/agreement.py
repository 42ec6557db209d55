"""Simulation behind docs/statistics.md: how often the intervals of agreement hold the figure of all prompts (`make simulate`).

Whole scores 0–10 in six categories; prompts drawn anew each time. Corrected means and deltas are corrected.py. Exit
code 1 where a coverage leaves its bounds by more than the draws' own noise. Seeds are fixed.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from rich.console import Console
from rich.table import Table

from schemas.statuses.people import AgreementMetric
from tasks.aggregate.agreement import jackknife
from tasks.aggregate.agreement.agreement import OF_ITEMS
from tasks.aggregate.agreement.metrics import has_enough_labels, n_prompts_alike, pair_metric
from tasks.aggregate.intervals import LEVEL, Floats

CATEGORY_MEANS = np.array([7.5, 6.0, 4.5, 6.5, 3.5, 5.0])
PROMPT_SD, IMAGE_SD, RATER_SD, JUDGE_SD, KINDNESS, FAIL_RATE = 1.6, 1.2, 0.8, 0.6, 0.8, 0.03
COVERAGE, N_PROMPTS = (0.935, 0.965), (10, 20, 40, 160)


@dataclass(frozen=True, slots=True)
class World:
    """How many pictures a prompt has, and the standard deviation of what a judge sees in a prompt and people do not."""

    n_images: int = 4
    taste_sd: float = 1.45

    def draw(self, categories: np.ndarray, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """People's and the judge's scores, each of shape (prompts, images); the judge's NaN where it failed."""
        shape = len(categories), self.n_images
        quality = CATEGORY_MEANS[categories] + rng.normal(0, PROMPT_SD, shape[0])
        image = quality[:, None] + rng.normal(0, IMAGE_SD, shape)
        people = image + rng.normal(0, RATER_SD, shape)
        judge = image + rng.normal(0, self.taste_sd, (shape[0], 1)) + KINDNESS + rng.normal(0, JUDGE_SD, shape)
        judged = np.clip(np.round(judge), 0, 10)
        judged[rng.random(shape) < FAIL_RATE] = np.nan
        return np.clip(np.round(people), 0, 10), judged


WORLDS = {
    "4 pictures a prompt": World(),
    "1 picture a prompt": World(n_images=1),
    "4 pictures, a judge of the raters' taste": World(taste_sd=0.1),
}


@dataclass(frozen=True, slots=True)
class YesNo:
    """Labels of 0 and 1: how common the 1 is, how often the judge errs, pictures a prompt. A fifth of prompts are hard."""

    prevalence: float
    error: float
    n_images: int = 1
    is_unequal: bool = False

    def draw(self, n_prompts: int, rng: np.random.Generator) -> tuple[Floats, Floats, np.ndarray]:
        """The judge's labels, people's, and the number of the prompt; the pictures of a prompt have one truth."""
        sizes = np.full(n_prompts, self.n_images)
        if self.is_unequal:
            sizes = np.minimum(1 + rng.geometric(0.3, n_prompts) ** 2, 60)
        clusters = np.repeat(np.arange(n_prompts), sizes)
        truth = rng.random(n_prompts)[clusters] < self.prevalence
        chance = np.where(rng.random(n_prompts) < 0.2, min(0.5, 4 * self.error), self.error / 4)
        flips = rng.random(len(clusters)) < chance[clusters]
        return (truth ^ flips).astype(float), truth.astype(float), clusters


OF_YES_NO = (
    AgreementMetric.VOTE_ACCURACY, AgreementMetric.PAIRWISE_ACCURACY, AgreementMetric.COHEN_KAPPA,
    AgreementMetric.KRIPPENDORFF_ALPHA,
)  # fmt: skip
YES_NO = {
    "1 picture, half yes, 20 % errors": YesNo(0.5, 0.2),
    "1 picture, 90 % yes, 2 % errors": YesNo(0.9, 0.02),
    "1 picture, 97 % yes, 3 % errors": YesNo(0.97, 0.03),
    "4 pictures, 90 % yes, 2 % errors": YesNo(0.9, 0.02, 4),
    "4 pictures, 97 % yes, 3 % errors": YesNo(0.97, 0.03, 4),
    "unequal pictures, half yes, 20 % errors": YesNo(0.5, 0.2, is_unequal=True),
    "unequal pictures, 97 % yes, 3 % errors": YesNo(0.97, 0.03, is_unequal=True),
}


def coverage(world: World, n_draws: int, n_prompts: int, seed: int) -> dict[AgreementMetric, float]:
    """How often each interval holds the figure of all prompts there could be."""
    rng = np.random.default_rng(seed)
    truth = figures_of_all(world)
    held = dict.fromkeys(OF_ITEMS, 0)
    for _ in range(n_draws):
        x, y, prompts = flat(*world.draw(rng.choice(6, n_prompts), rng))
        clusters = np.unique(prompts, return_inverse=True)[1]
        for metric in OF_ITEMS:
            estimate = pair_metric(metric, x, y)
            replicates = jackknife.pair_replicates(metric, x, y, clusters)
            ends = None if estimate is None else jackknife.ends(metric, estimate, replicates, LEVEL, n_prompts_alike(clusters))
            held[metric] += ends is not None and ends[0] <= truth[metric] <= ends[1]
    return {metric: n / n_draws for metric, n in held.items()}


def yes_no(
    world: YesNo, n_draws: int, n_prompts: int, seed: int, metrics: Sequence[AgreementMetric] = OF_YES_NO
) -> dict[AgreementMetric, tuple[float, float]]:
    """Of the intervals there are, how many hold the figure of all prompts there could be; and of how many draws there are any."""
    rng, found = np.random.default_rng(seed), {metric: [0, 0] for metric in metrics}
    parts = [world.draw(3000, np.random.default_rng(part)) for part in range(4)]
    for metric, counts in found.items():
        truth = float(np.mean([pair_metric(metric, x[:12_000], y[:12_000]) for x, y, _ in parts]))
        for _ in range(n_draws):
            x, y, clusters = world.draw(n_prompts, rng)
            estimate = pair_metric(metric, x, y)
            if estimate is None or not has_enough_labels(metric, np.column_stack([x, y]), clusters):
                continue
            replicates = jackknife.pair_replicates(metric, x, y, clusters)
            ends = jackknife.ends(metric, estimate, replicates, LEVEL, n_prompts_alike(clusters))
            if ends is not None:
                counts[0] += 1
                counts[1] += ends[0] <= truth <= ends[1]
    return {metric: (held / max(1, n), n / n_draws) for metric, (n, held) in found.items()}


@cache
def figures_of_all(world: World) -> dict[AgreementMetric, float]:
    """Each figure over 96,000 samples, as the mean of ten parts that are small enough for figures over pairs."""
    sizes = np.repeat(np.arange(6), 1600 // world.n_images)
    parts = [flat(*world.draw(sizes, np.random.default_rng(seed))) for seed in range(10)]
    return {metric: float(np.mean([pair_metric(metric, x, y) or 0.0 for x, y, _ in parts])) for metric in OF_ITEMS}


def flat(people: Floats, judged: Floats) -> tuple[Floats, Floats, np.ndarray]:
    """The judge's scores, people's, and the number of the prompt, of all samples the judge scored."""
    is_there = ~np.isnan(judged)
    return judged[is_there], people[is_there], np.nonzero(is_there)[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--prompts", type=int, nargs="+", default=list(N_PROMPTS))
    arguments = parser.parse_args()
    slack = 2 * (LEVEL * (1 - LEVEL) / arguments.draws) ** 0.5
    console, is_good = Console(width=120), True
    for name, world in WORLDS.items():
        found = [coverage(world, arguments.draws, n_prompts, seed=11) for n_prompts in arguments.prompts]
        table = Table(name, *(f"{n_prompts} prompts" for n_prompts in arguments.prompts), box=None)
        for metric in OF_ITEMS:
            shares = [each[metric] for each in found]
            table.add_row(metric.value, *(f"{100 * share:.1f} %" for share in shares))
            is_good &= all(COVERAGE[0] - slack <= share <= COVERAGE[1] + slack for share in shares)
        console.print(table)
    for n_prompts in arguments.prompts[1:]:
        table = Table(f"yes or no, {n_prompts} prompts: held, of draws", *(metric.value for metric in OF_YES_NO), box=None)
        for name, labels in YES_NO.items():
            shares = yes_no(labels, arguments.draws, n_prompts, seed=12)
            table.add_row(name, *(f"{held:.1%}, {there:.0%}" for held, there in shares.values()))
        console.print(table)
    return 0 if is_good else 1


if __name__ == "__main__":
    raise SystemExit(main())
