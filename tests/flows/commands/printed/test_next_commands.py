"""The commands that a run's last line names open the run's own lake."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LOOK = """
import sys
from pathlib import Path
from flows.commands.tables import _lake_option
from tasks.lake.reading import Lake
print(_lake_option(Lake(Path(sys.argv[1]))))
"""


CASES = {
    "the default": ("{here}/lake", None, ""),
    "another": ("{here}/other", None, " --lake {here}/other"),
    "the default, SALON_LAKE another": ("{here}/lake", "other", " --lake {here}/lake"),
    "the one of SALON_LAKE": ("{here}/other", "other", ""),
    "by its whole path": ("{here}/other", "{here}/other", ""),
    "with a blank": ("{here}/my lake", None, " --lake '{here}/my lake'"),
}


@pytest.mark.parametrize(("place", "named", "said"), CASES.values(), ids=CASES.keys())
def test_the_lake_is_named_where_the_command_would_open_another(tmp_path: Path, place: str, named: str | None, said: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "SALON_LAKE"}
    environment |= {"PYTHONPATH": str(Path(__file__).parents[4])} | (
        {} if named is None else {"SALON_LAKE": named.format(here=tmp_path)}
    )
    command = [sys.executable, "-c", LOOK, place.format(here=tmp_path)]
    told = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout
    assert told == said.format(here=tmp_path) + "\n"
