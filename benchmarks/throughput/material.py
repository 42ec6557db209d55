"""What all contenders are given: pictures of 150 KB or a few, a list of items, the instructions, and Salon's benchmark file."""

import io
import json
from pathlib import Path

import numpy as np
from PIL import Image

from rubrics.loading import SHIPPED

MODEL = "salon-demo-judge"
PICTURE_BYTES, SMALL_BYTES = 150_000, 3_000
SIDE_PX = 512
INSTRUCTIONS = SHIPPED / "alignment" / "prompt.txt"


def make_pictures(folder: Path, n: int, *, is_small: bool = False) -> None:
    """n JPEGs of exactly PICTURE_BYTES, or small ones: equal pixels, comments of their own: no two are the same bytes."""
    plain, n_bytes = (_small_jpeg(), SMALL_BYTES) if is_small else (_jpeg(), PICTURE_BYTES)
    (folder / "images").mkdir(parents=True, exist_ok=True)
    for index in range(n):
        comment = f"picture {index}".encode().ljust(n_bytes - len(plain) - 4)
        segment = b"\xff\xfe" + (len(comment) + 2).to_bytes(2, "big") + comment
        (folder / "images" / f"{index:05}.jpg").write_bytes(plain[:2] + segment + plain[2:])


def _small_jpeg() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (64, 64), "navy").save(buffer, "JPEG")
    return buffer.getvalue()


def _jpeg() -> bytes:
    """Noise, as large as fits under PICTURE_BYTES with room for a comment, and no smaller than a comment can fill."""
    noise = np.random.default_rng(1).integers(0, 256, (SIDE_PX, SIDE_PX, 3), dtype=np.uint8)
    picture = Image.fromarray(noise)
    for quality in range(95, 5, -1):
        buffer = io.BytesIO()
        picture.save(buffer, "JPEG", quality=quality)
        if PICTURE_BYTES - 60_000 < buffer.tell() < PICTURE_BYTES - 64:
            return buffer.getvalue()
    raise ValueError(f"no JPEG quality gives a little under {PICTURE_BYTES} bytes")


def write_items(folder: Path, n: int) -> Path:
    """items-N.jsonl: the first n items, in the form Salon's manifest reader and the scripts read alike."""
    path = folder / f"items-{n}.jsonl"
    rows = (
        {"item_id": f"item-{i}", "image": f"images/{i:05}.jpg", "prompt": f"A picture of noise, number {i}."} for i in range(n)
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_benchmark(folder: Path, items: Path, base_url: str, n_at_once: int) -> Path:
    """A benchmark file in `folder` whose lake stands beside it."""
    path = folder / "benchmark.toml"
    text = f"""\
name = "throughput"
lake = "lake/"
[[sources]]
reader = "manifest"
path = "{items}"
model = "noise"
[[rubrics]]
id = "alignment"
[[judges]]
model = "{MODEL}"
base_url = "{base_url}"
parameters = {{ temperature = 0, max_tokens = 600 }}
[limits]
concurrency = {n_at_once}
"""
    path.write_text(text, encoding="utf-8")
    return path
