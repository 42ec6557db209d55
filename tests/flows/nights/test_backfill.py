"""A backfill: previewed, stopped by its money, resumed, done once; what others publish stays; a night goes first."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from PIL import Image
from sqlalchemy import select

from demo.running import running_judge
from flows.backfill import run_backfill
from flows.night_opening import open_night
from flows.nightly import run_night
from flows.observability.progress import Reporter
from flows.partitions.ends import BackfillSummary, check_failures
from flows.partitions.plan import BackfillPlan, open_backfill, plan_backfill
from flows.partitions.table import read_partitions
from flows.run.context import RunContext
from schemas.errors import ProviderError
from schemas.tables.published import BENCHMARK_LONG
from tasks.context import StageContext
from tasks.judge.provider.openai.client import OpenAIProvider
from tasks.judge.rate_limit.gcra import SECOND_US, YIELDING_HORIZON_US, Pace, Slot, grant
from tasks.judge.rate_limit.limiter import RateLimiter
from tasks.judge.rate_limit.store import limiter_id
from tasks.ledger.ledger import Ledger
from tasks.ledger.tables import CLAIMS
from tasks.publish.reading import publications
from tests.support.night_world import MODEL, N_SAMPLES, World, n_billed, write_benchmark

DAY = date(2026, 3, 1)
RUBRICS = ("alignment", "image_aspects")
NOT_OF_THE_CELL = ("publication_id", "dataset_id")  # which publication it stands in, and with what


def _planned(file: Path, names: Sequence[str] | None = None) -> BackfillPlan:
    return plan_backfill(open_backfill(file), names, None, Reporter())


def _backfill(file: Path, max_usd: float | None = None, judge_url: str | None = None) -> BackfillSummary:
    run = open_backfill(file, DAY, judge_url, max_usd)
    return run_backfill(RunContext.of(run), plan_backfill(run, None, None, Reporter()))


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
    night = run_night(RunContext.of(open_night(file, DAY)))
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


def test_a_backfill_of_one_checkpoint_counts_the_requests_of_its_whole_table(tmp_path: Path, judge_url: str) -> None:
    world = World(tmp_path)
    for number in range(2):
        world.make(number)
    file = write_benchmark(tmp_path, judge_url, rubrics=RUBRICS)
    each = N_SAMPLES * len(RUBRICS)
    for n_before, name in enumerate(("step-0", "step-1")):
        run = open_backfill(file, DAY)
        summary = run_backfill(RunContext.of(run), plan_backfill(run, [name], None, Reporter())).run
        assert summary is not None
        asked = summary.asked
        assert (summary.n_requests, asked.n_cached, asked.n_asked) == (each * (n_before + 1), each * n_before, each)
        assert asked.n_left == 0

    shutil.rmtree(tmp_path / "made" / MODEL / "step-0")
    world.make(2)
    told: list[str] = []

    class Hearing(Reporter):
        def say(self, text: str) -> None:
            told.append(text)

    run = open_backfill(file, DAY)
    after = run_backfill(RunContext.of(run, reporter=Hearing()), plan_backfill(run, None, None, Reporter())).run
    assert after is not None
    assert set(after.cells["checkpoint"]) == {"step-1", "step-2"}
    assert any(f"{MODEL}/step-0" in said and "no longer in any source" in said for said in told)


def _claim_for_a_dead_process(folder: Path) -> None:
    """Leave one row as a backfill leaves it that is killed while it asks."""
    row = min((folder / "lake" / "partitions" / "nights").glob("*.parquet"))
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        pid = dead.pid
    left = {"n_left": pl.lit(1, pl.Int64), "pid": pl.lit(pid, pl.Int64)}
    text = {"state": pl.lit("running"), "process_started": pl.lit("1")}
    pl.read_parquet(row).with_columns(**left, **text).write_parquet(row)


def test_a_checkpoint_whose_pictures_were_made_anew_is_published_beside_the_others(tmp_path: Path, judge_url: str) -> None:
    """A night judged and published the new ones beside the checkpoint before alone: of all there is no table but the old one."""
    world, made = World(tmp_path), tmp_path / "made" / MODEL
    for number in (1, 2, 3):
        world.make(number)
    file = write_benchmark(tmp_path, judge_url)
    assert _backfill(file).run is not None
    assert _backfill(file).run is None, "nothing to do"
    world.make(16)
    shutil.rmtree(made / "step-3")
    (made / "step-16").rename(made / "step-3")
    night = run_night(RunContext.of(open_night(file, DAY))).run
    assert night is not None
    again = _backfill(file).run
    assert again is not None
    assert set(pl.read_parquet(again.published.folder / "benchmark_long.parquet")["checkpoint"]) == {"step-1", "step-2", "step-3"}
    assert _cells(again.published.folder, "step-3")["estimate"].equals(_cells(night.published.folder, "step-3")["estimate"])
    assert _backfill(file).run is None, "nothing to do"


def test_a_night_goes_first_and_a_lost_judge_fails_its_partitions(tmp_path: Path, judge_url: str) -> None:
    World(tmp_path).make(0)
    file = write_benchmark(tmp_path, judge_url, limits=f"requests_per_minute = {PER_MINUTE}")
    lost = _backfill(file, judge_url=f"{judge_url}/nowhere")
    with pytest.raises(ProviderError, match=r"1 of 1 checkpoints.*\n.*step-0"):
        check_failures(lost)
    assert _states(file) == {("step-0", "alignment"): "failed"}

    start, run = n_billed(judge_url), open_backfill(file)
    filling = threading.Thread(target=_backfill, args=(file,))
    with _a_night_that_waits(run):
        filling.start()
        end = time.monotonic() + 60
        with Ledger(run.ledger_url) as ledger:
            while not ledger.read(lambda connection: connection.execute(select(CLAIMS.c.request_key)).first()):
                assert time.monotonic() < end, "the backfill never came to ask"
                time.sleep(0.02)
        time.sleep(4)
        assert n_billed(judge_url) - start <= 4  # of the 24 it sends alone in this time: what a machine with other work lets slip
    filling.join(60)
    assert n_billed(judge_url) == start + N_SAMPLES  # it went on, and nothing was bought twice
    assert _states(file) == {("step-0", "alignment"): "done"}


PER_MINUTE = 600


@contextmanager
def _a_night_that_waits(run: StageContext) -> Iterator[None]:
    """More requests than the limit lets through wait for the key: a night's, as the limit sees them."""
    (judge,) = run.benchmark.judges
    client = OpenAIProvider(judge, 1, 1.0)
    name = limiter_id(client.endpoint, client.key_digest, judge.model)
    is_over, is_begun = threading.Event(), threading.Event()

    async def ask() -> None:
        stopping = asyncio.Event()
        with Ledger(run.ledger_url) as ledger:
            allowance = RateLimiter(ledger, name, PER_MINUTE)

            async def wait() -> None:
                while not stopping.is_set():
                    await allowance.wait(1000, stopping)
                    is_begun.set()

            waiting = [asyncio.create_task(wait()) for _ in range(32)]
            while not is_over.is_set():
                await asyncio.sleep(0.02)
            stopping.set()
            await asyncio.gather(*waiting)

    night = threading.Thread(target=lambda: asyncio.run(ask()))
    night.start()
    assert is_begun.wait(120)
    yield
    is_over.set()
    night.join()


