"""A published folder opened as the run that it says it is; its tables made again, its bundle. What is compared: verifying.py."""

import gc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa

from flows.nights.own_rubrics import kept_rubric
from flows.run.context import RunContext
from flows.run.pipeline import tables_of
from flows.run.tasks import RunTables, publish_tables
from rubrics.loading import SHIPPED, find_rubrics
from rubrics.model import Rubric
from schemas.benchmark.file import Benchmark, load_benchmark
from schemas.errors import CorruptLakeError, InputError, RubricError
from schemas.identities import RunIds
from schemas.lineage import Lineage
from schemas.tables.stored import CHECKS, QUARANTINE
from tasks.context import StageContext
from tasks.lake.reading import Lake
from tasks.publish.agreement import agreement_id, given, publish_agreement, reference_in
from tasks.publish.folders import PROVENANCE
from tasks.publish.identity import LINEAGE, MADE_OF, benchmark_digest, code_version, publication_id
from tasks.validate.gate_and_quarantine import validate
from tasks.verify.bundle import BundleName, write_bundle
from tasks.verify.publication import is_agreement, read_provenance
from tasks.verify.rows import Difference

CHECKED_AT_ONCE = 20_000
"""Rows of the longest table that are checked together: 0.2 GB. A run takes more, and spends 2 s of CPU less for each time."""
SETTINGS = "settings"
"""The key of provenance.json that holds the benchmark file's canonical JSON, whose digest is benchmark_digest."""


@dataclass(frozen=True, slots=True)
class Reopened:
    """A published folder, the run it says it is, in a lake of its own, and what its word does not bear out.

    `other_rubrics`: the folders of those that are not as they were published with, by their ids. `notes`: which were taken from
    the lake, which keeps them as they were.
    """

    folder: Path
    run: StageContext
    differences: tuple[Difference, ...]
    other_rubrics: Mapping[str, Path]
    notes: tuple[str, ...]


def open_published(
    folder: Path,
    said: Mapping[str, Any],
    lake: Path,
    file: Path | None,
    rubrics: Sequence[Path],
    *,
    advice: str = "",
    kept_in: Path | None = None,
) -> Reopened:
    """Open what provenance.json says. Raises InputError where the benchmark file is not the one published from.

    `advice`: how a rubric that is not found is named. `kept_in`: the lake, where a rubric that is not as it was published with
    may be kept as it was; without it rubrics are those in `rubrics`, and neither the shipped ones nor any that the settings name.
    """
    benchmark = load_benchmark(file) if file else _settings(folder, said)
    digest = benchmark_digest(benchmark)
    if file and digest != said.get("benchmark_digest"):
        raise InputError(_is_other(file, folder, said, digest))
    names = [choice.id for choice in benchmark.rubrics]
    if kept_in is None:
        found, notes = find_rubrics(names, rubrics, advice), list[str]()
    else:
        more = [*(benchmark.path(one) for one in benchmark.rubric_folders), SHIPPED]
        both = {name: _found_or_kept(name, str(_digest_of(said, name)), kept_in, rubrics, more, advice) for name in names}
        found = {name: rubric for name, (rubric, _) in both.items()}
        what = (
            "is not found as it was published (changed since, gone, or in no folder named); taken from where the lake keeps it:"
        )
        notes = [f"rubric {name} {what} {rubric.folder}" for name, (rubric, is_kept) in both.items() if is_kept]
    ids = RunIds(**{name: said["identities"][name] for name in MADE_OF}, publication_id=folder.name)
    others = {name: rubric for name, rubric in found.items() if _digest_of(said, name) != rubric.digest}
    differences = [
        Difference(PROVENANCE, "", f"rubrics.{name}.digest", str(_digest_of(said, name)), f"{rubric.digest} ({rubric.folder})")
        for name, rubric in others.items()
    ]
    run_date = date.fromisoformat(str(said["run_date"]))
    lineage = Lineage.read(said.get(LINEAGE, {}))
    key = _key(folder, ids, benchmark, run_date, lineage)
    if key != folder.name:
        differences.append(Difference(PROVENANCE, "", "publication_id", folder.name, key))
    context = StageContext(benchmark, found, Lake(lake), "sqlite://", run_date, ids, lineage)
    return Reopened(folder, context, tuple(differences), {name: rubric.folder for name, rubric in others.items()}, (*notes,))


