"""Where a lake on an object store is, and the local folder it is worked in. No request is made here.

The working folder's last name is the whole address (`s3%3A%2F%2Fbucket%2Fprefix`), as a clone knows where it was cloned from:
whatever holds the lake's path knows the bucket behind it, and none can take the one for a lake of its own.
"""

import os
import re
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from schemas.errors import InputError

_BUCKET = r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
_URL = re.compile(rf"s3://({_BUCKET})((?:/[A-Za-z0-9_=+@,.-]+)*)/?")
_NAME = "s3%3A%2F%2F"
_LONGEST_NAME = 255  # bytes, on every file system there is


def is_url(place: str) -> bool:
    """Whether a lake's place is an address, not a folder."""
    return "://" in place


def split_url(url: str) -> tuple[str, str]:
    """(bucket, prefix) of an address. Raises InputError; what is wrong with it is not repeated: it may hold a secret."""
    found = _URL.fullmatch(url)
    if found is None or {".", ".."}.intersection(found[2].split("/")):
        raise InputError(
            "lake: an address of a lake is s3://bucket/prefix, with letters, digits and _ = + @ , . - in the prefix. Keys and "
            "other settings come from the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL)"
        )
    return found[1], found[2].strip("/")


def endpoint() -> str | None:
    """The address of the S3-compatible store, where it is not AWS itself."""
    return os.environ.get("AWS_ENDPOINT_URL") or os.environ.get("AWS_ENDPOINT") or None


def working_folder(url: str) -> Path:
    """The folder a bucket's lake is worked in, below $SALON_CACHE or the user's cache folder. Raises InputError."""
    bucket, prefix = split_url(url)
    name = quote(f"s3://{bucket}/{prefix}".rstrip("/"), safe="")
    if len(name) > _LONGEST_NAME:
        raise InputError(f"lake: {url} is too long by {len(name) - _LONGEST_NAME} characters; use a shorter prefix")
    address = endpoint()
    store = quote(urlsplit(address).netloc.rpartition("@")[2], safe="") if address else "aws"
    return _cache_folder() / store / name


def url_of(root: Path) -> str | None:
    """The address of the bucket behind a working folder; None for a folder that is a lake itself."""
    return unquote(root.name) if root.name.startswith(_NAME) else None


def working_root(path: Path) -> Path | None:
    """The working folder a path lies in, None where it lies in none."""
    return next((parent for parent in (path, *path.parents) if parent.name.startswith(_NAME)), None)


def _cache_folder() -> Path:
    said = os.environ.get("SALON_CACHE")
    return Path(said).resolve() if said else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "salon"
