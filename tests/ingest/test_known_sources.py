"""Sources that were read before: taken as they are while no file has changed, read again whatever else has."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from schemas.benchmark.file import Benchmark
from schemas.identities import RunIds
from schemas.tables.stored import SAMPLES
from tasks.ingest.known_sources import FOLDER, KnownSources, forget
from tasks.ingest.samples import IngestResult, find_dataset, find_shards, finish, open_and_write_shard
from tasks.ingest.sources import expand
from tasks.lake.reading import Lake
from tasks.lake.writing import stage
from tests.support.ingesting import ingest

Act = Callable[[Path], object]


def known_of(lake: Lake, *, code: str = "code", shard_size: int = 2, restless_ns: int = 0) -> KnownSources:
    return KnownSources(lake, RunIds(code_version=code), shard_size, restless_ns)


def read_role(lake: Lake, result: IngestResult) -> str:
    return str(lake.scan(SAMPLES, result.dataset_id).select("checkpoint").unique().collect().item())


def rows(folder: Path, name: str = "m.jsonl", n: int = 3, **more: Any) -> dict[str, Any]:
    listed = [{"image": f"pics/{index}.png", "prompt": f"p{index}", **more} for index in range(n)]
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in listed))
    return {"reader": "manifest", "path": name, "model": "m"}


@pytest.fixture
def pictured(tmp_path: Path, picture: Callable[..., bytes]) -> Path:
    (tmp_path / "pics").mkdir()
    for index in range(3):
        (tmp_path / "pics" / f"{index}.png").write_bytes(picture(index))
    return tmp_path


SOURCES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "a file that names pictures": rows,
    "a folder of pictures": lambda _: {"reader": "imagefolder", "path": "pics", "model": "m"},
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES.keys())
def test_what_has_not_changed_is_found_and_is_what_reading_it_again_would_give(
    pictured: Path, benchmark_of: Callable[..., Benchmark], lake: Lake, source: Callable[[Path], dict[str, Any]]
) -> None:
    benchmark = benchmark_of(source(pictured), shard_size=2)
    first = ingest(benchmark, lake, known=known_of(lake))
    assert find_dataset(benchmark, known_of(lake)) == first
    assert first.n_ok == 3
    (resolved,) = expand(benchmark, ())
    assert [*known_of(lake).roles_in(resolved)] == [("m", read_role(lake, first))]
    resolved.path.rename(pictured / "elsewhere")  # a run that made this dataset looked before, and looks no more
    of_dataset = RunIds(first.dataset_id, code_version="code")
    assert [*KnownSources(lake, of_dataset, 2, 0).roles_in(resolved)] == [("m", read_role(lake, first))]
    (pictured / "elsewhere").rename(resolved.path)
    forget(lake)
    assert find_dataset(benchmark, known_of(lake)) is None


def test_a_prompt_without_a_picture_keeps_no_source_from_being_known(
    tmp_path: Path, benchmark_of: Callable[..., Benchmark], lake: Lake, picture: Callable[..., bytes]
) -> None:
    for index in range(2):
        (tmp_path / f"made/{index}/samples").mkdir(parents=True)
        (tmp_path / f"made/{index}/metadata.jsonl").write_text('{"prompt": "p"}')
    (tmp_path / "made/0/samples/0.png").write_bytes(picture(0))
    benchmark = benchmark_of({"reader": "geneval", "path": "made", "model": "m"})
    first = ingest(benchmark, lake, known=known_of(lake))
    assert first.n_by_status == {"missing_file": 1, "ok": 1}
    assert find_dataset(benchmark, known_of(lake)) == first
    (tmp_path / "made/1/samples/0.png").write_bytes(picture(1))
    assert find_dataset(benchmark, known_of(lake)) is None
    assert ingest(benchmark, lake, known=known_of(lake)).n_ok == 2


def test_under_another_release_of_pillow_every_picture_is_opened_again(
    pictured: Path, benchmark_of: Callable[..., Benchmark], lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    benchmark = benchmark_of(rows(pictured), shard_size=2)
    first = ingest(benchmark, lake, known=known_of(lake))
    installed = pictured / "installed/pillow-999.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: pillow\nVersion: 999.0\n")
    monkeypatch.syspath_prepend(installed.parent)
    assert find_dataset(benchmark, known_of(lake)) is None
    assert ingest(benchmark, lake, known=known_of(lake)) == first


def _rewritten(path: Path) -> None:
    """Other bytes of the same length, with the time of the ones before."""
    was = path.stat()
    content = bytearray(path.read_bytes())
    content[-20] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


CHANGES: dict[str, Act] = {
    "a picture of the same size and time": lambda folder: _rewritten(folder / "pics/1.png"),
    "a picture in another's place": lambda folder: (folder / "pics/1.png").replace(folder / "pics/2.png"),
    "a picture is gone": lambda folder: (folder / "pics/1.png").unlink(),
    "a picture became a link": lambda folder: (
        (folder / "pics/1.png").rename(folder / "1.png"),
        (folder / "pics/1.png").symlink_to("../1.png"),
    ),
}
OF_A_FILE: dict[str, Act] = {
    "a row more": lambda folder: rows(folder, n=4),
    "another word in a row": lambda folder: rows(folder, item_id="x"),
    "the file that was missing came": lambda folder: shutil.copy(folder / "pics/1.png", folder / "pics/3.png"),
}
OF_A_FOLDER: dict[str, Act] = {
    "a picture more": lambda folder: shutil.copy(folder / "pics/1.png", folder / "pics/3.png"),
    "a folder more": lambda folder: shutil.copytree(folder / "pics", folder / "pics" / "more"),
}


@pytest.mark.parametrize("change", [*CHANGES.values(), *OF_A_FILE.values()], ids=[*CHANGES, *OF_A_FILE])
def test_a_changed_file_is_noticed(pictured: Path, benchmark_of: Callable[..., Benchmark], lake: Lake, change: Act) -> None:
    benchmark = benchmark_of(rows(pictured, n=4), shard_size=2)  # the fourth picture is missing
    assert ingest(benchmark, lake, known=known_of(lake)).n_by_status == {"missing_file": 1, "ok": 3}
    assert find_dataset(benchmark, known_of(lake)) is not None
    change(pictured)
    if change is not OF_A_FILE["a row more"]:  # as it was
        assert find_dataset(benchmark, known_of(lake)) is None
        assert ingest(benchmark, lake, known=known_of(lake)) == ingest(benchmark, Lake(pictured / "anew"))


@pytest.mark.parametrize("change", [*CHANGES.values(), *OF_A_FOLDER.values()], ids=[*CHANGES, *OF_A_FOLDER])
def test_a_changed_folder_is_noticed(pictured: Path, benchmark_of: Callable[..., Benchmark], lake: Lake, change: Act) -> None:
    benchmark = benchmark_of(SOURCES["a folder of pictures"](pictured), shard_size=2)
    ingest(benchmark, lake, known=known_of(lake))
    change(pictured)
    assert find_dataset(benchmark, known_of(lake)) is None
    assert ingest(benchmark, lake, known=known_of(lake)) == ingest(benchmark, Lake(pictured / "anew"))


def _cut_short(lake: Lake) -> None:
    for path in (lake.root / FOLDER).iterdir():
        path.write_bytes(path.read_bytes()[:-3])


OTHERWISE: dict[str, Callable[[Lake, IngestResult], KnownSources]] = {
    "other code": lambda lake, _: known_of(lake, code="newer"),
    "shards of another size": lambda lake, _: known_of(lake, shard_size=3),
    "the dataset is gone": lambda lake, one: (lake.marker(SAMPLES, one.dataset_id).unlink(), known_of(lake))[1],
    "what is remembered was cut short": lambda lake, _: (_cut_short(lake), known_of(lake))[1],
}


@pytest.mark.parametrize("make", OTHERWISE.values(), ids=OTHERWISE.keys())
def test_it_is_read_again_where_what_is_remembered_does_not_hold(
    pictured: Path, benchmark_of: Callable[..., Benchmark], lake: Lake, make: Callable[[Lake, IngestResult], KnownSources]
) -> None:
    benchmark = benchmark_of(rows(pictured), shard_size=2)
    first = ingest(benchmark, lake, known=known_of(lake))
    known = make(lake, first)
    assert find_dataset(benchmark, known) is None
    assert ingest(benchmark, lake, known=known) == first


def test_nothing_is_remembered_of_files_that_changed_a_moment_ago(
    pictured: Path, benchmark_of: Callable[..., Benchmark], lake: Lake
) -> None:
    benchmark = benchmark_of(rows(pictured), shard_size=2)
    ingest(benchmark, lake, known=known_of(lake, restless_ns=3600 * 10**9))
    assert find_dataset(benchmark, known_of(lake)) is None


def test_what_another_try_might_end_otherwise_is_tried_again(
    pictured: Path, benchmark_of: Callable[..., Benchmark], lake: Lake
) -> None:
    """A picture whose decoding a busy machine stopped, a file that its network's file system did not give."""
    benchmark, known, staging = benchmark_of(rows(pictured), shard_size=2), known_of(lake), stage(lake, SAMPLES)
    first, second = [open_and_write_shard(shard) for shard in find_shards(benchmark, staging, None, known)]
    finish(staging, [first, replace(second, is_lasting=False)], known)
    assert find_dataset(benchmark, known_of(lake)) is None


