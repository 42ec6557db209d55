"""How tables look in a terminal: leaderboard, a run's last lines."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import polars as pl
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from flows.commands.exchange.printing import print_imported
from flows.commands.options import DEFAULT_LAKE
from flows.commands.printed.categories import print_worse
from flows.commands.printed.failures import print_failed
from flows.commands.printed.judge_moves import marked, moves_of, with_moves
from flows.commands.printed.pairs import print_pairs
from flows.commands.printed.replies import print_answering, print_failed_checks, print_unreadable, requests_told
from flows.nights.judge_between import to_predecessors
from flows.observability.terminal import Console, one_line
from schemas.metrics import NO_TOTAL, headlines, means_for_prompts_like_these
from schemas.records import ALL_JUDGES
from schemas.statuses.cells import CellStatus
from schemas.statuses.rows import SampleStatus
from schemas.tables.nights import EXAM
from schemas.tables.published import BENCHMARK_LONG, COMPARISONS, FAILURES, STANDINGS
from tasks.lake.reading import Lake
from tasks.publish.leaderboard import LeaderboardRow, answers_of, judged_by, leaderboard_rows, tells_baseline
from tasks.publish.standings.categories import weights
from tasks.publish.standings.pair_boards import boards_in, n_rates
from tasks.publish.standings.placed_cells import placed
from tasks.publish.standings.wording import counted, made_by

if TYPE_CHECKING:
    from flows.observability.progress import RunSummary

WIDE = 100  # columns of a terminal from which on the intervals are drawn as well
WHOLE = 100_000  # columns of a file or pipe: no line is cut or broken there
_N_DRAWN = 22  # characters of a drawn interval
_STYLES = {CellStatus.OK: "", CellStatus.NO_INTERVAL: "yellow", CellStatus.BLOCKED: "red", CellStatus.NULL: "dim"}
_MARKS = {"higher": "green", "lower": "red"}


class Format(StrEnum):
    """How `salon table` writes."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    MARKDOWN = "markdown"
    LATEX = "latex"


class Sort(StrEnum):
    """What `salon table` sorts by, within rubric, judge and dimension."""

    RANK = "rank"
    MEAN = "mean"
    MODEL = "model"
    COVERAGE = "coverage"
    FAILURES = "failures"


_ORDERS: dict[Sort, Callable[[LeaderboardRow], tuple[object, ...]]] = {
    Sort.RANK: lambda _: (),  # as the leaderboard has them
    Sort.MEAN: lambda row: (row.estimate is None, -(row.estimate or 0.0)),
    Sort.MODEL: lambda row: (row.model, row.checkpoint),
    Sort.COVERAGE: lambda row: (row.coverage is None, row.coverage),
    Sort.FAILURES: lambda row: (-row.n_failed,),
}


def sorted_rows(rows: Sequence[LeaderboardRow], by: Sort) -> list[LeaderboardRow]:
    """Within rubric, judge and dimension by rank or mean (best first), name, coverage (lowest first) or failures (most first)."""
    return sorted(rows, key=lambda row: (row.rubric_id, row.judge_model, row.dimension, *_ORDERS[by](row)))


