"""A night's alarms in the terminal: which series are beyond their limits, on what it is blamed, since when. They are drift's.

So is what a night lost of its anchors, which no alarm says and no table of scores counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from itertools import groupby
from typing import Any

import polars as pl
from rich.text import Text

from flows.commands.printed.judge_moves import unless_spoiled
from flows.nights.record import notes
from flows.observability.terminal import Console, one_line
from rubrics.model import Rubric
from schemas.metrics import HEADLINE
from schemas.statuses.nights import DriftVerdict
from tasks.publish.leaderboard import LeaderboardRow
from tasks.publish.living_tables import drift_rows
from tasks.publish.reading import Publication
from tasks.publish.standings.wording import signed

_N_SHOWN = 5


def _read(publication: Publication) -> list[dict[str, Any]]:
    """The rows of drift_rows() with an alarm on the night that this publication is; none where it is no night's.

    Overall scores first, then by series. A night that was published again has the alarms of its last publication.
    """
    lake_root, benchmark = publication.folder.parents[3], publication.benchmark
    noted = notes(lake_root, benchmark)
    night = noted.get(publication.run_date)
    rows = drift_rows(lake_root, benchmark)
    if rows is None or (noted and (night is None or night.publication_id != publication.publication_id)):
        return []
    mine = rows.filter(pl.col("run_date") == date.fromisoformat(publication.run_date), pl.col("is_alarm"))
    first = pl.col("dimension") != HEADLINE
    return mine.sort(first, "rubric_id", "measured_by", "model", "dimension").to_dicts()


def alarms_of(publication: Publication) -> list[dict[str, Any]]:
    """The alarms of the night that this publication is, as drift_rows(); none where its files are spoiled, which is told."""
    return unless_spoiled(lambda: _read(publication), "whether this night has an alarm")


def print_alarms(console: Console, found: Sequence[dict[str, Any]]) -> None:
    """A line for each alarm, and where the series are drawn; nothing without any."""
    for row in found[:_N_SHOWN]:
        console.print(Text(one_line(f"alarm       {_said(row)}"), style="red"))
    if found:
        more = f"and {len(found) - _N_SHOWN} more; " if len(found) > _N_SHOWN else ""
        console.print(f"            {more}the nights are drawn on the index: salon open --index", style="dim")


def lost_anchors_of(publication: Publication, rubrics: Mapping[str, Rubric]) -> list[dict[str, Any]]:
    """The anchors' cells of the night that this publication is, where some have no score; `rubrics` are today's."""
    from flows.nights.series import cells_of_nights  # with scipy, which a table that was made needs not

    found = unless_spoiled(
        lambda: [cells_of_nights(publication.folder.parents[3], [publication], rubrics).anchors], "which anchors have no score"
    )
    return [row for cells in found for row in cells.sort("rubric_id", "judge_model", "dimension").to_dicts() if row["n_failed"]]


def print_lost_anchors(console: Console, lost: Sequence[dict[str, Any]]) -> None:
    """A line for each rubric and judge under whom anchors have no score; nothing without any."""
    for (rubric_id, judge), rows in groupby(lost, key=lambda row: (row["rubric_id"], row["judge_model"])):
        mine = list(rows)
        most, blocked = max(mine, key=lambda row: row["n_failed"]), [row["dimension"] for row in mine if row["estimate"] is None]
        said = f"{most['n_failed']:,} of {most['n_judgements']:,} without a score under {rubric_id}, judged by {judge}"
        mean = f": no mean of {', '.join(blocked)}, so whether the judge drifted is unknown this night" if blocked else ""
        console.print(Text(one_line(f"anchors     {said}{mean}"), style="red" if blocked else ""))


def with_alarms(rows: Sequence[LeaderboardRow], found: Sequence[dict[str, Any]]) -> list[LeaderboardRow]:
    """The rows, those of a series with an alarm this night with its verdict.

    A bridge may have joined the series to a later judge's since; the publication has the judge that measured the night.
    """
    names = ("rubric_id", "dimension", "category", "model", "checkpoint")
    verdicts = {(row["measured_by"], *(row[name] for name in names)): row["verdict"] for row in found}
    return [replace(row, drift_alarm=verdicts.get((row.judge_model, *(getattr(row, name) for name in names)))) for row in rows]


def _said(row: dict[str, Any]) -> str:
    why = f" ({row['reason'].replace('_', ' ')})" if row["verdict"] == DriftVerdict.UNKNOWN and row["reason"] else ""
    judge, then = row["measured_by"], row["changed_under"]
    under = "" if then in (judge, None) else f", when {then} judged"
    since = "" if row["changed_on"] is None else f", since {row['changed_on']}{under}, shift {signed(row['shift'])}"
    return f"{row['model']}, {row['rubric_id']}/{row['dimension']}, judged by {judge}: {row['verdict']}{why}{since}"
