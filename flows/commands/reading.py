"""`salon table` and `open`: what was published, in the terminal and as a page. They read; they change nothing."""

import os
import sys
import webbrowser
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import orjson
import polars as pl
import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from flows.commands.options import DEFAULT_LAKE, BenchmarkName, Good, LakePlace, PublicationId
from flows.commands.printed.alarms import alarms_of, print_alarms, with_alarms
from flows.commands.printed.categories import print_categories, print_worse
from flows.commands.printed.caveats import warn_of
from flows.commands.printed.judge_moves import marked, moves_of, unless_spoiled, with_moves
from flows.commands.printed.pairs import print_pairs
from flows.commands.tables import WHOLE, Format, Sort, print_rows, sorted_rows
from flows.nights.judge_between import to_predecessors
from flows.nights.shortfall import newest_night_behind
from flows.observability.terminal import Console, name_of, one_line
from schemas.errors import InputError
from schemas.metrics import NO_TOTAL, headlines
from schemas.statuses.cells import Total
from schemas.tables.nights import EXAM
from schemas.tables.published import PREFERENCES
from tasks.lake.object_store.cache_folder import bring, fresh, working_root
from tasks.lake.reading import open_lake
from tasks.publish.caveats import Caveats, caveats_of
from tasks.publish.exports import to_csv
from tasks.publish.folders import INDEX, LAYOUT, REPORT
from tasks.publish.latex import latex_tables
from tasks.publish.leaderboard import (
    LeaderboardRow,
    answers_of,
    leaderboard,
    leaderboard_rows,
    markdown_of_pairs,
    markdown_tables,
)
from tasks.publish.reading import Publication, chosen, load_cells, load_compared_cells, load_comparisons
from tasks.publish.standings.exam import drop, fault_name, share, verdict
from tasks.publish.standings.pair_boards import PairBoard, boards_in

_OF_A_BOARD = ("rubric_id", "judge_model", "dimension")
_STYLES = {"blind": "red", "sees": "green"}
_COLUMNS = (("fault", 14), ("noticed [95 %]", 15), ("false", 5), ("drop [95 %]", 20), ("so it", 10), ("n", 3))
"""Their widths: one below another for each dimension, in a terminal of 80."""


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
    sort: Annotated[Sort, typer.Option(help="The order within each rubric, judge and dimension.")] = Sort.RANK,
    form: Annotated[Format, typer.Option("--format", help="table for reading; csv and json contain every digit.")] = Format.TABLE,
) -> int:
    """Print the leaderboard: which is better, how sure that is, the means with their intervals, and what is missing."""
    lake_root = open_lake(lake).root
    found = chosen(lake_root, benchmark, publication, is_good=good)
    cells = load_cells(found) if category == Total.MACRO else load_compared_cells(found)
    moves, said = [], {}
    if category == Total.MACRO:  # of whole rankings, whichever of their rows are printed
        compared = load_comparisons(found)
        moves = moves_of(found.folder, to_predecessors(compared))
        said = with_moves(answers_of(cells, compared), moves, headlines(cells))
    wanted = {"rubric_id": rubric, "judge_model": judge, "model": model, "checkpoint": checkpoint, "dimension": dimension}
    caveats = caveats_of(lake_root, found, is_named=publication is not None or good)
    everywhere, boards = _selected(cells, boards_in(found.folder), wanted)
    cells, boards = _selected(everywhere, boards, {"category": category})
    # of models, checkpoints and categories alone there is no board
    pairs = boards if (model, checkpoint, category) == (None, None, Total.MACRO) else []
    rows = marked(leaderboard_rows(cells, category=category, is_headline_only=False), moves)
    alarms = alarms_of(found)
    rows = with_alarms(sorted_rows(rows, sort), alarms)
    if boards and not pairs and not rows:
        raise InputError(
            "no means match: pairs have win rates instead, and --model, --checkpoint and --category do not select these; "
            f"all of them are in {found.folder / PREFERENCES.name}.csv"
        )
    if form is not Format.TABLE:
        warn_of(caveats)
        sys.stdout.write(as_text(rows, pairs, form, found))
        return 0
    console = _table_console()
    _print_heading(console, found, is_good=good, is_chosen=publication is not None, caveats=caveats)
    print_pairs(console, pairs, is_short=False)
    print_rows(console, rows, said)
    print_alarms(console, alarms)
    if all(value is None for value in wanted.values()):
        print_exam(console, found.folder)
        if category == Total.MACRO:
            print_worse(console, load_comparisons(found))
    if rubric is not None and category == Total.MACRO:
        print_categories(console, rows, everywhere)
    return 0


def _selected(
    cells: pl.DataFrame, boards: Sequence[PairBoard], wanted: Mapping[str, str | None]
) -> tuple[pl.DataFrame, Sequence[PairBoard]]:
    """The cells, and the boards of pairs, that have these values. Raises InputError for a value that none of them has."""
    for column, value in wanted.items():
        known = sorted({*cells[column], *(getattr(board, column) for board in boards if column in _OF_A_BOARD)})
        if value is not None and known and value not in known:
            raise InputError(f"no cell has {column} {value!r}; available: {', '.join(known)}")
        if value is not None:
            cells = cells.filter(cells[column] == value)
            boards = [board for board in boards if column not in _OF_A_BOARD or getattr(board, column) == value]
    return cells, boards


