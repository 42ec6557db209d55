"""Publications that the series of nights go without: they cannot be read, or are gone though a night is noted as them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from flows.nights.record import NightNote, note_file, notes
from schemas.errors import CorruptLakeError
from schemas.tables.nights import EXAM
from schemas.tables.published import BENCHMARK_LONG, FAILURES, STANDINGS
from tasks.lake.object_store.cache_folder import bucket_behind
from tasks.publish.folders import PROVENANCE, publication_folder
from tasks.publish.reading import checked_file, readable

_READ = {PROVENANCE, *(f"{table.name}.parquet" for table in (BENCHMARK_LONG, STANDINGS, FAILURES, EXAM))}
_SERIES = "the series of nights"
_DUCKDB = "salon.duckdb"
_ALL = f"{_SERIES} and of {_DUCKDB}"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One of them: why, with what is to be done, and what goes without it."""

    publication_id: str
    why: str
    of: str


def left_out(lake_root: Path, benchmark: str) -> Iterator[LeftOut]:
    """Those of a benchmark. In a bucket's lake only files that were fetched are looked at."""
    found, spoiled = readable(lake_root, benchmark)
    noted = notes(lake_root, benchmark)
    nights = {note.publication_id: note_file(lake_root, benchmark, day) for day, note in noted.items()}
    for id_, error in spoiled.items():
        also = f", and {nights[id_]} with it" if id_ in nights else ""
        yield LeftOut(id_, f"{error}, or move its folder out of the lake{also}", _ALL if id_ in nights else _DUCKDB)
    for one in (one for one in found if one.publication_id in nights):
        try:
            for name in _READ & one.files:
                if bucket_behind(lake_root) is None or (one.folder / name).is_file():
                    checked_file(one, name)
        except CorruptLakeError as error:
            yield LeftOut(one.publication_id, str(error), _SERIES)
    there = {*spoiled, *(one.publication_id for one in found)}
    for day, note in noted.items():
        if note.publication_id not in there:
            yield LeftOut(note.publication_id, "; ".join(gone_night(lake_root, benchmark, day, note)), _ALL)


def gone_night(lake_root: Path, benchmark: str, day: str, note: NightNote) -> tuple[str, str]:
    """Of a night (ISO) whose publication is not there: what is gone, and what to do."""
    folder, its_note = publication_folder(lake_root, benchmark, note.publication_id), note_file(lake_root, benchmark, day)
    return f"{folder}, the night of {day}, is gone", f"restore it from a backup, or delete {its_note} and run that night again"
