"""What a user gets wrong, or finds broken: one clear line that says what to do, the right exit code, and nothing lost."""

import json
import socket
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from PIL import Image

from tests.flows.flow_support import Said, runs_of
from tests.support.night_world import n_billed

pytestmark = pytest.mark.slow

JUDGE = '[[judges]]\nmodel = "salon-demo-judge"\nbase_url = "{url}"\n'
BENCHMARK = """\
name = "small"
[[sources]]
name = "drawn"
reader = "manifest"
path = "pictures/{manifest}"
model = "m"
[[rubrics]]
id = "{rubric}"
{judge}
[gate]
min_coverage = 0.0
"""


@pytest.fixture
def benchmark(tmp_path: Path, judge_url: str) -> Callable[..., Path]:
    """Writes a benchmark file over a manifest with this content."""
    (tmp_path / "pictures").mkdir()
    for name in ("a.png", "b.png"):
        Image.new("RGB", (32, 32), (40, 80, len(name))).save(tmp_path / "pictures" / name)
    (tmp_path / "pictures" / "b.png").write_bytes((tmp_path / "pictures" / "a.png").read_bytes() + b" ")

    def write(manifest: str | bytes, name: str = "m.jsonl", rubric: str = "alignment", judge: str = JUDGE) -> Path:
        content = manifest if isinstance(manifest, bytes) else manifest.encode()
        (tmp_path / "pictures" / name).write_bytes(content)
        text = BENCHMARK.format(manifest=name, rubric=rubric, judge=judge.format(url=judge_url))
        (tmp_path / "b.toml").write_text(text)
        return tmp_path / "b.toml"

    return write


