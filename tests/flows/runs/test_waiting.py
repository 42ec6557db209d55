"""A run that waits for its provider says what it answers: beside the bar, or as a line now and then."""

import io
import threading
import time
from collections.abc import Callable
from pathlib import Path

from flows.observability.progress import Reporter
from flows.observability.terminal import Console
from flows.observability.waiting import Waiting
from schemas.statuses.rows import ReplyStatus as S
from tests.flows.flow_support import Said
from tests.support.night_world import N_SAMPLES, World, write_benchmark
from tests.support.servers.provider import Play, Provider, completion

LIMITED = Play(429, b'{"error": {"message": "Rate limit reached, sk-canary-71fe99"}}')
REFUSED = "no connection: [Errno 111] Connect call failed ('127.100.200.255', 65535)"
GOOD = Play(body=completion("Score: 4"))


def _until(said: list[str], n: int) -> None:
    end_s = time.monotonic() + 5
    while len(said) < n and time.monotonic() < end_s:
        time.sleep(0.01)


def test_failures_without_a_reply_are_told_by_and_by_and_a_reply_ends_it() -> None:
    said: list[str] = []
    waiting = Waiting(said.append, silent_s=0.05)
    for _ in range(12):
        waiting.failed(S.RATE_LIMITED, "Rate\nlimit " + 90 * "x")
    _until(said, 1)
    assert said == [f'waiting: the provider answers rate_limited ("Rate limit {78 * "x"}…") ×12'], "one word for all of them"
    waiting.failed(S.SERVER_ERROR, None)
    _until(said, 2)
    assert said[1:] == ["waiting: the provider answers server_error ×13"]
    waiting.failed(S.UNREACHABLE, REFUSED)
    _until(said, 3)
    assert said[2:] == [f'waiting: nothing answers ("{REFUSED}") ×14'], "the address is told whole"
    waiting.replied()
    assert said[3:] == [""]


def test_failures_among_replies_and_after_the_end_are_not_told() -> None:
    said: list[str] = []
    waiting = Waiting(said.append, silent_s=60)
    waiting.failed(S.TIMED_OUT, None)
    waiting.replied()
    waiting.failed(S.TIMED_OUT, None)
    first = waiting._timer
    waiting._tell()  # the timer of the first: the reply is not so long ago
    timer = waiting._timer
    assert first is not None
    assert timer is not None
    waiting.end()
    for one in (first, timer):
        one.join(5)
    assert (first.is_alive(), timer.is_alive(), said) == (False, False, [])
    waiting._tell()  # one that was about to speak at the end
    assert said == []


def test_failures_soon_after_a_reply_are_told_though_nothing_more_is_sent() -> None:
    said: list[str] = []
    waiting = Waiting(said.append, silent_s=0.3)
    waiting.failed(S.RATE_LIMITED, "slow down")
    time.sleep(0.1)
    waiting.replied()
    for _ in range(8):
        waiting.failed(S.RATE_LIMITED, "again in 60 s")
    _until(said, 1)
    assert said == ['waiting: the provider answers rate_limited ("again in 60 s") ×8']


def test_what_is_taken_back_while_it_is_said_does_not_stay() -> None:
    said: list[str] = []
    is_saying = threading.Event()

    def say(sentence: str) -> None:
        if sentence:
            is_saying.set()
            time.sleep(0.2)  # a slow terminal
        said.append(sentence)

    waiting = Waiting(say, silent_s=0.05)
    waiting.failed(S.RATE_LIMITED, None)
    assert is_saying.wait(60)
    waiting.end()
    _until(said, 2)
    assert said == ["waiting: the provider answers rate_limited ×1", ""]


def test_a_secret_is_taken_out_before_the_words_are_cut() -> None:
    said: list[str] = []
    waiting = Waiting(said.append, silent_s=0.01)
    waiting.failed(S.SERVER_ERROR, 49 * "x" + " sk-canary-71fe99")
    _until(said, 1)
    assert "sk-" not in said[0]


def test_beside_the_bar_it_is_no_markup_holds_no_secret_and_goes_away() -> None:
    seen = io.StringIO()
    reporter = Reporter(Console(file=seen, force_terminal=True, width=200))
    with reporter.shown():
        reporter.start("judge", 12)
        reporter.describe("judge", 'waiting: ("[bold]busy[/bold] [/] sk-canary-71fe99")')
        assert reporter._bars is not None
        reporter._bars.refresh()
        assert '[bold]busy[/bold] [/] [removed]")' in seen.getvalue()
        seen.truncate(0)
        reporter.describe("judge", "")
        reporter._bars.refresh()
        assert "waiting" not in seen.getvalue()


def test_a_run_that_is_kept_off_by_its_rate_limits_says_so(
    salon: Callable[..., Said], tmp_path: Path, provider: Provider
) -> None:
    World(tmp_path).make(1)
    began: list[float] = []

    def look() -> None:
        began.append(time.monotonic())
        provider.then = LIMITED if began[-1] - began[0] < 13 else GOOD

    provider.on_request = look
    said = salon("run", write_benchmark(tmp_path, provider.url))
    assert said.code == 0, said.err
    told = " ".join(said.err.split())
    assert 'judge: waiting: the provider answers rate_limited ("HTTP 429: Rate limit reached, [removed]") ×' in told
    assert "judge: 24 done" in told


def test_a_request_asked_twice_is_one_of_those_done(salon: Callable[..., Said], tmp_path: Path, provider: Provider) -> None:
    World(tmp_path).make(1)
    seen = set[str]()

    def answers(text: str) -> str:
        is_first = text not in seen
        seen.add(text)
        return "Hmm." if is_first else "Score: 4"

    provider.answers = answers
    said = salon("run", write_benchmark(tmp_path, provider.url), "--run-date", "2026-11-02")
    assert said.code == 0, said.err
    assert f"judge: {N_SAMPLES} done" in said.err
    assert provider.n == N_SAMPLES + len(seen)
