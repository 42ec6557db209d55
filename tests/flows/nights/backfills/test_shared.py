"""A question that two checkpoints share is asked once: so do the preview, the progress and what is said to be left count it."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.backfill import run_backfill
from flows.executors.choose import opened_executor
from flows.observability.progress import shown_progress
from flows.partitions.plan import open_backfill, plan_backfill
from flows.run.context import RunContext
from schemas.benchmark.file import Runner
from tests.flows.flow_support import Said, cells_of
from tests.support.checkpoint_folders import N_PROMPTS, make_folder, write_file
from tests.support.servers.provider import Play, Provider

N_SHARED = 5


def test_a_shared_question_is_counted_and_priced_once(tmp_path: Path, salon: Callable[..., Said], scoring: Provider) -> None:
    for name in ("step-1", "step-2"):
        make_folder(tmp_path, name, N_SHARED)
    file = write_file(tmp_path, scoring.url)
    told = salon("backfill", file, "--all", "--dry-run").out
    n_all = 2 * N_PROMPTS - N_SHARED
    counts = [line.split()[1:5] for line in told.splitlines() if line.startswith("m/")]
    assert counts == [["12", "12", "0", "12"], ["12", "12", "0", "7"]]
    assert f"to ask      {n_all} requests" in told
    assert f"shared      {N_SHARED} more requests are shared with a checkpoint above and counted there" in told
    first, second = (float(usd) for usd in re.findall(r"^m/.*?\$([\d.]+)", told, re.MULTILINE))
    assert round(second / first, 1) == round((N_PROMPTS - N_SHARED) / N_PROMPTS, 1)
    assert salon("backfill", file, "--all").code == 0
    assert scoring.n == n_all
    told = salon("backfill", file, "--all", "--dry-run").out
    assert ("to ask      0 requests" in told, "\nshared " in told) == (True, False)


@pytest.mark.parametrize("runner", ["local", "processes"])
def test_the_progress_counts_a_shared_question_once(
    tmp_path: Path, salon: Callable[..., Said], scoring: Provider, runner: Runner
) -> None:
    for name in ("step-1", "step-2", "step-3"):
        make_folder(tmp_path, name, N_PROMPTS)
    run = open_backfill(write_file(tmp_path, scoring.url), max_usd=0.02)
    with shown_progress() as reporter, opened_executor(run, runner, 1) as executor:
        ended = run_backfill(RunContext.of(run, executor, reporter), plan_backfill(run, None, None, reporter))
    n_done, n_left, _ = reporter.stages()["judge"]
    assert (0 < n_done < N_PROMPTS, n_done, n_done + n_left) == (True, scoring.n, N_PROMPTS)
    assert (len(ended.left), sum(ended.left.values())) == (3, N_PROMPTS - scoring.n)


@pytest.mark.parametrize("at_once", ["1", "2"])
def test_a_checkpoint_whose_last_questions_another_got_answered_is_done(
    tmp_path: Path, salon: Callable[..., Said], scoring: Provider, at_once: str
) -> None:
    """One request fails once. Its checkpoint has ended by then, and the other asks it; nobody asks the first anything more."""
    for name in ("step-1", "step-2"):
        make_folder(tmp_path, name, N_PROMPTS)
    file = write_file(tmp_path, scoring.url)
    file.write_text(file.read_text().replace("concurrency = 4", "concurrency = 4\nattempts_per_request = 1"))
    scoring.script.extend([*[scoring.then] * (N_PROMPTS - 1), Play(503, b"upstream connect error")])
    said = salon("backfill", file, "--all", "--at-once", at_once, "--patience-minutes", "0")
    assert (said.code, scoring.n) == (0, N_PROMPTS + 1), said.err
    if "is not done" in said.err:  # two at once may find that it failed before either has ended, and either may have asked it
        said_once = " ".join(said.err.split())
        done = re.findall(r"m/(step-\d) is done after all: its last replies came with those of a checkpoint", said_once)
        assert done in ([["step-2"]] if at_once == "1" else [["step-1"], ["step-2"]])
    else:
        assert at_once == "2"
    assert "backfill: 2 done" in said.err.splitlines()
    assert "2 done" in salon("backfill", file, "--list").out
    assert set(cells_of(tmp_path / "lake")["checkpoint"]) == {"step-1", "step-2"}


def test_a_checkpoint_that_was_not_begun_is_done_where_another_had_all_its_replies(
    tmp_path: Path, salon: Callable[..., Said], scoring: Provider
) -> None:
    """The first has what the third shares with it; the second, with questions of its own, is refused."""
    make_folder(tmp_path, "step-3", N_PROMPTS)
    make_folder(tmp_path, "step-2")
    make_folder(tmp_path, "step-1", N_PROMPTS)
    scoring.script.extend([scoring.then] * N_PROMPTS)
    scoring.then = Play(401, b'{"error": {"message": "no such key"}}')
    said = salon("backfill", write_file(tmp_path, scoring.url), "--all", "--at-once", "1")
    assert (said.code, "1 of 3 checkpoints are not done; all complete" in " ".join(said.err.split())) == (3, True)
    assert set(cells_of(tmp_path / "lake")["checkpoint"]) == {"step-1", "step-3"}
