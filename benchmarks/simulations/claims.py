"""Publish benchmarks in which nothing differs and read what their pages claim (`python -m benchmarks.simulations.claims`).

Five checkpoints of equal merit, six dimensions, the world of statistics.py. Tables come from the code of a run, words
from the page's own template: answers in sentences, ranks, colours. Claimed is a rank that not all share, a figure marked as the
best, a checkpoint that is better or worse than another. Exit code 1 where more than 6 % claim something.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Mapping

import numpy as np
import polars as pl

from benchmarks.simulations.drawn_scores import chunks, tables_of, world
from schemas.tables.published import BENCHMARK_LONG, COMPARISONS, FAILURES, STANDINGS
from schemas.tables.table import Table
from tasks.publish.leaderboard import answers_of
from tasks.publish.report.boards import boards, glance
from tasks.publish.report.environment import render
from tasks.publish.standings.pair_boards import pair_boards
from tasks.publish.standings.placed_cells import placed

N_CHECKPOINTS = 5
ALLOWED = 0.06
RUBRICS: Mapping[str, tuple[str, ...]] = {
    "six dimensions that all lead": tuple(f"aspect_{n}" for n in range(6)),
    "an overall score and five aspects": ("overall_score", *(f"aspect_{n}" for n in range(5))),
}
_SAYS = re.compile(r"\b(is the best|may each be the best|is better than|is worse than)\b")
_RANK = re.compile(r'data-col="rank_low,rank_high">([^<]*)<')
_MARKED = re.compile(r'class="first"|class="delta (?:up|down)"')


def claims(html: str) -> list[str]:
    """What the first screen says of a difference; nothing where every checkpoint shares every rank."""
    body = html.replace('A <b class="first">blue</b>', "")  # the legend
    unshared = [rank for rank in _RANK.findall(body) if rank != f"1–{N_CHECKPOINTS}"]
    return [*_SAYS.findall(body), *_MARKED.findall(body), *unshared]


def first_screen(tables: Mapping[Table, pl.DataFrame]) -> str:
    """The page's first screen of one publication, by the functions and the template of a report."""
    headlines = [board for board in boards(tables) if board.is_headline]
    return render(
        "first.html.j2", answers=answers_of(placed(tables)), headlines=headlines, glance=glance(headlines), newest=set(),
        pairs=pair_boards(tables),
        provenance={"rubrics": {}, "judges": [{}]}, benchmark="simulated",
    ).decode()  # fmt: skip


def publications(n: int, seed: int, dimensions: tuple[str, ...]) -> Iterator[dict[Table, pl.DataFrame]]:
    """Publications in which no checkpoint is better than another in any dimension."""
    draw = np.random.default_rng(seed)
    for n_draws in chunks(n):
        _, scores, has_failed = world(draw, n_draws, N_CHECKPOINTS, len(dimensions))
        found = tables_of(scores, np.zeros_like(has_failed), dimensions)  # with failures next to nothing would be claimed
        for judge in range(n_draws):
            yield {t: found[t].filter(judge_model=str(judge)) for t in (BENCHMARK_LONG, STANDINGS, FAILURES, COMPARISONS)}


def false_claims(n: int, seed: int, dimensions: tuple[str, ...]) -> dict[str, float]:
    """Share of publications whose first screen claims a difference, and whose tables hold one further down, exploratory."""
    on_first, further_down = 0, 0
    for tables in publications(n, seed, dimensions):
        on_first += bool(claims(first_screen(tables)))
        decided = tables[COMPARISONS].filter(pl.col("verdict").is_in(["higher", "lower"]))
        further_down += not decided.filter(~pl.col("is_primary")).is_empty()
    return {"first screen": on_first / n, "exploratory": further_down / n}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--publications", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    worst = 0.0
    for name, dimensions in RUBRICS.items():
        found = false_claims(arguments.publications, arguments.seed, dimensions)
        print(f"{name:<36}" + "".join(f"{where}: {share:6.1%}   " for where, share in found.items()), flush=True)
        worst = max(worst, found["first screen"])
    return int(worst > ALLOWED)


if __name__ == "__main__":
    sys.exit(main())
