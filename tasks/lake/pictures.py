"""The pictures of a dataset, found by digest: which table holds them, and in which part. Who opens files is tasks/ingest.

Part i of `pictures` holds what part i of `samples` was the first to show, so most are found beside their samples. A dataset of an
older release has no `pictures`: its `samples` hold the same columns, bytes and all, and are read in their place.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.records import IMAGE
from schemas.tables.stored import PICTURES, SAMPLES
from schemas.tables.table import Table, conform
from tasks.lake.reading import Lake, with_later_columns

SIZE_COLUMNS = ["image_sha256", "width_px", "height_px"]
_SHOWN = {"role": pl.String, "sha256": pl.String, "path": pl.String}


@dataclass(frozen=True, slots=True)
class StoredDataset:
    """A dataset in a lake, by its id."""

    lake: Lake
    id: str

    @property
    def table_of_pictures(self) -> Table:
        """The table that holds the dataset's pictures."""
        return PICTURES if self.lake.is_complete(PICTURES, self.id) else SAMPLES

    @property
    def is_whole(self) -> bool:
        """Whether the dataset is there with its pictures: beside its samples, or, of an older release, in them."""
        if not self.lake.is_complete(SAMPLES, self.id) or self.lake.is_complete(PICTURES, self.id):
            return self.lake.is_complete(SAMPLES, self.id)
        is_older = pl.col("pictures").is_null().any()
        return bool(self.lake.collect(SAMPLES, self.id, lambda rows: rows.select(is_older)).to_series().any())

    def parts_holding(self, digests: Collection[str]) -> dict[str, str]:
        """Digest -> name of the part that holds the picture, of those that one does."""
        table, found = self.table_of_pictures, dict[str, str]()
        for paths in self.lake.parts_together(table, self.id) if digests else ():
            there = (
                pl.scan_parquet(paths, include_file_paths="part", hive_partitioning=False)
                .filter(pl.col("image_sha256").is_in(list(digests)), _is_held(table))
                .select("image_sha256", "part")
            )
            for digest, part in there.collect(engine="streaming").iter_rows():
                found.setdefault(digest, Path(part).name)
        return found

    def sizes_of(self, part: int, digests: Collection[str]) -> pl.DataFrame:
        """SIZE_COLUMNS of the pictures with these digests, most of which part `part` holds."""
        table = self.table_of_pictures
        own = self.lake.read_part(table, self.id, part, SIZE_COLUMNS)
        missing = set(digests).difference(own["image_sha256"])
        if not missing:
            return own
        is_missing = pl.col("image_sha256").is_in(list(missing))
        return pl.concat([own, self.lake.collect(table, self.id, lambda rows: rows.select(SIZE_COLUMNS).filter(is_missing))])

    def pictures(self, digests: Collection[str]) -> Iterator[pa.Table]:
        """The rows of `pictures` with these digests, each once, in the lake's order, a row group in memory at a time.

        The parts that hold one of them are found in scans of many, and no other is opened.
        """
        table, left = self.table_of_pictures, set(digests)
        for name in sorted(set(self.parts_holding(left).values())):
            with self.lake.open_part(table, self.id, name) as file:
                known = pl.DataFrame(file.read(columns=["image_sha256", *(["status"] if table is SAMPLES else [])]))
                held = known.select(pl.when(_is_held(table)).then("image_sha256")).to_series()
                end = 0
                for group in range(file.num_row_groups):
                    start, end = end, end + file.metadata.row_group(group).num_rows
                    rows = []
                    for row, digest in enumerate(held[start:end]):
                        if digest in left:  # a set's look: the lists of Polars' is_in would be made anew for each group of 64
                            left.remove(digest)
                            rows.append(row)
                    if rows:
                        yield conform(file.read_row_group(group, columns=PICTURES.columns).take(rows), PICTURES)


def with_picture_path(part: Path, columns: Sequence[str]) -> pl.DataFrame:
    """These columns of a part of samples, and as `image` the path of each one's own picture. Pictures' bytes are not read."""
    with pq.ParquetFile(part) as file:  # reads the path inside the picture's struct and leaves the bytes beside it on the disk
        rows = pl.DataFrame(file.read(columns=[*columns, "image_sha256", "image.path", "pictures"]))
    own = pl.col("pictures").list.eval(pl.element().filter(pl.element().struct.field("role") == IMAGE)).list.first()
    return with_pictures(with_later_columns(rows.lazy(), SAMPLES).collect()).select(*columns, image=own.struct.field("path"))


def with_pictures(samples: pl.DataFrame) -> pl.DataFrame:
    """Rows of `samples` with `pictures` filled in for those of older releases, who had one at most."""
    path = pl.col("image").struct.field("path") if "image" in samples.columns else pl.lit(None, pl.String)
    old = pl.concat_list(pl.struct(pl.lit(IMAGE).alias("role"), sha256="image_sha256", path=path))
    none = pl.lit([], pl.List(pl.Struct(_SHOWN)))
    return samples.with_columns(
        pictures=pl.coalesce("pictures", pl.when(pl.col("image_sha256").is_not_null()).then(old).otherwise(none))
    )


def digests_in(samples: pl.DataFrame) -> set[str]:
    """The digests of all pictures of these rows of `samples`."""
    shown = with_pictures(samples)["pictures"].explode(empty_as_null=False).struct.field("sha256")
    return set(shown.drop_nulls())


def _is_held(table: Table) -> pl.Expr:
    """Of an old sample that shows a picture it may still not hold the bytes: those of a duplicate are its twin's."""
    return pl.col("status") == "ok" if table is SAMPLES else pl.lit(value=True)
