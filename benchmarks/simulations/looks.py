"""Worlds whose truth is known, asked look by look through the code that stops and publishes (docs/statistics.md, Looks).

Three checkpoints, the first the baseline, 120 prompts of four categories, a picture each; a judge a world. Counted are the share
of the judgements that was asked, differences found, false ones, and the intervals that hold the truth. Exit code 1 where a rate
is out of its bounds.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from benchmarks.simulations.drawn_scores import frames_of, rubric, settings
from benchmarks.simulations.statistics import Rate
from schemas.benchmark.file import Statistics
from schemas.benchmark.rounds import Stopping
from schemas.statuses.rows import ScoreStatus
from schemas.tables.published import BENCHMARK_LONG, COMPARISONS
from schemas.tables.stored import REPLIES
from tasks.aggregate.comparisons.families import need_no_more
from tasks.aggregate.looks import planned_prompts
from tasks.aggregate.tables import aggregated, headline_rows
from tasks.plan.rows import first_look

N_CATEGORIES, N_PROMPTS, N_CHECKPOINTS = 4, 120, 3
LOOKS = (0.25, 0.5, 0.75, 1.0)
MIDDLE, PROMPT_SD, IMAGE_SD, N_COMPARED = 5.0, 1.0, 1.0, 3
EFFECT = (2.394 + 0.842) * np.sqrt(2 * IMAGE_SD**2 / N_PROMPTS)  # found in 80 %, all prompts asked, three corrected together
WORLDS_AT_ONCE = 50


@dataclass(frozen=True)
class Found:
    """Of some worlds: comparisons with the baseline by world and checkpoint, macro means, and the share that was asked."""

    compared: pl.DataFrame
    means: pl.DataFrame
    share_asked: list[float]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=20261123)
    arguments = parser.parse_args()
    n_outside = 0
    for rate in all_rates(arguments.worlds, arguments.seed):
        verdict = "" if rate.is_within(2.0) else "  OUT OF BOUNDS"
        print(f"{rate.name:<58} {rate.rate:7.2%}  ({rate.low:.1%} to {rate.high:.1%}, {rate.n:,}){verdict}", flush=True)
        n_outside += not rate.is_within(2.0)
    return int(n_outside > 0)


def all_rates(n_worlds: int, seed: int) -> Iterator[Rate]:
    """Nothing changed; the effect that all prompts find in 80 %; twice that."""
    for number, times in enumerate((0, 1, 2)):
        shift = times * EFFECT
        found = asked_in_looks(n_worlds, seed + number, shift, LOOKS)
        whole = asked_in_looks(n_worlds, seed + number, shift, ())
        yield from _rates(f"{times} x the effect", found, whole, shift)


def _rates(name: str, found: Found, whole: Found, shift: float) -> Iterator[Rate]:
    n = len(found.share_asked)
    is_found = pl.col("verdict").is_in(["higher", "lower"])
    yield Rate(f"{name}: asked", float(np.mean(found.share_asked)), n)
    for how, one in (("in looks", found), ("all at once", whole)):
        if shift:
            yield Rate(f"{name}: found, {how}", float(one.compared.select(is_found.mean()).item()), one.compared.height)
        else:
            false = one.compared.group_by("judge_model").agg(any=is_found.any())["any"]
            yield Rate(f"{name}: any false difference in a world, {how}", float(false.mean()), n, 0.0, 0.05)
    truth = pl.lit(shift)
    held = found.compared.select(((pl.col("ci_low") <= truth) & (truth <= pl.col("ci_high"))).mean()).item()
    yield Rate(f"{name}: held, intervals of differences", float(held), found.compared.height, 0.95, 1.0)
    true = MIDDLE + pl.when(pl.col("checkpoint") == "0").then(0.0).otherwise(shift)
    held = found.means.select(((pl.col("ci_low") <= true) & (true <= pl.col("ci_high"))).mean()).item()
    yield Rate(f"{name}: held, intervals of means", float(held), found.means.height, 0.95, 1.0)
    half = 1.96 * pl.col("se")
    naive = found.compared.select(((pl.col("delta") - half <= truth) & (truth <= pl.col("delta") + half)).mean()).item()
    yield Rate(f"{name}: held, differences as if nobody had looked", float(naive), found.compared.height)


def asked_in_looks(n_worlds: int, seed: int, shift: float, looks: tuple[float, ...]) -> Found:
    """Worlds asked look by look; without looks all at once. All but the baseline are better by `shift`."""
    draw, parts = np.random.default_rng(seed), []
    for start in range(0, n_worlds, WORLDS_AT_ONCE):
        parts.append(_asked(draw, min(WORLDS_AT_ONCE, n_worlds - start), shift, looks))
        numbered = pl.format("{} {}", pl.lit(start), "judge_model").alias("judge_model")
        parts[-1] = Found(*(one.with_columns(numbered) for one in (parts[-1].compared, parts[-1].means)), parts[-1].share_asked)
    shares = [share for part in parts for share in part.share_asked]
    return Found(pl.concat([one.compared for one in parts]), pl.concat([one.means for one in parts]), shares)


def _asked(draw: np.random.Generator, n_worlds: int, shift: float, looks: tuple[float, ...]) -> Found:
    scores = _scores(draw, n_worlds, shift)
    category = np.array([f"category {n}" for n in range(N_CATEGORIES)])[np.arange(N_PROMPTS) % N_CATEGORIES]
    salt = int(draw.integers(1 << 32))  # prompts are drawn by their names: each lot of worlds has names of its own
    of_prompt = np.array([first_look(f"{salt} {n}", looks) for n in range(N_PROMPTS)]) if looks else None
    judgements, read = frames_of(scores, np.zeros((n_worlds, N_CHECKPOINTS, N_PROMPTS, 1), bool), category, ("d0",), of_prompt)
    stopping = Stopping(looks=list(looks), decide=["baseline"])
    run = settings(Statistics(family="table", stopping=stopping))
    by = rubric(("d0",))
    last = pl.DataFrame(
        [(str(w), str(c), len(looks) or 1) for w in range(n_worlds) for c in range(N_CHECKPOINTS)],
        schema={"judge_model": pl.String, "checkpoint": pl.String, "last": pl.Int64}, orient="row",
    )  # fmt: skip
    planned = planned_prompts(judgements.lazy(), by)
    for look in range(1, len(looks)):
        now = judgements.join(last, on=["judge_model", "checkpoint"]).filter(
            pl.col("first_look") <= pl.min_horizontal("last", look)
        )
        rows = headline_rows(now.lazy(), read.join(now, on="request_key", how="semi").lazy(), by, run, planned)
        closed = []
        for world in range(n_worlds):
            mine = [row for row in rows if row["judge_model"] == str(world)]
            closed += [
                (str(world), one.rpartition("/")[2])
                for one in need_no_more(mine, "simulated", run.statistics, N_COMPARED, lambda _: False)
            ]
        ended = pl.DataFrame(closed, schema=["judge_model", "checkpoint"], schema_overrides=dict(last.schema), orient="row")
        ended = ended.with_columns(ended=pl.lit(look, pl.Int64))
        last = last.join(ended, on=["judge_model", "checkpoint"], how="left", maintain_order="left").select(
            "judge_model", "checkpoint", last=pl.min_horizontal("last", "ended")
        )
    asked = judgements.join(last, on=["judge_model", "checkpoint"]).select(
        "request_key", "judge_model", is_asked=pl.col("first_look").fill_null(1) <= pl.col("last")
    )
    status = pl.when("is_asked").then("status").otherwise(pl.lit(ScoreStatus.NO_REPLY.value))
    reason = pl.when("is_asked").then("reason").otherwise(pl.lit("not_asked"))
    told = read.join(asked, on="request_key").with_columns(status=status, reason=reason)
    told = told.with_columns(score=pl.when("is_asked").then("score"))
    tables = aggregated(judgements.lazy(), told.lazy(), REPLIES.empty().lazy(), {by.id: by}, run)
    macro = pl.col("category") == "__macro__"
    compared = tables[COMPARISONS].filter(macro, pl.col("comparison") == "baseline")
    means = tables[BENCHMARK_LONG].filter(macro, pl.col("estimand") == "prompts_like_these")
    return Found(compared, means, asked.group_by("judge_model").agg(pl.col("is_asked").mean())["is_asked"].to_list())


def _scores(draw: np.random.Generator, n_worlds: int, shift: float) -> np.ndarray:
    """(world, checkpoint, dimension, prompt, picture)."""
    level = MIDDLE + draw.normal(0, PROMPT_SD, (n_worlds, 1, 1, N_PROMPTS, 1))
    level = level + shift * (np.arange(N_CHECKPOINTS) > 0)[:, None, None, None]
    scores: np.ndarray = level + draw.normal(0, IMAGE_SD, (n_worlds, N_CHECKPOINTS, 1, N_PROMPTS, 1))
    return np.clip(scores, 0, 10)


if __name__ == "__main__":
    sys.exit(main())
