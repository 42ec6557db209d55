"""A night's events: recorded in its note before they are sent, and taken from it once they are. What is an event: alerting.py.

So what a start could not send, the next start of any night does, and no event of a publication that another one took the place
of, or that was taken back, is sent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, date, datetime
from typing import Any

from flows.nights.record import Night, mutex_name, note_file, note_told, notes, notes_mutex
from flows.nights.shortfall import night_not_current
from flows.nights.shut_out import why_shut_out
from flows.observability.alerting import (
    EVENTS,
    JUDGE_CHANGED,
    Alert,
    checkpoint_missing,
    judge_changed,
    night_shut_out,
    no_fresh_checkpoint,
)
from flows.observability.artifacts import events_of_night, tell_alerts
from flows.observability.progress import RunSummary, current
from schemas.errors import SalonError
from schemas.records import ModelChange
from tasks.context import StageContext
from tasks.lake.notes import write_note
from tasks.ledger.mutex import mutex
from tasks.ledger.open_ledgers import opened


def record_events(
    run: StageContext, summary: RunSummary, night: Night, same_as: date | None, changed: Sequence[ModelChange]
) -> tuple[ModelChange, ...]:
    """Note what a night that stands published is to tell; also whom its judges `changed` to, with what earlier tries found."""
    name, root, day = run.benchmark.name, run.lake.root, run.run_date.isoformat()
    note = notes(root, name, day)[day]
    changes = tuple(dict.fromkeys([*note.changes, *changed]))
    told = {*(EVENTS if note.told is None else note.told)} - ({JUDGE_CHANGED} if len(changes) > len(note.changes) else set())
    untold, found = note.untold, events_of_night(run, summary, told)
    if found is not None:
        further = judge_changed(changes)
        further += [no_fresh_checkpoint(night.checkpoints, same_as)] if same_as is not None else []
        further += [checkpoint_missing([*night.gone, *night.late])] if night.gone or night.late else []
        shut_out = why_shut_out(run, datetime.now(UTC)) or (night_not_current(run) if note.behind else None)
        further += [night_shut_out(shut_out)] if shut_out is not None else []
        untold = [asdict(one) for one in (*found, *(one for one in further if one.name not in told))]
    write_note(root, note_file(root, name, day), replace(note, untold=untold, changes=changes))
    return changes


def send_events(run: StageContext, *, is_ended: bool) -> None:
    """Send what is recorded of the run's night, then of others, and was not sent. One process at a time; it ends no night.

    `is_ended`: no further try at this one is made. If one is, only a night that is whole is told of, and no other. Of others
    those that are whole, or before this one: a start may be about to try a later one again.
    """
    name, root, own = run.benchmark.name, run.lake.root, run.run_date.isoformat()

    def left() -> list[tuple[str, Sequence[Mapping[str, Any]]]]:
        found = {day: note for day, note in reversed(notes(root, name).items()) if note.untold}
        mine = [own] if own in found and (is_ended or found[own].is_whole) else []
        others = [day for day, note in found.items() if day != own and is_ended and (note.is_whole or day < own)]
        return [(day, found[day].untold) for day in (*mine, *others)]

    try:
        if not left():
            return
        with opened(run.ledger_url) as ledger, mutex(ledger, f"events of {mutex_name(run.name_in_ledger)}"):
            for day, untold in left():
                alerts = [Alert(one["name"], one["payload"]) for one in untold]
                sent = tell_alerts(name, date.fromisoformat(day), alerts, "The next start of a night sends them")
                with mutex(ledger, notes_mutex(run.name_in_ledger)):
                    note_told(root, name, day, [one for one in untold if one["name"] in sent])
                if len({*sent}) < len({one.name for one in alerts}):
                    break  # the server is waited for once
    except (SalonError, OSError) as error:
        current().say(f"not all events of nights were sent: {error}. The next start of a night sends them")
