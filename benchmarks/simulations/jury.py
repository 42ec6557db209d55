"""Intervals of a jury's figures (tasks/aggregate/reliability): how many hold the truth, which is that of 400,000 prompts.

Three judges of levels 0, 0.3 and -0.2 of a standard deviation, who share so much of what they see as the intraclass correlation
of consistency says. They are the judges there are: the prompts alone are drawn. The table of docs/nights.md, and beside it scores
that are no whole numbers. Exit code 1 where a share is outside HELD.
"""

import argparse
import sys
from collections.abc import Callable

import numpy as np

from schemas.statuses.nights import JuryMetric
from schemas.statuses.people import AgreementMetric
from tasks.aggregate.agreement.metrics import krippendorff_alpha, pair_metric
from tasks.aggregate.intervals import Floats
from tasks.aggregate.reliability.jury import intraclass
from tasks.aggregate.reliability.jury_ends import intraclass_ends, rank_ends

HELD = (0.92, 0.98)  # of 1,000 draws the shares were 92.7 to 97.8 %
SHARED = (0.3, 0.7, 0.9)
LEVELS = np.array([0.0, 0.3, -0.2])
SCALES: dict[str, Callable[[Floats], Floats]] = {
    "as drawn": lambda seen: seen,
    "0-10": lambda seen: np.clip(np.round(5 + 2 * seen), 0, 10),
    "1-5, near the top": lambda seen: np.clip(np.round(4.3 + seen), 1, 5),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=20261129)
    arguments = parser.parse_args()
    rng, is_broken = np.random.default_rng(arguments.seed), False
    for scale in SCALES:
        for shared in SHARED:
            truth = figures(draw(rng, scale, shared, 400_000, 1))
            for n, n_pictures in ((20, 1), (60, 1), (200, 1), (60, 4)):
                held = measured(rng, truth, (scale, shared, n, n_pictures), arguments.draws)
                print(f"{scale:<18} {shared}  {n:>3} prompts of {n_pictures}  {held}", flush=True)
                is_broken |= "BROKEN" in held
    return int(is_broken)


def draw(rng: np.random.Generator, scale: str, shared: float, n: int, n_pictures: int) -> Floats:
    """Scores of (prompts x pictures, judges); of what judges share, half is the prompt's where it has several pictures."""
    of_prompt = np.repeat(rng.normal(size=n), n_pictures)
    own = rng.normal(size=n * n_pictures)
    item = of_prompt if n_pictures == 1 else (of_prompt + own) / np.sqrt(2)
    seen = np.sqrt(shared) * item[:, None] + np.sqrt(1 - shared) * rng.normal(size=(len(item), len(LEVELS))) + LEVELS
    return SCALES[scale](seen)


def figures(values: Floats) -> dict[str, float | None]:
    found: dict[str, float | None] = {kind.value: figure for kind, figure in intraclass(values).items()}
    found["alpha"] = krippendorff_alpha(values)
    found["spearman"] = pair_metric(AgreementMetric.SPEARMAN, values[:, 0], values[:, 1])
    return found


def measured(rng: np.random.Generator, truth: dict[str, float | None], world: tuple[str, float, int, int], n_draws: int) -> str:
    scale, shared, n, n_pictures = world
    clusters = np.repeat(np.arange(n), n_pictures)
    held = {name: [0, 0] for name in truth}
    width = dict.fromkeys(truth, 0.0)
    for _ in range(n_draws):
        values = draw(rng, scale, shared, n, n_pictures)
        made = figures(values)
        of_all = intraclass_ends({kind: made[kind.value] for kind in JuryMetric}, values, clusters)
        ends = {kind.value: found for kind, found in of_all.items()}
        ends["alpha"] = rank_ends(AgreementMetric.KRIPPENDORFF_ALPHA, made["alpha"], values, clusters)
        ends["spearman"] = rank_ends(AgreementMetric.SPEARMAN, made["spearman"], values[:, :2], clusters)
        for name, true in truth.items():
            found = ends[name]
            if found is not None and true is not None:
                held[name][0] += found[0] <= true <= found[1]
                held[name][1] += 1
                width[name] += found[1] - found[0]
    return "  ".join(
        f"{name} {within / max(there, 1):.1%}" + " BROKEN" * (there > 0 and not HELD[0] <= within / there <= HELD[1])
        + (f" of {there / n_draws:.0%}" if there < n_draws else "")
        + f" ({width[name] / max(there, 1):.2f})"
        for name, (within, there) in held.items() if not name.endswith("_mean")
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
