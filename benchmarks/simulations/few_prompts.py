"""Few prompts with several pictures each, most with top marks: how often 95 % intervals hold the truth (`make simulate`).

Every draw goes through the functions that make the published means; beside them stands Wilson's interval as it was without
allowing for skew. `above` are the intervals that lie wholly above the truth, which 2.5 % may. Exit code 1 where an
interval of whole scores about 4.52 holds the truth in under 94 % of cases by more than chance, or holds less than it did.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence

import numpy as np
from scipy import stats

from tasks.aggregate.intervals import ClusteredMean, Interval, clustered_mean, interval

SIZES = (5, 8, 10, 12, 20, 30, 60)
LEAST = 0.94
WHOLE = {"4.52": (0.03, 0.02, 0.05, 0.2, 0.7), "4.80": (0.01, 0.01, 0.03, 0.07, 0.88), "3.90": (0.05, 0.1, 0.15, 0.3, 0.4)}
"""Shares of the scores 1 to 5, by their mean."""
SCATTER = (0.2, 0.5, 0.9)
"""Of what lies under a score, the prompt's share (of yes and no: the correlation of two pictures of a prompt)."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=20261127)
    arguments = parser.parse_args()
    rng, n_broken = np.random.default_rng(arguments.seed), 0
    slack = 3 * np.sqrt(LEAST * (1 - LEAST) / arguments.draws)
    for name, drawn, truth, is_strict in worlds(rng, arguments.draws):
        before, now = (found(drawn, truth, allows_for_skew=allows) for allows in (False, True))
        is_broken = bool(now[0] < before[0] or (is_strict and now[0] < LEAST - slack))
        n_broken += is_broken
        print(f"{name:<50} before {before[0]:6.1%} ({before[1]:5.1%} above)  now {now[0]:6.1%} ({now[1]:5.1%})  "
              f"width × {now[2] / before[2]:4.2f}{'  BROKEN' * is_broken}", flush=True)  # fmt: skip
    return int(n_broken > 0)


def worlds(rng: np.random.Generator, n_draws: int) -> Iterator[tuple[str, list[ClusteredMean], float, bool]]:
    """Every world's means on [0, 1], their truth, and whether 94 % are asked of it."""
    for pictures in (4, 1):
        for named, shares in WHOLE.items():
            steps, truth = stats.norm.ppf(np.cumsum(shares)[:-1]), float(np.dot(shares, range(5)) / 4)
            for scatter in SCATTER if pictures > 1 else SCATTER[:1]:
                for size in SIZES:
                    level = rng.normal(0, np.sqrt(scatter), (n_draws, size, 1))
                    under = level + rng.normal(0, np.sqrt(1 - scatter), (n_draws, size, pictures))
                    name = f"1-5, mean {named}, {pictures} pictures, {scatter:.0%}; {size} prompts"
                    yield name, means(np.searchsorted(steps, under) / 4), truth, named == "4.52"
        for share in (0.5, 0.9, 0.98, 0.02):
            for scatter in SCATTER if pictures > 1 else SCATTER[:1]:
                for size in SIZES:
                    of_prompt = rng.beta(share * (1 / scatter - 1), (1 - share) * (1 / scatter - 1), (n_draws, size, 1))
                    said = (rng.random((n_draws, size, pictures)) < of_prompt).astype(float)
                    yield f"yes/no, {share:.0%}, {pictures} pictures, {scatter:.0%}; {size} prompts", means(said), share, False
        for size in SIZES:
            is_hard = rng.random((n_draws, size, 1)) < 1 / 8
            easy, hard = (rng.choice(values, (n_draws, size, pictures)) for values in ([0.75, 1, 1, 1, 1], [0, 0.25, 0.5]))
            truth = 7 / 8 * 0.95 + 1 / 8 * 0.25
            yield (
                f"1-5, one prompt of eight hard, {pictures} pictures; {size} prompts",
                means(np.where(is_hard, hard, easy)),
                truth,
                False,
            )


def means(values: np.ndarray) -> list[ClusteredMean]:
    """Of values (draws, prompts, pictures)."""
    sums, counts = values.sum(axis=2), np.full(values.shape[1], values.shape[2])
    return [clustered_mean(one, counts, np.zeros(len(one))) for one in sums]


def found(drawn: Sequence[ClusteredMean], truth: float, *, allows_for_skew: bool) -> tuple[float, float, float]:
    """Of the intervals there are: the share that holds the truth, that lies wholly above it, and the mean width."""
    ends = [interval(mean, 0.0, 1.0, allows_for_skew=allows_for_skew) for mean in drawn]
    low, high = np.array([(one.low, one.high) for one in ends if isinstance(one, Interval)]).T
    return float(np.mean((low <= truth) & (truth <= high))), float(np.mean(low > truth)), float(np.mean(high - low))


if __name__ == "__main__":
    sys.exit(main())
