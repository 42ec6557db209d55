"""Measure ingest: CPU per picture of 150 KB with and without decoding, and many small pictures through the whole of it.

    python -m benchmarks.growth_parts.images [--images 1000000] [--small]

CPU seconds are of this process and of the one that decodes. In turn with it a plain loop is measured: read, sha256, Parquet by
pyarrow, and where pictures are decoded Pillow's load(). What a judgement costs is growth.py.
"""

import argparse
import hashlib
import io
import json
import multiprocessing
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from benchmarks.growth_parts.usage import Usage
from schemas.benchmark.file import Benchmark
from schemas.records import SAMPLE_TEXTS, Sample
from schemas.tables.stored import SAMPLES
from tasks.ingest.images import decode
from tasks.ingest.rows import UndecodedSample
from tasks.ingest.samples import OpenShard, SampleList, open_and_write_shard
from tasks.lake.reading import Lake
from tasks.lake.writing import stage
from tests.support.ingesting import ingest

N_BYTES, SIDE_PX, N_FILES, N_ROUNDS = 150_000, 768, 400, 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=1_000_000, help="small pictures that are ingested")
    parser.add_argument("--small", action="store_true", help="those alone")
    asked, folder = parser.parse_args(), Path(tempfile.mkdtemp())
    n_images = asked.images
    try:
        if not asked.small:
            _write_large(folder / "large")
            for kind in (UndecodedSample, Sample):
                print(json.dumps(_rate(folder, kind)), flush=True)
        writing = multiprocessing.get_context("spawn").Process(target=_write_small, args=(folder / "small", n_images))
        writing.start()  # apart: what it takes is not ingest's memory
        writing.join()
        print(json.dumps(_ingested(folder, n_images)))
    finally:
        shutil.rmtree(folder)


def _rate(folder: Path, kind: Callable[..., Sample]) -> dict[str, object]:
    """CPU ms a picture, files to durable parts, and of the plain loop; the median of the rounds."""
    texts = dict.fromkeys(SAMPLE_TEXTS, "a photo of a bench")
    paths = sorted((folder / "large").iterdir())
    samples = [kind("s", path.name, "m", "c", texts, image_path=path.name) for path in paths]
    staging = stage(Lake(folder / "lake"), SAMPLES)
    open_and_write_shard(OpenShard(staging, 0, SampleList(samples[:3]), folder / "large"))
    rounds: list[tuple[float, float]] = []
    for part in range(N_ROUNDS):
        before_s = _cpu_s()
        open_and_write_shard(OpenShard(staging, part, SampleList(samples), folder / "large"))
        between_s = _cpu_s()
        _plainly(paths, folder / "plain.parquet", is_decoded=kind is Sample)
        rounds.append((between_s - before_s, _cpu_s() - between_s))
    staging.discard()
    salon_s, plain_s = (sorted(taken)[N_ROUNDS // 2] / len(paths) for taken in zip(*rounds, strict=True))
    return {
        "pictures": kind.__name__, "n_bytes": N_BYTES, "cpu_ms": round(salon_s * 1000, 3), "per_s_and_core": round(1 / salon_s),
        "plain_loop_cpu_ms": round(plain_s * 1000, 3), "ratio": round(salon_s / plain_s, 2),
    }  # fmt: skip


def _plainly(paths: list[Path], target: Path, *, is_decoded: bool) -> None:
    """What nobody can do without, in tables of 64."""
    schema = pa.schema({"bytes": pa.binary(), "sha256": pa.string()})
    with pq.ParquetWriter(target, schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, len(paths), 64):
            rows = []
            for path in paths[start : start + 64]:
                content = path.read_bytes()
                if is_decoded:
                    Image.open(io.BytesIO(content)).load()
                rows.append({"bytes": content, "sha256": hashlib.sha256(content).hexdigest()})
            writer.write_table(pa.Table.from_pylist(rows, schema=schema))


def _ingested(folder: Path, n_images: int) -> dict[str, object]:
    """Small pictures in Parquet files through the reader, the decoding process, shards and the dataset's end."""
    source = {"reader": "huggingface", "path": str(folder / "small"), "model": "m", "name": "s", "decode": "header"}
    benchmark = Benchmark.model_validate({
        "name": "growth", "sources": [source],
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
    decoders = [psutil.Process(one._process.pid).cpu_times() for one in decode._idle]  # noqa: SLF001
    return used.ru_utime + used.ru_stime + sum(each.user + each.system for each in decoders)


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
