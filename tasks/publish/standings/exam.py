"""How the judge's exam reads: a mark where a dimension is blind, a share, a verdict. Nothing is computed here.

The rows are made in tasks/aggregate/exam.py; terminal, page, Markdown and index say what these functions say.
"""

from collections.abc import Mapping

import polars as pl

from schemas.benchmark.exam import ExamReason, PlantedFault, Sight
from schemas.metrics import BOARD
from schemas.tables.nights import EXAM
from schemas.tables.table import Table
from tasks.publish.standings.wording import DASH, Row, number, percent

_FAULTS = {PlantedFault.MISSPELT_TEXT: "misspelt text", PlantedFault.SWAPPED_PROMPT: "another prompt"}
_VERDICTS = {Sight.SEES: "sees", Sight.BLIND: "blind", Sight.CANNOT_TELL: "can't tell"}


def fault_name(fault: str) -> str:
    """A fault in words."""
    return _FAULTS.get(PlantedFault(fault), fault.replace("_", " "))


def marks(tables: Mapping[Table, pl.DataFrame]) -> pl.DataFrame:
    """(rubric_id, judge_model, dimension, blind_to): what a dimension is blind to, of what it is meant to notice, in words.

    Where nothing says what it is meant to notice, of all that was planted. No row where it is blind to nothing.
    """
    rows = tables.get(EXAM, EXAM.empty()).filter(pl.col("verdict") == Sight.BLIND.value, pl.col("is_meant").ne_missing(False))
    named = rows.sort("fault").with_columns(name=pl.col("fault").map_elements(fault_name, return_dtype=pl.String))
    return named.group_by(list(BOARD), maintain_order=True).agg(blind_to=pl.col("name").str.join(", "))


def share(row: Row, name: str) -> str:
    """A share with its interval, in percent."""
    if row[name] is None:
        return DASH
    ends = row.get(f"{name}_low"), row.get(f"{name}_high")
    if ends[0] is None or ends[1] is None:
        return percent(row[name], 0)
    return percent(row[name], 0) + f" [{percent(ends[0], 0)}, {percent(ends[1], 0)}]".replace(" %", "")


def drop(row: Row) -> str:
    """The drop in the dimension's own points, with its interval."""
    if row["drop"] is None:
        return DASH
    told = number(row["drop"], 2)
    return told if row["drop_low"] is None else f"{told} [{number(row['drop_low'], 2)}, {number(row['drop_high'], 2)}]"


def verdict(row: Row) -> str:
    """What follows: a word, or why there is none."""
    if row["verdict"]:
        return _VERDICTS[Sight(row["verdict"])]
    if row["reason"] == ExamReason.NO_TWINS and row["n_lost"]:
        return f"{row['n_lost']} lost"  # the judge gave these no score
    return str(row["reason"] or DASH).replace("_", " ")
