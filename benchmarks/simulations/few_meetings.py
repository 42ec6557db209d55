"""Tournaments of equals that met the baseline and their predecessor, as in nights: are ratings and ranks as sure as they say?

`python -m benchmarks.simulations.few_meetings`. Most ranks then rest on ratings; pairs.py is where every two met. It counts the
95 % intervals of ratings that hold 0, and worlds in which a range of ranks leaves one out. Exit code 1 where BOUNDS are broken.
"""

import argparse
import sys
from collections import Counter

import numpy as np
import polars as pl

from benchmarks.simulations.pairs import RUN, answered, named
from schemas.tables.published import PREFERENCE_RATINGS
from tasks.aggregate.preferences.tables import preference_tables

SIZES = {"one category": (100,), "5 and 100": (5, 100), "10 and 100": (10, 100), "three of 5 and 100": (5, 5, 5, 100)}
"""Prompts by category."""
BOUNDS = {"ratings held": (0.935, 0.99), "ranks that leave one out": (0.0, 0.12)}
_STEP, _SPREAD = 0.62, 0.5  # three in ten equals tie; strengths differ by prompt


def counted(draw: np.random.Generator, sizes: tuple[int, ...], n_checkpoints: int) -> Counter[str]:
    """What the ratings of one world hold, and whether its ranks leave one out."""
    category = np.repeat(np.arange(len(sizes)), sizes)
    met = [(0, newer) for newer in range(1, n_checkpoints)] + [(newer, newer + 1) for newer in range(1, n_checkpoints - 1)]
    one, other = np.tile(np.array(met).T, sum(sizes))
    prompt = np.repeat(np.arange(sum(sizes)), len(met))
    own = draw.normal(0, _SPREAD, (sum(sizes), n_checkpoints))
    seen = own[prompt, one] - own[prompt, other] + draw.logistic(size=len(prompt))
    value = np.where(seen > _STEP, 1.0, np.where(seen < -_STEP, 0.0, 0.5))
    found = preference_tables(answered(category, prompt, one, other, value, value), RUN)[PREFERENCE_RATINGS]
    rated = found.filter(pl.col("checkpoint") != named(0), pl.col("ci_low").is_not_null())
    is_held = (rated["ci_low"] <= 0) & (rated["ci_high"] >= 0)
    leaves_out = (found["rank_low"] > 1).any() or (found["rank_high"] < found.height).any()
    return Counter({"worlds": 1, "ratings": rated.height, "held": int(is_held.sum()), "leaves out": int(leaves_out)})


def rates(n_worlds: int, sizes: tuple[int, ...], n_checkpoints: int, seed: int) -> dict[str, float]:
    """The rates of so many worlds, by the names of BOUNDS."""
    draw, count = np.random.default_rng(seed), Counter[str]()
    for _ in range(n_worlds):
        count.update(counted(draw, sizes, n_checkpoints))
    return {"ratings held": count["held"] / count["ratings"], "ranks that leave one out": count["leaves out"] / n_worlds}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=500)
    parser.add_argument("--seed", type=int, default=3)
    arguments, is_broken = parser.parse_args(), False
    for name, sizes in SIZES.items():
        for n_checkpoints in (6, 10):
            found = rates(arguments.worlds, sizes, n_checkpoints, arguments.seed)
            broken = [one for one, (low, high) in BOUNDS.items() if not low <= found[one] <= high]
            said = ", ".join(f"{one} {rate:.1%}{' BROKEN' * (one in broken)}" for one, rate in found.items())
            print(f"{name}, {n_checkpoints} checkpoints: {said}", flush=True)
            is_broken |= bool(broken)
    return int(is_broken)


if __name__ == "__main__":
    sys.exit(main())
