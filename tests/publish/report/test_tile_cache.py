"""Tiles kept in a lake: made once, shared, never believed when they are not what was kept, and never in the way of a page."""

import hashlib
import io
import os
import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from PIL import Image

from schemas.identities import RunIds
from schemas.tables.stored import SAMPLES
from tasks.publish.report.compare import compare_pages
from tasks.publish.report.sheets import TILE_PX, small
from tasks.publish.report.tile_cache import _N_FILES, FOLDER, TileCache
from tests.publish.report.conftest import IDS, Made

RECIPE = "1" * 64


def digest(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def pages(made: Made, cache: TileCache | None) -> dict[str, bytes]:
    return dict(compare_pages(made.lake, RunIds(**IDS), made.tables, {}, made.name, cache=cache))


def drawn(color: str) -> bytes:
    content = io.BytesIO()
    Image.new("RGB", (64, 64), color).save(content, "PNG")
    return content.getvalue()


def tile(color: str) -> bytes:
    found = small(drawn(color))
    assert found is not None
    return found


@pytest.fixture
def made(made_of: Callable[..., Made]) -> Made:
    """24 samples of 12 pictures: the second checkpoint drew what the first did."""
    return made_of(n_prompts=6, made_by=[("north", "step-1"), ("north", "step-2")])


@pytest.fixture
def cache(made: Made) -> TileCache:
    return TileCache(made.lake.root, RECIPE)


@pytest.fixture
def digests(made: Made) -> set[str]:
    return set(made.lake.scan(SAMPLES, IDS["dataset_id"]).collect()["image_sha256"])


def files(root: Path) -> list[Path]:
    return sorted((root / FOLDER).glob("*"))


def test_the_pages_are_the_same_bytes_with_kept_tiles_and_without(made: Made, cache: TileCache, digests: set[str]) -> None:
    without = pages(made, None)
    assert files(made.lake.root) == [], "who asks for no cache writes none"
    assert pages(made, cache) == without, "made and kept"
    assert dict(cache.take(digests)).keys() == digests
    assert pq.read_metadata(files(made.lake.root)[0]).num_rows == len(digests) == 12, "once for all samples that show it"
    assert pages(made, cache) == without, "kept"
    assert len(files(made.lake.root)) == 1


def test_a_kept_tile_is_shown_and_none_that_was_made_otherwise(made: Made, cache: TileCache, digests: set[str]) -> None:
    """Tiles that are plainly others, kept as if they were made of these pictures."""
    without = pages(made, None)
    cache.keep((one, tile("red")) for one in digests)
    shown = pages(made, cache)["pictures-001.jpg"]
    assert shown != without["pictures-001.jpg"]
    assert Image.open(io.BytesIO(shown)).getpixel((20, 20)) == Image.open(io.BytesIO(tile("red"))).getpixel((20, 20))
    assert pages(made, None) == without
    other = TileCache(made.lake.root, "2" * 64)
    assert dict(other.take(digests)) == {}
    assert pages(made, other) == without
    (mine,) = (path for path in files(made.lake.root) if path.name.startswith(RECIPE[:16]))
    mine.rename(mine.with_name(mine.name.replace(RECIPE[:16], "3" * 16)))
    assert dict(TileCache(made.lake.root, "3" * 64).take(digests)) == {}, "another name does not make it another's"


def test_what_was_added_is_made_and_kept_alone(made_in: Callable[..., Made], tmp_path: Path) -> None:
    few, more = (made_in(tmp_path / str(n), n_prompts=n, made_by=[("north", "step-1")]) for n in (6, 8))
    pages(few, TileCache(few.lake.root, RECIPE))
    (kept,) = files(few.lake.root)
    shutil.copytree(few.lake.root / FOLDER, more.lake.root / FOLDER)
    assert pages(more, TileCache(more.lake.root, RECIPE)) == pages(more, None)
    (new,) = (path for path in files(more.lake.root) if path.name != kept.name)
    assert pq.read_metadata(new).num_rows == 4


def _spoiled(content: bytes) -> Mapping[str, bytes]:
    draw, found = random.Random(5), {"nothing": b"", "cut": content[: len(content) // 2], "no end": content[:-9]}
    for number in range(150):
        at = draw.randrange(len(content))
        found[f"{number}, byte {at}"] = content[:at] + bytes([content[at] ^ 1 << draw.randrange(8)]) + content[at + 1 :]
    return found


def test_of_a_file_that_is_not_what_was_written_no_tile_is_another(cache: TileCache) -> None:
    kept = {digest(number): tile(color) for number, color in enumerate(("red", "green", "blue"))}
    cache.keep(kept.items())
    (path,) = files(cache.lake_root)
    content, n_lost = path.read_bytes(), 0
    for name, spoiled in _spoiled(content).items():
        path.write_bytes(spoiled)
        found = dict(cache.take(kept.keys()))
        assert found.items() <= kept.items(), name
        n_lost += len(kept) - len(found)
    assert n_lost > 150
    path.write_bytes(content)
    assert dict(cache.take(kept.keys())) == kept


def test_what_was_lost_is_made_again(made: Made, cache: TileCache, digests: set[str]) -> None:
    without = pages(made, cache)
    (path,) = files(made.lake.root)
    path.write_bytes(path.read_bytes()[:-40])
    assert pages(made, cache) == without
    assert dict(cache.take(digests)).keys() == digests


def test_of_a_stored_picture_that_a_disk_spoiled_no_tile_is_kept(made_of: Callable[..., Made]) -> None:
    """A JPEG with another byte still is a picture: it is shown for what it is, and tomorrow the mended one is made small."""
    jpegs = [_jpeg(seed) for seed in range(6)]
    made = made_of(n_prompts=3, made_by=[("north", "step-1")], picture=lambda index: jpegs[index])
    (part,) = (made.lake.root / "samples").rglob("*.parquet")
    middle = len(jpegs[0]) // 2
    spoiled = jpegs[0][:middle] + b"UUU" + jpegs[0][middle + 3 :]
    assert small(spoiled) not in (None, small(jpegs[0]))
    content = part.read_bytes()
    assert content.count(jpegs[0]) == 1
    part.write_bytes(content.replace(jpegs[0], spoiled))
    cache = TileCache(made.lake.root, RECIPE)
    assert pages(made, cache) == pages(made, None)
    digests = [hashlib.sha256(one).hexdigest() for one in jpegs]
    assert dict(cache.take(digests)).keys() == {*digests[1:]}


def _jpeg(seed: int) -> bytes:
    content = io.BytesIO()
    Image.frombytes("RGB", (128, 128), random.Random(seed).randbytes(128 * 128 * 3)).save(content, "JPEG")
    return content.getvalue()


def test_where_no_tile_can_be_kept_the_pages_are_made_all_the_same(made: Made, cache: TileCache, digests: set[str]) -> None:
    without = pages(made, None)
    (made.lake.root / FOLDER).write_text("in the way")
    assert pages(made, cache) == without
    assert dict(cache.take(digests)) == {}
    assert not list((made.lake.root / "staging").glob(f"{FOLDER}-*"))


def test_the_files_used_last_are_kept_and_no_more_of_them(cache: TileCache) -> None:
    for number in range(_N_FILES + 6):
        cache.keep([(digest(number), tile("red"))])
        (newest,) = {*files(cache.lake_root)} - {path for path in files(cache.lake_root) if path.stat().st_mtime_ns < 10**18}
        os.utime(newest, ns=(number, number))
        if number == 10:
            assert dict(cache.take([digest(0)])).keys() == {digest(0)}, "the first is in use"
            os.utime(_used(cache), ns=(10, 10))
    assert len(files(cache.lake_root)) == _N_FILES
    left = dict(cache.take([digest(number) for number in range(_N_FILES + 6)]))
    assert left.keys() == {digest(0), *(digest(number) for number in range(7, _N_FILES + 6))}


def _used(cache: TileCache) -> Path:
    return max(files(cache.lake_root), key=lambda path: path.stat().st_mtime_ns)


@pytest.mark.parametrize("size", [(768, 768), (1024, 512), (200, 4000), (64, 64), (321, 320)])
@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
def test_a_tile_has_the_shape_of_its_picture_and_fits(size: tuple[int, int], mode: str) -> None:
    content = io.BytesIO()
    Image.new(mode, size).save(content, "JPEG")
    made = small(content.getvalue())
    assert made is not None
    with Image.open(io.BytesIO(made)) as found:
        assert found.mode == "RGB"
        scale = min(1, TILE_PX / max(size))
        assert all(abs(side - max(1, whole * scale)) <= 1 for side, whole in zip(found.size, size, strict=True))


def test_no_file_is_taken_away_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "others").mkdir()
    for number in range(_N_FILES + 3):
        (tmp_path / "others" / f"{number}.parquet").write_text("another's")
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / FOLDER).symlink_to(tmp_path / "others")
    TileCache(tmp_path / "lake", RECIPE).keep([("a" * 64, tile("red"))])
    assert len([path for path in files(tmp_path / "lake") if path.read_bytes() == b"another's"]) == _N_FILES + 3
