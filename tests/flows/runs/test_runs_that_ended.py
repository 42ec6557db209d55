"""Rows of `runs` that ended before they published: their ledger out of use, no place to publish to, killed."""

import json
import shutil
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, insert

from flows.run.begun import forget_asking
from flows.run.context import RunContext, open_run
from flows.run.record import unpublished
from tasks.lake.reading import Lake
from tasks.ledger.ledger import Ledger
from tasks.ledger.process_identity import this_process
from tasks.ledger.tables import OWNERS
from tasks.publish.machine_tables import record_run, runs
from tests.flows.flow_support import Said
from tests.support.night_world import N_SAMPLES, World, write_benchmark
from tests.support.servers.postgres import PostgresServer
from tests.support.servers.provider import Play, Provider, completion

USD = 900 * 2e-6 + 12 * 8e-6  # of a reply, as the provider reports it


def test_what_was_bought_until_the_ledger_went_has_its_row(
    tmp_path: Path, salon: Callable[..., Said], provider: Provider, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    monkeypatch.setenv("SALON_STORE_WAIT_S", "0.5")
    provider.then = Play(body=completion("Reasoning: plain.\nScore: 3"), delay_s=0.2)
    World(tmp_path).make(0)
    file = write_benchmark(tmp_path, provider.url, limits="shard_size = 10")
    address = postgres.new_database()
    file.write_text(f'ledger = "{address}"\n{file.read_text()}')

    def harm() -> None:
        while provider.n < 14:
            time.sleep(0.01)
        postgres.stop()

    harming = threading.Thread(target=harm)
    harming.start()
    try:
        said = salon("run", file)
    finally:
        harming.join()
        postgres.start()
    assert said.code == 3
    assert "never retrieved" not in said.err
    n_first = provider.n
    (row,) = runs(Lake(tmp_path / "lake")).to_dicts()
    assert (row["outcome"], row["asked_by"], row["is_at_least"]) == ("stopped", "run", True)
    assert row["n_asked"] == n_first < N_SAMPLES
    assert row["cost_usd"] == pytest.approx(n_first * USD)
    assert row["n_requests"] == N_SAMPLES
    monkeypatch.setenv("SALON_STORE_WAIT_S", "60")
    with Ledger(address) as ledger:  # this process lives: those of one that ended are taken over at once
        ledger.alone_now(lambda connection: connection.execute(delete(OWNERS)) and None)
    assert salon("run", file).code == 0
    assert provider.n == N_SAMPLES, "each was bought once"
    last = runs(Lake(tmp_path / "lake")).row(-1, named=True)
    assert (last["outcome"], last["is_at_least"], last["n_asked"]) == ("published", False, N_SAMPLES - n_first)


def test_a_run_that_asked_all_and_could_not_publish_has_its_row(
    tmp_path: Path, salon: Callable[..., Said], provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    provider.then = Play(body=completion("Reasoning: plain.\nScore: 3"))
    World(tmp_path).make(0)
    file = write_benchmark(tmp_path, provider.url)
    taken = tmp_path / "lake" / "publish" / "v1" / "tables"
    taken.parent.mkdir(parents=True)
    taken.write_text("no folder")
    assert salon("run", file).code == 3
    taken.unlink()
    assert salon("run", file).code == 0
    rows = runs(Lake(tmp_path / "lake")).select("outcome", "n_asked", "cost_usd").rows()
    assert rows == [("stopped", N_SAMPLES, pytest.approx(N_SAMPLES * USD)), ("published", 0, None)]


NOTE = {
    "started_at": "2026-03-01T02:00:00Z", "run_date": "2026-03-01", "dataset_id": "d" * 64, "n_samples": 1, "n_samples_ok": 1,
    "code_version": "c" * 64, "asked_by": "nightly", "plan_ids": [], "judges": [],
    "process": {"host": "another machine", "pid": 1, "started": "7"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("note", "stays", "said"),
    [
        (NOTE, False, ""),
        (NOTE | {"started_at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"}, True, ""),
        (NOTE | {"plan_ids": ["../../replies"]}, True, "is not a note of a run (1 validation error"),
        (NOTE | {"plan_ids": ["e" * 64]}, False, ""),
        ("[" * 100_000, True, "is not a note of a run (1 validation error"),
    ],
    ids=["of another machine, long ago", "of another machine, today", "a path for a plan", "its plan is gone", "no note"],
)
def test_notes_of_other_runs_end_none(
    note: Any, stays: bool, said: str, tmp_path: Path, salon: Callable[..., Said], judge_url: str
) -> None:
    World(tmp_path).make(0)
    file = write_benchmark(tmp_path, judge_url)
    path = tmp_path / "lake" / "asking" / "nights" / "one.json"
    path.parent.mkdir(parents=True)
    path.write_text(note if isinstance(note, str) else json.dumps(note))
    run = salon("run", file)
    assert run.code == 0, run.err
    assert path.exists() == stays
    assert said in " ".join(run.err.split())
    assert runs(Lake(tmp_path / "lake"))["outcome"].to_list() == ["published"]


def test_a_run_takes_away_its_own_note_and_none_of_a_process_of_the_same_number(tmp_path: Path, judge_url: str) -> None:
    """As where a container is the lake's other user: the first process of each is number 1."""
    World(tmp_path).make(0)
    run, own = RunContext.of(open_run(write_benchmark(tmp_path, judge_url))), this_process()
    folder = tmp_path / "lake" / "asking" / "nights"
    folder.mkdir(parents=True)
    for name, host in (("mine", own.host), ("other", "another machine")):
        process = {"host": host, "pid": own.pid, "started": own.started}
        (folder / f"{name}-{own.pid}.json").write_text(json.dumps(NOTE | {"process": process}))
    forget_asking(run)
    assert [path.name for path in folder.iterdir()] == [f"other-{own.pid}.json"]


@pytest.mark.parametrize(("silent_s", "stays"), [(700.0, False), (300.0, True), (-30.0, True)])
def test_a_run_of_another_machine_is_over_once_the_ledger_has_not_heard_of_it_for_long(
    silent_s: float, stays: bool, tmp_path: Path, salon: Callable[..., Said], judge_url: str
) -> None:
    World(tmp_path).make(0)
    file = write_benchmark(tmp_path, judge_url)
    started_at = datetime.now(UTC) - timedelta(days=3 if stays else 0)
    path = tmp_path / "lake" / "asking" / "nights" / "one.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(NOTE | {"started_at": started_at.isoformat()}))
    with Ledger(f"sqlite:///{tmp_path}/lake/ledger.db") as ledger:
        until_us = int((time.time() - silent_s) * 1e6)
        row = {"owner_id": "uses-one", "host": "another machine", "pid": 1, "process_started": "7", "expires_at_us": until_us}
        ledger.alone_now(lambda connection: connection.execute(insert(OWNERS), [row]) and None)
    assert salon("run", file).code == 0
    assert path.exists() == stays


def _plan(lake: Lake) -> str:
    """The lake's one plan."""
    (path,) = (lake.root / "complete" / "requests").iterdir()
    return path.stem


def _noted(lake: Lake, began: datetime, *, is_gone: bool, plan: str | None = None) -> Path:
    """The note of a run of the plan, or the lake's one, whose process is gone, or is of another machine."""
    plan = plan or _plan(lake)
    note = NOTE | {"plan_ids": [plan], "judges": ["salon-demo-judge"], "started_at": began.isoformat()}
    if is_gone:
        note["process"] = {**note["process"], "host": this_process().host}
    path = lake.root / "asking" / "nights" / "one.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(note))
    return path


@pytest.fixture
def ran(tmp_path: Path, salon: Callable[..., Said], judge_url: str) -> tuple[Path, Lake, dict[str, Any]]:
    """A benchmark's file, its lake, and the row of the one run that has bought all."""
    World(tmp_path).make(0)
    file, lake = write_benchmark(tmp_path, judge_url), Lake(tmp_path / "lake")
    assert salon("run", file).code == 0
    (bought,) = runs(lake).to_dicts()
    return file, lake, bought


def test_the_row_of_a_killed_run_leaves_out_what_another_has_in_its_own(
    ran: tuple[Path, Lake, dict[str, Any]], salon: Callable[..., Said]
) -> None:
    file, lake, bought = ran
    path = _noted(lake, bought["started_at"] - timedelta(seconds=5), is_gone=True)
    assert salon("run", file).code == 0
    assert not path.exists()
    assert runs(lake)["outcome"].to_list() == ["published", "unchanged"], "it bought nothing that has no row"
    assert runs(lake)["n_asked"].sum() == N_SAMPLES


def test_what_a_killed_run_bought_is_not_taken_for_another_benchmarks(
    ran: tuple[Path, Lake, dict[str, Any]], salon: Callable[..., Said]
) -> None:
    file, lake, bought = ran
    shutil.rmtree(lake.root / "runs")
    record_run(lake, bought | {"benchmark": "others"})  # that of another, which asked as much meanwhile
    _noted(lake, bought["started_at"] - timedelta(seconds=5), is_gone=True)
    assert salon("run", file).code == 0
    (killed,) = runs(lake).filter(outcome="stopped").to_dicts()
    assert (killed["benchmark"], killed["n_asked"]) == ("nights", N_SAMPLES)


def test_what_a_run_beside_it_paid_is_its_own_also_once_the_file_asks_otherwise(
    ran: tuple[Path, Lake, dict[str, Any]], salon: Callable[..., Said]
) -> None:
    file, lake, bought = ran
    path = _noted(lake, bought["started_at"] - timedelta(seconds=5), is_gone=True)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"dataset_id": bought["dataset_id"]}))
    file.write_text(f"{file.read_text()}\n[judges.parameters]\nmax_tokens = 77\n")
    assert salon("run", file).code == 0
    assert "stopped" not in runs(lake)["outcome"].to_list()


