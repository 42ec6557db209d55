"""A benchmark judged where there is no network: exported as batch lines, answered by another program, imported, published.

The judge's address in these files is nobody's and there is no key: a command that sent anything would fail.
"""

import asyncio
import base64
import hashlib
import json
import random
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from demo.running import running_judge
from flows.observability.progress import Reporter
from flows.run.preview import export
from tasks.judge.batch.state import Batch, BatchState, declare
from tasks.ledger.claims import Claims
from tasks.ledger.ledger import Ledger
from tasks.publish.reading import current
from tests.flows.flow_support import Said, runs_of
from tests.support.night_world import N_SAMPLES, World, write_benchmark

RUN = ("--run-date", "2026-03-04")
NOBODY = "https://judge.invalid/v1"
RUBRICS = ("alignment", "composition")
N = len(RUBRICS) * 2 * N_SAMPLES
SCENARIO = """
[faults]
first_attempts = 1
[faults.shares]
malformed = 0.2
error_500 = 0.1
"""
"""Each by a request's content and the number of its attempt: online and in files the same requests go wrong."""


@pytest.fixture
def judge(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    with running_judge(tmp_path / "scenario.toml") as url:
        yield url


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A benchmark file of a judge that cannot be reached, with its lake beside it."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for number in (0, 1):
        World(tmp_path).make(number)
    return write_benchmark(tmp_path, NOBODY, rubrics=RUBRICS)


def answered(url: str, line: dict[str, Any]) -> dict[str, Any]:
    """What an engine writes for a line of its input."""
    request = urllib.request.Request(url + "/chat/completions", json.dumps(line["body"]).encode())
    request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request) as answer:
            status, body = answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        status, body = error.code, json.load(error)
    assert (line["method"], line["url"]) == ("POST", "/v1/chat/completions")
    return {"id": "r", "custom_id": line["custom_id"], "response": {"status_code": status, "body": body}, "error": None}


def said_of(*texts: str, status: int = 200) -> dict[str, Any]:
    """The response of a line whose judge says this."""
    choices = [{"index": 0, "message": {"content": text}, "finish_reason": "stop"} for text in texts]
    return {"status_code": status, "body": {"model": "m", "choices": choices}}


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in sorted(folder.glob("*.jsonl")) for line in file.read_text().splitlines()]


def write(path: Path, lines: list[dict[str, Any]]) -> Path:
    """The folder of a file with these lines."""
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path.parent


def stats(url: str) -> Any:
    with urllib.request.urlopen(url.removesuffix("/v1") + "/stats") as answer:
        return json.load(answer)


def tables(lake: Path) -> dict[str, pl.DataFrame]:
    """What was published of the pictures, as it would be whoever was asked when."""
    folder = current(lake).folder
    found = {name: pl.read_parquet(folder / f"{name}.parquet") for name in ("benchmark_long", "standings", "comparisons")}
    return {name: frame.drop("publication_id", strict=False) for name, frame in found.items()}


