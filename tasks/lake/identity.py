"""Which lake it is: a random id in `lake.json`, made once. By it a ledger that several lakes share tells what is whose.

A folder's path is no such name: it changes, two machines may see one folder under two, and a bucket under two addresses.
"""

import json
import re
import secrets
from hashlib import sha256
from pathlib import Path

from schemas.errors import CorruptLakeError
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


def find_lake_id(root: Path) -> str | None:
    """The lake's id; None where it has none yet. Raises CorruptLakeError."""
    bucket = bucket_behind(root)
    try:
        if bucket is None:
            content = content_of(root / NAME)
        else:
            stored = bucket.get(NAME)  # never a copy of it: the working folder may outlive the bucket's lake
            if stored is None:
                return None
            content = stored[0]
        found = str(json.loads(content)["lake_id"])
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise _no_id(root, str(error)) from error
    if not _IS_ID.fullmatch(found):  # two lakes that have "None" for one would be one lake
        raise _no_id(root, f"lake_id is {found!r:.80}, not 32 hexadecimal digits")
    if found != _checked(found[:_N_CHECKED]):
        raise _no_id(root, f"lake_id is {found}, and its checksum digits do not match: it was changed")
    return found


def _checked(chance: str) -> str:
    return chance + sha256(chance.encode()).hexdigest()[: 32 - _N_CHECKED]


def _no_id(root: Path, why: str) -> CorruptLakeError:
    return CorruptLakeError(
        f"{root / NAME} does not say which lake this is ({why}); restore it from a backup, or delete it while no run uses the "
        "lake: the next run gives it a new id, and tonight's max_usd is counted from 0 again"
    )
