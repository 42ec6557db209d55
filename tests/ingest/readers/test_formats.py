"""The readers of folders and archives: what they find, in which order, and what a hostile one comes to."""

import io
import json
import re
import tarfile
import time

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import SourceError
from tasks.ingest.values import NUMBERED, numbered


def keys(samples):
    return [one.source_key for one in samples]


def statuses(samples):
    return [str(one.status) for one in samples]


# --- imagefolder ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_an_image_folder_names_its_images_in_metadata(tmp_path, read_all, kind):
    for split in ("test", "train"):
        (tmp_path / "ds" / split).mkdir(parents=True)
        frame = pl.DataFrame({"file_name": ["000.png", "sub/001.png"], "prompt": [f"{split} a", f"{split} b"]})
        {"jsonl": frame.write_ndjson, "csv": frame.write_csv, "parquet": frame.write_parquet}[kind](
            tmp_path / "ds" / split / f"metadata.{kind}"
        )
    samples = read_all(reader="imagefolder", path="ds")
    # Two files with one name in two folders are two pictures.
    assert [one.image_path for one in samples] == ["test/000.png", "test/sub/001.png", "train/000.png", "train/sub/001.png"]
    assert keys(samples) == [
        f"test/metadata.{kind}#1",
        f"test/metadata.{kind}#2",
        f"train/metadata.{kind}#1",
        f"train/metadata.{kind}#2",
    ]
    assert samples[2].texts["prompt"] == "train a"


def test_metadata_cannot_lead_out_of_its_folder(tmp_path, ingest_rows):
    (tmp_path / "secret.png").write_bytes(b"secret")
    (tmp_path / "ds" / "a").mkdir(parents=True)
    names = ["../../secret.png", str(tmp_path / "secret.png"), "http://x/a.png", "b:c.png", ""]
    (tmp_path / "ds" / "a" / "metadata.jsonl").write_text("".join(json.dumps({"file_name": name}) + "\n" for name in names))
    result, rows = ingest_rows({"reader": "imagefolder", "path": "ds", "model": "m"})
    assert rows["status"].to_list() == ["outside_root", "outside_root", "remote_refused", "missing_file", "ok"]
    assert rows["n_bytes"].to_list() == [None] * 5
    assert result.n_ok == 1


def test_a_metadata_file_that_is_a_link_out_is_refused(tmp_path, read_all):
    (tmp_path / "ds").mkdir()
    (tmp_path / "private.jsonl").write_text('{"file_name": "a.png", "prompt": "private"}\n')
    (tmp_path / "ds" / "metadata.jsonl").symlink_to(tmp_path / "private.jsonl")
    with pytest.raises(SourceError, match="is a link out of the source's folder"):
        read_all(reader="imagefolder", path="ds")


def test_two_metadata_files_in_one_folder_stop(tmp_path, read_all):
    for name in ("metadata.jsonl", "metadata.csv"):
        (tmp_path / name).write_text("")
    with pytest.raises(SourceError, match=r"metadata\.csv, metadata\.jsonl; keep only one of them"):
        read_all(reader="imagefolder", path=".")


def test_a_folder_of_images_alone(tmp_path, read_all, picture):
    for place in ("b.PNG", "cats/a.jpg", "cats/b.webp", "notes.txt", ".hidden.png", ".git/x.png"):
        (tmp_path / "ds" / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "ds" / place).write_bytes(b"")
    samples = read_all(reader="imagefolder", path="ds", columns={"category": "folder"})
    assert keys(samples) == ["b.PNG", "cats/a.jpg", "cats/b.webp"]
    assert [one.texts["category"] for one in samples] == [None, "cats", "cats"]
    named = read_all(reader="imagefolder", path="ds", columns={"prompt": "stem"})
    assert [one.texts["prompt"] for one in named] == ["b", "a", "b"]


