"""Pictures by content: stored, opened and prepared once, in whatever role and however many samples show them."""

import hashlib
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from schemas.benchmark.file import Benchmark
from schemas.errors import SourceError
from schemas.identities import RunIds
from schemas.input_budget import CELL_PICTURES
from schemas.records import SAMPLE_TEXTS, Sample
from schemas.statuses.rows import SampleStatus
from schemas.tables.stored import PICTURES, SAMPLES
from tasks.ingest import opened_files
from tasks.ingest.identity import sample_id
from tasks.ingest.known_sources import KnownSources
from tasks.ingest.samples import find_dataset
from tasks.lake.pictures import StoredDataset, digests_in, with_pictures
from tasks.lake.reading import Lake
from tasks.lake.writing import stage
from tests.support.ingesting import ingest

Draw = Callable[..., bytes]

IDS = RunIds(code_version="code")


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def manifest(folder: Path, rows: list[dict[str, Any]], name: str = "m.jsonl") -> dict[str, Any]:
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {"reader": "manifest", "path": name, "model": "m"}


def stored(lake: Lake, dataset_id: str) -> pl.DataFrame:
    return pl.concat(pl.read_parquet(path) for path in lake.parts(PICTURES, dataset_id))


@pytest.mark.parametrize("kind", ["JPEG", "BMP"], ids=["shown as it is", "encoded anew"])
def test_thirteen_questions_on_one_picture_keep_its_bytes_once_and_open_it_once(
    tmp_path: Path, benchmark_of: Callable[..., Benchmark], lake: Lake, picture: Draw, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = [picture(number, kind, size=(256, 256)) for number in range(4)]
    for number, content in enumerate(contents):
        (tmp_path / f"{number}.img").write_bytes(content)
    opened: list[bytes] = []

    def open_bounded(content: bytes, _open: Callable[[bytes], Any] = opened_files.open_bounded) -> Any:
        opened.append(content)
        return _open(content)

    monkeypatch.setattr(opened_files, "open_bounded", open_bounded)
    rows = [{"image": f"{number}.img", "prompt": f"question {n}"} for number in range(4) for n in range(13)]
    result = ingest(benchmark_of(manifest(tmp_path, rows)), lake)
    assert (result.n_ok, len(opened)) == (52, 4)
    found = stored(lake, result.dataset_id)
    n_shown = found["image"].struct.field("bytes").bin.size().sum()
    n_on_disk = sum(path.stat().st_size for table in (SAMPLES, PICTURES) for path in lake.parts(table, result.dataset_id))
    assert found.height == 4
    assert n_on_disk <= n_shown + 40_000  # 52 rows and two schemas; 13 times the bytes would be millions
    assert set(lake.scan(SAMPLES, result.dataset_id).collect()["image_sha256"]) == set(found["image_sha256"])


def test_what_several_shards_show_stands_in_the_first_of_them_alone(
    tmp_path: Path, benchmark_of: Callable[..., Benchmark], lake: Lake, picture: Draw
) -> None:
    for number in range(3):
        (tmp_path / f"{number}.png").write_bytes(picture(number))
    rows = [{"image": f"{number}.png", "prompt": f"question {n}"} for n in range(3) for number in range(3)]
    result = ingest(benchmark_of(manifest(tmp_path, rows), shard_size=2), lake)
    digests = [sha256(picture(number)) for number in range(3)]
    of_parts = [pl.read_parquet(path)["image_sha256"].to_list() for path in lake.parts(PICTURES, result.dataset_id)]
    assert of_parts == [digests[:2], digests[2:], [], [], []]
    names = {digests[0]: "part-00000.parquet", digests[1]: "part-00000.parquet", digests[2]: "part-00001.parquet"}
    assert StoredDataset(lake, result.dataset_id).parts_holding([*digests, "0" * 64]) == names
    (table,) = StoredDataset(lake, result.dataset_id).pictures([digests[1]])
    assert table["image"][0].as_py() == {"bytes": picture(1), "path": "1.png"}


ROLES = {"image": "edited", "source": "input", "answer": ["first", "more"]}


def test_pictures_stand_by_role_and_in_order_and_are_who_a_sample_is(
    tmp_path: Path, benchmark_of: Callable[..., Benchmark], lake: Lake, picture: Draw
) -> None:
    for number in range(6):
        (tmp_path / f"{number}.png").write_bytes(picture(number))
    rows = [
        {"edited": "1.png", "input": "0.png", "first": "2.png", "more": ["4.png", "3.png"], "image": "5.png", "prompt": "p"},
        {"edited": "1.png", "input": "5.png", "first": "2.png", "more": ["4.png", "3.png"], "prompt": "p"},
        {"edited": "1.png", "input": None, "first": None, "more": [], "prompt": "p"},
        {"edited": "1.png", "input": "none.png", "first": None, "more": None, "prompt": "p"},
        {"edited": "1.png", "input": 7, "first": None, "more": None, "prompt": "p"},
    ]
    result = ingest(benchmark_of(manifest(tmp_path, rows) | {"pictures": ROLES}), lake)
    samples = lake.scan(SAMPLES, result.dataset_id).collect()
    shown = [[(one["role"], one["path"]) for one in row] for row in samples["pictures"]]
    image, answers = ("image", "1.png"), [("answer", f"{number}.png") for number in (2, 4, 3)]
    assert shown == [[image, ("source", "0.png"), *answers], [image, ("source", "5.png"), *answers], [image], [image], []]
    assert samples["status"].to_list() == ["ok", "ok", "ok", "missing_file", "bad_value"]
    assert [(detail or "").partition(":")[0] for detail in samples["detail"]] == ["", "", "", "source", "source"]
    assert samples["sample_id"].n_unique() == 5, "another source picture is another sample"
    texts = dict.fromkeys(SAMPLE_TEXTS) | {"prompt": "p"}
    one = Sample("s", "k", "m", "unnamed", texts)
    assert samples["sample_id"][2] == sample_id(one, samples["image_sha256"][2], SampleStatus.OK), "who it was with one picture"
    assert set(stored(lake, result.dataset_id)["image_sha256"]) == {sha256(picture(number)) for number in range(6)}


def test_the_pictures_of_a_row_are_opened_one_at_a_time(
    tmp_path: Path, benchmark_of: Callable[..., Benchmark], lake: Lake
) -> None:
    n_bytes = 4 * 1024 * 1024
    with (tmp_path / "0.png").open("wb") as file:
        file.truncate(n_bytes)
    source = manifest(tmp_path, [{"image": ["0.png"] * n, "prompt": "p"} for n in (CELL_PICTURES, CELL_PICTURES + 1)])
    tracemalloc.start()
    try:
        result = ingest(benchmark_of(source), lake)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    rows = lake.scan(SAMPLES, result.dataset_id).select("status", "detail").collect().rows()
    assert [status for status, _ in rows] == ["not_an_image", "bad_value"]
    assert rows[1][1] == "image: 65 pictures are listed; 64 are allowed"
    assert peak < 8 * n_bytes


def test_a_part_is_taken_over_with_the_pictures_that_another_part_held_for_it(
    tmp_path: Path, benchmark_of: Callable[..., Benchmark], lake: Lake, picture: Draw
) -> None:
    for number in range(3):
        (tmp_path / f"{number}.png").write_bytes(picture(number))
    first = [{"image": "0.png", "prompt": "a"}, {"image": "1.png", "prompt": "b"}]
    second = [{"image": "1.png", "prompt": "c"}, {"image": "2.png", "prompt": "d"}]
    sources = [manifest(tmp_path, rows, f"{name}.jsonl") | {"name": name} for name, rows in (("x", first), ("y", second))]
    known = lambda: KnownSources(lake, IDS, 500, 0)  # noqa: E731
    before = ingest(benchmark_of(*sources), lake, known=known())
    manifest(tmp_path, [{"image": "0.png", "prompt": "other"}], "x.jsonl")
    after = ingest(benchmark_of(*sources), lake, known=known())
    assert after.dataset_id != before.dataset_id
    samples = lake.scan(SAMPLES, after.dataset_id).collect()
    assert digests_in(samples) == set(stored(lake, after.dataset_id)["image_sha256"]) == {sha256(picture(n)) for n in range(3)}


def test_a_dataset_of_an_older_release_is_read_and_stays_as_it_is(
    tmp_path: Path, benchmark_of: Callable[..., Benchmark], lake: Lake, picture: Draw
) -> None:
    """Its samples hold their pictures, a duplicate's excepted, and no column `pictures`."""
    (tmp_path / "0.png").write_bytes(picture(0))
    benchmark = benchmark_of(manifest(tmp_path, [{"image": "0.png", "prompt": "a"}, {"image": "0.png", "prompt": "a"}]))
    new = Lake(tmp_path / "new")
    result = ingest(benchmark, new)
    rows = new.scan(SAMPLES, result.dataset_id).collect().drop("pictures")
    image = pl.Series([{"bytes": picture(0), "path": "0.png"}, None], dtype=rows["image"].dtype)
    staging = stage(lake, SAMPLES)
    staging.write_part(0, rows.with_columns(image=image, pictures=pl.lit(None, SAMPLES.empty().schema["pictures"])))
    staging.commit(result.dataset_id)
    assert ingest(benchmark, lake).dataset_id == result.dataset_id, "samples are who they were"
    assert not lake.is_complete(PICTURES, result.dataset_id)
    digest = sha256(picture(0))
    old = with_pictures(lake.scan(SAMPLES, result.dataset_id).collect())
    assert old["pictures"].to_list() == [[{"role": "image", "sha256": digest, "path": path}] for path in ("0.png", None)]
    for one in (lake, new):
        (table,) = StoredDataset(one, result.dataset_id).pictures([digest])
        assert (table.schema, table["image_sha256"].to_pylist()) == (PICTURES.schema, [digest])
        assert table["image"][0].as_py() == {"bytes": picture(0), "path": "0.png"}


def test_pictures_that_are_gone_are_read_again_though_no_source_has_changed(
    tmp_path: Path, benchmark_of: Callable[..., Benchmark], lake: Lake, picture: Draw
) -> None:
    """A clearing that was killed between two tables, or somebody's hand."""
    (tmp_path / "0.png").write_bytes(picture(0))
    benchmark = benchmark_of(manifest(tmp_path, [{"image": "0.png", "prompt": "a"}]))
    known = KnownSources(lake, IDS, 500, 0)
    result = ingest(benchmark, lake, known=known)
    assert find_dataset(benchmark, KnownSources(lake, IDS, 500, 0)) == result
    lake.marker(PICTURES, result.dataset_id).unlink()
    assert find_dataset(benchmark, KnownSources(lake, IDS, 500, 0)) is None
    assert ingest(benchmark, lake, known=KnownSources(lake, IDS, 500, 0)).dataset_id == result.dataset_id
    assert stored(lake, result.dataset_id)["image_sha256"].to_list() == [sha256(picture(0))]


@pytest.mark.parametrize(("more", "message"), [
    ({"pictures": {"source": "input"}}, r"has no column 'input', needed for source"),
    ({"pictures": {"source": "input["}}, r"pictures\.source: 'input\['"),
], ids=["no such column", "no path"])  # fmt: skip
def test_a_role_that_the_source_does_not_have_is_told(
    tmp_path: Path, benchmark_of: Callable[..., Benchmark], lake: Lake, more: dict[str, Any], message: str
) -> None:
    with pytest.raises(SourceError, match=message):
        ingest(benchmark_of(manifest(tmp_path, [{"prompt": "p"}]) | more), lake)
