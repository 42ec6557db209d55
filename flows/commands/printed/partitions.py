"""`salon backfill --list`: where each partition stands, as a table or an object. What one is: flows/partitions/table.py."""

from collections.abc import Mapping
from typing import Any

import polars as pl
from rich.table import Table
from rich.text import Text

from flows.observability.terminal import Console, format_cost, name_of
from flows.partitions.table import PartitionState
from schemas.metrics import natural_key
from tasks.publish.machine_tables import cost_of
from tasks.publish.report.partitions import in_sight

WIDE = 160  # columns of a table that goes to a file or a pipe
_COLOURS = {"done": "green", "running": "cyan", "failed": "red", "stale": "yellow"}
N_DETAIL = 48  # characters; the whole sentence stands in the row
_KEYS = (
    "partition_id", "model", "checkpoint", "rubric_id", "rubric_version", "judge_model", "dataset_id", "state", "n_requests",
    "n_left", "online_usd", "batch_usd", "asked_by", "changed_at", "detail",
)  # fmt: skip
"""Columns of PARTITIONS that a program is given, by their names there: docs/backfill.md."""


def print_partitions(console: Console, table: pl.DataFrame, *, asks_pairs_alone: bool = False) -> None:
    """Where each partition stands: of those that followed one another the one that counts, as the page of partitions has it."""
    none = "no partition was written down yet"
    if asks_pairs_alone:
        none = "no partitions: every rubric is one of pairs, which a backfill asks as it makes its table"
    n_all, table = table.height, _that_count(table)
    shown = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("checkpoint", "rubric", "judge", "dataset", "state", "requests", "left", "by", "changed", ""):
        shown.add_column(name, justify="right" if name in ("requests", "left") else "left", overflow="fold")
    for row in sorted(table.iter_rows(named=True), key=_in_order):
        state = Text(row["state"], style=_COLOURS.get(row["state"], ""))
        shown.add_row(
            name_of(f"{row['model']}/{row['checkpoint']}"), name_of(f"{row['rubric_id']} {row['rubric_version']}"),
            name_of(row["judge_model"]), row["dataset_id"][:8], state, f"{row['n_requests']:,}",
            "?" if row["n_left"] is None else f"{row['n_left']:,}",
            row["asked_by"], f"{row['changed_at']:%Y-%m-%d %H:%M}", name_of(_cut(row["detail"] or ""), "dim"),
        )  # fmt: skip
    counted = table.group_by("state").len().sort("state").iter_rows()
    console.print(shown)
    console.print(", ".join(f"{n} {state}" for state, n in counted) or none)
    if PartitionState.STALE in table["state"]:
        console.print("what a stale one lacks now, and what was never asked, counts salon backfill FILE --all --dry-run")
    if n_all > table.height:
        console.print(f"{n_all - table.height} not shown: of earlier rubrics, judges or samples that later ones replaced")


def partitions_object(table: pl.DataFrame, runs: pl.DataFrame, benchmark: str, publication_id: str | None) -> dict[str, Any]:
    """The same for a program, numbers and sentences in full. `publication_id`: of the benchmark's current publication."""
    shown = _that_count(table)
    rows = [{name: row[name] for name in _KEYS} for row in sorted(shown.iter_rows(named=True), key=_in_order)]
    return {
        "benchmark": benchmark,
        "publication_id": publication_id,
        "partitions": [row | {"changed_at": row["changed_at"].isoformat()} for row in rows],
        "n_replaced": table.height - shown.height,
        "backfills": _cost(runs, benchmark),
    }


def _that_count(table: pl.DataFrame) -> pl.DataFrame:
    """Of the rows that followed one another the one that counts; what a stale one lacks now, and costs, is not known here."""
    is_known = pl.col("state") != PartitionState.STALE
    return in_sight(table).with_columns(
        pl.when(is_known).then(name).alias(name) for name in ("n_left", "online_usd", "batch_usd")
    )


def _in_order(row: Mapping[str, Any]) -> tuple[object, ...]:
    return row["model"], natural_key(row["checkpoint"]), row["checkpoint"], row["rubric_id"], row["judge_model"]


def print_cost(console: Console, runs: pl.DataFrame, benchmark: str) -> None:
    """What the benchmark's backfills cost together, by their rows in `runs`."""
    cost = _cost(runs, benchmark)
    if n := cost["n"]:
        usd = format_cost(cost["cost_usd"], is_at_least=cost["is_at_least"])
        said = f"{usd} in {n} backfill{'s' * (n > 1)}, {cost['n_asked']:,} requests sent"
        console.print(f"{said} (table `runs`; a killed one has its row from the next start on)")


def _cost(runs: pl.DataFrame, benchmark: str) -> dict[str, Any]:
    mine = runs.filter(benchmark=benchmark, asked_by="backfill")
    cost_usd, is_at_least = cost_of(mine)
    return {"n": mine.height, "n_asked": mine["n_asked"].sum(), "cost_usd": cost_usd, "is_at_least": is_at_least}


def _cut(said: str) -> str:
    return said if len(said) <= N_DETAIL else said[: N_DETAIL - 1] + "…"
