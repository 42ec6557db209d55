"""Simulations behind docs/agreement.md: means and deltas corrected by people, raters, the label check, order of checkpoints.

Six categories of GenEval's sizes, 553 prompts × 4 images, whole scores 0–10 (`make simulate`). The code is that of the tables.
Agreement's own intervals are agreement.py. Exit code 1 where a figure leaves its bounds. Seeds are fixed.
"""

import argparse
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.simulations.agreement import (
    CATEGORY_MEANS,
    FAIL_RATE,
    IMAGE_SD,
    JUDGE_SD,
    KINDNESS,
    PROMPT_SD,
    RATER_SD,
)
from schemas.statuses.people import AgreementMetric, Estimator
from tasks.aggregate.agreement.estimates import Values, made
from tasks.aggregate.agreement.label_check import van_elteren
from tasks.aggregate.agreement.powered import mean_of_prompts, powered_mean
from tasks.aggregate.agreement.systems import system_figures
from tasks.aggregate.comparisons.families import ALPHA
from tasks.aggregate.intervals import LEVEL, ClusteredMean, Floats, Interval, interval, t_quantile

SIZES = np.array([80, 99, 80, 94, 100, 100])
STRATA = np.repeat(np.arange(6), SIZES)
N_PROMPTS, N_IMAGES, OWN_SD = len(STRATA), 4, 0.5
TASTES = {0.8: 1.45, 0.5: 3.42}
"""Standard deviation of what a judge sees in a prompt and people do not, by the correlation of prompt aggregates it makes."""
COVERAGE, NARROWER, WIDER = (0.935, 0.965), 0.25, 0.02
ESTIMATORS = (Estimator.PREDICTION_POWERED, Estimator.LABELS, Estimator.JUDGE)


