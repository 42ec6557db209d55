"""The agreement flow: a benchmark's scores held against people's ratings, or a judge's, to a published table. Nobody is asked."""

# The scores are those the ledger has (after `salon run`), or come in as recorded replies on the way.

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import polars as pl

from flows.executors.base import stage_task
from flows.executors.choose import opened_executor
from flows.nights.checkpoints import lineage_of
from flows.nights.index import rewrite_index
from flows.observability.progress import current
from flows.observability.redaction import redacted_errors
from flows.observability.waiting import say_stopping
from flows.run import stages
from flows.run.context import RunContext, open_run
from schemas.errors import InputError
from schemas.tables.agreement import AGREEMENT, CORRECTED, CORRECTED_COMPARISONS, CORRECTED_STANDINGS, RATINGS, VOTES
from schemas.tables.stored import JUDGEMENTS, SCORES
from schemas.tables.table import Table
from tasks.aggregate.agreement.label_next import LabelPlan, Wanted, label_plan
from tasks.aggregate.agreement.rated import names_rated
from tasks.aggregate.agreement.votes import OF_VOTES, headline_of_pairs, tables_held_against, units_of
from tasks.context import Reference, StageContext
from tasks.delimited import separated_otherwise
from tasks.ingest.rating_matching import match_ratings, rated_samples
from tasks.ingest.ratings import SHEET, rating_files, read_ratings
from tasks.ingest.ratings_left_out import check_some_count
from tasks.ingest.votes import match_votes, read_votes
from tasks.lake.reading_through import read_through
from tasks.ledger.import_replies.importing import ImportResult, check_importable
from tasks.publish.agreement import agreement_id, find_agreement, given, publish_agreement
from tasks.publish.duckdb_file import deriving, write_duckdb
from tasks.publish.exports import to_csv
from tasks.publish.folders import Published
from tasks.regular_files import write_new
from tasks.stopping import heeding_sigterm

COMPARED = (AGREEMENT, CORRECTED, CORRECTED_COMPARISONS, CORRECTED_STANDINGS)


@dataclass(frozen=True, slots=True)
class AgreementSummary:
    """What was compared and published."""

    tables: Mapping[Table, pl.DataFrame]
    reference: Reference
    published: Published
    imported: ImportResult | None = None
    has_looks: bool = False


def hold_against_people(
    file: Path,
    ratings: Sequence[Path],
    run_date: date | None = None,
    replies: Path | None = None,
    votes: Sequence[Path] = (),
    against_judge: str | None = None,
) -> AgreementSummary:
    """Hold a benchmark's scores against people's ratings, or against one of its judges.

    file: the benchmark file. ratings: tables of ratings, or folders of them. run_date: its logical date (default: today in
    [nightly] timezone). replies: take in these recorded replies first. votes: tables of votes on pairs of pictures, or folders
    of them. against_judge: the judge in people's place. Raises InputError where the file has none of this name, or no other.
    """
    with heeding_sigterm(say_stopping), redacted_errors():
        run = open_run(file, run_date)
        with opened_executor(run, "local") as executor:
            return _run(RunContext.of(run, executor, current()), ratings, votes, replies, against_judge)


def choose_labels(file: Path, wanted: Wanted, ratings: Sequence[Path], target: Path, run_date: date | None = None) -> LabelPlan:
    """Write the samples people should rate next to `target`, a table of ratings to fill in. Nothing is asked or published.

    file: the benchmark file. ratings: what is rated already. Raises InputError where `target` is there: it may hold ratings.
    """
    with heeding_sigterm(say_stopping), redacted_errors():
        run = open_run(file, run_date)
        with opened_executor(run, "local") as executor, read_through(run.lake) as lake:
            context = RunContext.of(replace(run, lake=lake), executor, current())
            context = context.having(dataset_id=stages.ingest(context).dataset_id)
            context = replace(context, lineage=lineage_of(context))
            _say_separators(context, ratings)
            rated = executor.once(take_ratings, context.stage, ratings) if ratings else RATINGS.empty()
            planned = stages.plan(context)
            context = context.having(plan_id=planned.plan_id)
            context = context.having(snapshot_id=stages.take_snapshot(context, planned))
            context = context.having(reading_id=stages.read(context, planned))
            return executor.once(choose, context.stage, rated, wanted, target)


