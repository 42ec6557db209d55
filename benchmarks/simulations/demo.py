"""Repaint the demo many times and count how often the published 95 % intervals cover the expected score (`make simulate`).

Each repaint is drawn, judged by the very function the server calls, and reduced by the very function that makes the
published cells. Exit code 1 where the coverage of an overall score lies outside 91-98 %.
"""

import argparse
import base64
import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from functools import lru_cache
from multiprocessing import get_context

import polars as pl
from rich.console import Console
from rich.table import Table

from demo.drawing import draw_png
from demo.judge import judge
from demo.painter import PaintedScene, painted_scenes
from demo.truth import MACRO, expected
from demo.world import CATEGORIES, JUDGE, MODEL
from rubrics.loading import SHIPPED, load_rubric
from rubrics.model import Rubric
from rubrics.rendering import prompt_id, render, report_category
from rubrics.replies.read import parse_reply
from schemas.records import Unreadable
from schemas.statuses.cells import Total
from schemas.tables.stored import JUDGEMENTS, SCORES
from tasks.aggregate.tables import Settings, cells

ASKED = {"composition": "overall_score", "image_aspects": "overall_score", "alignment": "score"}
LOWEST, HIGHEST = 0.91, 0.98
Covered = dict[tuple[str, str, str], tuple[float, float, float]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repaints", type=int, default=200)
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.repaints)
    # Forking would copy the threads of polars half-alive.
    with ProcessPoolExecutor(arguments.processes, mp_context=get_context("spawn")) as pool:
        repaints = list(pool.map(repaint, seeds, chunksize=5))
    return report(repaints)


def repaint(seed: int) -> Covered:
    """(rubric, checkpoint, category) -> (estimate, low end, high end) of one painting's intervals."""
    judgements, scores = frames(seed)
    rubrics = {rubric_id: rubric(rubric_id) for rubric_id in ASKED}
    published = cells(
        judgements,
        scores,
        rubrics,
        Settings("demo", "0" * 64, "simulation", date(2026, 1, 1), min_coverage=1.0),
    )
    wanted = published.filter(pl.col("dimension") == pl.col("rubric_id").replace_strict(ASKED)).with_columns(
        category=pl.col("category").replace(Total.MACRO.value, MACRO)
    )
    rows = wanted.filter(pl.col("category").is_in([MACRO, *CATEGORIES])).iter_rows(named=True)
    return {
        (row["rubric_id"], row["checkpoint"], row["category"]): (row["estimate"], row["ci_low"], row["ci_high"]) for row in rows
    }


def frames(seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Judgements and scores of one painting, as the stages before `cells` hand them over."""
    judgements, scores = [], []
    for number, painted in enumerate(painted_scenes(seed)):
        png = draw_png(painted.scene)
        values = {"prompt": painted.prompt, "category": painted.category}
        for rubric_id in ASKED:
            asked = rubric(rubric_id)
            key = f"{rubric_id} {number}"
            judgements.append(
                {
                    "rubric_id": rubric_id, "rubric_version": asked.version, "judge_model": JUDGE, "model": MODEL,
                    "checkpoint": painted.checkpoint,
                    "category": report_category(asked, values), "prompt_id": prompt_id(asked, values, {}),
                    "sample_id": str(number), "repeat": 0, "occasion": "", "request_key": key, "status": "planned",
                }
            )  # fmt: skip
            scores += [{"request_key": key, "rubric_id": rubric_id} | row for row in read_scores(asked, painted, values, png)]
    planned, read = (
        pl.concat([table.empty(), pl.DataFrame(rows, infer_schema_length=None)], how="diagonal_relaxed")
        for table, rows in ((JUDGEMENTS, judgements), (SCORES, scores))
    )
    return planned, read


def read_scores(asked: Rubric, painted: PaintedScene, values: dict[str, str | None], png: bytes) -> Iterator[dict[str, object]]:
    """One row per dimension of the judge's reply. Raises RuntimeError where it cannot be read."""
    reply = judge(wire(render(asked, values, has_image=True).messages, png))
    read = parse_reply(asked, reply, {"category": painted.category})
    if isinstance(read, Unreadable):
        raise RuntimeError(f"{painted.prompt}: {read.reason}: {reply}")  # noqa: TRY004 - the reply is wrong, no type is
    for dimension, score in read.scores.items():
        yield {
            "dimension": dimension, "score": float(score), "status": "scored", "reason": None,
            "bound_low": float(score), "bound_high": float(score),
        }  # fmt: skip


def wire(messages: tuple[dict[str, object], ...], png: bytes) -> list[dict[str, object]]:
    """Rendered messages in the form the API sends them."""
    url = {"url": f"data:image/png;base64,{base64.b64encode(png).decode()}"}
    picture = {"type": "image_url", "image_url": url}
    sent = json.loads(json.dumps(messages))
    for message in sent:
        if isinstance(message["content"], list):
            message["content"] = [picture if part["type"] == "image" else part for part in message["content"]]
    return list(sent)


@lru_cache
def rubric(rubric_id: str) -> Rubric:
    return load_rubric(SHIPPED / rubric_id)


def report(repaints: list[Covered]) -> int:
    title = f"{len(repaints)} repaints: how often the 95 % interval covers the expected score"
    table = Table(title=title, box=None, padding=(0, 2, 0, 0), title_justify="left")
    for column in ("rubric", "checkpoint", "category"):
        table.add_column(column, no_wrap=True)
    for column in ("expected", "mean", "width", "covered"):
        table.add_column(column, justify="right", no_wrap=True)
    n_outside = 0
    for rubric_id, checkpoint, category in sorted(repaints[0], key=lambda key: (key[0], key[1], key[2] != MACRO, key[2])):
        truth = expected()[rubric_id, checkpoint, ASKED[rubric_id], category]
        found = [one[rubric_id, checkpoint, category] for one in repaints]
        with_interval = [(low, high) for _, low, high in found if low is not None]
        covered = sum(low <= truth <= high for low, high in with_interval) / len(repaints)
        is_outside = category == MACRO and not LOWEST <= covered <= HIGHEST
        n_outside += is_outside
        table.add_row(
            rubric_id,
            checkpoint,
            "all six" if category == MACRO else category,
            f"{truth:.3f}",
            f"{sum(mean for mean, _, _ in found) / len(found):.3f}",
            f"{sum(high - low for low, high in with_interval) / max(1, len(with_interval)):.2f}",
            f"[red]{covered:.1%}[/]" if is_outside else f"{covered:.1%}",
        )
    Console().print(table)
    if n_outside:
        Console(stderr=True).print(f"{n_outside} of the totals are covered outside {LOWEST:.0%}-{HIGHEST:.0%}.")
    return int(n_outside > 0)


if __name__ == "__main__":
    sys.exit(main())
