"""Whom a night compares its newest checkpoint with: the one directly before it in one order of checkpoints, or nobody."""

import json
import shutil
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import polars as pl
import pytest

from tasks.publish.reading import publications
from tests.flows.flow_support import Said
from tests.support.night_world import MODEL, World, write_benchmark

ALIGNMENT = Path(__file__).parents[3] / "rubrics" / "alignment"
Salon = Callable[..., Said]
PAIR = ["checkpoint_a", "checkpoint_b"]
FEW = "[statistics]\nmin_paired_prompts = 2"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _night(salon: Salon, file: Path, day: int) -> Said:
    said = salon("nightly", file, "--run-date", f"2026-01-0{day}")
    assert said.code == 0, said.err
    return said


def _ready(folder: Path, *names: str) -> None:
    """The table of checkpoints: one a day, in this order."""
    rows = [f"{MODEL},{name},2026-01-0{day}" for day, name in enumerate(names, 1)]
    (folder / "ready.csv").write_text("\n".join(["model,checkpoint,date", *rows]))


def _published(lake: Path, day: int) -> tuple[str, pl.DataFrame, pl.DataFrame]:
    """Id, comparisons with predecessors over all categories, and standings of a night."""
    (found,) = [one for one in publications(lake) if one.run_date == f"2026-01-0{day}"]
    comparisons, standings = (pl.read_parquet(found.folder / f"{name}.parquet") for name in ("comparisons", "standings"))
    return found.publication_id, comparisons.filter(comparison="predecessor", category="__macro__"), standings


def _gate(salon: Salon, lake: Path, publication: str) -> tuple[int, list[dict[str, Any]]]:
    said = salon("gate", publication, "--lake", lake, "--format", "json")
    return said.code, json.loads(said.out)["rulings"]


@pytest.fixture
def dated(tmp_path: Path, judge_url: str) -> Path:
    """A benchmark whose table of checkpoints orders them."""
    for number in range(3):
        World(tmp_path).make(number)
    return write_benchmark(tmp_path, judge_url, nightly='checkpoints = "ready.csv"')


def test_the_table_of_checkpoints_orders_comparisons_gate_and_plain_runs(salon: Salon, dated: Path) -> None:
    lake = dated.parent / "lake"
    _ready(dated.parent, "step-2")
    _night(salon, dated, 1)
    _ready(dated.parent, "step-2", "step-0")
    _night(salon, dated, 2)
    key, compared, standings = _published(lake, 2)
    assert compared.select(PAIR).rows() == [("step-0", "step-2")]
    assert dict(standings.select("checkpoint", "place").rows()) == {"step-2": 1, "step-0": 2}
    _, (ruling,) = _gate(salon, lake, key)
    assert (ruling["candidate"], ruling["reference"]) == ([MODEL, "step-0"], [MODEL, "step-2"])
    assert salon("verify", lake / "publish" / "v1" / "nights" / key).code == 0
    _ready(dated.parent, "step-2", "step-0", "step-1")
    assert salon("run", dated, "--run-date", "2026-01-03").code == 0
    first, compared, _ = _published(lake, 3)
    assert sorted(compared.select(PAIR).rows()) == [("step-0", "step-2"), ("step-1", "step-0")]
    _ready(dated.parent, "step-0", "step-1", "step-2")
    assert salon("run", dated, "--run-date", "2026-01-03").code == 0
    (other,) = {one.publication_id for one in publications(lake) if one.run_date == "2026-01-03"} - {first}
    assert "lineage" not in json.loads((lake / "publish" / "v1" / "nights" / other / "provenance.json").read_text())


