"""The engine against the difficult provider in a process of its own: storms, limits, money. Long runs are benchmarks."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.request import Request, urlopen

import polars as pl
import pytest

from demo.running import running_judge
from rubrics.model import Rubric
from schemas.benchmark.file import Limits
from schemas.benchmark.judges import Judge
from schemas.errors import MissingInputError, ProviderDownError
from schemas.statuses.rows import ReplyStatus
from tasks.judge.admission import open_admission
from tasks.judge.engine import _Run, judge_requests
from tasks.judge.model_pin import ModelPin
from tasks.judge.outcome import Outcome
from tasks.judge.provider.exchange import RequestPicture
from tasks.judge.provider.openai.client import OpenAIProvider
from tasks.judge.retries import Breaker
from tasks.judge.session import Session
from tasks.judge.shard_requests import Shard
from tasks.judge.work_queue import WorkQueue
from tasks.ledger.claims import Claims
from tasks.ledger.ledger import Ledger
from tasks.ledger.process_identity import EXPIRES_AFTER_S
from tests.support.contexts import plan_part

pytestmark = pytest.mark.slow

CANNED = 'seed = 7\n[answer]\nmode = "canned"\ntext = \'{"score": 3}\'\n'
PRICED = '[[models]]\nid = "gpt-4o"\n'
STORM = (
    CANNED
    + PRICED
    + """
[faults]
retry_after = ["seconds", "milliseconds", "both", "date", "none"]
retry_after_s = [0.0, 0.6]
first_attempts = 2
drip_every_s = 0.2
[faults.shares]
rate_limited = 0.40
error_500 = 0.05
error_529 = 0.05
reset = 0.05
drip = 0.05
html_200 = 0.02
[stats]
grace_s = 0.25
"""
)


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Starts the provider with a scenario; gives its address."""
    running: list[Any] = []

    def start(scenario: str) -> str:
        path = tmp_path / "scenario.toml"
        path.write_text(scenario)
        running.append(running_judge(path))
        return str(running[-1].__enter__())

    yield start
    for one in running:
        one.__exit__(None, None, None)


def stats(url: str) -> dict[str, Any]:
    with urlopen(Request(url.removesuffix("/v1") + "/stats")) as response:
        return dict(json.loads(response.read()))


@pytest.fixture
def ask(rubric: Rubric, make_samples: Callable[..., pl.DataFrame], tmp_path: Path) -> Callable[..., tuple[Outcome, float]]:
    """Ask n requests at an address; gives the outcome and the seconds it took."""

    def ask(url: str, n: int, limits: Limits, **judge: Any) -> tuple[Outcome, float]:
        asked = Judge(model="gpt-4o", base_url=url, **({"parameters": {"max_tokens": 50}} | judge))
        requests = plan_part(make_samples(n), rubric, asked)[1]

        async def run() -> Outcome:
            client = OpenAIProvider(asked, limits.concurrency, limits.deadline_s)
            try:
                with Ledger(f"sqlite:///{tmp_path}/ledger.db") as ledger:
                    session = await Session.begin(ledger, client, limits)
                    async with open_admission(ledger, session, rubric, limits, "a run") as admission:
                        return await judge_requests(Shard(requests, _picture, ledger, client, rubric, limits), admission)
            finally:
                await client.close()

        started_s = time.monotonic()
        return asyncio.run(run()), time.monotonic() - started_s

    return ask


def test_who_slept_looks_at_its_claim_before_it_sends(
    play: Callable[[str], str], rubric: Rubric, make_samples: Callable[..., pl.DataFrame], tmp_path: Path
) -> None:
    """Between claim and wire this process slept for as long as its row lasts: another may be asking. It claims anew."""
    judge, limits = Judge(model="gpt-4o", base_url=play(CANNED + PRICED)), Limits(concurrency=1)
    requests = plan_part(make_samples(1), rubric, judge)[1]

    async def run() -> None:
        client = OpenAIProvider(judge, 1, limits.deadline_s)
        with Ledger(f"sqlite:///{tmp_path}/ledger.db") as ledger:
            session = await Session.begin(ledger, client, limits)
            async with open_admission(ledger, session, rubric, limits, "a run") as admission:
                queue = WorkQueue(requests, claims := Claims(ledger), asyncio.Event())
                shard = Shard(requests, _picture, ledger, client, rubric, limits)
                engine = _Run(shard, queue, admission, ModelPin(ledger, "", judge), Breaker())
                claimed = await queue.next()
                assert claimed is not None
                assert claims.is_sure(claimed.n_lost)
                claims._said_s -= EXPIRES_AFTER_S
                await engine.judge(claimed)
                assert stats(judge.base_url)["n_requests"] == 0
                assert ledger.last_failures([claimed.request_key])["status"].to_list() == ["not_asked"]
                again = await queue.next()
                assert again is not None
                assert (again.request_key, claims.is_sure(again.n_lost)) == (claimed.request_key, True)
                await engine.judge(again)
                assert ledger.known([claimed.request_key])
                assert await queue.next() is None
                assert engine.outcome.n_by_status == {"answered": 1}
        await client.close()

    asyncio.run(run())
    assert stats(judge.base_url)["n_requests"] == 1


