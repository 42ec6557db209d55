"""What batches set aside of `max_usd`: by the pictures' own sizes, and by what earlier replies of any kind were billed."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from demo.world import JUDGE
from schemas.benchmark.judges import Judge, Price
from schemas.errors import ProviderError
from schemas.tables.stored import REQUESTS
from tasks.judge.budget.budget import leased_usd
from tasks.judge.budget.observed_usage import load_observed
from tasks.judge.outcome import Outcome
from tasks.ledger.claims import Claims
from tasks.ledger.ledger import Ledger
from tests.judge.batch.batch_bench import JUDGED, N_REQUESTS, PLAN, QUICK, Bench, Wire, in_results, plan_scenes

pytestmark = pytest.mark.slow

BOUNDED = {"temperature": 0, "max_tokens": 100}
PRICE = Price(input_usd_per_million=1, output_usd_per_million=1, batch_share=1)
OF_OUTPUT, WORST_NUSD = Price(input_usd_per_million=0, output_usd_per_million=1, batch_share=1), 1_000_000  # a line at worst
LITE, SIDE_PX, LITE_TOKENS = "gemini-2.5-flash-lite", 4096, 36 * 258
LITE_FIELDS: dict[str, Any] = {
    "model": LITE,
    "name": JUDGE,
    "provider": "gemini",
    "api_key_env": "SALON_TEST_KEY",
    "parameters": {"generationConfig": {"maxOutputTokens": 400}},
}


@pytest.fixture
def make_wire() -> Iterator[Callable[..., Wire]]:
    wires: list[Wire] = []

    def make(**scenario: Any) -> Wire:
        wires.append(Wire({"batch": QUICK} | scenario))
        return wires[-1]

    yield make
    for wire in wires:
        wire.close()


@pytest.fixture
def make_bench(tmp_path: Path, make_wire: Callable[..., Wire]) -> Callable[..., Bench]:
    def make(batch: dict[str, Any] | None = None, price: Price = OF_OUTPUT, max_tokens: int = 1000) -> Bench:
        wire = make_wire(batch=QUICK | (batch or {}))
        fields = JUDGED | {"base_url": wire.url, "parameters": BOUNDED | {"max_tokens": max_tokens}, "price": price}
        return Bench(*plan_scenes(tmp_path, Judge(**fields)), f"sqlite:///{tmp_path}/ledger.db", wire, fields)

    return make


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench(price=PRICE, max_tokens=100)


def held_nusd(bench: Bench) -> int:
    """What of the budget is spent, or held by lines."""
    with Ledger(bench.ledger_url) as ledger:
        return round(leased_usd(ledger, "a run") * 1e9)


def billed_usd(bench: Bench) -> float:
    return float(bench.rows("SELECT coalesce(sum(cost_usd), 0) FROM replies")[0][0])


def dear(response: dict[str, Any]) -> None:
    """Twenty times as many tokens of each input as the bound of it."""
    response["body"]["usage"]["prompt_tokens"] = 100_000


def unchanged(_: str, body: bytes) -> bytes:
    return body


def without_usage(response: dict[str, Any]) -> None:
    """Nothing is said of what was billed."""
    del response["body"]["usage"]


def filtered_without_usage(response: dict[str, Any]) -> None:
    """It ran, and its answer was filtered."""
    without_usage(response)
    response["body"]["choices"][0]["finish_reason"] = "content_filter"


def test_a_reply_to_a_batch_corrects_what_is_expected_as_one_online_does(bench: Bench, tmp_path: Path) -> None:
    other = f"sqlite:///{tmp_path}/online.db"
    bench.run()
    bench.online(other)
    found = []
    for url in (bench.ledger_url, other):
        with Ledger(url) as ledger:
            found.append(load_observed(ledger))
    assert found[0] == found[1]
    assert sum(seen.n_replies for seen in found[0].values()) == bench.replies().height >= N_REQUESTS


def test_a_batch_sets_aside_what_earlier_replies_show_that_a_request_can_cost(bench: Bench) -> None:
    bench.wire.change = in_results(dear)
    first, second = bench.parts[:2]
    bench.run(parts=[first])
    before_usd = billed_usd(bench)
    n = second.n_requests
    outcome = bench.run(parts=[second], max_usd=0.45)
    assert 0 < outcome.n_answered < n
    assert outcome.n_left == n - outcome.n_answered
    assert billed_usd(bench) - before_usd <= 0.45


def test_what_replies_did_not_cost_is_spent_in_further_rounds(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench()
    outcome = bench.run(max_usd=0.012)
    assert (outcome.n_answered, outcome.is_spent) == (N_REQUESTS, False)
    assert bench.wire.n("POST /batches") > 1
    assert held_nusd(bench) == round(billed_usd(bench) * 1e9) < 12_000_000


def test_what_costs_nothing_is_asked_whatever_the_budget(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(price=Price(input_usd_per_million=0, output_usd_per_million=0, batch_share=1))
    assert bench.run(max_usd=0.01).n_answered == N_REQUESTS
    assert held_nusd(bench) == 0


def test_starts_of_one_budget_have_it_together_whoever_collects_the_batch(make_bench: Callable[..., Bench]) -> None:
    bench, stop = make_bench({"in_progress_s": 0.8}), threading.Event()
    bench.wire.on_call = lambda _moment, call: stop.set() if call.startswith("GET /batches/") else None
    first = bench.run(max_usd=0.012, stop=stop)
    assert (first.n_in_flight, held_nusd(bench)) == (12, 12 * WORST_NUSD)
    second = bench.run(max_usd=0.012)
    assert first.n_answered + second.n_answered == N_REQUESTS
    assert held_nusd(bench) == round(billed_usd(bench) * 1e9)


HELD: dict[str, tuple[dict[str, Any], Callable[[str, bytes], bytes], int]] = {
    "expired before they were asked": ({"in_progress_s": 5, "window_s": 0.1}, unchanged, 0),
    "refused one by one": ({"line_faults": {"policy_400": 1}}, unchanged, 0),
    "answered without saying what it cost": ({}, in_results(without_usage), N_REQUESTS * WORST_NUSD),
    "filtered without saying what it cost": ({}, in_results(filtered_without_usage), N_REQUESTS * WORST_NUSD),
}


@pytest.mark.parametrize(("batch", "change", "nusd"), HELD.values(), ids=HELD)
def test_lines_that_have_ended_hold_what_they_may_have_cost(
    make_bench: Callable[..., Bench], batch: dict[str, Any], change: Callable[[str, bytes], bytes], nusd: int
) -> None:
    bench = make_bench(batch)
    bench.wire.change = change
    with suppress(ProviderError):
        bench.run(max_usd=N_REQUESTS * WORST_NUSD / 1e9)
    bench.check_all_is_settled()
    assert held_nusd(bench) == nusd


def test_large_pictures_are_set_aside_by_their_sizes(tmp_path: Path, make_wire: Callable[..., Wire]) -> None:
    price = {"usd_per_million_input_tokens": 0.1, "usd_per_million_output_tokens": 0.4}
    wire = make_wire(models=[{"id": LITE, **price}])
    fields = LITE_FIELDS | {"base_url": f"{wire.url}beta"}
    bench = Bench(*plan_scenes(tmp_path, Judge(**fields), SIDE_PX), f"sqlite:///{tmp_path}/ledger.db", wire, fields)

    def billed(response: dict[str, Any]) -> None:
        response["usageMetadata"]["promptTokenCount"] = LITE_TOKENS + 500

    wire.change = in_results(billed, ":download")
    outcome = bench.run(max_usd=0.008)
    assert 0 < outcome.n_answered < N_REQUESTS
    assert billed_usd(bench) <= 0.008
    with Ledger(bench.ledger_url) as ledger:
        assert billed_usd(bench) <= leased_usd(ledger, "a run") <= 0.008


NOT_ASKED: dict[str, dict[str, Any]] = {
    "no room in the budget": {"max_usd": 1e-9},
    "too large for a file": {"rules": {"max_file_bytes": 10}},
}


@pytest.mark.parametrize("more", NOT_ASKED.values(), ids=NOT_ASKED)
def test_what_a_run_cannot_ask_is_free_while_it_waits_for_others(make_bench: Callable[..., Bench], more: dict[str, Any]) -> None:
    """Two runs that each held what the other waits for would wait for ever."""
    bench, ended = make_bench(), list[Outcome]()
    keys = [set(bench.lake.read_part(REQUESTS, PLAN, part.index)["request_key"]) for part in bench.parts[:2]]
    run = threading.Thread(target=lambda: ended.append(bench.run(parts=bench.parts[:2], **more)))
    with Ledger(bench.ledger_url) as ledger:
        other = Claims(ledger)
        asyncio.run(other.take(keys[1]))
        run.start()
        until_s = time.monotonic() + 10
        while bench.rows("SELECT count(*) FROM owners")[0][0] < 2 and time.monotonic() < until_s:
            time.sleep(0.02)
        time.sleep(0.3)  # several rounds
        left = keys[0]
        while left and time.monotonic() < until_s:
            left = left - asyncio.run(other.take(left)).ours
        asyncio.run(other.release())
    run.join(20)
    assert left == set()
    assert [outcome.is_stopped for outcome in ended] == [False]
    assert held_nusd(bench) == 0
