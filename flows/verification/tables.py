"""A publication opened from its own word, and its tables made again into a folder beside. What is verified is verifying.py."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq

from flows.run.context import RunContext
from flows.run.finishing import tables_of
from rubrics.loading import SHIPPED, find_rubrics
from schemas.benchmark import Benchmark, load_benchmark
from schemas.errors import InputError
from schemas.identities import RunIds
from schemas.tables import CHECKS, QUARANTINE, RATINGS, Table
from tasks.aggregate.agreement.corrected import agreement_tables
from tasks.context import StageContext
from tasks.lake.atomic_files import sha256_of_file
from tasks.lake.reading import Lake
from tasks.publish.agreement import agreement_id, publish_agreement
from tasks.publish.folders import PROVENANCE
from tasks.publish.identity import MADE_OF, benchmark_digest, publication_id
from tasks.publish.prefect_tasks import RunTables, publish_tables
from tasks.validate.gate_and_quarantine import validate
from tasks.verify.publication import is_agreement
from tasks.verify.rows import NOTHING, Difference

SETTINGS = "settings"
"""The key of provenance.json that holds the benchmark file's canonical JSON, whose digest is benchmark_digest."""


@dataclass(frozen=True, slots=True)
class Published:
    """A published folder, the run it says it is, in a lake of its own, and what its word does not bear out."""

    folder: Path
    run: StageContext
    differences: tuple[Difference, ...]


def open_published(folder: Path, said: Mapping[str, Any], lake: Path, file: Path | None, rubrics: Sequence[Path]) -> Published:
    """Open what provenance.json says. Raises InputError where the benchmark file or a rubric is not the one published from."""
    benchmark = load_benchmark(file) if file else _settings(folder, said)
    digest = benchmark_digest(benchmark)
    if file and digest != said.get("benchmark_digest"):
        raise InputError(
            f"{file} is not what {folder.name[:12]} was published from: its digest is {digest[:12]}, the publication's "
            f"{str(said.get('benchmark_digest'))[:12]}; name the file as it was then"
        )
    own = [benchmark.path(one) for one in benchmark.rubric_folders]
    found = find_rubrics([choice.id for choice in benchmark.rubrics], [*own, *rubrics, SHIPPED])
    ids = RunIds(**{name: said["identities"][name] for name in MADE_OF}, publication_id=folder.name)
    differences = [
        Difference(PROVENANCE, "", f"rubrics.{name}.digest", str(_digest_of(said, name)), f"{rubric.digest} ({rubric.folder})")
        for name, rubric in found.items()
        if _digest_of(said, name) != rubric.digest
    ]
    run_date = date.fromisoformat(str(said["run_date"]))
    key = _key(folder, ids, benchmark, run_date)
    if key != folder.name:
        differences.append(Difference(PROVENANCE, "", "publication_id", folder.name, key))
    return Published(folder, StageContext(benchmark, found, Lake(lake), "sqlite://", run_date, ids), tuple(differences))


def _settings(folder: Path, said: Mapping[str, Any]) -> Benchmark:
    """The benchmark file as provenance.json holds it; where the sources stood is not in it and not needed."""
    settings = said.get(SETTINGS)
    if not isinstance(settings, dict):
        raise InputError(f"{folder} does not hold the settings of its benchmark file; name the file with --file")
    sources = [{**source, "path": "."} for source in settings.get("sources", [])]
    return Benchmark.model_validate({**settings, "sources": sources})


def _digest_of(said: Mapping[str, Any], rubric_id: str) -> object:
    return said.get("rubrics", {}).get(rubric_id, {}).get("digest")


def _key(folder: Path, ids: RunIds, benchmark: Benchmark, run_date: date) -> str:
    if is_agreement(folder):
        return agreement_id(pl.read_parquet(folder / f"{RATINGS.name}.parquet"), ids, run_date)
    return publication_id(benchmark, ids, run_date)


def adopt(stored: Lake, own: Lake, table: Table, key: str) -> tuple[list[Difference], int]:
    """Let `own` hold the files of a stored partition as they are now; (what its marker says otherwise, number of files).

    The marker is written anew, so that a changed file is read all the same and the cells it changes are found.
    """
    stored.bring_as_it_is(table, key)
    try:
        entries = json.loads(stored.marker(table, key).read_bytes())["parts"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return [Difference(table.name, key, "", "a whole partition", "it is not in the lake, or its marker is broken")], 0
    found: list[Difference] = []
    there: list[dict[str, object]] = []
    for entry in entries:
        path = stored.partition(table, key) / Path(str(entry["name"])).name
        if not path.is_file():
            found.append(Difference(table.name, path.name, "", f"sha256 {entry.get('sha256')}", NOTHING))
            continue
        digest = sha256_of_file(path)
        if digest != entry.get("sha256"):
            found.append(Difference(table.name, path.name, "", f"sha256 {entry.get('sha256')}", f"sha256 {digest}"))
        there.append({"name": path.name, "n_rows": _n_rows(path), "n_bytes": path.stat().st_size, "sha256": digest})
    own.partition(table, key).parent.mkdir(parents=True, exist_ok=True)
    own.partition(table, key).symlink_to(stored.partition(table, key).resolve(), target_is_directory=True)
    own.marker(table, key).parent.mkdir(parents=True, exist_ok=True)
    own.marker(table, key).write_text(json.dumps({"parts": there}))
    return found, len(entries)


def _n_rows(path: Path) -> int:
    try:
        return int(pq.read_metadata(path).num_rows)
    except (ValueError, OSError):
        return 0


def make_tables(published: Published) -> Path:
    """The publication's folder made again in the run's own lake."""
    if is_agreement(published.folder):
        return _make_agreement(published)
    context = published.run
    checked = validate(context)
    tables = tables_of(RunContext.of(context)) | {CHECKS: checked.checks, QUARANTINE: checked.quarantine}
    return publish_tables.fn(context, RunTables(tables)).folder


def _make_agreement(published: Published) -> Path:
    """People's ratings are taken as published: they came from outside, and the samples they are of were matched then."""
    context = published.run
    rated = pl.read_parquet(published.folder / f"{RATINGS.name}.parquet")
    return publish_agreement(context, agreement_tables(context, rated) | {RATINGS: rated}).folder
