"""Measure ingest: CPU per picture of 150 KB with and without decoding, and many small pictures through the whole of it.

    python -m benchmarks.growth_parts.images [--images 1000000]

CPU seconds are of this process and of the one that decodes. What a judgement costs is growth.py.
"""

import argparse
import io
import json
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from benchmarks.growth_parts.usage import Usage
from schemas.benchmark import Benchmark
from schemas.records import SAMPLE_TEXTS, Sample
from schemas.tables import SAMPLES
from tasks.ingest import decoding
from tasks.ingest.rows import UndecodedSample
from tasks.ingest.samples import ingest
from tasks.ingest.shards import open_shard
from tasks.store import Lake

N_BYTES, SIDE_PX, N_FILES, N_ROUNDS = 150_000, 768, 400, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=1_000_000, help="small pictures that are ingested")
    folder, n_images = Path(tempfile.mkdtemp()), parser.parse_args().images
    try:
        _write_large(folder / "large")
        for kind in (UndecodedSample, Sample):
            print(json.dumps(_rate(folder, kind)), flush=True)
        _write_small(folder / "small", n_images)
        print(json.dumps(_ingested(folder, n_images)))
    finally:
        shutil.rmtree(folder)


def _rate(folder: Path, kind: Callable[..., Sample]) -> dict[str, object]:
    """Pictures a second and core, files to durable parts."""
    texts = dict.fromkeys(SAMPLE_TEXTS, "a photo of a bench")
    named = sorted(path.name for path in (folder / "large").iterdir())
    samples = [kind("s", name, "m", "c", texts, image_path=name) for name in named]
    open_shard(samples[:3], folder / "large")
    staging, before_s = Lake(folder / "lake").stage(SAMPLES), _cpu_s()
    for part in range(N_ROUNDS):
        staging.write_part(part, open_shard(samples, folder / "large"))
    spent_s = _cpu_s() - before_s
    staging.discard()
    return {"pictures": kind.__name__, "n_bytes": N_BYTES, "per_s_and_core": round(N_ROUNDS * len(samples) / spent_s)}


def _ingested(folder: Path, n_images: int) -> dict[str, object]:
    """Small pictures in Parquet files through the reader, the decoding process, shards and the dataset's end."""
    benchmark = Benchmark.model_validate({
        "name": "growth", "sources": [{"reader": "huggingface", "path": str(folder / "small"), "model": "m", "name": "s"}],
        "rubrics": [{"id": "alignment"}], "judges": [{"model": "j", "recorded": True}], "limits": {"shard_size": 5_000},
    })  # fmt: skip
    usage, before_s, began = Usage(), _cpu_s(), time.monotonic()
    found = ingest(benchmark, Lake(folder / "lake"))
    spent_s, wall_s = _cpu_s() - before_s, time.monotonic() - began
    usage.say("ingest")
    return {
        "n_samples": found.n_samples, "n_ok": found.n_ok, "asked_for": n_images, "cpu_s": round(spent_s), "wall_s": round(wall_s),
        "per_s_and_core": round(found.n_samples / spent_s), "peak_gb": round(usage.peak_gb["ingest"], 2),
    }  # fmt: skip


def _cpu_s() -> float:
    """Of this process and the decoders that live."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    ticks = 0
    for one in decoding._idle:  # noqa: SLF001
        fields = Path(f"/proc/{one._process.pid}/stat").read_text().rpartition(")")[2].split()  # noqa: SLF001
        ticks += int(fields[11]) + int(fields[12])
    return used.ru_utime + used.ru_stime + ticks / 100


def _write_large(folder: Path) -> None:
    folder.mkdir()
    draw = np.random.default_rng(0)
    coarse = Image.fromarray(draw.integers(0, 256, (SIDE_PX // 8, SIDE_PX // 8, 3), dtype=np.uint8))
    smooth = np.asarray(coarse.resize((SIDE_PX, SIDE_PX), Image.Resampling.BICUBIC)).astype(int)
    pixels = (smooth + draw.integers(-14, 14, smooth.shape)).clip(0, 255).astype(np.uint8)
    content = _jpeg(Image.fromarray(pixels), 70)
    for number in range(N_FILES):
        (folder / f"{number}.jpg").write_bytes(_numbered(content, number, max(8, N_BYTES - len(content) - 4)))


def _write_small(folder: Path, n_images: int) -> None:
    folder.mkdir()
    content = _jpeg(Image.fromarray(np.random.default_rng(1).integers(0, 256, (32, 32, 3), dtype=np.uint8)), 80)
    for start in range(0, n_images, 50_000):
        rows: list[dict[str, Any]] = [
            {
                "image": {"bytes": _numbered(content, number, 8), "path": f"{number}.jpg"},
                "prompt": f"a photo of {number // 4} teapots",
            }
            for number in range(start, min(start + 50_000, n_images))
        ]
        pq.write_table(pa.Table.from_pylist(rows), folder / f"rows-{start:09}.parquet")


def _jpeg(image: Image.Image, quality: int) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()


def _numbered(content: bytes, number: int, n_more: int) -> bytes:
    """The picture with a comment of some bytes that begins with the number: another file, the same pixels."""
    return (
        content[:2] + b"\xff\xfe" + (n_more + 2).to_bytes(2, "big") + number.to_bytes(8, "big").ljust(n_more, b"x") + content[2:]
    )


if __name__ == "__main__":
    main()
