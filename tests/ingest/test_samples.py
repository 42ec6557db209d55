"""Samples as a table: who a sample is, duplicates within and across shards, order, determinism, and what `datasets` shows."""

import hashlib
import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.errors import SourceError, StoreError
from schemas.records import SAMPLE_TEXTS, Sample
from schemas.statuses.rows import SampleStatus
from schemas.tables.stored import PICTURES, SAMPLES
from tasks.ingest.identity import sample_id
from tasks.ingest.rows import UndecodedSample
from tasks.ingest.samples import OpenShard, SampleList, find_shards, finish, open_and_write_shard
from tasks.ingest.shards import OpenedShard, shards
from tasks.lake.reading import Lake
from tasks.lake.writing import stage
from tests.support.ingesting import ingest, opened_rows

OK = SampleStatus.OK
SAMPLE = Sample("s", "m.jsonl#1", "sdxl", "base", dict.fromkeys(SAMPLE_TEXTS) | {"prompt": "a cow"})


def write_manifest(folder, rows, name="m.jsonl"):
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {"reader": "manifest", "path": name, "model": "m"}


# --- who a sample is --------------------------------------------------------------------------------------------
def test_the_id_is_the_digest_of_canonical_json():
    texts = ",".join(f'"{name}":{chr(34) + "a cow" + chr(34) if name == "prompt" else "null"}' for name in sorted(SAMPLE_TEXTS))
    canonical = '{"checkpoint":"base","image_sha256":"ab","item_id":null,"model":"sdxl","seed":null,"texts":{' + texts + "}}"
    assert sample_id(SAMPLE, "ab", OK) == hashlib.sha256(canonical.encode()).hexdigest()


CHANGES = {
    "model": replace(SAMPLE, model="flux"),
    "checkpoint": replace(SAMPLE, checkpoint="next"),
    "item": replace(SAMPLE, item_id="1"),
    "seed": replace(SAMPLE, seed=0),
    **{name: replace(SAMPLE, texts={**SAMPLE.texts, name: "other"}) for name in (*SAMPLE_TEXTS, "a column of a rubric's own")},
    "a blank for a null": replace(SAMPLE, texts={**SAMPLE.texts, "text": ""}),
}


def test_every_part_of_content_and_role_makes_another_id():
    ids = [sample_id(one, None, OK) for one in (SAMPLE, *CHANGES.values())] + [sample_id(SAMPLE, "ab", OK)]
    assert len(set(ids)) == len(ids)


def test_where_a_sample_stands_makes_no_other_id_unless_it_is_unusable():
    moved = replace(SAMPLE, source="t", source_key="elsewhere")
    assert sample_id(moved, "ab", OK) == sample_id(SAMPLE, "ab", OK)
    for status in set(SampleStatus) - {OK}:
        assert sample_id(moved, None, status) != sample_id(SAMPLE, None, status)
        assert sample_id(SAMPLE, None, status) != sample_id(SAMPLE, None, OK)


# --- shards -----------------------------------------------------------------------------------------------------
@given(st.integers(0, 30), st.integers(1, 8))
def test_shards_keep_every_sample_in_order(n, size):
    samples = [replace(SAMPLE, source_key=str(index)) for index in range(n)]
    cut = list(shards(iter(samples), size))
    assert [one for shard in cut for one in shard] == samples
    assert all(len(shard) == size for shard in cut[:-1])
    assert all(0 < len(shard) <= size for shard in cut)


