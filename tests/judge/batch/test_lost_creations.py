"""A creation at Anthropic that was never heard of, looks that do not tell whose a batch is, and nothing bought twice."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from demo.world import JUDGE
from schemas.benchmark.judges import Judge
from schemas.errors import ProviderError
from schemas.records import PlannedPart
from tasks.lake.reading import Lake
from tests.judge.batch.batch_bench import N_REQUESTS, QUICK, Bench, Wire, plan_scenes

pytestmark = pytest.mark.slow

FIELDS: dict[str, Any] = {
    "model": JUDGE,
    "provider": "anthropic",
    "api_key_env": "SALON_TEST_KEY",
    "parameters": {"max_tokens": 400},
}
CREATION, LIST = "POST /messages/batches", "GET /messages/batches"


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, list[PlannedPart]]:
    return plan_scenes(tmp_path_factory.mktemp("creations"), Judge(**FIELDS))


@pytest.fixture
def make_bench(planned: tuple[Lake, list[PlannedPart]], tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    wires: list[Wire] = []

    def make(**batch: Any) -> Bench:
        wires.append(Wire({"batch": QUICK | batch}))
        return Bench(*planned, f"sqlite:///{tmp_path}/ledger.db", wires[-1], FIELDS | {"base_url": wires[-1].url})

    yield make
    for wire in wires:
        wire.close()


def n_looks(bench: Bench) -> int:
    return sum(call.endswith("/results") for call in bench.wire.seen)


def in_list(call: str, body: bytes, **changes: Any) -> bytes:
    """The list of batches with these values in those that have ended."""
    if call != LIST:
        return body
    content = json.loads(body)
    content["data"] = [row | (changes if row["processing_status"] == "ended" else {}) for row in content["data"]]
    return json.dumps(content).encode()


def unavailable(bench: Bench) -> None:
    bench.wire.answer = lambda call: (503, b"{}") if call.endswith("/results") and n_looks(bench) == 1 else None


def limited(bench: Bench) -> None:
    bench.wire.answer = lambda call: (429, b"{}") if call.endswith("/results") and n_looks(bench) == 1 else None


def absent(bench: Bench) -> None:
    bench.wire.answer = lambda call: (404, b"{}") if call.endswith("/results") and n_looks(bench) == 1 else None


def reset(bench: Bench) -> None:
    """Twice: the client itself asks once more where a connection that it kept is closed."""
    bench.wire.on_call = lambda at, call: "drop" if at == "before" and call.endswith("/results") and n_looks(bench) <= 2 else None


def empty(bench: Bench) -> None:
    bench.wire.change = lambda call, body: b"" if call.endswith("/results") and n_looks(bench) == 1 else body


def without_address(bench: Bench) -> None:
    lists: list[bytes] = []

    def change(call: str, body: bytes) -> bytes:
        if call == LIST and b'"ended"' in body and not lists:
            lists.append(body)
            return in_list(call, body, results_url=None)
        return body

    bench.wire.change = change


@pytest.mark.parametrize("trouble", [unavailable, limited, absent, reset, empty, without_address])
def test_a_look_that_tells_nothing_is_no_word_that_the_batch_is_anothers(
    make_bench: Callable[..., Bench], trouble: Callable[[Bench], None]
) -> None:
    bench = make_bench(n_lost_creations=1, in_progress_s=0.6)  # longer than an absent batch is waited for
    trouble(bench)
    assert bench.run(rules={"patience_s": 10.0}).n_answered == N_REQUESTS
    assert bench.wire.n(CREATION) == 1
    assert bench.wire.bills() == {1: N_REQUESTS}
    assert bench.rows("SELECT DISTINCT status FROM attempts") == [("answered",)]
    bench.check_all_is_settled()


def test_a_provider_that_does_not_tell_for_long_leaves_the_batch_for_later(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(n_lost_creations=1, in_progress_s=0.6)  # longer than an absent batch is waited for
    bench.wire.answer = lambda call: (503, b"{}") if call.endswith("/results") else None
    with pytest.raises(ProviderError, match="its Batch API fails, last with server_error"):
        bench.run(rules={"patience_s": 0.2})
    bench.wire.answer = lambda _call: None
    assert bench.run().n_answered == N_REQUESTS
    assert bench.wire.n(CREATION) == 1
    assert bench.wire.bills() == {1: N_REQUESTS}


@pytest.mark.parametrize("is_archived", [True, False])
def test_a_batch_that_can_never_be_told_apart_counts_as_possibly_billed(
    make_bench: Callable[..., Bench], is_archived: bool
) -> None:
    """The first creation is made by the provider and not heard of; its results are gone before anybody saw them."""
    bench = make_bench(n_lost_creations=1, in_progress_s=0.6)  # longer than an absent batch is waited for
    first: list[str] = []

    def answer(call: str) -> tuple[int, bytes] | None:
        if not call.endswith("/results") or is_archived:
            return None
        first.append(call)
        return (404, b"{}") if call == first[0] else None

    bench.wire.answer = answer
    if is_archived:
        archived = {"archived_at": "2026-01-01T00:00:00Z", "results_url": None}
        bench.wire.change = lambda call, body: in_list(call, body, **archived)
    assert bench.run().n_answered == N_REQUESTS
    assert bench.wire.n(CREATION) == 2
    counts = dict(bench.rows("SELECT status, count(*) FROM attempts GROUP BY status"))
    assert counts == {"timed_out": N_REQUESTS, "answered": N_REQUESTS}
    bench.check_all_is_settled()
