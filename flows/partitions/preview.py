"""How what a backfill would ask looks, in a terminal and in the log of a flow's run. What it is: plan.py."""

from io import StringIO

import polars as pl
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from flows.observability.progress import Reporter
from flows.observability.terminal import Console as OwnConsole
from flows.observability.terminal import format_usd, name_of, one_line
from flows.partitions.plan import BackfillPlan
from flows.run.preview import HANDED_OVER
from tasks.judge.budget.forecast import total_usd
from tasks.judge.budget.prices import why_no_price

WIDTH = 120  # characters of the preview in a log


def print_preview(console: Console, benchmark: str, planned: BackfillPlan) -> None:
    """What would be asked of each checkpoint and what it costs, in the order it is asked."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("checkpoint", overflow="fold")
    for name in ("samples", "requests", "stored", "to ask", "online", "batch"):
        table.add_column(name, justify="right")
    for one in planned.checkpoints:
        usd = [format_usd(each) if one.n_own else "-" for each in (one.online_usd, one.batch_usd)]
        counts = (one.dataset.n_samples, one.n_requests, one.n_requests - one.n_to_ask, one.n_own)
        table.add_row(name_of(one.name), *(f"{n:,}" for n in counts), *usd)
    n_partitions, n_done = planned.partitions.height, planned.partitions.filter(pl.col("mixed").is_null(), n_left=0).height
    console.print(
        f"{escape(one_line(benchmark))}: {len(planned.checkpoints)} checkpoints, {n_partitions} partitions, {n_done} already done"
    )
    console.print(table)
    for name, why in planned.failed.items():
        console.print(name_of(f"{name} {'cannot be read, and ' if name in planned.unreadable else ''}is skipped: {why}"))
    n_to_ask = sum(one.n_own for one in planned.open)
    n_shared = sum(one.n_to_ask for one in planned.open) - n_to_ask
    if n_shared:
        console.print(f"shared      {n_shared:,} more requests are shared with a checkpoint above and counted there")
    online = format_usd(total_usd(one.online_usd for one in planned.open))
    batch = format_usd(total_usd(one.batch_usd for one in planned.open))
    minutes = planned.minutes
    said = "unknown: no limits are set and no reply was timed yet" if minutes is None else f"{minutes:,.1f} minutes online"
    console.print(f"to ask      {n_to_ask:,} requests: {online} online, {batch} by batch")
    asked = (row for one in planned.open for row in one.rubrics if row.n_to_ask and row.forecast.price is None)
    for judge in {row.judge.id: row.judge for row in asked}.values():
        console.print(name_of(f"price       {why_no_price(judge)}"))
    if n_handed_over := sum(row.n_handed_over for one in planned.open for row in one.rubrics):
        console.print(HANDED_OVER.format(n_handed_over))
    if n_to_ask:
        console.print(f"time        {said}; a nightly run of the same judge goes first")
    if planned.of_pairs:
        on_top = "may come on top, in money and time, once it is known which checkpoints are whole"
        console.print(f"pairs       not counted above: requests of {', '.join(planned.of_pairs)} {on_top}")


def say_preview(reporter: Reporter, benchmark: str, planned: BackfillPlan) -> None:
    """Print the preview where somebody watches, and put it into the log of the flow's run."""
    if reporter.console is not None:
        print_preview(reporter.console, benchmark, planned)
    if reporter.on_word is not None:
        page = StringIO()
        print_preview(OwnConsole(file=page, width=WIDTH, color_system=None), benchmark, planned)
        reporter.on_word("\n".join(line.rstrip() for line in page.getvalue().splitlines()))
