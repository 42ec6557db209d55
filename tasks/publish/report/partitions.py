"""The page of a benchmark's partitions: checkpoint x rubric x judge, what of it is done, and what fills the rest."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from shlex import quote
from typing import Any, Final

import polars as pl

from schemas.metrics import natural_key
from schemas.tables.table import Row
from tasks.publish.report.environment import render

_FIRST: Final = {"running": 0, "failed": 1, "planned": 2, "done": 3, "stale": 4}
"""Of several partitions of one cell the one that is shown."""
_CELL: Final = ["model", "checkpoint", "rubric_id", "judge_model"]


@dataclass(frozen=True, slots=True)
class Line:
    """One checkpoint: a partition for each column, None where none was written down, and the command that fills what is open."""

    model: str
    checkpoint: str
    cells: list[Row | None]
    command: str | None


def partitions_page(
    benchmark: str,
    rows: pl.DataFrame,
    asked: Sequence[tuple[str, str]],
    checkpoints: Sequence[tuple[str, str]],
    as_of: datetime,
    command: str,
    *,
    is_known: bool = True,
    broken: Sequence[str] = (),
) -> bytes:
    """The page as UTF-8 HTML. `rows`: PARTITIONS. `asked`: (rubric, judge), a column each, beside those that only rows have.

    `checkpoints`: (model, checkpoint) of the sources; `is_known` is False where nobody could look; `broken`: checkpoints
    whose folders cannot be read. `command` is what model/checkpoint is put behind. `as_of`: when this is.
    """
    columns = list(dict.fromkeys([*asked, *rows.select("rubric_id", "judge_model").iter_rows()]))
    shown = in_sight(rows).iter_rows(named=True)
    by_cell: dict[tuple[Any, ...], Row] = {tuple(row[name] for name in _CELL): row for row in shown}
    names = {*checkpoints, *rows.select("model", "checkpoint").iter_rows()}
    listed = set(checkpoints)
    lines = [
        _line(name, [by_cell.get((*name, *column)) for column in columns], command if name in listed or not is_known else None)
        for name in sorted(names, key=lambda name: (name[0], natural_key(name[1])), reverse=True)
    ]
    n_by_state = {state: sum(row["state"] == state for row in by_cell.values()) for state in _FIRST}
    return render(
        "partitions.html.j2",
        script="",
        benchmark=benchmark,
        columns=columns,
        lines=lines,
        as_of=as_of,
        n_by_state=n_by_state,
        is_known=is_known,
        broken=broken,
    )


def in_sight(rows: pl.DataFrame) -> pl.DataFrame:
    """Of several partitions of one cell, of datasets, rubrics or judges that followed one another, the row that stands for it.

    The others are history: what is left to do stands in these.
    """
    order = pl.col("state").replace_strict(_FIRST, return_dtype=pl.Int8)
    first = rows.with_columns(_order=order).sort("_order", "changed_at", descending=[False, True], maintain_order=True)
    return first.unique(_CELL, keep="first", maintain_order=True).drop("_order").sort(_CELL)


def _line(name: tuple[str, str], cells: list[Row | None], command: str | None) -> Line:
    is_open = any(cell is None or cell["state"] != "done" for cell in cells)
    named = "/".join(name)
    if "," in named or named.startswith('"'):  # the option's list is split at commas
        named = '"' + named.replace('"', '""') + '"'
    return Line(*name, cells, command + quote(named) if command and is_open else None)
