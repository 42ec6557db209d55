"""The table of checkpoints that a benchmark file may name: which are ready, and since when. Which there are: checkpoints.py."""

from collections.abc import Callable
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

import polars as pl

from schemas.errors import InputError
from tasks.context import StageContext

_NAMED = ["model", "checkpoint"]
READERS: dict[str, Callable[[Path], pl.DataFrame]] = {
    ".csv": partial(pl.read_csv, infer_schema=False),  # a checkpoint called 001000 or 1.10 is no number
    ".jsonl": partial(pl.read_ndjson, infer_schema_length=None),  # a key may come late
    ".parquet": pl.read_parquet,
}


class Listed(NamedTuple):
    """A row of the table of checkpoints: its date, if any, and its number, of which the first below the names is 1."""

    made_on: date | None
    row: int


def days_of(run: StageContext) -> dict[tuple[str, str], date | None]:
    """The dates that the table gives, by model and checkpoint."""
    return {key: one.made_on for key, one in listed(run).items()}


def listed(run: StageContext) -> dict[tuple[str, str], Listed]:
    """What the table of checkpoints lists, by model and checkpoint; nothing where the benchmark file names none."""
    if run.benchmark.nightly.checkpoints is None:
        return {}
    path = run.benchmark.path(run.benchmark.nightly.checkpoints)
    reader = READERS.get(path.suffix)
    if reader is None:
        raise InputError(f"nightly.checkpoints = {path.name!r}: a table of checkpoints must be one of {', '.join(READERS)}")
    try:
        frame = reader(path)
        if not set(_NAMED) <= set(frame.columns):
            there = ", ".join(frame.columns)
            raise InputError(f"{path} has the columns {there}; required: model, checkpoint, and date where known")
        nested = [name for name in _NAMED if frame.schema[name].is_nested()]
        if nested:
            raise InputError(f"{path}: {' and '.join(nested)} must be a text in each row, not a list or an object")
        days = [None] * frame.height if "date" not in frame.columns else _values(frame["date"], path)
        pairs = frame.select(pl.col(_NAMED).cast(pl.String))
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"nightly.checkpoints: {path} cannot be read as a table: {error}") from error
    zone, found = ZoneInfo(run.benchmark.nightly.timezone), dict[tuple[str, str], Listed]()
    for row, ((model, name), said) in enumerate(zip(pairs.iter_rows(), days, strict=True), start=1):
        if model and name:
            day = _day(said, path, zone)
            first = found.get((model, name))
            if first is None or first.made_on is None:
                found[model, name] = Listed(day, row)
            elif day not in (None, first.made_on):
                raise InputError(f"{path}: rows {first.row} and {row} give {model}/{name} two dates; keep the right one")
    return found


def _values(said: pl.Series, path: Path) -> list[object]:
    try:
        return said.to_list()
    except (ValueError, OverflowError, pl.exceptions.PanicException) as error:  # a year after 9999: times in a wrong unit
        wrong = f"{path}: the column date, of type {said.dtype}, holds what is no date ({error})"
        raise InputError(f"{wrong}; are its times in the right unit?") from error


def _day(value: object, path: Path, zone: ZoneInfo) -> date | None:
    """A date, or a time's in `zone`, as a folder's is, where it says its own zone. None where nothing is said."""
    if value is None or str(value).strip() == "":
        return None
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    try:
        said = value if isinstance(value, datetime) else datetime.fromisoformat(str(value).strip().replace(" UTC", "+00:00"))
        return (said.astimezone(zone) if said.tzinfo else said).date()
    except (ValueError, OverflowError) as error:
        raise InputError(f"{path}: date {value!r} is not a date; write it as 2026-03-31") from error
