"""The demo's pictures for whole runs: each painting drawn once a process of tests, copied where it is wanted. No tests here."""

import atexit
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import demo


def paint(folder: Path, seed: int = demo.SEED) -> None:
    """What `demo.paint` draws into a folder, as files of its own."""
    shutil.copytree(_painted(seed), folder, dirs_exist_ok=True, copy_function=shutil.copyfile)


@cache
def _painted(seed: int) -> Path:
    kept = TemporaryDirectory(prefix="salon-painted-")
    atexit.register(kept.cleanup)
    demo.paint(Path(kept.name), seed)
    return Path(kept.name)
