"""Measure what counts over all judgements (tables, the report's picks, its pages' choice) at sizes too large to plan and ask.

    python -m benchmarks.growth_counting --judgements 1000000 10000000

Judgements, replies and scores are made up by Polars, whole parts at once; no sample and no picture stands behind them. CPU
seconds and the peak of a process of its own. Every stage at smaller sizes: growth_stages.py.
"""

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from benchmarks.growth_parts.lake import CATEGORIES, IDS, N_CHECKPOINTS, N_IMAGES
from benchmarks.growth_parts.true_lake import JUDGE, opened
from benchmarks.growth_parts.usage import Usage, folder_or_temporary, measured_apart
from rubrics.loading import SHIPPED, find_rubrics
from schemas.tables.published import BENCHMARK_LONG
from schemas.tables.stored import JUDGEMENTS, REPLIES, SCORES
from tasks.lake.reading import Lake
from tasks.lake.writing import stage

ROWS_PER_PART, RUBRIC = 50_000, "alignment"
MADE = {**IDS, "reading_id": "c" * 64, "publication_id": "f" * 64}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judgements", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--folder", type=Path, help="where the lakes stand and stay; default: a temporary folder")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        measure(arguments.folder, *arguments.judgements)
        return 0
    with folder_or_temporary(arguments.folder) as folder:
        for n_judgements in arguments.judgements:
            lake = folder / f"counting-{n_judgements}"
            if not lake.is_dir():
                write_lake(Lake(lake), n_judgements)
            if not measured_apart("benchmarks.growth_counting", judgements=n_judgements, folder=lake, one=True):
                return 1
    return 0


def measure(folder: Path, n_judgements: int) -> None:
    """The tables, the gallery's picks, and which samples the report's pages hold."""
    from flows.run.tasks import compute_tables
    from tasks.publish.report import compare, picking

    run, usage = opened(folder, RUBRIC, ROWS_PER_PART, {**MADE, "code_version": "0" * 64}), Usage()
    usage.say("start")
    tables = compute_tables.work(run)
    usage.say("aggregate")
    picking.picked(run.lake, run.ids, tables[BENCHMARK_LONG], 192)
    usage.say("picks")
    compare.chosen(run.lake, run.ids, compare.MAX_SAMPLES)
    usage.say("pages")
    print(json.dumps({"judgements": n_judgements, **usage.told(n_judgements)}), flush=True)


def write_lake(lake: Lake, n_judgements: int) -> None:
    """A plan's judgements, a reply and a score to each, one in a hundred none."""
    (rubric,) = find_rubrics([RUBRIC], [SHIPPED]).values()
    stagings = {table: stage(lake, table) for table in (JUDGEMENTS, REPLIES, SCORES)}
    n_prompts = max(1, n_judgements // N_CHECKPOINTS // N_IMAGES)
    for part, start in enumerate(range(0, n_judgements, ROWS_PER_PART)):
        number, place = pl.col("number"), pl.col("number") // N_IMAGES
        prompt, is_scored = place % n_prompts, pl.col("number").hash(7) % 100 > 0
        rows = pl.DataFrame({"number": pl.int_range(start, min(start + ROWS_PER_PART, n_judgements), eager=True)}).select(
            request_key=_digest(number, 1), sample_id=_digest(number, 2), prompt_id=_digest(prompt, 3),
            category=(prompt % len(CATEGORIES)).replace_strict(dict(enumerate(CATEGORIES)), return_dtype=pl.String),
            checkpoint=pl.format("step-{}", (place // n_prompts).clip(0, N_CHECKPOINTS - 1)), model=pl.lit("north"),
            rubric_id=pl.lit(RUBRIC), rubric_version=pl.lit(rubric.version), judge_model=pl.lit(JUDGE), is_scored=is_scored,
            repeat=pl.lit(0, pl.Int64), occasion=pl.lit(""), status=pl.lit("planned"), ask_index=pl.lit(0, pl.Int64),
            dimension=pl.lit("score"), number=(number.hash(8) % 5 + 1).cast(pl.Float64),
        )  # fmt: skip
        said = rows.sort("request_key")
        replies = said.with_columns(
            status=pl.lit("answered"), answered_model=pl.lit(JUDGE), n_input_tokens=pl.lit(900, pl.Int64),
            n_attempts=pl.lit(1, pl.Int64),
            n_output_tokens=pl.lit(40, pl.Int64), cost_usd=pl.lit(0.001), latency_s=pl.col("number") / 3, origin=pl.lit("asked"),
            received_at=pl.lit(datetime(2026, 1, 1, tzinfo=UTC)),
        )  # fmt: skip
        scores = said.with_columns(
            score=pl.when("is_scored").then("number"), reason=pl.when(~pl.col("is_scored")).then(pl.lit("refusal")),
            status=pl.when("is_scored").then(pl.lit("scored")).otherwise(pl.lit("unreadable")),
            bound_low=pl.when("is_scored").then("number").otherwise(1.0),
            bound_high=pl.when("is_scored").then("number").otherwise(5.0),
        )  # fmt: skip
        for table, frame in ((JUDGEMENTS, rows), (REPLIES, replies), (SCORES, scores)):
            stagings[table].write_part(part, pl.concat([table.empty(), frame], how="diagonal_relaxed"))
    keys = {JUDGEMENTS: "plan_id", REPLIES: "snapshot_id", SCORES: "reading_id"}
    for table, staging in stagings.items():
        staging.commit(MADE[keys[table]])


def _digest(number: pl.Expr, salt: int) -> pl.Expr:
    """64 digits that look drawn, the same for the same number."""
    pieces = (number.hash(4 * salt + nth).cast(pl.String).str.zfill(20).str.tail(16) for nth in range(4))
    return pl.concat_str(list(pieces))


if __name__ == "__main__":
    sys.exit(main())
