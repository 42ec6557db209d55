"""Where the manifest reader looks: no link leads it out of the source's folder, and nothing but a regular file is opened."""

import os

import pytest

from schemas.errors import SourceError


def _prompts(samples):
    return [sample.texts["prompt"] for sample in samples]


def test_a_folders_manifest_may_be_a_link_within_it_and_not_out_of_it(read_all, tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "v2.csv").write_text("image,prompt\n,mine\n")
    (tmp_path / "set" / "manifest.csv").symlink_to("v2.csv")
    assert _prompts(read_all(reader="manifest", path="set")) == ["mine"]
    (tmp_path / "private.csv").write_text("image,prompt\n,foreign\n")
    (tmp_path / "set" / "manifest.csv").unlink()
    (tmp_path / "set" / "manifest.csv").symlink_to("../private.csv")
    with pytest.raises(SourceError, match=r"'manifest\.csv' is a link out of the source's folder"):
        read_all(reader="manifest", path="set")
    assert _prompts(read_all(reader="manifest", path="set/manifest.csv")) == ["foreign"], "what the benchmark file names"


NO_FILES = {"a pipe": (os.mkfifo, "a pipe"), "a device": (lambda path: path.symlink_to("/dev/zero"), "a device")}


@pytest.mark.parametrize("suffix", ["jsonl", "json", "csv", "tsv", "parquet"])
@pytest.mark.parametrize(("make", "what"), NO_FILES.values(), ids=NO_FILES.keys())
def test_a_manifest_that_is_no_file_is_refused_at_once(read_all, tmp_path, make, what, suffix):
    """Without an end to it, each would be read until memory is full, or waited for."""
    make(tmp_path / f"manifest.{suffix}")
    with pytest.raises(SourceError, match=f"it is {what}, not a regular file"):
        read_all(reader="manifest", path=f"manifest.{suffix}")
    with pytest.raises(SourceError, match=r"not a regular file|out of the source's folder"):
        read_all(reader="manifest", path=".")
