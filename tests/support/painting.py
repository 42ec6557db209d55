"""The demo's pictures for whole runs, each painting drawn once a process of tests and copied; a file that asks of them."""

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


def scenes(name: str, more: str = "", *, head: str = "", where: str = "") -> str:
    """A benchmark of the painted scenes, alignment asked of the demo's judge, whose `{url}` is to be filled in.

    `more` stands behind the judge's lines, `head` behind the name, `where` is the source's.
    """
    return (
        f'name = "{name}"\n{head}[[sources]]\nreader = "geneval"\npath = "scenes/{{{{model}}}}/{{{{checkpoint}}}}"\n'
        f'{where}[[rubrics]]\nid = "alignment"\n[[judges]]\nmodel = "salon-demo-judge"\nbase_url = "{{url}}"\n{more}'
    )


COUNTING = 'where = {{ tag = "counting" }}\n'
"""Of the scenes those that are about a number of things."""
