"""A benchmark's nights for the index: drawings of its series and anchors, alarms, and what was not watched."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from schemas.metrics import HEADLINE
from schemas.statuses.nights import N_BASELINE
from schemas.tables.table import Row
from tasks.publish.living_tables import drift_rows
from tasks.publish.report.drawing import draw
from tasks.publish.report.figures import Figure
from tasks.publish.report.formats import words

_SERIES = ("rubric_id", "rubric_version", "judge_model", "model", "dimension", "category")
N_ALARMS_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Nights:
    """A benchmark's nights: drawings, the last night of each series, the alarms, newest first; false ones to be expected.

    Rows are of drift_rows(). `n_watched` series have limits; `not_watched` says so of the others, and which of these were not
    looked at on their last night. `is_bridged`: another judge measured some of the nights, and a bridge shifted them.
    """

    figures: list[Figure]
    last: list[Row]
    alarms: list[Row]
    n_alarms: int
    n_false_expected: float
    n_watched: int
    not_watched: str
    is_bridged: bool


def nights(home: Path, n_charted: int) -> Nights | None:
    """From the benchmark's drift table; None before there is one. At most `n_charted` drawings."""
    found = drift_rows(home.parents[2], home.name)
    if found is None:
        return None
    rows = found.sort(*_SERIES, "run_date").to_dicts()
    series = [list(mine) for _, mine in groupby(rows, key=lambda row: tuple(row[name] for name in _SERIES))]
    has_headline = {row["rubric_id"] for row in rows if row["dimension"] == HEADLINE}
    telling = [mine for mine in series if mine[0]["dimension"] == HEADLINE or mine[0]["rubric_id"] not in has_headline]
    alarmed_first = sorted(telling, key=lambda mine: not any(row["is_alarm"] for row in mine))
    is_telling = {id(row) for mine in telling for row in mine}
    alarms = sorted(
        (row for row in rows if row["is_alarm"]), key=lambda row: (row["run_date"], id(row) in is_telling), reverse=True
    )
    drawn = [*_drawings(alarmed_first, n_charted, tells_judges=len({row["judge_model"] for row in rows}) > 1)]
    spent = sum(max((row["alpha_spent"] or 0.0 for row in mine), default=0.0) for mine in series)
    last = [mine[-1] for mine in series]
    young = [mine[-1] for mine in series if not _has_limits(mine)]
    unseen = [mine[-1] for mine in series if _has_limits(mine) and mine[-1]["limit_low"] is None and not mine[-1]["is_alarm"]]
    said = " ".join([*_not_watched(young, len(last)), *_not_looked_at(unseen, len(last))])
    is_bridged = any(row["measured_by"] != row["judge_model"] for row in rows)
    return Nights(drawn, last, alarms[:N_ALARMS_SHOWN], len(alarms), spent, len(last) - len(young), said, is_bridged)


def _has_limits(mine: list[Row]) -> bool:
    """Whether a series is watched by now: a last night that is no observation has none of its own. Another size begins anew."""
    return any(row["limit_low"] is not None for row in mine if row["n_judgements"] == mine[-1]["n_judgements"])


def _not_watched(young: Sequence[Row], n_series: int) -> Iterator[str]:
    """Of the last nights of series without limits."""
    if young:
        which = "Not watched yet" if len(young) == n_series else f"{len(young)} of {n_series} series not watched yet"
        yield f"{which}: {max(row['n_baseline'] or 0 for row in young)} of the {N_BASELINE} nights that limits need."


def _not_looked_at(unseen: Sequence[Row], n_series: int) -> Iterator[str]:
    """Of the last nights of watched series, where they were no observation."""
    if unseen:
        which = "The last night" if len(unseen) == n_series else f"The last night of {len(unseen)} of {n_series} series"
        yield f"{which} could not be looked at: {', '.join(sorted({words(row['reason']) for row in unseen}))}."


def _drawings(series: Iterable[list[Row]], n_most: int, *, tells_judges: bool) -> Iterator[Figure]:
    """Each series, and below it its anchors' where no series before has shown them; `n_most` in all."""
    shown: set[tuple[Any, ...]] = set()
    for mine in series:
        anchors = (
            *(mine[0][name] for name in ("rubric_id", "rubric_version", "judge_model", "dimension", "category")),
            mine[-1]["anchor_set"],
        )
        for of, is_new in (("", True), ("anchor_", anchors not in shown)):
            figure = _figure(mine, of, tells_judges=tells_judges) if is_new and n_most else None
            if figure is None:
                break  # anchors stand below their own series, never below another's
            shown |= {anchors} if of else set()
            n_most -= 1
            yield figure


def _figure(series: list[Row], of: str, *, tells_judges: bool) -> Figure | None:
    """The drawing of a series, or with `anchor_` of its anchors; None where there is nothing to draw."""
    columns = {name: f"{of}{name}" for name in ("estimate", "ewma", "limit_low", "limit_high")}
    shown = [
        {"run_date": row["run_date"].isoformat(), "is_alarm": row["is_alarm"] and (not of or _is_out(row))}
        | {"is_bridged": row["measured_by"] != row["judge_model"]}
        | {name: row[column] for name, column in columns.items()}
        for row in series
    ]
    if not any(row["estimate"] is not None for row in shown):
        return None
    from tasks.publish.report.charts import nights as nights_chart

    first = series[0]
    who = "the frozen anchors" if of else first["model"]
    title = f"{who}: {words(first['dimension'])} under {first['rubric_id']}, version {first['rubric_version']}"
    label = f"{title}, judged by {_judges(series)}, over {len(shown)} nights. The last night is in the table below."
    if tells_judges or any(row["is_bridged"] for row in shown):
        title += f", judged by {_judges(series)}"
    return Figure(title, draw(nights_chart(shown, "mean"), shown, label), is_cut=False)


def _is_out(row: Row) -> bool:
    """Whether the anchors are beyond their limits this night."""
    mean, low, high = (row[f"anchor_{name}"] for name in ("ewma", "limit_low", "limit_high"))
    return mean is not None and low is not None and not low <= mean <= high


def _judges(series: list[Row]) -> str:
    """Who judged: the series' judge, and behind it any whose nights a bridge joined to it."""
    judge = series[0]["judge_model"]
    others = dict.fromkeys(row["measured_by"] for row in series if row["measured_by"] != judge)
    return str(judge) + (f" (hollow, carried over by a bridge: {', '.join(others)})" if others else "")