def _table_console() -> Console:
    """As wide as the terminal; in a file or pipe, where nobody says how wide that is, no line is cut or broken."""
    console = Console(highlight=False)
    return console if console.is_terminal or "COLUMNS" in os.environ else Console(highlight=False, width=WHOLE)


def _print_heading(console: Console, found: Publication, *, is_good: bool, is_chosen: bool, caveats: Caveats) -> None:
    """Which publication it is and what speaks against it; where none was asked for, also that the newest night is not shown."""
    where = "current" if found.is_current else "the last good one" if is_good else "not the current one"
    where = "taken back" if caveats.withdrawn else where
    console.print(f"{escape(one_line(found.benchmark))}, {found.run_date}, publication {found.publication_id[:16]} ({where})")
    nights = list[str]()
    if not is_good and not is_chosen:
        newest = partial(newest_night_behind, found.folder.parents[3], found.benchmark)
        nights = unless_spoiled(newest, "whether the newest night is the current one")
    if caveats.newer is not None and any(caveats.newer.publication_id[:12] in one for one in nights):
        caveats = replace(caveats, newer=None)
    for told in (*nights, *caveats.told):
        console.print(Text(one_line(told), style="yellow"))
    console.print()


def as_text(rows: Sequence[LeaderboardRow], pairs: Sequence[PairBoard], form: Format, publication: Publication) -> str:
    """Means and win rates for another program: CSV and JSON with every column and digit, Markdown and LaTeX as one reads them.

    CSV and JSON hold one kind of row: where there are means, these; else the rows of `preferences` over all categories. Last in
    each row stands of which publication it is.
    """
    won = [row for board in pairs for row in board.comparisons] if not rows else []
    of = {name: getattr(publication, name) for name in ("benchmark", "run_date", "publication_id")}
    if form is Format.CSV:
        frame = pl.DataFrame(won, schema=PREFERENCES.empty().schema) if won else leaderboard(rows)
        return to_csv(frame.with_columns(**{name: pl.lit(value) for name, value in of.items()})).decode()
    if form is Format.JSON:
        listed = won or [asdict(row) for row in rows]
        return orjson.dumps([{**row, **of} for row in listed], option=orjson.OPT_INDENT_2).decode() + "\n"
    title = f"{publication.benchmark}, {publication.run_date}, publication {publication.publication_id}"
    shown = [row for row in rows if row.reason not in NO_TOTAL] or rows  # as on the terminal
    if form is Format.LATEX:
        return latex_tables(shown, pairs, title=title)
    return "\n".join(part for part in (markdown_of_pairs(pairs), markdown_tables(shown)) if part)


def open_page(
    lake: LakePlace = DEFAULT_LAKE,
    benchmark: BenchmarkName = None,
    publication: PublicationId = None,
    good: Good = False,
    is_index: Annotated[bool, typer.Option("--index", help="The index of all publications in the lake instead.")] = False,
    is_shown: Annotated[bool, typer.Option("--browser", help="Open it in the browser too.")] = False,
) -> int:
    """Print the path of the report page; with --browser, open it."""
    root = open_lake(lake).root.resolve()
    if is_index:
        page = root / "publish" / LAYOUT / INDEX
        if working_root(page):
            fresh(page)
    else:
        found = chosen(root, benchmark, publication, is_good=good)
        page = bring(found.folder / REPORT)
        warn_of(caveats_of(root, found, is_named=publication is not None or good))
    if not page.is_file():
        raise InputError(
            f"{page} does not exist: an older release without pages published it; run the benchmark again to publish one"
        )
    typer.echo(page)
    if is_shown and not webbrowser.open(page.as_uri()):
        raise InputError(f"no browser could be started; open {page.as_uri()} yourself")
    return 0


def print_exam(console: Console, folder: Path) -> None:
    """The exam of a publication, where it holds one: of faults that a dimension is to notice."""
    path = folder / f"{EXAM.name}.parquet"
    if path.is_file():
        rows = pl.read_parquet(path).sort(EXAM.key).to_dicts()
        print_exam_rows(console, [row for row in rows if row["is_meant"] is not False])


def print_exam_rows(console: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    """A table for each rubric and judge; with what `salon explain` takes where the rows are published."""
    is_published = bool(rows) and "exam_id" in rows[0]
    for (rubric_id, judge), mine in groupby(rows, key=lambda row: (row["rubric_id"], row["judge_model"])):
        console.print(Text.assemble((one_line(f"The exam of {judge}"), "bold"), one_line(f" in {rubric_id}: planted faults")))
        for number, (dimension, of_it) in enumerate(groupby(mine, key=lambda row: row["dimension"])):
            console.print(name_of(f" {dimension}"))
            table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim", show_header=number == 0)
            for name, width in _COLUMNS:
                table.add_column(name, width=width, justify="right" if name == "n" else "left")
            if is_published:
                table.add_column("exam", no_wrap=True)
            for row in of_it:
                said = verdict(row)
                table.add_row(
                    fault_name(row["fault"]), share(row, "noticed"), share(row, "false_notices").partition(" [")[0], drop(row),
                    Text(said, style=_STYLES.get(said, "dim")), str(row["n_samples"]),
                    *([Text(str(row["exam_id"])[:6], style="dim")] if is_published else []),
                )  # fmt: skip
            console.print(table)
        console.print()