def test_an_undecodable_file_name_is_escaped_in_the_table_and_found_on_disk(tmp_path, ingest_rows, picture):
    import os

    (tmp_path / "ds").mkdir()
    (tmp_path / "ds" / os.fsdecode(b"caf\xe9.png")).write_bytes(picture())
    _, rows = ingest_rows({"reader": "imagefolder", "path": "ds", "model": "m"})
    assert rows["status"].to_list() == ["ok"]
    assert rows["source_key"].to_list() == ["caf\\udce9.png"]


# --- huggingface ------------------------------------------------------------------------------------------------
def hf_frame(*images, **columns):
    struct = pl.Struct({"bytes": pl.Binary, "path": pl.String})
    return pl.DataFrame({"image": list(images), **columns}, schema_overrides={"image": struct})


def test_huggingface_parquet_with_an_image_column(tmp_path, ingest_rows, picture):
    (tmp_path / "data").mkdir()
    for split, seed in (("train", 0), ("test", 10)):
        rows = [{"bytes": picture(seed + n), "path": f"{n}.png"} for n in range(40)]
        hf_frame(*rows, text=[f"{split} {n}" for n in range(40)], blob=[b"x"] * 40).write_parquet(
            tmp_path / "data" / f"{split}-00000-of-00001.parquet"
        )
    source = {"reader": "huggingface", "path": ".", "model": "m", "columns": {"prompt": "text"}}
    result, rows = ingest_rows(source)
    assert result.n_by_status == {"ok": 80}
    assert rows["source_key"][0] == "data/test-00000-of-00001.parquet#1"
    _, train = ingest_rows(source | {"where": {"split": "train"}})
    assert train["prompt"].to_list() == [f"train {n}" for n in range(40)]


def test_huggingface_images_may_be_null_or_paths(tmp_path, ingest_rows, picture):
    (tmp_path / "a.png").write_bytes(picture())
    values = [(None, "a.png"), (None, None), (b"", "x"), (None, "../x")]
    images = [None, *[{"bytes": content, "path": path} for content, path in values]]
    hf_frame(*images, prompt=list("abcde")).write_parquet(tmp_path / "d.parquet")
    _, rows = ingest_rows({"reader": "huggingface", "path": "d.parquet", "model": "m"})
    assert rows["status"].to_list() == ["ok", "ok", "ok", "empty_file", "outside_root"]
    assert rows["image_sha256"].is_null().to_list() == [True, False, True, True, True]


def test_a_row_that_stands_there_twice_is_a_duplicate_and_another_picture_under_its_id_is_not(tmp_path, ingest_rows, picture):
    """As where a manifest names files: the one judgement counts for both, or the later one is refused."""
    contents = [picture(0), picture(1), picture(0), picture(2)]
    hf_frame(*[{"bytes": one, "path": None} for one in contents], id=["a", "b", "a", "b"], prompt=["p"] * 4).write_parquet(
        tmp_path / "d.parquet"
    )
    source = {"reader": "huggingface", "path": "d.parquet", "model": "m", "columns": {"item_id": "id"}}
    _, rows = ingest_rows(source)
    assert rows["status"].to_list() == ["ok", "ok", "duplicate", "repeated_id"]


def test_a_dataset_written_by_datasets_is_read(tmp_path, ingest_rows, picture):
    import datasets

    features = datasets.Features({"image": datasets.Image(), "prompt": datasets.Value("large_string")})
    rows = {"image": [{"bytes": picture(3), "path": None}], "prompt": ["x"]}
    datasets.Dataset.from_dict(rows, features=features).to_parquet(tmp_path / "train.parquet")
    result, rows = ingest_rows({"reader": "huggingface", "path": "train.parquet", "model": "m"})
    assert result.n_by_status == {"ok": 1}
    assert rows["prompt"].to_list() == ["x"]


def test_a_folder_without_parquet_stops(tmp_path, read_all):
    with pytest.raises(SourceError, match=r"holds no \.parquet file"):
        read_all(reader="huggingface", path=".")


