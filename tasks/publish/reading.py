"""Finding what was published: publications, the current one, its cells, one cell by its address. Writing is publication.py."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from schemas.errors import CorruptLakeError, InputError, StoreError
from schemas.tables.field import DIGEST_LENGTH
from schemas.tables.nights import EXAM
from schemas.tables.published import BENCHMARK_LONG, COMPARISONS, FAILURES, STANDINGS
from tasks.lake.atomic_files import sha256_of_file
from tasks.lake.object_store.cache_folder import bring, bucket_behind, refresh
from tasks.lake.object_store.client import each
from tasks.lake.own_places import remove
from tasks.lake.reading import Lake, with_later_columns
from tasks.publish.folders import AGREEMENTS, GOOD_POINTER, LAYOUT, MANIFEST, POINTER, PROVENANCE
from tasks.publish.machine_tables import FOLDER as TABLES_FOLDER
from tasks.publish.machine_tables import first_made
from tasks.publish.pointer import read_pointer
from tasks.publish.standings.placed_cells import placed, with_comparisons
from tasks.publish.withdrawn import taken_back
from tasks.regular_files import content_of


@dataclass(frozen=True, slots=True)
class Publication:
    """A published folder, and whether its benchmark's pointer says it is the current one."""

    benchmark: str
    publication_id: str
    run_date: str
    folder: Path
    is_current: bool
    files: frozenset[str] = frozenset()  # their names, the manifest's own apart

    def provenance(self) -> dict[str, Any]:
        """What provenance.json says."""
        path = checked_file(self, PROVENANCE)
        try:
            return dict(json.loads(content_of(path)))
        except (ValueError, TypeError, RecursionError) as error:
            raise CorruptLakeError(f"{path} is not a JSON object ({error}); restore the folder, or run again") from error


def look_again(lake_root: Path, *folders: str) -> None:
    """In a lake on a bucket: make the manifests and pointers here those that are there. `folders` as in `<benchmark>/agreement`.

    Manifests never change: each is fetched once. What else stands in a publication is fetched when it is asked for.
    """
    bucket = bucket_behind(lake_root)
    if bucket is None:
        return
    home = f"publish/{LAYOUT}"
    known = {*bucket.folders(home)[0], *(path.name for path in (lake_root / home).glob("*/"))} - {TABLES_FOLDER}
    for name in folders or sorted(known):
        there, files = bucket.folders(f"{home}/{name}")
        ids = [one for one in there if len(one) == DIGEST_LENGTH]
        for path in (lake_root / home / name).glob("*/"):
            if len(path.name) == DIGEST_LENGTH and path.name not in ids:
                remove(lake_root, path)
        if not ids and "/" not in name:  # a benchmark may have agreements alone
            look_again(lake_root, f"{name}/{AGREEMENTS}")
        each(bring, [lake_root / home / name / one / MANIFEST for one in ids])
        for pointer in (POINTER, GOOD_POINTER):
            if not any(refresh(lake_root, bucket, one) for one in files if one.path.endswith(f"/{pointer}")):
                (lake_root / home / name / pointer).unlink(missing_ok=True)


def publications(lake_root: Path, benchmark: str = "*") -> list[Publication]:
    """Every publication of the lake or a benchmark, by benchmark, run date and id. Raises CorruptLakeError if any is broken."""
    look_again(lake_root, *(() if benchmark == "*" else (benchmark,)))
    return _found(lake_root, f"{benchmark}/*/{MANIFEST}")


def readable(lake_root: Path, home: str = "*") -> tuple[list[Publication], dict[str, CorruptLakeError]]:
    """The publications whose manifest can be read, and by id what is wrong with that of each other.

    `home`: a benchmark's name, or the folder of its agreements. Where its pointer is not whole none can be read.
    """
    look_again(lake_root, *(() if home == "*" else (home,)))
    found, spoiled = list[Publication](), dict[str, CorruptLakeError]()
    for folder in sorted((lake_root / "publish" / LAYOUT).glob(f"{home}/{'[0-9a-f]' * DIGEST_LENGTH}/")):
        try:
            found.append(find_in(folder))
        except CorruptLakeError as error:
            spoiled[folder.name] = error
    return sorted(found, key=_in_order), spoiled


