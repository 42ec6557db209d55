"""Unequal categories and unequal prompts: how often intervals hold the truth, and equals are told apart (`make simulate`).

Every draw goes through the functions that make the published figures; beside them stand the intervals that take a category
without variation for certain, and the linearised error with K - 1 degrees of freedom. Exit code 1 where an interval holds the
truth in under 93 % of the cases of a world that is not extreme.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence

import numpy as np
from scipy import stats

from tasks.aggregate.agreement.powered import stratified_mean
from tasks.aggregate.comparisons.comparison_tests import t_test
from tasks.aggregate.intervals import ClusteredMean, Interval, clustered_mean, interval, mean_of_means
from tasks.aggregate.preferences.cells import score_test

GENEVAL = (80, 100, 80, 94, 100, 99)
LEAST = 0.93
YES_NO = [
    *(((2, 100), (share,) * 2) for share in (0.5, 0.9)), *(((5, 100), (share,) * 2) for share in (0.5, 0.9, 0.98)),
    *(((10, 100), (share,) * 2) for share in (0.5, 0.9, 0.98)), ((5, 100), (0.9, 0.5)), ((5, 100), (0.9, 0.999)),
    ((10, 100), (0.8, 0.99)), ((10, 100), (0.9, 0.999)),
    *(((5, 5, 5, 100, 100, 100), (share,) * 6) for share in (0.5, 0.9, 0.98)),
    ((10,) * 6, (0.99, 0.9, 0.7, 0.8, 0.3, 0.4)), ((20,) * 6, (0.95,) * 6), (GENEVAL, (0.5,) * 6),
    (GENEVAL, (0.999, 0.9, 0.7, 0.8, 0.3, 0.4)), (GENEVAL, (0.98,) * 6),
]  # fmt: skip
EXTREME = [((10, 100), (0.8, 0.99))]
"""The large category is nearly perfect, and so is what the small one seems to vary by where it happens not to: 92 %."""
WHOLE = [
    ((5, 100), 3.0, 1.0),
    ((5, 100), 4.9, 0.4),
    ((10, 100), 4.9, 0.4),
    ((5, 5, 5, 100, 100, 100), 4.9, 0.4),
    (GENEVAL, 4.5, 0.6),
]
PICTURES = {"1 to 4": (4, 0.0), "1, a fifth of the prompts 20": (1, 0.2)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=20261126)
    arguments = parser.parse_args()
    rng, n_broken = np.random.default_rng(arguments.seed), 0
    for name, before, now, is_extreme in intervals(rng, arguments.draws):
        is_broken = bool(now[0] < LEAST) and not is_extreme
        n_broken += is_broken
        widths = now[1] / before[1]
        print(f"{name:<72} before {before[0]:6.1%}  now {now[0]:6.1%}  width × {widths:4.2f}{'  BROKEN' * is_broken}", flush=True)
    for name, found in equals(rng, arguments.draws):
        print(f"{name:<72} p < 0.05 {np.mean(found < 0.05):6.2%}  < 0.005 {np.mean(found < 0.005):6.2%}  "
              f"< 0.0006 {np.mean(found < 0.0006):7.3%}  least {found.min():.1e}", flush=True)  # fmt: skip
    return int(n_broken > 0)


Held = tuple[float, float]
"""The share of intervals that hold the truth, and their mean width."""


def intervals(rng: np.random.Generator, n_draws: int) -> Iterator[tuple[str, Held, Held, bool]]:
    """Of every world what intervals hold, before and now, and whether it is an extreme one."""
    for sizes, shares in YES_NO:
        drawn = [[single(rng.random(n) < q) for n, q in zip(sizes, shares, strict=True)] for _ in range(n_draws)]
        said = str(shares[0]) if len(set(shares)) == 1 else ", ".join(map(str, shares))
        yield f"yes/no, {sizes}: {said}", *held(drawn, float(np.mean(shares)), (0, 1)), (sizes, shares) in EXTREME
    for sizes, centre, sd in WHOLE:
        drawn = [[single(np.clip(np.rint(rng.normal(centre, sd, n)), 1, 5)) for n in sizes] for _ in range(n_draws)]
        truth = 1 + float(sum(stats.norm.sf(k - 0.5, centre, sd) for k in range(2, 6)))
        yield f"1-5, {sizes}: about {truth:.1f}", *held(drawn, truth, (1, 5)), False
    for name, (most, many) in PICTURES.items():
        for n_prompts in (5, 10, 30, 100):
            pairs = [unequal(rng, n_prompts, most, many) for _ in range(n_draws)]
            ends = [rate([one[k] for one in pairs], 0.5, (0, 1), allows_for_skew=k == 1) for k in (0, 1)]
            yield f"yes/no, {n_prompts} prompts of {name} pictures: 0.5", *ends, False


def single(values: np.ndarray) -> ClusteredMean:
    return clustered_mean(values.astype(float), np.ones(len(values), np.int64), np.zeros(len(values)))


def held(drawn: Sequence[Sequence[ClusteredMean]], truth: float, ends: tuple[float, float]) -> tuple[Held, Held]:
    """Where a category without variation is certain, and as published."""
    certain = [as_if_certain(strata) for strata in drawn]
    return rate(certain, truth, ends), rate([mean_of_means(strata) for strata in drawn], truth, ends, allows_for_skew=True)


def as_if_certain(strata: Sequence[ClusteredMean]) -> ClusteredMean:
    parts = np.array([(one.se or 0.0) ** 2 / len(strata) ** 2 for one in strata])
    below = sum(part**2 / (one.df or 1.0) for part, one in zip(parts, strata, strict=True))
    n_prompts = sum(one.n_prompts for one in strata)
    df = parts.sum() ** 2 / below if below else n_prompts - len(strata)
    return ClusteredMean(float(np.mean([one.mean for one in strata])), float(np.sqrt(parts.sum())), df, n_prompts, None)


def rate(means: Sequence[ClusteredMean], truth: float, ends: tuple[float, float], *, allows_for_skew: bool = False) -> Held:
    made = [interval(mean, *ends, allows_for_skew=allows_for_skew) for mean in means]
    found = [one for one in made if isinstance(one, Interval)]
    return float(np.mean([one.low <= truth <= one.high for one in found])), float(np.mean([one.high - one.low for one in found]))


def unequal(rng: np.random.Generator, n_prompts: int, most: int, many: float) -> tuple[ClusteredMean, ClusteredMean]:
    """Prompts whose shares are drawn around one half, with 1 to `most` pictures, or 20: the linearised and the published mean."""
    counts = np.where(rng.random(n_prompts) < many, 20, rng.integers(1, most + 1, n_prompts))
    sums = rng.binomial(counts, rng.beta(1 / 3, 1 / 3, n_prompts)).astype(float)
    mean, n = sums.sum() / counts.sum(), counts.sum()
    se = float(np.sqrt(((sums - mean * counts) ** 2).sum() * n_prompts / (n_prompts - 1)) / n)
    return ClusteredMean(float(mean), se, n_prompts - 1.0, n_prompts, None), clustered_mean(sums, counts, np.zeros(n_prompts))


def equals(rng: np.random.Generator, n_draws: int) -> Iterator[tuple[str, np.ndarray]]:
    """The p of equals: win rates with 0 and 30 % ties, and differences of scores of 0 to 2 and of 0 to 10."""
    for sizes in ((5, 100), (8, 100), (10, 100), (5, 30, 100), GENEVAL):
        for tie in (0.0, 0.3):
            drawn = (
                mean_of_means([single(np.where(rng.random(n) < tie, 0.5, rng.integers(0, 2, n))) for n in sizes])
                for _ in range(n_draws)
            )
            yield f"win rate of equals, {sizes}, {tie:.0%} ties", np.array([score_test(mean) or 1.0 for mean in drawn])
    coarse = ((2, 60), (3, 60), (5, 100), (5, 5, 5, 100, 100, 100), GENEVAL)
    for top, each in ((2, coarse), (10, ((5, 100), (8, 100), (10, 100), (20, 100), GENEVAL))):
        for sizes in each:
            strata = np.repeat(np.arange(len(sizes)), sizes)
            scores = (rng.integers(0, top + 1, (2, len(strata))) for _ in range(n_draws))
            found = [stratified_mean(np.diff(one, axis=0)[0] * 1.0, strata) for one in scores]
            p = [t_test(one.mean, one.se, one.df) if one and one.se and one.df else 1.0 for one in found]
            yield f"difference of equals of 0 to {top}, {sizes}", np.array(p)


if __name__ == "__main__":
    sys.exit(main())
