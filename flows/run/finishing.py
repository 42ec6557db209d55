"""The end of a run: check the stored tables, compute the cells, publish. What comes before is stages.py."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from flows.executors.base import FanOut, one
from flows.observability.progress import Reporter
from schemas.errors import GateBlockedError
from schemas.metrics import means_for_prompts_like_these
from schemas.tables import BENCHMARK_LONG, CHECKS, JUDGEMENTS, POOLED, QUARANTINE, REPLIES, SCORES, Table
from tasks.aggregate.prefect_tasks import compute_tables, pool_judges, weigh_judges
from tasks.aggregate.tables import Run
from tasks.context import StageContext
from tasks.publish.folders import LAYOUT, REPORT, is_published
from tasks.publish.identity import benchmark_digest, provenance, publication_id
from tasks.publish.prefect_tasks import publish_tables
from tasks.publish.publication import Published
from tasks.publish.reading import find_publication, load_cells
from tasks.publish.report.gallery import gallery_of
from tasks.publish.report.page import report_page
from tasks.validate.checks import ValidationResult
from tasks.validate.prefect_tasks import check_data


@dataclass(frozen=True, slots=True)
class Made:
    """The partitions a run has made, from which alone it publishes, and the code that made them."""

    dataset_id: str
    plan_id: str
    snapshot_id: str
    reading_id: str
    code_version: str


def finish(run: StageContext, made: Made, fan_out: FanOut, reporter: Reporter) -> tuple[Published, pl.DataFrame]:
    """Check, aggregate and publish; a publication that exists is found, not made again. Returns it with its cells.

    Raises GateBlockedError where a blocking check failed: nothing is published, and the failing rows stand in the lake's
    `checks` and `quarantine`.
    """
    name = run.benchmark.name
    key = publication_id(
        reading_id=made.reading_id,
        plan_id=made.plan_id,
        dataset_id=made.dataset_id,
        benchmark_digest=benchmark_digest(run.benchmark),
        run_date=run.run_date,
        code_version=made.code_version,
    )
    folder = run.lake.root / "publish" / LAYOUT / name / key
    if is_published(folder):
        cells = load_cells(find_publication(run.lake.root, key))
        empty = {table: pl.DataFrame(table.schema().empty_table()) for table in (CHECKS, QUARANTINE)}
        return publish(run, made, key, {BENCHMARK_LONG: cells} | empty, fan_out), means_for_prompts_like_these(cells)
    result = _check(run, made, key, fan_out, reporter)
    reporter.start("aggregate", 1)
    tables = tables_of(run, made, key, fan_out) | {CHECKS: result.checks, QUARANTINE: result.quarantine}
    reporter.finish("aggregate")
    return publish(run, made, key, tables, fan_out), means_for_prompts_like_these(tables[BENCHMARK_LONG])


def tables_of(run: StageContext, made: Made, key: str, fan_out: FanOut) -> dict[Table, pl.DataFrame]:
    """Every table of figures the publication `key` holds, from the partitions it is made of."""
    judged = {"judgements": run.lake.scan(JUDGEMENTS, made.plan_id), "scores": run.lake.scan(SCORES, made.reading_id)}
    settings = Run(
        benchmark=run.benchmark.name,
        dataset_id=made.dataset_id,
        run_id=key,
        run_date=run.run_date,
        min_coverage=run.benchmark.gate.min_coverage,
        statistics=run.benchmark.statistics,
        baseline=run.benchmark.nightly.baseline,
    )
    replies = run.lake.scan(REPLIES, made.snapshot_id)
    tables: dict[Table, pl.DataFrame] = one(fan_out, compute_tables, **judged, replies=replies, rubrics=run.rubrics, run=settings)
    if len(run.benchmark.judges) > 1 or any(judge.repeats > 1 for judge in run.benchmark.judges):
        tables |= one(fan_out, weigh_judges, **judged)
    if len(run.benchmark.judges) > 1:
        tables[POOLED] = one(fan_out, pool_judges, **judged, rubrics=run.rubrics, run=settings)
    return tables


def _check(run: StageContext, made: Made, run_id: str, fan_out: FanOut, reporter: Reporter) -> ValidationResult:
    reporter.start("check", 1)
    docs = run.lake.root / "data_docs" / run_id
    result: ValidationResult = one(
        fan_out,
        check_data,
        lake=run.lake,
        dataset_id=made.dataset_id,
        plan_id=made.plan_id,
        snapshot_id=made.snapshot_id,
        reading_id=made.reading_id,
        rubrics=run.rubrics,
        code_version=made.code_version,
        run_id=run_id,
        docs_folder=docs,
    )
    reporter.finish("check")
    if result.is_blocked:
        raise GateBlockedError(
            "nothing was published: a blocking data check failed.\n  "
            + "\n  ".join(result.sentences)
            + f"\n  The data docs are in {docs / 'index.html'}; failing rows in the lake's quarantine table."
        )
    return result


def publish(run: StageContext, made: Made, key: str, tables: Mapping[Table, pl.DataFrame], fan_out: FanOut) -> Published:
    """Write the publication `key` of these tables, with its report, unless it is there."""
    required = (BENCHMARK_LONG, CHECKS, QUARANTINE)
    said = provenance(
        run.benchmark,
        run.rubrics,
        dataset_id=made.dataset_id,
        plan_id=made.plan_id,
        snapshot_id=made.snapshot_id,
        reading_id=made.reading_id,
        code_version=made.code_version,
    )
    is_there = is_published(run.lake.root / "publish" / LAYOUT / run.benchmark.name / key)
    published: Published = one(
        fan_out,
        publish_tables,
        lake_root=run.lake.root,
        publication_id=key,
        benchmark=run.benchmark.name,
        run_date=run.run_date,
        cells=tables[BENCHMARK_LONG],
        checks=tables[CHECKS],
        quarantine=tables[QUARANTINE],
        further={table: frame for table, frame in tables.items() if table not in required},
        provenance=said,
        pages={} if is_there else {REPORT: _page(run, key, tables, said)},
    )
    return published


def _page(run: StageContext, key: str, tables: Mapping[Table, pl.DataFrame], said: Mapping[str, Any]) -> bytes:
    """The publication's report.html, with its gallery from the lake."""
    return report_page(
        tables,
        provenance=said,
        benchmark=run.benchmark.name,
        run_date=run.run_date,
        publication_id=key,
        gallery=gallery_of(run.lake, said["identities"], tables[BENCHMARK_LONG]),
    )
