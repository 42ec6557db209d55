"""What is noted of each night: which checkpoints it was about, which publication it is. Nights are run in nightly.py.

A note is a small file of the lake beside the publications, `nights/<benchmark>/<run date>.json`. A publication holds more than
the night's own checkpoints, and a backfill makes publications too: the note tells the series which is which.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from schemas.records import ModelChange
from tasks.lake.notes import drop_note, read_notes, write_note


def mutex_name(name_in_ledger: str) -> str:
    """Of the block in which one process of all that share a ledger runs a night of the benchmark."""
    return f"nightly {name_in_ledger}"


def notes_mutex(name_in_ledger: str) -> str:
    """Of the short block in which notes of nights are read and written anew: what was sent is noted while another night runs."""
    return f"notes of {mutex_name(name_in_ledger)}"


@dataclass(frozen=True, slots=True)
class Night:
    """What a nightly run is to be about: the newest checkpoint of each model, the anchors it asks, and what it is due by.

    `gone` and `late`: sentences about checkpoints that it lacks, as of missing.py.
    """

    checkpoints: Mapping[str, str]  # model -> checkpoint
    anchor_set: str | None = None
    schedule: str | None = None
    timezone: str | None = None
    gone: Sequence[str] = ()
    late: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class NightNote:
    """A night that was published. `is_whole`: no cell or win rate of it is blocked, so that nothing is left to do.

    `told`: the names of the events that were sent of it; None in notes from before they were noted. `untold`: the events that are
    to be sent of this publication, name and payload. `changes`: the judges as which another model answered than on the night
    before. `behind`: the publication of a later date that was current as this night was published, and stayed so. `max_usd`: the
    budget that ended its asking, if any. `schedule` and `timezone`: what it was due by as it was first noted; None in notes from
    before these were noted. `gone` and `late`: as of Night.
    """

    publication_id: str
    checkpoints: Mapping[str, str]
    anchor_set: str | None
    is_whole: bool
    told: Sequence[str] | None = None
    behind: str | None = None
    max_usd: float | None = None
    schedule: str | None = None
    timezone: str | None = None
    gone: Sequence[str] = ()
    late: Sequence[str] = ()
    untold: Sequence[Mapping[str, Any]] = ()
    changes: Sequence[ModelChange] = ()


_NAMES = {field.name for field in fields(NightNote)}


def night_budget(name_in_ledger: str, run_date: date) -> str:
    """What a night's money is counted under: all its starts and tries share `max_usd`."""
    return sha256(f"night {run_date.isoformat()} of {name_in_ledger}".encode()).hexdigest()


def note_night(
    lake_root: Path,
    benchmark: str,
    night: Night,
    run_date: date,
    publication_id: str,
    *,
    is_whole: bool,
    behind: str | None = None,
    max_usd: float | None = None,
) -> None:
    """Note a night, in place of an earlier note of the same date; what was told of it, what it was behind and due by, stays.

    So does what is to be told of the same publication.
    """
    earlier = notes(lake_root, benchmark).get(run_date.isoformat())
    told, changes = ((), ()) if earlier is None else (earlier.told, earlier.changes)
    untold: Sequence[Mapping[str, Any]] = ()
    if earlier is not None and earlier.publication_id == publication_id:
        behind, untold = earlier.behind, earlier.untold
    due_by = night if earlier is None or earlier.schedule is None else earlier
    note = NightNote(publication_id, dict(night.checkpoints), night.anchor_set, is_whole, told, behind, max_usd)
    note = replace(note, schedule=due_by.schedule, timezone=due_by.timezone, gone=night.gone, late=night.late)
    note = replace(note, untold=untold, changes=changes)
    write_note(lake_root, note_file(lake_root, benchmark, run_date.isoformat()), note)


def note_told(lake_root: Path, benchmark: str, day: str, sent: Sequence[Mapping[str, Any]]) -> None:
    """Note the events that were sent of a night, beside those that were before. Nothing where it was taken back meanwhile.

    In the block of notes_mutex(): it would bring back a note that is taken away, or replaced, since it was read.
    """
    note = notes(lake_root, benchmark, day).get(day)
    if note is not None:
        told = sorted({*(note.told or ()), *(one["name"] for one in sent)})
        note = replace(note, told=told, untold=[one for one in note.untold if one not in sent])
        write_note(lake_root, note_file(lake_root, benchmark, day), note)


def note_file(lake_root: Path, benchmark: str, day: str) -> Path:
    """Where the night of a date (ISO) is noted."""
    return _folder(lake_root, benchmark) / f"{day}.json"


def notes(lake_root: Path, benchmark: str, day: str = "*") -> dict[str, NightNote]:
    """Every noted night of a benchmark by its date (ISO), or that of one date; oldest first. Raises CorruptLakeError."""
    what, remedy = "a valid record of a night", "delete it and run that night again"
    return read_notes(lake_root, _folder(lake_root, benchmark), _note, what, remedy, day)


def forget_nights(lake_root: Path, benchmark: str, publication_id: str) -> list[str]:
    """Take away the notes of the nights that are this publication, so that each may be run again; their dates (ISO)."""
    days = [day for day, note in notes(lake_root, benchmark).items() if note.publication_id == publication_id]
    for day in days:
        drop_note(lake_root, note_file(lake_root, benchmark, day))
    return days


def _note(said: Any) -> NightNote:
    note = NightNote(**{name: value for name, value in said.items() if name in _NAMES})  # a later Salon may note more
    if note.schedule is not None and note.timezone is not None:  # an older one may say what a benchmark file no longer may
        try:
            CronSim(note.schedule, datetime.now(ZoneInfo(note.timezone)))
        except (CronSimError, OSError) as error:
            raise ValueError(str(error)) from error
    changes: Sequence[Any] = note.changes
    return replace(note, changes=tuple(ModelChange(one["judge_model"], one["before"], one["now"]) for one in changes))


def _folder(lake_root: Path, benchmark: str) -> Path:
    return lake_root / "nights" / benchmark
