"""The lines of docs/operations.md that back up a lake and its ledger and bring them back, run as they stand."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.running import running_judge
from flows.cli import run
from flows.serving.deployment_files import INFRA
from tasks.publish.reading import current
from tests.support.night_world import N_SAMPLES, World, n_billed, write_benchmark
from tests.support.servers.postgres import running_postgres, why_not

pytestmark = pytest.mark.slow

PAGE = (INFRA.parent / "docs" / "operations.md").read_text("utf-8")
SECTION = PAGE[PAGE.index("\n## Backup") : PAGE.index("\n## ", PAGE.index("\n## Backup") + 4)]
SQLITE, POSTGRES, RESTORE = re.findall(r"^```bash\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def judge_url() -> Iterator[str]:
    with running_judge() as url:
        yield url


def _bash(folder: Path, lines: str, ledger: str = "") -> None:
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:/usr/lib/postgresql/15/bin:{os.environ['PATH']}", "LEDGER": ledger,
    }  # fmt: skip
    subprocess.run(["bash", "-euc", lines], cwd=folder, env=environment, check=True, timeout=120)


def _judged(folder: Path, judge_url: str, ledger: str = "") -> tuple[Path, str]:
    """A benchmark that was published; its file, and the publication's id."""
    World(folder).make(1)
    file = write_benchmark(folder, judge_url)
    if ledger:
        file.write_text(f'ledger = "{ledger}"\n{file.read_text()}')
    assert run(["run", str(file), "--run-date", "2026-03-01"]) == 0
    return file, current(folder / "lake").publication_id


def _check(file: Path, publication: str, judge_url: str, n_before: int, capsys: pytest.CaptureFixture[str]) -> None:
    """All is there: nothing is asked again, and what would be published stands there."""
    lake = str(file.parent / "lake")
    capsys.readouterr()
    assert run(["run", str(file), "--run-date", "2026-03-01"]) == 0
    assert f"{N_SAMPLES} stored already, 0 sent" in capsys.readouterr().out
    assert n_billed(judge_url) == n_before
    assert current(Path(lake)).publication_id == publication


def test_an_embedded_ledger_and_its_lake(tmp_path: Path, judge_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    file, publication = _judged(tmp_path, judge_url)
    n_before = n_billed(judge_url)
    _bash(tmp_path, SQLITE)
    shutil.rmtree(tmp_path / "lake")
    _bash(tmp_path, RESTORE)
    assert run(["verify", publication, "--lake", str(tmp_path / "lake")]) == 0
    _check(file, publication, judge_url, n_before, capsys)


def test_a_ledger_on_postgresql(tmp_path: Path, judge_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    missing = why_not()
    if missing is not None or shutil.which("pg_dump") is None:
        pytest.skip(missing or "pg_dump is not installed")
    (vacuum,) = [line for line in SQLITE.splitlines() if "VACUUM" in line]
    with running_postgres() as server:
        address = server.new_database()
        file, publication = _judged(tmp_path, judge_url, address)
        n_before = n_billed(judge_url)
        _bash(tmp_path, SQLITE.replace(f"{vacuum}\n", POSTGRES), address.replace("+psycopg", ""))
        shutil.rmtree(tmp_path / "lake")
        another = server.new_database()
        file.write_text(file.read_text().replace(address, another))
        _bash(tmp_path, RESTORE, another.replace("+psycopg", ""))
        _check(file, publication, judge_url, n_before, capsys)
