"""`salon verify`: every stage of a publication made again from what the lake stores, offline, and held against what stands there.

No ledger, no network and no judge has a part. What is made again is written to a temporary folder; the lake is only read.
How partitions and tables are compared is tasks/verify.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl

from flows.observability.progress import Reporter
from flows.run import stages
from flows.run.context import RunContext
from flows.run.pipeline import tables_of
from flows.run.tasks import RunTables, publish_tables
from rubrics.loading import SHIPPED, find_rubrics
from schemas.benchmark import Benchmark, load_benchmark
from schemas.errors import InputError, SalonError
from schemas.identities import RunIds
from schemas.tables import CHECKS, JUDGEMENTS, PICTURES, QUARANTINE, RATINGS, REQUESTS, SAMPLES, SCORES, VOTES
from tasks.aggregate.agreement.votes import tables_with_people
from tasks.context import StageContext
from tasks.lake.pictures import table_of_pictures
from tasks.lake.reading import Lake
from tasks.publish.agreement import agreement_id, given, publish_agreement
from tasks.publish.folders import MANIFEST, PROVENANCE
from tasks.publish.identity import MADE_OF, benchmark_digest, code_version, publication_id
from tasks.validate.buckets import PARTITIONS
from tasks.validate.gate_and_quarantine import validate
from tasks.verify.partitions import adopt, check_identity, check_replies, check_samples, compare_parts, read_again
from tasks.verify.publication import (
    check_manifest,
    check_pointer,
    compare_duckdb,
    compare_folders,
    compare_pointers,
    compare_trees,
    is_agreement,
    read_provenance,
)
from tasks.verify.rows import Difference

_BROKEN = (ValueError, TypeError, AttributeError, LookupError, RecursionError, OSError, pl.exceptions.PolarsError)
"""What reading and using a file raises that holds something else than it should."""


@dataclass(frozen=True, slots=True)
class Reopened:
    """A published folder, the run it says it is, in a lake of its own, and what its word does not bear out."""

    folder: Path
    run: StageContext
    differences: tuple[Difference, ...]


@dataclass(slots=True)
class Verdict:
    """What was made again, and every difference. `steps` are (stage, what was done) for people, in order."""

    folder: Path
    steps: list[tuple[str, str]] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, step: str, found: Iterable[Difference], done: str) -> None:
        """Note a step and what it found."""
        self.differences += found
        self.steps.append((step, done))

    @property
    def is_verified(self) -> bool:
        """Whether everything could be made again and is the same."""
        return not self.differences


def verify(folder: Path, lake: Lake, reporter: Reporter, file: Path | None = None, rubrics: Sequence[Path] = ()) -> Verdict:
    """Verify one published folder.

    `file` is its benchmark file, `rubrics` folders of rubrics of one's own. Raises InputError where what is given is not what
    it was published from; whatever is found in the lake, missing and broken files included, is a difference.
    """
    verdict = Verdict(folder)
    with _step(verdict, reporter, "manifest"):
        verdict.differences += [*check_manifest(folder), *check_pointer(folder)]
        n_files = sum(path.name != MANIFEST for path in folder.iterdir())
        verdict.steps.append(("manifest", f"{n_files} files against their checksums, and the pointer"))
    said = read_provenance(folder)
    if said is None:
        verdict.differences.append(Difference(PROVENANCE, "", "", "no provenance that can be read", "what it was made from"))
        return verdict
    with tempfile.TemporaryDirectory(prefix="salon-verify-") as temporary:
        try:
            published = open_published(folder, said, Path(temporary) / "lake", file, rubrics)
        except _BROKEN as error:  # not InputError: that is of what the user named
            verdict.differences.append(Difference(PROVENANCE, "", "", _one_line(error), "what it was made from"))
            return verdict
        verdict.differences += published.differences
        if published.run.ids.code_version != code_version():
            verdict.notes.append(
                f"made by code version {published.run.ids.code_version[:12]}, verified by {code_version()[:12]}: a "
                "difference may come from the code; to be sure, verify with the version that published"
            )
        _verify_stages(verdict, published, lake, reporter)
    return verdict


def _verify_stages(verdict: Verdict, published: Reopened, lake: Lake, reporter: Reporter) -> None:
    """Each stage is made again from the stored output of the one before, so that a difference is said where it arose."""
    run, ids = published.run, published.run.ids
    stored = Lake(run.lake.root.parent / "stored")
    with _step(verdict, reporter, "lake"):
        n_files = 0
        for table, name in PARTITIONS.items():
            # Scores are made again under their own name in the run's lake: those that were stored are put aside.
            found, n_parts = adopt(lake, stored if table is SCORES else run.lake, table, getattr(ids, name))
            verdict.differences += found
            n_files += n_parts
        if table_of_pictures(lake, ids.dataset_id) is PICTURES:
            found, n_parts = adopt(lake, run.lake, PICTURES, ids.dataset_id)
            verdict.differences += found
            n_files += n_parts
        verdict.steps.append(("lake", f"{n_files} files of {len(PARTITIONS)} tables against their checksums"))
    with _step(verdict, reporter, "samples"):
        verdict.add("samples", *check_samples(run.lake, ids, lambda n: reporter.advance("samples", n)))
    with _step(verdict, reporter, "plan"):
        _verify_plan(verdict, run, ids, lake)
    with _step(verdict, reporter, "replies"):
        verdict.add("replies", *check_replies(run.lake, ids))
    with _step(verdict, reporter, "scores"):
        verdict.add("scores", *read_again(run.lake, ids, run.rubrics))
        with _tried(verdict, SCORES.name):
            verdict.differences += compare_parts(SCORES, stored, ids.reading_id, run.lake, ids.reading_id)
        with _step(verdict, reporter, "tables"):
            again = make_tables(published)
            found, notes = compare_folders(verdict.folder, again)
            verdict.differences += [*found, *compare_pointers(verdict.folder, again)]
            verdict.differences += compare_trees(verdict.folder, lake.root, run.lake.root)
            verdict.notes += notes
            verdict.steps.append(("tables", f"{sum(1 for _ in again.iterdir())} files made again, values and bytes compared"))
    with _step(verdict, reporter, "duckdb"):
        verdict.add("duckdb", *compare_duckdb(verdict.folder, lake.root))


def _verify_plan(verdict: Verdict, run: StageContext, ids: RunIds, lake: Lake) -> None:
    """Every question written again from samples and rubrics: request keys, messages, facts, the plan's id."""
    alone = Lake(run.lake.root.parent / "plan")
    adopt(lake, alone, SAMPLES, ids.dataset_id)
    planned = stages.plan(RunContext.of(replace(run, lake=alone)).having(dataset_id=ids.dataset_id))
    verdict.differences += check_identity("plan_id", ids.plan_id, planned.plan_id)
    for table in (JUDGEMENTS, REQUESTS):
        verdict.differences += compare_parts(table, run.lake, ids.plan_id, alone, planned.plan_id)
    verdict.steps.append(("plan", f"{planned.n_requests:,} questions written again from samples and rubrics"))


