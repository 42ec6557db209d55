"""Which code made a number: a digest of Salon's own source files. What a run's other inputs are is identity.py."""

import hashlib
from functools import cache
from pathlib import Path

PACKAGES = ("schemas", "rubrics", "tasks", "flows")
"""The packages whose code can change a published byte. The demo makes samples and replies, which have digests of their own."""

SUFFIXES = (".py", ".j2", ".css", ".js")
"""Of the files that make numbers and pages."""


@cache
def code_version(root: Path | None = None) -> str:
    """sha256 hex over the .py files of PACKAGES below `root` (default: the running code): relative path and content, sorted.

    A checkout with local changes has a version of its own, so it never passes for a release.
    """
    base = root or Path(__file__).resolve().parents[2]
    files = (path for package in PACKAGES for path in (base / package).rglob("*") if path.suffix in SUFFIXES)
    paths = sorted((path.relative_to(base).as_posix(), path) for path in files)
    whole = hashlib.sha256()
    for name, path in paths:
        whole.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()
