"""A published folder found, read, held against its manifest; its benchmark's pointers. Recomputed: recomputed_tables.py."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from schemas.errors import InputError
from schemas.tables.field import DIGEST_LENGTH
from tasks.lake.atomic_files import sha256_of_file
from tasks.lake.object_store.cache_folder import bring, pull, working_root
from tasks.lake.reading import Lake
from tasks.publish.folders import AGREEMENTS, GOOD_POINTER, LAYOUT, MANIFEST, POINTER, PROVENANCE
from tasks.publish.machine_tables import FOLDER as TABLES_FOLDER
from tasks.publish.pointer import tables_named
from tasks.publish.reading import look_again
from tasks.regular_files import content_of
from tasks.verify.rows import NOTHING, Difference, compare_json, shown


def find_folder(lake_root: Path, publication: str) -> Path:
    """The published folder of an id, of its beginning (four characters or more) or of a path. Raises InputError."""
    named = Path(publication).resolve() if Path(publication).is_dir() else Path(publication)
    if named.is_dir() and (len(named.name) == DIGEST_LENGTH or (named / MANIFEST).is_file()):  # also one that was damaged
        return named
    look_again(lake_root)
    home = lake_root / "publish" / LAYOUT
    look_again(lake_root, *(f"{path.name}/{AGREEMENTS}" for path in home.glob("*/") if path.name != TABLES_FOLDER))
    places = [*home.glob("*/*/"), *home.glob(f"*/{AGREEMENTS}/*/")]
    known = sorted(path for path in places if len(path.name) == DIGEST_LENGTH)
    found = [path for path in known if len(publication) >= 4 and path.name.startswith(publication)]
    if len(found) == 1:
        pull(lake_root, found[0])
        return found[0]
    listed = "\n".join(f"  {path.name[:12]}  {path.parent.relative_to(home)}" for path in found or known) or "  none"
    what = f"{len(found)} publications begin" if found else "no publication begins"
    place = Lake(lake_root).place
    raise InputError(
        f"{what} with {publication!r} in the lake {place}; give the folder of one, or four characters or more of one of\n{listed}"
    )


def is_agreement(folder: Path) -> bool:
    """Whether the folder holds an agreement with people, and not a benchmark's tables."""
    return folder.parent.name == AGREEMENTS


def read_json(path: Path) -> dict[str, Any] | None:
    """A JSON object, or None where the file is not there or holds none."""
    try:
        found = json.loads(content_of(path))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def check_manifest(folder: Path, may_lack: tuple[str, ...] = ()) -> Iterator[Difference]:
    """The folder's files against the sizes and checksums of its manifest. `may_lack`: the endings of those that may be away."""
    manifest = read_json(folder / MANIFEST)
    files = manifest.get("files") if manifest else None
    if manifest is None or not isinstance(files, dict):
        yield Difference(MANIFEST, "", "", "no readable manifest", "one that lists every file")
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
        n_bytes = entry.get("n_bytes") if isinstance(entry, dict) else None
        if path is None and name.endswith(may_lack):
            continue
        if path is None or not path.is_file():
            yield Difference(MANIFEST, "", name, f"sha256 {said}", "the file does not exist")
        elif sha256_of_file(path) != said:
            yield Difference(MANIFEST, "", name, f"sha256 {said}", f"the file's sha256 {sha256_of_file(path)}")
        elif path.stat().st_size != n_bytes:
            yield Difference(MANIFEST, "", name, f"{n_bytes} bytes", f"the file's {path.stat().st_size}")


def read_provenance(folder: Path) -> dict[str, Any] | None:
    """What provenance.json says, where it says enough to derive anything; else None."""
    said = read_json(bring(folder / PROVENANCE)) or {}
    identities = said.get("identities")
    wanted = ("dataset_id", "plan_id", "snapshot_id", "reading_id", "code_version")
    # They name files of the lake: one that is a path would lead out of it, and out of what verifying writes.
    is_whole = isinstance(identities, dict) and all(
        Path(str(identities.get(name, "/"))).name == identities.get(name) for name in wanted
    )
    return said if is_whole and isinstance(said.get("run_date"), str) else None


def check_pointer(folder: Path) -> Iterator[Difference]:
    """The benchmark's pointers against the folders they name, be it this one or another."""
    for name in (POINTER, GOOD_POINTER):
        if (folder.parent / name).exists():  # else no publication with an estimate yet, or none that is good
            yield from _check_pointer(folder.parent / name)


def _check_pointer(path: Path) -> Iterator[Difference]:
    pointer = read_json(path)
    if pointer is None:
        yield Difference(path.name, "", "", "no JSON object", "the current publication's name and manifest_sha256")
        return
    named = next((one for one in path.parent.iterdir() if one.name == pointer.get("publication_id")), None)
    if named is None or not (named / MANIFEST).is_file():
        yield Difference(path.name, "", "publication_id", shown(pointer.get("publication_id")), "no publication has this name")
        return
    of = read_json(named / MANIFEST) or {}
    found = {"manifest_sha256": sha256_of_file(named / MANIFEST)} | {
        name: of.get(name) for name in ("benchmark", "run_date", "schema_version")
    }
    if pointer.keys() - {*found, "publication_id"}:  # of an older release, and of an agreement, it names no tables
        if root := working_root(named):  # of a publication that is not the one verified only the manifest was fetched
            pull(root, named)
        with suppress(ValueError, LookupError, TypeError, OSError):  # a listing that cannot be read: its checksum says so
            found |= tables_named(named)
    for name, derived in found.items():
        if pointer.get(name) != derived:
            yield Difference(path.name, "", name, shown(pointer.get(name)), shown(derived))


def compare_pointers(published: Path, derived: Path, *, is_rewritten: bool) -> Iterator[Difference]:
    """The pointer against the one that publishing again wrote, where it names this publication.

    `is_rewritten`: another version of the library wrote some of the files. The manifest then has other digests than the one made
    again, with which it was compared by itself, and the pointer's digest is held against the manifest alone (check_pointer).
    """
    mine, again = read_json(published.parent / POINTER), read_json(derived.parent / POINTER)
    if mine and again and mine.get("publication_id") == again.get("publication_id"):
        less = {"manifest_sha256"} if is_rewritten else set()
        sides = [{name: value for name, value in one.items() if name not in less} for one in (mine, again)]
        yield from compare_json(POINTER, sides[0], sides[1])
