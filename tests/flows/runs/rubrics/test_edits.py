"""Edits judged from a benchmark file: the source and the edited picture of each reach the judge, in the rubric's order."""

import base64
import json
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import duckdb
import polars as pl
import pytest
from PIL import Image

from rubrics.golden import write_request
from rubrics.loading import load_rubric
from schemas.tables.stored import JUDGEMENTS, PICTURES, SAMPLES
from tasks.lake.reading import Lake
from tests.flows.flow_support import Said
from tests.flows.runs.rubrics.own_rubric import own_rubric, write_rubric
from tests.support.servers.provider import Play, Provider, completion

RUBRIC = """\
id = "edits"
version = "1"
title = "Whether an edit does what its instruction asks, and no more"
source = "written for the tests"
prompt = "prompt.txt"
reply = "json"
needs = ["instruction"]
pictures = ["source", "image"]
unit = ["instruction"]
slots = { "<instruction>" = "instruction" }
scale = { min = 0, max = 10, step = 1 }
[[dimensions]]
key = "success"
at = "score[0]"
[[dimensions]]
key = "restraint"
at = "score[1]"
[[messages]]
role = "user"
parts = [{ kind = "image", value = "source" }, { kind = "image" }, { kind = "template" }]
"""
PROMPT = 'First the source, then the edit. success and restraint, both 0-10: {"score": [...]}. Told was: <instruction>'
BENCHMARK = own_rubric("edits", "edits", 'pictures = {{ image = "edited", source = "input" }}', "[limits]\nshard_size = 3")


@pytest.fixture
def provider() -> Iterator[Provider]:
    one = Provider()
    one.then = Play(body=completion('{"score": [7, 9], "reasoning": "ok"}'))
    yield one
    one.close()


@pytest.fixture
def edits(tmp_path: Path, provider: Provider) -> Path:
    """Two editors, three instructions on two source pictures; one edit is missing, one source is broken."""
    write_rubric(tmp_path, "edits", RUBRIC, PROMPT)
    for number in range(8):
        Image.new("RGB", (40 + number, 30), (30 * number, 90, 10)).save(tmp_path / f"{number}.png")
    (tmp_path / "cut.png").write_bytes((tmp_path / "0.png").read_bytes()[:-20])
    tasks = [("add a hat", "0.png"), ("remove the hat", "0.png"), ("make it blue", "1.png")]
    rows = [
        {"model": model, "instruction": told, "input": source, "edited": f"{2 + 3 * place + number}.png"}
        for place, model in enumerate(("a", "b"))
        for number, (told, source) in enumerate(tasks)
    ]
    rows += [
        {"model": "a", "instruction": "turn it", "input": "0.png", "edited": None},
        {"model": "a", "instruction": "turn it round", "input": "cut.png", "edited": "2.png"},
    ]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "b.toml").write_text(BENCHMARK.format(url=provider.url))
    return tmp_path


def _rows(lake: Lake, table: object) -> pl.DataFrame:
    (marker,) = (lake.root / "complete" / table.name).iterdir()  # type: ignore[attr-defined]
    return lake.scan(table, marker.stem).collect()  # type: ignore[arg-type]


def test_source_and_edit_reach_the_judge_and_the_run_is_verified(
    edits: Path, provider: Provider, salon: Callable[..., Said]
) -> None:
    write_request(load_rubric(edits / "mine" / "edits"), "one", {"instruction": "add a hat"}, True, {"source": 1})
    assert salon("rubrics", "lint", "mine").code == 0
    (edits / "sample.json").write_text(json.dumps({"instruction": "add a hat", "source": "0.png", "image": "2.png"}))
    tried = salon("rubrics", "try", "mine/edits", "--sample", "sample.json")
    assert tried.code == 0
    assert tried.out.index("[image: source]") < tried.out.index("[image]") < tried.out.index("add a hat")
    said = salon("run", "b.toml", "--run-date", "2026-01-02")
    assert said.code in (0, 1), said.err

    asked = {}
    for body in provider.bodies:
        (message,) = body["messages"]
        *pictures, text = message["content"]
        urls = [picture["image_url"]["url"].partition(",") for picture in pictures]
        assert {start for start, _, _ in urls} == {"data:image/png;base64"}
        asked[tuple(sha256(base64.b64decode(content)).hexdigest() for _, _, content in urls)] = text["text"]
    digests = [sha256((edits / f"{number}.png").read_bytes()).hexdigest() for number in range(8)]
    told = ["add a hat", "remove the hat", "make it blue"]
    expected = {
        (digests[[0, 0, 1][number]], digests[2 + 3 * place + number]): PROMPT.replace("<instruction>", told[number])
        for place in range(2)
        for number in range(3)
    }
    assert asked == expected

    lake = Lake(edits / "lake")
    samples, pictures, judgements = (_rows(lake, table) for table in (SAMPLES, PICTURES, JUDGEMENTS))
    assert sorted(pictures["image_sha256"]) == sorted(digests), "a source picture stands there once, whoever edits it"
    assert samples["status"].value_counts(sort=True).rows() == [("ok", 7), ("broken_image", 1)]
    assert samples.filter(status="broken_image")["detail"][0].startswith("source: ")
    assert judgements.group_by("status", "reason").len().sort("len").rows()[-1] == ("planned", None, 6)
    assert set(judgements["reason"].drop_nulls()) == {"missing:image", "broken_image"}

    (publication,) = (path for path in (lake.root / "publish" / "v1" / "edits").iterdir() if path.is_dir())
    verified = salon("verify", publication, "--file", "b.toml")
    assert verified.code == 0, verified.out
    n_asked = provider.n
    assert salon("run", "b.toml", "--run-date", "2026-01-03").code in (0, 1)
    assert provider.n == n_asked, "nothing is asked twice"
    with duckdb.connect() as database:
        database.execute((publication / "views.sql").read_text())
        counts = "role, count(*), count(DISTINCT image_sha256), min(width_px)"
        query = f"SELECT {counts} FROM salon_shown($lake) GROUP BY role ORDER BY role"
        shown = database.execute(query, {"lake": str(lake.root)}).fetchall()
    assert shown == [("image", 7, 6, 42), ("source", 7, 2, 40)]
