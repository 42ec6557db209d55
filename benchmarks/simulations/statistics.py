"""Draw judgements from a world whose truth is known and count how often the published figures are right (`make simulate`).

Every draw goes through the code that makes the published tables, one judge a draw. Exit code 1 where a rate is out of its bounds.
The world: six categories of GenEval's sizes, 553 prompts × 4 pictures, whole scores 0-10, with prompt, picture and judge
variance, a checkpoint's own strengths, and 3 % failures.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy import optimize, stats

from benchmarks.simulations.drawn_scores import (
    AT_LEAST,
    CATEGORIES,
    CATEGORY_OF,
    CENTRES,
    IMAGE_SD,
    JUDGE_SD,
    PROMPT_SD,
    SIZES,
    STRENGTH_SD,
    chunks,
    tables_of,
    world,
)
from schemas.tables.published import BENCHMARK_LONG, BENCHMARK_WIDE, COMPARISONS

LOW = 2


@dataclass(frozen=True)
class Rate:
    """How often something happened, and where that must lie."""

    name: str
    rate: float
    n: int
    low: float = 0.0
    high: float = 1.0

    def is_within(self, n_errors: float = 0.0) -> bool:
        """Whether the rate lies in its bounds, widened by so many standard errors of a rate on the bound."""
        slack = [n_errors * np.sqrt(end * (1 - end) / self.n) for end in (self.low, self.high)]
        return bool(self.low - slack[0] <= self.rate <= self.high + slack[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=20261103)
    arguments = parser.parse_args()
    n_outside = 0
    for rate in all_rates(arguments.draws, arguments.seed):
        verdict = "" if rate.is_within() else "  OUT OF BOUNDS"
        print(f"{rate.name:<62} {rate.rate:7.2%}  ({rate.low:.1%} to {rate.high:.1%}, {rate.n:,}){verdict}", flush=True)
        n_outside += not rate.is_within()
    return int(n_outside > 0)


def all_rates(n_draws: int, seed: int) -> Iterator[Rate]:
    yield from coverage(n_draws, seed)
    yield from paired(n_draws, seed + 1)
    yield from ranks(max(1, n_draws // 4), seed + 2)


def coverage(n_draws: int, seed: int) -> Iterator[Rate]:
    """One checkpoint a draw: intervals under both estimands, of means and of shares, and the one that takes images alone."""
    draw = np.random.default_rng(seed)
    truth = {"mean": [true_mean(c) for c in CENTRES], f"share_at_least_{AT_LEAST}": [true_share(c) for c in CENTRES]}
    hits: dict[tuple[str, str, str], list[bool]] = {}
    naive: list[bool] = []
    for n in chunks(n_draws):
        levels, scores, has_failed = world(draw, n, n_checkpoints=1, n_dimensions=1)
        cells = tables_of(scores, has_failed)[BENCHMARK_LONG].filter(pl.col("category") != "__micro__")
        of_these = expected_scores(levels[:, 0, 0, :])
        for row in cells.iter_rows(named=True):
            true = conditional(of_these[int(row["judge_model"])]) if row["estimand"] == "these_prompts" else truth[row["metric"]]
            if row["estimand"] == "these_prompts" and row["metric"] != "mean":
                continue
            value = np.mean(true) if row["category"] == "__macro__" else true[CATEGORIES.index(row["category"])]
            hits.setdefault((row["estimand"], row["metric"], row["category"]), []).append(
                row["ci_low"] <= value <= row["ci_high"]
            )
        naive += naive_hits(scores[:, 0, 0], has_failed[:, 0], float(np.mean(truth["mean"])))
    for (estimand, metric, category), found in sorted(hits.items()):
        yield Rate(f"covered: {estimand}, {metric}, {category}", float(np.mean(found)), len(found), 0.935, 0.965)
    yield Rate("covered: macro mean, pictures taken as independent", float(np.mean(naive)), n_draws, 0.0, 0.80)


def paired(n_draws: int, seed: int) -> Iterator[Rate]:
    """Two checkpoints a draw, three dimensions: nothing differs; then the second is better by the mde80 that was stated."""
    draw = np.random.default_rng(seed)
    null = pl.concat(
        [
            pairs_of(draw, n, 3).with_columns(draw=pl.format("{} {}", pl.lit(c), "judge_model"))
            for c, n in enumerate(chunks(n_draws))
        ]
    )
    macro = null.filter(pl.col("category") == "__macro__")
    yield Rate("found: macro delta where there is none", float((macro["p"] < 0.05).mean()), macro.height, 0.04, 0.065)
    cells = null.filter(pl.col("category").is_in(CATEGORIES))
    any_found = cells.group_by("draw").agg((pl.col("p") < 0.05).any().alias("raw"))
    yield Rate("found: any of 18 cells where nothing differs, not corrected", float(any_found["raw"].mean()), n_draws, 0.5, 1.0)
    for family in ("headline", "categories"):
        corrected = null.filter(pl.col("family").str.starts_with(family)).group_by("draw")
        found = corrected.agg((pl.col("p_adjusted") < 0.05).any().alias("found"))["found"]
        yield Rate(f"found: any of the family of {family}, corrected", float(found.mean()), n_draws, 0.0, 0.06)
    yield Rate(
        "flagged: failure rates where they are the same", float(macro["has_unequal_failures"].mean()), macro.height, 0, 0.05
    )
    yield from refused(draw, max(1, n_draws // 10))
    effect = float(macro["mde80"].mean())
    shift = optimize.brentq(lambda s: np.mean([true_mean(c + s) - true_mean(c) for c in CENTRES]) - effect, 0, 3)
    planted = pl.concat([pairs_of(draw, n, 1, shift) for n in chunks(n_draws)]).filter(pl.col("category") == "__macro__")
    yield Rate(f"found: a planted delta of mde80 = {effect:.3f}", float((planted["p"] < 0.05).mean()), n_draws, 0.77, 0.83)


def refused(draw: np.random.Generator, n_draws: int) -> Iterator[Rate]:
    """Two checkpoints of equal merit a draw; 30 % of the low scores are refused and 1 % of the others: of one, and of both."""
    for named, which in (("of one checkpoint", [1]), ("of both checkpoints", [0, 1])):
        found: list[bool] = []
        for n in chunks(n_draws):
            _, scores, _ = world(draw, n, 2, 1)
            share = np.full(scores[:, :, 0].shape, 0.01)
            share[:, which] = np.where(scores[:, which, 0] <= LOW, 0.3, 0.01)
            tables = tables_of(scores, draw.random(share.shape) < share)
            found += (
                tables[BENCHMARK_WIDE]
                .group_by("judge_model")
                .agg(pl.col("has_unequal_failures").any())["has_unequal_failures"]
                .to_list()
            )
        yield Rate(f"flagged: low scores {named} refused", float(np.mean(found)), len(found), 0.9, 1.0)


def ranks(n_draws: int, seed: int) -> Iterator[Rate]:
    """Five checkpoints a draw, a little apart: how often every rank range holds the true rank."""
    draw = np.random.default_rng(seed)
    whole: list[bool] = []
    for n in chunks(n_draws):
        _, scores, has_failed = world(draw, n, 5, 1, shift=0.15)
        wide = tables_of(scores, has_failed)[BENCHMARK_WIDE]
        true_rank = 5 - pl.col("checkpoint").str.tail(1).cast(pl.Int64)
        held = wide.with_columns(held=(pl.col("rank_low") <= true_rank) & (true_rank <= pl.col("rank_high")))
        whole += held.group_by("judge_model").agg(pl.col("held").all())["held"].to_list()
    yield Rate("held: the true rank, by the rank ranges of all five at once", float(np.mean(whole)), n_draws, 0.94, 1.0)


def pairs_of(draw: np.random.Generator, n_draws: int, n_dimensions: int, shift: float = 0.0) -> pl.DataFrame:
    _, scores, has_failed = world(draw, n_draws, 2, n_dimensions, shift)
    return tables_of(scores, has_failed)[COMPARISONS].filter(pl.col("comparison") == "predecessor")


def true_mean(centre: float) -> float:
    """The exact expected score of a category: the sum over k of P(score ≥ k)."""
    return float(sum(stats.norm.sf(k - 0.5, centre, _SD) for k in range(1, 11)))


def true_share(centre: float) -> float:
    return float(stats.norm.sf(AT_LEAST - 0.5, centre, _SD))


def expected_scores(levels: np.ndarray) -> np.ndarray:
    """The expected score of each prompt, given its level."""
    return np.sum([stats.norm.sf(k - 0.5, levels, np.hypot(IMAGE_SD, JUDGE_SD)) for k in range(1, 11)], axis=0)


def conditional(of_prompts: np.ndarray) -> np.ndarray:
    return np.bincount(CATEGORY_OF, of_prompts) / np.array(SIZES)


def naive_hits(scores: np.ndarray, has_failed: np.ndarray, truth: float) -> list[bool]:
    found = []
    for one, failed in zip(scores, has_failed, strict=True):
        is_mine = [np.flatnonzero(np.equal(CATEGORY_OF, c)) for c in range(6)]
        parts = [one[rows][~failed[rows]] for rows in is_mine]
        mean, variance = np.mean([p.mean() for p in parts]), sum(p.var(ddof=1) / len(p) for p in parts) / 36
        found.append(bool(abs(mean - truth) <= 1.96 * np.sqrt(variance)))
    return found


_SD = float(np.sqrt(PROMPT_SD**2 + STRENGTH_SD**2 + IMAGE_SD**2 + JUDGE_SD**2))

if __name__ == "__main__":
    sys.exit(main())
