"""A backfill: previewed, stopped by its money, resumed, done once; what others publish stays; a night goes first."""

import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from flow_support import Said
from night_world import MODEL, N_SAMPLES, World, n_billed, write_benchmark
from sqlalchemy import delete, insert
from sqlalchemy.engine import Connection

from demo.running import running_judge
from flows.backfill import BackfillSummary, check_failures, run_backfill
from flows.nightly import open_night, run_night
from flows.nights.checkpoints import Checkpoint, chosen, find_checkpoints
from flows.partitions.plan import BackfillPlan, open_backfill, plan_backfill
from flows.partitions.table import read_partitions
from flows.run.fan_out import in_this_process
from flows.telling.progress import Reporter
from schemas.benchmark import load_benchmark
from schemas.errors import InputError, ProviderError
from schemas.tables import BENCHMARK_LONG
from tasks.judge.ledger import Ledger
from tasks.judge.ledger_tables import ATTEMPTS
from tasks.judge.precedence import _prefix
from tasks.judge.sharing_tables import CLAIMS, OWNERS
from tasks.publish.reading import publications

DAY = date(2026, 3, 1)
RUBRICS = ("alignment", "image_aspects")
NOT_OF_THE_CELL = ("run_id", "dataset_id")  # which publication it stands in, and with what


def _planned(file: Path, names: Sequence[str] | None = None) -> BackfillPlan:
    return plan_backfill(open_backfill(file), names, None, Reporter())


def _backfill(file: Path, max_usd: float | None = None, judge_url: str | None = None) -> BackfillSummary:
    run = open_backfill(file, DAY, judge_url, max_usd)
    return run_backfill(run, plan_backfill(run, None, None, Reporter()), in_this_process, Reporter())


def _states(file: Path) -> dict[tuple[str, str], str]:
    rows = read_partitions(open_backfill(file)).select("checkpoint", "rubric_id", "state")
    return {(checkpoint, rubric): state for checkpoint, rubric, state in rows.iter_rows()}


def _cells(folder: Path, checkpoint: str) -> pl.DataFrame:
    cells = pl.read_parquet(folder / f"{BENCHMARK_LONG.name}.parquet").filter(checkpoint=checkpoint)
    return cells.drop(NOT_OF_THE_CELL).sort("cell_id")


def test_a_backfill_from_preview_to_stale(tmp_path: Path, judge_url: str) -> None:
    world = World(tmp_path)
    for number in range(3):
        world.make(number)
    file = write_benchmark(tmp_path, judge_url, rubrics=RUBRICS)
    each = N_SAMPLES * len(RUBRICS)
    night = run_night(open_night(file, DAY), in_this_process, Reporter())
    assert night.run is not None
    start = n_billed(judge_url)

    planned = _planned(file)
    assert [(one.name, one.n_requests, one.n_to_ask) for one in planned.checkpoints] == [
        (f"{MODEL}/step-2", each, 0), (f"{MODEL}/step-1", each, each), (f"{MODEL}/step-0", each, each),
    ]  # fmt: skip
    assert n_billed(judge_url) == start  # a preview sends nothing
    expected_usd = planned.open[0].online_usd
    assert expected_usd is not None

    stopped = _backfill(file, max_usd=expected_usd / 2)
    assert [one.name for one in stopped.backfilled] == [f"{MODEL}/step-1"]  # the next one is not begun without money
    assert stopped.backfilled[0].outcome.is_spent
    assert stopped.run is None  # nothing new is whole
    assert _states(file)["step-1", "image_aspects"] == "planned"
    assert (
        "max_usd" in read_partitions(open_backfill(file)).filter(checkpoint="step-1", rubric_id="image_aspects")["detail"].item()
    )
    assert 0 < n_billed(judge_url) - start < each

    whole = _backfill(file)
    check_failures(whole)
    assert n_billed(judge_url) - start == 2 * each  # what the first one bought was not bought again
    assert _states(file) == {(f"step-{number}", rubric): "done" for number in range(3) for rubric in RUBRICS}
    assert whole.run is not None
    before, after = (_cells(run.published.folder, "step-2") for run in (night.run, whole.run))
    assert before.equals(after)  # a checkpoint's figures do not depend on which others stand beside it
    assert whole.run.asked.n_asked == 2 * each - stopped.backfilled[0].outcome.n_asked

    again = _backfill(file)
    assert (again.run, again.backfilled) == (None, ())
    assert n_billed(judge_url) - start == 2 * each
    by = dict(read_partitions(open_backfill(file)).select("checkpoint", "asked_by").unique().iter_rows())
    assert by == {"step-0": "backfill", "step-1": "backfill", "step-2": "nightly"}  # who did it stays

    _claim_for_a_dead_process(tmp_path)
    assert sorted(_states(file).values()) == ["done"] * 5 + ["failed"]

    write_benchmark(tmp_path, judge_url, rubrics=RUBRICS, judge="parameters = { temperature = 1 }")
    assert set(_states(file).values()) == {"stale"}  # another instrument: what it did not measure is to be asked
    assert [one.n_to_ask for one in _planned(file).checkpoints] == [each] * 3


