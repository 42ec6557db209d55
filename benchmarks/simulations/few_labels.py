"""Means corrected by few labels (`powered_mean`): bias, spread, what their intervals hold, and how many pass the scale.

λ is made of the same labels that it is used on, so that a skewed mean of few labels has a bias, of which shrunk() takes half off;
what is published has another, since what passes an end of the scale is left out (`off_scale`). A picture a prompt, one category.
The table of docs/agreement.md. Exit code 1 where one of BOUNDS is broken.
"""

import argparse
import sys

import numpy as np
from scipy import stats

from tasks.aggregate.agreement.powered import powered_mean
from tasks.aggregate.intervals import Interval, interval

LABELLED = ((10, 70), (15, 65), (30, 50), (60, 140), (200, 400))
"""Prompts with a label, and without."""
BOUNDS = {"held": (0.935, 1.0), "bias": (-0.005, 0.025)}
"""Of 4,000 draws: the share of intervals that hold the truth, and the bias of all means."""
YES = {0.95: (0.99, 0.5), 0.8: (0.99, 0.5), 0.5: (0.9, 0.2)}
"""The share of good pictures, and of how many good and bad ones the judge says yes."""
WHOLE = (0.03, 0.02, 0.05, 0.2, 0.7)
"""Shares of people's scores 1 to 5; the judge's correlate by 0.8 with what lies under them, and are kinder."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=20261128)
    arguments = parser.parse_args()
    rng, is_broken = np.random.default_rng(arguments.seed), False
    for named, truth in [*((f"yes/no, {share:.0%}", share) for share in YES), ("1-5, mean 4.52, on 0-1", 0.88)]:
        for n, rest in LABELLED:
            drawn = [world(rng, truth, n + rest) for _ in range(arguments.draws)]
            said = measured(drawn, truth, n)
            print(f"{named:<24}{n:>5} of {n + rest:<5}{said}", flush=True)
            is_broken |= "BROKEN" in said
    return int(is_broken)


def world(rng: np.random.Generator, truth: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    """People's and the judge's value of every prompt, on [0, 1]."""
    if truth in YES:
        good, (of_good, of_bad) = rng.random(n) < truth, YES[truth]
        return good.astype(float), (rng.random(n) < np.where(good, of_good, of_bad)).astype(float)
    steps, under = stats.norm.ppf(np.cumsum(WHOLE)[:-1]), rng.normal(size=n)
    return np.searchsorted(steps, under) / 4, np.searchsorted(steps - 0.3, 0.8 * under + 0.6 * rng.normal(size=n)) / 4


def measured(drawn: list[tuple[np.ndarray, np.ndarray]], truth: float, n: int) -> str:
    made = [powered_mean(y[:n], f[:n], f[n:], np.zeros(n, dtype=np.int64)) for y, f in drawn]
    there = [one for one in made if one is not None]
    means, labels = np.array([one.mean for one in there]), np.array([y[:n].mean() for y, _ in drawn])
    is_shown = (means >= 0) & (means <= 1)
    ends = [
        interval(one.clustered(), 0.0, 1.0, allows_for_skew=True) for one, shown in zip(there, is_shown, strict=True) if shown
    ]
    held = np.mean([one.low <= truth <= one.high for one in ends if isinstance(one, Interval)])
    found = {"held": held, "bias": means.mean() - truth}
    broken = [name for name, (low, high) in BOUNDS.items() if not low <= found[name] <= high]
    return (
        f"bias {means.mean() - truth:+.3f}, shown {means[is_shown].mean() - truth:+.3f}  sd {means.std():.3f}  "
        f"labels {labels.mean() - truth:+.3f}, sd {labels.std():.3f}  held {held:6.1%}  "
        f"off the scale {1 - is_shown.mean():5.1%}  none {1 - len(there) / len(drawn):5.1%}"
        + "".join(f"  {name} BROKEN" for name in broken)
    )


if __name__ == "__main__":
    sys.exit(main())