@contextmanager
def _step(verdict: Verdict, reporter: Reporter, name: str) -> Iterator[None]:
    reporter.start(name, 0)
    with _tried(verdict, name):
        yield
    reporter.finish(name)


@contextmanager
def _tried(verdict: Verdict, place: str) -> Iterator[None]:
    """A changed lake may hold anything: what stops a stage is a difference, and the stages after it are tried all the same."""
    try:
        yield
    except (SalonError, *_BROKEN) as error:
        verdict.differences.append(Difference(place, "", "", "as published", f"cannot be made again: {_one_line(error)}"))


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]


SETTINGS = "settings"
"""The key of provenance.json that holds the benchmark file's canonical JSON, whose digest is benchmark_digest."""


def open_published(folder: Path, said: Mapping[str, Any], lake: Path, file: Path | None, rubrics: Sequence[Path]) -> Reopened:
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
    return Reopened(folder, StageContext(benchmark, found, Lake(lake), "sqlite://", run_date, ids), tuple(differences))


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
        return agreement_id(*_said_by_people(folder), ids, run_date)
    return publication_id(benchmark, ids, run_date)


def make_tables(published: Reopened) -> Path:
    """The publication's folder made again in the run's own lake."""
    if is_agreement(published.folder):
        return _make_agreement(published)
    context = published.run
    checked = validate(context)
    tables = tables_of(RunContext.of(context)) | {CHECKS: checked.checks, QUARANTINE: checked.quarantine}
    return publish_tables.work(context, RunTables(tables)).folder


def _make_agreement(published: Reopened) -> Path:
    """People's ratings are taken as published: they came from outside, and the samples they are of were matched then."""
    context = published.run
    people = _said_by_people(published.folder)
    return publish_agreement(context, tables_with_people(context, *people) | given(*people)).folder


def _said_by_people(folder: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The ratings and the votes of an agreement; none where they were not given."""
    votes = folder / f"{VOTES.name}.parquet"
    return pl.read_parquet(folder / f"{RATINGS.name}.parquet"), pl.read_parquet(votes) if votes.is_file() else VOTES.empty()