def agreements(lake_root: Path) -> list[Publication]:
    """Every agreement with people or a judge; of each benchmark the one published last is current."""
    for path in (lake_root / "publish" / LAYOUT).glob("*/"):
        look_again(lake_root, f"{path.name}/{AGREEMENTS}")
    return _found(lake_root, f"*/{AGREEMENTS}/*/{MANIFEST}")


def _found(lake_root: Path, pattern: str) -> list[Publication]:
    found = [find_in(manifest.parent) for manifest in (lake_root / "publish" / LAYOUT).glob(pattern)]
    return sorted(found, key=_in_order)


def _in_order(publication: Publication) -> tuple[str, str, str]:
    return publication.benchmark, publication.run_date, publication.publication_id


def find_in(folder: Path) -> Publication:
    """The publication, or agreement, that a folder is. Raises CorruptLakeError."""
    named, pointer = read_manifest(folder / MANIFEST), read_pointer(folder.parent)
    is_current = pointer is not None and pointer["publication_id"] == folder.name
    files = frozenset(named["files"])
    return Publication(named["benchmark"], named["publication_id"], named["run_date"], folder, is_current, files)


def current(lake_root: Path, benchmark: str | None = None, pointer: str = POINTER) -> Publication:
    """The publication a benchmark's pointer names; of all benchmarks, the one whose pointer was moved last.

    `pointer`: latest.json, or latest_good.json: the last without a blocked cell. Raises InputError, StoreError where it goes.
    """
    look_again(lake_root)
    there = [path for path in (lake_root / "publish" / LAYOUT).glob(f"*/{pointer}") if benchmark in (None, path.parent.name)]
    if not there:
        raise InputError(_nothing(lake_root, benchmark, pointer))
    with suppress(FileNotFoundError):
        one = max(there, key=lambda path: (path.stat().st_mtime_ns, path))
        if (named := read_pointer(one.parent, pointer)) is not None:
            folder = one.parent / named["publication_id"]
            if not (folder / MANIFEST).is_file() or sha256_of_file(folder / MANIFEST) != named["manifest_sha256"]:
                raise CorruptLakeError(f"{one} names {folder.name}, whose folder was deleted or changed; restore it or run again")
            return find_in(folder)
    raise StoreError(f"a {pointer} was taken away while it was read, by `salon withdraw` perhaps; run the same command again")


def find_publication(lake_root: Path, prefix: str) -> Publication:
    """The one publication whose id begins with `prefix` (4 characters or more). Raises InputError, CorruptLakeError."""
    known, spoiled = readable(lake_root)
    found = [publication for publication in known if len(prefix) >= 4 and publication.publication_id.startswith(prefix)]
    if len(found) == 1:
        return found[0]
    for id_, error in spoiled.items():
        if len(prefix) >= 4 and not found and id_.startswith(prefix):
            raise error
    for one in agreements(lake_root) if len(prefix) >= 4 and not found else ():
        if one.publication_id.startswith(prefix):
            raise InputError(
                f"{one.publication_id[:12]} is an agreement of the benchmark {one.benchmark!r} with people or a judge, and "
                f"has no means of its own; read {one.folder}/agreement.md, its tables with salon.open(…, publication="
                f"'{one.publication_id[:12]}') in Python or in salon.duckdb, or check it: salon verify {one.publication_id[:12]}"
            )
    listed = "\n".join(f"  {p.publication_id[:12]}  {p.benchmark}  {p.run_date}" for p in found or known) or "  none"
    what = f"{len(found)} publications begin" if found else "no publication begins"
    raise InputError(f"{what} with {prefix!r}; give four characters or more of one of\n{listed}")


def chosen(lake_root: Path, benchmark: str | None, prefix: str | None, *, is_good: bool = False) -> Publication:
    """The publication whose id begins with `prefix`, if there is one, else the last good one or the current. Raises InputError.

    Where none is current, the newest that was not taken back, or the newest: somebody wants to see why.
    """
    if prefix and is_good:
        raise InputError("--publication names one, and --good the last without a blocked cell: leave one of them out")
    if prefix:
        return checked_benchmark(find_publication(lake_root, prefix), benchmark)
    if is_good:
        return current(lake_root, benchmark, GOOD_POINTER)
    try:
        return current(lake_root, benchmark)
    except InputError:  # there is no pointer
        mine, gone = publications(lake_root, benchmark or "*"), taken_back(lake_root)
        if not mine:
            raise
        return newest_first(lake_root, [one for one in mine if one.publication_id not in gone] or mine)[0]


