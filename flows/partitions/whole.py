"""Which checkpoints are whole, and whether a publication that stands holds them: what a backfill publishes, and when."""

import json
from collections.abc import Iterator, Sequence

import polars as pl

from flows.nights.checkpoints import in_sources
from flows.nights.drift import standing_publications
from flows.partitions.ends import named
from flows.partitions.plan import BackfillPlan
from flows.partitions.table import OF_CHECKPOINT, PartitionState, asked_alone, asks_pairs_alone, read_partitions
from flows.run.context import RunContext
from flows.run.rounds import due_now
from schemas.tables.stored import SAMPLES
from tasks.context import StageContext
from tasks.ingest.readers import unreadable
from tasks.ingest.sources import expand
from tasks.ledger.open_ledgers import opened
from tasks.ledger.snapshot import parts_to_ask
from tasks.plan.anchors import OFF_BOARD
from tasks.plan.dataset import known_plan
from tasks.publish.identity import benchmark_digest
from tasks.publish.machine_tables import runs
from tasks.publish.reading import Publication, load_cells


def whole_and_there(run: RunContext, planned: BackfillPlan) -> tuple[list[str], list[str]]:
    """The checkpoints that are done and whose pictures a source holds, but those that failed; and those whose pictures are gone.

    Of a benchmark of pairs alone: those that were read, and those of the newest publication by the present settings.
    """
    there = in_sources(run, {})
    done = _met(run, planned) if asks_pairs_alone(run) else whole_checkpoints(run)
    whole = {f"{model}/{checkpoint}": (model, checkpoint) in there for model, checkpoint in done}
    names = [name for name, is_there in whole.items() if is_there and name not in planned.failed]
    broken = _unreadable(run, names) if names else {}
    for name, why in broken.items():
        run.reporter.say(f"{name} is done, but can no longer be read, so new tables leave it out: {why}")
    return [name for name in names if name not in broken], [name for name, is_there in whole.items() if not is_there]


def say_gone(run: RunContext, gone: Sequence[str], *, is_made: bool) -> None:
    """What becomes of checkpoints that are done and whose pictures no source holds any more."""
    if gone:
        no_table = "so no new table is made: the published one keeps them, and `salon run FILE` makes one"
        what = "so they are not in this table" if is_made else f"{no_table} from what the sources contain now"
        run.reporter.say(f"{len(gone)} done, but their pictures are no longer in any source, {what}: {named(gone)}")


def _unreadable(run: RunContext, names: Sequence[str]) -> dict[str, str]:
    """Those of these checkpoints with a folder of their own that cannot be read, and why."""
    sources = [one for one in expand(run.benchmark, run.own_texts, names) if one.has_checkpoint_in_path]
    return {f"{source.model}/{source.checkpoint}": str(error) for source, error in unreadable(sources)}


def is_published(run: RunContext, names: Sequence[str], planned: BackfillPlan) -> bool:
    """Whether a publication by the present settings and rubrics holds all of these checkpoints, with their present samples.

    One that was taken back publishes nothing; one some of whose pairs were not asked is to be made again. Of one that no run has
    recorded its own ended before: the pointers may not name it yet.
    """
    is_of_pairs_alone = asks_pairs_alone(run)
    datasets, mine = _datasets(planned), [one.name for one in planned.checkpoints]
    if not is_of_pairs_alone:
        is_named = pl.concat_str(OF_CHECKPOINT, separator="/").is_in(names)
        done = read_partitions(run).filter(is_named, state=PartitionState.DONE.value)
        datasets, mine = list(done["dataset_id"].unique()), list(names)
    recorded = set(runs(run.lake)["publication_id"])
    for publication, dataset_id in _by_present_settings(run):
        if publication.publication_id not in recorded:
            continue
        held = _checkpoints(run, [dataset_id]) if is_of_pairs_alone else _in_cells(publication)
        is_of_all = set(names) <= {f"{model}/{checkpoint}" for model, checkpoint in held}
        if is_of_all and _has_present_samples(run.stage, mine, [dataset_id, *datasets]) and not _lacks_pairs(run, dataset_id):
            return True
    return False


