"""What batches set aside of `max_usd`: by the pictures' own sizes, and by what earlier replies of any kind were billed."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from demo.world import JUDGE
from schemas.benchmark.judges import Judge, Price
from tasks.judge.budget.budget import leased_usd
from tasks.judge.budget.observed_usage import load_observed
from tasks.ledger.ledger import Ledger
from tests.judge.batch.batch_bench import JUDGED, N_REQUESTS, QUICK, Bench, Wire, plan_scenes

pytestmark = pytest.mark.slow

BOUNDED = {"temperature": 0, "max_tokens": 100}
PRICE = Price(input_usd_per_million=1, output_usd_per_million=1, batch_share=1)
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
        wires.append(Wire({"batch": QUICK, **scenario}))
        return wires[-1]

    yield make
    for wire in wires:
        wire.close()


@pytest.fixture
def bench(tmp_path: Path, make_wire: Callable[..., Wire]) -> Bench:
    wire = make_wire()
    fields = JUDGED | {"base_url": wire.url, "parameters": BOUNDED, "price": PRICE}
    return Bench(*plan_scenes(tmp_path, Judge(**fields)), f"sqlite:///{tmp_path}/ledger.db", wire, fields)


def billed_usd(bench: Bench) -> float:
    return float(bench.rows("SELECT coalesce(sum(cost_usd), 0) FROM replies")[0][0])


def dear(call: str, body: bytes) -> bytes:
    """Files of results that say of each input twenty times as many tokens as the bound of it."""
    if not call.endswith("/content"):
        return body
    lines = [json.loads(line) for line in body.splitlines()]
    for line in lines:
        line["response"]["body"]["usage"]["prompt_tokens"] = 100_000
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


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
    bench.wire.change = dear
    first, second = bench.parts[:2]
    bench.run(parts=[first])
    before_usd = billed_usd(bench)
    n = second.n_requests
    outcome = bench.run(parts=[second], max_usd=0.45)
    assert 0 < outcome.n_answered < n
    assert outcome.n_left == n - outcome.n_answered
    assert billed_usd(bench) - before_usd <= 0.45


def test_large_pictures_are_set_aside_by_their_sizes(tmp_path: Path, make_wire: Callable[..., Wire]) -> None:
    price = {"usd_per_million_input_tokens": 0.1, "usd_per_million_output_tokens": 0.4}
    wire = make_wire(models=[{"id": LITE, **price}])
    fields = LITE_FIELDS | {"base_url": f"{wire.url}beta"}
    bench = Bench(*plan_scenes(tmp_path, Judge(**fields), SIDE_PX), f"sqlite:///{tmp_path}/ledger.db", wire, fields)

    def billed(call: str, body: bytes) -> bytes:
        if not call.endswith(":download"):
            return body
        lines = [json.loads(line) for line in body.splitlines()]
        for line in lines:
            line["response"]["usageMetadata"]["promptTokenCount"] = LITE_TOKENS + 500
        return b"".join(json.dumps(line).encode() + b"\n" for line in lines)

    wire.change = billed
    outcome = bench.run(max_usd=0.008)
    assert 0 < outcome.n_answered < N_REQUESTS
    assert billed_usd(bench) <= 0.008
    with Ledger(bench.ledger_url) as ledger:
        assert billed_usd(bench) <= leased_usd(ledger, "a run") <= 0.008
