"""A published folder against its manifest and the same made again. Pointers: pointers.py; making it: flows/verification/."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq

from schemas.errors import InputError
from schemas.tables.catalogue import TABLES
from schemas.tables.field import DIGEST_LENGTH
from tasks.lake.atomic_files import sha256_of_file
from tasks.lake.object_store.cache_folder import pull
from tasks.lake.reading import Lake
from tasks.publish.agreement import FOLDER as AGREEMENT_FOLDER
from tasks.publish.duckdb_file import LARGE_NAMES
from tasks.publish.duckdb_file import NAME as DUCKDB
from tasks.publish.folders import LAYOUT, MANIFEST, PROVENANCE
from tasks.publish.machine_tables import FOLDER as TABLES_FOLDER
from tasks.publish.machine_tables import LISTING, changed_tables, tables_folder
from tasks.publish.reading import look_again
from tasks.verify.rows import MAX_LISTED, NOTHING, Difference, compare_json, compare_rows, compare_texts, shown


def find_folder(lake_root: Path, publication: str) -> Path:
    """The published folder of an id, of its beginning (four characters or more) or of a path. Raises InputError."""
    if Path(publication).is_dir():
        return Path(publication).resolve()
    look_again(lake_root)
    home = lake_root / "publish" / LAYOUT
    look_again(lake_root, *(f"{path.name}/{AGREEMENT_FOLDER}" for path in home.glob("*/") if path.name != TABLES_FOLDER))
    places = [*home.glob("*/*/"), *home.glob(f"*/{AGREEMENT_FOLDER}/*/")]
    known = sorted(path for path in places if len(path.name) == DIGEST_LENGTH)
    found = [path for path in known if len(publication) >= 4 and path.name.startswith(publication)]
    if len(found) == 1:
        pull(lake_root, found[0].relative_to(lake_root).as_posix())
        return found[0]
    listed = "\n".join(f"  {path.name[:12]}  {path.parent.relative_to(home)}" for path in found or known) or "  none"
    what = f"{len(found)} publications begin" if found else "no publication begins"
    place = Lake(lake_root).place
    raise InputError(
        f"{what} with {publication!r} in the lake {place}; give a folder, or four characters or more of one of\n{listed}"
    )


def is_agreement(folder: Path) -> bool:
    """Whether the folder holds an agreement with people, and not a benchmark's tables."""
    return folder.parent.name == AGREEMENT_FOLDER


def read_json(path: Path) -> dict[str, Any] | None:
    """A JSON object, or None where the file is not there or holds none."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def check_manifest(folder: Path, may_lack: tuple[str, ...] = ()) -> Iterator[Difference]:
    """The folder's files against the sizes and checksums of its manifest. `may_lack`: the endings of those that may be away."""
    manifest = read_json(folder / MANIFEST)
    files = manifest.get("files") if manifest else None
    if manifest is None or not isinstance(files, dict):
        yield Difference(MANIFEST, "", "", "no manifest that can be read", "one that lists every file")
        return
    benchmark = folder.parents[1].name if is_agreement(folder) else folder.parent.name
    for name, derived in (("publication_id", folder.name), ("benchmark", benchmark)):
        if manifest.get(name) != derived:
            yield Difference(MANIFEST, "", name, shown(manifest.get(name)), shown(derived))
    there = {path.name: path for path in sorted(folder.iterdir()) if path.name != MANIFEST}
    for name in sorted(there.keys() - files.keys()):
        yield Difference(MANIFEST, "", name, NOTHING, "a file of the folder")
    for name, entry in sorted(files.items()):
        path, said = there.get(name), entry.get("sha256") if isinstance(entry, dict) else None
        if path is None and name.endswith(may_lack):
            continue
        if path is None or not path.is_file():
            yield Difference(MANIFEST, "", name, f"sha256 {said}", "the file is not there")
        elif sha256_of_file(path) != said:
            yield Difference(MANIFEST, "", name, f"sha256 {said}", f"the file's sha256 {sha256_of_file(path)}")


def compare_folders(published: Path, derived: Path, leave_out: tuple[str, ...] = ()) -> tuple[list[Difference], list[str]]:
    """(differences, notes) between a published folder and the same made again: by file, by value, then by bytes.

    `leave_out`: the endings of files that cannot be made again from what is there. A table whose values are the same, written by
    another version of the library, is a note, and what is said of its bytes elsewhere is left out.
    """
    found: list[Difference] = []
    notes: list[str] = []
    rewritten: set[str] = set()
    names = sorted({path.name for folder in (published, derived) for path in folder.iterdir() if path.is_file()})
    for name in sorted(names, key=lambda name: (not name.endswith(".parquet"), name)):
        if name.endswith(leave_out):
            continue
        mine, again = published / name, derived / name
        if not mine.is_file() or not again.is_file():
            sides = ("a file", NOTHING) if mine.is_file() else (NOTHING, "a file")
            found.append(Difference(name, "", "", *sides))
        elif name in (MANIFEST, LISTING):
            both = [_of_bytes_left_out(read_json(path) or {}, leave_out, rewritten) for path in (mine, again)]
            found += compare_json(name, both[0], both[1])
        elif mine.read_bytes() != again.read_bytes():
            differences = list(islice(_compare(mine, again), MAX_LISTED))
            found += differences
            if not differences and (note := _rewritten(mine, again)):
                notes.append(note)
                rewritten |= {name, LISTING}
            elif not differences:
                digests = [f"sha256 {sha256_of_file(path)}" for path in (mine, again)]
                found.append(Difference(name, "", "bytes", digests[0], digests[1]))
    return found, notes


