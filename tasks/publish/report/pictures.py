"""Reading a few pictures out of a large table: one row group at a time, and only those that hold a wanted sample."""

from pathlib import Path

import polars as pl
import pyarrow.parquet as pq

from schemas.identities import RunIds
from schemas.tables import SAMPLES
from tasks.lake.reading import Lake
from tasks.publish.report.thumbnails import thumbnail


def thumbnails_of(lake: Lake, ids: RunIds, sample_ids: set[str]) -> dict[str, str]:
    """A data URI for each of the samples that has a picture. One row group of pictures is in memory at a time.

    The parts that hold one of them are found in one scan, and no other is opened.
    """
    paths = lake.parts_without_pictures(SAMPLES, ids.dataset_id)
    if not paths or not sample_ids:
        return {}
    places = pl.scan_parquet(paths, include_file_paths="part").select("part", "sample_id")
    holding = places.filter(pl.col("sample_id").is_in(sorted(sample_ids))).select("part").collect(engine="streaming")["part"]
    parts, found = set(holding), dict[str, str]()
    for path in paths:
        if str(path) in parts:
            with lake.open_part(SAMPLES, ids.dataset_id, path.name) as file:
                found |= _from_part(path, file, sample_ids)
    return found


def _from_part(path: Path, file: pq.ParquetFile, sample_ids: set[str]) -> dict[str, str]:
    places = pl.scan_parquet(path).select("sample_id").with_row_index("at")
    wanted = dict(places.filter(pl.col("sample_id").is_in(sorted(sample_ids))).select("at", "sample_id").collect().iter_rows())
    found: dict[str, str] = {}
    start = 0
    for group in range(file.num_row_groups):
        stop = start + file.metadata.row_group(group).num_rows
        mine = {at - start: sample_id for at, sample_id in wanted.items() if start <= at < stop}
        images = file.read_row_group(group, columns=["image"])["image"] if mine else None
        for at, sample_id in mine.items():
            content = (images[at].as_py() or {}).get("bytes") if images is not None else None
            picture = thumbnail(content) if content else None
            if picture:
                found[sample_id] = picture
        start = stop
    return found