def test_a_new_source_leaves_the_old_ones_parts_as_they_are(
    pictured: Path, benchmark_of: Callable[..., Benchmark], lake: Lake
) -> None:
    one, two = rows(pictured, checkpoint="a"), rows(pictured, "two.jsonl", checkpoint="b")
    first = ingest(benchmark_of(one, shard_size=2), lake, known=known_of(lake))
    both, known = benchmark_of(one, two, shard_size=2), known_of(lake)
    assert find_dataset(both, known) is None
    staging = stage(lake, SAMPLES)
    assert [shard.part is not None for shard in find_shards(both, staging, None, known)] == [True, True, False, False]
    second = ingest(both, lake, known=known_of(lake))
    assert second == ingest(both, Lake(pictured / "anew"))
    paths = [lake.parts(SAMPLES, key) for key in (first.dataset_id, second.dataset_id)]
    assert [path.stat().st_ino for path in paths[0]] == [path.stat().st_ino for path in paths[1][:2]]
    assert find_dataset(both, known_of(lake)) == second
    assert find_dataset(benchmark_of(one, shard_size=2), known_of(lake)) is None  # its rows stand in the larger one now


def test_a_file_that_grows_leaves_the_parts_before_as_they_are(
    pictured: Path, benchmark_of: Callable[..., Benchmark], lake: Lake
) -> None:
    ingest(benchmark_of(rows(pictured, n=4), shard_size=1), lake, known=known_of(lake))
    (pictured / "pics/1.png").touch()
    more = benchmark_of(rows(pictured, n=6), shard_size=1)
    shards = find_shards(more, stage(lake, SAMPLES), None, known_of(lake))
    assert [shard.part is not None for shard in shards] == [True, False, True, True, False, False]
    assert ingest(more, lake, known=known_of(lake)) == ingest(more, Lake(pictured / "anew"))


