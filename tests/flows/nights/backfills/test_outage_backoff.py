"""What a backfill waits for and what it does not: outages of one judge or another, used-up attempts, few requests left."""

import time
from collections import deque
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from flows.partitions.outage_backoff import patiently
from schemas.errors import AccountError, ProviderDownError, ProviderError
from tasks.judge.outcome import Outcome
from tests.flows.flow_support import Said
from tests.support.checkpoint_folders import N_PROMPTS, make_folder, write_file
from tests.support.servers.provider import Play, Provider, completion

GOOD = Play(body=completion("Reasoning: plain.\nScore: 3"))
DOWN = Play(503, b"upstream connect error")
QUICK = "attempts_per_request = 1\nrequests_per_minute = 60000\n"


def _file(home: Path, url: str, limits: str = "", n: int = 2) -> Path:
    for number in range(n):
        make_folder(home, f"step-{number + 1}")
    file = write_file(home, url)
    file.write_text(file.read_text().replace("concurrency = 4", f"concurrency = 4\n{QUICK}{limits}"))
    return file


def _back_after_a_pause(provider: Provider, pause_s: float) -> list[float]:
    """Let the judge answer again once nothing was asked for so long after a failure; the times it was asked at."""
    asked_s: list[float] = []

    def look() -> None:
        asked_s.append(time.monotonic())
        if len(asked_s) > 1 and not provider.script and asked_s[-1] - asked_s[-2] > pause_s:
            provider.then = GOOD

    provider.on_request = look
    return asked_s


def _error(kind: type[ProviderError], judge_id: str, *, may_pass: bool) -> ProviderError:
    error = kind("it fails.")
    error.judge_id, error.may_pass = judge_id, may_pass
    return error


@pytest.mark.parametrize(
    ("error", "is_waited_for"),
    [
        (_error(ProviderDownError, "waited-a", may_pass=False), True),
        (_error(ProviderError, "waited-b", may_pass=True), True),
        (_error(ProviderError, "", may_pass=False), False),
        (_error(ProviderError, "", may_pass=True), False),
        (_error(AccountError, "", may_pass=False), False),
    ],
    ids=["down", "a Batch API that fails", "attempts used up", "a batch that was cancelled", "no credit"],
)
def test_only_an_outage_is_waited_for_and_the_error_that_others_share_stays_as_it_was(
    error: ProviderError, is_waited_for: bool
) -> None:
    n_asked, said = [0], list[str]()

    def ask(_: int) -> Outcome:
        n_asked[0] += 1
        raise error

    with pytest.raises(ProviderError) as ended:
        patiently(ask, 1.0, [error.judge_id], said.append)
    assert str(error) == "it fails."
    assert str(ended.value) == ("it fails. Waited 1 s without a reply." if is_waited_for else "it fails.")
    assert (n_asked[0] > 1, bool(said)) == (is_waited_for, is_waited_for)


def test_used_up_attempts_are_not_waited_for(tmp_path: Path, scoring: Provider, salon: Callable[..., Said]) -> None:
    file = _file(tmp_path, scoring.url, "attempts_per_run = 14\n")
    said = salon("backfill", file, "--all", "--at-once", "1", "--patience-minutes", "0.2")
    assert said.code == 3
    assert "the 14 attempts of this run are used up" in " ".join(said.err.split())
    assert "waited for" not in said.err


def test_what_an_outage_took_ends_no_later_try(tmp_path: Path, scoring: Provider, salon: Callable[..., Said]) -> None:
    """26 attempts: the first try takes 12, the second 9 and the other checkpoint 12."""
    file = _file(tmp_path, scoring.url, "attempts_per_run = 26\n")
    scoring.script, scoring.then = deque([GOOD] * 3), DOWN
    _back_after_a_pause(scoring, 3)
    said = salon("backfill", file, "--all", "--at-once", "1")
    assert said.code == 0, said.err
    assert "Waiting for it until " in " ".join(said.err.split())


def test_the_few_requests_that_an_outage_finds_left_are_asked_again(
    tmp_path: Path, scoring: Provider, salon: Callable[..., Said]
) -> None:
    """No breaker opens of four. The judge is back after a pause of 8 s: the third try."""
    file = _file(tmp_path, scoring.url)
    scoring.script, scoring.then = deque([GOOD] * 8), DOWN
    _back_after_a_pause(scoring, 8)
    said = salon("backfill", file, "--all", "--at-once", "1")
    assert said.code == 0, said.err
    assert scoring.n == 8 + 4 + 4 + 4 + N_PROMPTS


def test_of_two_judges_that_are_out_each_is_asked_again(tmp_path: Path, scoring: Provider, salon: Callable[..., Said]) -> None:
    """The first stays out; the second, of another checkpoint, is back after a while."""
    file = _file(tmp_path, scoring.url)
    text = file.read_text().replace('model = "judge-2026-01-01"', 'model = "judge-2026-01-01"\nname = "a"')
    head, rest = text.split("[[judges]]")
    a, tail = rest.split("[limits]")
    with closing(Provider()) as other:
        b = a.replace('name = "a"', 'name = "b"').replace(scoring.url, other.url).replace("max_tokens = 16", "max_tokens = 17")
        other.then = GOOD
        for judge, name in ((b, "step-1"), (a, "step-2")):
            file.write_text(f"{head}[[judges]]{judge}[limits]{tail}")
            assert salon("backfill", file, "--checkpoints", name).code == 0
        file.write_text(f"{head}[[judges]]{a}[[judges]]{b}[limits]{tail}")
        scoring.then, other.then = DOWN, Play(503, DOWN.body, delay_s=1.0)
        _back_after_a_pause(other, 2.5)
        said = salon("backfill", file, "--all", "--patience-minutes", "0.3")
        assert said.code == 3
        told = " ".join(said.err.split())
        assert "1 of 2 checkpoints are not done" in told
        assert "step-1 is not done" in told