def _picture(_: str) -> RequestPicture:
    return RequestPicture(lambda: b"png", "PNG", 512, 512)


def test_in_a_storm_every_item_ends_answered_or_typed_and_no_pause_is_broken(
    play: Callable[[str], str], ask: Callable[..., tuple[Outcome, float]]
) -> None:
    url = play(STORM)
    outcome, _ = ask(url, 18, Limits(concurrency=18, deadline_s=1.5, attempts_per_request=30))
    assert sum(outcome.n_by_status.values()) == 18
    assert outcome.n_answered >= 16  # the faults end after two attempts of an item; timed out twice is an end of its own
    assert set(outcome.n_by_status) <= {status.value for status in ReplyStatus}
    seen = stats(url)
    assert seen["n_to_paused_key"] == 0
    assert seen["n_429"] > 5  # there was a storm
    assert outcome.n_asked == seen["n_requests"]


def test_a_stated_limit_is_kept_and_used(play: Callable[[str], str], ask: Callable[..., tuple[Outcome, float]]) -> None:
    url = play(CANNED + PRICED + "[limits]\nrequests_per_minute = 1200\nburst_requests = 20\n")
    outcome, took_s = ask(url, 100, Limits(concurrency=32, requests_per_minute=1200))
    assert outcome.n_answered == 100
    assert stats(url)["n_429"] <= 2  # what was sent in time may arrive bunched on a busy machine
    assert took_s >= 80 / 20 * 0.9  # a hundred at 20/s, less a burst of 20 at most


def test_money_is_never_overspent_and_what_it_bought_is_kept(
    play: Callable[[str], str], ask: Callable[..., tuple[Outcome, float]], rubric: Rubric
) -> None:
    url = play(CANNED + PRICED)
    outcome, _ = ask(url, 100, Limits(concurrency=16, max_usd=0.006))
    bill_usd = sum(account["usd"] for account in stats(url)["accounts"])
    assert outcome.is_spent
    assert 0 < outcome.n_answered < 100
    assert bill_usd <= 0.006
    assert bill_usd > 0.003  # and the money was used, but for the worst case of the next request
    assert outcome.cost_usd == pytest.approx(bill_usd, rel=1e-6)


def test_a_request_is_attempted_no_more_often_than_stated(
    play: Callable[[str], str], ask: Callable[..., tuple[Outcome, float]]
) -> None:
    url = play(CANNED + PRICED + "[faults]\nretry_after_s = [0.0, 0.01]\n[faults.shares]\nrate_limited = 0.5\nerror_500 = 0.5\n")
    with pytest.raises(ProviderDownError):
        ask(url, 3, Limits(concurrency=3, attempts_per_request=4))
    assert stats(url)["n_requests"] == 12


@contextmanager
def dropping_pictures(is_dropped: Callable[[int], bool]) -> Iterator[tuple[str, list[int]]]:
    """An endpoint before a model that looks: of requests that `is_dropped` names, the texts alone. (address, requests)"""
    asked: list[int] = []

    class Endpoint(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked.append(len(asked))
            parts = [part for message in body["messages"] if isinstance(message["content"], list) for part in message["content"]]
            assert any(part["type"] == "image_url" for part in parts)
            is_seen = not is_dropped(asked[-1])
            said = {"score": 3, "reason": "The cat is there."} if is_seen else {"score": 0, "reason": "No image was provided."}
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": json.dumps(said)}}
            answer = json.dumps({"id": "1", "object": "chat.completion", "model": "gpt-4o", "choices": [choice]}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", asked
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(("every", "n_most"), [(1, 12), (10, 100)], ids=["each", "one of ten"])
def test_an_endpoint_that_drops_pictures_stops_the_run(
    ask: Callable[..., tuple[Outcome, float]], every: int, n_most: int
) -> None:
    """Its zeros are no scores, and no more of them are bought: eight that saw nothing, and what was in flight."""
    with dropping_pictures(lambda index: index % every == 0) as (url, asked):
        with pytest.raises(
            MissingInputError, match=r"gpt-4o at .* replies that it was given nothing .*max_missing_input.*a new name"
        ):
            ask(url, 200, Limits(concurrency=4))
        assert 8 <= len(asked) <= n_most


def test_a_few_replies_that_saw_nothing_stop_no_run(ask: Callable[..., tuple[Outcome, float]]) -> None:
    """Seven are no pattern, whatever share they are; they are not asked again, since asking mends nothing."""
    with dropping_pictures(lambda index: index < 7) as (url, asked):
        outcome, _ = ask(url, 20, Limits(concurrency=4))
    assert (outcome.n_answered, outcome.n_reasked, len(asked)) == (20, 0, 20)
