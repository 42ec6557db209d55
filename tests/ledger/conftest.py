"""Four samples planned for one judge whose replies are recorded elsewhere."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from rubrics.model import Rubric
from schemas.benchmark.file import Benchmark
from schemas.tables.stored import JUDGEMENTS
from tasks.lake.reading import Lake
from tasks.lake.writing import stage
from tasks.ledger.ledger import Ledger
from tests.support.contexts import plan_part
from tests.support.importing import Import


@pytest.fixture
def recorded(
    make_samples: Callable[..., pl.DataFrame], store_samples: Callable[..., tuple[Lake, str]], rubric: Rubric, tmp_path: Path,
    ledger: Ledger,
) -> Import:  # fmt: skip
    samples = make_samples(
        4,
        item_id=["a", "a", "b", "c"],
        model=["dalle", "sdxl", "dalle", "dalle"],
        prompt=["p0", "p0", "p2", "p3"],
        seed=[0, 0, 0, 7],
    )
    paths = pl.Series("path", ["0.png", "1.png", "left/same.png", "right/same.png"])
    samples = samples.with_columns(pl.col("image").struct.with_fields(path=paths))
    lake, dataset_id = store_samples(samples)
    benchmark = {
        "name": "b", "sources": [{"reader": "manifest", "path": "x"}], "rubrics": [{"id": "plain"}],
        "judges": [{"model": "scripted", "recorded": True}],
    }  # fmt: skip
    judge = Benchmark.model_validate(benchmark).judges[0]
    judgements, requests = plan_part(samples, replace(rubric, messages=()), judge)
    staging = stage(lake, JUDGEMENTS)
    staging.write_part(0, judgements)
    staging.commit("2" * 64)
    return Import(lake, dataset_id, requests, judgements, ledger, tmp_path, benchmark)