def test_the_row_of_a_killed_run_has_all_that_it_bought_while_others_bought_something_else(
    tmp_path: Path, salon: Callable[..., Said], judge_url: str
) -> None:
    World(tmp_path).make(0)
    World(tmp_path).make(1)
    file, lake = write_benchmark(tmp_path, judge_url), Lake(tmp_path / "lake")
    assert salon("run", file, "--checkpoints", "step-0").code == 0
    (bought,) = runs(lake).to_dicts()
    plan = _plan(lake)
    shutil.rmtree(lake.root / "runs")
    assert salon("run", file, "--checkpoints", "step-1").code == 0
    _noted(lake, bought["started_at"], is_gone=True, plan=plan)
    said = " ".join(salon("run", file, "--checkpoints", "step-1").err.split())
    assert f"that is in the table runs now: {N_SAMPLES} requests sent, $" in said
    (killed,) = runs(lake).filter(outcome="stopped").to_dicts()
    of = ("n_asked", "n_input_tokens", "n_output_tokens", "is_at_least")
    assert [killed[name] for name in of] == [bought[name] for name in of]
    assert killed["cost_usd"] == pytest.approx(bought["cost_usd"])


def test_a_run_whose_note_stayed_has_no_second_row(
    tmp_path: Path, salon: Callable[..., Said], provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor where requests of it are in doubt, which no other run's row takes off."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    provider.script.append(Play(body=b"<html>login</html>"))
    provider.then = Play(body=completion("Reasoning: plain.\nScore: 3"))
    World(tmp_path).make(0)
    file, lake = write_benchmark(tmp_path, provider.url), Lake(tmp_path / "lake")
    assert salon("run", file).code == 0
    (bought,) = runs(lake).to_dicts()
    path = _noted(lake, bought["started_at"], is_gone=True)
    assert salon("run", file).code == 0
    assert not path.exists()
    assert runs(lake)["outcome"].to_list() == ["published", "unchanged"]


def test_what_a_run_bought_that_fell_silent_elsewhere_is_told_at_once(
    ran: tuple[Path, Lake, dict[str, Any]], salon: Callable[..., Said]
) -> None:
    """As a container that was replaced: its process cannot be looked up, and it may be paused."""
    file, lake, bought = ran
    shutil.rmtree(lake.root / "runs")
    path = _noted(lake, bought["started_at"], is_gone=False)
    said = " ".join(salon("run", file).err.split())
    assert f"in another container or before a restart: {N_SAMPLES} requests sent, $" in said
    assert "A start 11 minutes after it fell silent puts that into the table runs, or 2 days after it began" in said
    assert path.exists()
    assert [one[1] for one in unpublished(RunContext.of(open_run(file)))] == ["nightly"], "its batches are fetched by its command"
    assert runs(lake).height == 1, "it has its row once it is sure that it is over"


def test_a_run_whose_judge_may_have_worked_for_nothing_says_at_least(
    tmp_path: Path, salon: Callable[..., Said], provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    provider.script.append(Play(body=b"<html>login</html>"))
    provider.then = Play(body=completion("Reasoning: plain.\nScore: 3"))
    World(tmp_path).make(0)
    said = salon("run", write_benchmark(tmp_path, provider.url))
    assert (said.code, provider.n) == (0, N_SAMPLES + 1)
    assert f"{N_SAMPLES + 1} sent; at least $" in " ".join(said.out.split())
    assert "; up to 1 more may have been billed ($" in " ".join(said.out.split())
    (row,) = runs(Lake(tmp_path / "lake")).to_dicts()
    assert (row["is_at_least"], row["n_asked"]) == (True, N_SAMPLES + 1)
