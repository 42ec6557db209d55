"""What of a run's tables is worth an event: regressions, drift, blocked cells, missed nights. Pure; sending is events.py."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import takewhile
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl
from cronsim import CronSim

from flows.observability.terminal import format_cost, format_usd
from schemas.records import ModelChange
from schemas.statuses.cells import CellStatus, ComparisonKind, ComparisonVerdict, Total
from tasks.judge.outcome import Outcome
from tasks.publish.standings.wording import signed

# The names are a contract: docs/alerts.md describes them, automations wait for them.
PUBLISHED = "salon.table.published"
BLOCKED = "salon.table.blocked"
REGRESSION = "salon.score.regression"
SCORE_DRIFT = "salon.score.drift"
JUDGE_DRIFT = "salon.judge.drift"
BUDGET_REACHED = "salon.budget.reached"
JUDGE_CHANGED = "salon.judge.changed"
NIGHT_MISSED = "salon.night.missed"
NIGHT_STALE = "salon.night.stale"
NIGHT_FAILED = "salon.night.failed"
NIGHT_SHUT_OUT = "salon.night.shut_out"
CHECKPOINT_MISSING = "salon.checkpoint.missing"
EVENTS = (
    PUBLISHED, BLOCKED, REGRESSION, SCORE_DRIFT, JUDGE_DRIFT, JUDGE_CHANGED, BUDGET_REACHED, NIGHT_MISSED, NIGHT_STALE,
    NIGHT_FAILED, NIGHT_SHUT_OUT, CHECKPOINT_MISSING,
)  # fmt: skip

COMPARISON_ALPHA = 0.05  # of nights on which nothing differs, the share that has a false regression at most
N_LISTED = 20  # rows in a payload; n_all says how many there are
N_NAMED = 3  # in its sentence

_COMPARED = [
    "comparison", "rubric_id", "judge_model", "dimension", "category", "model_a", "checkpoint_a", "model_b", "checkpoint_b",
    "delta", "ci_low_adjusted", "ci_high_adjusted", "p_adjusted", "cell_id_a",
]  # fmt: skip
_DRIFTED = [
    "rubric_id", "judge_model", "model", "checkpoint", "dimension", "verdict", "reason", "estimate", "ewma", "limit_low",
    "limit_high", "anchor_ewma", "changed_on", "shift", "measured_by", "changed_under",
]  # fmt: skip
_BLOCKED = ["cell_id", "rubric_id", "judge_model", "model", "checkpoint", "dimension", "category", "reason", "coverage"]
_SHOWN_OF_A_LINEAGE = (ComparisonKind.PREDECESSOR.value, ComparisonKind.BASELINE.value)


@dataclass(frozen=True, slots=True)
class Alert:
    """One event to be: its name, and a payload of plain JSON values with the sentence `says` for people."""

    name: str
    payload: Mapping[str, Any]


def regressions(comparisons: pl.DataFrame, newest: Mapping[str, str]) -> list[Alert]:
    """Newest checkpoints whose mean over categories is below their predecessor's or the baseline's, by a primary verdict.

    `newest`: by model; an older checkpoint was newest once and was told of then.
    """
    named = {"model_a": [*newest.keys()], "checkpoint_a": [*newest.values()]}
    worse = comparisons.filter(
        pl.col("comparison").is_in(_SHOWN_OF_A_LINEAGE),
        pl.col("category") == Total.MACRO.value,
        pl.col("verdict") == ComparisonVerdict.LOWER.value,
        pl.col("is_primary").fill_null(value=True),  # of a publication from before there was a difference
    ).join(pl.DataFrame(named, schema=dict.fromkeys(named, pl.String)), on=["model_a", "checkpoint_a"], how="semi")
    worse = worse.sort("delta", "rubric_id", "judge_model", "dimension", "model_a", "checkpoint_a", "comparison")
    found = _listed(REGRESSION, worse, _COMPARED, "")
    says = _worse_than(worse)
    return [Alert(one.name, dict(one.payload) | {"says": says, "alpha": COMPARISON_ALPHA}) for one in found]


def _worse_than(worse: pl.DataFrame) -> str:
    """The worst by name, each with its difference; judges where there are several."""
    n_judges, said = worse["judge_model"].n_unique(), []
    for row in worse.head(N_NAMED).iter_rows(named=True):
        other = row["checkpoint_b"] if row["model_b"] == row["model_a"] else f"{row['model_b']}/{row['checkpoint_b']}"
        low, high = row["ci_low_adjusted"], row["ci_high_adjusted"]
        interval = "" if low is None or high is None else f" [{signed(low)}, {signed(high)}]"
        measure = [row["rubric_id"], row["dimension"], *([row["judge_model"]] if n_judges > 1 else [])]
        named = f"{row['model_a']}/{row['checkpoint_a']} is worse than {other}"
        said.append(f"{named}: {signed(row['delta'])}{interval}, {', '.join(measure)}")
    n_more = worse.height - len(said)
    return "; ".join(said) + (f"; and {n_more} more" if n_more else "")


def drifts(drift: pl.DataFrame, run_date: date) -> list[Alert]:
    """The alarms of one night in drift_rows(): those that blame the models alone, those in which the judge may have part."""
    alarms = drift.filter(pl.col("run_date") == run_date, pl.col("is_alarm")).sort(
        "rubric_id", "judge_model", "model", "dimension"
    )
    is_model = pl.col("verdict") == "model"
    return [
        *_listed(
            JUDGE_DRIFT,
            alarms.filter(~is_model),
            _DRIFTED,
            "{n} series {are} beyond {their} limits, possibly because of the judge",
        ),
        *_listed(
            SCORE_DRIFT,
            alarms.filter(is_model),
            _DRIFTED,
            "{n} series {are} beyond {their} limits, and not because of the judge",
        ),
    ]


def blocked_cells(cells: pl.DataFrame) -> list[Alert]:
    """The published cells that coverage blocks, those of the headline rankings first."""
    found = cells.filter(pl.col("status") == CellStatus.BLOCKED.value).sort(
        pl.col("is_headline").fill_null(value=False), "cell_id", descending=[True, False]
    )
    return _listed(BLOCKED, found, _BLOCKED, "{n} cell{s} {are} blocked: too few of {their} judgements have a score")


def missed_nights(calendars: Collection[tuple[str, str]], nights: list[date], run_date: date, newest_due: date) -> list[date]:
    """The dates on which a nightly run was due, after the latest of `nights` before `run_date` and before `run_date` itself.

    The night of `newest_due` is not missed: until the next one is due, a start runs it. None where `run_date` is not the latest
    (a backfill), or is the first. `calendars`: cron lines and their time zones, by each of which a date must be due.
    """
    earlier = [night for night in nights if night < run_date]
    if not earlier or any(night > run_date for night in nights):
        return []
    first, end = max(earlier) + timedelta(days=1), min(run_date, newest_due)
    return sorted(set.intersection(*({*_due(*calendar, first, end)} for calendar in calendars)))


def _due(schedule: str, timezone: str, first: date, end: date) -> Iterator[date]:
    """The dates from `first` on and before `end` on which a night is due."""
    after = datetime.combine(first, datetime.min.time(), ZoneInfo(timezone)) - timedelta(seconds=1)
    return takewhile(lambda day: day < end, (due.date() for due in CronSim(schedule, after)))


def missed(dates: list[date]) -> list[Alert]:
    """The event about missed nights; none where none was missed."""
    if not dates:
        return []
    text = [day.isoformat() for day in dates]
    were = "1 night was due but has" if len(dates) == 1 else f"{len(dates)} nights were due but have"
    says = f"{were} no publication: {', '.join(text[-N_LISTED:])}"
    return [Alert(NIGHT_MISSED, {"says": says, "n_all": len(dates), "dates": text[-N_LISTED:]})]


def judge_changed(changes: Sequence[ModelChange]) -> list[Alert]:
    """The event that under a judge's name another model answered than on the night before; none where none did."""
    if not changes:
        return []
    each = [f"judge {one.judge_model} answered as {one.before} on the night before, and as {one.now} now" for one in changes]
    says = f"{'; '.join(each)}. Checkpoints judged by one are not compared with those judged by the other"
    return [Alert(JUDGE_CHANGED, {"says": says, "n_all": len(changes), "rows": [asdict(one) for one in changes]})]


