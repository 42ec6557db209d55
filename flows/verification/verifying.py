"""`salon verify`: every stage of a publication made again from what the lake stores, offline, and held against what stands there.

No ledger, no network and no judge has a part. What is made again is written to a temporary folder; the lake is only read. A
bundle is such a lake, with its rubrics beside it. How partitions and tables are compared is tasks/verify.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import polars as pl

from flows.observability.progress import Reporter
from flows.run import stages
from flows.run.context import RunContext
from flows.verification.published import Reopened, give_back, make_tables, open_published
from schemas.errors import InputError, SalonError
from schemas.identities import RunIds
from schemas.tables.stored import JUDGEMENTS, PICTURES, REQUESTS, SAMPLES, SCORES
from tasks.context import StageContext
from tasks.lake.pictures import StoredDataset
from tasks.lake.reading import Lake
from tasks.publish.folders import MANIFEST, PROVENANCE
from tasks.publish.identity import code_version
from tasks.validate.buckets import PARTITIONS
from tasks.verify.bundle import PAGES
from tasks.verify.bundle_opening import OpenedBundle
from tasks.verify.layers import RUBRIC, Layer, LayerResult, Tally, layer_results, tally_of_tables
from tasks.verify.partitions import adopt, check_identity, check_replies, check_samples, compare_parts, read_again
from tasks.verify.publication import check_manifest, check_pointer, compare_pointers, read_provenance
from tasks.verify.recomputed_duckdb import compare_duckdb
from tasks.verify.recomputed_tables import Compared, compare_folders, compare_trees, count_in_tables
from tasks.verify.rows import Difference, Values

_BROKEN = (ValueError, TypeError, AttributeError, LookupError, RecursionError, OSError, pl.exceptions.PolarsError)
"""What reading and using a file raises that holds something else than it should."""


@dataclass(slots=True)
class Verdict:
    """What was made again, and every difference. `steps` are (stage, what was done) for people, in order.

    `found` are the differences by the step that found them, in order too: what differs first is the cause of what follows.
    """

    folder: Path
    bundle: OpenedBundle | None = None
    steps: list[tuple[str, str]] = field(default_factory=list)
    found: dict[str, list[Difference]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    tallies: list[Tally] = field(default_factory=list)
    made_by: str | None = None  # the code's version that the publication names
    values: Values | None = None  # of the tables, where other code made them: whether their numbers hold
    advice: list[str] = field(default_factory=list)  # where what was given to verify by is not what it was published from

    def add(self, step: str, found: Iterable[Difference], done: str, tally: Tally | None = None) -> None:
        """Note a step, what it found, and of how many."""
        self.differ(step, found)
        self.tallies += [tally] if tally else []
        self.steps.append((step, done))

    def differ(self, step: str, found: Iterable[Difference]) -> None:
        """Note what a step found."""
        if mine := list(found):
            self.found.setdefault(step, []).extend(mine)

    @property
    def differences(self) -> list[Difference]:
        """Every difference, in the order of the steps."""
        return [one for mine in self.found.values() for one in mine]

    @property
    def is_verified(self) -> bool:
        """Whether everything could be made again and is the same."""
        return not self.found

    @property
    def is_bare(self) -> bool:
        """Whether it is of a bundle that says it holds no pictures."""
        return self.bundle is not None and not self.bundle.name.has_pictures

    @property
    def left_out(self) -> tuple[str, ...]:
        """The endings of published files that cannot be made again without pictures, where there are none."""
        return PAGES if self.is_bare else ()

    @property
    def layers(self) -> list[LayerResult]:
        """Of each layer what was derived again, what could not be, and what differs."""
        return layer_results(self.tallies, self.differences)


def verify_bundle(bundle: OpenedBundle, reporter: Reporter) -> Verdict:
    """Verify a bundle, from what is in it alone: whatever is wrong with its rubrics is a difference too."""
    return verify(bundle.folder, Lake(bundle.root), reporter, None, [bundle.rubrics], bundle=bundle)


_ADVICE = "name its folder with --rubrics DIR, or its benchmark file with --file FILE"


def verify(
    folder: Path,
    lake: Lake,
    reporter: Reporter,
    file: Path | None = None,
    rubrics: Sequence[Path] = (),
    *,
    bundle: OpenedBundle | None = None,
) -> Verdict:
    """Verify one published folder.

    `file` is its benchmark file, `rubrics` folders of rubrics of one's own. Raises InputError where what is given is not what
    it was published from; whatever is found in the lake, missing and broken files included, is a difference.
    """
    verdict = Verdict(folder, bundle)
    with _step(verdict, reporter, "manifest"):
        found = [*check_manifest(folder, may_lack=verdict.left_out), *check_pointer(folder)]
        n_files = sum(path.name != MANIFEST for path in folder.iterdir())
        verdict.add("manifest", found, f"{n_files} files against their checksums, and the pointer")
    said = read_provenance(folder)
    if said is None:
        _differ_at_start(verdict, Difference(PROVENANCE, "", "", "no readable provenance", "what it was made from"))
        return verdict
    with tempfile.TemporaryDirectory(prefix="salon-verify-") as temporary:
        try:
            own, advice, kept_in = Path(temporary) / "lake", "" if bundle else _ADVICE, None if bundle else lake.root
            published = open_published(folder, said, own, file, rubrics, advice=advice, kept_in=kept_in)
        except InputError as error:
            if bundle is None:
                raise  # it is of what the user named
            _differ_at_start(verdict, Difference(RUBRIC, "", "", "as published", _one_line(error)))
            return verdict
        except _BROKEN as error:
            _differ_at_start(verdict, Difference(PROVENANCE, "", "", _one_line(error), "what it was made from"))
            return verdict
        _differ_at_start(verdict, *published.differences)
        verdict.advice += [
            f"rubric {name} in {at} differs from the published one (its text, scale or rules changed since), which may "
            "cause the other differences: restore it, or give a folder with the old version: --rubrics DIR"
            for name, at in published.other_rubrics.items()
            if bundle is None
        ]
        verdict.notes += published.notes
        verdict.made_by = published.run.ids.code_version
        if bundle is None and verdict.made_by != code_version():
            verdict.notes.append(
                f"made by code version {verdict.made_by[:12]}, verified by {code_version()[:12]}: differences may come from the "
                "code; to be sure, verify with the version that published it"
            )
        _verify_stages(verdict, published, lake, reporter)
    return verdict


def _differ_at_start(verdict: Verdict, *found: Difference) -> None:
    if found:
        verdict.add("provenance", found, "settings, rubrics and identities, from which the publication's id is derived")


def _verify_stages(verdict: Verdict, published: Reopened, lake: Lake, reporter: Reporter) -> None:
    """Each stage is made again from the stored output of the one before, so that a difference is said where it arose."""
    run, ids = published.run, published.run.ids
    stored = Lake(run.lake.root.parent / "stored")
    with _step(verdict, reporter, "lake"):
        differing, n_files = list[Difference](), 0
        for table, name in PARTITIONS.items():
            # Scores are made again under their own name in the run's lake: those that were stored are put aside.
            found, n_parts = adopt(lake, stored if table is SCORES else run.lake, table, getattr(ids, name))
            differing += found
            n_files += n_parts
        if StoredDataset(lake, ids.dataset_id).table_of_pictures is PICTURES:
            found, n_parts = adopt(lake, run.lake, PICTURES, ids.dataset_id)
            differing += found
            n_files += n_parts
        verdict.add("lake", differing, f"{n_files} files of {len(PARTITIONS)} tables against their checksums")
    with _step(verdict, reporter, "samples"):
        advance: Callable[[int], None] = partial(reporter.advance, "samples")
        found, done, tally = check_samples(run.lake, ids, advance, may_lack_pictures=verdict.is_bare)
        verdict.add("samples", found, done, tally)
    with _step(verdict, reporter, "plan"):
        _verify_plan(verdict, run, ids, lake)
        give_back()
    with _step(verdict, reporter, "replies"):
        verdict.add("replies", *check_replies(run.lake, ids))
    again: Path | None = None
    with _step(verdict, reporter, "scores"):
        verdict.add("scores", *read_again(run.lake, ids, run.rubrics, run.benchmark.judges))
        with _tried(verdict, SCORES.name):
            verdict.differ(SCORES.name, compare_parts(SCORES, stored, ids.reading_id, run.lake, ids.reading_id))
        with _step(verdict, reporter, "tables"):
            again = make_tables(published)
            _verify_tables(verdict, again, lake, published.run.lake)
    with _step(verdict, reporter, "duckdb"):
        file = compare_duckdb(verdict.folder, lake.root, again)
        verdict.notes += file.notes
        verdict.add("duckdb", file.differences, file.done)


def _verify_plan(verdict: Verdict, run: StageContext, ids: RunIds, lake: Lake) -> None:
    """Every question written again from samples and rubrics: request keys, messages, facts, the plan's id."""
    alone = Lake(run.lake.root.parent / "plan")
    adopt(lake, alone, SAMPLES, ids.dataset_id)
    planned = stages.plan(RunContext.of(replace(run, lake=alone)).having(dataset_id=ids.dataset_id))
    found = check_identity("plan_id", ids.plan_id, planned.plan_id)
    for table in (JUDGEMENTS, REQUESTS):
        found += compare_parts(table, run.lake, ids.plan_id, alone, planned.plan_id)
    tally = Tally(Layer.REQUEST, run.lake.n_rows(REQUESTS, ids.plan_id), "requests")
    verdict.add("plan", found, f"{planned.n_requests:,} requests rebuilt from samples and rubrics", tally)


def _verify_tables(verdict: Verdict, again: Path, lake: Lake, own: Lake) -> None:
    """The published folder against `again`, which was made in the run's own lake.

    Of a bundle not the tables for machines, whose digests stand in a file of the folder.
    """
    if verdict.made_by != code_version():
        verdict.values = count_in_tables(verdict.folder, again)
    is_alone = verdict.bundle is not None
    trees = Compared() if is_alone else compare_trees(verdict.folder, lake.root, again, own.root)
    folder = compare_folders(verdict.folder, again, verdict.left_out, None if is_alone else trees.rewritten)
    pointers = compare_pointers(verdict.folder, again, is_rewritten=bool(folder.rewritten))
    verdict.notes += [*folder.notes, *trees.notes]
    tally = tally_of_tables(verdict.folder, verdict.left_out)
    found = [*folder.differences, *pointers, *trees.differences]
    verdict.add("tables", found, f"{sum(1 for _ in again.iterdir())} files rebuilt, values and bytes compared", tally)


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
        verdict.differ(place, [Difference(place, "", "", "as published", f"cannot be rebuilt: {_one_line(error)}")])
        if place not in dict(verdict.steps):
            verdict.steps.append((place, "stopped, it cannot be rebuilt"))


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]
