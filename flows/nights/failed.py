"""How the last try at a night failed, `failed/<benchmark>/<run date>.json` of the lake: for whoever looks without its log."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from schemas.benchmark.file import Benchmark
from schemas.errors import SalonError, StoppedError
from tasks.lake.identity import find_lake_id
from tasks.lake.notes import drop_note, read_notes, write_note
from tasks.lake.reading import open_lake

_LONGEST_CAUSE = 600


@dataclass(frozen=True, slots=True)
class FailedNight:
    """The end of a try; times in UTC."""

    run_date: str
    ended_at: str
    cause: str


@contextmanager
def noted_where_it_fails(benchmark: Benchmark, night: date, redacted: Callable[[str], str]) -> Iterator[None]:
    """A try at a night: the words with which it fails are kept, without secrets; those of the try before go as it begins."""
    root = open_lake(benchmark.lake, benchmark.folder.resolve()).root
    file = _file(root, benchmark.name, night.isoformat())
    with suppress(SalonError, OSError):  # here and below: no night ends for its note
        drop_note(root, file)
    try:
        yield
    except StoppedError:
        raise
    except Exception as error:
        said = " ".join(redacted(str(error) or type(error).__name__).split())  # before it is cut: half a key is not known as one
        cause = said if len(said) <= _LONGEST_CAUSE else said[: _LONGEST_CAUSE - 1] + "…"
        with suppress(SalonError, OSError):
            if find_lake_id(root) is not None:  # not into a folder on which the lake's disk is not mounted
                write_note(root, file, FailedNight(night.isoformat(), f"{datetime.now(UTC):%Y-%m-%d %H:%M}", cause))
        raise


def why_failed(lake_root: Path, benchmark: str, day: str) -> str | None:
    """In a sentence, how the last try at the night of a date (ISO) that is not published failed, where that can be read."""
    file = _file(lake_root, benchmark, day)
    with suppress(SalonError, OSError):
        for found in read_notes(lake_root, file.parent, _note, "a valid record of a failed night", "delete it", day).values():
            return f"a try at the night of {day} ended at {found.ended_at} UTC: {found.cause}"
    return None


def _note(said: Any) -> FailedNight:
    return FailedNight(said["run_date"], said["ended_at"], said["cause"])  # a later Salon may note more


def _file(lake_root: Path, benchmark: str, day: str) -> Path:
    return lake_root / "failed" / benchmark / f"{day}.json"
