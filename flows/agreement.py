"""The agreement flow: a benchmark's scores held against people's ratings, to a published table. Nobody is asked."""

# The scores are those the ledger has (after `salon run`), or come in as recorded replies on the way.

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import polars as pl

from flows.executors.base import stage_task
from flows.executors.choose import opened_executor
from flows.observability.progress import current
from flows.observability.redaction import redacted_errors
from flows.run import stages
from flows.run.context import RunContext, open_run
from schemas.tables import AGREEMENT, CORRECTED, RATINGS, Table
from tasks.aggregate.agreement.corrected import agreement_tables
from tasks.context import StageContext
from tasks.ingest.rating_matching import match_ratings, rated_samples
from tasks.ingest.ratings import read_ratings
from tasks.ledger.import_replies.importing import ImportResult, check_importable
from tasks.publish.agreement import agreement_id, find_agreement, publish_agreement
from tasks.publish.folders import Published
from tasks.stopping import heeding_sigterm


@dataclass(frozen=True, slots=True)
class AgreementSummary:
    """What was compared and published."""

    agreement: pl.DataFrame
    corrected: pl.DataFrame
    ratings: pl.DataFrame
    published: Published
    imported: ImportResult | None = None


def hold_against_people(
    file: Path, ratings: Sequence[Path], run_date: date | None = None, replies: Path | None = None
) -> AgreementSummary:
    """Hold a benchmark's scores against people's ratings.

    file: the benchmark file. ratings: tables of ratings, or folders of them. run_date: its logical date (default: today, UTC).
    replies: take in these recorded replies first.
    """
    with heeding_sigterm(), redacted_errors():
        run = open_run(file, run_date)
        with opened_executor(run, "local") as executor:
            return _run(RunContext.of(run, executor, current()), ratings, replies)


def _run(run: RunContext, ratings: Sequence[Path], replies: Path | None) -> AgreementSummary:
    if replies:
        check_importable(run.benchmark, replies)
    dataset = stages.ingest(run)
    run = run.having(dataset_id=dataset.dataset_id)
    rated = run.executor.once(take_ratings, run.stage, ratings)
    planned = stages.plan(run)
    run = run.having(plan_id=planned.plan_id)
    imported = stages.import_recorded(run, replies) if replies else None
    run = run.having(snapshot_id=stages.take_snapshot(run, planned))
    run = run.having(reading_id=stages.read(run, planned))
    key = agreement_id(rated, run.ids, run.run_date)
    context = run.having(publication_id=key).stage
    found = find_agreement(run.lake.root, run.benchmark.name, key)
    if found:
        tables = {table: pl.read_parquet(found / f"{table.name}.parquet") for table in (AGREEMENT, CORRECTED)}
    else:
        tables = run.executor.once(compare, context, rated)
    tables_and_ratings = tables | {RATINGS: rated.select(RATINGS.columns)}
    published = run.executor.once(publish, context, tables_and_ratings, found is not None)
    return AgreementSummary(tables[AGREEMENT], tables[CORRECTED], rated, published, imported)


@stage_task("take ratings")
def take_ratings(context: StageContext, paths: Sequence[Path]) -> pl.DataFrame:
    """The `ratings` table: every cell of the tables with the sample that is meant."""
    rated = rated_samples(context.lake, context.ids.dataset_id)
    return match_ratings(read_ratings(list(paths), context.benchmark.ratings), rated)


@stage_task("compare with people")
def compare(context: StageContext, rated: pl.DataFrame) -> dict[Table, pl.DataFrame]:
    """The tables `agreement` and `corrected`."""
    return agreement_tables(context, rated)


@stage_task("publish agreement")
def publish(context: StageContext, tables: Mapping[Table, pl.DataFrame], is_there: bool) -> Published:
    """Write the publication's folder, then its pointer."""
    return publish_agreement(context, tables, is_there=is_there)