def no_fresh_checkpoint(checkpoints: Mapping[str, str], same_as: date) -> Alert:
    """The event that no model has had a newer checkpoint since the night before."""
    named = [f"{model}/{checkpoint}" for model, checkpoint in checkpoints.items()]
    says = f"no fresh checkpoint since the night of {same_as}: the newest is {', '.join(named[:N_LISTED])}"
    return Alert(
        NIGHT_STALE, {"says": says, "n_all": len(named), "checkpoints": named[:N_LISTED], "same_as": same_as.isoformat()}
    )


def checkpoint_missing(told: Sequence[str]) -> Alert:
    """The event that a night lacks checkpoints: a sentence of each."""
    more = f"; and {len(told) - N_NAMED} more" if len(told) > N_NAMED else ""
    says = "; ".join(told[:N_NAMED]) + more
    return Alert(CHECKPOINT_MISSING, {"says": says, "n_all": len(told), "missing": [*told[:N_LISTED]]})


def table_blocked(error: Exception) -> Alert:
    """A blocking data check failed, and nothing was published."""
    return Alert(BLOCKED, {"says": str(error), "n_all": None, "rows": []})


def budget_reached(limit_usd: float | None, asked: Outcome, n_not_asked: int) -> Alert:
    """A run stopped asking because the next question could have cost more than is left of its budget."""
    limit_usd, spent_usd = limit_usd or 0.0, asked.cost_usd or 0.0
    spent = f"this run spent {format_cost(spent_usd, is_at_least=asked.is_at_least)}, {n_not_asked:,} requests not sent"
    says = f"the budget of {format_usd(limit_usd)} is reached: {spent}"
    return Alert(BUDGET_REACHED, {"says": says, "limit_usd": limit_usd, "spent_usd": spent_usd, "n_not_asked": n_not_asked})


def night_failed(error: str, gives_up_at: datetime | None) -> Alert:
    """The event that a night is given up."""
    until = gives_up_at.isoformat() if gives_up_at else None
    says = f"the night is given up{f', finish_by was {gives_up_at:%H:%M %Z}' if gives_up_at else ''}: {error}"
    return Alert(NIGHT_FAILED, {"says": says, "error": error, "finish_by": until})


def night_shut_out(why: str) -> Alert:
    """The event that a night was published and is not current, since what is current is of a later date."""
    return Alert(NIGHT_SHUT_OUT, {"says": why})


def _listed(name: str, rows: pl.DataFrame, columns: list[str], says: str) -> list[Alert]:
    if rows.is_empty():
        return []
    number = {"s": "", "are": "is", "their": "its"} if rows.height == 1 else {"s": "s", "are": "are", "their": "their"}
    listed = [{column: _plain(value) for column, value in row.items()} for row in rows.head(N_LISTED).select(columns).to_dicts()]
    return [Alert(name, {"says": says.format(n=rows.height, **number), "n_all": rows.height, "rows": listed})]


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return value.isoformat() if isinstance(value, date) else value