@dataclass(frozen=True, slots=True)
class World:
    """Checkpoints that people find equally good and a judge that is kinder to the first ("a family"), by prompt in part.

    `taste_sd`: what the judge sees in a checkpoint's pictures of a prompt and people do not. `n_raters` people of whom each has
    a leaning of `lean_sd` for each checkpoint; one, of none, where 1.
    """

    n_systems: int = 2
    taste_sd: float = 1.0
    kindness: float = KINDNESS
    kindness_by_prompt: float = 0.1
    n_raters: int = 1
    lean_sd: float = 0.0

    def draw(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """People's means by prompt, (systems, prompts, raters), and the judge's, (systems, prompts)."""
        shape = self.n_systems, N_PROMPTS, N_IMAGES
        quality = rng.normal(0, PROMPT_SD, N_PROMPTS)
        own = CATEGORY_MEANS[STRATA] + quality + rng.normal(0, OWN_SD, shape[:2])
        image = own[:, :, None] + rng.normal(0, IMAGE_SD, shape)
        kind = np.zeros(shape[:2])
        kind[0] = self.kindness + self.kindness_by_prompt * quality
        judge = image + (kind + rng.normal(0, self.taste_sd, shape[:2]))[:, :, None] + rng.normal(0, JUDGE_SD, shape)
        lean = rng.normal(0, self.lean_sd, (self.n_systems, self.n_raters))
        people = image[..., None] + lean[:, None, None, :] + rng.normal(0, RATER_SD, (*shape, self.n_raters))
        judged = np.clip(np.round(judge), 0, 10)
        judged[rng.random(shape) < FAIL_RATE] = np.nan
        return np.clip(np.round(people), 0, 10).mean(axis=2), _mean_of(judged)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How often the intervals of ESTIMATORS held the truth, and the mean ratio of the first's width to the second's."""

    correlation: float
    covered: tuple[float, float, float]
    width_ratio: float


def delta_outcome(world: World, n_draws: int, n_labelled: int, seed: int) -> Outcome:
    """The difference of two checkpoints, in truth 0; the same prompts of both are labelled, chosen at random."""
    rng = np.random.default_rng(seed)
    held, ratios, correlations = np.zeros(3), [], []
    for _ in range(n_draws):
        people, judged = world.draw(rng)
        by_rater, scores = people[0] - people[1], judged[0] - judged[1]
        correlations.append(_correlation(by_rater.mean(axis=1), scores))
        by_rater[~_chosen(rng, n_labelled)] = np.nan
        values = Values(by_rater.mean(axis=1), by_rater, scores)
        means = [made(estimator, values, STRATA).mean for estimator in ESTIMATORS]
        halves = [_half(mean) for mean in means]
        held += [mean is not None and abs(mean.mean) <= half for mean, half in zip(means, halves, strict=True)]
        ratios.append(halves[0] / halves[1])
    shares = held / n_draws
    return Outcome(float(np.mean(correlations)), (shares[0], shares[1], shares[2]), float(np.nanmean(ratios)))


def mean_outcome(n_draws: int, correlation: float, seed: int, n_labelled: int = 100) -> Outcome:
    """One checkpoint's mean over prompts, `__micro__`: a judge that is too kind, and shares `correlation` of what people see."""
    rng = np.random.default_rng(seed)
    people, judged = (np.concatenate(side) for side in zip(*(_prompts(correlation, rng) for _ in range(400)), strict=True))
    truth, met = float(people.mean()), _correlation(people, judged)
    held, ratios = np.zeros(3), []
    for _ in range(n_draws):
        labels, scores = _prompts(correlation, rng)
        chosen, is_scored = _chosen(rng, n_labelled), ~np.isnan(scores)
        both, rest = chosen & is_scored, ~chosen & is_scored
        powered = powered_mean(labels[both], scores[both], scores[rest], STRATA[both])
        assert powered is not None
        ends = [_ends(one) for one in (powered.clustered(), mean_of_prompts(labels[chosen]), mean_of_prompts(scores[is_scored]))]
        held += [one.low <= truth <= one.high for one in ends]
        ratios.append((ends[0].high - ends[0].low) / (ends[1].high - ends[1].low))
    shares = held / n_draws
    return Outcome(met, (shares[0], shares[1], shares[2]), float(np.mean(ratios)))


def found_by_label_check(choice: str, n_draws: int, n_labelled: int, seed: int) -> float:
    """How often the check finds labels chosen: `random`; odds 3 for the upper half of each category by what `judge`, or `people`,
    give five checkpoints; `people per sd`, odds times 3 for each standard deviation.
    """
    rng, world, found = np.random.default_rng(seed), World(n_systems=5, kindness=0.0), 0
    for _ in range(n_draws):
        people, judged = world.draw(rng)
        values = _mean_of(judged.T)
        seen = values if choice in ("random", "judge") else people.mean(axis=(0, 2))
        seen = np.concatenate([_standard(seen[number == STRATA]) for number in range(6)])
        odds = {"random": np.ones(N_PROMPTS), "people per sd": 3.0**seen}.get(choice, np.where(seen > 0, 3.0, 1.0))
        is_labelled = np.zeros(N_PROMPTS, dtype=bool)
        is_labelled[rng.choice(N_PROMPTS, n_labelled, replace=False, p=odds / odds.sum())] = True
        p = van_elteren(values, is_labelled, STRATA)
        found += p is not None and p < ALPHA
    return found / n_draws


def order_covered(n_systems: int, n_prompts: int, n_draws: int, seed: int) -> tuple[float, float]:
    """How often the interval of Kendall's tau over checkpoints holds that of their true means; its mean width."""
    rng = np.random.default_rng(seed)
    held, width = 0, 0.0
    for _ in range(n_draws):
        better = rng.normal(0, 0.4, (n_systems, 1))
        seen = better + rng.normal(0, 0.2, (n_systems, 1))
        own = rng.normal(0, PROMPT_SD, n_prompts) + rng.normal(0, IMAGE_SD / 2, (n_systems, n_prompts))
        labels, judged = (side + own + rng.normal(0, 0.5, own.shape) for side in (better, seen))
        upper = np.triu_indices(n_systems, 1)
        signs = np.sign((better - better.T)[upper] * (seen - seen.T)[upper])
        low, high = system_figures(judged, labels)[AgreementMetric.SYSTEM_KENDALL_TAU][1]
        held += low - 1e-9 <= signs.mean() <= high + 1e-9
        width += (high - low) / n_draws
    return held / n_draws, width


def _prompts(correlation: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """People's and the judge's means by prompt of one checkpoint."""
    quality = CATEGORY_MEANS[STRATA] + rng.normal(0, PROMPT_SD, N_PROMPTS)
    image = rng.normal(0, IMAGE_SD, (N_PROMPTS, N_IMAGES))
    people = quality[:, None] + image + rng.normal(0, RATER_SD, image.shape)
    if correlation > 0:
        seen = (quality + rng.normal(0, TASTES[correlation], N_PROMPTS))[:, None] + image
    else:  # a judge that scores something else altogether
        seen = 5 + rng.normal(0, 2, image.shape) + rng.normal(0, PROMPT_SD, N_PROMPTS)[:, None]
    judged = np.clip(np.round(seen + KINDNESS + rng.normal(0, JUDGE_SD, image.shape)), 0, 10)
    judged[rng.random(image.shape) < FAIL_RATE] = np.nan
    return np.clip(np.round(people), 0, 10).mean(axis=1), _mean_of(judged)


def _mean_of(values: Floats) -> Floats:
    """Over the last axis, NaN where there is none."""
    n = np.sum(~np.isnan(values), axis=-1)
    found: Floats = np.where(n > 0, np.nansum(values, axis=-1) / np.maximum(n, 1), np.nan)
    return found


def _chosen(rng: np.random.Generator, n_labelled: int) -> np.ndarray:
    found = np.zeros(N_PROMPTS, dtype=bool)
    found[rng.choice(N_PROMPTS, n_labelled, replace=False)] = True
    return found


def _correlation(x: Floats, y: Floats) -> float:
    is_there = ~np.isnan(x) & ~np.isnan(y)
    return float(np.corrcoef(x[is_there], y[is_there])[0, 1])


def _standard(values: Floats) -> Floats:
    return (values - np.median(values)) / values.std()


def _half(mean: ClusteredMean | None) -> float:
    return t_quantile(LEVEL, mean.df) * mean.se if mean and mean.se is not None and mean.df is not None else float("nan")


def _ends(mean: ClusteredMean) -> Interval:
    ends = interval(mean, 0.0, 10.0, allows_for_skew=True)
    assert isinstance(ends, Interval)
    return ends


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=4000)
    n_draws = parser.parse_args().draws
    console, is_good = Console(width=130), True
    table = Table("", "correlation", "corrected covers", "labels cover", "judge covers", "corrected / labels width", box=None)
    outcomes = {f"mean, {r}": mean_outcome(n_draws, r, seed=7) for r in (0.8, 0.5, 0.0)}
    for taste in (0.3, 1.0, 4.0):
        for n in (60, 100, 200):
            outcomes[f"delta, {n} labelled, taste {taste}"] = delta_outcome(World(taste_sd=taste), n_draws, n, seed=8)
    for raters, lean in ((2, 0.2), (3, 0.2), (3, 0.5), (5, 0.5), (3, 0.0)):
        world = World(n_raters=raters, lean_sd=lean)
        outcomes[f"delta, 100 labelled, {raters} raters leaning {lean}"] = delta_outcome(world, n_draws // 2, 100, seed=9)
    for name, found in outcomes.items():
        table.add_row(name, *(f"{figure:.3f}" for figure in (found.correlation, *found.covered, found.width_ratio)))
        is_good &= COVERAGE[0] <= found.covered[0] <= COVERAGE[1] and found.width_ratio <= 1 + WIDER
        is_good &= name != "mean, 0.8" or found.width_ratio <= 1 - NARROWER
    console.print(table)
    table = Table("labels of 553 prompts", "30", "60", "120", box=None)
    for choice in ("random", "judge", "people", "people per sd"):
        shares = [found_by_label_check(choice, n_draws // 2, n, seed=10) for n in (30, 60, 120)]
        table.add_row(choice, *(f"{share:.3f}" for share in shares))
        is_good &= choice != "random" or max(shares) <= ALPHA + 2 * (ALPHA / (n_draws // 2)) ** 0.5
    console.print(table)
    for n_systems, n_prompts in ((5, 20), (5, 100), (10, 100)):
        covered, width = order_covered(n_systems, n_prompts, n_draws // 4, seed=11)
        console.print(f"{n_systems} checkpoints, {n_prompts} prompts: tau's interval covers {covered:.3f}, is {width:.2f} wide")
        is_good &= covered >= LEVEL
    return 0 if is_good else 1


if __name__ == "__main__":
    raise SystemExit(main())
