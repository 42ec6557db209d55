"""False alarms of `salon gate`, and the drops it finds, by recorded scores (`python -m benchmarks.simulations.gate DATA`).

DATA holds viescore_t2i: 1,967 scores of GPT-4o for five generators. Each prompt's difference between two of them, less the pair's
mean, is what chance does to a prompt; a night draws prompts from them, with a drop or without one. Scores in points of 100, one
picture a prompt, two headline dimensions: the recorded differences of two generators vary more than those of two checkpoints do.
"""

import argparse
import json
from collections import defaultdict
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl

from schemas.tables.published import COMPARISONS, STANDINGS
from tasks.aggregate.comparisons.comparison_tests import t_test
from tasks.aggregate.gate import ALPHA, rulings
from tasks.aggregate.ruling import Outcome, summary

NIGHTS = 30
N_PROMPTS = (197, 553, 1000, 1600, 2400)
DROPS = (0.0, 3.0, 5.0)
_PAIR = (("model", "new"), ("model", "old"))


def recorded(data: Path) -> list[np.ndarray]:
    """The centred differences of each pair of generators in each aspect, in points of 100."""
    scores: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for line in (data / "viescore_t2i" / "gpt4o_judgements.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["score"] and all(isinstance(one, int | float) for one in row["score"]):
            scores[row["aspect"], row["generator"]][row["uid"]] = 10 * float(np.mean(row["score"]))
    found = []
    for (aspect, a), (other, b) in combinations(sorted(scores), 2):
        if aspect == other:
            shared = sorted(scores[aspect, a].keys() & scores[aspect, b].keys())
            deltas = np.array([scores[aspect, a][uid] - scores[aspect, b][uid] for uid in shared])
            found.append(deltas - deltas.mean())
    return found


def alarms(draw: np.random.Generator, deltas: list[np.ndarray], n_prompts: int, drop: float) -> bool:
    """Whether one night's gate says regression, where one of the two dimensions dropped."""
    rows = []
    for dimension, shift in (("d0", drop), ("d1", 0.0)):
        night = draw.choice(deltas[draw.integers(len(deltas))], n_prompts) - shift
        delta, se, df = float(night.mean()), float(night.std(ddof=1) / np.sqrt(n_prompts)), float(n_prompts - 1)
        test = {"test": "paired_t_clustered", "p": t_test(delta, se, df), "n_prompts_paired": n_prompts}
        rows.append({"dimension": dimension, "delta": delta, "se": se, "df": df, **test})
    cell = {"rubric_id": "r", "judge_model": "j", "category": "__macro__"}
    (model, new), (_, old) = _PAIR
    named = {"model_a": model, "checkpoint_a": new, "model_b": model, "checkpoint_b": old, "has_unequal_failures": False}
    comparisons = pl.DataFrame(
        [dict.fromkeys(COMPARISONS.columns) | cell | named | row for row in rows], infer_schema_length=None
    )
    headline = [dict.fromkeys(STANDINGS.columns) | cell | {"dimension": row["dimension"], "is_headline": True} for row in rows]
    ruled = rulings(comparisons, pl.DataFrame(headline, infer_schema_length=None), [_PAIR])
    return summary(ruled) is Outcome.REGRESSION


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--nights", type=int, default=6000, help="nights drawn for each line")
    arguments = parser.parse_args()
    deltas = recorded(arguments.data)
    print(
        f"alpha {ALPHA:g} two-sided; standard deviation of a prompt's difference {np.mean([d.std() for d in deltas]):.0f} points"
    )
    for n_prompts in N_PROMPTS:
        draw = np.random.default_rng(n_prompts)
        for drop in DROPS:
            n_nights = arguments.nights if drop == 0 else max(200, arguments.nights // 10)
            share = sum(alarms(draw, deltas, n_prompts, drop) for _ in range(n_nights)) / n_nights
            month = f", {1 - (1 - share) ** NIGHTS:.2%} of months of {NIGHTS} nights" if drop == 0 else ""
            print(f"{n_prompts:5} prompts, a drop of {drop:g} points: {share:.2%} of {n_nights} nights{month}", flush=True)


if __name__ == "__main__":
    main()
