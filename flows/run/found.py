"""What the samples of a dataset are, before anybody is asked: whose, which are unusable, which prompts look like file names."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil

import polars as pl

from schemas.benchmark.file import Benchmark, source_name
from schemas.metrics import natural_key
from schemas.records import UNKNOWN
from schemas.statuses.rows import SampleStatus
from schemas.tables.stored import SAMPLES
from tasks.context import StageContext
from tasks.ingest.paths import quote
from tasks.ingest.source_files import IMAGE_SUFFIXES
from tasks.ingest.values import NUMBERED
from tasks.plan.anchors import OFF_BOARD
from tasks.publish.standings.wording import counted

_LOOKS_LIKE_A_FILE = rf"(?i).\.({'|'.join(sorted(suffix.removeprefix('.') for suffix in IMAGE_SUFFIXES))})\s*$"


_N_LOOKED_AT = 1000
"""Items with several prompts that are looked at one by one."""
N_NAMED = 5
"""Rows of each status that are named."""


@dataclass(frozen=True, slots=True)
class FoundCheckpoint:
    """A checkpoint of a dataset: its samples, and those of them that can be judged."""

    model: str
    checkpoint: str
    n_samples: int
    n_usable: int


@dataclass(frozen=True, slots=True)
class Unusable:
    """A row of a source that is not judged: its status, where it stands, and why."""

    status: str
    source: str
    source_key: str
    detail: str | None


@dataclass(frozen=True, slots=True)
class Found:
    """Who made the samples, models by name and checkpoints in natural order; and what the reader should know of their texts."""

    checkpoints: Sequence[FoundCheckpoint] = ()
    notes: Sequence[str] = ()
    unusable: Sequence[Unusable] = ()  # some rows of each status


def found_in(run: StageContext) -> Found:
    """What stands in the run's dataset, without anchors and an exam's twins; no picture is read."""
    is_named = pl.col("prompt").str.contains(_LOOKS_LIKE_A_FILE).fill_null(value=False)

    def of_each(rows: pl.LazyFrame) -> pl.LazyFrame:
        return (
            rows.filter(~pl.col("model").is_in(OFF_BOARD))
            .group_by("model", "checkpoint", "source")
            .agg(
                n_samples=pl.len(),
                n_usable=(pl.col("status") == SampleStatus.OK.value).sum(),
                n_named=is_named.sum(),
                named=pl.col("prompt").filter(is_named).first(),
            )
        )

    parts = run.lake.collect(SAMPLES, run.ids.dataset_id, of_each)
    sums = parts.group_by("model", "checkpoint").agg(pl.col("n_samples", "n_usable").sum())
    made = sorted(sums.iter_rows(), key=lambda row: (row[0], natural_key(row[1]), row[1]))
    return Found(
        [FoundCheckpoint(*row) for row in made],
        [*not_as_meant(run), *_of_prompts(run.benchmark, parts)],
        _unusable(run),
    )


def not_as_meant(run: StageContext, *, is_all: bool = False) -> list[str]:
    """Notes on what a benchmark's author would not expect of the run's samples; `is_all`: of every checkpoint there is."""
    notes = [*_of_no_checkpoint(run), *_numbered_prompts(run), *_differing_prompts(run), *_not_examined(run)]
    why = no_baseline(run) if is_all else None
    return [*notes, f"nightly.baseline: {why}; nothing is compared with it"] if why else notes


def no_baseline(run: StageContext) -> str | None:
    """Why the run's dataset lacks the baseline; None where it has it, or the benchmark file names none."""
    baseline = run.benchmark.nightly.baseline
    if baseline is None:
        return None
    name, is_own = pl.concat_str("model", "checkpoint", separator="/"), ~pl.col("model").is_in(OFF_BOARD)
    made = run.lake.collect(SAMPLES, run.ids.dataset_id, lambda rows: rows.filter(is_own).select(name.unique()))
    names = sorted(made.to_series().drop_nulls().unique())
    if baseline in names:
        return None
    shown = ", ".join(names[:N_NAMED]) + (" …" if len(names) > N_NAMED else "")
    return f"{baseline!r} has no samples; write it as model/checkpoint; available: {shown}"


def _not_examined(run: StageContext) -> list[str]:
    """A note where the exam's share is no two twins of a checkpoint's samples: it has no exam."""
    if run.benchmark.exam is None:
        return []
    n_least, is_own = ceil(2 / run.benchmark.exam.share - 1e-9), ~pl.col("model").is_in([*OFF_BOARD, UNKNOWN])

    of = ["source", "model", "checkpoint"]

    def usable(rows: pl.LazyFrame) -> pl.LazyFrame:
        return rows.filter(is_own, pl.col("status") == SampleStatus.OK.value).group_by(of).agg(n=pl.len())

    of_some_parts = run.lake.collect(SAMPLES, run.ids.dataset_id, usable)
    found = of_some_parts.group_by(of).agg(pl.col("n").sum()).filter(pl.col("n") < n_least).sort(of)
    if found.is_empty():
        return []
    source, model, checkpoint, n = found.row(0)
    few = f"{counted(found.height, 'checkpoint')} in a source with fewer than {n_least:,} usable samples"
    return [f"no exam of {few}; the first: {model}/{checkpoint} in {source}, {n:,}; a larger [exam] share has twins of fewer"]


