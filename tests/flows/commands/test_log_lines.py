"""SALON_LOG_FORMAT=json: every line on standard error is a JSON object, of progress, warnings and errors, and holds no secret."""

import json
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.flows.flow_support import Said
from tests.support.night_world import World, write_benchmark

SECRET = "sk-canary-77aa"


@pytest.fixture
def as_json(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    root = logging.getLogger()
    before = list(root.handlers)
    monkeypatch.setenv("SALON_LOG_FORMAT", "json")
    monkeypatch.setenv("CANARY_API_KEY", SECRET)
    yield
    root.handlers[:] = before


def _lines(said: Said) -> list[dict[str, str]]:
    lines = [json.loads(line) for line in said.err.splitlines()]
    assert all(set(line) == {"time", "level", "logger", "message"} for line in lines)
    return lines


@pytest.mark.slow
@pytest.mark.usefixtures("as_json")
def test_a_run_says_json_lines_and_its_table_stays_a_table(tmp_path: Path, judge_url: str, salon: Callable[..., Said]) -> None:
    World(tmp_path).make(1)
    file = write_benchmark(tmp_path, judge_url)
    said = salon("run", file, "--run-date", "2026-03-01", "--max-usd", "0.002")
    assert said.code == 1
    assert "publication" in said.out
    messages = [line["message"] for line in _lines(said)]
    assert {"ingest: 24 done", "plan: 1 done"} <= set(messages)
    told = next(
        message
        for message in messages
        if message.startswith("note: max_usd = 0.002 does not cover a single request: one may cost")
    )
    (each, everything) = (float(usd) for usd in re.findall(r"up to \$([\d.]+\d)", told))
    assert 0.002 < each < everything < 25 * each  # of the 24, each by the size of its picture
    assert "all 24 without a reply" in told
    few = salon("run", file, "--run-date", "2026-03-02", "--max-usd", str(2 * each))
    assert any(line["message"].startswith(f"note: max_usd = {2 * each:g} is reached: ") for line in _lines(few))


@pytest.mark.usefixtures("as_json")
def test_an_error_and_a_warning_are_lines_without_secrets(salon: Callable[..., Said], capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = _lines(salon("run", f"{SECRET}.toml"))
    assert line["level"] == "error"
    assert "the benchmark file " in line["message"]
    assert " does not exist; " in line["message"]
    assert SECRET not in line["message"]
    salon("table", "--lake", "nowhere")
    logging.getLogger("salon.trial").warning("of %s\nand more", SECRET)
    warned = json.loads(capsys.readouterr().err)
    assert (warned["level"], warned["logger"]) == ("warning", "salon.trial")
    assert SECRET not in warned["message"]
