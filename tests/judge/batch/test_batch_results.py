"""Results that a provider has and does not give at once: fetched again, at every provider, before anything is bought again."""

from collections import Counter
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

FIELDS: dict[str, dict[str, Any]] = {
    "openai": {"parameters": {"temperature": 0}},
    "anthropic": {"parameters": {"max_tokens": 400}},
    "gemini": {"parameters": {"generationConfig": {"maxOutputTokens": 400}}},
}
CREATION = {
    "openai": "POST /batches",
    "anthropic": "POST /messages/batches",
    "gemini": f"POST /models/{JUDGE}:batchGenerateContent",
}
N_LOOKS = 3
ABSENT = (404, b'{"error": {"message": "no such file", "type": "not_found_error", "code": 404}}')


@pytest.fixture(scope="module", params=FIELDS)
def fields(request: pytest.FixtureRequest) -> dict[str, Any]:
    return {"model": JUDGE, "provider": request.param, "api_key_env": "SALON_TEST_KEY"} | FIELDS[request.param]


@pytest.fixture(scope="module")
def planned(fields: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, list[PlannedPart]]:
    return plan_scenes(tmp_path_factory.mktemp("results"), Judge(**fields))


@pytest.fixture
def make_bench(fields: dict[str, Any], planned: tuple[Lake, list[PlannedPart]], tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    wires: list[Wire] = []

    def make(**batch: Any) -> Bench:
        wires.append(Wire({"batch": QUICK | batch}))
        base_url = wires[-1].url + ("beta" if fields["provider"] == "gemini" else "")
        return Bench(*planned, f"sqlite:///{tmp_path}/ledger-{len(wires)}.db", wires[-1], fields | {"base_url": base_url})

    yield make
    for wire in wires:
        wire.close()


def is_download(call: str) -> bool:
    return call.endswith(("/content", "/results", ":download"))


def downloads(bench: Bench) -> list[str]:
    return [call for call in bench.wire.seen if is_download(call)]


@pytest.mark.parametrize("n_absent", [1, N_LOOKS - 1])
def test_results_that_are_absent_for_a_look_or_two_are_fetched_later(make_bench: Callable[..., Bench], n_absent: int) -> None:
    bench = make_bench()
    bench.wire.answer = lambda call: ABSENT if is_download(call) and len(downloads(bench)) <= n_absent else None
    assert bench.run().n_answered == N_REQUESTS
    assert bench.wire.bills() == {1: N_REQUESTS}
    assert bench.rows("SELECT DISTINCT status FROM attempts") == [("answered",)]
    bench.check_all_is_settled()


def test_results_that_a_gateway_does_not_know_for_a_while_are_not_bought_again(make_bench: Callable[..., Bench]) -> None:
    bench, said = make_bench(), list[str]()
    bench.wire.answer = lambda call: ABSENT if is_download(call) and len(downloads(bench)) <= 2 * N_LOOKS else None
    assert bench.run(rules={"patience_s": 30.0}, say=said.append).n_answered == N_REQUESTS
    assert ["; looking for them, at least 30 s" in one for one in said] == [True]
    assert bench.wire.bills() == {1: N_REQUESTS}


def test_results_that_stay_absent_are_asked_for_anew_and_counted_as_possibly_billed(
    make_bench: Callable[..., Bench], fields: dict[str, Any]
) -> None:
    bench = make_bench()
    bench.wire.answer = lambda call: ABSENT if is_download(call) and call == downloads(bench)[0] else None
    assert bench.run(rules={"patience_s": 0.0}).n_answered == N_REQUESTS
    assert downloads(bench).count(downloads(bench)[0]) == N_LOOKS
    assert bench.wire.n(CREATION[fields["provider"]]) == 2
    counts = dict(bench.rows("SELECT status, count(*) FROM attempts GROUP BY status"))
    assert counts == {"answered": N_REQUESTS, "timed_out": N_REQUESTS}
    bench.check_all_is_settled()


def test_lines_without_a_reply_in_a_try_that_failed_may_have_been_billed_all_the_same(
    make_bench: Callable[..., Bench], fields: dict[str, Any]
) -> None:
    """The provider is away as they are handed over anew; the second try finds nothing of the first batch."""
    bench, lost = make_bench(), Counter[str]()
    creation = CREATION[fields["provider"]]
    judge = bench.judge(price={"input_usd_per_million": 1, "output_usd_per_million": 1})

    def answer(call: str) -> tuple[int, bytes] | None:
        if is_download(call) and call == downloads(bench)[0]:
            return ABSENT
        return (401, b"{}") if call.startswith(creation) and bench.wire.n(creation) == 2 else None

    bench.wire.answer = answer
    with pytest.raises(ProviderError):
        bench.run(judge=judge, rules={"patience_s": 0.0}, in_doubt=lost)
    outcome = bench.run(judge=judge, in_doubt=lost)
    assert (outcome.n_answered, outcome.n_in_doubt, outcome.is_at_least) == (N_REQUESTS, N_REQUESTS, True)


def test_results_that_end_early_are_fetched_again(make_bench: Callable[..., Bench]) -> None:
    """A connection that is closed in the middle of a body without a length looks like its end."""
    bench = make_bench()
    bench.wire.change = lambda call, body: body[: len(body) // 2] if is_download(call) and len(downloads(bench)) == 1 else body
    assert bench.run().n_answered == N_REQUESTS
    assert len(downloads(bench)) == 2
    assert bench.wire.bills() == {1: N_REQUESTS}
    bench.check_all_is_settled()


@pytest.mark.parametrize("said", [b"<html>busy</html>", b""], ids=["a gateway's page", "nothing"])
def test_a_file_that_holds_no_reply_at_all_is_not_bought_again(make_bench: Callable[..., Bench], said: bytes) -> None:
    bench = make_bench()
    bench.wire.change = lambda call, body: said if is_download(call) else body
    with pytest.raises(ProviderError, match=f"has {N_REQUESTS} replies but a file that holds none of them; run the same command"):
        bench.run()
    assert len(downloads(bench)) == N_LOOKS
    assert bench.rows("SELECT DISTINCT state FROM batches") == [("live",)]
    bench.wire.change = lambda _, body: body
    assert bench.run().n_fetched == N_REQUESTS
    assert bench.wire.bills() == {1: N_REQUESTS}
    bench.check_all_is_settled()


def test_results_cut_short_in_a_batch_that_expired_are_told_from_what_nobody_worked_on(
    make_bench: Callable[..., Bench], fields: dict[str, Any]
) -> None:
    """The lines that expired do not stand in for those that were cut off."""
    if fields["provider"] == "gemini":
        pytest.skip("it gives no results of a batch that expired")
    bench = make_bench(in_progress_s=0.4, window_s=0.25)
    bench.wire.change = lambda call, body: body[: len(body) // 2] if is_download(call) and len(downloads(bench)) == 1 else body
    bench.run()
    assert set(bench.wire.bills()) == {1}
