"""The pointers of a benchmark, latest.json and latest_good.json: read, and moved, also back. What they may name: promotion.py."""

import hashlib
import json
import logging
import re
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Final

from schemas.errors import CorruptLakeError, StoreError
from schemas.tables.field import DIGEST_LENGTH
from schemas.tables.table import SCHEMA_VERSION
from tasks.lake.atomic_files import locked, write_bytes
from tasks.lake.object_store.cache_folder import bring, fresh
from tasks.lake.object_store.client import Bucket
from tasks.lake.reading import Lake
from tasks.publish.folders import GOOD_POINTER, LAYOUT, MANIFEST, POINTER, as_json
from tasks.publish.machine_tables import LARGE_NAMES, LISTING
from tasks.publish.promotion import Standing, standing_in, why_not_current, why_not_good
from tasks.regular_files import content_of

_Rule = Callable[[Standing, Standing | None], str | None]
N_TRIES: Final = 100  # in a bucket; each failure is another run's success

_IS_ID: Final = re.compile(f"[0-9a-f]{{{DIGEST_LENGTH}}}")
_log = logging.getLogger("salon.publish")


def read_pointer(home: Path, name: str = POINTER) -> dict[str, str] | None:
    """What a pointer of a benchmark's folder says; None where there is none. Raises CorruptLakeError where it is not whole."""
    path = home / name
    try:
        found = json.loads(content_of(path))
        named = {name: str(found[name]) for name in ("publication_id", "run_date", "manifest_sha256")}
        date.fromisoformat(named["run_date"])
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise _no_pointer(path, str(error)) from error
    if not _IS_ID.fullmatch(named["publication_id"]):  # it becomes a folder's name
        raise _no_pointer(path, f"publication_id is {named['publication_id']!r:.80}, not {DIGEST_LENGTH} hexadecimal digits")
    return named


def check_pointers(lake_root: Path, benchmark: str) -> None:
    """Raises CorruptLakeError where a pointer of the benchmark is not whole: no publication can become current then."""
    home = lake_root / "publish" / LAYOUT / benchmark
    for name in (POINTER, GOOD_POINTER):
        fresh(home / name)
        read_pointer(home, name)


def _no_pointer(path: Path, why: str) -> CorruptLakeError:
    return CorruptLakeError(f"{path} is not a pointer that Salon wrote ({why}); delete it and run the benchmark again")


def move_pointers(lake_root: Path, folder: Path, *, benchmark: str, standing: Standing) -> str | None:
    """Move `latest.json` and `latest_good.json` to `folder` where the rule of promotion.py lets it be what they name.

    Returns why it did not become the current publication, in a clause; None where it is. Raises StoreError.
    """
    why_not = _move(lake_root, folder, POINTER, benchmark, standing, why_not_current)
    _move(lake_root, folder, GOOD_POINTER, benchmark, standing, why_not_good)
    if why_not is not None:
        _log.warning("%s did not become current: %s", folder.name[:12], why_not)
    return why_not


def _move(lake_root: Path, folder: Path, name: str, benchmark: str, standing: Standing, rule: _Rule) -> str | None:
    """In a bucket a pointer is put in place of the very one that was read; where another run moved that, all is decided anew."""
    path, bucket = folder.parent / name, Lake(lake_root).bucket
    for _ in range(N_TRIES):
        with locked(lake_root, f"pointer-{benchmark}"):
            e_tag = fresh(path)
            current = read_pointer(folder.parent, name)
            if current and current["publication_id"] == folder.name:
                return None
            why_not = rule(standing, _standing_named(folder.parent, current))
            if why_not is not None:
                return why_not
            content = _content(folder, benchmark, standing.run_date)
            if bucket is None or _put(bucket, path.relative_to(lake_root).as_posix(), content, e_tag):
                write_bytes(content, path, lake_root / "staging")
                return None
    raise _moved_too_often(name, benchmark)


def move_back(lake_root: Path, folder: Path, others: Sequence[tuple[Path, date]]) -> None:
    """Let pointers that name `folder` name what they would without it, had `others`, folders with run dates, come in this order.

    Where that is none of them, the pointer is taken away. Raises StoreError.
    """
    _set(lake_root, folder.parent, POINTER, folder.name, would_be_current(others))
    _set(lake_root, folder.parent, GOOD_POINTER, folder.name, _would_be_good(others))


