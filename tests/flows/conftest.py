"""What the tests of whole runs share: the demo judge as a server, and `salon` as a user calls it."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from demo.running import running_judge
from flows.cli import run
from tests.flows.flow_support import Said


@pytest.fixture(scope="session")
def judge_url() -> Iterator[str]:
    """The demo judge, running."""
    with running_judge() as url:
        yield url


@pytest.fixture
def salon(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., Said]]:
    """`salon ARGUMENTS` in a folder of its own."""
    before = Path.cwd()
    os.chdir(tmp_path)

    def call(*arguments: str | Path) -> Said:
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    yield call
    os.chdir(before)
