"""Judges by batch beside one another and beside judges asked online: when each is handed over, what one's end is to the others,
and in which row of `runs` what they cost stands, whoever fetches it."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from demo.running import running_judge
from flows.executors.choose import opened_executor
from flows.observability.progress import Reporter
from flows.run.context import RunContext, open_run
from flows.run.pipeline import run_pipeline
from tests.flows.flow_support import Said, runs_of
from tests.support.night_world import N_SAMPLES, World
from tests.support.servers.provider import Play, Provider

SCENARIO = """\
[[models]]
id = "gpt-4.1"
[[models]]
id = "gpt-4.1-mini"
[[models]]
id = "gpt-4o"
[latency]
median_s = 0.02
[batch]
validating_s = 0.1
in_progress_s = {in_progress_s}
finalizing_s = 0.1
{more}
"""
BENCHMARK = """\
name = "batches"
[[sources]]
reader = "geneval"
path = "made/{model}/{checkpoint}"
[[rubrics]]
id = "alignment"
"""
JUDGE = '[[judges]]\nmodel = "{}"\nbase_url = "{}"\nmode = "{}"\nparameters = {{ temperature = 0, max_tokens = 1000 }}\n'
ROOT = str(Path(__file__).parents[4])


@pytest.fixture
def judges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """A provider whose batches take so many seconds; its address."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    World(tmp_path).make(0)
    opened = []

    def make(in_progress_s: float, more: str = "") -> str:
        (tmp_path / "scenario.toml").write_text(SCENARIO.format(in_progress_s=in_progress_s, more=more))
        opened.append(running_judge(tmp_path / "scenario.toml"))
        return opened[-1].__enter__()

    yield make
    for one in opened:
        one.__exit__(None, None, None)


def _write(folder: Path, *judges: tuple[str, str, str], limits: str = "") -> Path:
    listed = "".join(JUDGE.format(*judge) for judge in judges)
    (folder / "b.toml").write_text(f"{BENCHMARK}{listed}[limits]\nconcurrency = 4\n{limits}\n")
    return folder / "b.toml"


def _get(url: str, body: bytes | None = None) -> Any:
    with urllib.request.urlopen(urllib.request.Request(url, body, {"authorization": "Bearer sk-of-nobody"})) as answer:
        return json.load(answer)


def _states(url: str) -> list[str]:
    return [batch["status"] for batch in _get(f"{url}/batches?limit=20")["data"]]


def _stats(url: str) -> Any:
    return _get(url.removesuffix("/v1") + "/stats")


def _begun(folder: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "flows", "run", "b.toml"],
        cwd=folder, env=os.environ | {"PYTHONPATH": ROOT}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip


def _until(run: "subprocess.Popen[bytes]", is_so: Callable[[], bool]) -> None:
    until_s = time.monotonic() + 60
    while not is_so():
        assert run.poll() is None, run.stderr and run.stderr.read()
        assert time.monotonic() < until_s
        time.sleep(0.05)


def _n_replies(folder: Path) -> int:
    try:
        with closing(sqlite3.connect(f"file:{folder}/lake/ledger.db?mode=ro", uri=True)) as ledger, ledger:
            return int(ledger.execute("SELECT count(*) FROM replies").fetchone()[0])
    except sqlite3.OperationalError:  # not there yet
        return 0


