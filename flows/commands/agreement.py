"""`salon agreement`: a benchmark's scores against people's ratings, and what is printed of it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import polars as pl
import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from flows.commands.running import BenchmarkFile, RunDate, shown_by_prefect
from flows.commands.tables import print_imported
from flows.observability.progress import shown_progress
from flows.observability.terminal import Console, name_of, one_line, result_console
from flows.run.context import open_run
from schemas.statuses import AgreementMetric, Total
from tasks.ingest.rating_matching import examples

if TYPE_CHECKING:
    from flows.agreement import AgreementSummary

SHOWN = {
    AgreementMetric.SPEARMAN: "Spearman",
    AgreementMetric.KENDALL_TAU_B: "Kendall tau-b",
    AgreementMetric.QUADRATIC_KAPPA: "kappa",
    AgreementMetric.KRIPPENDORFF_ALPHA: "alpha",
}


def agreement(
    file: BenchmarkFile,
    ratings: Annotated[list[Path], typer.Option(help="A table of people's ratings, or a folder of them; may be given again.")],
    replies: Annotated[Path | None, typer.Option(help="Take in these recorded replies first, as `salon import` does.")] = None,
    run_date: RunDate = None,
) -> int:
    """Hold the scores at hand against people's ratings and publish the agreement; nobody is asked."""
    day = run_date.date() if run_date else None
    open_run(file, day)  # what is wrong with the file is said at once
    from flows.agreement import hold_against_people

    tables = [path.absolute() for path in ratings]
    with shown_progress():
        summary = shown_by_prefect(hold_against_people)(file.absolute(), tables, day, replies.absolute() if replies else None)
    _print(result_console(), summary)
    return 0


def _print(console: Console, summary: "AgreementSummary") -> None:
    overall = summary.agreement.filter(pl.col("model") == "__all__", pl.col("category") == Total.MICRO.value)
    for (rubric_id, dimension), rows in overall.group_by("rubric_id", "dimension", maintain_order=True):
        console.print(Text.assemble((one_line(str(dimension)), "bold"), one_line(f", rubric {rubric_id}")))
        console.print(_table(rows.filter(pl.col("against_dimension").is_null())))
        console.print()
    counts = dict(summary.ratings.group_by("status").len().sort("status").iter_rows())
    console.print(f"ratings     {summary.ratings.height:,}: " + ", ".join(f"{n:,} {word}" for word, n in counts.items()))
    for example in examples(summary.ratings):
        console.print(f"            left out: {escape(one_line(example))}")
    if summary.imported is not None:
        print_imported(console, summary.imported)
    published = summary.published
    word = "new" if published.is_new else "unchanged: the same inputs were published before"
    console.print(f"publication {published.publication_id[:16]} ({word})")
    console.print(f"files       {escape(one_line(str(published.folder)))}/")


def _table(rows: pl.DataFrame) -> Table:
    table = Table("", "against", *SHOWN.values(), "samples", box=None, padding=(0, 1), header_style="dim")
    for (kind, subject, against), mine in rows.group_by("subject_kind", "subject", "against", maintain_order=True):
        by_metric = {row["metric"]: row for row in mine.iter_rows(named=True)}
        figures = [_figure(by_metric.get(metric.value)) for metric in SHOWN]
        table.add_row(name_of(f"{kind} {subject}"), name_of(str(against)), *figures, str(mine["n_items"][0]))
    return table


def _figure(row: dict[str, object] | None) -> Text:
    if row is None:
        return Text("")
    estimate, low, high = row["estimate"], row["ci_low"], row["ci_high"]
    if not isinstance(estimate, float):
        return Text(str(row["reason"]), style="dim")
    ends = f" [{low:.2f}, {high:.2f}]" if isinstance(low, float) and isinstance(high, float) else ""
    return Text(f"{estimate:.3f}{ends}")