def _by_present_settings(run: RunContext) -> Iterator[tuple[Publication, str]]:
    """The publications by the present settings and rubrics, oldest first, each with its dataset."""
    digests = {rubric.id: rubric.digest for rubric in run.rubrics.values()}
    for publication in standing_publications(run.lake.root, run.benchmark.name):
        said = publication.provenance()
        if said.get("benchmark_digest") != benchmark_digest(run.benchmark):
            continue
        if {name: rubric["digest"] for name, rubric in said["rubrics"].items()} == digests:
            yield publication, str(said["identities"]["dataset_id"])


def _met(run: RunContext, planned: BackfillPlan) -> list[tuple[str, str]]:
    before = [dataset_id for _, dataset_id in _by_present_settings(run)]
    return _checkpoints(run, [*before[-1:], *_datasets(planned)])


def _datasets(planned: BackfillPlan) -> list[str]:
    return [one.dataset.dataset_id for one in planned.checkpoints]


def _checkpoints(run: RunContext, datasets: Sequence[str]) -> list[tuple[str, str]]:
    """(model, checkpoint) of those with samples in these datasets; of one that is cleared, none."""
    scans = [run.lake.scan(SAMPLES, one).select(OF_CHECKPOINT) for one in datasets if run.lake.is_complete(SAMPLES, one)]
    is_own = ~pl.col("model").is_in(OFF_BOARD)
    return pl.concat(scans).filter(is_own).unique().sort(OF_CHECKPOINT).collect().rows() if scans else []


def _in_cells(publication: Publication) -> list[tuple[str, str]]:
    return load_cells(publication).select(OF_CHECKPOINT).unique().rows()


def _lacks_pairs(run: RunContext, dataset_id: str) -> bool:
    """Whether pairs of a dataset that was published are left to ask: money ended the asking. No where its plan is cleared."""
    mine = RunContext.of(run.stage.having(dataset_id=dataset_id))
    plan = known_plan(mine.stage)
    of_pairs = [part for part in plan.parts if mine.rubrics[part.rubric_id].is_of_pairs] if plan is not None else []
    if plan is None or not of_pairs:
        return False
    mine = mine.having(plan_id=plan.plan_id)
    due = due_now(mine, of_pairs)
    with opened(mine.ledger_url) as ledger:
        return bool(parts_to_ask(mine.stage, due, ledger))


def whole_checkpoints(run: StageContext) -> list[tuple[str, str]]:
    """(model, checkpoint) of those that are done under every rubric for their sources, by every judge that is asked."""
    done = read_partitions(run).filter(state=PartitionState.DONE.value)
    asked = asked_alone(run)
    found: list[tuple[str, str]] = []
    for (model, checkpoint), rows in done.group_by(OF_CHECKPOINT, maintain_order=True):
        sources = {name for listed in rows["sources_json"] for name in json.loads(listed)}
        due = {(rubric_id, judge) for rubric_id, judge in asked if sources & set(run.sources_for(rubric_id))}
        if due <= set(rows.select("rubric_id", "judge_model").iter_rows()):
            found.append((str(model), str(checkpoint)))
    return found


def _has_present_samples(run: StageContext, names: Sequence[str], datasets: Sequence[str]) -> bool:
    """Whether the first dataset's samples of these checkpoints are those that were asked about last, the others' together.

    No where one is cleared.
    """
    is_named, of = pl.concat_str(OF_CHECKPOINT, separator="/").is_in(names), [*OF_CHECKPOINT, "sample_id"]
    if not all(run.lake.is_complete(SAMPLES, one) for one in datasets):
        return False
    published, *asked = (run.lake.scan(SAMPLES, one).select(of).unique().collect() for one in datasets)
    both = [rows.filter(is_named).sort(of) for rows in (published, pl.concat(asked).unique())]
    return both[0].equals(both[1])