def _rows(*rows: dict[str, object]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


GOOD = {"image": "a.png", "prompt": "a red square"}
STOPS = {
    "unknown rubric": ({"manifest": _rows(GOOD), "rubric": "beauty"}, ["'beauty'", "alignment, caption, composition"]),
    "empty dataset": ({"manifest": ""}, ["drawn", "pictures/m.jsonl"]),
    "no manifest": ({"manifest": _rows(GOOD), "name": "m.jsonl", "missing": True}, ["m.jsonl"]),
    "no prompt column": ({"manifest": _rows({"image": "a.png"})}, ["needs prompt", "m.jsonl#1", "columns"]),
    "columns under other names": (
        {"manifest": "Image;promt\na.png;x\n", "name": "m.csv"},
        ["needs image and prompt", 'the columns of source drawn: Image, promt (did you mean image = "Image", prompt = "promt"?)'],
    ),
    "two separators in a header": (
        {"manifest": "image;prompt, long\na.png;x\n", "name": "m.csv"},
        ["m.csv, row 0 has a comma and a semicolon outside quotes", "quote the names"],
    ),
    "category without a prompt": (
        {"manifest": _rows(GOOD | {"category": "texture"}), "rubric": "composition"},
        ["'texture'", "single_object"],
    ),
    "no category at all": ({"manifest": _rows(GOOD), "rubric": "composition"}, ["category", "single_object"]),
    "no key for a remote judge": (
        {"manifest": _rows(GOOD), "judge": '[[judges]]\nmodel = "x"\napi_key_env = "NO_SUCH_KEY"\n'},
        ["NO_SUCH_KEY", "export"],
    ),
    "all files missing": (
        {"manifest": _rows(GOOD | {"image": "no/x.png"}, GOOD | {"image": "no/y.png"})},
        ["cannot use all 2 samples: missing_file (the first: drawn, m.jsonl#1: there is no file 'no/x.png'", "fix"],
    ),
    "all rows in Latin-1": (
        {"manifest": "image,prompt\na.png,caf\xe9\nb.png,caf\xe9\n".encode("latin-1"), "name": "m.csv"},
        ["bad_value (the first: drawn, m.csv#1: the row holds a byte that is not UTF-8)"],
    ),
    "manifest is not JSON": ({"manifest": "{not json}\n"}, ["m.jsonl", "1"]),
}


@pytest.mark.parametrize("case", STOPS.values(), ids=STOPS.keys())
def test_what_stops_a_run_says_what_to_do(
    case: tuple[dict[str, object], list[str]], benchmark: Callable[..., Path], salon: Callable[..., Said], tmp_path: Path
) -> None:
    given, words = dict(case[0]), case[1]
    is_missing = given.pop("missing", False)
    file = benchmark(**given)
    if is_missing:
        (tmp_path / "pictures" / "m.jsonl").unlink()
    said = salon("run", file)
    assert said.code == 2, said.out + said.err
    for word in words:
        assert word in said.err
    assert "Traceback" not in said.err


QUARANTINED = {
    "text file for an image": ({"image": "t.png", "prompt": "x"}, "not_an_image"),
    "leaves its root": ({"image": "../secret.png", "prompt": "x"}, "outside_root"),
    "absolute path": ({"image": "/etc/passwd", "prompt": "x"}, "outside_root"),
    "remote address": ({"image": "http://127.0.0.1:9/x.png", "prompt": "x"}, "remote_refused"),
    "missing file": ({"image": "none.png", "prompt": "x"}, "missing_file"),
    "duplicate id": (GOOD | {"item_id": "one", "prompt": "other"}, "repeated_id"),
}


def test_a_bad_row_is_kept_with_its_status_and_the_run_goes_on(
    benchmark: Callable[..., Path], salon: Callable[..., Said], tmp_path: Path
) -> None:
    bad = [row for row, _ in QUARANTINED.values()]
    file = benchmark(_rows(GOOD | {"item_id": "one"}, *bad, GOOD | {"image": "b.png", "item_id": "two"}))
    (tmp_path / "pictures" / "t.png").write_text("I am a text file.")
    (tmp_path / "secret.png").write_bytes((tmp_path / "pictures" / "a.png").read_bytes())
    said = salon("run", file)
    assert said.code in (0, 1), said.err
    samples = pl.read_parquet(tmp_path / "lake/samples/*/*.parquet", columns=["source_key", "status", "detail"])
    assert samples["status"].to_list() == ["ok", *(status for _, status in QUARANTINED.values()), "ok"]
    assert samples.filter(pl.col("status") != "ok")["detail"].null_count() == 0
    assert "not usable: " in said.out
    assert "1 repeated_id" in said.out
    (table,) = (tmp_path / "lake/publish/v1/small").glob("*/benchmark_long.parquet")
    total = pl.read_parquet(table).filter(category="__macro__").row(0, named=True)
    assert total["n_judgements"] == 8
    rows = pl.read_parquet(table.parent / "failures.parquet").filter(cell_id=total["cell_id"])
    failures = dict(rows.select("reason", "n_failed").rows())
    assert Counter(status for _, status in QUARANTINED.values()).items() <= failures.items()
    assert failures["refusal"] == 2  # the demo judge knows no such picture


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"\xef\xbb\xbfimage,prompt\r\na.png,one\r\nb.png,two\r\n", id="byte order mark and CRLF"),
        pytest.param(b"image,prompt\ra.png,one\rb.png,two\r", id="lone carriage returns"),
        pytest.param(b'image,prompt\na.png,"one\rline"\nb.png,two\n', id="a carriage return in a field"),
        pytest.param(b"\xef\xbb\xbfimage;prompt\r\na.png;one, red\r\nb.png;two\r\n", id="semicolons"),
        pytest.param(b"image\tprompt\na.png\tone; red\nb.png\ttwo\n", id="tabs"),
    ],
)
def test_csv_as_spreadsheets_write_it(
    content: bytes, benchmark: Callable[..., Path], salon: Callable[..., Said], tmp_path: Path
) -> None:
    said = salon("plan", benchmark(content, name="m.csv"))
    assert said.code == 0, said.err
    samples = pl.read_parquet(tmp_path / "lake/samples/*/*.parquet", columns=["prompt", "status"])
    assert samples["status"].to_list() == ["ok", "ok"]
    assert samples["prompt"][1] == "two"
    other = next((word for mark, word in ((b";", "semicolon"), (b"\t", "tab")) if mark in content.splitlines()[0]), None)
    note = f"source 'drawn': 'm.csv' is read with a {other} as separator"
    assert (note in " ".join(said.out.split())) == (other is not None)


