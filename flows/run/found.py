"""What the samples of a dataset are, before anybody is asked: whose, and which prompts look like names of files."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from schemas.benchmark.exam import EXAM
from schemas.benchmark.file import Benchmark, source_name
from schemas.metrics import natural_key
from schemas.statuses.rows import SampleStatus
from schemas.tables.stored import SAMPLES
from tasks.context import StageContext
from tasks.ingest.paths import quote
from tasks.ingest.source_files import IMAGE_SUFFIXES
from tasks.plan.anchors import ANCHORS

_LOOKS_LIKE_A_FILE = rf"(?i).\.({'|'.join(sorted(suffix.removeprefix('.') for suffix in IMAGE_SUFFIXES))})\s*$"


@dataclass(frozen=True, slots=True)
class FoundCheckpoint:
    """A checkpoint of a dataset: its samples, and those of them that can be judged."""

    model: str
    checkpoint: str
    n_samples: int
    n_usable: int


@dataclass(frozen=True, slots=True)
class Found:
    """Who made the samples, models by name and checkpoints in natural order; and what the reader should know of their texts."""

    checkpoints: Sequence[FoundCheckpoint] = ()
    notes: Sequence[str] = ()


def found_in(run: StageContext) -> Found:
    """What stands in the run's dataset, without anchors and an exam's twins; one pass, and no picture is read."""
    is_named = pl.col("prompt").str.contains(_LOOKS_LIKE_A_FILE).fill_null(value=False)

    def counted(rows: pl.LazyFrame) -> pl.LazyFrame:
        return (
            rows.filter(~pl.col("model").is_in([EXAM, ANCHORS]))
            .group_by("model", "checkpoint", "source")
            .agg(
                n_samples=pl.len(),
                n_usable=(pl.col("status") == SampleStatus.OK.value).sum(),
                n_named=is_named.sum(),
                named=pl.col("prompt").filter(is_named).first(),
            )
        )

    parts = run.lake.collect(SAMPLES, run.ids.dataset_id, counted)
    sums = parts.group_by("model", "checkpoint").agg(pl.col("n_samples", "n_usable").sum())
    made = sorted(sums.iter_rows(), key=lambda row: (row[0], natural_key(row[1]), row[1]))
    return Found([FoundCheckpoint(*row) for row in made], _of_prompts(run.benchmark, parts))


def _of_prompts(benchmark: Benchmark, parts: pl.DataFrame) -> list[str]:
    """A note for each source some of whose prompts end as pictures' names do: the judge would read the suffix."""
    notes = []
    for index, source in enumerate(benchmark.sources):
        name = source_name(source, index)
        mine = parts.filter(source=name)
        n_named = mine["n_named"].sum()
        if n_named:
            first = mine["named"].drop_nulls().sort()[0]
            spare = "; stem is a picture's name without its suffix" if source.reader == "imagefolder" else ""
            notes.append(
                f"source {quote(name)}: {n_named:,} of {mine['n_samples'].sum():,} prompts end like the name of a picture, as "
                f'{quote(first, 60)}; name the column that holds the prompt in columns = {{ prompt = "…" }}{spare}'
            )
    return notes