def test_a_benchmark_by_files_is_the_benchmark_online(tmp_path: Path, salon: Callable[..., Said], judge: str, file: Path) -> None:
    online = write_benchmark(tmp_path, judge, "online.toml", rubrics=RUBRICS)
    online.write_text(f'lake = "online/"\n{online.read_text()}')
    assert salon("run", online, *RUN).code in (0, 1)
    bought = stats(judge)
    urllib.request.urlopen(urllib.request.Request(judge.removesuffix("/v1") + "/stats/reset", method="POST"))

    assert salon("export", file, "--batch-files", "asked", "--max-mb", "1").code == 0
    manifest = json.loads((tmp_path / "asked" / "manifest.json").read_text())
    assert (manifest["benchmark"], manifest["n_requests"]) == ("nights", N)
    for one in manifest["files"]:
        content = (tmp_path / "asked" / one["name"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == one["sha256"]
        assert (one["judge"], one["n_requests"], one["n_bytes"]) == ("salon-demo-judge", content.count(b"\n"), len(content))
        assert len(content) <= 1e6

    lines = lines_of(tmp_path / "asked")
    assert len({line["custom_id"] for line in lines}) == N
    random.Random(1).shuffle(lines)
    results = [answered(judge, line) for line in lines]
    write(tmp_path / "half" / "a.jsonl", results[: N // 2])
    first = salon("import", file, "--batch-results", "half", *RUN)
    assert first.code == 1, "published with the coverage as it is, which is under the floor"
    assert f"imported    {N // 2} rows" in first.out
    again = salon("import", file, "--batch-results", "half", *RUN)
    assert " 0 stored" in again.out
    assert "unchanged" in again.out

    write(tmp_path / "rest" / "c.jsonl", results[N // 2 - 3 : -10])
    write(tmp_path / "rest" / "b.jsonl", results[-10:])
    whole = salon("import", file, "--batch-results", "rest", *RUN)
    is_failed = [result["response"]["status_code"] != 200 for result in results]
    assert whole.code in (0, 1), whole.err
    assert f"{3 - sum(is_failed[N // 2 - 3 : N // 2])} there already" in whole.out

    assert salon("export", file, "--batch-files", "again").code == 0
    left = lines_of(tmp_path / "again")
    asks = [line["custom_id"][-2:] for line in left]
    assert asks.count("-0") == sum(is_failed) > 0, "what failed is asked again"
    assert asks.count("-1") > 0, "what could not be read is asked once more"
    write(tmp_path / "later" / "x.jsonl", [answered(judge, line) for line in left])
    assert salon("import", file, "--batch-results", "later", *RUN).code == 0
    for name, frame in tables(tmp_path / "lake").items():
        assert frame.height
        assert frame.equals(tables(tmp_path / "online")[name]), name
    billed = stats(judge)
    assert billed["n_items_by_times_billed"] == bought["n_items_by_times_billed"]
    assert billed["n_requests"] == bought["n_requests"]
    runs, paid = runs_of(tmp_path / "lake"), runs_of(tmp_path / "online")
    for column in ("n_input_tokens", "n_output_tokens"):
        assert runs[column].sum() == paid[column].sum()
    assert runs["cost_usd"].sum() == pytest.approx(paid["cost_usd"].sum() / 2), "at the price of batches"
    assert salon("verify", current(tmp_path / "lake").folder).code == 0
    assert salon("export", file, "--batch-files", "none").code == 0
    assert not (tmp_path / "none").exists()


def test_lines_of_no_use_are_told_and_cost_nothing(tmp_path: Path, salon: Callable[..., Said], file: Path) -> None:
    assert salon("export", file, "--batch-files", "asked").code == 0
    names = [line["custom_id"] for line in lines_of(tmp_path / "asked") if "Score:" in json.dumps(line)]
    good = {"custom_id": names[0], "response": said_of("Reasoning: plain.\nScore: 4")}
    folder = write(
        tmp_path / "out" / "r.jsonl", [good, good | {"custom_id": "f" * 64 + "-0"}, good | {"custom_id": names[1][:-1] + "2"}]
    )
    with (folder / "r.jsonl").open("a") as results:
        results.write(
            'not JSON\n\n{"id": 7}\n[]\n' + json.dumps({"custom_id": names[1], "error": {"code": "batch_expired"}}) + "\n"
        )
    write(folder / "s.jsonl", [good | {"response": said_of("Reasoning: else.\nScore: 1")}])
    said = salon("import", file, "--batch-results", "out", *RUN)
    assert said.code == 1, said.err
    assert "8 rows: 1 stored, 0 there already, 5 left out, 1 contradicting, 1 failed" in said.out
    assert "r.jsonl, line 4" in said.out
    assert f"left out: r.jsonl, line 2: custom_id '{'f' * 64}-0' matches no request" in " ".join(said.out.split())
    assert "contradicting: s.jsonl, line 1, " in said.out
    assert salon("export", file, "--batch-files", "again").code == 0
    assert len(lines_of(tmp_path / "again")) == N - 1, "what failed, and what nothing came of, is still to be asked"


@pytest.mark.parametrize(
    ("said", "code", "n_asked_again"),
    [
        pytest.param("max_tokens is too large", 3, N, id="in the same words: nothing of it is kept"),
        pytest.param("the prompt has {} tokens", 1, 0, id="each in its own: stored as what came of it"),
    ],
)
def test_a_file_that_an_engine_rejects_whole_is_no_reply_to_any_of_its_requests(
    tmp_path: Path, salon: Callable[..., Said], file: Path, said: str, code: int, n_asked_again: int
) -> None:
    assert salon("export", file, "--batch-files", "asked").code == 0
    every = [
        {
            "custom_id": line["custom_id"],
            "response": {"status_code": 400, "body": {"error": {"message": said.format(9_000 + n)}}},
        }
        for n, line in enumerate(lines_of(tmp_path / "asked"))
    ]
    write(tmp_path / "out" / "r.jsonl", every)
    imported = salon("import", file, "--batch-results", "out", *RUN)
    assert imported.code == code
    assert said.format(9_000) in " ".join((imported.err + imported.out).split())
    assert salon("export", file, "--batch-files", "again").code == 0
    assert len(lines_of(tmp_path / "again") if n_asked_again else []) == n_asked_again


def test_another_model_does_not_answer_in_its_place(tmp_path: Path, salon: Callable[..., Said], file: Path) -> None:
    assert salon("export", file, "--batch-files", "asked").code == 0
    names = [line["custom_id"] for line in lines_of(tmp_path / "asked")]
    reply = said_of("Reasoning: plain.\nScore: 4")
    write(tmp_path / "out" / "a.jsonl", [{"custom_id": names[0], "response": reply}])
    assert salon("import", file, "--batch-results", "out", *RUN).code == 1
    reply["body"]["model"] = "another"
    write(tmp_path / "out" / "b.jsonl", [{"custom_id": names[1], "response": reply}])
    for _ in range(2):
        said = salon("import", file, "--batch-results", "out", *RUN)
        assert said.code == 3
        assert "answers as another now" in " ".join(said.err.split())


@pytest.mark.parametrize(
    ("command", "code", "why"),
    [
        (("export", "{file}", "--batch-files", "made"), 2, "made is not an empty folder"),
        (
            ("export", "{native}", "--batch-files", "new"),
            2,
            'judge claude: batch files for an offline engine are not available for provider = "anthropic"',
        ),
        (("import", "{file}", "--batch-results", "nowhere"), 2, "no results file (*.jsonl)"),
        (("import", "{file}", "--batch-results", "asked"), 2, "besides the 1 exported files of requests"),
        (("import", "{file}", "--batch-results", "others"), 2, "none of 1 lines answers a request of this benchmark"),
        (("import", "{native}", "--batch-results", "others"), 2, "batch files for an offline engine are not available"),
        (("import", "{file}"), 2, "give either --replies RECORDED"),
        (("import", "{file}", "--replies", "r.jsonl", "--batch-results", "others"), 2, "give either --replies RECORDED"),
    ],
    ids=[
        "a folder in use",
        "export of another provider",
        "no folder",
        "requests alone",
        "another benchmark's",
        "results of another provider",
        "neither",
        "both",
    ],
)
def test_what_cannot_be_done_is_said(
    tmp_path: Path, salon: Callable[..., Said], file: Path, command: tuple[str, ...], code: int, why: str
) -> None:
    native = tmp_path / "native.toml"
    native.write_text(
        file.read_text().replace(
            'model = "salon-demo-judge"', 'model = "claude"\nprovider = "anthropic"\nparameters = { max_tokens = 9 }'
        )
    )
    assert salon("export", file, "--batch-files", "asked").code == 0
    write(tmp_path / "others" / "r.jsonl", [{"custom_id": "a-0", "response": said_of("4")}])
    said = salon(*(word.format(file=file, native=native) for word in command))
    assert said.code == code
    assert why in " ".join(said.err.split())
    assert not (tmp_path / "new").exists()
    assert not list(tmp_path.glob(".new.*"))


def test_what_a_batch_api_has_is_not_exported(tmp_path: Path, file: Path) -> None:
    keys = sorted(line["custom_id"][:-2] for line in _exported(file, tmp_path / "all"))

    async def hand_over(ledger: Ledger) -> None:
        claims = Claims(ledger)
        await claims.take(keys[:3])
        batch = Batch("t" * 32, NOBODY, "K", "salon-demo-judge", BatchState.INTENDED, 3, 9, holder_id=claims.owner_id)
        asks = dict.fromkeys(keys[:3], 0)
        await ledger.alone(partial(declare, batch=batch, ask_indexes=asks, reserved_nusd={}))

    with Ledger(f"sqlite:///{tmp_path / 'lake' / 'ledger.db'}") as ledger:
        asyncio.run(hand_over(ledger))
    found = export(file, tmp_path / "rest", 10**9, Reporter())
    assert found.n_in_batches == 3
    assert sorted(line["custom_id"][:-2] for line in lines_of(tmp_path / "rest")) == keys[3:]


def test_lines_too_large_for_a_file_are_told(tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sizes = sorted(len(json.dumps(line)) for line in _exported(file, tmp_path / "all"))
    found = export(file, tmp_path / "some", sizes[-1] - 200, Reporter())
    assert 0 < len(found.too_large) < N
    assert found.n_requests == N - len(found.too_large) == len(lines_of(tmp_path / "some"))
    assert json.loads((tmp_path / "some" / "manifest.json").read_text())["too_large"] == found.too_large


def _exported(file: Path, folder: Path) -> list[dict[str, Any]]:
    export(file, folder, 10**9, Reporter())
    return lines_of(folder)


def test_pictures_named_by_file_are_the_pictures_inline(tmp_path: Path, salon: Callable[..., Said], file: Path) -> None:
    """Each stands once however many requests show it; the rest of a line is the same, its custom_id too."""
    assert salon("export", file, "--batch-files", "inline").code == 0
    assert salon("export", file, "--batch-files", "by file", "--pictures", "file").code == 0
    assert salon("export", file, "--batch-files", "there", "--pictures", "file", "--pictures-at", "file:///data/p/").code == 0
    inline, named, there = (lines_of(tmp_path / folder) for folder in ("inline", "by file", "there"))
    n_pictures = len(list((tmp_path / "by file" / "pictures").iterdir()))
    assert 0 < n_pictures < len(named)
    for one, other, third in zip(inline, named, there, strict=True):
        assert one["custom_id"] == other["custom_id"] == third["custom_id"]
        url = picture_of(other)
        found = Path(urllib.request.url2pathname(url.removeprefix("file://")))
        assert picture_of(one) == f"data:image/{found.suffix[1:]};base64," + base64.b64encode(found.read_bytes()).decode()
        assert picture_of(third) == f"file:///data/p/{found.name}"
        assert json.dumps(one).replace(picture_of(one), "") == json.dumps(other).replace(url, "")
    said = salon("export", file, "--batch-files", "x", "--pictures-at", "file:///d")
    assert said.code == 2
    assert "--pictures-at needs --pictures file" in said.err


def picture_of(line: dict[str, Any]) -> str:
    (url,) = (
        part["image_url"]["url"]
        for message in line["body"]["messages"] if isinstance(message["content"], list)
        for part in message["content"] if part["type"] == "image_url"
    )  # fmt: skip
    return str(url)
