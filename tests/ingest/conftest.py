"""What the ingest tests share: a benchmark with given sources, a lake, small pictures as bytes."""

import io
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from PIL import Image

from schemas.benchmark.file import Benchmark, Limits, RubricChoice, Source
from schemas.benchmark.judges import Judge
from schemas.records import Sample
from schemas.tables.stored import SAMPLES
from tasks.ingest.readers import read
from tasks.ingest.samples import IngestResult
from tasks.ingest.sources import expand
from tasks.lake.reading import Lake
from tests.ingest.rated_tables import taken
from tests.support.ingesting import ingest

# Read once, when `datasets` is imported: no test may look for a hub.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")


@pytest.fixture
def picture() -> Callable[..., bytes]:
    """picture(seed, format, mode, size, **save options): a small picture that differs by seed."""

    def draw(seed: int = 0, kind: str = "PNG", mode: str = "RGB", size: tuple[int, int] = (8, 6), **options: object) -> bytes:
        image = Image.new("RGB", size, (seed % 256, 80, 160))
        image.putpixel((0, 0), (255, seed % 256, 0))
        buffer = io.BytesIO()
        image.convert(mode).save(buffer, kind, **options)
        return buffer.getvalue()

    return draw


@pytest.fixture
def benchmark_of(tmp_path: Path) -> Callable[..., Benchmark]:
    """benchmark_of(*sources, shard_size=…): a benchmark file's content whose folder is tmp_path."""

    def build(*sources: dict, shard_size: int = 500, folder: Path = tmp_path) -> Benchmark:
        return Benchmark(
            name="test",
            sources=[Source(**source) for source in sources],
            rubrics=[RubricChoice(id="alignment")],
            judges=[Judge(model="judge")],
            limits=Limits(shard_size=shard_size),
            folder=folder,
        )

    return build


@pytest.fixture
def read_all(benchmark_of: Callable[..., Benchmark]) -> Callable[..., list[Sample]]:
    """read_all(reader=…, path=…, …): every sample of one source below tmp_path; its model is `m` unless given."""

    def run(own_texts: tuple[str, ...] = (), **source: object) -> list[Sample]:
        given = source if "model" in source else {"model": "m", **source}
        given = {key: value for key, value in given.items() if value is not None}
        return [sample for one in expand(benchmark_of(given), own_texts) for sample in read(one)]

    return run


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


@pytest.fixture
def ingest_rows(benchmark_of: Callable[..., Benchmark], lake: Lake) -> Callable[..., tuple[IngestResult, pl.DataFrame]]:
    """ingest_rows(*sources, shard_size=…): the result and the stored samples in order, pictures left out."""

    def run(*sources: dict, **options: object) -> tuple[IngestResult, pl.DataFrame]:
        result = ingest(benchmark_of(*sources, **options), lake)
        return result, lake.scan(SAMPLES, result.dataset_id).drop("image").collect()

    return run


@pytest.fixture
def take(tmp_path: Path) -> Callable[..., pl.DataFrame]:
    """take(rows, file name, **[ratings]): the `ratings` table of rated_tables.py's samples."""
    return partial(taken, tmp_path)
