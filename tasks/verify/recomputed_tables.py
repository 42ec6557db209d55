"""A published folder and its tables for machines against the same recomputed. DuckDB: recomputed_duckdb.py."""

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq

from schemas.tables.catalogue import TABLES
from tasks.lake.atomic_files import sha256_of_file
from tasks.lake.object_store.cache_folder import pull
from tasks.publish.folders import MANIFEST, as_json
from tasks.publish.machine_tables import FOLDER as TABLES_FOLDER
from tasks.publish.machine_tables import LARGE_NAMES, LISTING, changed_tables, tables_folder
from tasks.verify.publication import read_json
from tasks.verify.rows import MAX_LISTED, NOTHING, Difference, Values, compare_json, compare_rows, compare_texts, count_values


@dataclass(frozen=True, slots=True)
class Compared:
    """What differs from the same made again, and what holds equal values in other bytes since another library wrote it.

    `rewritten`: names of files in a folder, paths below `publish/v1/` among the tables for machines.
    """

    differences: list[Difference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rewritten: set[str] = field(default_factory=set)


def compare_folders(
    published: Path, derived: Path, leave_out: tuple[str, ...] = (), rewritten: AbstractSet[str] | None = None
) -> Compared:
    """A published folder against the same made again: by file, by value, then by bytes.

    `leave_out`: the endings of files that cannot be made again from what is there. `rewritten`: what compare_trees found of the
    tables for machines, None where they are not there. What is said of a rewritten file's bytes is left out, and of no other's.
    """
    found = Compared()
    names = {path.name for folder in (published, derived) for path in folder.iterdir() if path.is_file()}
    # The listing and then the manifest come last: they hold digests of those before them.
    for name in sorted(names, key=lambda name: (name == MANIFEST, name == LISTING, name)):
        if name.endswith(leave_out):
            continue
        mine, again = published / name, derived / name
        if not mine.is_file() or not again.is_file():
            sides = ("a file", NOTHING) if mine.is_file() else (NOTHING, "a file")
            found.differences.append(Difference(name, "", "", *sides))
        elif name == MANIFEST:
            _compare_said(found, mine, again, partial(_of_manifest, leave_out=leave_out, rewritten=found.rewritten))
        elif name == LISTING:
            _compare_said(found, mine, again, partial(_of_listing, in_folder=found.rewritten, in_tree=rewritten))
        elif mine.read_bytes() != again.read_bytes():
            _compare_bytes(found, name, mine, again)
    return found


def _compare_bytes(found: Compared, name: str, mine: Path, again: Path, table_name: str | None = None) -> None:
    """Add how two files of other bytes differ: in values; or else by who wrote them, which is a note; or else in bytes."""
    differences = list(islice(_compare(mine, again, table_name), MAX_LISTED))
    if not differences and (note := _rewritten(name, mine, again)):
        found.notes.append(note)
        found.rewritten.add(name)
    elif not differences:
        digests = [f"sha256 {sha256_of_file(path)}" for path in (mine, again)]
        found.differences.append(Difference(name, "", "bytes", digests[0], digests[1]))
    found.differences.extend(differences)


def _compare_said(found: Compared, mine: Path, again: Path, less: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Add how a manifest or a listing differs in what is left of it."""
    said, derived = (read_json(path) or {} for path in (mine, again))
    differences = list(compare_json(mine.name, less(said), less(derived)))
    if not differences and mine.read_bytes() != as_json(said):  # of a key that is there twice, others may read the other value
        differences = [Difference(mine.name, "", "bytes", "not as Salon writes it", "the same values, each once and in order")]
    if not differences and said != derived:
        found.rewritten.add(mine.name)
    found.differences.extend(differences)


def _of_manifest(said: dict[str, Any], leave_out: tuple[str, ...], rewritten: AbstractSet[str]) -> dict[str, Any]:
    """A manifest without the files that are left out, and without sizes and digests of those that were rewritten."""
    files = said.get("files")
    if not isinstance(files, dict):
        return said
    kept = {name: entry for name, entry in files.items() if not name.endswith(leave_out)}
    return said | {"files": {name: _less_bytes(entry) if name in rewritten else entry for name, entry in kept.items()}}


def _of_listing(said: dict[str, Any], in_folder: AbstractSet[str], in_tree: AbstractSet[str] | None) -> dict[str, Any]:
    """A listing without sizes and digests of the tables for machines that were rewritten.

    Where those are not there (a bundle), the small ones are as those in the folder, and of the large ones nobody can tell.
    """
    files = said.get("files")
    if not isinstance(files, list):
        return said

    def is_rewritten(entry: dict[str, Any]) -> bool:
        if in_tree is not None:
            return entry.get("path") in in_tree
        return bool(in_folder) and (f"{entry.get('table')}.parquet" in in_folder or entry.get("table") in LARGE_NAMES)

    return said | {"files": [_less_bytes(one) if isinstance(one, dict) and is_rewritten(one) else one for one in files]}


def _less_bytes(entry: Any) -> Any:
    """An entry less what its file's bytes give, which is held against the file itself."""
    if not isinstance(entry, dict):
        return entry
    return {name: value for name, value in entry.items() if name not in ("n_bytes", "sha256")}


def compare_trees(published: Path, lake_root: Path, derived: Path, derived_root: Path) -> Compared:
    """The publication's tables for machines against those made again, which `derived` lists: by value, then by bytes.

    The published listing is believed in nothing: what it says of bytes is held against the files.
    """
    found = Compared()
    if not (published / LISTING).is_file():
        return found  # published before there were any
    home, again = (tables_folder(root).parent for root in (lake_root, derived_root))
    listed = {file["path"]: file for file in (read_json(derived / LISTING) or {}).get("files", [])}
    for folder in sorted({(home / path).parent for path in listed}):
        pull(lake_root, folder)
        places = {path.relative_to(home).as_posix() for path in (folder.iterdir() if folder.is_dir() else ())}
        for place in sorted(places - listed.keys()):  # readers glob: every file's rows are shown
            found.differences.append(Difference(LISTING, "", place, NOTHING, "a file besides those it lists"))
    for place, file in sorted(listed.items()):
        if not (home / place).is_file():
            found.differences.append(Difference(place, "", "", NOTHING, "a file, as is made again"))
        elif sha256_of_file(home / place) != file["sha256"]:
            _compare_bytes(found, place, home / place, again / place, file["table"])
    for place in changed_tables(lake_root, published):
        found.differences.append(Difference(LISTING, "", place, "another size and sha256", "those of the file"))
    told = dict.fromkeys(note.partition(": ")[2] for note in found.notes)
    return replace(found, notes=[f"{TABLES_FOLDER}/, {len(found.rewritten)} files: {one}" for one in told])


def count_in_tables(published: Path, derived: Path) -> Values:
    """The values of a published folder's tables against those of the folder made again, by columns that both have."""
    found = Values()
    for path in sorted(published.glob("*.parquet")):
        if path.stem in TABLES and (derived / path.name).is_file():
            mine, again = (pl.read_parquet(one, hive_partitioning=False) for one in (path, derived / path.name))
            found += count_values(mine, again, TABLES[path.stem].key)
    return found


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


def _rewritten(name: str, published: Path, derived: Path) -> str | None:
    """What is said of a Parquet file of equal values and schema that another version of the library wrote."""
    if published.suffix != ".parquet":
        return None
    writers = [pq.read_metadata(path).created_by for path in (published, derived)]
    schemas = [pq.read_schema(path) for path in (published, derived)]
    if writers[0] == writers[1] or not schemas[0].equals(schemas[1], check_metadata=True):
        return None
    return f"{name}: the same values in different bytes; written by {writers[0]}, {writers[1]} is installed here"