# --- geneval ----------------------------------------------------------------------------------------------------
@pytest.fixture
def geneval(tmp_path, picture):
    for prompt, tag, n in (("00000", "counting", 2), ("00001", "colors", 1)):
        folder = tmp_path / "out" / "sdxl" / "base" / prompt
        (folder / "samples").mkdir(parents=True)
        metadata = {"tag": tag, "include": [{"class": "cow"}], "prompt": f"a photo of {tag}"}
        (folder / "metadata.jsonl").write_text(json.dumps(metadata))
        (folder / "grid.png").write_bytes(b"not a sample")
        for index in range(n):
            (folder / "samples" / f"{index:04d}.png").write_bytes(picture())  # the same bytes: seeds tell them apart
    return tmp_path / "out" / "sdxl" / "base"


SOURCE = {"reader": "geneval", "path": "out/{model}/{checkpoint}"}


def test_geneval_folders(geneval, ingest_rows):
    result, rows = ingest_rows(SOURCE)
    assert result.n_by_status == {"ok": 3}
    columns = rows.select("source_key", "model", "checkpoint", "prompt", "category", "item_id", "seed").rows()
    assert columns == [
        ("sdxl/base/00000/samples/0000.png", "sdxl", "base", "a photo of counting", "counting", "00000", 0),
        ("sdxl/base/00000/samples/0001.png", "sdxl", "base", "a photo of counting", "counting", "00000", 1),
        ("sdxl/base/00001/samples/0000.png", "sdxl", "base", "a photo of colors", "colors", "00001", 0),
    ]


def test_what_is_missing_in_geneval_folders_is_counted(geneval, ingest_rows):
    (geneval / "00001" / "samples" / "0000.png").unlink()
    (geneval / "00000" / "metadata.jsonl").write_text("{")
    (geneval / "no_prompt_folder").mkdir()
    _, rows = ingest_rows(SOURCE)
    assert rows.select("status", "item_id").rows() == [
        ("missing_value", "00000"),
        ("missing_value", "00000"),
        ("missing_file", "00001"),
    ]
    assert rows["category"].to_list() == [None, None, "colors"]
    assert rows["sample_id"].n_unique() == 3


def test_a_row_that_cannot_say_its_tag_is_counted_under_every_where(geneval, read_all):
    (geneval / "00000" / "metadata.jsonl").unlink()
    for tag, n in (("colors", 3), ("counting", 2)):
        assert len(read_all(**SOURCE, model=None, where={"tag": tag})) == n


def test_geneval_metadata_that_is_a_link_out_is_not_read(geneval, ingest_rows, tmp_path):
    (tmp_path / "private").write_text('{"prompt": "private"}')
    (geneval / "00000" / "metadata.jsonl").unlink()
    (geneval / "00000" / "metadata.jsonl").symlink_to(tmp_path / "private")
    _, rows = ingest_rows(SOURCE)
    assert rows["prompt"].to_list() == [None, None, "a photo of colors"]
    assert rows["status"].to_list() == ["missing_value", "missing_value", "ok"]


@given(st.lists(st.sampled_from([*"a-_ =()s12\n", "seed"]), max_size=9).map("".join))
def test_a_number_behind_a_name_is_read_as_in_tables(name):
    match = re.fullmatch(NUMBERED, name)
    assert numbered(name) == ((match[1], match[2]) if match else (name, None))


@pytest.mark.parametrize("name", ["-" * 250, "a" + " " * 250 + "x", "_ " * 120 + "=x"])
def test_a_name_that_almost_ends_in_a_number_takes_no_time(name):
    began = time.process_time()
    for _ in range(100):
        numbered(name)
    assert time.process_time() - began < 0.5


