"""The end of a run: check the stored tables, compute the cells, publish. What comes before is stages.py."""

from dataclasses import replace

import polars as pl

from flows.executors.base import FanOut, one
from flows.observability.progress import Reporter
from schemas.errors import GateBlockedError
from schemas.identities import RunIds
from schemas.metrics import means_for_prompts_like_these
from schemas.tables import BENCHMARK_LONG, CHECKS, POOLED, QUARANTINE, Table
from tasks.aggregate.prefect_tasks import compute_tables, pool_judges, weigh_judges
from tasks.context import StageContext
from tasks.publish.folders import Published, is_published, publication_folder
from tasks.publish.identity import publication_id
from tasks.publish.prefect_tasks import RunTables, publish_tables
from tasks.publish.reading import find_publication, load_cells
from tasks.validate.check_cache import docs_folder
from tasks.validate.checks import ValidationResult
from tasks.validate.prefect_tasks import check_data


def finish(run: StageContext, ids: RunIds, fan_out: FanOut, reporter: Reporter) -> tuple[Published, pl.DataFrame]:
    """Check, aggregate and publish; a publication that exists is found, not made again. Returns it with its cells.

    Raises GateBlockedError where a blocking check failed: nothing is published, and the failing rows stand in the lake's
    `checks` and `quarantine`.
    """
    key = publication_id(run.benchmark, ids, run.run_date)
    context = replace(run, ids=replace(ids, publication_id=key))
    if is_published(publication_folder(run.lake.root, run.benchmark.name, key)):
        cells = load_cells(find_publication(run.lake.root, key))
        tables = RunTables({BENCHMARK_LONG: cells}, is_there=True)
    else:
        result = _check(context, fan_out, reporter)
        reporter.start("aggregate", 1)
        made = tables_of(context, fan_out)
        reporter.finish("aggregate")
        cells = made[BENCHMARK_LONG]
        tables = RunTables(made | {CHECKS: result.checks, QUARANTINE: result.quarantine})
    return publish(context, tables, fan_out), means_for_prompts_like_these(cells)


def publish(context: StageContext, tables: RunTables, fan_out: FanOut) -> Published:
    """Write the publication of these tables, with its report, and move the pointer."""
    published: Published = one(fan_out, publish_tables, context=context, tables=tables)
    return published


def tables_of(context: StageContext, fan_out: FanOut) -> dict[Table, pl.DataFrame]:
    """Every table of figures the publication holds, from the partitions it is made of."""
    judges = context.benchmark.judges
    tables: dict[Table, pl.DataFrame] = one(fan_out, compute_tables, context=context)
    if len(judges) > 1 or any(judge.repeats > 1 for judge in judges):
        tables |= one(fan_out, weigh_judges, context=context)
    if len(judges) > 1:
        tables[POOLED] = one(fan_out, pool_judges, context=context)
    return tables


def _check(context: StageContext, fan_out: FanOut, reporter: Reporter) -> ValidationResult:
    reporter.start("check", 1)
    result: ValidationResult = one(fan_out, check_data, context=context)
    reporter.finish("check")
    if result.is_blocked:
        raise GateBlockedError(
            "nothing was published: a blocking data check failed.\n  "
            + "\n  ".join(result.sentences)
            + f"\n  The data docs are in {docs_folder(context) / 'index.html'}; failing rows in the lake's quarantine table."
        )
    return result
