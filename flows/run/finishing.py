"""The end of a run: check the stored tables, compute the cells, publish. What comes before is stages.py."""

import polars as pl

from flows.run.context import RunContext
from flows.run.prefect_tasks import RunTables, check_data, compute_tables, pool_judges, publish_tables, weigh_judges
from schemas.errors import GateBlockedError
from schemas.metrics import means_for_prompts_like_these
from schemas.tables import BENCHMARK_LONG, CHECKS, POOLED, QUARANTINE, Table
from tasks.publish.folders import Published, is_published, publication_folder
from tasks.publish.identity import publication_id
from tasks.publish.reading import find_publication, load_cells
from tasks.validate.check_cache import docs_folder
from tasks.validate.gate_and_quarantine import ValidationResult


def finish(run: RunContext) -> tuple[Published, pl.DataFrame]:
    """Check, aggregate and publish; a publication that exists is found, not made again. Returns it with its cells.

    Raises GateBlockedError where a blocking check failed: nothing is published, and the failing rows stand in the lake's
    `checks` and `quarantine`.
    """
    key = publication_id(run.benchmark, run.ids, run.run_date)
    run = run.having(publication_id=key)
    if is_published(publication_folder(run.lake.root, run.benchmark.name, key)):
        cells = load_cells(find_publication(run.lake.root, key))
        tables = RunTables({BENCHMARK_LONG: cells}, is_there=True)
    else:
        result = _check(run)
        run.reporter.start("aggregate", 1)
        made = tables_of(run)
        run.reporter.finish("aggregate")
        cells = made[BENCHMARK_LONG]
        tables = RunTables(made | {CHECKS: result.checks, QUARANTINE: result.quarantine})
    return run.executor.once(publish_tables, run.stage, tables), means_for_prompts_like_these(cells)


def tables_of(run: RunContext) -> dict[Table, pl.DataFrame]:
    """Every table of figures the publication holds, from the partitions it is made of."""
    judges = run.benchmark.judges
    tables: dict[Table, pl.DataFrame] = run.executor.once(compute_tables, run.stage)
    if len(judges) > 1 or any(judge.repeats > 1 for judge in judges):
        reliability: dict[Table, pl.DataFrame] = run.executor.once(weigh_judges, run.stage)
        tables |= reliability
    if len(judges) > 1:
        tables[POOLED] = run.executor.once(pool_judges, run.stage)
    return tables


def _check(run: RunContext) -> ValidationResult:
    run.reporter.start("check", 1)
    result = run.executor.once(check_data, run.stage)
    run.reporter.finish("check")
    if result.is_blocked:
        raise GateBlockedError(
            "nothing was published: a blocking data check failed.\n  "
            + "\n  ".join(result.sentences)
            + f"\n  The data docs are in {docs_folder(run) / 'index.html'}; failing rows in the lake's quarantine table."
        )
    return result
