"""Checkpoints as folders of small pictures with a manifest, and a benchmark of them: for backfills of many, in seconds."""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

N_PROMPTS = 12
_FILE = """\
name = "folders"
[[sources]]
reader = "manifest"
path = "out/{{model}}/{{checkpoint}}"
{rubrics}
[[judges]]
model = "judge-2026-01-01"
base_url = "{url}"
price = {{ input_usd_per_million = 2.0, output_usd_per_million = 8.0 }}
parameters = {{ max_tokens = 16 }}
{judge}
[limits]
concurrency = 4
[nightly]
schedule = "0 2 * * *"
"""


def make_folder(home: Path, name: str, n_as: int = 0, seed: int = 0) -> Path:
    """The folder `out/m/<name>` with its manifest; its first `n_as` pictures are those of every other such folder."""
    folder = home / "out" / "m" / name
    folder.mkdir(parents=True)
    own = np.random.default_rng([*name.encode(), seed])
    with (folder / "manifest.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["image", "item_id", "prompt", "category"])
        for item in range(N_PROMPTS):
            drawn = np.random.default_rng(item) if item < n_as else own
            pixels = drawn.integers(0, 255, (4, 4, 3), dtype=np.uint8)
            Image.fromarray(pixels).resize((32, 32), 0).save(folder / f"{item}.png")
            rows.writerow([f"{item}.png", f"p{item}", f"thing {item}", "things"])
    return folder


def write_file(home: Path, url: str, rubrics: Sequence[str] = ("alignment",), judge: str = "") -> Path:
    """The benchmark file of these folders; `judge` are further lines of that section."""
    listed = "\n".join(f'[[rubrics]]\nid = "{rubric}"' for rubric in rubrics)
    file = home / "b.toml"
    file.write_text(_FILE.format(rubrics=listed, url=url, judge=judge))
    return file
