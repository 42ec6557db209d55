"""What `make clean` takes away, and what it leaves. Run on the Makefile, in a folder of its own."""

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_make_clean_leaves_the_lake_and_the_server_with_everybodys_deployments(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in (".venv", "salon-demo", "lake", "serve"):
        (tmp_path / name).mkdir()
    subprocess.run(["make", "clean", "VENV=.venv"], cwd=tmp_path, check=True, capture_output=True)
    assert {path.name for path in tmp_path.iterdir()} == {"Makefile", "lake", "serve"}
