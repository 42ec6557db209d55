"""The pictures of a part, read whichever way it was written, and never other bytes than their digests'."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors import CorruptLakeError
from schemas.tables.stored import SAMPLES
from tasks.judge.part_pictures import PartPictures
from tasks.lake.reading import Lake

N, N_BYTES = 80, 150_000
CONTENTS = [(index + 258).to_bytes(2, "big") * (N_BYTES // 2) for index in range(N)]
DIGESTS = [sha256(content).hexdigest() for content in CONTENTS]
PLAIN = {"compression": {"image.bytes": "none", "image.path": "none"}, "use_dictionary": ["image.path"], "row_group_size": 64}
LAYOUTS: dict[str, dict[str, Any] | None] = {
    "as written now": None,
    "a row group's pictures in one page, as once written": PLAIN,
    "packed": PLAIN | {"compression": "zstd"},
    "by a dictionary": PLAIN | {"use_dictionary": True, "dictionary_pagesize_limit": 1 << 30},
    "pages of the second kind": PLAIN | {"data_page_version": "2.0"},
    "pages with checksums": PLAIN | {"write_page_checksum": True},
    "other lengths": PLAIN | {"use_dictionary": False, "column_encoding": {"image.bytes": "DELTA_LENGTH_BYTE_ARRAY"}},
}
PLACED = {"as written now", "a row group's pictures in one page, as once written", "pages with checksums"}


@pytest.fixture
def part(make_samples: Callable[..., pl.DataFrame], store_samples: Callable[..., tuple[Lake, str]]) -> Callable[..., Path]:
    """Writes a part with these pictures, None for a row that holds none of its own, laid out so."""

    def write(layout: str, contents: list[bytes | None] = list(CONTENTS)) -> Path:  # noqa: B006 - read alone
        images = [{"bytes": content, "path": f"{index}.png"} for index, content in enumerate(contents)]
        lake, dataset_id = store_samples(make_samples(len(contents), image=images, image_sha256=DIGESTS[: len(contents)]))
        path, options = lake.part(SAMPLES, dataset_id, 0), LAYOUTS[layout]
        if options is not None:
            pq.write_table(pq.read_table(path), path, **options)
        return path

    return write


@pytest.mark.parametrize("layout", LAYOUTS)
def test_pictures_are_read_whichever_way_their_part_was_written(part: Callable[..., Path], layout: str) -> None:
    pictures = PartPictures(part(layout))
    n_before = pa.total_allocated_bytes()
    assert bytes(pictures(DIGESTS[1]).read()) == CONTENTS[1]
    n_held = pa.total_allocated_bytes() - n_before
    assert [bytes(pictures(digest).read()) for digest in DIGESTS] == CONTENTS
    assert bytes(pictures(DIGESTS[3]).read()) == CONTENTS[3]  # a retry, long after
    pictures.close()
    assert (n_held < N_BYTES) == (layout in PLACED)  # else Arrow has read some of a row group


@pytest.mark.parametrize("layout", ["as written now", "packed"])
def test_a_row_that_holds_no_picture_of_its_own_moves_none_of_the_others(part: Callable[..., Path], layout: str) -> None:
    held: list[bytes | None] = [None if index in (0, 7, 66) else content for index, content in enumerate(CONTENTS)]
    pictures = PartPictures(part(layout, held))
    for digest, content in zip(DIGESTS, held, strict=True):
        if content is None:
            with pytest.raises(CorruptLakeError, match="holds no bytes of the picture"):
                pictures(digest).read()
        else:
            assert bytes(pictures(digest).read()) == content
    pictures.close()


@pytest.mark.parametrize("bit", [0, 7])
@pytest.mark.parametrize(
    "offset", [-4, -1, 0, N_BYTES - 1], ids=["its length", "its length's end", "its first byte", "its last byte"]
)
def test_a_bit_that_flipped_in_a_picture_or_before_it_is_told(part: Callable[..., Path], offset: int, bit: int) -> None:
    path = part("as written now")
    _flip(path, path.read_bytes().index(CONTENTS[0]) + offset, bit)
    right, spoiled = _read(path, 9)
    assert spoiled[:1] == DIGESTS[:1]
    assert set(right) | set(spoiled) == set(DIGESTS[:9])


@pytest.mark.parametrize("offset", range(0, 40, 3))
def test_a_bit_that_flipped_in_a_page_s_header_shows_no_other_picture(part: Callable[..., Path], offset: int) -> None:
    path = part("as written now")
    group = pq.read_metadata(path).row_group(0)
    image = next(index for index in range(group.num_columns) if group.column(index).path_in_schema == "image.bytes")
    for bit in range(8):
        _flip(path, group.column(image).data_page_offset + offset, bit)
        right, spoiled = _read(path, 9)
        assert set(right) | set(spoiled) == set(DIGESTS[:9])
        _flip(path, group.column(image).data_page_offset + offset, bit)


def _flip(path: Path, at: int, bit: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ 1 << bit]))


def _read(path: Path, n: int) -> tuple[list[str], list[str]]:
    """Of the first n pictures, the digests of those that are read as they are, and of those that are told to be spoiled."""
    pictures, right, spoiled = PartPictures(path), list[str](), list[str]()
    for digest, content in zip(DIGESTS[:n], CONTENTS, strict=False):
        try:
            assert bytes(pictures(digest).read()) == content
            right.append(digest)
        except CorruptLakeError:
            spoiled.append(digest)
    pictures.close()
    return right, spoiled


def test_a_part_that_was_cut_while_it_was_read_is_told(part: Callable[..., Path]) -> None:
    path = part("as written now")
    pictures = PartPictures(path)
    pictures(DIGESTS[0]).read()
    with path.open("r+b") as file:
        file.truncate(N_BYTES)
    with pytest.raises(CorruptLakeError, match="cannot be read"):
        pictures(DIGESTS[1]).read()
    pictures.close()
