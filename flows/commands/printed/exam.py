"""How the judge's exam looks in a terminal: what was planted, how often it was noticed, what follows."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import polars as pl
from rich.table import Table
from rich.text import Text

from flows.observability.terminal import Console, name_of, one_line
from schemas.tables.nights import EXAM
from tasks.publish.exam import drop, fault_name, share, verdict

_STYLES = {"blind": "red", "sees": "green"}
_COLUMNS = (("fault", 14), ("noticed [95 %]", 15), ("false", 5), ("drop [95 %]", 20), ("so it", 10), ("n", 3))
"""Their widths: one below another for each dimension, in a terminal of 80."""


def print_exam(console: Console, folder: Path, *, is_short: bool = True) -> None:
    """The exam of a publication, where it holds one: of faults that a dimension is to notice, or of all."""
    path = folder / f"{EXAM.name}.parquet"
    if path.is_file():
        rows = pl.read_parquet(path).sort(EXAM.key).to_dicts()
        print_exam_rows(console, [row for row in rows if row["is_meant"] is not False] if is_short else rows)


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