@stage_task("choose labels")
def choose(context: StageContext, rated: pl.DataFrame, wanted: Wanted, target: Path) -> LabelPlan:
    """The list of samples to rate, written to `target`."""
    lake, ids = context.lake, context.ids
    both = lake.scan(JUDGEMENTS, ids.plan_id), lake.scan(SCORES, ids.reading_id)
    chosen = label_plan(*both, rated, context.rubrics, context.benchmark.nightly.baseline, context.lineage, wanted)
    samples = rated_samples(context.dataset, context.benchmark, context.own_texts)
    path = next((name for name in ("image", "place") if _is_of_one_picture(samples, name)), "source_key")
    order = pl.DataFrame({"sample_id": chosen.sample_ids})
    sheet = order.join(samples, on="sample_id", how="left", maintain_order="left")
    name = names_rated(context.rubrics)[f"{chosen.rubric_id}.{chosen.dimension}"]
    filled_in = {"image": pl.coalesce(path, "source_key"), "dimension": pl.lit(name)}
    sheet = sheet.with_columns(rater=pl.lit(None, pl.String), rating=pl.lit(None, pl.String), **filled_in).select(SHEET)
    try:
        write_new(target, to_csv(sheet))
    except FileExistsError:
        raise InputError(f"{target} already exists and may contain ratings; name a new file after --label-next") from None
    except OSError as error:
        raise InputError(f"{target} cannot be written ({error.strerror}); name another file after --label-next") from error
    return chosen


def _is_of_one_picture(samples: pl.DataFrame, path: str) -> bool:
    """Whether each path opens one picture, which several prompts may be about; else two could not be told apart."""
    return bool(samples.drop_nulls(path).unique([*{path, "place", "image_sha256"}])[path].is_unique().all())


def _run(
    run: RunContext, ratings: Sequence[Path], votes: Sequence[Path], replies: Path | None, judge: str | None
) -> AgreementSummary:
    if judge is not None:
        _check_judge(run, judge)
    if replies:
        check_importable(run.benchmark, run.rubrics, replies)
    dataset = stages.ingest(run)
    run = run.having(dataset_id=dataset.dataset_id)
    run = replace(run, lineage=lineage_of(run))
    _say_separators(run, ratings)
    _say_separators(run, votes)
    rated = run.executor.once(take_ratings, run.stage, ratings) if ratings else RATINGS.empty()
    if ratings:
        check_some_count(rated, "ratings")
    planned = stages.plan(run)
    run = run.having(plan_id=planned.plan_id)
    voted = run.executor.once(take_votes, run.stage, votes) if votes else VOTES.empty()
    if votes:
        check_some_count(voted, "votes")
    imported = stages.import_recorded(run, replies) if replies else None
    run = run.having(snapshot_id=stages.take_snapshot(run, planned))
    run = run.having(reading_id=stages.read(run, planned))
    reference = Reference(rated, voted, judge)
    key = agreement_id(run.benchmark, reference, run.ids, run.run_date, run.lineage)
    context = run.having(publication_id=key).stage
    found = find_agreement(run.lake.root, run.benchmark.name, key)
    if found:
        wanted = (*COMPARED, *(OF_VOTES if votes else ()))
        tables = {table: pl.read_parquet(found / f"{table.name}.parquet") for table in wanted}
    else:
        tables = run.executor.once(compare, context, reference)
    published = run.executor.once(publish, context, tables | given(reference), judge, found is not None)
    return AgreementSummary(tables, reference, published, imported, bool(run.benchmark.statistics.stopping.looks))


def _say_separators(run: RunContext, tables: Sequence[Path]) -> None:
    for table in rating_files(tables):
        if (said := separated_otherwise(table, table.name)) is not None:
            run.reporter.say(said)


def _check_judge(run: RunContext, judge: str) -> None:
    known = [one.id for one in run.benchmark.judges]
    if judge not in known:
        raise InputError(f"judge {judge!r} is not in the benchmark file; available: {', '.join(known)}")
    if len(known) == 1:
        raise InputError(f"{judge} is the only judge of the benchmark file: there is no other to compare with it")


@stage_task("take ratings")
def take_ratings(context: StageContext, paths: Sequence[Path]) -> pl.DataFrame:
    """The `ratings` table: every cell of the tables with the sample that is meant."""
    rated = rated_samples(context.dataset, context.benchmark, context.own_texts)
    return match_ratings(read_ratings(list(paths), context.benchmark.ratings), rated, names_rated(context.rubrics))


@stage_task("take votes")
def take_votes(context: StageContext, paths: Sequence[Path]) -> pl.DataFrame:
    """The `votes` table: every vote with the two samples that are meant."""
    asked = read_votes(list(paths), context.benchmark.ratings.votes, headline_of_pairs(context.rubrics))
    samples = rated_samples(context.dataset, context.benchmark, context.own_texts)
    return match_votes(asked, samples, units_of(context.lake.scan(JUDGEMENTS, context.ids.plan_id), context.rubrics))


@stage_task("compare with people or a judge")
def compare(context: StageContext, reference: Reference) -> dict[Table, pl.DataFrame]:
    """The tables COMPARED, and OF_VOTES where there are votes."""
    return tables_held_against(context, reference)


@stage_task("publish agreement")
def publish(context: StageContext, tables: Mapping[Table, pl.DataFrame], judge: str | None, is_there: bool) -> Published:
    """Write the publication's folder, then its pointer, then salon.duckdb and the index anew."""
    published = publish_agreement(context, tables, judge, is_there=is_there)
    root, name = context.lake.root, context.benchmark.name
    with deriving(root, name):
        write_duckdb(root, name)
    rewrite_index(root)
    return published
