"""The Batch APIs of Anthropic and Gemini against the difficult provider: what is bought, how often, whatever goes wrong."""

import asyncio
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo.world import JUDGE
from schemas.benchmark.judges import Judge, Price
from schemas.errors import ProviderDownError, ProviderError
from schemas.records import PlannedPart
from schemas.statuses.rows import ReplyOrigin
from schemas.statuses.rows import ReplyStatus as S
from tasks.judge.provider.base import provider_of
from tasks.judge.provider.batch_api import BatchApi, CallFailedError
from tasks.judge.provider.exchange import Answer, NotSent
from tasks.judge.provider.gemini.batch_api import GeminiBatches
from tasks.judge.provider.payload import SplicedPayload
from tasks.lake.reading import Lake
from tests.judge.batch.batch_bench import N_REQUESTS, QUICK, Bench, Wire, plan_scenes

FIELDS: dict[str, dict[str, Any]] = {
    "anthropic": {"parameters": {"max_tokens": 400}},
    "gemini": {"parameters": {"generationConfig": {"maxOutputTokens": 400}}},
}
CREATION = {"anthropic": "POST /messages/batches", "gemini": f"POST /models/{JUDGE}:batchGenerateContent"}

REFUSALS = {
    "anthropic": b'{"type": "error", "error": {"type": "rate_limit_error", "message": "later"}}',
    "gemini": b'{"error": {"code": 429, "message": "later", "status": "RESOURCE_EXHAUSTED"}}',
}


@pytest.fixture(scope="module", params=FIELDS)
def native(request: pytest.FixtureRequest) -> dict[str, Any]:
    return {"model": JUDGE, "provider": request.param, "api_key_env": "SALON_TEST_KEY"} | FIELDS[request.param]


@pytest.fixture(scope="module")
def planned(native: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, list[PlannedPart]]:
    return plan_scenes(tmp_path_factory.mktemp("native"), Judge(**native))