def _of_bytes_left_out(said: dict[str, Any], leave_out: tuple[str, ...], rewritten: set[str]) -> dict[str, Any]:
    """A manifest or a listing without the files that are left out, and without sizes and digests of those that were rewritten."""
    files = said.get("files")
    if isinstance(files, dict):  # by name
        kept = {name: entry for name, entry in files.items() if not name.endswith(leave_out)}
        return said | {"files": {name: None if name in rewritten else entry for name, entry in kept.items()}}
    if isinstance(files, list) and rewritten:
        rows = [entry if isinstance(entry, dict) else {} for entry in files]
        return said | {"files": [{name: row.get(name) for name in ("table", "path", "n_rows")} for row in rows]}
    return said


def compare_trees(published: Path, lake_root: Path, derived_root: Path) -> Iterator[Difference]:
    """The tables for machines whose bytes are not those the publication lists, against the same tables made again."""
    if not (published / LISTING).is_file():
        return  # published before there were any
    home = tables_folder(lake_root).parent
    listed = {home / file["path"] for file in (read_json(published / LISTING) or {}).get("files", [])}
    for folder in sorted({path.parent for path in listed}):
        pull(lake_root, folder.relative_to(lake_root).as_posix())
        for path in sorted({*folder.iterdir()} - listed if folder.is_dir() else ()):  # readers glob: every file's rows are shown
            yield Difference(LISTING, "", path.relative_to(home).as_posix(), NOTHING, "a file beside those it lists")
    for place in changed_tables(lake_root, published):
        mine, again = (tables_folder(root).parent / place for root in (lake_root, derived_root))
        if not mine.is_file():
            yield Difference(place, "", "", NOTHING, f"a file, as {LISTING} says")
            continue
        found = list(islice(_compare(mine, again, Path(place).parts[1]), MAX_LISTED)) if again.is_file() else []
        yield from found or [Difference(place, "", "", f"sha256 {sha256_of_file(mine)}", f"the sha256 in {LISTING}")]


def compare_duckdb(published: Path, lake_root: Path) -> tuple[list[Difference], str]:
    """(differences, what was done) of the publication's rows in its benchmark's salon.duckdb, against its tables for machines."""
    import duckdb

    of = published.parents[1] if is_agreement(published) else published.parent
    files = (read_json(published / LISTING) or {}).get("files", [])
    paths = {
        TABLES[file["table"]]: tables_folder(lake_root).parent / file["path"]
        for file in files
        if file["table"] not in LARGE_NAMES
    }
    pull(lake_root, of.relative_to(lake_root).as_posix())
    if not (of / DUCKDB).is_file():
        return [], f"there is no {DUCKDB}"
    found: list[Difference] = []
    try:
        with duckdb.connect(str(of / DUCKDB), read_only=True) as database:
            for table, path in paths.items():
                query = f'SELECT * FROM "{table.name}" WHERE publication_id = ?'  # noqa: S608 - a declared table's name
                held = pl.DataFrame(database.sql(query, params=[published.name]).to_arrow_table())
                made = pl.read_parquet(path, hive_partitioning=False)
                shared = [name for name in made.columns if name in held.columns]
                found += compare_rows(f"{DUCKDB}: {table.name}", held.select(shared).cast(made.schema), made, table.key)
    except (duckdb.Error, pl.exceptions.PolarsError, OSError) as error:
        found.append(Difference(DUCKDB, "", "", f"cannot be read: {str(error).splitlines()[0]}", "the publication's rows"))
    return found, f"{len(paths)} tables of {DUCKDB}, their rows of this publication"


def _compare(published: Path, derived: Path, table_name: str | None = None) -> Iterator[Difference]:
    """What differs in a file's content; nothing where only its bytes do."""
    name, table = published.name, TABLES.get(table_name or published.stem)
    try:
        if published.suffix == ".parquet":
            mine, again = (pl.read_parquet(path, hive_partitioning=False) for path in (published, derived))
            yield from compare_rows(table_name or published.stem, mine, again, table.key if table else again.columns[:1])
        elif published.suffix == ".csv" and table is not None:
            mine, again = (pl.read_csv(path, infer_schema=False) for path in (published, derived))
            yield from compare_rows(name, mine, again, table.key)
        elif published.suffix == ".json":
            yield from compare_json(name, read_json(published), read_json(derived))
        else:
            yield from compare_texts(name, published.read_text("utf-8"), derived.read_text("utf-8"))
    except UnicodeDecodeError:
        return  # neither text nor table: its bytes differ, and that is said
    except (pl.exceptions.PolarsError, OSError) as error:
        yield Difference(name, "", "", f"cannot be read: {str(error).splitlines()[0]}", "a file that can be read")


def _rewritten(published: Path, derived: Path) -> str | None:
    """What is said of a Parquet file of equal values and schema that another version of the library wrote."""
    if published.suffix != ".parquet":
        return None
    writers = [pq.read_metadata(path).created_by for path in (published, derived)]
    schemas = [pq.read_schema(path) for path in (published, derived)]
    if writers[0] == writers[1] or not schemas[0].equals(schemas[1], check_metadata=True):
        return None
    return f"{published.name}: the same values in other bytes; {writers[0]} wrote it, {writers[1]} is here"


def read_provenance(folder: Path) -> dict[str, Any] | None:
    """What provenance.json says, where it says enough to derive anything; else None."""
    said = read_json(folder / PROVENANCE) or {}
    identities = said.get("identities")
    wanted = ("dataset_id", "plan_id", "snapshot_id", "reading_id", "code_version")
    # They name files of the lake: one that is a path would lead out of it, and out of what verifying writes.
    is_whole = isinstance(identities, dict) and all(
        Path(str(identities.get(name, "/"))).name == identities.get(name) for name in wanted
    )
    return said if is_whole and isinstance(said.get("run_date"), str) else None