# --- webdataset -------------------------------------------------------------------------------------------------
def tar(*members: tuple) -> bytes:
    """Members are (name, bytes) or a TarInfo."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                archive.addfile(info, io.BytesIO(member[1]))
    return buffer.getvalue()


def member_of(size: int, name: str = "large.bin", kind: bytes = tarfile.REGTYPE) -> bytes:
    """The header of a member that says it is so large."""
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


def link(name: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, "/etc/passwd"
    return info


def test_what_a_mac_puts_into_a_tar_is_no_sample(tmp_path, ingest_rows, picture):
    """Its tar writes a `._` file before each one; a name without a suffix is none of a sample's either."""
    ours = [(f"x/{n}.{kind}", content) for n in range(3) for kind, content in (("png", picture(n)), ("txt", b"p"))]
    theirs = [one for name, content in ours for one in ((name.replace("x/", "x/._"), b"Mac OS X"), (name, content))]
    (tmp_path / "a.tar").write_bytes(tar(("._x", b"Mac OS X"), ("README", b"read"), ("x/.DS_Store", b"s"), *theirs))
    _, rows = ingest_rows({"reader": "webdataset", "path": "a.tar", "model": "m"})
    assert rows.select("source_key", "status", "prompt").rows() == [(f"a.tar:x/{n}", "ok", "p") for n in range(3)]


def test_webdataset_tars(tmp_path, ingest_rows, picture):
    (tmp_path / "a.tar").write_bytes(
        tar(("x/000.png", picture(1)), ("x/000.json", b'{"prompt": "from json", "seed": 4}'), ("x/001.jpg", picture(2, "JPEG")),
            ("x/001.txt", b"from text"), ("x/001.cls", b"7"), ("x/002.txt", b"no picture"))
    )  # fmt: skip
    (tmp_path / "b.tar").write_bytes(tar(("x/000.png", picture(3)), ("x/000.txt", b"the same key in another tar")))
    _, rows = ingest_rows({"reader": "webdataset", "path": ".", "model": "m"})
    assert rows.select("source_key", "status", "prompt", "seed", "image_format").rows() == [
        ("a.tar:x/000", "ok", "from json", 4, "PNG"),
        ("a.tar:x/001", "ok", "from text", None, "JPEG"),
        ("a.tar:x/002", "ok", "no picture", None, None),
        ("b.tar:x/000", "ok", "the same key in another tar", None, "PNG"),
    ]


HOSTILE_MEMBERS = {
    "a link": ([link("b.png")], "not_a_file"),
    "a hard link": ([link("b.png", tarfile.LNKTYPE)], "not_a_file"),
    "a device": ([link("b.png", tarfile.CHRTYPE)], "not_a_file"),
    "a sparse file": ([link("b.png", tarfile.GNUTYPE_SPARSE)], "not_a_file"),
    "a pipe": ([link("b.png", tarfile.FIFOTYPE)], "not_a_file"),
    "a path that leaves": ([("../b.png", b"x")], "outside_root"),
    "an absolute path": ([("/tmp/b.png", b"x")], "outside_root"),
    "one name twice": ([("b.png", b"x"), ("b.png", b"y")], "repeated_id"),
    "two pictures of one key": ([("b.png", b"x"), ("b.jpg", b"y")], "repeated_id"),
    "a key again": ([("a.png", b"x")], "repeated_id"),
    "metadata of garbage": ([("b.json", b"{")], "bad_value"),
    "metadata with a key twice": ([("b.json", b'{"prompt": "a", "prompt": "b"}')], "bad_value"),
    "metadata that is a list": ([("b.json", b"[]")], "bad_value"),
    "metadata nested too deeply": ([("b.json", b"[" * 100_000)], "bad_value"),
    "text that is not UTF-8": ([("b.txt", b"\xff\xfe\xff")], "bad_value"),
    "a picture over the cap": ([("b.png", bytes(64 * 1024 * 1024 + 1))], "file_too_large"),
    "a picture of garbage": ([("b.png", b"garbage")], "not_an_image"),
    "an empty picture": ([("b.png", b"")], "empty_file"),
}