def test_all_batches_are_handed_over_at_once_and_online_judges_do_not_wait_for_them(
    tmp_path: Path, salon: Callable[..., Said], judges: Callable[[float], str]
) -> None:
    url = judges(8)
    names = ("gpt-4.1", "gpt-4.1-mini", "gpt-4o")
    _write(tmp_path, *((name, url, "online" if name == "gpt-4o" else "batch") for name in names))
    run = _begun(tmp_path)
    _until(run, lambda: _n_replies(tmp_path) == N_SAMPLES and len(_states(url)) == 2)
    assert not {"finalizing", "completed"} & set(_states(url)), "both are with the provider"
    run.send_signal(signal.SIGTERM)
    _, told = run.communicate(timeout=120)
    assert run.returncode == 143
    assert told.decode().count(f"{N_SAMPLES} requests are with the Batch API of gpt-4.1") == 2
    while set(_states(url)) != {"completed"}:
        time.sleep(0.1)

    said = salon("run", _write(tmp_path, *((name, url, "online") for name in names)))  # in another mode
    assert said.code == 0, said.err
    stored = f"{N_SAMPLES} stored already, {2 * N_SAMPLES} fetched from batches of earlier runs, 0 sent; $0."
    assert f"requests    {3 * N_SAMPLES}: {stored}" in said.out
    stats, rows = _stats(url), runs_of(tmp_path / "lake")
    assert stats["n_items_by_times_billed"] == {"1": 3 * N_SAMPLES}
    assert rows["outcome"].to_list() == ["stopped", "published"]
    assert rows["n_asked"].to_list() == [3 * N_SAMPLES, 0]
    assert rows["n_cached"].to_list() == [0, N_SAMPLES]
    assert rows["is_at_least"].to_list() == [True, False]
    assert rows["cost_usd"].sum() == pytest.approx(stats["usd"])


def test_each_of_two_killed_runs_has_what_it_sent_or_fetched_in_its_row(
    tmp_path: Path, salon: Callable[..., Said], judges: Callable[[float], str]
) -> None:
    url = judges(1)
    file = _write(tmp_path, ("gpt-4.1", url, "batch"))
    for is_so in (lambda: bool(_states(url)), lambda: _n_replies(tmp_path) == N_SAMPLES):
        run = _begun(tmp_path)
        _until(run, is_so)
        run.kill()
        run.communicate()
    said = salon("run", file)
    assert said.code == 0, said.err
    assert f"requests    {N_SAMPLES}: {N_SAMPLES} stored already, 0 sent" in said.out
    rows = runs_of(tmp_path / "lake").select("outcome", "n_asked", "n_cached", "cost_usd").rows()
    assert rows == [
        ("stopped", N_SAMPLES, 0, None),
        ("stopped", 0, 0, pytest.approx(_stats(url)["usd"])),
        ("published", 0, N_SAMPLES, None),
    ]


@pytest.mark.usefixtures("prefect_api")  # whose tasks they are then
def test_a_judge_whose_key_is_refused_does_not_keep_others_from_being_handed_over(
    tmp_path: Path, salon: Callable[..., Said], judges: Callable[[float], str], provider: Provider
) -> None:
    url = judges(0.5)
    provider.then = Play(status=401, body=b'{"error": {"message": "no such key"}}')
    listed = ("refusing", provider.url, "batch"), ("gpt-4.1", url, "batch"), ("gpt-4o", url, "online")
    said = salon("run", _write(tmp_path, *listed))
    assert said.code == 3
    told = " ".join(said.err.split())
    assert "judge refusing at " in told
    counts = f"gpt-4.1 ({N_SAMPLES} of {N_SAMPLES}), gpt-4o ({N_SAMPLES} of {N_SAMPLES})"
    assert f"Complete, with every reply stored: {counts}. To publish without refusing, take its [[judges]] out" in told
    assert _stats(url)["n_items_by_times_billed"] == {"1": 2 * N_SAMPLES}
    rows = runs_of(tmp_path / "lake")
    assert rows["outcome"].to_list() == ["stopped"]
    assert rows["n_asked"].to_list() == [2 * N_SAMPLES], "a batch that was never created was not sent"
    assert rows["cost_usd"].to_list() == pytest.approx([_stats(url)["usd"]])


def test_what_is_in_flight_at_ctrl_c_stands_in_the_row(tmp_path: Path, judges: Callable[[float], str]) -> None:
    url = judges(1)
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(scenario.read_text().replace("median_s = 0.02", "median_s = 0.6"))
    with running_judge(scenario) as slow:
        _write(tmp_path, ("gpt-4o", slow, "online"), ("gpt-4.1", url, "batch"))
        run = _begun(tmp_path)
        _until(run, lambda: _n_replies(tmp_path) > 0)
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=120)
        usd = _stats(slow)["usd"]
    assert run.returncode == 130
    (row,) = runs_of(tmp_path / "lake").to_dicts()
    assert (row["outcome"], row["cost_usd"]) == ("stopped", pytest.approx(usd))


