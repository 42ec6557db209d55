"""Fixtures of a small published world: a lake of a few hand-written judgements, its cells, and publications of them."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rubrics.model import Dimension, ReplyFormat, Rubric, Variant
from schemas.metrics import means_for_prompts_like_these
from schemas.tables.published import BENCHMARK_LONG, FAILURES
from schemas.tables.stored import CHECKS, JUDGEMENTS, PICTURES, QUARANTINE, REPLIES, REQUESTS, SAMPLES, SCORES
from schemas.tables.table import Table
from tasks.aggregate.tables import Settings, aggregated
from tasks.lake.reading import Lake
from tasks.lake.writing import stage
from tasks.publish.folders import PublicationName, Published
from tasks.publish.publication import Draft, publish
from tasks.publish.standings.placed_cells import placed

RUN_DATE = date(2026, 11, 3)
# (category, prompt, sample, repeat, what became of it): a number, a reason, or "-" for a sample that could not be used
JUDGED: list[tuple[str, str, str, int, Any]] = [
    ("colors", "a red cube", "a", 0, 8.0), ("colors", "a red cube", "b", 0, 6.0), ("colors", "a blue cone", "c", 0, 4.0),
    ("counting", "two cubes", "d", 0, 9.0), ("counting", "two cubes", "d", 1, 10.0), ("counting", "two cubes", "e", 0, 6.5),
    ("counting", "five cones", "f", 0, 5.0), ("counting", "five cones", "g", 0, "refusal"),
    ("counting", "five cones", "h", 0, "-"),
]  # fmt: skip


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


IDS = {f"{name}_id": digest(name) for name in ("dataset", "plan", "snapshot", "reading")}


@dataclass(frozen=True)
class SmallLake:
    lake: Lake
    rubric: Rubric
    cells: pl.DataFrame


def table_of(table: Table, rows: list[dict[str, Any]]) -> pl.DataFrame:
    schema = table.empty().schema
    return pl.DataFrame(rows, schema=schema)


def filled_row(table: Table, **values: object) -> dict[str, object]:
    """A row with something of its type in every column that may not be null."""
    moment = datetime(RUN_DATE.year, RUN_DATE.month, RUN_DATE.day, tzinfo=UTC)
    plain = {"date32[day]": RUN_DATE, "int64": 0, "double": 0.5, "bool": False, "timestamp[us, tz=UTC]": moment}
    made: dict[str, object] = {}
    for of in table.fields:
        text = next(iter(of.values)) if of.values else "x" * (of.length or 1)
        made[of.name] = None if of.is_nullable else plain.get(str(of.arrow_type), text)
    return made | values


def rubric() -> Rubric:
    def variant(name: str) -> Variant:
        keys = ("overall_score", f"{name}_accuracy")
        return Variant(name, "Look.", "look.txt", tuple(Dimension(key, (key,), 0, 10) for key in keys))

    return Rubric(
        id="small", version="1", title="Small", source="", folder=Path(), digest=digest("rubric"), reply_format=ReplyFormat.JSON,
        needs=("prompt",), may_be_null=frozenset(), unit=("prompt",), report_by="category", dispatch="category", value_maps={},
        messages=(), variants={name: variant(name) for name in ("colors", "counting")}, rules=(), n_output_tokens_expected=9,
    )  # fmt: skip


def rows_of(index: int, model: str = "lab/north", checkpoint: str = "1|a") -> dict[str, list[dict[str, Any]]]:
    category, prompt, sample, repeat, became = JUDGED[index]
    key = None if became == "-" else digest(f"request {model} {sample} {repeat}")
    common = {"rubric_id": "small", "rubric_version": "1", "judge_model": "eye", "request_key": key}
    sample_id = digest(f"{model} {sample}")
    unusable = became == "-"
    found = {
        "samples": [{
            "sample_id": sample_id, "source": "set", "source_key": f"{sample}.png", "model": model, "checkpoint": checkpoint,
            "prompt": prompt, "category": category, "image_sha256": digest(sample),
            "status": "broken_image" if unusable else "ok",
        }] if repeat == 0 else [],
        "judgements": [common | {
            "sample_id": sample_id, "repeat": repeat, "occasion": "", "model": model, "checkpoint": checkpoint,
            "category": category, "prompt_id": digest(prompt), "status": "unusable_sample" if unusable else "planned",
            "reason": "broken_image" if unusable else None,
        }],
        "pictures": [filled_row(PICTURES, image_sha256=digest(sample), image={"bytes": b"png", "path": f"{sample}.png"})]
        if repeat == 0 and not unusable else [],
        "requests": [], "replies": [], "scores": [],
    }  # fmt: skip
    if not unusable:
        _add_reply(found, common, index)
    return found


def _add_reply(found: dict[str, Any], common: dict[str, Any], index: int) -> None:
    category, prompt, _, repeat, became = JUDGED[index]
    is_read = not isinstance(became, str)
    messages = [{"role": "system", "content": "Look."}, {"role": "user", "content": prompt}]
    found["requests"] = [common | {
        "rubric_digest": digest("rubric"), "variant": category, "parameters_json": "{}", "repeat": repeat, "occasion": "",
        "messages_json": json.dumps(messages), "facts_json": "{}", "n_output_tokens_expected": 9,
    }]  # fmt: skip
    text = json.dumps({"overall_score": became}) if is_read else "I will not."
    asks = [("answered", "garbled", 0), ("answered", text, 1)] if repeat else [("answered", text, 0)]
    found["replies"] = [
        {
            "request_key": common["request_key"],
            "ask_index": n,
            "status": s,
            "reply_text": t,
            "judge_model": "eye",
            "n_attempts": 1,
        }
        for s, t, n in asks
    ]
    bounds = {"bound_low": became, "bound_high": became} if is_read else {"bound_low": 0.0, "bound_high": 10.0}
    place = {"ask_index": len(asks) - 1, "score_span": f"[18, {len(text) - 1}]", "item": ""}
    read = {"score": became, "status": "scored"} | place if is_read else {"status": "unreadable", "reason": became, "item": ""}
    found["scores"] = [
        common | {"dimension": d, "variant": category} | bounds | read for d in ("overall_score", f"{category}_accuracy")
    ]


def made_small_lake(root: Path) -> SmallLake:
    """Nine judgements of one model: eight with a reply, one that could not be asked; written as two parts."""
    lake, asked = Lake(root), rubric()
    staged = {t: stage(lake, t) for t in (SAMPLES, PICTURES, JUDGEMENTS, REQUESTS, REPLIES, SCORES)}
    for part, indices in enumerate((range(5), range(5, len(JUDGED)))):
        rows = [rows_of(index) for index in indices]
        for table, staging in staged.items():
            staging.write_part(part, table_of(table, [row for found in rows for row in found[table.name]]))
    keys = {
        "samples": "dataset_id",
        "pictures": "dataset_id",
        "judgements": "plan_id",
        "requests": "plan_id",
        "replies": "snapshot_id",
        "scores": "reading_id",
    }
    for table, staging in staged.items():
        staging.commit(IDS[keys[table.name]])
    judgements, scores = lake.scan(JUDGEMENTS, IDS["plan_id"]), lake.scan(SCORES, IDS["reading_id"])
    run = Settings("nightly", IDS["dataset_id"], digest("publication"), RUN_DATE, min_coverage=0.5)
    return SmallLake(lake, asked, _placed(judgements, scores, lake.scan(REPLIES, IDS["snapshot_id"]), asked, run))


def _placed(*made_of: Any) -> pl.DataFrame:
    """The means for prompts like these with what failed, without a rank."""
    *frames, asked, run = made_of
    tables = aggregated(*frames, {asked.id: asked}, run)
    return means_for_prompts_like_these(placed({table: tables[table] for table in (BENCHMARK_LONG, FAILURES)}))


def failing(**counts: int) -> pl.Expr:
    """The column `failures` of cells that fail so often by these reasons."""
    return pl.concat_list(pl.struct(reason=pl.lit(word), n_failed=pl.lit(n, pl.Int64)) for word, n in counts.items()).alias(
        "failures"
    )


@pytest.fixture
def small_lake(tmp_path: Path) -> SmallLake:
    """made_small_lake() in the test's folder."""
    return made_small_lake(tmp_path / "lake")


