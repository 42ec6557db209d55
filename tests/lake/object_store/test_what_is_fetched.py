"""What a machine fetches that others wrote: rows without their pictures, few of the pictures, paid replies kept aside."""

import io
import random
from collections.abc import Callable

import polars as pl
import pytest
from PIL import Image

from schemas.errors import CorruptLakeError, StoreError
from schemas.records import JudgeReply, Sample
from schemas.statuses.rows import ReplyOrigin, ReplyStatus
from schemas.tables.stored import PICTURES, SAMPLES
from tasks.ingest.identity import ID_BYTES
from tasks.ingest.samples import OpenShard, SampleList, finish, open_and_write_shard
from tasks.lake.pictures import StoredDataset
from tasks.lake.reading import Lake
from tasks.lake.writing import Staging, stage
from tasks.ledger.ledger import Ledger
from tasks.ledger.unstored import Unstored
from tasks.publish.report.pictures import thumbnails_of
from tests.lake.object_store.conftest import Objects

N_PARTS, N_ROWS = 3, 150  # a part has row groups of 64
SIDE_PX = 64  # noise, which nothing compresses: 12 kB


def _samples(part):
    """The last part ends with the first picture of the first one."""
    numbers = [part * N_ROWS + row for row in range(N_ROWS)]
    if part == N_PARTS - 1:
        numbers[-1] = 0
    return [
        Sample("s", f"{part}-{row}", "m", "c", {"prompt": "noise"}, item_id=str(number), image_bytes=_picture(number))
        for row, number in enumerate(numbers)
    ]


def _picture(number):
    file = io.BytesIO()
    Image.frombytes("RGB", (SIDE_PX, SIDE_PX), random.Random(number).randbytes(SIDE_PX**2 * 3)).save(
        file, "png", compress_level=0
    )
    return file.getvalue()


def _staged(lake, tmp_path):
    """The data set's parts staged by `lake`'s machine, and what its shards say."""
    staging = stage(lake, SAMPLES)
    shards = [OpenShard(staging, part, SampleList(_samples(part)), tmp_path) for part in range(N_PARTS)]
    return staging, [open_and_write_shard(shard) for shard in shards]


def _fetched(served):
    return sum(one.n_bytes for one in served if one.verb == "GET" and one.name.endswith(".parquet"))


def test_naming_a_data_set_fetches_only_parts_with_a_duplicate(machine, served, objects, tmp_path):
    staging, results = _staged(machine("worker"), tmp_path)
    names = sorted(objects.names("staging/"), key=lambda name: name.rpartition("/")[2])
    sizes = [objects.client.head_object(Bucket="lake", Key=f"{objects.prefix}/{name}")["ContentLength"] for name in names]
    served.clear()
    found = finish(Staging(machine("flow"), SAMPLES, staging.name), results)
    assert found.n_by_status == {"ok": N_PARTS * N_ROWS - 1, "duplicate": 1}
    of_last = sum(sizes[-2:])  # its samples, of which one is a duplicate, and its pictures, which another part has one of
    assert of_last <= _fetched(served) < 1.01 * of_last < sum(sizes) / 2
    samples, pictures = (
        pl.concat([pl.read_parquet(path) for path in machine("reader").parts(table, found.dataset_id)])
        for table in (SAMPLES, PICTURES)
    )
    assert samples["sample_id"].n_unique() == samples.height == N_PARTS * N_ROWS
    assert pictures["image_sha256"].n_unique() == pictures.height == N_PARTS * N_ROWS - 1
    assert set(pictures["image_sha256"]) == set(samples["image_sha256"])


def test_the_gallery_fetches_the_row_groups_of_its_pictures(machine, served, tmp_path):
    staging, results = _staged(machine("flow"), tmp_path)
    key = finish(staging, results).dataset_id
    n_all = sum(path.stat().st_size for path in machine("flow").parts(PICTURES, key))
    wanted = set(results[1].ids[64 * ID_BYTES : 70 * ID_BYTES].hex(" ", ID_BYTES).split())  # all in one row group of one part
    reader = machine("reader")
    served.clear()
    texts = reader.scan(SAMPLES, key).select("sample_id", "prompt", "item_id").collect()
    assert texts.height == N_PARTS * N_ROWS
    assert reader.read_part(SAMPLES, key, 1, ["n_bytes"])["n_bytes"].to_list() == [len(one.image_bytes) for one in _samples(1)]
    assert reader.n_parts(SAMPLES, key) == N_PARTS
    assert _fetched(served) < 0.1 * n_all
    served.clear()
    pictures = thumbnails_of(StoredDataset(reader, key), wanted)
    of_footers = N_PARTS * 80_000  # and digests: which part holds a picture is looked up once
    assert _fetched(served) < 1.1 * n_all / (N_PARTS * N_ROWS) * 64 + of_footers
    assert pictures == thumbnails_of(StoredDataset(machine("flow"), key), wanted)
    assert len(pictures) == len(wanted)


@pytest.mark.parametrize(("damage", "error"), [
    (lambda whole: whole[: len(whole) // 2], StoreError), (lambda whole: whole[:-4] + b"PARX", CorruptLakeError),
], ids=["cut", "another end"])  # fmt: skip
def test_a_part_that_is_not_its_marker_s_is_told(machine, objects, served, tmp_path, damage, error):
    staging, results = _staged(machine("flow"), tmp_path)
    key = finish(staging, results).dataset_id
    name = objects.names("samples/")[0]
    objects[name] = damage(objects[name])
    with pytest.raises(error):
        machine("reader").scan(SAMPLES, key)


def test_a_paid_reply_kept_aside_is_taken_in_by_another_machine_and_is_gone_from_the_bucket(
    machine: Callable[[str], Lake], ledger: Ledger, objects: Objects
) -> None:
    here, there = Unstored(machine("a").root), Unstored(machine("b").root)
    here.keep("an attempt", JudgeReply("0" * 64, 0, ReplyStatus.ANSWERED, "judge", ReplyOrigin.ASKED, text="1"), is_reasked=False)
    assert there.take_in(ledger) == 0, "no shard lists the bucket"
    assert there.take_in(ledger, is_from_all=True) == 1
    assert objects.names("unstored") == []
    assert here.take_in(ledger) == 0
    assert ledger.known(["0" * 64]) == {"0" * 64}
