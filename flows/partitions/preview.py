"""How a backfill's plan and its partitions look in a terminal. What they are is plan.py and table.py."""

import polars as pl
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from flows.observability.terminal import format_usd
from flows.partitions.plan import BackfillPlan
from tasks.judge.budget.forecast import total_usd

_COLOURS = {"done": "green", "running": "cyan", "failed": "red", "stale": "yellow"}
N_DETAIL = 48  # characters; the whole sentence stands in the row
_COUNTED = ("requests", "stored", "to ask", "online", "batch")


def print_preview(console: Console, benchmark: str, planned: BackfillPlan) -> None:
    """What would be asked of each checkpoint and what it costs, in the order it is asked."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("checkpoint", overflow="fold")
    for name in ("samples", *_COUNTED):
        table.add_column(name, justify="right")
    for one in planned.checkpoints:
        usd = [format_usd(each) if one.n_to_ask else "-" for each in (one.online_usd, one.batch_usd)]
        counts = (one.dataset.n_samples, one.n_requests, one.n_requests - one.n_to_ask, one.n_to_ask)
        table.add_row(Text(one.name), *(f"{n:,}" for n in counts), *usd)
    n_partitions, n_done = planned.partitions.height, planned.partitions.filter(n_left=0).height
    console.print(
        f"{escape(benchmark)}: {len(planned.checkpoints)} checkpoints, {n_partitions} partitions, {n_done} done already"
    )
    console.print(table)
    n_to_ask = sum(one.n_to_ask for one in planned.open)
    online = format_usd(total_usd(one.online_usd for one in planned.open))
    batch = format_usd(total_usd(one.batch_usd for one in planned.open))
    minutes = planned.minutes
    said = "not known: no limits are stated" if minutes is None else f"{minutes:,.1f} minutes online at the stated limits"
    console.print(f"to ask      {n_to_ask:,} requests: {online} online, {batch} by batch")
    if n_to_ask:
        console.print(f"time        {said}; a nightly run of the same judge goes first")


def print_partitions(console: Console, table: pl.DataFrame) -> None:
    """Every partition and where it stands."""
    shown = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("checkpoint", "rubric", "judge", "dataset", "state", "requests", "left", "by", "changed", ""):
        shown.add_column(name, justify="right" if name in ("requests", "left") else "left", overflow="fold")
    for row in table.iter_rows(named=True):
        state = Text(row["state"], style=_COLOURS.get(row["state"], ""))
        shown.add_row(
            Text(f"{row['model']}/{row['checkpoint']}"), Text(f"{row['rubric_id']} {row['rubric_version']}"),
            Text(row["judge_model"]), row["dataset_id"][:8], state, f"{row['n_requests']:,}", f"{row['n_left']:,}",
            row["asked_by"], f"{row['changed_at']:%Y-%m-%d %H:%M}", Text(_cut(row["detail"] or ""), style="dim"),
        )  # fmt: skip
    counted = table.group_by("state").len().sort("state").iter_rows()
    console.print(shown)
    console.print(", ".join(f"{n} {state}" for state, n in counted) or "no partition was written down yet")


def _cut(said: str) -> str:
    return said if len(said) <= N_DETAIL else said[: N_DETAIL - 1] + "…"