def test_shards_of_large_pictures_are_shorter():
    from schemas.input_budget import SHARD_PICTURE_BYTES

    content = bytes(SHARD_PICTURE_BYTES // 4)
    samples = [replace(SAMPLE, source_key=str(index), image_bytes=content) for index in range(9)]
    assert [len(shard) for shard in shards(samples, 100)] == [4, 4, 1]


def test_a_shard_of_every_status_conforms(tmp_path, picture):
    (tmp_path / "a.png").write_bytes(picture())
    (tmp_path / "text.png").write_text("no picture")
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "cut.png").write_bytes(picture()[:-20])
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "huge.png").write_bytes(b"")
    with (tmp_path / "huge.png").open("r+b") as file:
        file.truncate(64 * 1024 * 1024 + 1)
    wide = b"GIF89a\xff\xff\xff\xff\0\0\0,\0\0\0\0\xff\xff\xff\xff\0\2\1\0\0;"
    paths = {
        "a.png": "ok",
        "absent.png": "missing_file",
        "folder.png": "not_a_file",
        "../a.png": "outside_root",
        "http://x/a": "remote_refused",
        "empty.png": "empty_file",
        "huge.png": "file_too_large",
        "text.png": "not_an_image",
        "cut.png": "broken_image",
        " ": "missing_value",
        "./a.png": "duplicate",
    }
    samples = [replace(SAMPLE, source_key=path, image_path=path) for path in paths]
    samples += [
        replace(SAMPLE, source_key="wide", image_bytes=wide),
        replace(SAMPLE, source_key="bad", status=SampleStatus.BAD_VALUE, detail="read so", image_path="a.png"),
        replace(SAMPLE, source_key="again", status=SampleStatus.REPEATED_ID, detail="read so", image_path="a.png"),
        replace(SAMPLE, source_key="none", seed=5),
    ]
    table, pictures = opened_rows(samples, tmp_path)
    assert pictures.schema.equals(PICTURES.schema, check_metadata=True)
    assert table.schema.equals(SAMPLES.schema, check_metadata=True)
    rows = table.to_pylist()
    assert [row["status"] for row in rows] == [*paths.values(), "too_many_pixels", "bad_value", "repeated_id", "ok"]
    assert {row["status"] for row in rows} == {status.value for status in SampleStatus}
    assert [row["source_key"] for row in rows] == [one.source_key for one in samples]
    assert len({row["sample_id"] for row in rows}) == len(rows)
    for row in rows:
        assert row["prompt"] == "a cow"
        assert (row["detail"] is None) == (row["status"] == "ok")
        own = row["source_key"].removeprefix("./")
        is_shown = own == "a.png"
        digest = hashlib.sha256(picture()).hexdigest()
        assert row["pictures"] == ([{"role": "image", "sha256": digest, "path": "a.png"}] if is_shown else [])
        assert row["image"] is None
    first = rows[0]
    (stored,) = pictures.to_pylist()
    assert stored["image"] == {"bytes": picture(), "path": "a.png"}
    assert {name: first[name] for name in stored if name != "image"} == {name: stored[name] for name in stored if name != "image"}
    assert first["image_sha256"] == first["file_sha256"] == hashlib.sha256(picture()).hexdigest()
    assert (first["width_px"], first["height_px"], first["n_bytes"]) == (8, 6, len(picture()))


def test_a_shards_pictures_come_a_row_group_at_a_time(tmp_path, picture):
    """A shard of many large pictures is never in memory whole: none is opened before the group before it was taken."""
    opened = []

    def asked():
        for number in range(130):
            opened.append(number)
            yield replace(SAMPLE, source_key=str(number), seed=number, image_bytes=picture(number))

    shard = OpenedShard(asked(), tmp_path)
    groups = shard.pictures()
    assert next(groups).num_rows == 64
    assert len(opened) < 64 + 64
    assert [table.num_rows for table in groups] == [64, 2]
    assert shard.rows().num_rows == 130


def test_what_is_hashed_is_what_is_shown(tmp_path, picture):
    content = picture(kind="BMP")
    table, pictures = opened_rows([replace(SAMPLE, image_bytes=content, image_path="x\\y.bmp")], tmp_path)
    (row,), (stored,) = table.to_pylist(), pictures.to_pylist()
    assert stored["image"]["path"] == row["pictures"][0]["path"] == "x/y.bmp"
    assert row["image_format"] == "PNG"
    assert row["image_treatment"] == "reencoded_png"
    assert row["image_sha256"] == hashlib.sha256(stored["image"]["bytes"]).hexdigest()
    assert row["file_sha256"] == hashlib.sha256(content).hexdigest()


# --- ingest -----------------------------------------------------------------------------------------------------
def test_one_picture_under_two_prompts_is_two_samples(tmp_path, ingest_rows, picture):
    (tmp_path / "a.png").write_bytes(picture())
    source = write_manifest(tmp_path, [{"image": "a.png", "prompt": "one"}, {"image": "a.png", "prompt": "two"}])
    result, rows = ingest_rows(source)
    assert result.n_ok == 2
    assert rows["image_sha256"].n_unique() == 1


