"""Samples that ratings are of, and tables of ratings as files. No tests here."""

import json
from pathlib import Path
from typing import Any

import polars as pl

from schemas.benchmark.ratings import Ratings
from tasks.ingest.rating_matching import match_ratings
from tasks.ingest.ratings import read_ratings

SAMPLES = pl.DataFrame(
    [
        {
            "sample_id": d * 64, "item_id": item, "source_key": f"s.jsonl#{d}", "model": model, "checkpoint": "1", "seed": seed,
            "image": item and f"birds/{model}/{item}.png", "place": item and f"all/birds/{model}/{item}.png",
        }
        for d, item, model, seed in (
            ("a", "one", "sd", 0), ("b", "one", "flux", 0), ("c", "two", "sd", None), ("d", None, "sd", 7)
        )
    ] + [
        {
            "sample_id": d * 64, "item_id": None, "source_key": f"{checkpoint}/000/0.png", "model": "sd", "seed": None,
            "checkpoint": checkpoint, "image": "000/0.png", "place": f"out/{checkpoint}/000/0.png",
        }
        for d, checkpoint in (("e", "10"), ("f", "20"))
    ]
)  # fmt: skip
LONG = [
    {"item_id": "one", "model": "sd", "rater": "ann", "dimension": "look", "rating": 4},
    {"item_id": "one", "model": "flux", "rater": "ann", "dimension": "look", "rating": 5},
    {"item_id": "two", "model": "sd", "rater": "bob", "dimension": "look", "rating": None},
]


def taken(folder: Path, rows: Any, name: str = "people.jsonl", **how: Any) -> pl.DataFrame:
    """Rows, as a file of some form, and [ratings] to the `ratings` table."""
    path = folder / name
    if isinstance(rows, str):
        path.write_text(rows, encoding="utf-8")
    elif path.suffix == ".parquet":
        pl.DataFrame(rows).write_parquet(path)
    elif path.suffix == ".csv":
        pl.DataFrame(rows).write_csv(path)
    elif path.suffix == ".tsv":
        pl.DataFrame(rows).write_csv(path, separator="\t")
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return match_ratings(read_ratings([path], Ratings.model_validate(how)), SAMPLES)
