"""Fixtures of the rubric tests: the five shipped rubrics, and a folder that holds a small rubric of our own."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rubrics.loading import SHIPPED, find_rubrics
from rubrics.model import Rubric

IDS = ("interleaved", "image_aspects", "caption", "composition", "alignment")

# Every section once, so that a test can change one line of it.
PLAIN = """\
id = "plain"
version = "1"
title = "A small rubric"
source = "written for the tests"
prompt = "prompt.txt"
reply = "json"
needs = ["prompt", "text", "image"]
may_be_null = ["text"]
unit = ["prompt"]
scale = { min = 0, max = 10 }

[[dimensions]]
key = "beauty"
labels = ["beauty"]

[[dimensions]]
key = "truth"
labels = ["truth"]

[[messages]]
role = "user"
parts = [
    { kind = "prompt" },
    { kind = "column", value = "prompt" },
    { kind = "column", value = "text", null_as = "none" },
    { kind = "image" },
]

[[rules]]
name = "no_text"
when = [{ column = "text", is_null = true }]
then = { dimensions = ["truth"], equals = 0 }
"""


@pytest.fixture(scope="session")
def shipped() -> dict[str, Rubric]:
    return find_rubrics(IDS, [SHIPPED])


@pytest.fixture
def write_rubric(tmp_path: Path) -> Callable[..., Path]:
    """Writes the small rubric, with `changes` (old text, new text) made to its rubric.toml, and returns its folder."""

    def write(*changes: tuple[str, str], prompt: str = "Judge beauty and truth of this: ", name: str = "plain") -> Path:
        declaration = PLAIN
        for old, new in changes:
            assert declaration.count(old) >= 1, old
            declaration = declaration.replace(old, new, 1)
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        (folder / "rubric.toml").write_text(declaration, encoding="utf-8")
        (folder / "prompt.txt").write_text(prompt, encoding="utf-8")
        return folder

    return write
