"""Twins put into a dataset: behind a run's own samples, or with the samples they are of as a dataset alone."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.benchmark.exam import Exam
from schemas.benchmark.file import Benchmark
from schemas.identities import canonical_json
from schemas.statuses.rows import SampleStatus
from schemas.tables.stored import PICTURES, SAMPLES
from schemas.tables.table import Row
from tasks.context import StageContext
from tasks.ingest.identity import dataset_id
from tasks.ingest.parts import ShardResult, commit, copy_part, discard, settle_pictures, write_part
from tasks.ingest.twins.exam import Prompts, chosen, twins, usable
from tasks.lake.pictures import with_pictures
from tasks.lake.reading import Lake
from tasks.lake.writing import Staging, stage

_SAMPLES_AT_ONCE = 16  # with all their twins' pictures in memory


def exam_key(benchmark: Benchmark, exam: Exam, checkpoints: Collection[str] | None, anchor_set: str | None) -> str:
    """What the twins of a run are known by, before its sources are read."""
    of = [exam.model_dump(mode="json", include={"share", "faults"}), benchmark.name, anchor_set]
    sources = [source.model_dump(mode="json") for source in benchmark.sources]
    wanted = None if checkpoints is None else sorted(checkpoints)
    return f"exam {sha256(canonical_json([of, sources, wanted])).hexdigest()}"


def add_twins(staging: Staging, index: int, exam: Exam) -> ShardResult | None:
    """Write the twins of what is staged as part `index`; None where no sample can have one."""
    paths = list(staging.part_paths())
    known = usable(pl.scan_parquet(paths, hive_partitioning=False))
    budgets = chosen(known, exam.share)
    rows: list[Row] = []
    home: dict[str, int] = {}
    for number, path in enumerate(paths):
        part = pl.scan_parquet(path, hive_partitioning=False).filter(
            pl.col("sample_id").is_in(list(budgets)), pl.col("status") == SampleStatus.OK.value
        )
        for row in with_pictures(part.collect()).iter_rows(named=True):
            if row["sample_id"] not in home:
                home[row["sample_id"]] = number
                rows.append(row)
    where = {row["image_sha256"]: home[row["sample_id"]] for row in rows if row["image_sha256"]}
    pictures = _Staged(staging, where)
    found = twins(rows, exam.faults, budgets, Prompts.of(known), pictures.row)
    first = next(found, None)
    if first is None:
        return None
    made: list[Row] = []

    def shown() -> Iterator[pa.Table]:
        """The twins' own pictures, one in memory at a time; their rows are kept."""
        seen: set[str] = set()
        for twin in chain([first], found):
            made.append(twin.row | {"image": None})
            if twin.picture and twin.picture["image_sha256"] not in seen:
                seen.add(twin.picture["image_sha256"])
                yield _table([twin.picture])

    return write_part(staging, index, shown(), lambda: SAMPLES.frame(made).to_arrow())


class _Staged:
    """Pictures of staged parts by digest; those of one part are read together, and not kept."""

    def __init__(self, staging: Staging, where: Mapping[str, int]) -> None:
        self._staging, self._where = staging.beside(PICTURES), where

    def row(self, image_sha256: str) -> Row:
        """The row of PICTURES of a digest."""
        path = self._staging.part_path(self._where[image_sha256])
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                digests = file.read_row_group(group, columns=["image_sha256"])["image_sha256"].to_pylist()
                if image_sha256 in digests:
                    return dict(file.read_row_group(group).slice(digests.index(image_sha256), 1).to_pylist()[0])
        raise LookupError(image_sha256)


def some_samples(lake: Lake, dataset: str, n_samples: int) -> Iterator[pl.DataFrame]:
    """`n_samples` usable samples of each source, the same ones each time, part by part, with their `pictures`."""
    is_ok = pl.col("status") == SampleStatus.OK.value
    ids = lake.collect(SAMPLES, dataset, lambda rows: rows.filter(is_ok).select("sample_id", "source"))
    # Ids are digests: the first of them in order are as good as drawn by lot, and the same in every run.
    some = ids.unique("sample_id").sort("sample_id").group_by("source", maintain_order=True).head(n_samples)["sample_id"]
    for scan in lake.scans(SAMPLES, dataset):
        yield with_pictures(scan.filter(is_ok, pl.col("sample_id").is_in(some.implode())).collect())


def picture_in(context: StageContext) -> Callable[[str], Row]:
    """The row of PICTURES of a digest, from the context's dataset."""

    def row(image_sha256: str) -> Row:
        (found,) = context.dataset.pictures([image_sha256])
        return dict(found.to_pylist()[0])

    return row


def store(context: StageContext, chunks: Iterable[tuple[Sequence[Row], Sequence[Row]]]) -> str:
    """A dataset of rows of SAMPLES, with the pictures of the context's dataset and those of PICTURES given beside; its id.

    Each chunk is a part. Empty where there is no row.
    """
    staging = stage(context.lake, SAMPLES)
    results: list[ShardResult] = []
    try:
        for rows, drawn in chunks:
            known = {str(row["sample_id"]): row for row in rows}
            own = {str(picture["image_sha256"]): picture for picture in drawn}
            part = SAMPLES.frame(known[one] for one in sorted(known))
            results.append(copy_part(staging, len(results), part, context.dataset, [_table(list(own.values()))]))
        if not results:
            return ""
        settle_pictures(staging, results)
        key = dataset_id([one.ids for one in results], sum(one.of_sources for one in results))
        commit(staging, key, len(results))
    finally:
        discard(staging)
    return key


def exam_of(context: StageContext, exam: Exam, n_samples: int) -> str:
    """The dataset of `n_samples` of each source and all their twins; an empty text where none can have any."""
    known = usable(context.lake.scan(SAMPLES, context.ids.dataset_id))
    prompts, picture = Prompts.of(known), picture_in(context)

    def chunks() -> Iterator[tuple[Sequence[Row], Sequence[Row]]]:
        for part in some_samples(context.lake, context.ids.dataset_id, n_samples):
            for some in part.iter_slices(_SAMPLES_AT_ONCE):
                rows = list(some.iter_rows(named=True))
                most = dict.fromkeys((row["sample_id"] for row in rows), len(rows) * (1 + len(exam.faults)))
                made = list(twins(rows, exam.faults, most, prompts, picture))
                of = {twin.row["item_id"] for twin in made}
                every = [*(row for row in rows if row["sample_id"] in of), *(twin.row for twin in made)]
                if every:
                    yield every, [twin.picture for twin in made if twin.picture]

    return store(context, chunks())


def _table(pictures: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(pictures), schema=PICTURES.schema)
