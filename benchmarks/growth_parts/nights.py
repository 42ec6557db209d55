"""A lake of many nights: real ones by the whole pipeline, and copies of one under later dates. It measures nothing."""

import hashlib
import json
import shutil
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import numpy as np
import polars as pl

from demo import paint
from flows.night_opening import open_night
from flows.nightly import run_night
from flows.nights.record import Night, note_night, notes
from flows.run.context import RunContext
from schemas.tables.catalogue import TABLES
from schemas.tables.published import BENCHMARK_LONG
from schemas.tables.stored import JUDGEMENTS, PARTITIONS, REPLIES, REQUESTS, RUNS, SAMPLES, SCORES
from schemas.tables.table import Table
from tasks.context import StageContext
from tasks.lake.atomic_files import write_parquet
from tasks.lake.object_store.cache_folder import push
from tasks.lake.writing import stage
from tasks.publish.folders import PublicationName
from tasks.publish.machine_tables import runs
from tasks.publish.publication import Draft, publish
from tasks.publish.reading import Publication, find_publication, load_cells

NAME, FIRST, MODEL = "year", date(2025, 1, 1), "demo-painter"
NIGHT_NOISE = 0.026  # of a mean on a scale of ten, as in docs/nights.md: nights of equal numbers are no nights
HELD = {SAMPLES: "dataset_id", JUDGEMENTS: "plan_id", REQUESTS: "plan_id", REPLIES: "snapshot_id", SCORES: "reading_id"}
BENCHMARK = """\
name = "year"
[[sources]]
reader = "geneval"
path = "made/{{model}}/{{checkpoint}}"
[[rubrics]]
id = "alignment"
[[rubrics]]
id = "composition"
[[judges]]
model = "salon-demo-judge"
base_url = "{url}"
[limits]
shard_size = 100
[nightly]
schedule = "0 2 * * *"
n_earlier = 0
"""


def make_world(folder: Path, url: str) -> Path:
    """Three painted checkpoints, shown night by night by `show`; the benchmark file over them."""
    paint(folder / "painted")
    (folder / "year.toml").write_text(BENCHMARK.format(url=url))
    return folder / "year.toml"


def real_night(file: Path, number: int, painted: int) -> StageContext:
    """Draw checkpoint `night-<number>` from a painted one, and run its night through every stage."""
    scenes = file.parent / "painted" / "scenes" / MODEL
    chosen = sorted(scenes.iterdir())[painted]
    shutil.copytree(chosen, file.parent / "made" / MODEL / f"night-{number}")
    run = open_night(file, FIRST + timedelta(number))
    run_night(RunContext.of(run))
    return run


@dataclass(frozen=True)
class Template:
    """A night that was run, to be copied."""

    run: StageContext
    publication: Publication
    night: Night
    tables: dict[Table, pl.DataFrame]
    parts: dict[Table, list[pl.DataFrame]]
    partitions: pl.DataFrame
    row: dict[str, object]


def read_template(run: StageContext) -> Template:
    """The night of the run's date, with everything it has put into the lake."""
    note = notes(run.lake.root, NAME)[run.run_date.isoformat()]
    found = find_publication(run.lake.root, note.publication_id)
    ids = found.provenance()["identities"]
    names = [name.removesuffix(".parquet") for name in found.files if name.endswith(".parquet")]
    rows = runs(run.lake).filter(publication_id=note.publication_id).to_dicts()[-1]
    mine = run.lake.root / PARTITIONS.name / NAME
    partitions = pl.concat([pl.read_parquet(path) for path in sorted(mine.glob("*.parquet"))])
    return Template(
        run, found, Night(note.checkpoints, note.anchor_set),
        {TABLES[name]: pl.read_parquet(found.folder / f"{name}.parquet") for name in names} | {BENCHMARK_LONG: load_cells(found)},
        {table: [pl.read_parquet(path) for path in run.lake.parts(table, ids[key])] for table, key in HELD.items()},
        partitions.filter(pl.col("checkpoint").is_in(list(note.checkpoints.values()))), rows,
    )  # fmt: skip


def copy_night(template: Template, number: int) -> None:
    """The template's night once more, under date and checkpoint `number`: partitions, publication, run, note."""
    lake, run_date = template.run.lake, FIRST + timedelta(number)
    old, new = template.night.checkpoints[MODEL], f"night-{number}"
    ids = template.publication.provenance()["identities"] | {key: _digest(key, number) for key in set(HELD.values())}
    said = template.publication.provenance() | {"identities": ids}
    for table, parts in template.parts.items():
        staging = stage(lake, table)
        for index, part in enumerate(parts):
            staging.write_part(index, _redated(part, old, new, run_date))
        staging.commit(ids[HELD[table]])
    key, draw = _digest("publication", number), np.random.default_rng(number)
    tables = {table: _redated(frame, old, new, run_date) for table, frame in template.tables.items()}
    noise = draw.normal(0, NIGHT_NOISE, tables[BENCHMARK_LONG].height)
    tables[BENCHMARK_LONG] = tables[BENCHMARK_LONG].with_columns(pl.col("estimate") + pl.Series(noise))
    pages = {"report.html": b"<p>a night</p>"}
    publish(lake.root, Draft(PublicationName(NAME, key, run_date), tables, said, pages))
    at = datetime.combine(run_date, time(2, 10), UTC)
    row = template.row | {"run_date": run_date, "publication_id": key, "dataset_id": ids["dataset_id"], "started_at": at,
                          "finished_at": at + timedelta(minutes=9)}  # fmt: skip
    lake.append_row(RUNS, f"{at:%Y%m%dT%H%M%S%f}-{number:08x}", pl.DataFrame([row], schema=RUNS.empty().schema))
    note_night(lake.root, NAME, Night({MODEL: new}, template.night.anchor_set), run_date, key, is_whole=True)
    _copy_rest(template, number, old, new, key)


def _copy_rest(template: Template, number: int, old: str, new: str, key: str) -> None:
    """Partitions' rows, the checkpoint's folder, data docs and small notes, each as many as a night leaves behind."""
    root = template.run.lake.root
    written = []
    for row in _redated(template.partitions, old, new, FIRST).iter_slices(1):
        name = _digest(str(row["partition_id"].item()), number)
        written.append(root / PARTITIONS.name / NAME / f"{name}.parquet")
        renamed = row.with_columns(partition_id=pl.lit(name)).to_arrow().cast(PARTITIONS.schema)
        write_parquet(renamed, written[-1], root / "staging")
    push(root, *written)
    (template.run.benchmark.folder / "made" / MODEL / new).mkdir(parents=True, exist_ok=True)
    shutil.copytree(root / "data_docs" / template.publication.publication_id, root / "data_docs" / key, dirs_exist_ok=True)
    for folder in ("taken", "verdicts"):
        shutil.copy(next((root / folder).glob("*.json")), root / folder / f"{_digest(folder, number)}.json")


def _redated(frame: pl.DataFrame, old: str, new: str, run_date: date) -> pl.DataFrame:
    changes = {
        name: pl.col(name).replace(old, new) for name in ("checkpoint", "checkpoint_a", "checkpoint_b") if name in frame.columns
    }
    if "run_date" in frame.columns:
        changes["run_date"] = pl.lit(run_date)
    if "occasion" in frame.columns:
        changes["occasion"] = pl.when(pl.col("occasion") == "").then(pl.col("occasion")).otherwise(pl.lit(run_date.isoformat()))
    return frame.with_columns(**changes)


def _digest(what: str, number: int) -> str:
    return hashlib.sha256(json.dumps([what, number]).encode()).hexdigest()
