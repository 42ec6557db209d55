"""Simulation behind docs/statistics.md: how often the intervals of agreement hold the figure of all prompts (`make simulate`).

Whole scores 0–10 in six categories; prompts drawn anew each time. Corrected means and deltas are corrected.py. Exit
code 1 where a coverage leaves its bounds by more than the draws' own noise. Seeds are fixed.
"""

import argparse
from dataclasses import dataclass
from functools import cache

import numpy as np
from rich.console import Console
from rich.table import Table

from schemas.statuses.people import AgreementMetric
from tasks.aggregate.agreement import jackknife
from tasks.aggregate.agreement.agreement import OF_ITEMS
from tasks.aggregate.agreement.metrics import Floats, pair_metric
from tasks.aggregate.intervals import LEVEL

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


def coverage(world: World, n_draws: int, n_prompts: int, seed: int) -> dict[AgreementMetric, float]:
    """How often each interval holds the figure of all prompts there could be."""
    rng = np.random.default_rng(seed)
    truth = figures_of_all(world)
    held = dict.fromkeys(OF_ITEMS, 0)
    for _ in range(n_draws):
        x, y, prompts = flat(*world.draw(rng.choice(6, n_prompts), rng))
        names, clusters = np.unique(prompts, return_inverse=True)
        counts = jackknife.left_out(len(names))
        for metric in OF_ITEMS:
            estimate = pair_metric(metric, x, y)
            replicates = jackknife.pair_replicates(metric, x, y, clusters, counts)
            ends = None if estimate is None else jackknife.ends(metric, estimate, replicates, LEVEL)
            held[metric] += ends is not None and ends[0] <= truth[metric] <= ends[1]
    return {metric: n / n_draws for metric, n in held.items()}


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
    return 0 if is_good else 1


if __name__ == "__main__":
    raise SystemExit(main())
