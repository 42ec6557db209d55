"""Adaptive pairs where verdicts are refused, at another rate in each category (`python -m benchmarks.simulations.refused_pairs`).

A world: two checkpoints, 600 prompts in two categories, looked at after every 25; in one of WORLDS' ways the judge decides and
refuses. Deciding and publishing is the code of a run.
"""

from collections import Counter
from dataclasses import replace

import numpy as np
import polars as pl

from benchmarks.simulations.pairs import RUN, answered, named
from schemas.benchmark.file import Statistics
from schemas.statuses.cells import ComparisonVerdict, Total
from schemas.tables.published import PREFERENCES
from tasks.aggregate.preferences.adaptive import next_comparisons
from tasks.aggregate.preferences.evidence import Plan
from tasks.aggregate.preferences.tables import preference_tables

PAIR = (("m", named(1)), ("m", named(0)))
N_PROMPTS, N_A_LOOK = 600, 25
DECIDED = (ComparisonVerdict.HIGHER.value, ComparisonVerdict.LOWER.value)
WORLDS = {
    "equals, 35 % of one category refused": ((0.85, 0.15), (0.35, 0.0)),
    "equals, nothing refused": ((0.85, 0.15), (0.0, 0.0)),
    "60 % won, nothing refused": ((0.6, 0.6), (0.0, 0.0)),
    "60 % won, 3 % refused": ((0.6, 0.6), (0.03, 0.03)),
    "65 % won, 10 % refused": ((0.65, 0.65), (0.1, 0.1)),
    "65 % won, 20 % of one category refused": ((0.65, 0.65), (0.2, 0.0)),
}
"""By name, the shares won in each category and those refused."""


def night(
    draw: np.random.Generator, won: tuple[float, float], refused: tuple[float, float], n_a_look: int = N_A_LOOK
) -> Counter[str]:
    """One world, asked until it is decided; what was asked of it, and found by either setting of `failures`."""
    category, prompts = np.arange(N_PROMPTS) % 2, np.arange(N_PROMPTS)
    value = (draw.random(N_PROMPTS) < np.array(won)[category]) * 1.0
    value[draw.random(N_PROMPTS) < np.array(refused)[category]] = np.nan
    every = answered(category, prompts, np.zeros(N_PROMPTS, int), np.ones(N_PROMPTS, int), value, value)
    order, count = draw.permutation(N_PROMPTS), Counter[str](nights=1)
    for failures in ("at_random", "worst_case"):
        for asked in range(n_a_look, N_PROMPTS + 1, n_a_look):
            so_far = every.filter(pl.col("prompt").is_in(order[:asked].tolist()))
            plan = Plan({"c0": N_PROMPTS // 2, "c1": N_PROMPTS // 2}, [PAIR] if asked == N_PROMPTS else ())
            if next_comparisons(so_far, [PAIR], plan, 1, min_coverage=0.8, failures=failures)[0].is_decided:
                break
        run = replace(RUN, statistics=Statistics(failures=failures))
        row = preference_tables(so_far, run, {("pairs", "eye"): plan})[PREFERENCES].row(
            by_predicate=pl.col("category") == Total.MACRO.value, named=True
        )
        count[f"{failures}: asked"] += so_far.height
        count[f"{failures}: found"] += row["verdict"] in DECIDED
    return count


def rates(n_worlds: int, won: tuple[float, float], refused: tuple[float, float], seed: int, n_a_look: int) -> dict[str, float]:
    """Of so many worlds of one kind, the share asked and the share in which a difference was found."""
    draw, count = np.random.default_rng(seed), Counter[str]()
    for _ in range(n_worlds):
        count.update(night(draw, won, refused, n_a_look))
    return {name: n / n_worlds / (N_PROMPTS if name.endswith("asked") else 1) for name, n in count.items() if name != "nights"}


if __name__ == "__main__":
    for kind, how in WORLDS.items():
        print(f"{kind:<40}", {name: f"{share:.1%}" for name, share in rates(200, *how, 3, N_A_LOOK).items()}, flush=True)
