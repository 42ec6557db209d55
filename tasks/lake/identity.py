"""Which lake it is, and which release writes it: `lake.json`. The id, made once, tells a ledger of several lakes what is whose.

A folder's path is no such name: it changes, two machines may see one folder under two, and a bucket under two addresses.
"""

import json
import re
import secrets
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from schemas.errors import CorruptLakeError, StoreError
from tasks.lake.atomic_files import locked, store_error, write_bytes
from tasks.lake.object_store.cache_folder import bucket_behind
from tasks.regular_files import content_of

NAME = "lake.json"
_IS_ID = re.compile("[0-9a-f]{32}")
_N_CHECKED = 24  # digits by chance; the other eight are of their digest: a flipped bit would be another lake, untold


def lake_id(root: Path) -> str:
    """The lake's id, made where it has none yet. Of several who make one at once, all have the same. Raises StoreError."""
    found = find_lake_id(root)
    if found is not None:
        return found
    content, bucket = json.dumps({"lake_id": _checked(secrets.token_hex(_N_CHECKED // 2))}).encode(), bucket_behind(root)
    if bucket is not None:
        bucket.create(NAME, content)
    else:
        with store_error(f"writing {root / NAME}"), locked(root, "lake-id"):
            if not (root / NAME).is_file():
                write_bytes(content, root / NAME, root / "staging")
    made = find_lake_id(root)
    if made is None:
        raise _no_id(root, "it was removed as soon as it was written")
    return made


def lake_to_write(root: Path) -> str:
    """The lake's id, for who writes into it: the release is noted. Raises StoreError where a later one has written there."""
    of_lake, own = lake_id(root), version("salon")
    noted = _release(root)
    if (later := _later(root, noted)) is not None:
        raise StoreError(later)
    if noted != own:
        content, bucket = json.dumps({"lake_id": of_lake, "release": own}).encode(), bucket_behind(root)
        if bucket is not None:
            bucket.put(NAME, content)
        else:
            with store_error(f"writing {root / NAME}"), locked(root, "lake-id"):
                write_bytes(content, root / NAME, root / "staging")
    return of_lake


def later_release(root: Path) -> str | None:
    """In a sentence, that a release later than this one has written into the lake; None where none did, or it is not noted."""
    return _later(root, _release(root))


def _release(root: Path) -> str:
    return str((_read(root) or {}).get("release", ""))


def _later(root: Path, noted: str) -> str | None:
    own = version("salon")
    if _order(noted) <= _order(own):
        return None
    return (
        f"Salon {noted} has written into the lake {root}, and this is {own}: an earlier release may read what is there wrongly, "
        f"and writes nothing into it; use {noted} or a later one, or restore lake and ledger from a backup of before the upgrade"
    )


def _order(release: str) -> list[int]:
    """0.10.1.dev2 is after 0.9, and counts as 0.10.1: from the first letter on nothing is compared."""
    return [int(number) for number in re.findall(r"[0-9]+", re.split(r"[^0-9.]", release)[0])]


def find_lake_id(root: Path) -> str | None:
    """The lake's id; None where it has none yet. Raises CorruptLakeError."""
    said = _read(root)
    if said is None:
        return None
    found = str(said.get("lake_id"))
    if not _IS_ID.fullmatch(found):  # two lakes that have "None" for one would be one lake
        raise _no_id(root, f"lake_id is {found!r:.80}, not 32 hexadecimal digits")
    if found != _checked(found[:_N_CHECKED]):
        raise _no_id(root, f"lake_id is {found}, and its checksum digits do not match: it was changed")
    return found


def _read(root: Path) -> dict[str, Any] | None:
    """What lake.json says; None where there is none."""
    bucket = bucket_behind(root)
    try:
        if bucket is None:
            content = content_of(root / NAME)
        else:
            stored = bucket.get(NAME)  # never a copy of it: the working folder may outlive the bucket's lake
            if stored is None:
                return None
            content = stored[0]
        return dict(json.loads(content).items())
    except FileNotFoundError:
        return None
    except (ValueError, AttributeError, RecursionError) as error:
        raise _no_id(root, str(error)) from error


def _checked(chance: str) -> str:
    return chance + sha256(chance.encode()).hexdigest()[: 32 - _N_CHECKED]


def _no_id(root: Path, why: str) -> CorruptLakeError:
    return CorruptLakeError(
        f"{root / NAME} does not say which lake this is ({why}); restore it from a backup, or delete it while no run uses the "
        "lake: the next run gives it a new id, and tonight's max_usd is counted from 0 again"
    )
