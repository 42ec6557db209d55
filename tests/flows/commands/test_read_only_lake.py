"""A lake that may be read and not written to: each command that writes says so in a sentence, and reading goes on.

It is a mount of its own in the process that runs the commands: permissions do not stop root.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from flows.cli import run

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]
BENCHMARK = """\
name = "shades"
ledger = "sqlite:///{folder}/ledger.db"
[[sources]]
reader = "manifest"
path = "m.jsonl"
[[rubrics]]
id = "alignment"
[[judges]]
model = "gpt-4o"
recorded = true
"""
MOUNTED = "mount --bind lake lake && mount -o remount,bind,ro lake && exec "
COMMANDS = {
    "pin": ["pin", "{publication}", "--because", "cited"],
    "run": ["run", "b.toml", "--run-date", "2026-01-09"],
    "import": ["import", "b.toml", "--replies", "replies.jsonl", "--run-date", "2026-01-09"],
    "sources": ["plan", "b.toml", "--reread"],
    "clearing": ["gc", "b.toml", "--yes", "--older-than", "0"],
}
"""What writes, by what it writes first."""
LOOKING = {
    "a plan": ["plan", "b.toml"],
    "the partitions": ["backfill", "b.toml", "--list"],
    "labels": ["agreement", "b.toml", "--label-next", "sheet.csv", "--between", "m/c", "--between", "m/d"],
    "a table": ["table"],
    "verifying": ["verify"],
    "what may go": ["gc", "b.toml"],
}
"""What writes nothing that stays in the lake, though a plan and what follows from it are made as they are for a run."""


def _mounting() -> list[str]:
    return ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """Exit code and errors of each command, run one after the other in one process; left out where nothing can be mounted."""
    folder = tmp_path_factory.mktemp("readable")
    (folder / "lake").mkdir()
    if subprocess.run([*_mounting(), "sh", "-c", f"{MOUNTED} true"], cwd=folder, capture_output=True, check=False).returncode:
        pytest.skip("this process may mount nothing")
    Image.new("RGB", (8, 8), (80, 0, 0)).save(folder / "a.png")
    row = '{{"image": "a.png", "prompt": "a dark red", "model": "m", "checkpoint": "{}"}}\n'
    (folder / "m.jsonl").write_text(row.format("c") + row.format("d"))
    reply = '{{"prompt": "a dark red", "model": "m", "checkpoint": "{}", "reply": "Score: 4"}}\n'
    (folder / "replies.jsonl").write_text(reply.format("c") + reply.format("d"))
    (folder / "b.toml").write_text(BENCHMARK.format(folder=folder))
    assert run(["import", str(folder / "b.toml"), "--replies", str(folder / "replies.jsonl"), "--run-date", "2026-01-02"]) == 0
    (publication,) = (path.name for path in (folder / "lake/publish/v1/shades").iterdir() if path.is_dir())
    (folder / "m.jsonl").write_text("".join(map(row.format, "cde")))  # of the last the lake knows nothing
    (folder / "lake" / "lake.json").unlink()  # as of a lake that an earlier release made
    lists = {name: [part.format(publication=publication) for part in command] for name, command in (COMMANDS | LOOKING).items()}
    script = [sys.executable, "-m", "tests.flows.commands.test_read_only_lake", json.dumps(lists)]
    command = [*_mounting(), "sh", "-c", f'{MOUNTED} "$@"', "sh", *script]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "SALON_LAKE": "lake", "TMPDIR": str(folder)}
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=600, check=True)
    return dict(json.loads((folder / "told.json").read_bytes()))


@pytest.mark.parametrize("name", COMMANDS)
def test_what_writes_says_what_it_cannot_write_and_what_to_do(told: dict[str, tuple[int, str]], name: str) -> None:
    code, said = told[name]
    assert code == 3, said
    assert "Read-only file system" in said
    assert "mount it for writing, get write permission, or name another place" in said
    assert "free space" not in said


@pytest.mark.parametrize("name", LOOKING)
def test_what_only_looks_works(told: dict[str, tuple[int, str]], name: str) -> None:
    code, said = told[name]
    assert code == 0, said


def _run_all(lists: dict[str, list[str]]) -> dict[str, tuple[int, str]]:
    """What the process in the mount does."""
    found = {}
    for name, command in lists.items():
        with Path("said.txt").open("w+") as file:
            sys.stderr = file
            code = run(command)
            file.seek(0)
            found[name] = (code, " ".join(file.read().split()))
    return found


if __name__ == "__main__":
    Path("told.json").write_text(json.dumps(_run_all(json.loads(sys.argv[1]))))
