"""What a night lacks of the checkpoints it would be about: gone since the night before, or listed and not there.

Which there are, and in which order: checkpoints.py. What is done without them: nightly.py.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from flows.nights.checkpoint_table import listed
from flows.nights.checkpoints import Checkpoint, has_newer, in_sources, newest, oldest_first
from flows.nights.record import NightNote
from tasks.context import StageContext


@dataclass(frozen=True, slots=True)
class Missing:
    """Each a sentence. `gone`: a model lost its newest. `replaced`: it did, and has a newer one.

    `late`: listed and not there, changed since this night judged it before, or the baseline, which no source has.
    """

    gone: tuple[str, ...]
    replaced: tuple[str, ...]
    late: tuple[str, ...]


def night_before(noted: Mapping[str, NightNote], run_date: date) -> str | None:
    """The date (ISO) of the last noted night before this one."""
    return max((day for day in noted if day < run_date.isoformat()), default=None)


def missing(
    run: StageContext,
    noted: Mapping[str, NightNote],
    there: Sequence[Checkpoint],
    known: Sequence[Checkpoint],
    until: date | None,
) -> Missing:
    """What the run's night lacks of the checkpoints `there`, of which it may be about the `known`: those made `until` a day."""
    day, table, rows, latest = night_before(noted, run.run_date), run.benchmark.nightly.checkpoints, listed(run), newest(known)
    table_days = {key: one.made_on for key, one in rows.items()}
    are_there = {(one.model, one.checkpoint) for one in there}
    lost = [] if day is None else [one for one in noted[day].checkpoints.items() if one not in are_there]
    gone, replaced, late = list[str](), list[str](), list[str]()
    for model, checkpoint in lost:
        where = "in the sources" if table is None or (model, checkpoint) in rows else f"listed in {table}"
        said, now = f"checkpoint {model}/{checkpoint}, in the night of {day}, is not {where} any more", latest.get(model)
        if now is None:
            gone.append(f"{said}, and no other of {model} is")
        elif has_newer({model: checkpoint}, {model: now.checkpoint}, known, table_days):
            replaced.append(f"{said}: {now.name} is not compared with it")
        else:
            gone.append(f"{said}: the newest of {model} is now {now.name}")
    last = until or max(run.run_date, run.benchmark.nightly.today(datetime.now(UTC)))
    days = {key: day for key, day in table_days.items() if (until is None if day is None else day <= last)}
    awaited: dict[str, list[tuple[str, str]]] = {}
    for key in oldest_first(days, days):
        own = awaited.setdefault(key[0], [])
        if key in are_there:
            own.clear()  # what is older than one that is there is missed by no night
        elif key not in lost:
            own.append(key)
    for own in filter(None, awaited.values()):
        before = f", nor {len(own) - 1} listed before it" if len(own) > 1 else ""
        late.append(f"row {rows[own[-1]].row} of {table} lists {'/'.join(own[-1])}, which no source has{before}")
    late += [*_no_baseline(run, are_there), *_changed_since(noted.get(run.run_date.isoformat()), there, known)]
    return Missing(tuple(gone), tuple(replaced), tuple(late))


def _no_baseline(run: StageContext, are_there: Collection[tuple[str, str]]) -> list[str]:
    """That no source has the baseline; the table of checkpoints need not list it."""
    baseline, has_table = run.benchmark.nightly.baseline, run.benchmark.nightly.checkpoints is not None
    if baseline is None or baseline in map("/".join, are_there) or (has_table and baseline in map("/".join, in_sources(run))):
        return []
    return [f"baseline {baseline} is in no source: nothing is compared with it, and no regression from it is told of"]


def _changed_since(earlier: NightNote | None, there: Sequence[Checkpoint], known: Sequence[Checkpoint]) -> list[str]:
    """The checkpoints that an `earlier` start of the night was about and that are too new for it now."""
    judged = set() if earlier is None else {*earlier.checkpoints.items()}
    return [
        f"checkpoint {one.name}, which this night was about before, is of {one.made_on}, after the night, and left out; if its "
        "files were only copied later, list the dates in a table under [nightly] checkpoints"
        for one in there
        if (one.model, one.checkpoint) in judged and one not in known
    ]
