"""Small rubrics, samples with pictures, and lakes that hold them, for the tests of plan, ledger and judge. No tests here."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rubrics.messages import Message, Part
from rubrics.model import Condition, Dimension, ReplyFormat, Rubric, Rule, Variant
from schemas.records import SAMPLE_TEXTS
from schemas.tables.stored import SAMPLES
from tasks.lake.reading import Lake
from tasks.lake.writing import stage

PNG = bytes.fromhex("89504e470d0a1a0a") + b"picture "


def _rubric(**changes: Any) -> Rubric:
    dimension = Dimension("score", ("score",), 0, 4, 1)
    fields: dict[str, Any] = {
        "id": "plain", "version": "1", "title": "t", "source": "s", "folder": Path("nowhere"), "digest": "d" * 64,
        "reply_format": ReplyFormat.JSON, "needs": ("prompt", "image"), "may_be_null": frozenset(), "unit": ("prompt",),
        "report_by": "category", "dispatch": None, "value_maps": {},
        "messages": (
            Message("system", (Part("prompt"),)),
            Message("user", (Part("column", "prompt"), Part("image"))),
        ),
        "variants": {None: Variant(None, "Judge this.", "prompt.txt", (dimension,))},
        "rules": (), "n_output_tokens_expected": 20,
    }  # fmt: skip
    return Rubric(**(fields | changes))


@pytest.fixture
def make_rubric() -> Callable[..., Rubric]:
    return _rubric


@pytest.fixture
def rubric() -> Rubric:
    return _rubric()


@pytest.fixture
def no_text_rule() -> Rule:
    return Rule("no_text", (Condition("text", is_null=True),), ("score",), 0, 0)


def picture(index: int) -> bytes:
    return PNG + str(index).encode()


def _samples(n: int, **columns: list[Any]) -> pl.DataFrame:
    """SAMPLES rows: n samples with a prompt and a picture of their own; columns given replace those."""
    images = [picture(index) for index in range(n)]
    data: dict[str, list[Any]] = {name: [None] * n for name in SAMPLES.columns}
    data |= {
        "sample_id": [sha256(f"sample {index}".encode()).hexdigest() for index in range(n)],
        "source": ["s"] * n, "source_key": [f"{index}.png" for index in range(n)],
        "item_id": [f"item-{index}" for index in range(n)], "model": ["painter"] * n, "checkpoint": ["c1"] * n,
        "seed": [0] * n, "prompt": [f"prompt {index}" for index in range(n)], "category": ["colors"] * n,
        "image": [{"bytes": image, "path": f"{index}.png"} for index, image in enumerate(images)],
        "image_sha256": [sha256(image).hexdigest() for image in images], "image_format": ["PNG"] * n, "status": ["ok"] * n,
    }  # fmt: skip
    data |= columns
    texts = dict.fromkeys(
        ("status", "detail", "image_sha256", "item_id", "duplicate_of_sample_id", *SAMPLE_TEXTS, "texts_json"), pl.String
    )
    schema = {name: texts.get(name) for name in data}
    schema |= {"seed": pl.Int64, "image": pl.Struct({"bytes": pl.Binary, "path": pl.String}), "width_px": pl.Int32}
    schema |= {"file_sha256": pl.String, "image_treatment": pl.String, "height_px": pl.Int32, "n_bytes": pl.Int64}
    return pl.DataFrame(data, schema=schema)


@pytest.fixture
def make_samples() -> Callable[..., pl.DataFrame]:
    return _samples


@pytest.fixture
def store_samples(tmp_path: Path) -> Callable[[pl.DataFrame], tuple[Lake, str]]:
    def store(samples: pl.DataFrame) -> tuple[Lake, str]:
        lake = Lake(tmp_path / "lake")
        staging = stage(lake, SAMPLES)
        staging.write_part(0, samples)
        return lake, staging.commit("1" * 64)

    return store