def test_duplicates_of_another_source_are_found_again_and_not_taken_elsewhere(
    pictured: Path, benchmark_of: Callable[..., Benchmark], lake: Lake
) -> None:
    one, two = rows(pictured) | {"name": "one"}, rows(pictured, "two.jsonl") | {"name": "two"}
    both = benchmark_of(one, two, shard_size=2)
    first = ingest(both, lake, known=known_of(lake))
    assert first.n_by_status == {"duplicate": 3, "ok": 3}
    assert find_dataset(both, known_of(lake)) == first
    assert ingest(benchmark_of(two, shard_size=2), lake, known=known_of(lake)).n_by_status == {"ok": 3}


def test_a_damaged_part_of_another_dataset_is_not_taken(
    pictured: Path, benchmark_of: Callable[..., Benchmark], lake: Lake
) -> None:
    one, two = rows(pictured, checkpoint="a"), rows(pictured, "two.jsonl", checkpoint="b")
    first = ingest(benchmark_of(one, shard_size=2), lake, known=known_of(lake))
    part = lake.parts(SAMPLES, first.dataset_id)[0]
    part.write_bytes(part.read_bytes()[:-1])
    both = benchmark_of(one, two, shard_size=2)
    assert ingest(both, lake, known=known_of(lake)) == ingest(both, Lake(pictured / "anew"))


@pytest.mark.parametrize(
    ("before", "after"),
    [(["mixed", "up"], ["up", "mixed"]), ([None, None], ["first", None]), (["one", "two"], ["one", "other"])],
    ids=["exchanged", "the first is given a name", "the second is renamed"],
)  # fmt: skip
def test_the_same_samples_under_other_names_of_sources_are_another_dataset(
    pictured: Path, benchmark_of: Callable[..., Benchmark], lake: Lake, before: list[str | None], after: list[str | None]
) -> None:
    """Rubrics are for sources by name: with the old rows, the wrong samples would be asked about, or none."""
    sources = rows(pictured, checkpoint="a"), rows(pictured, "two.jsonl", n=2, checkpoint="b")
    for names in (before, after):
        named = [one | ({} if name is None else {"name": name}) for one, name in zip(sources, names, strict=True)]
        found = ingest(benchmark_of(*named, shard_size=2), lake, known=known_of(lake))
        said = lake.scan(SAMPLES, found.dataset_id).select("source", "checkpoint").unique().sort("checkpoint").collect()
        assert said["source"].to_list() == [name or f"source-{index}" for index, name in enumerate(names)]
