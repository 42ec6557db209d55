"""A publication's page: its tables, provenance and gallery as one HTML file. It knows nothing that is not handed to it."""

from collections.abc import Mapping

import polars as pl

from schemas import tables as t
from schemas.tables import Table
from tasks.publish.folders import PublicationName
from tasks.publish.report import sections
from tasks.publish.report.boards import boards, by_judge, glance
from tasks.publish.report.environment import render
from tasks.publish.report.figures import figures
from tasks.publish.report.gallery import Gallery

N_CHARTED = 8
"""Rankings with charts: four charts take 0.2 s. The others have their tables."""


def report_page(
    name: PublicationName, tables: Mapping[Table, pl.DataFrame], provenance: Mapping[str, object], gallery: Gallery
) -> bytes:
    """The report as UTF-8 HTML: the same inputs give the same bytes. Of the tables only benchmark_long has to be there."""
    found = boards(tables)
    headlines = [board for board in found if board.is_headline]
    health = sections.health(tables)
    reliability, jury = sections.reliability(tables)
    return render(
        "report.html.j2",
        benchmark=name.benchmark,
        run_date=name.run_date.isoformat(),
        publication_id=name.publication_id,
        provenance=provenance,
        groups=by_judge(found),
        glance=glance(headlines),
        headlines=headlines,
        figures={board.anchor: figures(board) for board in headlines[:N_CHARTED]},
        health=health,
        failures_figure=sections.failures_figure(health),
        checks=sections.checks(tables),
        agreement=sections.human_agreement(tables),
        reliability=reliability,
        jury=jury,
        gallery=gallery,
        choices=sections.choices(gallery, found),
        tables={table.name: table for table in t.TABLES.values()},
        published=sorted(table.name for table in tables),
    )
