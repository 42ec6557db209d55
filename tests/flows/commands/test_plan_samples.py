"""What `salon plan` says of the samples it found: what is left out, whose they are, which prompts are names of files."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from demo.drawing import draw_png
from demo.painter import painted_scenes
from tests.flows.flow_support import Said

BENCHMARK = """\
name = "found"
lake = "lake"
[[sources]]
name = "set"
reader = "imagefolder"
model = "m"
{source}
[[rubrics]]
id = "alignment"
[[judges]]
model = "j"
base_url = "http://127.0.0.1:1/v1"
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """write(source, places): a benchmark file whose source is these lines, and a picture, each another, at each place."""

    def run(source: str, *places: str) -> Path:
        for place, one in zip(places, painted_scenes(seed=1), strict=False):
            path = tmp_path / "set" / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(draw_png(one.scene))
        (tmp_path / "b.toml").write_text(BENCHMARK.format(source=source))
        return tmp_path / "b.toml"

    return run


def flat(said: Said) -> str:
    assert said.code == 0, said.err
    return " ".join(said.out.split())


def test_what_is_left_out_is_told_by_plan_and_by_run(write: Callable[..., Path], salon: Callable[..., Said]) -> None:
    file = write('path = "set/{checkpoint}"\ncolumns = { prompt = "file_name" }', "a/1.png", "a/2.avif", "b/3.avif")
    note = "source 'set': 2 files are not read (.avif 2); pictures are .bmp"
    assert f"note {note}" in flat(salon("plan", file))
    (said,) = json.loads(salon("plan", file, "--json").out)["notes"]
    assert said.startswith(note)
    assert said.endswith("; 1 folder holds no picture: 'b'")
    unasked = write('path = "set/{checkpoint}"')  # no prompt, so it ends before anybody is asked
    assert f"note: {said}" in " ".join(salon("run", unasked).err.split())
