"""What a run's process leaves on the terminal: Salon's own lines, and no library's behind the last of them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from PIL import Image

from tests.support.servers.provider import Play, Provider, completion

SAYS = re.compile(
    r"(open|ingest|plan|judge|snapshot|read|check|aggregate|publish|salon): \S|[0-9a-f]{12} did not become current: "
)
BENCHMARK = """\
name = "last"
[[sources]]
reader = "manifest"
path = "made.parquet"
[[rubrics]]
id = "alignment"
[[judges]]
model = "judge"
base_url = "{url}"
"""
ENDS = {
    "published": (Play(body=completion("Score: 4")), 0),
    "the key is refused": (Play(401, b'{"error": {"message": "Incorrect API key provided."}}'), 3),
    "blocked by the gate": (Play(body=completion("I am unable to help with that request.")), 1),
}


@pytest.mark.parametrize(("play", "code"), ENDS.values(), ids=ENDS.keys())
def test_a_run_says_nothing_but_its_own(tmp_path: Path, provider: Provider, play: Play, code: int) -> None:
    """DuckDB, which reads the footer of a Parquet file, told of leaks where its objects were frozen when the process ended."""
    for number in range(12):
        Image.effect_noise((64, 64), 60 + number).convert("RGB").save(tmp_path / f"{number}.png")
    made = pl.DataFrame({"image": [f"{number}.png" for number in range(12)], "model": "m", "checkpoint": "step-1"})
    made.with_columns(prompt=pl.format("scene {}", pl.col("image"))).write_parquet(tmp_path / "made.parquet")
    (tmp_path / "last.toml").write_text(BENCHMARK.format(url=provider.url))
    provider.then = play
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3]), "COLUMNS": "1000"}
    command = [sys.executable, "-m", "flows", "run", "last.toml", "--run-date", "2026-03-04"]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert ran.returncode == code, ran.stderr
    assert [line for line in ran.stderr.splitlines() if not SAYS.match(line)] == []
