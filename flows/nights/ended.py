"""A judge's series that end where another judge took its place and no bridge joins them. Bridges: drift.py."""

from collections.abc import Callable, Iterator, Mapping
from datetime import date
from functools import cache
from typing import Any

import polars as pl

from flows.nights.drift import bridges_of, nightly_publications
from schemas.statuses.nights import N_BASELINE
from schemas.tables.nights import BRIDGES
from tasks.aggregate.drift.bridge import OF, present_judges
from tasks.context import StageContext
from tasks.publish.identity import judges_in, judges_of_one, provenance, renamed_judges
from tasks.publish.living_tables import drift_rows
from tasks.publish.standings.answers import listed
from tasks.publish.standings.wording import counted
from tasks.verify.publication import read_provenance

_Said = Mapping[str, Any]  # a provenance


def ended_series(run: StageContext, night: date | None = None) -> Iterator[tuple[str, str]]:
    """Of each judge that others took the place of: that its series end, and what to do, as found_ended() says."""
    rows = drift_rows(run.lake.root, run.benchmark.name)
    if rows is None:
        return

    @cache
    def of_night(day: date) -> _Said:
        nights = nightly_publications(run.lake.root, run.benchmark.name)
        return next((read_provenance(one.folder) or {} for one in nights if one.run_date == day.isoformat()), {})

    yield from found_ended(rows, bridges_of(run.lake.root, run.benchmark.name), of_night, provenance(run), night)


def found_ended(
    rows: pl.DataFrame, bridges: pl.DataFrame | None, of_night: Callable[[date], _Said], now: _Said, night: date | None
) -> Iterator[tuple[str, str]]:
    """`rows`: drift_rows(). `of_night`: the provenance of a night; `now`: that of the file as it is.

    Of a `night`, what ends where it is the first without the judge; without one, what has no limits under the successor yet.
    """
    present = present_judges(BRIDGES.empty() if bridges is None else bridges)
    for (name,), mine in _without_judge(rows, present, now).partition_by("judge_model", as_dict=True).items():
        judge = str(name)
        whole = rows.filter((pl.col("judge_model") == judge) | (pl.col("measured_by") == judge))
        last: date = max(whole["run_date"].to_list())
        after = rows.filter(pl.col("run_date") > last)["run_date"].min()
        if night is not None and after != night:
            continue
        first = rows.filter(measured_by=judge)["run_date"].min()
        then = of_night(after) if isinstance(after, date) else now
        new = _successors(judge, [of_night(day) for day in (last, first) if isinstance(day, date)], then)
        new = [one for one in new if one in judges_in(now)]
        ends = mine.filter(run_date=last)
        begun = ends.join(rows.filter(pl.col("measured_by").is_in(new), pl.col("limit_low").is_not_null()), on=OF, how="anti")
        told = begun if night is None else ends
        if new and not told.is_empty():
            is_partial = not present.filter(pl.col("present") != judge, judge_model=judge).is_empty()
            yield _ends(judge, told, is_partial=is_partial) + _goes_on(new, begun.height, told.height), _advice(judge, new)


def _without_judge(rows: pl.DataFrame, present: pl.DataFrame, now: _Said) -> pl.DataFrame:
    """Those of series that no judge of the file goes on with, of rubrics that it asks in the same version."""
    judges, versions = judges_in(now), {name: rubric["version"] for name, rubric in now["rubrics"].items()}
    asked = pl.col("rubric_version") == pl.col("rubric_id").replace_strict(versions, default=None, return_dtype=pl.String)
    known = rows.filter(asked).join(present, on=[*OF, "judge_model"], how="left")
    gone = known.with_columns(pl.col("present").fill_null(pl.col("judge_model"))).filter(~pl.col("present").is_in(judges))
    return gone.join(present.filter(pl.col("judge_model").is_in(judges)), on=[*OF, "present"], how="anti")


def _successors(judge: str, before: list[_Said], then: _Said) -> list[str]:
    """The judges added since its last night, else since its first: both may have been asked for some nights."""
    if any(judge in renamed_judges(was, then) for was in before):
        return []
    return next((added for was in before if (added := judges_of_one(was, then)[0])), [])


def _ends(judge: str, ended: pl.DataFrame, *, is_partial: bool) -> str:
    alarms = ended.filter("is_alarm")
    since = alarms["changed_on"].min()
    dated = f" ({'since' if alarms.height == 1 else 'the first since'} {since})" if isinstance(since, date) else ""
    still = f", with {counted(alarms.height, 'open alarm')}{dated}" if alarms.height else ""
    names = ended.select(pl.concat_str("rubric_id", "dimension", separator=" ")).to_series().unique().sort().to_list()
    which = f" that no bridge joins ({listed(names)})" if is_partial else ""
    verb, last = "ends" if ended.height == 1 else "end", ended["run_date"][0]
    return f"{ended.height} series of judge {judge}{which} {verb} with the night of {last}{still}. "


def _goes_on(new: list[str], n_begun: int, n_told: int) -> str:
    who, begin, have = (new[0], "begins", "has limits of its own") if len(new) == 1 else (
        f"The new judges ({listed(new)})", "begin", "have limits of their own")  # fmt: skip
    if not n_begun:
        return f"{who} {have} there"
    where = "" if n_begun == n_told else f" in {n_begun} of them"
    return f"{who} {begin} anew{where}: no limits, and so no alarms, before {N_BASELINE} nights"


def _advice(judge: str, new: list[str]) -> str:
    to, which = (new[0], "") if len(new) == 1 else ("JUDGE", f" (JUDGE: {' or '.join(new)})")
    return (
        f"while {judge} still answers, salon anchors bridge FILE --old {judge} --new {to}{which} lets them continue: "
        "list both under [[judges]] for it"
    )
