"""Votes drawn on a run's pairs; agreement and ratings from them in plain Python and by a general optimiser. No tests here."""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import numpy as np
import polars as pl
from scipy import optimize, stats

from schemas.tables.stored import JUDGEMENTS, SAMPLES, SCORES

WORDS = {1.0: "left", 0.0: "right", 0.5: "same"}
Pair = tuple[str, str]


def read(lake: Path, name: str) -> pl.DataFrame:
    return pl.concat([pl.read_parquet(path) for path in sorted((lake / name).glob("*/*.parquet"))], how="diagonal_relaxed")


class World:
    """The run's pairs as plain dicts: the judge's label of each, its prompt, category and two checkpoints."""

    def __init__(self, lake: Path) -> None:
        asked = read(lake, JUDGEMENTS.name).to_dicts()
        won = {(row["request_key"], row["dimension"]): row["score"] for row in read(lake, SCORES.name).to_dicts()}
        self.samples = {row["sample_id"]: row for row in read(lake, SAMPLES.name).drop("image", "pictures").to_dicts()}
        self.prompt, self.category, orders = {}, {}, defaultdict(dict)
        for row in asked:
            ends = (row["sample_id"], row["checkpoint"]), (row["second_sample_id"], row["second_checkpoint"])
            pair = tuple(sample for sample, _ in sorted(ends, key=lambda end: end[1]))
            self.prompt[pair], self.category[pair] = row["prompt_id"], row["category"]
            for dimension in ("overall_score", "alignment"):
                score = won[row["request_key"], dimension]
                orders[dimension, pair][pair[0] == row["sample_id"]] = score if pair[0] == row["sample_id"] else 1 - score
        self.labels = {key: said[True] if said[True] == said[False] else 0.5 for key, said in orders.items()}

    def checkpoints(self, pair: Pair) -> Pair:
        return tuple(self.samples[one]["checkpoint"] for one in pair)


def drawn(world: World) -> tuple[list[dict], dict[str, dict[Pair, float]]]:
    """Rows of votes, and by rater the vote each pair has: people who see what the judge sees, with slips and gaps."""
    draw, rows, votes = random.Random(20), [], {"ann": {}, "bob": {}, "cyd": {}, "dee": {}}
    for rater, slips, gaps in (("ann", 0.1, 0.0), ("bob", 0.3, 0.2), ("cyd", 0.5, 0.1), ("dee", 0.3, 0.7)):
        for pair in sorted(world.prompt, key=lambda one: (*world.checkpoints(one), world.prompt[one])):
            if draw.random() < gaps:
                continue
            seen = world.labels["overall_score", pair]
            said = draw.choice([0.0, 0.5, 1.0]) if draw.random() < slips else seen
            votes[rater][pair] = said
            sides = pair if draw.random() < 0.5 else pair[::-1]
            rows.append(
                row_of(world, sides, rater, said if sides == pair else 1 - said, shown_first=draw.choice(["left", "right"]))
            )
    return rows, votes


def row_of(world: World, sides: Pair, rater: str, vote: float, **more: str) -> dict:
    """A row that names its samples by prompt, checkpoint and seed."""
    a, b = (world.samples[one] for one in sides)
    return {
        "prompt": a["prompt"], "rater": rater, "choice": WORDS[vote], "sample_id_a": None, "sample_id_b": None,
        "checkpoint_a": a["checkpoint"], "seed_a": a["seed"], "checkpoint_b": b["checkpoint"], "seed_b": b["seed"], **more,
    }  # fmt: skip


def accuracy(x: list[float], y: list[float]) -> float:
    return fmean(one == other for one, other in zip(x, y, strict=True))


def kappa(x: list[float], y: list[float]) -> float:
    n, of_x, of_y = len(x), Counter(x), Counter(y)
    chance = sum(of_x[label] * of_y[label] for label in of_x) / n**2
    return (accuracy(x, y) - chance) / (1 - chance)


def most(said: list[float]) -> float | None:
    ranked = Counter(said).most_common()
    return None if not ranked else 0.5 if len(ranked) > 1 and ranked[0][1] == ranked[1][1] else ranked[0][0]


def leave_one_out(x: list[float], y: list[float], prompts: list[str], figure: Callable[..., float]) -> tuple[float, float]:
    """Wilson's interval of a share with the error of Tukey's jackknife over prompts, written out."""
    sizes = Counter(prompts)
    kept = [[(a, b) for a, b, prompt in zip(x, y, prompts, strict=True) if prompt != name] for name in sizes]
    found = np.array([figure(*map(list, zip(*pairs, strict=True))) for pairs in kept])
    k, share = len(sizes), figure(x, y)
    n = share * (1 - share) / ((k - 1) / k * ((found - found.mean()) ** 2).sum())
    k_equal = min(k, sum(sizes.values()) ** 2 / sum(size**2 for size in sizes.values()))
    squared = stats.t.ppf(0.975, k_equal - 1) ** 2
    middle, half = share + squared / (2 * n), math.sqrt(squared * share * (1 - share) / n + (squared / (2 * n)) ** 2)
    return (middle - half) / (1 + squared / n), (middle + half) / (1 + squared / n)


def davidson(votes: list[tuple[str, str, float, float]]) -> dict[str, float]:
    """Points above step-1000 by a general optimiser, of (checkpoint, other, worth, weight)."""
    names = sorted({end for a, b, _, _ in votes for end in (a, b)})

    def loss(at: np.ndarray) -> float:
        strength, nu = dict(zip(names, [0.0, *at[:-1]], strict=True)), at[-1]
        total = 0.0
        for a, b, worth, weight in votes:
            half = (strength[a] - strength[b]) / 2
            logits = {1.0: half, 0.0: -half, 0.5: nu}
            total -= weight * (logits[worth] - math.log(sum(map(math.exp, logits.values()))))
        return total

    found = optimize.minimize(loss, np.zeros(len(names)), method="BFGS", options={"gtol": 1e-8}).x
    return {name: 400 / math.log(10) * value for name, value in zip(names, [0.0, *found[:-1]], strict=True)}