def test_where_the_one_before_is_not_in_the_table_no_other_stands_in(salon: Salon, tmp_path: Path, judge_url: str) -> None:
    for number in range(3):
        World(tmp_path).make(number)
    shutil.copytree(ALIGNMENT, tmp_path / "mine" / "matching")
    own = tmp_path / "mine" / "matching" / "rubric.toml"
    own.write_text(own.read_text().replace('id = "alignment"', 'id = "matching"'))
    of_table = f'checkpoints = "ready.csv"\nbaseline = "{MODEL}/step-0"\n{FEW}'
    file = write_benchmark(tmp_path, judge_url, nightly=of_table)
    _ready(tmp_path, "step-0")
    _night(salon, file, 1)
    _ready(tmp_path, "step-0", "step-1")
    _night(salon, file, 2)
    file = write_benchmark(tmp_path, judge_url, nightly=of_table, rubrics=("alignment", "matching"))
    file.write_text('rubric_folders = ["mine"]\n' + file.read_text())
    _ready(tmp_path, "step-0", "step-1", "step-2")
    said = _night(salon, file, 3)
    left_out = (
        "step-1, the one before step-2, is not in this table, and no other is compared in its place: no reply is stored under "
        "matching by salon-demo-judge"
    )
    assert left_out in _one_line(said.err)
    assert "step-2 was not compared with step-1: that one, directly before it, is not in this table." in _one_line(said.out)
    key, compared, _ = _published(tmp_path / "lake", 3)
    found = compared.select("rubric_id", *PAIR, "delta", "reason").rows()
    assert sorted(found) == [(rubric, "step-2", "step-1", None, "predecessor_missing") for rubric in ("alignment", "matching")]
    shown = json.loads(salon("table", "--format", "json").out)
    assert {row["predecessor"] for row in shown if row["checkpoint"] == "step-2"} == {"step-1 is not in this table"}
    page = (tmp_path / "lake" / "publish" / "v1" / "nights" / key / "report.html").read_text()
    assert '<span class="none">step-1 is not in this table</span>' in page
    code, rulings = _gate(salon, tmp_path / "lake", key)
    assert code == 1
    assert {(ruling["outcome"], ruling["reason"]) for ruling in rulings} == {("unknown", "predecessor_missing")}
    assert salon("verify", tmp_path / "lake" / "publish" / "v1" / "nights" / key, "--file", file).code == 0


@contextmanager
def _losing(judge_url: str, nth: list[int]) -> Iterator[str]:
    """The judge behind a server that answers those of its requests with HTTP 500 whose numbers are in `nth`, from 1."""
    lock, n_asked = Lock(), [0]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            with lock:
                n_asked[0] += 1
                is_lost = n_asked[0] in nth
            status, said = 500, b'{"error": {"message": "lost"}}'
            if not is_lost:
                asked = urllib.request.Request(  # of the judge on loopback
                    judge_url.removesuffix("/v1") + self.path, body, {"content-type": "application/json"}
                )
                with urllib.request.urlopen(asked) as answer:
                    status, said = 200, answer.read()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


@pytest.mark.parametrize(("n_lost", "is_there"), [(1, True), (10, False)], ids=["a handful is asked again", "much is not"])
def test_a_checkpoint_that_lost_replies(salon: Salon, tmp_path: Path, judge_url: str, n_lost: int, is_there: bool) -> None:
    for number in range(3):
        World(tmp_path).make(number)
    _ready(tmp_path, "step-0")
    lost = [24 + number for number in range(1, n_lost + 1)]
    with _losing(judge_url, lost) as url:
        nightly, limits = 'checkpoints = "ready.csv"', "attempts_per_request = 1"
        file = write_benchmark(tmp_path, url, nightly=nightly, limits=limits)
        _night(salon, file, 1)
        _ready(tmp_path, "step-0", "step-1")
        salon("nightly", file, "--run-date", "2026-01-02")
        _ready(tmp_path, "step-0", "step-1", "step-2")
        said = _night(salon, file, 3)
    _, compared, _ = _published(tmp_path / "lake", 3)
    assert [row[:2] for row in compared.select(PAIR).rows()][-1] == ("step-2", "step-1")
    assert (compared["reason"].to_list()[-1] == "predecessor_missing") != is_there
    lack = f"{n_lost} of its 24 replies under alignment by salon-demo-judge are missing"
    assert (lack in _one_line(said.err)) != is_there
