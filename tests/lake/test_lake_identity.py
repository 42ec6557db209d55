"""A lake's id: made once whoever comes at the same time, the same wherever its folder stands; a broken one is told."""

import contextlib
import json
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import pytest

from schemas.errors import CorruptLakeError, StoreError
from tasks.lake.identity import NAME, find_lake_id, lake_id, lake_to_write


def test_it_is_made_once_and_goes_with_the_folder(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    assert find_lake_id(lake) is None
    assert not lake.exists(), "looking makes nothing"
    with ThreadPoolExecutor(8) as pool:
        (made,) = set(pool.map(lake_id, [lake] * 8))
    (tmp_path / "same").symlink_to(lake)
    assert lake_id(tmp_path / "same") == made
    moved = lake.rename(tmp_path / "moved")
    assert find_lake_id(moved) == lake_id(moved) == made
    assert lake_id(tmp_path / "another") != made


NO_IDS = [b"", b"{", b"[]", b"null", b"{}", b"\xff", b"[" * 100_000, b'{"lake_id": null}', b'{"lake_id": ""}']


@pytest.mark.parametrize("content", NO_IDS, ids=lambda content: repr(content[:20]))
def test_a_broken_one_is_told_and_not_replaced(tmp_path: Path, content: bytes) -> None:
    (tmp_path / NAME).write_bytes(content)
    with pytest.raises(CorruptLakeError, match=r"does not say which lake this is.* restore it from a backup, or delete it"):
        lake_id(tmp_path)
    assert (tmp_path / NAME).read_bytes() == content


def test_a_flipped_bit_makes_no_other_lake_of_it(tmp_path: Path) -> None:
    made = lake_id(tmp_path)
    content = (tmp_path / NAME).read_bytes()
    for at in range(len(content)):
        for bit in range(8):
            (tmp_path / NAME).write_bytes(content[:at] + bytes([content[at] ^ (1 << bit)]) + content[at + 1 :])
            with contextlib.suppress(CorruptLakeError):  # a blank that is another kind of blank is nothing
                assert find_lake_id(tmp_path) == made


def test_where_it_cannot_be_written_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("a file stands where the lake is to be")
    with pytest.raises((StoreError, NotADirectoryError)):
        lake_id(tmp_path / "lake")


OWN = version("salon")


@pytest.mark.parametrize("noted", ["99.0", "0.100.0.dev1"])
def test_into_what_a_later_release_has_written_an_earlier_writes_nothing(tmp_path: Path, noted: str) -> None:
    content = json.dumps({"lake_id": lake_id(tmp_path), "release": noted})
    (tmp_path / NAME).write_text(content)
    with pytest.raises(StoreError, match=rf"Salon {noted} has written into the lake .*, and this is {OWN}: .*; use {noted} or"):
        lake_to_write(tmp_path)
    assert (tmp_path / NAME).read_text() == content


@pytest.mark.parametrize("noted", [OWN, OWN.partition(".dev")[0], "0.1.12", None])
def test_who_writes_after_an_earlier_release_is_noted(tmp_path: Path, noted: str | None) -> None:
    made = lake_id(tmp_path)
    if noted is not None:
        (tmp_path / NAME).write_text(json.dumps({"lake_id": made, "release": noted}))
    assert lake_to_write(tmp_path) == made == find_lake_id(tmp_path)
    assert json.loads((tmp_path / NAME).read_text()) == {"lake_id": made, "release": OWN}
