"""The agreement flow: a benchmark's scores held against people's ratings, to a published table. Nobody is asked."""

# The scores are those the ledger has (after `salon run`), or come in as recorded replies on the way.

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import polars as pl
from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from flows.executors.base import as_prefect_tasks
from flows.observability.progress import current
from flows.observability.redaction import redacted_errors
from flows.run import stages
from flows.run.context import open_run
from schemas.benchmark import Ratings
from schemas.tables import AGREEMENT, CORRECTED, JUDGEMENTS, RATINGS, SCORES
from tasks.aggregate.agreement.agreement import agreement
from tasks.aggregate.agreement.corrected import corrected
from tasks.context import StageContext
from tasks.ingest.rating_matching import match_ratings, rated_samples
from tasks.ingest.ratings import read_ratings
from tasks.lake.reading import Lake
from tasks.ledger.import_replies.importing import ImportResult
from tasks.publish.agreement import agreement_id, find_agreement, publish_agreement, ratings_digest
from tasks.publish.code_version import code_version
from tasks.publish.identity import provenance
from tasks.publish.publication import Published
from tasks.stopping import heeding_sigterm

N_WAITING = 4  # shards submitted ahead of the one whose result is awaited


@dataclass(frozen=True, slots=True)
class AgreementSummary:
    """What was compared and published."""

    agreement: pl.DataFrame
    corrected: pl.DataFrame
    ratings: pl.DataFrame
    published: Published
    imported: ImportResult | None = None


@flow(name="agreement", flow_run_name="{file.parent.name}/{file.stem}")
def hold_against_people(
    file: Path, ratings: Sequence[Path], run_date: date | None = None, replies: Path | None = None
) -> AgreementSummary:
    """Hold a benchmark's scores against people's ratings.

    file: the benchmark file. ratings: tables of ratings, or folders of them. run_date: its logical date (default: today, UTC).
    replies: take in these recorded replies first.
    """
    with heeding_sigterm(), redacted_errors():
        return _run(file, ratings, run_date, replies)


def _run(file: Path, ratings: Sequence[Path], run_date: date | None, replies: Path | None) -> AgreementSummary:
    run = open_run(file, run_date)
    reporter, fan_out = current(), as_prefect_tasks(N_WAITING)
    dataset = stages.ingest(run, fan_out, reporter)
    rated = take_ratings(run.lake, dataset.dataset_id, list(ratings), run.benchmark.ratings)
    planned = stages.plan(run, dataset.dataset_id, fan_out, reporter)
    imported = stages.import_recorded(run, dataset.dataset_id, planned, replies) if replies else None
    code = code_version()
    snapshot = stages.take_snapshot(run, planned, fan_out, reporter)
    reading = stages.read(run, planned, snapshot, code, fan_out, reporter)
    made_of = {"dataset_id": dataset.dataset_id, "plan_id": planned.plan_id, "reading_id": reading, "code_version": code}
    key = agreement_id(rated, run_date=run.run_date, **made_of)
    found = find_agreement(run.lake.root, run.benchmark.name, key)
    if found:
        tables = pl.read_parquet(found / f"{AGREEMENT.name}.parquet"), pl.read_parquet(found / f"{CORRECTED.name}.parquet")
    else:
        tables = compare(run, rated, made_of, key)
    published = publish(run, rated, tables, key, made_of | {"snapshot_id": snapshot})
    return AgreementSummary(*tables, rated, published, imported)


@task(name="take ratings", cache_policy=NO_CACHE)
def take_ratings(lake: Lake, dataset_id: str, paths: list[Path], how: Ratings) -> pl.DataFrame:
    """The `ratings` table: every cell of the tables with the sample that is meant."""
    return match_ratings(read_ratings(paths, how), rated_samples(lake, dataset_id))


@task(name="compare with people", cache_policy=NO_CACHE)
def compare(run: StageContext, rated: pl.DataFrame, made_of: Mapping[str, str], key: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The tables `agreement` and `corrected`."""
    judgements = run.lake.scan(JUDGEMENTS, made_of["plan_id"])
    scores = run.lake.scan(SCORES, made_of["reading_id"])
    name, dataset_id = run.benchmark.name, made_of["dataset_id"]
    common = {"benchmark": name, "dataset_id": dataset_id, "run_id": key}
    return (
        agreement(judgements, scores, rated, run.rubrics, run_date=run.run_date, **common),
        corrected(judgements, scores, rated, run.rubrics, run_date=run.run_date, **common),
    )


@task(name="publish agreement", cache_policy=NO_CACHE)
def publish(
    run: StageContext, rated: pl.DataFrame, tables: tuple[pl.DataFrame, pl.DataFrame], key: str, identities: Mapping[str, str]
) -> Published:
    """Write the publication's folder, then its pointer."""
    made = provenance(run.benchmark, run.rubrics, ratings_sha256=ratings_digest(rated), **identities)
    return publish_agreement(
        run.lake.root,
        key=key,
        benchmark=run.benchmark.name,
        run_date=run.run_date,
        agreement=tables[0],
        corrected=tables[1],
        ratings=rated.select(RATINGS.columns),
        provenance=made,
    )
