"""A judge's series that end where another judge took its place and no bridge joins them. Bridges: drift.py."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

import polars as pl

from flows.nights.drift import bridges_of, nightly_publications
from schemas.statuses.nights import N_BASELINE
from tasks.context import StageContext
from tasks.publish.identity import provenance, replaced_judges
from tasks.publish.living_tables import drift_rows
from tasks.publish.standings.wording import counted
from tasks.verify.publication import read_provenance


@dataclass(frozen=True, slots=True)
class Ended:
    """Of a judge that was replaced: its last night, the first one without it (None before there is one), and how to say so."""

    last: date
    first_without: date | None
    says: str
    advice: str


def ended_series(run: StageContext) -> Iterator[Ended]:
    """The judges that another took the place of, without a bridge that joins their series, until that one's own have limits."""
    rows, judges = drift_rows(run.lake.root, run.benchmark.name), [judge.id for judge in run.benchmark.judges]
    if rows is None:
        return
    watched = set(rows.filter(pl.col("limit_low").is_not_null())["judge_model"])
    new = [judge for judge in judges if judge not in watched]
    first = rows.filter(pl.col("judge_model").is_in(new))["run_date"].min()
    before = rows if first is None else rows.filter(pl.col("run_date") < first)
    last = before["run_date"].max()
    if not new or not isinstance(last, date) or not _is_replaced(run, last):
        return
    of = ["rubric_id", "rubric_version", "dimension", "judge_model"]
    ended = before.filter(~pl.col("judge_model").is_in(judges), run_date=last)
    if (bridges := bridges_of(run.lake.root, run.benchmark.name)) is not None:
        crossed = bridges.filter(pl.col("judge_new").is_in(judges)).rename({"judge_old": "judge_model"})
        ended = ended.join(crossed, on=of, how="anti")
    for (judge,), mine in ended.partition_by("judge_model", as_dict=True).items():
        yield Ended(last, first if isinstance(first, date) else None, *_told(str(judge), mine, last, new[0]))


def _is_replaced(run: StageContext, last: date) -> bool:
    """Whether a judge of the file takes the place of one of that night."""
    nights = nightly_publications(run.lake.root, run.benchmark.name)
    was = next((one for one in nights if one.run_date == last.isoformat()), None)
    return was is not None and bool(replaced_judges(read_provenance(was.folder) or {}, provenance(run)))


def _told(judge: str, ended: pl.DataFrame, last: date, new: str) -> tuple[str, str]:
    alarms = ended.filter("is_alarm")
    since = alarms["changed_on"].min()
    dated = f" ({'since' if alarms.height == 1 else 'the first since'} {since})" if isinstance(since, date) else ""
    still = f", with {counted(alarms.height, 'open alarm')}{dated}" if alarms.height else ""
    says = (
        f"{ended.height} series of judge {judge} {'ends' if ended.height == 1 else 'end'} with the night of {last}{still}. "
        f"{new} begins anew: no limits, and so no alarms, before {N_BASELINE} nights"
    )
    advice = (
        f"while {judge} still answers, salon anchors bridge FILE --old {judge} --new {new} lets them continue: list both under "
        "[[judges]] for it"
    )
    return says, advice
