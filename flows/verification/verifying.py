"""`salon verify`: every stage of a publication made again from what the lake stores, offline, and held against what stands there.

No ledger, no network and no judge has a part. What is made again is written to a temporary folder; the lake is only read.
How tables are compared is tasks/verify/publication.py; how a publication's tables are made again is tables.py.
"""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from flows.observability.progress import Reporter
from flows.run import stages
from flows.run.context import RunContext
from flows.verification.tables import Published, adopt, make_tables, open_published
from schemas.errors import SalonError
from schemas.identities import RunIds
from schemas.tables import JUDGEMENTS, REPLIES, REQUESTS, SAMPLES, SCORES, Table
from tasks.context import StageContext
from tasks.ingest.identity import dataset_id, packed
from tasks.lake.reading import Lake
from tasks.lake.writing import stage
from tasks.ledger.snapshot import part_digest, snapshot_id
from tasks.publish.code_version import code_version
from tasks.publish.folders import MANIFEST, PROVENANCE
from tasks.validate.parse import parse_part, reading_id
from tasks.verify.publication import (
    check_manifest,
    check_pointer,
    compare_folders,
    compare_pointers,
    compare_trees,
    read_provenance,
)
from tasks.verify.rows import Difference, changed_samples, compare_rows

LAYERS = (SAMPLES, JUDGEMENTS, REQUESTS, REPLIES, SCORES)
_BROKEN = (ValueError, TypeError, AttributeError, LookupError, RecursionError, OSError, pl.exceptions.PolarsError)
"""What reading and using a file raises that holds something else than it should."""


@dataclass(slots=True)
class Verdict:
    """What was made again, and every difference. `steps` are (stage, what was done) for people, in order."""

    folder: Path
    steps: list[tuple[str, str]] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

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


def _verify_stages(verdict: Verdict, published: Published, lake: Lake, reporter: Reporter) -> None:
    """Each stage is made again from the stored output of the one before, so that a difference is said where it arose."""
    run, ids = published.run, published.run.ids
    stored = Lake(run.lake.root.parent / "stored")
    with _step(verdict, reporter, "lake"):
        n_files = 0
        for table in LAYERS:
            # Scores are made again under their own name in the run's lake: those that were stored are put aside.
            found, n_parts = adopt(lake, stored if table is SCORES else run.lake, table, getattr(ids, _KEYS[table]))
            verdict.differences += found
            n_files += n_parts
        verdict.steps.append(("lake", f"{n_files} files of {len(LAYERS)} tables against their checksums"))
    with _step(verdict, reporter, "samples"):
        _verify_samples(verdict, run.lake, ids.dataset_id, reporter)
    with _step(verdict, reporter, "plan"):
        _verify_plan(verdict, run, ids, lake)
    with _step(verdict, reporter, "replies"):
        _verify_replies(verdict, run.lake, ids.snapshot_id)
    with _step(verdict, reporter, "scores"):
        _verify_scores(verdict, run, ids, stored)
        with _step(verdict, reporter, "tables"):
            again = make_tables(published)
            found, notes = compare_folders(verdict.folder, again)
            verdict.differences += [*found, *compare_pointers(verdict.folder, again)]
            verdict.differences += compare_trees(verdict.folder, lake.root, run.lake.root)
            verdict.notes += notes
            verdict.steps.append(("tables", f"{sum(1 for _ in again.iterdir())} files made again, values and bytes compared"))


_KEYS = {SAMPLES: "dataset_id", JUDGEMENTS: "plan_id", REQUESTS: "plan_id", REPLIES: "snapshot_id", SCORES: "reading_id"}


def _verify_samples(verdict: Verdict, lake: Lake, key: str, reporter: Reporter) -> None:
    """Pictures' digests, rows' ids, the dataset's id."""
    ids: list[str] = []
    n_pictures = 0
    for path in lake.parts(SAMPLES, key):
        part = pl.read_parquet(path)
        ids += part["sample_id"].to_list()
        n_pictures += part["image"].count()
        verdict.differences += [
            Difference(SAMPLES.name, row, column, str(stored), str(computed))
            for row, column, stored, computed in changed_samples(part)
        ]
        reporter.advance("samples", part.height)
    try:
        computed = dataset_id([packed(ids)])
    except ValueError:
        computed = "none: a sample_id is no sha256"
    verdict.differences += _identity("dataset_id", key, computed)
    verdict.steps.append(("samples", f"{len(ids):,} rows and {n_pictures:,} pictures against their digests"))


def _verify_plan(verdict: Verdict, run: StageContext, ids: RunIds, lake: Lake) -> None:
    """Every question written again from samples and rubrics: request keys, messages, facts, the plan's id."""
    alone = Lake(run.lake.root.parent / "plan")
    adopt(lake, alone, SAMPLES, ids.dataset_id)
    planned = stages.plan(RunContext.of(replace(run, lake=alone)).having(dataset_id=ids.dataset_id))
    verdict.differences += _identity("plan_id", ids.plan_id, planned.plan_id)
    for table in (JUDGEMENTS, REQUESTS):
        verdict.differences += _compare_parts(table, run.lake, ids.plan_id, alone, planned.plan_id)
    verdict.steps.append(("plan", f"{planned.n_requests:,} questions written again from samples and rubrics"))


def _verify_replies(verdict: Verdict, lake: Lake, key: str) -> None:
    """The snapshot's id is the digest of every reply's every column."""
    parts = [pl.read_parquet(path) for path in lake.parts(REPLIES, key)]
    verdict.differences += _identity("snapshot_id", key, snapshot_id([part_digest(part) for part in parts]))
    verdict.steps.append(("replies", f"{sum(part.height for part in parts):,} replies against the snapshot's id"))


def _verify_scores(verdict: Verdict, run: StageContext, ids: RunIds, stored: Lake) -> None:
    """Every reply read again, held against the stored scores."""
    derived = reading_id(ids.snapshot_id, run.rubrics, ids.code_version)
    verdict.differences += _identity("reading_id", ids.reading_id, derived)
    staging, n_rows = stage(run.lake, SCORES), 0
    for path in run.lake.parts(REQUESTS, ids.plan_id):
        index = int(path.stem.removeprefix("part-"))
        replies = run.lake.read_part(REPLIES, ids.snapshot_id, index)
        n_rows += staging.write_part(index, parse_part(pl.read_parquet(path), replies, run.rubrics))
    staging.commit(ids.reading_id)
    verdict.steps.append(("scores", f"{n_rows:,} read again from the replies"))
    with _tried(verdict, SCORES.name):
        verdict.differences += _compare_parts(SCORES, stored, ids.reading_id, run.lake, ids.reading_id)


def _compare_parts(table: Table, stored: Lake, key: str, derived: Lake, derived_key: str) -> Iterator[Difference]:
    mine = {path.name: path for path in stored.parts(table, key)}
    again = {path.name: path for path in derived.parts(table, derived_key)}
    for name in sorted(mine.keys() | again.keys()):
        frames = [pl.read_parquet(side[name]) if name in side else pl.DataFrame() for side in (mine, again)]
        if name in mine and name in again:
            yield from compare_rows(table.name, frames[0], frames[1], table.key)
        else:
            yield Difference(table.name, name, "", f"{frames[0].height} rows", f"{frames[1].height} rows")


def _identity(name: str, published: str, derived: str) -> Iterable[Difference]:
    return [] if published == derived else [Difference(PROVENANCE, "", name, published, derived)]


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