@pytest.mark.parametrize(("members", "status"), HOSTILE_MEMBERS.values(), ids=HOSTILE_MEMBERS.keys())
def test_hostile_members_make_their_row_unusable_and_no_other(tmp_path, ingest_rows, picture, members, status):
    archive = tar(("a.png", picture(1)), ("a.json", b"{}"), ("between.png", picture(5)), *members, ("z.png", picture(2)))
    (tmp_path / "d.tar").write_bytes(archive)
    _, rows = ingest_rows({"reader": "webdataset", "path": "d.tar", "model": "m"})
    assert rows["status"].to_list() == ["ok", "ok", status, "ok"]
    assert rows["source_key"].n_unique() == 4


BREAKS = {
    "in a member": lambda content: content[: 512 + 20],
    "behind the last member": lambda content: content.rstrip(b"\0"),
    "in a member larger than all disks": lambda content: content[:1024] + member_of(2**60) + content[1024:],
    "in a member of less than nothing": lambda content: content[:1024] + member_of(-512) + content[1024:],
    "in a folder of less than nothing": lambda content: content[:1024] + member_of(-512, "x", tarfile.DIRTYPE) + content[1024:],
    "in a sparse file of less than nothing": lambda content: (
        content[:1024] + member_of(-512, "b.png", tarfile.GNUTYPE_SPARSE) + content[1024:]
    ),
    "in a picture of less than nothing": lambda content: content[:1024] + member_of(-1, "b.png") + content[1024:],
    "at a name of two million characters": lambda content: content[:1024] + tar(("x" * 2_000_000, b"")),
    "garbage between headers": lambda content: content[: 512 * 2] + b"garbage!" * 64 + content[512 * 2 :],
}


@pytest.mark.parametrize("damage", BREAKS.values(), ids=BREAKS.keys())
def test_an_archive_that_breaks_off_says_so_in_a_row(tmp_path, ingest_rows, picture, damage):
    (tmp_path / "a.tar").write_bytes(damage(tar(("a.png", picture(1)), ("b.txt", b"x"))))
    (tmp_path / "b.tar").write_bytes(tar(("a.png", picture(2))))
    _, rows = ingest_rows({"reader": "webdataset", "path": ".", "model": "m"})
    assert rows.filter(pl.col("detail").str.contains("is broken after"))["status"].to_list() == ["bad_value"]
    assert rows.filter(source_key="b.tar:a")["status"].to_list() == ["ok"]


def test_a_sample_that_an_archive_breaks_off_within_is_no_readable_row(tmp_path, ingest_rows, picture):
    whole = tar(("a.png", picture(1)), ("a.txt", b"one"), ("b.png", picture(2)), ("b.txt", b"two"))
    (tmp_path / "a.tar").write_bytes(whole[: whole.index(b"b.png") + 512 + 20])
    _, rows = ingest_rows({"reader": "webdataset", "path": "a.tar", "model": "m"})
    assert rows.select("source_key", "status").rows()[:2] == [("a.tar:a", "ok"), ("a.tar:b", "bad_value")]
    assert "a.tar' is broken within 'b'" in rows["detail"][1]


def test_a_lone_file_that_is_no_tar_stops(tmp_path, read_all):
    (tmp_path / "d.tar").write_bytes(b"not a tar" * 200)
    with pytest.raises(SourceError, match=r"d\.tar cannot be read as a tar"):
        read_all(reader="webdataset", path="d.tar")


def test_an_unknown_reader_lists_those_there_are(benchmark_of):
    from dataclasses import replace

    from tasks.ingest.readers import read
    from tasks.ingest.sources import expand

    (source,) = expand(benchmark_of({"reader": "manifest", "path": "."}), ())
    with pytest.raises(SourceError, match="geneval, huggingface, imagefolder, manifest, webdataset"):
        next(read(replace(source, reader="zip")))
