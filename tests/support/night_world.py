"""A small world for nights and backfills: checkpoints of a dozen drawn scenes each, made one by one, and a benchmark of them."""

import json
import shutil
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from tests.support.painting import paint

MODEL = "demo-painter"
N_PROMPTS, N_IMAGES = 12, 2
N_SAMPLES = N_PROMPTS * N_IMAGES
BENCHMARK = """\
name = "nights"
[[sources]]
reader = "geneval"
path = "made/{{model}}/{{checkpoint}}"
{rubrics}
{judges}
[limits]
concurrency = 4
{limits}
[nightly]
schedule = "0 2 * * *"
{nightly}
"""


JUDGE = """\
[[judges]]
model = "{model}"
base_url = "{url}"
price = {{ input_usd_per_million = 2.0, output_usd_per_million = 8.0 }}
{judge}
"""


def write_benchmark(
    folder: Path,
    url: str,
    name: str = "b.toml",
    *,
    rubrics: Sequence[str] = ("alignment",),
    models: Sequence[str] = ("salon-demo-judge",),
    **sections: str,
) -> Path:
    """A benchmark file of the world; `judge`, `limits` and `nightly` are further lines of those sections."""
    listed = "\n".join(f'[[rubrics]]\nid = "{rubric}"' for rubric in rubrics)
    lines = {"judge": "", "limits": "", "nightly": ""} | sections
    judges = "\n".join(JUDGE.format(model=model, url=url, judge=lines["judge"]) for model in models)
    filled = BENCHMARK.format(rubrics=listed, judges=judges, limits=lines["limits"], nightly=lines["nightly"])
    (folder / name).write_text(filled)
    return folder / name


class World:
    """Painted scenes from which checkpoints are put together: no two of them have the same pictures."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self, number: int) -> str:
        """Draw checkpoint `step-<number>`; its name."""
        seed, step = 1 + number // 15, 1000 * (1 + number % 3)
        painted = self.folder / "painted" / str(seed)
        if not painted.exists():
            paint(painted, seed)
        for prompt in range(N_PROMPTS):
            scene = f"{prompt * 5 + number // 3 % 5:05d}"
            source = painted / "scenes" / MODEL / f"step-{step}" / scene
            shutil.copytree(source, self.folder / "made" / MODEL / f"step-{number}" / f"{prompt:05d}")
        return f"step-{number}"


def n_billed(url: str) -> int:
    """Requests the judge has answered since it was started."""
    with urllib.request.urlopen(url.removesuffix("/v1") + "/stats") as answer:
        return int(json.load(answer)["n_requests"])


def write_quick(folder: Path, url: str, n_checkpoints: int) -> Path:
    """So many checkpoints, and a benchmark file of them whose requests are tried once and wait for no limit."""
    world = World(folder)
    for number in range(n_checkpoints):
        world.make(number)
    return write_benchmark(folder, url, limits="attempts_per_request = 1\nrequests_per_minute = 60000")