@pytest.mark.parametrize("shard_size", [1, 2, 3, 500])
def test_the_same_content_again_is_a_duplicate_whatever_the_shards(tmp_path, ingest_rows, picture, shard_size):
    """Copies of a file, in one shard or in two, end the same; an item id or a seed makes them two draws."""
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.png").write_bytes(picture())
    rows = [
        {"image": "a.png", "prompt": "p"},
        {"image": "b.png", "prompt": "p"},
        {"image": "c.png", "prompt": "p", "seed": 1},
        {"image": "c.png", "prompt": "p", "item_id": "x"},
        {"image": "c.png", "prompt": "p"},
    ]
    result, stored = ingest_rows(write_manifest(tmp_path, rows), shard_size=shard_size)
    assert stored["status"].to_list() == ["ok", "duplicate", "ok", "ok", "duplicate"]
    assert stored["source_key"].to_list() == [f"m.jsonl#{n}" for n in range(1, 6)]
    assert stored["sample_id"].n_unique() == 5
    assert stored["detail"].drop_nulls().str.contains("m.jsonl#1", literal=True).all()
    first = stored["sample_id"][0]
    assert stored["duplicate_of_sample_id"].to_list() == [None, first, None, None, first]
    assert result.n_parts == -(-5 // shard_size)
    # The dataset's id does not depend on how it was cut.
    assert result.dataset_id == ingest_rows(write_manifest(tmp_path, rows))[0].dataset_id
    assert result.dataset_id == hashlib.sha256("\n".join(sorted(stored["sample_id"])).encode()).hexdigest()


def test_a_row_that_repeats_its_id_is_a_duplicate_where_it_is_the_same_and_refused_where_it_is_another(
    tmp_path, ingest_rows, picture
):
    (tmp_path / "a.png").write_bytes(picture())
    row = {"image": "a.png", "prompt": "p", "item_id": "one"}
    _, stored = ingest_rows(write_manifest(tmp_path, [row, row, row | {"prompt": "another"}, row | {"seed": 1}]))
    assert stored["status"].to_list() == ["ok", "duplicate", "repeated_id", "ok"]
    assert stored["duplicate_of_sample_id"].to_list() == [None, stored["sample_id"][0], None, None]


def test_duplicates_across_sources_are_found(tmp_path, ingest_rows, picture):
    (tmp_path / "a.png").write_bytes(picture())
    source = write_manifest(tmp_path, [{"image": "a.png", "prompt": "p"}])
    _, rows = ingest_rows(source | {"name": "first"}, source | {"name": "second"})
    assert rows.select("source", "status").rows() == [("first", "ok"), ("second", "duplicate")]


def test_the_same_data_gives_the_same_dataset_and_the_same_files(tmp_path, benchmark_of, picture):
    (tmp_path / "a.png").write_bytes(picture(mode="RGBA"))
    source = write_manifest(tmp_path, [{"image": "a.png", "prompt": "p"}, {"image": "absent.png", "prompt": "p"}])
    stored = []
    for name in ("one", "two"):
        lake = Lake(tmp_path / name)
        result = ingest(benchmark_of(source), lake)
        stored.append([path.read_bytes() for path in lake.parts(SAMPLES, result.dataset_id)])
        assert ingest(benchmark_of(source), lake) == result  # again into the same lake: nothing new, no leftovers
        assert not list((lake.root / "staging").iterdir())
    assert stored[0] == stored[1]


def test_shards_may_be_written_in_any_order_by_threads_and_again(tmp_path, benchmark_of, lake, picture):
    for index in range(7):
        (tmp_path / f"{index}.png").write_bytes(picture(index % 3))
    source = write_manifest(tmp_path, [{"image": f"{index}.png", "prompt": "p"} for index in range(7)])
    benchmark = benchmark_of(source, shard_size=2)
    staging = stage(lake, SAMPLES)
    found = list(find_shards(benchmark, staging))
    pickle.dumps(found)  # a shard can be handed to another process
    order = [*reversed(found), found[1]]
    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(open_and_write_shard, order))
    assert sum(result.n_rows for result in results[:-1]) == 7
    assert finish(staging, results[:-1]) == ingest(benchmark, Lake(tmp_path / "other"))


def test_a_part_that_is_not_there_is_noticed(tmp_path, benchmark_of, lake):
    source = write_manifest(tmp_path, [{"image": None, "prompt": str(index)} for index in range(3)])
    staging = stage(lake, SAMPLES)
    found = list(find_shards(benchmark_of(source, shard_size=1), staging))
    results = [open_and_write_shard(shard) for shard in (found[0], found[2])]
    with pytest.raises(StoreError, match="2 parts"):
        finish(staging, results)  # a result is missing
    staging.part_path(2).unlink()
    staging.beside(PICTURES).part_path(2).rename(staging.beside(PICTURES).part_path(1))
    with pytest.raises(StoreError, match="1 parts, not the 2"):
        finish(staging, results)  # a part is missing


def test_a_shard_is_numbered_and_counted(tmp_path, benchmark_of, lake):
    source = write_manifest(tmp_path, [{"image": None, "prompt": str(index)} for index in range(5)])
    made = [open_and_write_shard(shard) for shard in find_shards(benchmark_of(source, shard_size=2), stage(lake, SAMPLES))]
    assert [(one.index, one.n_rows, one.n_ok) for one in made] == [(0, 2, 2), (1, 2, 2), (2, 1, 1)]


EMPTY = {
    "an empty manifest": ({}, "", ["source-0", "m.jsonl"]),
    "nothing passes where": ({"where": {"prompt": "y"}}, '{"image": null, "prompt": "x"}\n', ["where = {'prompt': 'y'}"]),
}


