"""The Prefect task of publishing. The work is in publication.py, the report's in report/."""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl
from prefect import task

from schemas.tables import BENCHMARK_LONG, Table
from tasks.context import StageContext
from tasks.prefect_options import OPTIONS
from tasks.publish.folders import REPORT, PublicationName, Published
from tasks.publish.identity import provenance
from tasks.publish.publication import Draft, publish
from tasks.publish.report.gallery import gallery_of
from tasks.publish.report.page import report_page


@dataclass(frozen=True, slots=True)
class RunTables:
    """Every table of a run; of a publication that `is_there` already its cells, which say if it may become the current one."""

    by_table: Mapping[Table, pl.DataFrame]
    is_there: bool = False


@task(name="publish tables", task_run_name="publish tables", **OPTIONS)
def publish_tables(context: StageContext, tables: RunTables) -> Published:
    """Write the publication's folder with its report, then move the pointer."""
    name = PublicationName(context.benchmark.name, context.ids.publication_id, context.run_date)
    said, pages = provenance(context), {}
    if not tables.is_there:
        gallery = gallery_of(context.lake, context.ids, tables.by_table[BENCHMARK_LONG])
        pages = {REPORT: report_page(name, tables.by_table, said, gallery)}
    return publish(context.lake.root, Draft(name, tables.by_table, said, pages, is_there=tables.is_there))