def test_an_endpoint_that_is_down_costs_nothing_and_the_run_resumes(
    benchmark: Callable[..., Path], salon: Callable[..., Said], judge_url: str, tmp_path: Path
) -> None:
    file = benchmark(_rows(GOOD, GOOD | {"image": "b.png"}))
    assert salon("run", file, "--run-date", "2026-01-02").code == 1  # both refused, and paid for
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    Image.new("RGB", (32, 32), (9, 9, 9)).save(tmp_path / "pictures" / "c.png")
    (tmp_path / "pictures" / "m.jsonl").write_text(_rows(GOOD, GOOD | {"image": "b.png"}, GOOD | {"image": "c.png"}))
    file.write_text(file.read_text().replace(judge_url, dead))
    said = salon("run", file, "--run-date", "2026-01-02")
    assert said.code == 3, said.out + said.err
    assert dead in said.err
    assert "kept" in said.err
    file.write_text(file.read_text().replace(dead, judge_url))
    assert salon("run", file, "--run-date", "2026-01-02").code == 1
    last = runs_of(tmp_path / "lake").row(-1, named=True)
    assert (last["n_cached"], last["n_asked"]) == (2, 1)


@pytest.mark.parametrize("words", ["", ",", '""', " "], ids=["empty", "a comma", "quotes", "a blank"])
@pytest.mark.parametrize("command", ["plan", "run", "backfill"])
def test_checkpoints_that_name_none_are_not_all_of_them(
    salon: Callable[..., Said], benchmark: Callable[..., Path], command: str, words: str
) -> None:
    """As of a script whose variable is not set."""
    said = salon(command, benchmark(_rows(GOOD)), "--checkpoints", words)
    assert (said.code, "names nothing" in said.err) == (2, True), said


@pytest.mark.parametrize("command", ["plan", "run", "backfill"])
@pytest.mark.parametrize("words", ["1,2x", "m/1,n/2", "2x"])
def test_a_checkpoint_that_no_source_has_is_left_out_by_no_command(
    salon: Callable[..., Said], benchmark: Callable[..., Path], judge_url: str, command: str, words: str
) -> None:
    n_before = n_billed(judge_url)
    rows = [GOOD | {"checkpoint": name, "image": image} for name, image in (("1", "a.png"), ("2", "b.png"))]
    said = salon(command, benchmark(_rows(*rows)), "--checkpoints", words)
    wrong = words.removeprefix("1,").removeprefix("m/1,")
    assert (said.code, f"checkpoint {wrong} does not exist; available: m/1, m/2" in said.err) == (2, True), said
    assert n_billed(judge_url) == n_before


def test_a_checkpoint_whose_rows_cannot_be_read_is_there(salon: Callable[..., Said], benchmark: Callable[..., Path]) -> None:
    file = benchmark(_rows(GOOD | {"model": "m"}), "m-1.jsonl")
    (file.parent / "pictures" / "m-4.jsonl").write_text(_rows(GOOD | {"model": {"a": 1}}))
    file.write_text(file.read_text().replace("m-1.jsonl", "m-{checkpoint}.jsonl").replace('model = "m"\n', "", 1))
    said = salon("plan", file, "--checkpoints", "1,4")
    assert (said.code, "model: expected a text" in said.out + said.err) == (0, True), said


def test_unknown_options_and_commands_are_named(salon: Callable[..., Said]) -> None:
    assert (salon("run", "b.toml", "--fast").code, salon("publish").code) == (2, 2)
    said = salon("run", "none.toml")
    assert said.code == 2
    assert "none.toml" in said.err