def print_rows(console: Console, rows: Sequence[LeaderboardRow], said: Mapping[tuple[str, str], Sequence[str]]) -> None:
    """What `said` answers for each rubric and judge, and its rows: a table for each dimension, fit for 80 columns."""
    is_one_model = len({row.model for row in rows}) == 1
    for rubric_id, judge_model in _headings(rows, said):
        made_by = f", {rows[0].model}" if is_one_model else ""
        console.print(Text.assemble((one_line(rubric_id), "bold"), one_line(f", {judged_by(judge_model)}{made_by}")))
        for sentence in said.get((rubric_id, judge_model), ()):
            console.print(Text(one_line(f" {sentence}")))
        mine = [row for row in rows if (row.rubric_id, row.judge_model) == (rubric_id, judge_model)]
        totals = [row for row in mine if row.reason not in NO_TOTAL] or mine
        for dimension in dict.fromkeys(row.dimension for row in totals):
            shown = [row for row in totals if row.dimension == dimension]
            prompts = {row.n_prompts for row in shown}
            of = f", {counted(prompts.pop(), 'prompt')}" if len(prompts) == 1 else ""
            blind = f"  {shown[0].blind}" if shown[0].blind else ""
            console.print(Text.assemble(one_line(f" {dimension}"), (one_line(of), "dim"), (one_line(blind), "red")))
            table = _dimension_table(shown, is_one_model=is_one_model, is_wide=console.width >= WIDE)
            console.print(table)
            drawn = "".join(segment.text for line in console.render_lines(table, pad=False) for segment in line)
            if not all(row.cell_id[:6] in drawn for row in shown):
                console.print(Text("   cut off by this terminal: salon table | less -S shows it whole", style="yellow"))
            if tells_baseline(shown) and any(row.predecessor for row in shown):  # no room for a column more
                for row in (one for one in shown if one.baseline):
                    named = f"   {_name(row, is_one_model=is_one_model)} vs. baseline: "
                    console.print(Text.assemble((named, "dim"), _against(row, "baseline")))
            if told := weights([asdict(row) for row in shown]):
                console.print(Text(f"   {told}", style="dim"))
            for why in dict.fromkeys(row.why for row in shown if row.why):
                whose = ", ".join(_name(row, is_one_model=is_one_model) for row in shown if row.why == why)
                console.print(Text(one_line(f"   {whose}: {why}"), style="yellow"))
        if n_rest := len({row.dimension for row in mine} - {row.dimension for row in totals}):
            more = f" {counted(n_rest, 'more dimension')} {'is' if n_rest == 1 else 'are'}"
            console.print(Text(f"{more} asked only in some categories: --category shows one", style="dim"))
        console.print()