def _found_or_kept(
    name: str, digest: str, lake: Path, rubrics: Sequence[Path], more: Sequence[Path], advice: str
) -> tuple[Rubric, bool]:
    """A rubric, and whether it is the one that the lake kept, since no folder has it any more as it was."""
    try:
        found = find_rubrics([name], [*rubrics, *more], advice)[name]
    except RubricError:
        kept = None if rubrics else kept_rubric(lake, name, digest)  # named folders without it are a mistake to be told
        if kept is None:
            raise
        return kept, True
    kept = None if found.digest == digest else kept_rubric(lake, name, digest)
    return kept or found, kept is not None


def _is_other(file: Path, folder: Path, said: Mapping[str, Any], digest: str) -> str:
    """What is said of a benchmark file of another digest than the publication names."""
    theirs, code = (str(one)[:12] for one in (said.get("benchmark_digest"), said["identities"]["code_version"]))
    if code == code_version()[:12]:
        return (
            f"{file} is not what {folder.name[:12]} was published from: its digest is {digest[:12]}, the publication's {theirs}; "
            "give the file as it was then"
        )
    return (
        f"{folder.name[:12]} was published by another version of the code ({code}; this one is {code_version()[:12]}), under the "
        f"digest {theirs} of its benchmark file; this one gives {file} {digest[:12]}. Names and defaults of settings "
        "changed since, so digests differ even if nobody changed the file: this version cannot rebuild its numbers. Verify with "
        "the version that published it; or publish it again with this one (salon run), and verify that"
    )


def _settings(folder: Path, said: Mapping[str, Any]) -> Benchmark:
    """The benchmark file as provenance.json holds it; where the sources stood is not in it and not needed."""
    settings = said.get(SETTINGS)
    if not isinstance(settings, dict):
        raise InputError(f"{folder} does not contain the settings of its benchmark file; name the file with --file")
    sources = [{**source, "path": "."} for source in settings.get("sources", [])]
    return Benchmark.model_validate({**settings, "sources": sources})


def _digest_of(said: Mapping[str, Any], rubric_id: str) -> object:
    return said.get("rubrics", {}).get(rubric_id, {}).get("digest")


def _key(folder: Path, ids: RunIds, benchmark: Benchmark, run_date: date, lineage: Lineage) -> str:
    if is_agreement(folder):
        return agreement_id(benchmark, reference_in(folder), ids, run_date, lineage)
    return publication_id(benchmark, ids, run_date, lineage)


def make_tables(published: Reopened) -> Path:
    """The publication's folder made again in the run's own lake."""
    if is_agreement(published.folder):
        return _make_agreement(published)
    context = published.run
    checked = validate(context, rows_at_once=CHECKED_AT_ONCE)
    tables = tables_of(RunContext.of(context)) | {CHECKS: checked.checks, QUARANTINE: checked.quarantine}
    give_back()
    return publish_tables.work(context, RunTables(tables, is_proof=True)).folder


def give_back() -> None:
    """Return to the system what a stage held and needs no more: allocators and frames that name one another keep it otherwise."""
    gc.collect()
    pa.default_memory_pool().release_unused()


def _make_agreement(published: Reopened) -> Path:
    """People's ratings are taken as published: they came from outside, and the samples they are of were matched then."""
    from tasks.aggregate.agreement.votes import tables_held_against  # with scipy.stats: 64 MB, and a second to import

    context = published.run
    reference = reference_in(published.folder)
    tables = tables_held_against(context, reference) | given(reference)
    return publish_agreement(context, tables, reference.judge).folder


def export_bundle(folder: Path, lake: Lake, out: Path, rubrics: Sequence[Path], *, with_pictures: bool) -> BundleName:
    """Write the bundle of a published folder. Raises InputError where a rubric is not the one it was made with."""
    said = read_provenance(folder)
    if said is None:
        raise CorruptLakeError(f"{folder / PROVENANCE} cannot be read; restore the folder from a copy, or run again")
    opened = open_published(
        folder, said, lake.root, None, rubrics, advice="name its folder with --rubrics DIR", kept_in=lake.root
    )
    if opened.differences:
        one = opened.differences[0]
        raise InputError(
            f"{folder.name[:12]} cannot be derived from the data here: {one.column} is {one.published} in its {PROVENANCE}, and "
            f"{one.derived} is found; give the folder with its rubrics as they were, with --rubrics"
        )
    return write_bundle(folder, lake, opened.run.ids, opened.run.rubrics, out, with_pictures=with_pictures)