def _claim_for_a_dead_process(folder: Path) -> None:
    """Leave one row as a backfill leaves it that is killed while it asks."""
    row = min((folder / "lake" / "partitions" / "nights").glob("*.parquet"))
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        pid = dead.pid
    left = {"n_left": pl.lit(1, pl.Int64), "pid": pl.lit(pid, pl.Int64)}
    text = {"state": pl.lit("running"), "process_started": pl.lit("1")}
    pl.read_parquet(row).with_columns(**left, **text).write_parquet(row)


def test_a_night_goes_first_and_a_lost_judge_fails_its_partitions(tmp_path: Path, judge_url: str) -> None:
    World(tmp_path).make(0)
    file = write_benchmark(tmp_path, judge_url, limits="requests_per_minute = 600")
    lost = _backfill(file, judge_url=f"{judge_url}/nowhere")
    with pytest.raises(ProviderError, match=r"1 of 1 checkpoints.*\n.*step-0"):
        check_failures(lost)
    assert _states(file) == {("step-0", "alignment"): "failed"}

    start, run = n_billed(judge_url), open_backfill(file)
    filling = threading.Thread(target=_backfill, args=(file,))
    with _a_night_that_asks(run.ledger_url):
        filling.start()
        time.sleep(2)
        assert n_billed(judge_url) == start  # a night waits to send: nothing is sent
    _wait_for(judge_url, start + 5)
    with _a_night_that_asks(run.ledger_url):
        time.sleep(1.5)  # to notice, and for what is in flight
        paused_at = n_billed(judge_url)
        time.sleep(1)
        assert n_billed(judge_url) == paused_at < start + N_SAMPLES
    with _a_night_that_asks(run.ledger_url, is_sent=True):  # it only waits for its last replies
        filling.join(60)
    assert n_billed(judge_url) == start + N_SAMPLES  # it went on, and nothing was bought twice
    assert _states(file) == {("step-0", "alignment"): "done"}


@contextmanager
def _a_night_that_asks(ledger_url: str, *, is_sent: bool = False) -> Iterator[None]:
    """What a night leaves in the ledger while it asks from another machine: that it goes first, and a claim, sent or not."""
    elsewhere = {"host": "another machine", "pid": 1, "process_started": "1", "expires_at_us": 2**62}
    ids = [f"{_prefix('first', 'salon-demo-judge')}aaaaaaaaaaaa", "b" * 32]

    def add(connection: Connection) -> None:
        connection.execute(insert(OWNERS), [elsewhere | {"owner_id": one} for one in ids])
        connection.execute(insert(CLAIMS), [{"request_key": "c" * 64, "owner_id": ids[1]}])
        if is_sent:
            attempt = {"attempt_id": "d" * 32, "request_key": "c" * 64, "ask_index": 0, "judge_model": "x", "started_at_us": 1}
            connection.execute(insert(ATTEMPTS), [attempt])

    def remove(connection: Connection) -> None:
        connection.execute(delete(CLAIMS).where(CLAIMS.c.owner_id == ids[1]))
        connection.execute(delete(OWNERS).where(OWNERS.c.owner_id.in_(ids)))

    with Ledger(ledger_url) as ledger:
        ledger.alone_now(add)
        yield
        ledger.alone_now(remove)


BATCHES = """
[batch]
validating_s = 0
in_progress_s = 4
finalizing_s = 0
"""
N_REPEATS = 21  # 504 requests a checkpoint: enough for a judge whose mode is not stated to be asked by batch


