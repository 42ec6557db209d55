"""`salon table` and `open`: what was published, in the terminal and as a page. They read; they change nothing."""

import os
import sys
import webbrowser
from typing import Annotated

import typer
from rich.markup import escape

from flows.commands.printed.categories import print_categories
from flows.commands.printed.exam import print_exam
from flows.commands.printed.pairs import print_pairs
from flows.commands.tables import Format, Sort, as_text, print_rows, sorted_rows
from flows.observability.terminal import Console, one_line
from schemas.errors import InputError
from schemas.statuses.cells import Total
from tasks.lake.object_store.cache_folder import bring, fresh, working_root
from tasks.lake.reading import open_lake
from tasks.publish.folders import INDEX, LAYOUT, REPORT
from tasks.publish.leaderboard import answers_of, leaderboard_rows
from tasks.publish.reading import chosen, load_cells

LakePlace = Annotated[
    str, typer.Option("--lake", help="The lake, a folder or s3://bucket/prefix; default: $SALON_LAKE, or the folder lake.")
]
BenchmarkName = Annotated[str | None, typer.Option("--benchmark", help="The benchmark's name; default: the last one published.")]
PublicationId = Annotated[
    str | None, typer.Option("--publication", help="A publication's id or its beginning; default: the current one.")
]
Good = Annotated[
    bool,
    typer.Option("--good", help="The last publication of which no cell is blocked or lacks replies, instead of the current one."),
]
DEFAULT_LAKE = os.environ.get("SALON_LAKE", "lake")


def table(
    lake: LakePlace = DEFAULT_LAKE,
    benchmark: BenchmarkName = None,
    publication: PublicationId = None,
    good: Good = False,
    rubric: Annotated[str | None, typer.Option(help="Only this rubric.")] = None,
    judge: Annotated[str | None, typer.Option(help="Only this judge.")] = None,
    model: Annotated[str | None, typer.Option(help="Only this model.")] = None,
    checkpoint: Annotated[str | None, typer.Option(help="Only this checkpoint.")] = None,
    dimension: Annotated[str | None, typer.Option(help="Only this dimension.")] = None,
    category: Annotated[str, typer.Option(help="A category, __micro__, or __macro__: the mean over categories.")] = "__macro__",
    sort: Annotated[Sort, typer.Option(help="Within each rubric, judge and dimension.")] = Sort.RANK,
    form: Annotated[Format, typer.Option("--format", help="table for people; csv and json hold every digit.")] = Format.TABLE,
) -> int:
    """Print the leaderboard: which is better, how sure that is, the means with their intervals, and what is missing."""
    found = chosen(open_lake(lake).root, benchmark, publication, is_good=good)
    cells = load_cells(found)
    said = answers_of(cells) if category == Total.MACRO else {}  # of whole rankings, whichever of their rows are printed
    wanted = {
        "rubric_id": rubric, "judge_model": judge, "model": model, "checkpoint": checkpoint, "dimension": dimension,
        "category": category,
    }  # fmt: skip
    for column, value in wanted.items():
        everywhere = cells  # at the end without the last one, the category
        known = cells[column].unique().sort().to_list()
        if value is not None and known and value not in known:
            raise InputError(f"no cell has {column} {value!r}; there are: {', '.join(known)}")
        if value is not None:
            cells = cells.filter(cells[column] == value)
    rows = sorted_rows(leaderboard_rows(cells, category=category, is_headline_only=False), sort)
    if form is not Format.TABLE:
        sys.stdout.write(as_text(rows, form, found))
        return 0
    console = Console(highlight=False)
    where = "current" if found.is_current else "the last good one" if good else "not the current one"
    console.print(f"{escape(one_line(found.benchmark))}, {found.run_date}, publication {found.publication_id[:16]} ({where})\n")
    if rubric is None and judge is None and model is None and checkpoint is None and dimension is None:
        print_pairs(console, found.folder, is_short=False)
    print_rows(console, rows, said)
    if rubric is None and judge is None and model is None and checkpoint is None and dimension is None:
        print_exam(console, found.folder)
    if rubric is not None and category == Total.MACRO:
        print_categories(console, rows, everywhere)
    return 0


def open_page(
    lake: LakePlace = DEFAULT_LAKE,
    benchmark: BenchmarkName = None,
    publication: PublicationId = None,
    good: Good = False,
    is_index: Annotated[bool, typer.Option("--index", help="The index over all publications of the lake instead.")] = False,
    is_shown: Annotated[bool, typer.Option("--browser", help="Open it in the browser too.")] = False,
) -> int:
    """Print the path of the report page; with --browser, open it."""
    root = open_lake(lake).root.resolve()
    page = root / "publish" / LAYOUT / INDEX if is_index else chosen(root, benchmark, publication, is_good=good).folder / REPORT
    if not is_index:
        bring(page)
    elif working_root(page):
        fresh(page)
    if not page.is_file():
        raise InputError(f"{page} is not there: it was published before there were pages; run the benchmark again to publish one")
    typer.echo(page)
    if is_shown and not webbrowser.open(page.as_uri()):
        raise InputError(f"no browser could be started here; open {page.as_uri()} in one")
    return 0
