"""What is set for a lake in a bucket: its address, the store's, and how long a store that is away is waited for."""

import math
import os
import re

from schemas.errors import InputError

MOST_WAIT_S = 7 * 86400.0
_BUCKET = r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
_URL = re.compile(rf"s3://({_BUCKET})((?:/[A-Za-z0-9_=+@,.-]+)*)/?")


def split_url(url: str) -> tuple[str, str]:
    """(bucket, prefix) of an address. Raises InputError; what is wrong with it is not repeated: it may hold a secret."""
    found = _URL.fullmatch(url)
    if found is None or {".", ".."}.intersection(found[2].split("/")):
        raise InputError(
            "lake: the address of a lake must be s3://bucket/prefix, with letters, digits and _ = + @ , . - in the prefix. Keys "
            "and other settings come from the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, "
            "AWS_ENDPOINT_URL)"
        )
    return found[1], found[2].strip("/")


def endpoint() -> str | None:
    """The address of the S3-compatible store, where it is not AWS itself. Raises InputError."""
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT"):
        if address := os.environ.get(name):
            if not re.fullmatch(r"https?://[^/\s]+.*", address):
                raise InputError(f"the environment variable {name} = {address[:80]!r} is not an address; write http://HOST:9000")
            return address
    return None


def store_wait_s(default_s: float) -> float:
    """Seconds that a store or a server which is away is waited for, as the environment has it. Raises InputError."""
    said = os.environ.get("SALON_STORE_WAIT_S") or str(default_s)
    try:
        seconds = float(said)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= MOST_WAIT_S:
        raise InputError(f"the environment variable SALON_STORE_WAIT_S = {said[:80]!r} is not a number of seconds; write 60")
    return seconds