def test_batches_are_preferred_and_outlive_a_kill(tmp_path: Path, prefect_api: str, salon: Callable[..., Said]) -> None:
    world = World(tmp_path)
    for number in range(2):
        world.make(number)
    (tmp_path / "batches.toml").write_text(BATCHES)
    with running_judge(tmp_path / "batches.toml") as url:
        file = write_benchmark(tmp_path, url, judge=f"repeats = {N_REPEATS}")
        environment = os.environ | {"PREFECT_API_URL": prefect_api, "PYTHONPATH": str(Path(__file__).parents[2])}
        command = [sys.executable, "-m", "flows", "backfill", str(file), "--all"]
        killed = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 120
        while len(_get(f"{url}/batches")["data"]) < 2:
            assert killed.poll() is None, "the backfill ended before its batches were made"
            assert time.monotonic() < end
            time.sleep(0.1)
        killed.kill()
        killed.wait()
        assert set(_states(file).values()) == {"failed"}  # running, and their process is gone
        while {batch["status"] for batch in _get(f"{url}/batches")["data"]} != {"completed"}:
            assert time.monotonic() < end
            time.sleep(0.1)

        said = salon("backfill", file, "--all")
        assert said.code == 0, said.err
        stats = _get(url.removesuffix("/v1") + "/stats")
        assert stats["n_items_by_times_billed"] == {str(N_REPEATS): 2 * N_SAMPLES}  # to the provider repeats are one item
        assert stats["n_requests"] == 0  # nothing was asked online
        n_lines = [batch["request_counts"]["total"] for batch in _get(f"{url}/batches")["data"]]
        assert n_lines == [N_SAMPLES * N_REPEATS] * 2  # nor handed over again
    assert set(_states(file).values()) == {"done"}
    assert len(publications(tmp_path / "lake")) == 1


def _get(address: str) -> Any:
    with urllib.request.urlopen(address) as answer:
        return json.load(answer)


def _wait_for(url: str, n: int) -> None:
    end = time.monotonic() + 30
    while n_billed(url) < n:
        assert time.monotonic() < end
        time.sleep(0.02)


OLD, NEW, BARE = Checkpoint("m", "9", date(2026, 1, 5)), Checkpoint("m", "10", date(2026, 2, 1)), Checkpoint("n", "10")


@pytest.mark.parametrize(
    ("names", "since", "found"),
    [
        (None, None, [OLD, NEW, BARE]),
        (["10"], None, [NEW, BARE]),
        (["m/10"], None, [NEW]),
        (["n/10", "9"], None, [OLD, BARE]),
        (["11"], None, "no checkpoint 11; there are: m/9, m/10, n/10"),
        (["m"], None, "no checkpoint m"),
        (None, date(2026, 2, 1), "none for n/10"),
    ],
    ids=["all", "of every model", "of one", "several", "not there", "a model is none", "a date is missing"],
)
def test_which_checkpoints(names: list[str] | None, since: date | None, found: list[Checkpoint] | str) -> None:
    if isinstance(found, str):
        with pytest.raises(InputError, match=found):
            chosen([OLD, NEW, BARE], names, since)
    else:
        assert chosen([OLD, NEW, BARE], names, since) == found


def test_since_includes_its_day() -> None:
    assert chosen([OLD, NEW], None, date(2026, 2, 1)) == [NEW]
    assert chosen([OLD, NEW], None, date(2026, 1, 5)) == [OLD, NEW]


def test_a_table_says_which_checkpoints_are_ready_and_in_which_order(tmp_path: Path) -> None:
    for name in ("step-9", "step-10", "step-11"):
        (tmp_path / "made" / MODEL / name).mkdir(parents=True)
    url = "http://127.0.0.1:1/v1"
    by_name = find_checkpoints(load_benchmark(write_benchmark(tmp_path, url)))
    assert [one.checkpoint for one in by_name] == ["step-9", "step-10", "step-11"]  # numbers as numbers
    assert all(one.made_on is not None for one in by_name)  # the folders' own dates

    rows = ["step-10,2026-01-01", "step-9,2026-01-02", "gone,2026-01-03"]
    (tmp_path / "ready.csv").write_text("\n".join(["model,checkpoint,date", *(f"{MODEL},{row}" for row in rows)]))
    listed = find_checkpoints(load_benchmark(write_benchmark(tmp_path, url, nightly='checkpoints = "ready.csv"')))
    assert listed == [
        Checkpoint(MODEL, "step-10", date(2026, 1, 1)),
        Checkpoint(MODEL, "step-9", date(2026, 1, 2)),  # step-11 is not ready, `gone` is not there
    ]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("ready.txt", "", "is one of .csv, .jsonl, .parquet"),
        ("ready.csv", "name,when\na,b\n", "needed: model, checkpoint"),
        ("ready.csv", f"model,checkpoint,date\n{MODEL},step-1,soon\n", "'soon' is not a date"),
    ],
)
def test_a_table_that_cannot_be_used(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / "made" / MODEL / "step-1").mkdir(parents=True)
    (tmp_path / name).write_text(text)
    file = write_benchmark(tmp_path, "http://127.0.0.1:1/v1", nightly=f'checkpoints = "{name}"')
    with pytest.raises(InputError, match=said):
        find_checkpoints(load_benchmark(file))
