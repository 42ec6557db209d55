"""Pairs are asked as a backfill makes its table: of the same money, and what they cost is in its row."""

from collections import deque
from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.lake.reading import Lake
from tasks.publish.machine_tables import runs
from tests.flows.flow_support import Said
from tests.support.checkpoint_folders import N_PROMPTS, make_folder, write_file
from tests.support.servers.provider import Play, Provider, completion

USD = 900 * 2e-6 + 12 * 8e-6  # of a reply, as the provider reports it
N_ALONE = 2 * N_PROMPTS
N_PAIRS = 2 * N_PROMPTS  # in both orders
_VERDICT = '{"reason": "x", "alignment": "first", "quality": "tie", "overall": "first"}'


@pytest.fixture
def file(tmp_path: Path, scoring: Provider) -> Path:
    """Two checkpoints, each asked about alone and both as pairs; one attempt a request is quick."""
    for name in ("step-1", "step-2"):
        make_folder(tmp_path, name)
    scoring.answers = lambda text: _VERDICT if "second picture" in text else "Reasoning: plain.\nScore: 3"
    file = write_file(tmp_path, scoring.url, rubrics=("alignment", "preference"))
    file.write_text(file.read_text().replace("concurrency = 4", "concurrency = 4\nattempts_per_request = 1"))
    return file


def test_max_usd_is_of_pairs_too(tmp_path: Path, file: Path, salon: Callable[..., Said], scoring: Provider) -> None:
    seen = " ".join(salon("backfill", file, "--all", "--dry-run").out.split())
    assert f"to ask {N_ALONE} requests: " in seen
    assert "pairs not counted above: requests of preference may come on top, in money and time, once it is known" in seen
    said = salon("backfill", file, "--all", "--max-usd", "0.06")
    told = " ".join(said.err.split())
    assert (said.code, scoring.n > N_ALONE, scoring.n * USD <= 0.06) == (3, True, True), (scoring.n, told)
    n_left = N_ALONE + N_PAIRS - scoring.n
    assert (
        f"max_usd = 0.06 is reached: $0.0{round(scoring.n * USD * 1000)} was spent. Remaining: {n_left} requests about pairs"
        in told
    )
    more = salon("backfill", file, "--all", "--max-usd", "1")
    assert (more.code, scoring.n) == (0, N_ALONE + N_PAIRS), more.err
    assert runs(Lake(tmp_path / "lake"))["cost_usd"].sum() == pytest.approx(scoring.n * USD)
    assert "nothing to do" in salon("backfill", file, "--all").out


@pytest.mark.parametrize("is_done_before", [False, True])
def test_an_outage_under_pairs_has_its_row(
    tmp_path: Path, file: Path, salon: Callable[..., Said], scoring: Provider, is_done_before: bool
) -> None:
    good = [Play(body=completion("Reasoning: plain.\nScore: 3"))] * N_ALONE
    some = [Play(body=completion(_VERDICT))] * 5
    down = Play(503, b"upstream connect error")
    scoring.answers = None
    scoring.script, scoring.then = deque([*good, *([] if is_done_before else some)]), down
    if is_done_before:
        assert salon("backfill", file, "--all").code == 3
        scoring.script.extend(some)
    n_before = scoring.n
    assert salon("backfill", file, "--all").code == 3
    row = runs(Lake(tmp_path / "lake")).sort("started_at").row(-1, named=True)
    n_answered = 5 if is_done_before else N_ALONE + 5
    assert (row["outcome"], row["asked_by"], row["n_asked"]) == ("stopped", "backfill", scoring.n - n_before)
    assert row["cost_usd"] == pytest.approx(n_answered * USD)


@pytest.mark.parametrize("command", [("run",), ("backfill", "--all")], ids=["a run", "a backfill"])
def test_an_outage_under_pairs_says_what_is_stored_and_what_the_same_command_does(
    tmp_path: Path, file: Path, salon: Callable[..., Said], scoring: Provider, command: tuple[str, ...]
) -> None:
    whole = file.read_text()
    file.write_text(whole.replace('[[rubrics]]\nid = "preference"', ""))
    assert (salon(command[0], file, *command[1:]).code, scoring.n) == (0, N_ALONE)
    file.write_text(whole)
    answers, scoring.answers, scoring.then = scoring.answers, None, Play(503, b"upstream connect error")
    ended = salon(command[0], file, *command[1:])
    assert ended.code == 3
    assert (
        f"Only pairs lack replies: every reply about single samples is stored ({N_ALONE}), and 0 of {N_PAIRS} about pairs. "
        "Nothing is published now; the same command asks these pairs alone. To publish the single scores without them, take "
        "preference out of the benchmark file." in " ".join(ended.err.split())
    )
    n_before, scoring.answers = scoring.n, answers
    assert (salon(command[0], file, *command[1:]).code, scoring.n) == (0, n_before + N_PAIRS)


def test_a_night_of_pairs_alone_is_whole_and_asked_once(tmp_path: Path, salon: Callable[..., Said], scoring: Provider) -> None:
    for name in ("step-1", "step-2"):
        make_folder(tmp_path, name)
    scoring.answers = lambda _: _VERDICT
    file = write_file(tmp_path, scoring.url, rubrics=("preference",))
    assert salon("run", file, "--run-date", "2026-01-01").code == 0
    nights = [salon("nightly", file) for _ in range(2)]
    assert [night.code for night in nights] == [0, 0], nights
    assert "already published" in nights[1].out + nights[1].err