@pytest.mark.parametrize("case", EMPTY.values(), ids=EMPTY.keys())
def test_an_empty_source_stops_and_leaves_nothing(tmp_path, benchmark_of, lake, case):
    source, content, words = case
    (tmp_path / "m.jsonl").write_text(content)
    with pytest.raises(SourceError) as error:
        ingest(benchmark_of({"reader": "manifest", "path": "m.jsonl", "model": "m", **source}), lake)
    for word in ["is empty", *words]:
        assert word in str(error.value)
    assert not list(lake.root.rglob("*.parquet"))


def test_with_some_checkpoints_alone_a_source_may_be_empty_but_not_all(tmp_path, benchmark_of, lake):
    one = write_manifest(tmp_path, [{"image": None, "prompt": "x", "checkpoint": "a"}], "a.jsonl")
    two = write_manifest(tmp_path, [{"image": None, "prompt": "x", "checkpoint": "b"}], "b.jsonl")
    assert ingest(benchmark_of(one, two), lake, checkpoints=["a"]).n_samples == 1
    with pytest.raises(SourceError, match="checkpoints c"):
        ingest(benchmark_of(one, two), lake, checkpoints=["c"])


def test_a_manifest_that_stops_half_way_leaves_no_dataset(tmp_path, benchmark_of, lake):
    rows = [{"image": None, "caption": "x"}] * 3 + [{"image": None}]
    source = write_manifest(tmp_path, rows) | {"columns": {"prompt": "caption"}}
    with pytest.raises(SourceError, match="row 4"):
        ingest(benchmark_of(source, shard_size=1), lake)
    assert not list(lake.root.rglob("*.parquet"))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.one_of(st.none(), st.text(max_size=12)), min_size=1, max_size=8))
def test_texts_come_through_unchanged(tmp_path_factory, texts):
    samples = [replace(SAMPLE, source_key=str(n), seed=n, texts={**SAMPLE.texts, "text": text}) for n, text in enumerate(texts)]
    lake = Lake(tmp_path_factory.mktemp("lake"))
    staging = stage(lake, SAMPLES)
    result = open_and_write_shard(OpenShard(staging, 0, SampleList(samples), lake.root))
    assert lake.scan(SAMPLES, finish(staging, [result]).dataset_id).collect()["text"].to_list() == texts


def test_datasets_shows_the_pictures(tmp_path, benchmark_of, lake, picture):
    import datasets

    contents = [picture(1), picture(2, "JPEG"), picture(3, "GIF")]
    for index, content in enumerate(contents):
        (tmp_path / f"{index}.img").write_bytes(content)
    rows = [{"image": f"{index}.img", "prompt": "p"} for index in range(3)] + [{"image": None, "prompt": "no picture"}]
    result = ingest(benchmark_of(write_manifest(tmp_path, rows), shard_size=3), lake)
    files = [str(path) for path in lake.parts(PICTURES, result.dataset_id)]
    found = datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=str(tmp_path / "cache"))
    assert isinstance(found.features["image"], datasets.Image)
    assert [row["image"].size for row in found] == [(8, 6), (8, 6), (8, 6)]
    assert found[0]["image"].convert("RGB").getpixel((0, 0)) == (255, 1, 0)


def test_the_stored_file_carries_the_declared_schema(tmp_path, benchmark_of, lake, picture):
    (tmp_path / "a.png").write_bytes(picture())
    result = ingest(benchmark_of(write_manifest(tmp_path, [{"image": "a.png", "prompt": "p"}])), lake)
    (path,) = lake.parts(SAMPLES, result.dataset_id)
    assert pq.read_schema(path).equals(SAMPLES.schema, check_metadata=True)
    (path,) = lake.parts(PICTURES, result.dataset_id)
    schema = pq.read_schema(path)
    assert schema.metadata[b"huggingface"] == b'{"info": {"features": {"image": {"_type": "Image"}}}}'
    assert schema.field("image_sha256").metadata[b"about"]
    assert pl.read_parquet(path)["image"].struct.field("bytes")[0] == picture()


@pytest.mark.parametrize(("kind", "status"), [(Sample, "broken_image"), (UndecodedSample, "ok")])
def test_a_trusted_sources_clean_header_is_enough_and_any_other_sources_is_not(picture, tmp_path, kind, status):
    """The pixels' data is overwritten between header and end marker: only decoding can tell."""
    content = picture(size=(64, 64), kind="PNG")
    start = content.index(b"IDAT") + 4
    (tmp_path / "a.png").write_bytes(content[:start] + bytes(8) + content[start + 8 :])
    texts = dict.fromkeys(SAMPLE_TEXTS, "a cube")
    table, _ = opened_rows([kind("s", "a", "m", "c", texts, image_path="a.png")], tmp_path)
    assert table["status"].to_pylist() == [status]
