"""Tournaments with known truth, and how often the published tables hold it (`python -m benchmarks.simulations.pairs`).

A world: 5-40 checkpoints, 50-500 prompts in one or six categories (in half of these from five prompts to nearly all), one or two
pictures each; strengths that differ by prompt and category; ties in 10-30 % of verdicts between equals; 10-30 % of pairs in which
the judge goes by position alone; a part of the pairs was never asked, up to 5 % have no verdict. In a third of the worlds no
checkpoint differs from the baseline, in the others about half do not. Tables come from the code of a run. Exit code 1 where a
bound of BOUNDS is broken.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

import numpy as np
import polars as pl
from scipy.special import expit, logit

from schemas.benchmark.file import Statistics
from schemas.statuses.cells import ComparisonVerdict, Total
from schemas.tables.published import POSITION_BIAS, PREFERENCE_RATINGS, PREFERENCES
from tasks.aggregate.comparisons.families import ALPHA
from tasks.aggregate.preferences.adaptive import next_comparisons
from tasks.aggregate.preferences.davidson import Tallied, fitted
from tasks.aggregate.preferences.evidence import Plan
from tasks.aggregate.preferences.prompts import MIDDLE
from tasks.aggregate.preferences.ratings import POINTS
from tasks.aggregate.preferences.tables import preference_tables
from tasks.aggregate.tables import Settings

BASELINE = 0
N_LOOKS = 20
BOUNDS = {
    "win rates held": (0.935, 0.965), "ratings held": (0.935, 0.965), "false better": (0.0, 0.06), "as round robin": (0.98, 1.0),
    "calls": (0.0, 0.5), "looks that were false": (0.0, 0.05), "position held": (0.935, 0.97),
}  # fmt: skip
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(41)


@dataclass(frozen=True)
class World:
    """One tournament: its verdicts, and what a perfect count of infinitely many prompts would say."""

    verdicts: pl.DataFrame
    n_checkpoints: int
    n_prompts: dict[str | None, int]
    win: np.ndarray  # (n, n) share that the row wins of the column
    ratings: np.ndarray  # (n,) points above the baseline
    first_wins: float
    order: np.ndarray  # prompts in the order in which a night takes them
    is_uneven: bool  # whether the categories are very unequal


def named(checkpoint: int) -> str:
    return f"{checkpoint:03d}"


RUN = Settings("w", "d" * 64, "f" * 64, date(2026, 1, 1), 0.8, Statistics(), f"m/{named(BASELINE)}")


def world(draw: np.random.Generator, n_checkpoints: int, n_prompts: int, *, is_null: bool) -> World:
    """A tournament in which every two met, on a part of the prompts."""
    n_categories, n_pictures = int(draw.choice([1, 6])), int(draw.choice([1, 2]))
    is_uneven = n_categories > 1 and bool(draw.random() < 0.5)
    shares, fewest = draw.dirichlet(np.full(n_categories, 0.5 if is_uneven else 20.0)), np.arange(n_categories).repeat(5)
    category = np.sort(np.concatenate([fewest, draw.choice(n_categories, n_prompts - len(fewest), p=shares)]))
    strengths = np.where(draw.random(n_checkpoints) < 0.5, 0.0, draw.normal(0, 0.7, n_checkpoints)) * (not is_null)
    strengths[BASELINE] = 0
    in_category = strengths[:, None] + np.where(strengths[:, None] != 0, draw.normal(0, 0.2, (n_checkpoints, n_categories)), 0)
    spread, position, tie = draw.uniform(0.2, 1.0), draw.uniform(0.1, 0.3), draw.uniform(0.1, 0.3)
    step, favours_first = logit((1 + tie) / 2), draw.uniform(0.5, 1)  # two equals without spread tie in this share
    one, other = np.triu_indices(n_checkpoints, 1)
    own = in_category[:, category].T + draw.normal(0, spread, (n_prompts, n_checkpoints))
    asked = draw.random((n_prompts, len(one), n_pictures)) < draw.uniform(0.3, 1)
    prompt, pair, _ = np.nonzero(asked)
    seen = own[prompt, one[pair]] - own[prompt, other[pair]] + draw.logistic(size=len(prompt))
    value = np.where(seen > step, 1.0, np.where(seen < -step, 0.0, 0.5))
    by_place, to_first = draw.random(len(prompt)) < position, draw.random(len(prompt)) < favours_first
    first, second = np.where(by_place, to_first * 1.0, value), np.where(by_place, 1.0 - to_first, value)
    lost = draw.random((2, len(prompt))) < draw.uniform(0, 0.025)
    win, tied = _expected(in_category, spread, step, position)
    return World(
        answered(category, prompt, one[pair], other[pair], np.where(lost[0], np.nan, first), np.where(lost[1], np.nan, second)),
        n_checkpoints, {f"c{c}": int((category == c).sum()) for c in range(n_categories)}, win + tied / 2,
        _strengths(win, tied), 0.5 + position * (favours_first - 0.5), draw.permutation(n_prompts), is_uneven,
    )  # fmt: skip


def _expected(in_category: np.ndarray, spread: float, step: float, position: float) -> tuple[np.ndarray, np.ndarray]:
    """Shares of wins and ties (orders that disagree among them) of every two, categories weighing the same; (n, n) each."""
    apart = (in_category[:, None] - in_category[None, :])[..., None] + np.sqrt(2) * spread * _NODES
    weights = _WEIGHTS / _WEIGHTS.sum()
    win, loss = ((expit(sign * apart - step) @ weights).mean(axis=2) * (1 - position) for sign in (1, -1))
    return win, 1 - win - loss


def _strengths(win: np.ndarray, tied: np.ndarray) -> np.ndarray:
    one, other = np.triu_indices(len(win), 1)
    shares, nothing = (win[one, other], tied[one, other], win[other, one]), np.zeros(len(one), int)
    found = fitted(Tallied(one, other, nothing, nothing, *shares), has_ties=True)
    return (found.strengths - found.strengths[BASELINE]) * POINTS


def answered(category, prompt, one, other, first, second) -> pl.DataFrame:
    names = {"p": [f"{p:04d}" for p in range(len(category))], "c": [f"c{c}" for c in category]}
    checkpoints = pl.Series([named(n) for n in range(int(other.max(initial=0)) + 1)])
    frame = pl.DataFrame({
        "rubric_id": "pairs", "rubric_version": "1", "judge_model": "eye", "dimension": "better",
        "prompt_id": pl.Series(names["p"])[prompt],
        "category": pl.Series(names["c"])[prompt], "model_a": "m", "checkpoint_a": checkpoints[one], "model_b": "m",
        "checkpoint_b": checkpoints[other], "first": first, "second": second, "prompt": prompt,
    }).with_columns(pl.col("first", "second").fill_nan(None), sample_a=pl.row_index(), sample_b=pl.row_index())  # fmt: skip
    is_split = pl.col("first") != pl.col("second")
    words = pl.col("first").replace_strict({1.0: "win_a", 0.5: "tie", 0.0: "win_b"}, default=None, return_dtype=pl.String)
    unread = pl.col("first").is_null() | pl.col("second").is_null()
    return frame.with_columns(
        outcome=pl.when(unread).then(pl.lit("unjudged")).when(is_split).then(pl.lit("order_dependent")).otherwise(words)
    )


def counted(found: World) -> Counter[str]:
    """What the tables of one world hold, miss and claim; and what an adaptive night decides of the newest checkpoint."""
    tables, count = preference_tables(found.verdicts, RUN), Counter[str]()
    macro = tables[PREFERENCES].filter(category=Total.MACRO.value)
    ends = [macro[f"checkpoint_{end}"].cast(pl.Int64).to_numpy() for end in "ab"]
    truth = found.win[ends[0], ends[1]]
    held = (macro["ci_low"].to_numpy() <= truth + 1e-9) & (truth <= macro["ci_high"].to_numpy() + 1e-9)
    has_interval = macro["ci_low"].is_not_null().to_numpy()  # a category with one judged prompt leaves a total without
    count["totals"], count["win rates"], count["win rates held"] = len(held), int(has_interval.sum()), int(held.sum())
    better = (
        macro.filter(pl.col("is_to_baseline"), verdict=ComparisonVerdict.HIGHER.value)["checkpoint_a"].cast(pl.Int64).to_numpy()
    )
    count["worlds"], count["false better"] = 1, int((found.win[better, BASELINE] <= 0.5 + 1e-9).any())
    count["false claim of any two"] = int(any(map(_is_false, macro["verdict"], truth)))
    rated = tables[PREFERENCE_RATINGS].filter(pl.col("checkpoint") != named(BASELINE), pl.col("ci_low").is_not_null())
    real = found.ratings[rated["checkpoint"].cast(pl.Int64).to_numpy()]
    count["ratings"] = rated.height
    count["ratings held"] = int(((rated["ci_low"].to_numpy() <= real) & (real <= rated["ci_high"].to_numpy())).sum())
    count["all ranks held"] = int(_ranks_held(tables[PREFERENCE_RATINGS], found.ratings))
    bias = tables[POSITION_BIAS].row(by_predicate=pl.col("category") == Total.MICRO.value, named=True)
    count["positions"], count["position held"] = 1, int(bias["first_wins_low"] <= found.first_wins <= bias["first_wins_high"])
    count.update(adaptive_night(found, macro))
    return count


def _ranks_held(ratings: pl.DataFrame, strengths: np.ndarray) -> bool:
    """Whether every range holds a rank that its checkpoint truly has, equals sharing theirs."""
    real = strengths[ratings["checkpoint"].cast(pl.Int64).to_numpy()]
    best, worst = 1 + (real[None, :] > real[:, None] + 1e-6).sum(axis=1), (real[None, :] >= real[:, None] - 1e-6).sum(axis=1)
    return bool(((ratings["rank_low"].to_numpy() <= worst) & (ratings["rank_high"].to_numpy() >= best)).all())


def adaptive_night(found: World, macro: pl.DataFrame) -> Counter[str]:
    """The newest checkpoint against baseline and predecessor, looked at after each twentieth of the prompts."""
    newest = found.n_checkpoints - 1
    targets = [(("m", named(newest)), ("m", named(other))) for other in dict.fromkeys((BASELINE, newest - 1))]
    whole = [_decided(macro, one, ALPHA / len(targets)) for one in targets]
    night = found.verdicts.filter(pl.col("checkpoint_a").is_in([b[1] for _, b in targets]), checkpoint_b=named(newest))
    so_far, open_targets, count = night.clear(), list(targets), Counter[str](nights=1)
    for look, batch in enumerate(np.array_split(found.order, N_LOOKS), 1):
        still_open = pl.col("checkpoint_a").is_in([b[1] for _, b in open_targets])
        so_far = pl.concat([so_far, night.filter(pl.col("prompt").is_in(batch.tolist()), still_open)])
        plan = Plan(dict(found.n_prompts), open_targets if look == N_LOOKS else ())
        watched = next_comparisons(so_far, targets, plan)
        count["looks that were false"] |= int(
            any(_is_false(one.verdict, found.win[newest, int(one.pair[1][1])]) for one in watched)
        )
        open_targets = [one.pair for one in watched if not one.is_decided]
        if not open_targets:
            break
    verdicts = [one.verdict for one in watched]
    count["as round robin"] = int(verdicts == whole)
    count["called otherwise"] = int(
        any(one != full and "open" not in (one, full) for one, full in zip(verdicts, whole, strict=True))
    )
    count["calls"], count["calls of a round robin"] = so_far.height, found.verdicts.height
    count["calls of the two whole"] = night.height
    if "open" not in whole:
        count["the same, both decided"], count["calls of the two whole, both decided"] = so_far.height, night.height
    return count


def _decided(macro: pl.DataFrame, target: tuple[tuple[str, str], tuple[str, str]], alpha: float) -> ComparisonVerdict:
    """What all prompts say of a target at this level, by the row of the published table."""
    row = macro.row(by_predicate=(pl.col("checkpoint_a") == target[0][1]) & (pl.col("checkpoint_b") == target[1][1]), named=True)
    if row["p"] is None or row["p"] >= alpha:
        return ComparisonVerdict.OPEN
    return ComparisonVerdict.HIGHER if row["win_rate"] > MIDDLE else ComparisonVerdict.LOWER


def _is_false(verdict: str, truth: float) -> bool:
    return (verdict == ComparisonVerdict.HIGHER and truth <= 0.5 + 1e-9) or (
        verdict == ComparisonVerdict.LOWER and truth >= 0.5 - 1e-9
    )


def worlds(n: int, seed: int, checkpoints: tuple[int, int] = (5, 40), prompts: tuple[int, int] = (50, 500)) -> Iterator[World]:
    """Worlds of every size, small ones as often as large ones."""
    draw = np.random.default_rng(seed)
    for number in range(n):
        n_checkpoints, n_prompts = (round(np.exp(draw.uniform(*np.log(ends)))) for ends in (checkpoints, prompts))
        yield world(draw, n_checkpoints, n_prompts, is_null=number % 3 == 0)


def rates(count: Counter[str]) -> dict[str, float]:
    """What is published of a simulation, by the names of BOUNDS and some beside them."""
    per = {
        "win rates held": "win rates", "ratings held": "ratings", "position held": "positions", "false better": "worlds",
        "false claim of any two": "worlds", "all ranks held": "worlds", "as round robin": "nights", "called otherwise": "nights",
        "looks that were false": "nights", "calls": "calls of a round robin", "calls of the two pairs": "calls of the two whole",
        "the same, both decided": "calls of the two whole, both decided",
    }  # fmt: skip
    count["calls of the two pairs"] = count["calls"]
    found = {name: count[name] / max(1, count[of]) for name, of in per.items()}
    return found | {"totals without interval": 1 - count["win rates"] / count["totals"]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=20261123)
    arguments = parser.parse_args()
    total, null, uneven = Counter[str](), Counter[str](), Counter[str]()
    started = time.process_time()
    for number, found in enumerate(worlds(arguments.worlds, arguments.seed)):
        count = counted(found)
        for counts, is_of in ((total, True), (null, number % 3 == 0), (uneven, found.is_uneven)):
            counts.update(count if is_of else {})
        if number % 100 == 99 or number + 1 == arguments.worlds:
            print(f"{number + 1} worlds, {time.process_time() - started:.0f} CPU s", flush=True)
            is_broken = reported(rates(total), rates(null), rates(uneven))
    return int(is_broken)


def reported(found: dict[str, float], of_null: dict[str, float], of_uneven: dict[str, float]) -> bool:
    """Prints every rate, those of worlds where nothing differs and of unequal categories beside it; whether a bound is broken."""
    broken = [name for name, (low, high) in BOUNDS.items() if not low <= found[name] <= high]
    print(f"{'':<26} {'all':>7} {'nothing differs':>16} {'unequal':>8}")
    for name, rate in found.items():
        print(f"{name:<26} {rate:7.2%} {of_null[name]:16.2%} {of_uneven[name]:8.2%}   {'BROKEN' * (name in broken)}")
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