@pytest.mark.parametrize(("mode", "max_usd"), [("online", 0.1), ("batch", 0.08)])
def test_who_finds_no_room_beside_what_batches_set_aside_is_asked_once_they_have_ended(
    tmp_path: Path, salon: Callable[..., Said], judges: Callable[[float], str], mode: str, max_usd: float
) -> None:
    url = judges(1.5)
    listed = ("gpt-4.1", url, "batch"), ("gpt-4o", url, mode)
    said = salon("run", _write(tmp_path, *listed, limits=f"max_usd = {max_usd}"))
    assert said.code == 0, said.err + said.out
    assert f"requests    {2 * N_SAMPLES}: 0 stored already, {2 * N_SAMPLES} sent; $0.0" in said.out
    assert _stats(url)["usd"] <= max_usd


@pytest.mark.parametrize("command", ["run", "nightly"])
def test_a_batch_that_somebody_cancels_is_created_again_by_the_next_command_only(
    tmp_path: Path, salon: Callable[..., Said], judges: Callable[[float], str], command: str
) -> None:
    url = judges(6)
    due = datetime.now(UTC) - timedelta(minutes=1)
    night = f'[nightly]\nschedule = "{due:%M %H} * * *"\nfinish_by = "{due + timedelta(hours=2):%H:%M}"'
    listed = ("gpt-4.1", url, "batch"), ("gpt-4o", url, "online")
    file = _write(tmp_path, *listed, limits=night)
    cancelled = list[str]()

    def cancel() -> None:
        while not (found := [each["id"] for each in _get(f"{url}/batches?limit=20")["data"]]):
            time.sleep(0.1)
        cancelled.extend(found)
        _get(f"{url}/batches/{found[0]}/cancel", b"")

    thread = threading.Thread(target=cancel)
    thread.start()
    said = salon(command, file)
    thread.join()
    told = " ".join(said.err.split())
    assert said.code == 3, told
    assert f"batch {cancelled[0]} was cancelled at the provider. The replies it had are stored; run the same command" in told
    assert "next try" not in told
    assert _states(url) == ["cancelled"], "none was created after it"
    assert _n_replies(tmp_path) >= N_SAMPLES, "the other judge was asked all"
    assert salon(command, file).code == 0
    assert len(_states(url)) == 2
    assert _stats(url)["n_items_by_times_billed"] == {"1": 2 * N_SAMPLES}


def test_batches_that_fail_as_a_whole_are_handed_over_twice_and_no_more(
    tmp_path: Path, judges: Callable[..., str], salon: Callable[..., Said]
) -> None:
    url = judges(0.1, "max_lines = 5")
    said = salon("run", _write(tmp_path, ("gpt-4.1", url, "batch")))
    assert (said.code, _states(url)) == (3, ["failed", "failed"]), said.err
    assert "the provider failed batch " in said.err


def test_the_log_of_a_flows_run_has_a_line_for_each_change_of_a_batch(tmp_path: Path, judges: Callable[[float], str]) -> None:
    stage, reporter, words = open_run(_write(tmp_path, ("gpt-4.1", judges(12), "batch"))), Reporter(), list[str]()
    reporter.on_word = words.append
    with opened_executor(stage) as executor:
        run_pipeline(RunContext.of(stage, executor, reporter))
    lines = [word for word in words if "batch" in word.lower()]
    assert f"{N_SAMPLES} requests handed over to the Batch API of gpt-4.1, which has a day for them" in lines
    assert 1 <= sum(one.startswith("gpt-4.1, batch 1 of 1: in_progress, ") for one in lines) <= len(lines) <= 8
