"""A published lake in which one mean over everything says nothing: two rubrics, two judges, pairs, anchors, a planted fault.

Each kind has one score alone, so that a mean over several kinds shows.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from schemas.tables.published import POSITION_BIAS, PREFERENCE_RATINGS, PREFERENCES
from schemas.tables.stored import JUDGEMENTS, PICTURES, SAMPLES, SCORES
from tasks.lake.reading import Lake
from tasks.lake.writing import stage
from tasks.publish.duckdb_file import write_duckdb
from tests.support.small_lake import IDS, SmallLake, digest, filled_row, put_cells, rows_of, table_of

NORTH = {"model": "lab/north", "checkpoint": "1|a"}
ALONE = {5.0: ("small", "eye"), 1.0: ("other", "eye"), 2.0: ("small", "ear")}
"""What each rubric's and judge's scores of single samples are: nothing else is the mean of one of them."""

_SECOND = {"second_sample_id": digest("second"), "second_model": "lab/south", "second_checkpoint": "2"}
_ANCHOR = {"model": "__anchors__", "checkpoint": "__anchors__", "occasion": "2026-11-03"}
_EXAM = {"model": "__exam__", "checkpoint": "__exam__", "occasion": "exam"}
_KINDS: list[tuple[float, Mapping[str, Any]]] = [
    *((score, {"rubric_id": rubric, "judge_model": judge} | NORTH) for score, (rubric, judge) in ALONE.items()),
    (0.5, {"rubric_id": "preference", "judge_model": "eye"} | NORTH | _SECOND),
    (9.0, {"rubric_id": "small", "judge_model": "eye"} | _ANCHOR),
    (8.0, {"rubric_id": "small", "judge_model": "eye"} | _EXAM),
]


def publish_mixed(lake_root: Path, small: SmallLake) -> Path:
    """Publish it as benchmark `demo`; its salon.duckdb."""
    lake = Lake(lake_root)
    staged = {table: stage(lake, table) for table in (SAMPLES, PICTURES, JUDGEMENTS, SCORES)}
    rows: dict[str, list[dict[str, Any]]] = {table.name: [] for table in staged}
    for kind in _rows():
        for name in rows:
            rows[name] += kind[name]
    for table, staging in staged.items():
        own = {tuple(row.get(name) for name in table.key): row for row in rows[table.name]}
        staging.write_part(0, table_of(table, list(own.values())))
        key = {"judgements": "plan_id", "scores": "reading_id"}.get(table.name, "dataset_id")
        staging.commit(IDS[key])
    pair = {
        "rubric_id": "preference",
        "judge_model": "eye",
        "dimension": "overall_score",
        "publication_id": digest("publication"),
    }
    sides = {"model_a": "lab/north", "checkpoint_a": "1|a", "model_b": "lab/south", "checkpoint_b": "2", "category": "__macro__"}
    won = filled_row(PREFERENCES, **pair, **sides, win_rate=0.75)
    rated = [
        filled_row(PREFERENCE_RATINGS, **pair, model=model, checkpoint=name, rating=points, rank_low=rank, state="rated")
        for model, name, points, rank in (("lab/south", "2", -191.0, 2), ("lab/north", "1|a", 0.0, 1))
    ]
    biased = filled_row(POSITION_BIAS, **pair, category="__macro__")
    rated += [row | {"judge_model": "__pooled__"} for row in rated]
    further = {POSITION_BIAS: table_of(POSITION_BIAS, [biased])}
    further |= {PREFERENCES: table_of(PREFERENCES, [won]), PREFERENCE_RATINGS: table_of(PREFERENCE_RATINGS, rated)}
    put_cells(lake_root, small.cells, benchmark="demo", further=further)
    made = write_duckdb(lake_root, "demo")
    assert made is not None
    return made


def _rows() -> Iterator[dict[str, list[dict[str, Any]]]]:
    """The small lake's rows, once for each kind, under request keys of its own; one score more is an item's."""
    for number, (score, what) in enumerate(_KINDS):
        judged = {name: what[name] for name in ("rubric_id", "judge_model")}
        for index in range(9):
            found = rows_of(index, what["model"], what["checkpoint"])
            for row in [*found["judgements"], *found["scores"]]:
                row["request_key"] = row["request_key"] and digest(f"{number} {row['request_key']}")
            for row in found["judgements"]:
                row.update(what)
            for row in found["scores"]:
                row.update(judged, score=score if row.get("score") is not None else None)
            found["scores"] += [row | {"item": "first", "score": 7.0} for row in found["scores"][:1]]
            yield found
