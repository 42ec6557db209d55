"""Every benchmark file in docs/datasets.md ingests a folder laid out as the page says."""

import io
import json
import re
import tarfile
from pathlib import Path

import polars as pl
import pytest

from schemas.benchmark.file import load_benchmark
from schemas.statuses.rows import SampleStatus
from tests.support.ingesting import ingest

PAGE = (Path(__file__).parents[3] / "docs" / "datasets.md").read_text(encoding="utf-8")
SNIPPETS = {re.search(r'name = "(\w+)"', text)[1]: text for text in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)}


@pytest.fixture
def laid_out(tmp_path, picture):
    for name in ("portraits", "birds", "hub/data", "outputs/sdxl/base/00000/samples", "shards", "drawn/step-900"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "portraits" / "manifest.csv").write_text("file,caption\na.png,a face\n")
    (tmp_path / "portraits" / "a.png").write_bytes(picture())
    talk = {"id": 1, "image": "absent.jpg", "conversations": [{}, {"value": "a cow"}], "restriction": ["brief"]}
    (tmp_path / "captions.jsonl").write_text(json.dumps(talk))
    (tmp_path / "birds" / "metadata.jsonl").write_text('{"file_name": "a.png", "text": "a bird"}')
    (tmp_path / "birds" / "a.png").write_bytes(picture())
    (tmp_path / "drawn" / "step-900" / "a red cup.png").write_bytes(picture())
    edit = {"edited": "portraits/a.png", "input": "birds/a.png", "instruction": "add a hat"}
    (tmp_path / "edits.jsonl").write_text(json.dumps(edit))
    image = {"bytes": picture(), "path": None}
    frame = pl.DataFrame(
        {"image": [image], "prompt": ["a cow"]}, schema_overrides={"image": pl.Struct({"bytes": pl.Binary, "path": pl.String})}
    )
    frame.write_parquet(tmp_path / "hub" / "data" / "test-00000-of-00001.parquet")
    prompt = tmp_path / "outputs" / "sdxl" / "base" / "00000"
    (prompt / "metadata.jsonl").write_text('{"tag": "counting", "prompt": "two cows"}')
    (prompt / "samples" / "0000.png").write_bytes(picture())
    with tarfile.open(tmp_path / "shards" / "0.tar", "w") as archive:
        for name, content in (("a.png", picture()), ("a.txt", b"a cow")):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return tmp_path


@pytest.mark.parametrize("snippet", SNIPPETS.values(), ids=SNIPPETS.keys())
def test_a_snippet_of_the_page_runs(laid_out, lake, snippet):
    (laid_out / "bench.toml").write_text(snippet)
    assert ingest(load_benchmark(laid_out / "bench.toml"), lake).n_by_status == {"ok": 1}


def test_the_page_has_every_reader_and_every_status():
    from tasks.ingest.readers import READERS

    used = set(re.findall(r'reader = "(\w+)"', PAGE))
    assert used == set(READERS)
    assert all(f"`{status.value}`" in PAGE for status in SampleStatus if status is not SampleStatus.OK)
