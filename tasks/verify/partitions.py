"""The stored partitions of a run held against what derives them: files, samples, replies, scores. Tables: recomputed_tables."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq

from rubrics.model import Rubric
from schemas.benchmark.judges import Judge
from schemas.identities import RunIds
from schemas.records import IMAGE
from schemas.statuses.rows import ReplyStatus, SampleStatus
from schemas.tables.stored import PICTURES, REPLIES, REQUESTS, SAMPLES, SCORES
from schemas.tables.table import Table
from tasks.ingest.identity import dataset_id, named_sources, packed
from tasks.lake.atomic_files import sha256_of_file
from tasks.lake.pictures import StoredDataset, digests_in
from tasks.lake.reading import Lake, with_later_columns
from tasks.lake.writing import stage
from tasks.ledger.snapshot import changed_replies, part_digest, snapshot_id
from tasks.publish.folders import PROVENANCE
from tasks.regular_files import content_of
from tasks.validate.derived_scores import write_item_scores
from tasks.validate.parse import parse_part, reading_id
from tasks.verify.layers import Layer, Tally
from tasks.verify.rows import NOTHING, Difference, changed_samples, compare_rows, n_rows_of

_ROWS_AT_ONCE = 2_000


def adopt(stored: Lake, own: Lake, table: Table, key: str) -> tuple[list[Difference], int]:
    """Let `own` hold the files of a stored partition as they are now; (what its marker says otherwise, number of files).

    The marker is written anew, so that a changed file is read all the same and the cells it changes are found.
    """
    stored.bring_as_it_is(table, key)
    try:
        said = json.loads(content_of(stored.marker(table, key)))
        entries = {Path(str(entry["name"])).name: entry for entry in said["parts"]}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return [Difference(table.name, key, "", "a complete partition", "it is not in the lake, or its marker is broken")], 0
    found: list[Difference] = []
    there: list[dict[str, object]] = []
    for name, entry in entries.items():
        path = stored.partition(table, key) / name
        if not path.is_file():
            found.append(Difference(table.name, path.name, "", f"sha256 {entry.get('sha256')}", NOTHING))
            continue
        digest = sha256_of_file(path)
        made = {"name": name, "n_rows": n_rows_of(path), "n_bytes": path.stat().st_size, "sha256": digest}
        changed = next((name for name in ("sha256", "n_bytes", "n_rows") if entry.get(name) != made[name]), None)
        if changed:
            found.append(Difference(table.name, path.name, "", f"{changed} {entry.get(changed)}", f"{changed} {made[changed]}"))
        there.append(made)
    own.partition(table, key).parent.mkdir(parents=True, exist_ok=True)
    own.partition(table, key).symlink_to(stored.partition(table, key).resolve(), target_is_directory=True)
    own.marker(table, key).parent.mkdir(parents=True, exist_ok=True)
    own.marker(table, key).write_text(json.dumps(said | {"parts": there}))
    return found, len(entries)


def check_samples(
    lake: Lake, ids: RunIds, advance: Callable[[int], None], *, may_lack_pictures: bool = False
) -> tuple[list[Difference], str, Tally]:
    """Pictures' digests, rows' ids, the dataset's id; what was done, for people; how many pictures there were bytes of.

    `may_lack_pictures`: a picture whose row is there without its bytes is counted, and no difference.
    """
    found: list[Difference] = []
    sample_ids: list[bytes] = []
    n_rows, of_sources, is_each_a_digest = 0, 0, True
    table = StoredDataset(lake, ids.dataset_id).table_of_pictures
    stored, bare, wrong = _check_pictures(lake.parts(table, ids.dataset_id))
    found += wrong
    named: set[str] = set()
    for rows in _without_pictures(lake.parts(SAMPLES, ids.dataset_id)):
        try:
            sample_ids.append(packed(rows["sample_id"]))
            of_sources += named_sources(rows["sample_id"], rows["source"])
        except (ValueError, TypeError):
            is_each_a_digest = False
        n_rows += rows.height
        usable = with_later_columns(rows.lazy(), SAMPLES).filter(status=SampleStatus.OK.value).collect()
        shown = digests_in(usable)
        named |= shown
        missing = shown.difference(stored, bare if may_lack_pictures else ())
        found += [Difference(PICTURES.name, digest, "image", digest, NOTHING) for digest in sorted(missing)]
        found += [
            Difference(SAMPLES.name, row, column, str(stored), str(computed))
            for row, column, stored, computed in changed_samples(rows)
        ]
        advance(rows.height)
    computed = "none: a sample_id is not a sha256"
    if is_each_a_digest:
        without_names = dataset_id(sample_ids)  # as releases before 0.2 named every dataset
        computed = without_names if ids.dataset_id == without_names else dataset_id(sample_ids, of_sources)
    found += check_identity("dataset_id", ids.dataset_id, computed)
    lacking = len((named & bare) - stored) if may_lack_pictures else 0
    why = "their bytes are not in it (samples and requests name them by digest)"
    tally = Tally(Layer.PICTURE, len(named), "pictures", lacking, why if lacking else None)
    return found, f"{n_rows:,} rows and {len(stored):,} pictures against their digests", tally


def _check_pictures(paths: Iterable[Path]) -> tuple[set[str], set[str], list[Difference]]:
    """The digests that pictures are stored under, those that stand there without a picture, and those whose bytes are others."""
    stored, bare, found = set[str](), set[str](), list[Difference]()
    for rows in _row_groups(paths, ["image_sha256", "image"]):
        for digest, content in rows.select("image_sha256", pl.col("image").struct.field("bytes")).iter_rows():
            if digest is None or content is None:
                bare |= set() if digest is None else {digest}
                continue
            stored.add(digest)
            computed = hashlib.sha256(content).hexdigest()
            if computed != digest:
                found.append(Difference(PICTURES.name, digest, "image", digest, computed))
    return stored, bare, found


def _without_pictures(paths: Iterable[Path]) -> Iterator[pl.DataFrame]:
    """The rows of samples, some at a time, without pictures that stand in them: row groups, of some pictures each, are small."""
    for path in paths:
        with pq.ParquetFile(path) as file:
            columns = [name for name in file.schema_arrow.names if name != IMAGE]
            for rows in file.iter_batches(_ROWS_AT_ONCE, columns=columns):
                yield pl.DataFrame(rows)


def _row_groups(paths: Iterable[Path], columns: list[str]) -> Iterator[pl.DataFrame]:
    """Some columns of Parquet files, a row group in memory at a time: a part holds 500 pictures or more."""
    for path in paths:
        with pq.ParquetFile(path) as file:
            for number in range(file.num_row_groups):
                yield pl.DataFrame(file.read_row_group(number, columns=columns))


def check_replies(lake: Lake, ids: RunIds) -> tuple[list[Difference], str, Tally]:
    """Each reply is what was received, and the snapshot's id the digest of every reply's every column."""
    n_undigested = 0
    found: list[Difference] = []
    digests: list[str] = []
    n_replies = 0
    for path in lake.parts(REPLIES, ids.snapshot_id):
        stored = pl.read_parquet(path)
        part = with_later_columns(stored.lazy(), REPLIES).collect()
        found += [
            Difference(REPLIES.name, f"{key} ask {ask_index}", "reply_sha256", said, computed)
            for key, ask_index, said, computed in changed_replies(part)
        ]
        digests.append(part_digest(stored))  # with the columns of its time
        n_replies += part.height
        was_asked = pl.col("status") != ReplyStatus.NOT_ASKED.value  # else nothing was received, and no digest is missing
        n_undigested += part.filter(was_asked)["reply_sha256"].null_count()
    found += check_identity("snapshot_id", ids.snapshot_id, snapshot_id(digests))
    why = "they have no digest of what was received: the release that stored them recorded none" if n_undigested else None
    return found, f"{n_replies:,} replies against the snapshot's id", Tally(Layer.REPLY, n_replies, "replies", n_undigested, why)


def read_again(
    lake: Lake, ids: RunIds, rubrics: Mapping[str, Rubric], judges: Sequence[Judge]
) -> tuple[list[Difference], str, Tally]:
    """Every reply read again, into the lake's own scores."""
    known = [reading_id(ids.snapshot_id, rubrics, ids.code_version, some) for some in (judges, ())]  # (): as releases before did
    found = check_identity("reading_id", ids.reading_id, ids.reading_id if ids.reading_id in known else known[0])
    staging, n_rows, read = stage(lake, SCORES), 0, []
    for path in lake.parts(REQUESTS, ids.plan_id):
        index = int(path.stem.removeprefix("part-"))
        replies = lake.read_part(REPLIES, ids.snapshot_id, index)
        n_rows += staging.write_part(index, parse_part(pl.read_parquet(path), replies, rubrics))
        read.append(index)
    read += write_item_scores(lake, ids.plan_id, staging, rubrics)
    staging.commit(ids.reading_id, read)
    n_scores = lake.n_rows(SCORES, ids.reading_id)
    return found, f"{n_rows:,} read again from the replies", Tally(Layer.READING, n_scores, "scores")


def compare_parts(table: Table, stored: Lake, key: str, derived: Lake, derived_key: str) -> Iterator[Difference]:
    """Two partitions of a table, file by file. A column that came to the table later is null in files without it."""
    mine = {path.name: path for path in stored.parts(table, key)}
    again = {path.name: path for path in derived.parts(table, derived_key)}
    for name in sorted(mine.keys() | again.keys()):
        frames = [_read_whole(side[name], table) if name in side else pl.DataFrame() for side in (mine, again)]
        if name in mine and name in again:
            yield from compare_rows(table.name, frames[0], frames[1], table.key)
        else:
            yield Difference(table.name, name, "", f"{frames[0].height} rows", f"{frames[1].height} rows")


def _read_whole(path: Path, table: Table) -> pl.DataFrame:
    frame = with_later_columns(pl.scan_parquet(path, hive_partitioning=False), table).collect()
    return frame.select(*(name for name in table.columns if name in frame.columns), pl.exclude(table.columns))


def check_identity(name: str, published: str, derived: str) -> list[Difference]:
    """What is published under an identity that its content does not have."""
    return [] if published == derived else [Difference(PROVENANCE, "", name, published, derived)]