def test_the_limit_is_a_backfills_where_no_night_waits_for_it() -> None:
    """Twenty seconds in steps of 10 ms, 30 requests a second: a night asks when it is told to, from the 5th to the 15th."""
    pace, next_us = Pace(1800, None, 0, 0), 0
    night, backfill = list[Slot](), list[Slot]()
    for now_us in range(0, 20 * SECOND_US, SECOND_US // 100):
        if 5 * SECOND_US <= now_us < 15 * SECOND_US and now_us >= next_us:
            slots, next_us = grant(pace, None, now_us, [1] * 100)
            night += slots
        backfill += grant(pace, None, now_us, [1] * 100, [1] * 100, YIELDING_HORIZON_US)[0]
    first_us, last_us = night[0].at_us, night[-1].at_us
    assert first_us <= 5 * SECOND_US + YIELDING_HORIZON_US + 34_000  # what the backfill was granted before, and one request
    assert not [slot for slot in backfill if first_us < slot.at_us < last_us]
    moments_us = sorted(slot.at_us for slot in night + backfill)
    assert max(after - before for before, after in pairwise(moments_us)) < 45_000  # never idle, and never two at once
    assert min(after - before for before, after in pairwise(moments_us)) > 33_000


BATCHES = """
[batch]
validating_s = 0
in_progress_s = 3
finalizing_s = 0
"""
N_REPEATS = 21  # 504 requests: enough for a judge whose mode is not stated to be asked by batch
KILLED = """\
import sys
from datetime import date
from pathlib import Path
from flows.backfill import run_backfill
from flows.partitions.plan import open_backfill, plan_backfill
from flows.run.context import RunContext
from flows.observability.progress import Reporter
run = open_backfill(Path(sys.argv[1]), date.fromisoformat(sys.argv[2]))
run_backfill(RunContext.of(run), plan_backfill(run, None, None, Reporter()))
"""


def test_batches_are_preferred_and_outlive_a_kill(tmp_path: Path) -> None:
    World(tmp_path).make(0)
    (tmp_path / "batches.toml").write_text(BATCHES)
    with running_judge(tmp_path / "batches.toml") as url:
        file = write_benchmark(tmp_path, url, judge=f"repeats = {N_REPEATS}")
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
        killed = subprocess.Popen([sys.executable, "-c", KILLED, str(file), DAY.isoformat()], env=environment)
        end = time.monotonic() + 120
        while not _get(f"{url}/batches")["data"]:
            assert killed.poll() is None, "the backfill ended before its batch was made"
            assert time.monotonic() < end
            time.sleep(0.1)
        killed.kill()
        killed.wait()
        assert set(_states(file).values()) == {"failed"}  # running, and its process is gone

        check_failures(_backfill(file))
        stats = _get(url.removesuffix("/v1") + "/stats")
        assert stats["n_items_by_times_billed"] == {str(N_REPEATS): N_SAMPLES}  # to the provider repeats are one item
        assert stats["n_requests"] == 0  # nothing was asked online
        n_lines = [batch["request_counts"]["total"] for batch in _get(f"{url}/batches")["data"]]
        assert n_lines == [N_SAMPLES * N_REPEATS]  # nor handed over again

        made_anew = next((tmp_path / "made").glob("*/*/00000/samples/*"))
        Image.new("RGB", (64, 64), "red").save(made_anew)
        check_failures(_backfill(file))
        assert _get(url.removesuffix("/v1") + "/stats")["n_requests"] == N_REPEATS, "so few go online, whatever is stored"
    assert set(_states(file).values()) == {"done"}
    assert len(publications(tmp_path / "lake")) == 2


def _get(address: str) -> Any:
    with urllib.request.urlopen(address) as answer:
        return json.load(answer)


def _wait_for(url: str, n: int) -> None:
    end = time.monotonic() + 30
    while n_billed(url) < n:
        assert time.monotonic() < end
        time.sleep(0.02)