@pytest.fixture
def small_cells(small_lake: SmallLake) -> pl.DataFrame:
    return small_lake.cells


def put_cells(root: Path, cells: pl.DataFrame, **changes: Any) -> Published:
    """Publish cells into a lake; what is not named is a fixed value."""
    checks = table_of(CHECKS, [
        {"publication_id": digest("publication"), "check": name, "status": "passed", "severity": "blocking", "n_checked": 9,
         "n_failing": 0}
        for name in ("scores.score.range", "requests.rows")
    ])  # fmt: skip
    named = {"publication_id": digest("publication"), "benchmark": "nightly", "run_date": RUN_DATE}
    name = PublicationName(**{key: changes.get(key, value) for key, value in named.items()})
    tables = {BENCHMARK_LONG: cells, CHECKS: checks, QUARANTINE: table_of(QUARANTINE, [])} | changes.get("further", {})
    provenance = changes.get("provenance", {"identities": IDS, "code_version": digest("code")})
    return publish(root, Draft(name, tables, provenance, changes.get("pages", {})))


@pytest.fixture
def put() -> Callable[..., Published]:
    """put_cells()."""
    return put_cells


@pytest.fixture
def name_digest() -> Callable[[str], str]:
    return digest


@pytest.fixture
def run_arguments() -> dict[str, Any]:
    """What the small lake's partitions are named, and the run its cells are published under."""
    run = {"benchmark": "nightly", "dataset_id": IDS["dataset_id"], "publication_id": digest("publication"), "run_date": RUN_DATE}
    return {"identities": IDS, "run": run | {"min_coverage": 0.5}}
