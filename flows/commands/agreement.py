"""`salon agreement`: a benchmark's scores against people's ratings, or one of its judges, and what is printed of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import polars as pl
import typer
from rich.markup import escape
from rich.table import Column, Table
from rich.text import Text

from flows.commands.exchange.printing import print_imported
from flows.commands.options import BenchmarkFile, RunDate
from flows.commands.running import shown_by_prefect
from flows.observability.progress import shown_progress
from flows.observability.terminal import Console, name_of, one_line, result_console
from flows.run.context import open_run
from schemas.errors import InputError
from schemas.statuses.cells import Total
from schemas.statuses.people import MIN_IN_STRATUM, MIN_LABELLED, AgreementMetric
from schemas.tables.agreement import AGREEMENT, CORRECTED_COMPARISONS, CORRECTED_STANDINGS
from tasks.ingest.ratings_left_out import examples
from tasks.publish.agreement_page import called, said_of, unscored
from tasks.publish.standings.corrected_ranks import LOOKED_AT, Ranking, rankings
from tasks.publish.votes_page import HEADERS, figure, split_off, vote_boards

if TYPE_CHECKING:
    from flows.agreement import AgreementSummary
    from tasks.aggregate.agreement.label_next import LabelPlan

SHOWN = {
    AgreementMetric.SPEARMAN: "Spearman",
    AgreementMetric.KENDALL_TAU_B: "Kendall tau-b",
    AgreementMetric.QUADRATIC_KAPPA: "kappa",
    AgreementMetric.KRIPPENDORFF_ALPHA: "alpha",
}

_NAME_WIDTH = 28


Ratings = Annotated[
    list[Path] | None, typer.Option(help="A table of people's ratings, or a folder of them; may be given several times.")
]
Votes = Annotated[
    list[Path] | None,
    typer.Option(help="A table of people's votes on pairs of pictures, or a folder of them; may be given several times."),
]
AgainstJudge = Annotated[str | None, typer.Option(help="Compare the file's other judges with this one, instead of with people.")]
Replies = Annotated[Path | None, typer.Option(help="Import these recorded replies first, as `salon import` does.")]
LabelNext = Annotated[
    Path | None,
    typer.Option(help="Write to this file which samples people should rate next, to be filled in; publish nothing."),
]
LabelCount = Annotated[int, typer.Option(min=2, help="With --label-next: how many ratings one person is to give.")]
LabelDimension = Annotated[str | None, typer.Option(help="With --label-next: the dimension, where there are several.")]
Between = Annotated[
    list[str] | None,
    typer.Option(
        help="With --label-next: model/checkpoint, given twice; default: the newest and the baseline, or its predecessor."
    ),
]


def agreement(
    file: BenchmarkFile,
    ratings: Ratings = None,
    votes: Votes = None,
    against_judge: AgainstJudge = None,
    replies: Replies = None,
    label_next: LabelNext = None,
    label_count: LabelCount = 100,
    label_dimension: LabelDimension = None,
    between: Between = None,
    run_date: RunDate = None,
) -> int:
    """Compare existing scores with people's ratings, or with one judge's scores, and publish the agreement; no judge is asked."""
    day = run_date.date() if run_date else None
    open_run(file, day)  # what is wrong with the file is said at once
    from flows.agreement import choose_labels, hold_against_people
    from tasks.aggregate.agreement.label_next import Wanted

    tables = [path.absolute() for path in ratings or ()]
    if against_judge is not None and (ratings or votes or label_next):
        raise InputError("--against-judge uses a judge instead of people: omit --ratings, --votes and --label-next")
    if label_next is not None:
        wanted = Wanted(label_count, tuple(between or ()), label_dimension)
        with shown_progress():
            chosen = choose_labels(file.absolute(), wanted, tables, label_next.absolute(), day)
        _print_labels(result_console(), chosen, label_next)
        return 0
    voted = [path.absolute() for path in votes or ()]
    if not tables and not voted and against_judge is None:
        raise InputError(
            "no ratings given: give --ratings TABLE, or --votes TABLE for votes on pairs; --against-judge NAME compares judges "
            "with one of them; --label-next FILE lists samples to rate"
        )
    with shown_progress():
        recorded = replies.absolute() if replies else None
        summary = shown_by_prefect(hold_against_people)(file.absolute(), tables, day, recorded, voted, against_judge)
    _print(result_console(), summary)
    return 0


def _print(console: Console, summary: "AgreementSummary") -> None:
    overall, _ = split_off(summary.tables[AGREEMENT].filter(model="__all__", category=Total.MICRO.value))
    for (rubric_id, dimension), rows in overall.group_by("rubric_id", "dimension", maintain_order=True):
        console.print(Text.assemble((one_line(str(dimension)), "bold"), one_line(f", rubric {rubric_id}")))
        console.print(_table(rows.filter(pl.col("against_dimension").is_null())))
        console.print()
    _print_rankings(console, summary)
    for board in vote_boards(summary.tables):
        console.print(Text(one_line(board.title), style="bold"))
        for headers, lines in [(HEADERS, board.lines), *board.beside]:
            _print_beside(console, headers, lines)
    for sentence in unscored(summary.tables[AGREEMENT]):
        console.print(Text(one_line(f"no score    {sentence}"), style="yellow"))
    for word, given in (("ratings", summary.reference.ratings), ("votes", summary.reference.votes)):
        if given.is_empty():
            continue
        counts = dict(given.group_by("status").len().sort("status").iter_rows())
        console.print(f"{word:<11} {given.height:,}: " + ", ".join(f"{n:,} {status}" for status, n in counts.items()))
        for example in examples(given):
            console.print(f"            left out: {escape(one_line(example))}")
        for sentence in said_of(word, given, overall):
            console.print(f"            {sentence}")
    if summary.imported is not None:
        print_imported(console, summary.imported)
    published = summary.published
    word = "new" if published.is_new else "unchanged: the same inputs were published before"
    console.print(f"publication {published.publication_id[:16]} ({word})")
    console.print(f"files       {escape(one_line(str(published.folder)))}/")


def _print_beside(console: Console, headers: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    table = Table(*_folding(headers), box=None, padding=(0, 1), header_style="dim")
    for name, *cells in lines:
        table.add_row(name_of(name), *(Text(one_line(cell)) for cell in cells))
    console.print(table)
    console.print()


def _folding(headers: Sequence[str]) -> list[Column]:
    """Columns in which a word that is too long goes on in the next line: one that is cut cannot be looked up."""
    return [Column(name_of(header), overflow="fold") for header in headers]


def _table(rows: pl.DataFrame) -> Table:
    table = Table(*_folding(["", "against", *SHOWN.values(), "samples"]), box=None, padding=(0, 1), header_style="dim")
    for (kind, subject, against), mine in rows.group_by("subject_kind", "subject", "against", maintain_order=True):
        by_metric = {row["metric"]: row for row in mine.iter_rows(named=True)}
        shown = [by_metric.get(metric.value) for metric in SHOWN]
        figures = [Text(figure(row), style="dim" if row and row["estimate"] is None else "") for row in shown]
        table.add_row(name_of(f"{kind} {called(str(subject))}"), name_of(called(str(against))), *figures, str(mine["n_items"][0]))
    return table


def _print_labels(console: Console, chosen: "LabelPlan", target: Path) -> None:
    n, what = len(chosen.sample_ids), escape(one_line(f"{chosen.dimension}, rubric {chosen.rubric_id}"))
    console.print(f"to rate     {n:,} samples of {chosen.n_prompts:,} prompts, {what}: {escape(str(target))}")
    console.print(f"for         {escape(one_line(f'{chosen.a} minus {chosen.b}'))}, judge {escape(one_line(chosen.judge))}")
    if chosen.half_now is not None and chosen.half_then is not None:
        console.print(f"interval    ± {chosen.half_now:.2f} now, about ± {chosen.half_then:.2f} with these ratings")
    else:
        console.print(f"interval    needs {MIN_LABELLED} labelled prompts, {MIN_IN_STRATUM} in each category")
    console.print("then        fill in rater and rating, and pass the file to --ratings; empty rows do not count")


def _print_rankings(console: Console, summary: "AgreementSummary") -> None:
    standings, comparisons = summary.tables[CORRECTED_STANDINGS], summary.tables[CORRECTED_COMPARISONS]
    for ranking in rankings(standings, comparisons, summary.reference.judge):
        _print_ranking(console, ranking)
    if summary.has_looks and standings.height:
        console.print(Text(LOOKED_AT))


def _print_ranking(console: Console, ranking: Ranking) -> None:
    console.print(Text(one_line(ranking.title), style="bold"))
    width = min(_NAME_WIDTH, max(len(str(line[0])) for line in ranking.lines))
    names = Column("", min_width=width, overflow="fold")  # or checkpoints of one model could not be told apart
    table = Table(names, *_folding(ranking.headers), box=None, padding=(0, 1), header_style="dim")
    for checkpoint, *cells in ranking.lines:
        table.add_row(name_of(str(checkpoint)), *(Text(str(cell)) for cell in cells))
    console.print(table)
    for sentence in ranking.sentences:
        console.print(Text(one_line(sentence)))
    console.print()