def checked_benchmark(found: Publication, benchmark: str | None) -> Publication:
    """The same. Raises InputError where it is not of the benchmark that was asked for, if one was."""
    if benchmark not in (None, found.benchmark):
        both = f"{found.publication_id[:12]} is of {found.benchmark!r}, but --benchmark names {benchmark!r}"
        raise InputError(f"{both}; leave one of them out")
    return found


def newest_first(lake_root: Path, some: Sequence[Publication]) -> list[Publication]:
    """By run date; of one run date by when a run first ended with them, or, where none is noted, by their files' times."""
    made = first_made(Lake(lake_root)) if len({one.run_date for one in some}) < len(some) else {}

    def age(one: Publication) -> tuple[str, datetime]:
        return one.run_date, made.get(one.publication_id) or datetime.fromtimestamp((one.folder / MANIFEST).stat().st_mtime, UTC)

    return sorted(some, key=age, reverse=True)


def load_cells(publication: Publication) -> pl.DataFrame:
    """Its benchmark_long, with standings and failures beside the cells. Raises CorruptLakeError where a file is another."""
    names = {table: f"{table.name}.parquet" for table in (BENCHMARK_LONG, STANDINGS, FAILURES, EXAM)}
    there = {table: name for table, name in names.items() if name in publication.files or table is BENCHMARK_LONG}
    return placed({table: pl.read_parquet(checked_file(publication, name)) for table, name in there.items()})


def load_comparisons(publication: Publication) -> pl.DataFrame:
    """Its comparisons, none where it has no such table. Raises CorruptLakeError where the file is another."""
    name = f"{COMPARISONS.name}.parquet"
    if name not in publication.files:
        return COMPARISONS.empty()
    return with_later_columns(pl.scan_parquet(checked_file(publication, name)), COMPARISONS).collect()


def load_compared_cells(publication: Publication) -> pl.DataFrame:
    """load_cells(), those too with their comparisons that no ranking holds."""
    return with_comparisons(load_cells(publication), load_comparisons(publication))


def checked_file(publication: Publication, name: str) -> Path:
    """A file of the publication, after its sha256 was held against the manifest. Raises CorruptLakeError."""
    entry = read_manifest(publication.folder / MANIFEST)["files"].get(name)
    path = bring(publication.folder / name)
    if entry is None or not path.is_file() or sha256_of_file(path) != entry["sha256"]:
        raise CorruptLakeError(f"{path} is not the file that was published; restore it, or move the folder away and run again")
    return path


def _nothing(lake_root: Path, benchmark: str | None, pointer: str) -> str:
    home = lake_root / "publish" / LAYOUT
    if pointer == GOOD_POINTER and any(home.glob(f"{benchmark or '*'}/{POINTER}")):
        no = f"no publication {f'of {benchmark} ' if benchmark else ''}is good so far"
        why = "each has a blocked cell, or cells that lack replies"
        return f"{no}: {why}. Without --good the current one is shown, with what is missing"
    if mine := publications(lake_root, benchmark or "*"):
        return (
            f"no publication of {mine[-1].benchmark} has a cell with an estimate yet; the last one, {mine[-1].folder}, "
            "says in benchmark_long.csv what is missing"
        )
    known = ", ".join(sorted(path.parent.name for path in home.glob(f"*/{POINTER}"))) or "none"
    of = f"of {benchmark!r} " if benchmark else ""
    return f"there is no publication {of}in the lake {Lake(lake_root).place}; published: {known}. Run `salon run FILE` first"


def read_manifest(path: Path) -> dict[str, Any]:
    """Whose publication it is, and the sha256 of each file. Raises CorruptLakeError."""
    try:
        found = json.loads(content_of(path))
        files = {str(name): {"sha256": str(entry["sha256"])} for name, entry in dict(found["files"]).items()}
        return {name: str(found[name]) for name in ("benchmark", "publication_id", "run_date")} | {"files": files}
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise CorruptLakeError(f"{path} is not the manifest that was published ({error!r}); restore it or run again") from error