@pytest.fixture
def make_bench(native: dict[str, Any], planned: tuple[Lake, list[PlannedPart]], tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    wires: list[Wire] = []

    def make(batch: dict[str, Any] | None = None, **scenario: Any) -> Bench:
        wires.append(Wire({"batch": QUICK | (batch or {}), **scenario}))
        fields = native | {"base_url": wires[-1].url + ("beta" if native["provider"] == "gemini" else "")}
        return Bench(*planned, f"sqlite:///{tmp_path}/ledger-{len(wires)}.db", wires[-1], fields)

    yield make
    for wire in wires:
        wire.close()


def test_a_batch_gets_the_replies_that_asking_online_gets_at_half_the_price(
    make_bench: Callable[..., Bench], native: dict[str, Any], tmp_path: Path
) -> None:
    bench = make_bench()
    price = Price(input_usd_per_million=2, output_usd_per_million=0, batch_share=0.5)
    outcome = bench.run(judge=bench.judge(price=price))
    assert (outcome.n_requests, outcome.n_asked, outcome.n_answered) == (N_REQUESTS, N_REQUESTS, N_REQUESTS)
    assert bench.wire.n(CREATION[native["provider"]]) == 1
    got = bench.replies()
    assert set(got["origin"]) == {ReplyOrigin.BATCH.value}
    assert outcome.cost_usd == pytest.approx(got["n_input_tokens"].sum() / 1e6)
    other = f"sqlite:///{tmp_path}/online.db"
    bench.online(other)
    apart = ["origin", "cost_usd", "latency_s", "received_at"]
    assert got["reply_text"].n_unique() > 5
    assert got.drop(apart).equals(bench.replies(other).drop(apart))
    bench.check_all_is_settled()
    assert not list((bench.lake.root / "staging").glob("batch-*"))


def test_a_batch_whose_creation_was_never_heard_of_is_found_not_made_again(
    make_bench: Callable[..., Bench], native: dict[str, Any]
) -> None:
    bench = make_bench({"n_lost_creations": 1, "in_progress_s": 1.0})  # for longer than an absent batch is waited for
    assert bench.run().n_answered == N_REQUESTS
    assert bench.wire.n(CREATION[native["provider"]]) == 1
    assert bench.wire.bills() == {1: N_REQUESTS}


def test_a_strangers_batch_of_as_many_requests_is_not_taken_for_ours(
    make_bench: Callable[..., Bench], native: dict[str, Any]
) -> None:
    """Two runs of one account, each with a batch of the same size whose creation it never heard of."""
    bench = make_bench({"n_lost_creations": 2})
    other = Bench(bench.lake, bench.parts, bench.ledger_url.replace("ledger-", "other-"), bench.wire, bench.fields)
    assert [each.run().n_answered for each in (other, bench)] == [N_REQUESTS, N_REQUESTS]
    ids = [each.rows("SELECT provider_id FROM batches") for each in (other, bench)]
    assert ids[0] != ids[1]
    assert bench.wire.n(CREATION[native["provider"]]) == 2


def test_a_creation_that_never_arrived_is_made_again_after_a_while(
    make_bench: Callable[..., Bench], native: dict[str, Any]
) -> None:
    bench = make_bench()
    created = CREATION[native["provider"]]
    bench.wire.answer = lambda call: (502, b"bad gateway") if call == created and bench.wire.n(call) < 2 else None
    assert bench.run().n_answered == N_REQUESTS
    assert bench.wire.n(created) == 2
    assert bench.wire.bills() == {1: N_REQUESTS}
    bench.check_all_is_settled()


def test_a_creation_refused_for_longer_than_five_minutes_stops_the_run_and_keeps_what_was_uploaded(
    make_bench: Callable[..., Bench], native: dict[str, Any]
) -> None:
    bench, stop = make_bench(), threading.Event()
    created, told = CREATION[native["provider"]], (429, REFUSALS[native["provider"]])
    bench.wire.answer, bench.wire.headers = lambda call: told if call == created else None, {"Retry-After": "7200"}
    threading.Timer(10.0, stop.set).start()  # or it would sleep
    with pytest.raises(ProviderDownError, match=r"asks for a pause of [\d,]+ s .*no more requests are sent") as stopped:
        bench.run(stop=stop)
    assert stopped.value.exit_code == 3
    assert bench.wire.n(created) == 1
    assert bench.rows("SELECT state FROM batches") == [("uploaded",)]
    bench.wire.answer = lambda _call: None
    assert bench.run().n_answered == N_REQUESTS
    assert bench.wire.bills() == {1: N_REQUESTS}
    bench.check_all_is_settled()


KILLS = {"before the creation": ("before", 0), "after it": ("after", 0), "among the replies": (None, 5)}


@pytest.mark.parametrize(("moment", "n_replies"), KILLS.values(), ids=KILLS)
def test_a_killed_run_goes_on_and_pays_nothing_twice(
    make_bench: Callable[..., Bench], native: dict[str, Any], moment: str | None, n_replies: int
) -> None:
    bench = make_bench()
    created, children = CREATION[native["provider"]], []

    def on_call(now: str, call: str) -> object:
        if children and now == moment and call == created:
            children.pop().process.kill()
            return "drop" if moment == "before" else None
        return None

    bench.wire.on_call = on_call
    child = bench.start(n_replies)
    children += [child] if moment else []
    child.process.join(30)
    assert child.process.exitcode == -9
    children.clear()
    outcome = bench.run()
    assert outcome.n_answered + outcome.n_cached == N_REQUESTS
    assert bench.wire.bills() == {1: N_REQUESTS}
    bench.check_all_is_settled()


def test_a_line_that_fails_means_what_it_means_online(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench({"line_faults": {"error_500": 0.3, "malformed": 0.2, "policy_400": 0.1, "object_200": 0.1}})
    outcome = bench.run()
    replies = bench.replies()
    ended = Counter(replies.group_by("request_key").agg(pl.col("status").sort_by("ask_index").last())["status"].to_list())
    assert outcome.n_by_status[S.FILTERED.value] == ended["filtered"] > 0
    assert outcome.n_answered == ended["answered"] == N_REQUESTS - ended["filtered"]
    failed = dict(bench.rows("SELECT status, count(*) FROM attempts GROUP BY status"))
    assert failed["server_error"] > 0 < failed["bad_response"]
    assert bench.run().n_cached == N_REQUESTS
    bench.check_all_is_settled()


def test_a_batch_cancelled_at_the_provider_is_not_begun_again_by_the_same_run(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench({"in_progress_s": 1.5})
    cancelling: list[threading.Thread] = []

    def cancel() -> None:
        (job,) = bench.wire.batch_ids()
        asyncio.run(bench.wire.post(f"/batches/{job}/cancel"))

    def on_call(moment: str, call: str) -> None:
        if moment == "after" and call.startswith(("GET /messages/batches/msg", "GET /batches/")) and not cancelling:
            cancelling.append(threading.Thread(target=cancel))
            cancelling[0].start()

    bench.wire.on_call = on_call
    with pytest.raises(ProviderError, match="was cancelled at the provider"):
        bench.run()
    assert bench.run().n_requests == N_REQUESTS
    assert bench.replies().filter(status="answered").height == N_REQUESTS
    bench.check_all_is_settled()


@given(st.binary(min_size=32, max_size=32), st.sampled_from("01"), st.text("0123456789abcdef", min_size=32, max_size=32))
def test_a_requests_name_fits_anthropic_and_comes_back(digest: bytes, ask: str, token: str) -> None:
    api = _anthropic()
    custom_id = f"{digest.hex()}-{ask}"
    short = orjson.loads(api.line(custom_id, SplicedPayload([b"{}"], [])))["custom_id"]
    name = f"{token[:16]}_{short}"
    assert len(name) <= 64
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
    line = orjson.dumps({"custom_id": name, "result": {"type": "expired"}})
    assert _results(api, line) == [(custom_id, NotSent("the batch expired before this request was processed"))]


@pytest.mark.parametrize(
    "name", ["", "x", "-0", "a" * 64, "é" * 50, f"{'0' * 16}_{'A' * 43}", f"{'0' * 16}_{'A' * 42}=-0", f"{'0' * 16}_{'!' * 43}-0"]
)
def test_a_name_that_is_none_of_ours_is_passed_over(name: str) -> None:
    assert _results(_anthropic(), orjson.dumps({"custom_id": name, "result": {"type": "expired"}})) == []


LINES: dict[str, tuple[dict[str, Any], dict[str, Any], S]] = {  # anthropic's result, gemini's line, what both mean
    "rate limited": (
        {"type": "errored", "error": {"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}},
        {"error": {"code": 8, "message": "slow"}},
        S.RATE_LIMITED,
    ),
    "invalid": (
        {"type": "errored", "error": {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}},
        {"error": {"code": 3, "message": "no"}},
        S.REJECTED,
    ),
    "broken": (
        {"type": "errored", "error": {"type": "error", "error": {"type": "api_error", "message": "oops"}}},
        {"error": {"code": 13, "message": "oops"}},
        S.SERVER_ERROR,
    ),
    "no message": ({"type": "succeeded", "message": {}}, {"response": {}}, S.BAD_RESPONSE),
    "of no kind": ({"type": "new"}, {}, S.BAD_RESPONSE),
    "cancelled": ({"type": "canceled"}, {"error": {"code": 1, "message": "cancelled"}}, S.NOT_ASKED),
    "cancelled, as over HTTP": ({"type": "canceled"}, {"error": {"code": 499, "message": "cancelled"}}, S.NOT_ASKED),
    "cancelled, by its name": ({"type": "canceled"}, {"error": {"status": "CANCELLED", "message": "cancelled"}}, S.NOT_ASKED),
}


@pytest.mark.parametrize(("message", "content", "expected"), LINES.values(), ids=LINES)
def test_a_line_of_results_has_one_meaning(message: dict[str, Any], content: dict[str, Any], expected: S) -> None:
    name = f"{'0' * 16}_{'A' * 43}-0"
    for api, line in ((_anthropic(), {"custom_id": name, "result": message}), (_gemini(), {"key": "k", **content})):
        ((_, ended),) = _results(api, orjson.dumps(line))
        assert ended.status == expected


def test_a_line_of_results_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SALON_TEST_KEY", "key-very-secret-123")
    content = {"candidates": [{"content": {"parts": [{"text": "4 for key-very-secret-123"}]}, "finishReason": "STOP"}]}
    ((_, ended),) = _results(_gemini(), orjson.dumps({"key": "k", "response": content}))
    assert isinstance(ended, Answer)
    assert ended.text == "4 for [key removed]"


def test_a_file_is_sent_to_no_other_host(provider: Any, tmp_path: Path) -> None:
    """The key would go with it."""
    provider.then = provider.play(headers={"X-Goog-Upload-URL": "https://elsewhere.invalid/upload"})
    (tmp_path / "f.jsonl").write_bytes(b"{}\n")

    async def upload() -> str:
        judge = Judge(model="m", provider="gemini", base_url=provider.url)
        client = provider_of(judge)(judge, 1, 5)
        try:
            assert client.batch is not None
            return await client.batch.upload(tmp_path / "f.jsonl", "f", 3)
        finally:
            await client.close()

    with pytest.raises(CallFailedError, match="nothing was sent to another"):
        asyncio.run(upload())
    assert provider.n == 1


@pytest.mark.parametrize(
    ("said", "expected"),
    [("{here}/elsewhere/r?x=1", "{here}/elsewhere/r?x=1"),
     ("https://elsewhere.invalid/r", "{here}/v1/messages/batches/msgbatch_1/results"), (None, None)],
)  # fmt: skip
def test_results_are_fetched_where_the_provider_says_but_from_no_other_host(
    said: str | None, expected: str | None, provider: Any
) -> None:
    here = provider.url.removesuffix("/v1")
    batch = {"id": "msgbatch_1", "processing_status": "ended", "results_url": said and said.format(here=here)}
    provider.then = provider.play(body=orjson.dumps(batch))

    async def create() -> str | None:
        judge = Judge(model="m", provider="anthropic", base_url=provider.url, parameters={"max_tokens": 1})
        client = provider_of(judge)(judge, 1, 5)
        try:
            assert client.batch is not None
            with tempfile.NamedTemporaryFile() as file:
                file.write(b'{"custom_id":"x","params":{}}\n')
                file.flush()
                return (await client.batch.create(file.name, "0" * 32)).output_file_id
        finally:
            await client.close()

    assert asyncio.run(create()) == (expected and expected.format(here=here))
    assert provider.bodies == [{"requests": [{"custom_id": f"{'0' * 16}_x", "params": {}}]}]


def _anthropic() -> BatchApi:
    judge = Judge(model="m", provider="anthropic", base_url="http://localhost:1", parameters={"max_tokens": 1})
    return _batch_of(judge)


def _gemini() -> GeminiBatches:
    found = _batch_of(Judge(model="m", provider="gemini", base_url="http://localhost:1/v1beta", api_key_env="SALON_TEST_KEY"))
    assert isinstance(found, GeminiBatches)
    return found


def _batch_of(judge: Judge) -> BatchApi:
    found = provider_of(judge)(judge, 1, 1).batch
    assert found is not None
    return found


def _results(api: BatchApi, *lines: bytes) -> list[Any]:
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"\n".join(lines) + b"\n")
        file.flush()
        return list(api.results(Path(file.name)))


@pytest.mark.parametrize(("n_good", "is_failed"), [(0, True), (6, False)], ids=["of none", "of some"])
def test_a_batch_of_gemini_that_failed_after_some_were_answered_was_worked_on(n_good: int, is_failed: bool) -> None:
    stats = {"requestCount": "9", "successfulRequestCount": str(n_good), "failedRequestCount": "3"}
    seen = _gemini()._read({"name": "batches/1", "metadata": {"state": "BATCH_STATE_FAILED", "batchStats": stats}})
    assert (seen.is_failed, seen.is_ended) == (is_failed, True)
