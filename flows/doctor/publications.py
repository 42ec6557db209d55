"""What a lake has published: whether one is current that may be, what cannot be read, and whether dashboards show it."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from flows.doctor.findings import Finding, shortened, wrong
from flows.nights.left_out import left_out
from flows.nights.lost_pointer import nothing_current
from schemas.errors import CorruptLakeError
from tasks.lake.object_store.cache_folder import bucket_behind
from tasks.lake.reading import Lake
from tasks.publish.duckdb_file import NAME as DUCKDB
from tasks.publish.folders import GOOD_POINTER, LAYOUT, POINTER
from tasks.publish.pointer import read_pointer
from tasks.publish.reading import look_again
from tasks.publish.small_tables import RESTORE, damaged
from tasks.publish.withdrawn import each_taken_back
from tasks.verify.recomputed_duckdb import opened

PUBLICATIONS = "publications"
_MOST = 100_000


def check_publications(lake: Lake, benchmark: str) -> Iterator[Finding]:
    """Whether one is current that may be, those that cannot be read or are gone, and damaged tables: nights go on without."""
    look_again(lake.root, benchmark)
    home, pointers = lake.root / "publish" / LAYOUT / benchmark, dict[str, dict[str, str]]()
    for pointer, becomes in ((POINTER, "becomes current"), (GOOD_POINTER, "is named")):
        try:
            pointers[pointer] = read_pointer(home, pointer) or {}
        except CorruptLakeError as error:
            said, _, advice = str(error).rpartition("; ")
            yield wrong(PUBLICATIONS, said, f"{advice}: what is published is whole, and {becomes} again")
    if POINTER not in pointers:  # of every publication the same
        return
    named = pointers[POINTER].get("publication_id", "")
    if (gone := each_taken_back(lake.root, [named])[0].get(named)) is not None:
        yield wrong(PUBLICATIONS, f"{gone.told}, and is still current", "the same salon withdraw again takes it off")
    if (lost := nothing_current(lake.root, benchmark)) is not None:
        yield wrong(PUBLICATIONS, lost, "salon nightly FILE, or the run that published it, makes it current again")
    for one in left_out(lake.root, benchmark):
        said, _, advice = one.why.rpartition("; ")
        yield wrong(PUBLICATIONS, f"{one.publication_id[:12]} is left out of {one.of}: {said}", advice)
    if bucket_behind(lake.root) is not None:  # the file, and each small table of each publication, would be fetched
        return
    if named and gone is None and (unseen := _not_shown(home / DUCKDB, named)) is not None:
        yield wrong(PUBLICATIONS, unseen, "the same command as the last run's, or the next night, makes it anew")
    for file in damaged(lake.root, benchmark):
        then = f"the next run makes it again from {file.twin}" if file.twin else f"{RESTORE}; salon.duckdb goes without it"
        yield wrong(PUBLICATIONS, f"{file.path} is gone, or not the file that was written", then)


def _not_shown(file: Path, current: str) -> str | None:
    """Why dashboards do not see the current publication; None where they do, or another program holds the file open to write."""
    import duckdb

    if not file.is_file():
        return f"there is no {DUCKDB}"
    try:
        with opened(file) as held:
            rows = held.rows("publications", _MOST) if "publications" in held.names else pl.DataFrame()
    except duckdb.Error as error:
        return None if "lock" in str(error) else f"{DUCKDB} cannot be read: {shortened(str(error))}"
    if not {"is_current", "publication_id"} <= {*rows.columns}:
        return f"{DUCKDB} has no list of publications"
    shown = "".join(rows.filter("is_current")["publication_id"])
    return None if shown == current else f"{DUCKDB} shows {shown[:12] or 'none'} as the current publication, not {current[:12]}"
