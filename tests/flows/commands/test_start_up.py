"""What a command imports before it does anything: a help text and a table wait for no client library, database or server."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
HEAVY = "aiohttp duckdb great_expectations httpx2 jinja2 openai pandas PIL prefect scipy sqlalchemy"
MODULES = """
import sys
from flows.cli import run
run(sys.argv[2:])
print(*sorted(set(sys.argv[1].split()) & {name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("arguments", "may"),
    [
        (("--help",), ()),
        (("rubrics",), ()),
        (("rubrics", "show", "alignment"), ()),
        (("table", "--lake", "none"), ()),
        (("explain", "--help"), ()),
        (("parse", "--help"), ()),
        (("worker", "--help"), ()),
        (("run", "none.toml"), ("sqlalchemy",)),
    ],
    ids=repr,
)
def test_what_a_command_imports(arguments: tuple[str, ...], may: tuple[str, ...], tmp_path: Path) -> None:
    command = [sys.executable, "-c", MODULES, HEAVY, *arguments]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)})
    assert set(said.stderr.splitlines()[-1].split()) <= set(may)


def test_a_plain_reply_compiles_few_patterns() -> None:
    """All of them take a third of a second, and a run lints its rubrics' golden replies before anything else."""
    code = """
from rubrics.linting import lint
from rubrics.loading import SHIPPED, find_rubrics
from rubrics.replies.doubts.words import compiled
assert not lint(find_rubrics(["alignment"], [SHIPPED])["alignment"])
print(compiled.cache_info().currsize)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert int(said.stdout) < 20
