"""What the index shows of a benchmark's nights: series, limits and alarms of the drift table. The statistics are elsewhere."""

from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import polars as pl

from schemas.metrics import HEADLINE
from schemas.tables import DRIFT
from tasks.publish.report.drawing import draw
from tasks.publish.report.figures import Figure
from tasks.publish.report.formats import words

Row = dict[str, Any]
_SERIES = ("rubric_id", "judge_model", "model", "dimension", "category")
N_ALARMS_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Nights:
    """A benchmark's nights: drawings, the last night of each series, and the alarms, newest first."""

    figures: list[Figure]
    last: list[Row]
    alarms: list[Row]
    n_alarms: int


def nights(home: Path, n_charted: int) -> Nights | None:
    """From drift.parquet beside the benchmark's publications; None before there is one. At most `n_charted` drawings."""
    path = home / f"{DRIFT.name}.parquet"
    if not path.is_file():
        return None
    rows = pl.read_parquet(path, columns=DRIFT.columns).sort(*_SERIES, "run_date").to_dicts()
    series = [list(mine) for _, mine in groupby(rows, key=lambda row: tuple(row[name] for name in _SERIES))]
    has_headline = {row["rubric_id"] for row in rows if row["dimension"] == HEADLINE}
    telling = [mine for mine in series if mine[0]["dimension"] == HEADLINE or mine[0]["rubric_id"] not in has_headline]
    alarmed_first = sorted(telling, key=lambda mine: not any(row["is_alarm"] for row in mine))
    is_telling = {id(row) for mine in telling for row in mine}
    alarms = sorted(
        (row for row in rows if row["is_alarm"]), key=lambda row: (row["run_date"], id(row) in is_telling), reverse=True
    )
    drawn = [figure for mine in alarmed_first[:n_charted] for figure in [_figure(mine)] if figure is not None]
    return Nights(drawn, [mine[-1] for mine in series], alarms[:N_ALARMS_SHOWN], len(alarms))


def _figure(series: list[Row]) -> Figure | None:
    columns = ("estimate", "ewma", "limit_low", "limit_high", "is_alarm")
    shown = [{"run_date": row["run_date"].isoformat()} | {name: row[name] for name in columns} for row in series]
    if not any(row["estimate"] is not None for row in shown):
        return None
    from tasks.publish.report.charts import nights as nights_chart

    first = series[0]
    title = f"{first['model']}: {words(first['dimension'])} under {first['rubric_id']}"
    label = f"{title}, judged by {_judges(series)}, over {len(shown)} nights. The last night is in the table below."
    if any(row["measured_by"] not in (first["judge_model"], None) for row in series):
        title += f", judged by {_judges(series)}"
    return Figure(title, draw(nights_chart("mean"), shown, label), is_cut=False)


def _judges(series: list[Row]) -> str:
    """Who judged: the series' judge, and behind it any whose nights a bridge joined to it."""
    judge = series[0]["judge_model"]
    others = dict.fromkeys(row["measured_by"] for row in series if row["measured_by"] not in (judge, None))
    return str(judge) + (f" (carried over by a bridge: {', '.join(others)})" if others else "")