def restore_pointers(lake_root: Path, home: Path, standing: Callable[[], Sequence[tuple[Path, date]]]) -> bool:
    """Let each pointer that is lost name what it would, had those `standing` come in this order; whether one is current since.

    Raises StoreError, CorruptLakeError.
    """
    for name in (POINTER, GOOD_POINTER):
        fresh(home / name)
    would_be = {POINTER: would_be_current, GOOD_POINTER: _would_be_good}
    lost = [name for name in would_be if read_pointer(home, name) is None]
    others = standing() if lost else ()
    for name in lost:
        if (other := would_be[name](others)) is not None:
            _set(lake_root, home, name, None, other)
    return POINTER in lost and read_pointer(home) is not None


def would_be_current(others: Sequence[tuple[Path, date]]) -> tuple[Path, date] | None:
    """Which of `others`, folders with run dates, is current where they came in this order."""
    return _last_of(others, why_not_current, lambda one: one.is_full)


def _would_be_good(others: Sequence[tuple[Path, date]]) -> tuple[Path, date] | None:
    return _last_of(others, why_not_good, lambda one: one.is_good)


def _last_of(others: Sequence[tuple[Path, date]], rule: _Rule, is_enough: Callable[[Standing], bool]) -> tuple[Path, date] | None:
    """Which of `others`, by date, a rule leaves standing. `is_enough`: whether one takes the place of whatever came before."""
    since = list[tuple[Path, date, Standing]]()
    for folder, day in reversed(others):
        since.append((folder, day, standing_in(folder, day)))
        if is_enough(since[-1][2]):
            break
    found = None
    for one in reversed(since):
        if rule(one[2], found and found[2]) is None:
            found = one
    return found and found[:2]


def _set(lake_root: Path, home: Path, name: str, named: str | None, other: tuple[Path, date] | None) -> None:
    """Let a pointer that names `named`, or is not there, name `other`, or take it away."""
    path, bucket, benchmark = home / name, Lake(lake_root).bucket, home.name
    relative = path.relative_to(lake_root).as_posix()
    for _ in range(N_TRIES):
        with locked(lake_root, f"pointer-{benchmark}"):
            e_tag = fresh(path)
            current = read_pointer(home, name)
            if (current and current["publication_id"]) != named:
                return
            if other is None:
                if bucket is not None:
                    bucket.delete([relative])
                path.unlink(missing_ok=True)
                return
            for file in json.loads(content_of(bring(other[0] / MANIFEST)))["files"]:  # the pointer names its tables
                bring(other[0] / file)
            content = _content(other[0], benchmark, other[1])
            if bucket is None or _put(bucket, relative, content, e_tag):
                write_bytes(content, path, lake_root / "staging")
                return
    raise _moved_too_often(name, benchmark)


def _moved_too_often(name: str, benchmark: str) -> StoreError:
    return StoreError(
        f"{name} of {benchmark} was moved by other processes {N_TRIES} times in the meantime; run the same command again"
    )


def _standing_named(home: Path, pointer: dict[str, str] | None) -> Standing | None:
    return None if pointer is None else standing_in(home / pointer["publication_id"], date.fromisoformat(pointer["run_date"]))


def _put(bucket: Bucket, name: str, content: bytes, e_tag: str | None) -> bool:
    return bucket.create(name, content) if e_tag is None else bucket.replace(name, content, e_tag)


def _content(folder: Path, benchmark: str, run_date: date) -> bytes:
    return as_json(
        {
            "benchmark": benchmark,
            "manifest_sha256": hashlib.sha256(content_of(folder / MANIFEST)).hexdigest(),
            "publication_id": folder.name,
            "run_date": run_date,
            "schema_version": SCHEMA_VERSION,
        }
        | tables_named(folder)
    )


def tables_named(folder: Path) -> dict[str, object]:
    """What a pointer to a publication says of where its tables stand."""
    small = {path.stem: f"{folder.name}/{path.name}" for path in sorted(folder.glob("*.parquet"))}
    return {"tables": small, "large_tables": _large_tables(folder)}


def _large_tables(folder: Path) -> dict[str, list[str]]:
    """The files of the tables that do not stand in the folder, relative to the pointer's."""
    if not (folder / LISTING).is_file():  # published before there were tables for machines
        return {}
    files = json.loads(content_of(folder / LISTING))["files"]
    return {
        name: [f"../{file['path']}" for file in files if file["table"] == name]
        for name in dict.fromkeys(file["table"] for file in files if file["table"] in LARGE_NAMES)
    }
