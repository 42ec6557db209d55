"""Salon as a user has it: its wheel, built and installed into an environment that borrows the libraries of this one."""

import os
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Installed:
    """An environment with nothing of ours but the wheel; `project` is a folder whose own packages have the names of ours."""

    environment: Path
    project: Path

    def run(self, *command: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """A program of the environment, the project on its path as people have it: in PYTHONPATH, and where one stands."""
        program, *arguments = map(str, command)
        settings = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
        settings |= {"PYTHONPATH": str(self.project), "COLUMNS": "80", "NO_COLOR": "1"}
        return subprocess.run(
            [str(self.environment / "bin" / program), *arguments],
            cwd=cwd or self.project, env=settings, capture_output=True, text=True, check=False,
        )  # fmt: skip


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel, installed beside a project with packages `tasks`, `schemas` and `flows` that end whoever imports them."""
    folder = tmp_path_factory.mktemp("installed")
    environment, project = folder / "venv", folder / "project"
    python = environment / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("salon-*.whl")
    uv = [sys.executable, "-m", "uv", "pip", "install", "-q", "--offline", "--no-deps", "--python", python]
    subprocess.run([*uv, wheel], check=True)
    (site_packages,) = environment.glob("lib/python*/site-packages")
    (site_packages / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    for name in ("tasks", "schemas", "flows"):
        (project / name).mkdir(parents=True)
        (project / name / "__init__.py").write_text(f"raise SystemExit('the {name} of another project')")
    return Installed(environment, project)
