"""How the judge's exam looks in a terminal: what was planted, how often it was noticed, what follows."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import polars as pl
from rich.table import Table
from rich.text import Text

from flows.observability.terminal import Console, name_of, one_line
from schemas.tables import EXAM
from tasks.publish.exam import drop, fault_name, share, verdict

_STYLES = {"blind": "red", "sees": "green"}


def print_exam(console: Console, folder: Path, *, is_short: bool = True) -> None:
    """The exam of a publication, where it holds one: of faults that a dimension is to notice, or of all."""
    path = folder / f"{EXAM.name}.parquet"
    if path.is_file():
        rows = pl.read_parquet(path).sort(EXAM.key).to_dicts()
        print_exam_rows(console, [row for row in rows if row["is_meant"] is not False] if is_short else rows)


def print_exam_rows(console: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    """A table for each rubric and judge."""
    for (rubric_id, judge), mine in groupby(rows, key=lambda row: (row["rubric_id"], row["judge_model"])):
        console.print(Text.assemble((one_line(f"The exam of {judge}"), "bold"), one_line(f" in {rubric_id}: planted faults")))
        table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
        table.add_column("dimension", overflow="fold", min_width=12)
        table.add_column("fault", min_width=9)
        for name in ("noticed [95 %]", "false", "drop [95 %]"):
            table.add_column(name, no_wrap=True)
        table.add_column("so it")
        table.add_column("n", justify="right", no_wrap=True)
        table.add_column("exam", no_wrap=True)
        before = None
        for row in mine:
            dimension = name_of(row["dimension"]) if row["dimension"] != before else Text("")
            before = row["dimension"]
            said = verdict(row)
            table.add_row(
                dimension, fault_name(row["fault"]), share(row, "noticed"), share(row, "false_notices").partition(" [")[0],
                drop(row), Text(said, style=_STYLES.get(said, "dim")), str(row["n_samples"]),
                Text(str(row["exam_id"])[:6], style="dim"),
            )  # fmt: skip
        console.print(table)
        console.print()
