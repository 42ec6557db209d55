"""A benchmark's pointers against the folders they name, and those that publishing again wrote. Folders: publication.py."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tasks.lake.atomic_files import sha256_of_file
from tasks.publish.folders import GOOD_POINTER, MANIFEST, POINTER
from tasks.publish.pointer import tables_named
from tasks.verify.publication import read_json
from tasks.verify.rows import Difference, compare_json, shown


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
        yield Difference(
            path.name, "", "publication_id", shown(pointer.get("publication_id")), "no publication of this name is there"
        )
        return
    of = read_json(named / MANIFEST) or {}
    found = {"manifest_sha256": sha256_of_file(named / MANIFEST)} | {
        name: of.get(name) for name in ("benchmark", "run_date", "schema_version")
    }
    if pointer.keys() - {*found, "publication_id"}:  # of an older release, and of an agreement, it names no tables
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