def _of_no_checkpoint(run: StageContext) -> list[str]:
    """A note where nobody could read who made a row."""

    def rows_of(rows: pl.LazyFrame) -> pl.LazyFrame:
        lost = rows.filter(pl.col("model") == UNKNOWN).select("source", "source_key", "detail")
        return lost.with_columns(n=pl.len()).head(1)

    found = run.lake.collect(SAMPLES, run.ids.dataset_id, rows_of)
    if found.is_empty():
        return []
    source, key, detail, _ = found.row(0)
    why = f"of {counted(int(found['n'].sum()), 'row')} nobody could read which checkpoint made it"
    return [f"{why}: not judged, and in no checkpoint's figures; the first: {source}, {key}: {detail}"]


def _unusable(run: StageContext) -> list[Unusable]:
    is_unusable = pl.col("status") != SampleStatus.OK.value

    def first_rows(rows: pl.LazyFrame) -> pl.LazyFrame:
        return rows.select("status", "source", "source_key", "detail").group_by("status", maintain_order=True).head(N_NAMED)

    some = run.lake.collect(SAMPLES, run.ids.dataset_id, lambda rows: first_rows(rows.filter(is_unusable)))
    first = first_rows(some.lazy()).collect()
    return [Unusable(*row) for row in first.sort("status", maintain_order=True).iter_rows()]  # of each in the order of the source


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
                f"source {quote(name)}: {n_named:,} of {mine['n_samples'].sum():,} prompts look like picture file names, such as "
                f'{quote(first, 60)}; name the column that holds the prompt in columns = {{ prompt = "…" }}{spare}'
            )
    return notes


def _numbered_prompts(run: StageContext) -> list[str]:
    """A note for each source whose prompts are pictures' names, most of which differ by a number at their end alone."""
    notes = []
    for index, source in enumerate(run.benchmark.sources):
        if source.columns.get("prompt") != "stem":
            continue
        name = source_name(source, index)
        mine = run.lake.collect(SAMPLES, run.ids.dataset_id, partial(_texts, name)).unique()  # a part knows its own rows alone
        of_each = mine.group_by("text").agg(n=pl.len(), first=pl.col("prompt").min())
        found = of_each.filter(pl.col("n") > 1).sort("first")
        if 2 * found["n"].sum() > len(mine):
            notes.append(
                f"source {quote(name)}: {found['n'].sum():,} prompts, the pictures' names, are {counted(len(found), 'text')} "
                f"with numbers at their end, such as {quote(found['first'][0], 60)}. If these are seeds, the judge reads them, "
                "and each picture counts as a prompt of its own, so that intervals are too narrow; say so: columns = "
                '{ prompt = "stem_text", seed = "stem_number" }'
            )
    return notes


def _texts(source: str, rows: pl.LazyFrame) -> pl.LazyFrame:
    """The prompts of a source, and beside each `text`: the same without the number at its end, which may be the whole."""
    mine = rows.filter(pl.col("source") == source, ~pl.col("model").is_in(OFF_BOARD), pl.col("prompt").is_not_null())
    text = pl.col("prompt").str.extract(f"^{NUMBERED}$", 1).fill_null(pl.col("prompt"))
    return mine.select("prompt").unique().with_columns(text=text)


def _differing_prompts(run: StageContext) -> list[str]:
    """A note where checkpoints have different prompts under one item_id, as after a correction in some of them alone.

    In memory are three numbers for each item. Items with several prompts in one checkpoint are left aside: there an id is no
    prompt's name.
    """
    if not any("prompt" in rubric.unit for rubric in run.rubrics.values()):
        return []
    ends = pl.DataFrame(schema=dict.fromkeys(["item", "low", "high"], pl.UInt64))
    by_item, prompt = [pl.col("low").min(), pl.col("high").max()], pl.col("prompt").hash()
    for rows in run.lake.scans(SAMPLES, run.ids.dataset_id):
        hashes = _named_prompts(rows).select(item=pl.col("item_id").hash(), low=prompt, high=prompt)
        some = hashes.group_by("item").agg(by_item).collect(engine="streaming")
        ends = pl.concat([ends, some]).group_by("item").agg(by_item)
    several = ends.filter(pl.col("low") != pl.col("high"))["item"].sort()
    if several.is_empty():
        return []
    is_one = pl.col("item_id").hash().is_in(several.head(_N_LOOKED_AT).implode())
    made = run.lake.collect(SAMPLES, run.ids.dataset_id, lambda rows: _named_prompts(rows).filter(is_one).unique())
    return _of_items(made, len(several))


def _named_prompts(rows: pl.LazyFrame) -> pl.LazyFrame:
    named = rows.filter(~pl.col("model").is_in(OFF_BOARD), pl.col("item_id").is_not_null(), pl.col("prompt").is_not_null())
    return named.select("item_id", "model", "checkpoint", "prompt")


def _of_items(made: pl.DataFrame, n_several: int) -> list[str]:
    """The note on items of which each checkpoint has one prompt, and not the same."""
    made = made.unique()  # a part knows its own rows alone
    n_of_one = made.group_by("item_id", "model", "checkpoint").len()
    ambiguous = n_of_one.filter(pl.col("len") > 1)
    mine = made.join(ambiguous, on="item_id", how="anti").sort("item_id", "model", "checkpoint")
    if mine.is_empty():
        return []
    n_items, name = mine["item_id"].n_unique(), mine["item_id"][0]
    first = mine.filter(item_id=name).unique("prompt", keep="first", maintain_order=True)
    said = [f"{quote(row['prompt'], 60)} of {row['model']}/{row['checkpoint']}" for row in first[:2].iter_rows(named=True)]
    count = "" if n_items == 1 else f" ({n_items:,}{' and more' if n_several > _N_LOOKED_AT else ''} items have several)"
    told = f"item {quote(name, 60)} has {first.height} prompts, such as {' and '.join(said)}{count}"
    return [f"{told}; pictures with different prompts are not compared with each other"]