def _headings(rows: Sequence[LeaderboardRow], said: Collection[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Each rubric and judge of the rows; before a rubric's judges, where there are several, what all of them say."""
    for rubric_id, keys in groupby(dict.fromkeys((row.rubric_id, row.judge_model) for row in rows), key=itemgetter(0)):
        judges = list(keys)
        if len(judges) > 1 and (rubric_id, ALL_JUDGES) in said:
            yield rubric_id, ALL_JUDGES
        yield from judges


def _name(row: LeaderboardRow, *, is_one_model: bool) -> str:
    return one_line(made_by(row.model, row.checkpoint, is_one_model=is_one_model))


def _dimension_table(rows: list[LeaderboardRow], *, is_one_model: bool, is_wide: bool) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("rank", justify="right", no_wrap=True)
    table.add_column("checkpoint", overflow="fold", min_width=10)
    table.add_column("mean [95 %]", min_width=17)
    low, high = _span(rows)
    is_drawn = is_wide and low < high
    if is_drawn:
        table.add_column(_scale(low, high), no_wrap=True, width=_N_DRAWN)
    other = "predecessor" if any(row.predecessor for row in rows) else "baseline" if tells_baseline(rows) else None
    if other:
        table.add_column(f"vs. {other}", min_width=20)  # the difference and its interval; a verdict may go below
    is_ragged = len({row.n_prompts for row in rows}) > 1
    if is_ragged:
        table.add_column("prompts", justify="right", no_wrap=True)
    table.add_column("cell", no_wrap=True)
    for row in rows:
        style = "bold" if row.rank_high == 1 else _STYLES[CellStatus(row.status)]
        drawn = [Text(_interval(row, low, high), style=style)] if is_drawn else []
        before = [_against(row, other)] if other else []
        prompts = [str(row.n_prompts)] if is_ragged else []
        made_by = Text(_name(row, is_one_model=is_one_model), style=style)
        cell = Text(row.cell_id[: 8 if is_wide else 6], style="dim")
        table.add_row(row.rank, made_by, Text(one_line(row.score), style=style), *drawn, *before, *prompts, cell)
    return table


def _against(row: LeaderboardRow, other: str) -> Text:
    return Text(one_line(getattr(row, other)), style=_MARKS.get(getattr(row, f"verdict_{other}") or "", "dim"))


def _span(rows: Sequence[LeaderboardRow]) -> tuple[float, float]:
    """The least and the greatest number that stands in the rows; 0 and 0 where none does."""
    numbers = [value for row in rows for value in (row.estimate, row.ci_low, row.ci_high) if value is not None]
    return (min(numbers), max(numbers)) if numbers else (0.0, 0.0)


def _scale(low: float, high: float) -> str:
    return f"{low:.2f}" + f"{high:.2f}".rjust(_N_DRAWN - len(f"{low:.2f}"))


def _interval(row: LeaderboardRow, low: float, high: float) -> str:
    """The interval as a line with a dot at the mean, on the span of the rows."""
    if row.estimate is None:
        return ""
    at = [
        round((value - low) / (high - low) * (_N_DRAWN - 1))
        for value in (row.ci_low, row.estimate, row.ci_high)
        if value is not None
    ]
    line = "".join("─" if at[0] <= place <= at[-1] else " " for place in range(_N_DRAWN))
    dot = at[1] if len(at) == 3 else at[0]
    return f"{line[:dot]}●{line[dot + 1 :]}"


def read_cells(folder: Path) -> pl.DataFrame:
    """A publication's means for prompts like these, with their standings."""
    paths = {table: folder / f"{table.name}.parquet" for table in (BENCHMARK_LONG, STANDINGS, FAILURES, EXAM)}
    return means_for_prompts_like_these(placed({table: pl.read_parquet(path) for table, path in paths.items() if path.is_file()}))


def print_leaderboard(console: Console, folder: Path) -> None:
    """The leaderboard of a publication, in short: the answers, and a table for each rubric and judge."""
    print_pairs(console, boards_in(folder), is_short=True)
    cells, compared = read_cells(folder), folder / f"{COMPARISONS.name}.parquet"
    comparisons = pl.read_parquet(compared) if compared.is_file() else COMPARISONS.empty()
    moves = moves_of(folder, to_predecessors(comparisons))
    rows = marked(leaderboard_rows(cells, is_headline_only=True), moves)
    print_rows(console, rows, with_moves(answers_of(cells, comparisons), moves, headlines(cells)))
    print_worse(console, comparisons, command="salon table ")


def print_summary(console: Console, summary: "RunSummary") -> None:
    """What the run read, asked and published, and where to look next."""
    data, asked, published = summary.dataset, summary.asked, summary.published
    broken = {word: n for word, n in data.n_by_status.items() if word not in (SampleStatus.OK, SampleStatus.DUPLICATE)}
    n_again = data.n_by_status.get(SampleStatus.DUPLICATE, 0)
    console.print(
        f"samples     {data.n_samples:,}, usable {data.n_ok:,}"
        + (f", duplicates {n_again:,} (the first one's judgement counts for both)" if n_again else "")
        + (f", not usable: {', '.join(f'{n:,} {word}' for word, n in broken.items())}" if broken else "")
    )
    if summary.imported is not None:
        print_imported(console, summary.imported)
    else:
        console.print(f"requests    {summary.n_requests:,}: {requests_told(asked, summary.judges)}", markup=False)
    has_cells = summary.n_cells > 0 or not summary.pairs
    if has_cells:
        of_them = f", of them [red]{summary.n_blocked:,} blocked[/]" if summary.n_blocked else ""
        console.print(f"cells       {summary.n_cells:,}{of_them}")
    if summary.pairs:
        n, n_blocked = n_rates(summary.pairs)
        console.print(f"pairs       {counted(n, 'win rate')}" + (f", of them [red]{n_blocked:,} blocked[/]" if n_blocked else ""))
    print_answering(console, published.folder, summary.judges)
    print_unreadable(console, published.folder, summary.judges, shown_by="CELL" if has_cells else "PAIR")
    print_failed(console, published.folder, summary.judges)
    print_failed_checks(console, published.folder)
    word = "new" if published.is_new else "unchanged: the same inputs were published before"
    current = "current" if published.is_current else f"not made current: {published.why_not_current}"
    console.print(f"publication {published.publication_id[:16]} ({word}; {current})")
    lake = Lake(published.folder.parents[3])
    console.print(f"files       {escape(one_line(f'{lake.place}/{published.folder.relative_to(lake.root)}'))}/")
    options, apart = _lake_option(lake), "    "
    if not published.is_current:  # without its id the commands would show another one
        options, apart = f"{options} --publication {published.publication_id[:16]}", f"\n{'':<12}"
    console.print(f"next        salon table{options}{apart}salon explain {'CELL' if has_cells else 'PAIR'}{options}")
    if not published.is_current:
        console.print("gate        salon gate judges the current publication, not this one, unless it is named")


def _lake_option(lake: Lake) -> str:
    """What makes the commands open this lake, where they would open another one without it."""
    is_default = lake.place == DEFAULT_LAKE or lake.root == Path(DEFAULT_LAKE).resolve()
    return "" if is_default else f" --lake {escape(quote(one_line(lake.place)))}"
