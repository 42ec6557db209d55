"""Judging through the difficult provider's Batch API: what is bought, how often, and what is told, whatever goes wrong."""

import asyncio
import json
import shutil
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from sqlalchemy import update

from demo.world import JUDGE
from schemas.benchmark.judges import Judge, Price
from schemas.errors import AccountError, BatchLostError, InputError, ProviderError, RejectedError, StoreError
from schemas.records import JudgeReply, PlannedPart
from schemas.statuses.rows import ReplyOrigin, ReplyStatus
from schemas.tables.stored import REQUESTS
from tasks.judge.batch.collect import Collector
from tasks.judge.batch.run import is_by_batch
from tasks.judge.batch.state import Batch, BatchState, custom_id, declare
from tasks.judge.model_pin import ModelPin
from tasks.judge.provider.exchange import Answer
from tasks.judge.work_queue import PlannedRequests
from tasks.lake.reading import Lake
from tasks.lake.writing import stage
from tasks.ledger.claims import Claims
from tasks.ledger.ledger import Ledger
from tasks.ledger.tables import BATCHES
from tests.judge.batch.batch_bench import (
    JUDGED,
    N_REQUESTS,
    PLAN,
    QUICK,
    RULES_DEFAULT,
    Bench,
    Child,
    Wire,
    in_results,
    plan_scenes,
)

pytestmark = pytest.mark.slow
ABSENT = (404, b"404 page not found")


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, list[PlannedPart]]:
    return plan_scenes(tmp_path_factory.mktemp("batch"), Judge(**JUDGED))


@pytest.fixture
def make_bench(planned: tuple[Lake, list[PlannedPart]], tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    wires: list[Wire] = []

    def make(batch: dict[str, Any] | None = None, **scenario: Any) -> Bench:
        wires.append(Wire({"batch": QUICK | (batch or {}), **scenario}))
        return Bench(planned[0], planned[1], f"sqlite:///{tmp_path}/ledger-{len(wires)}.db", wires[-1])

    yield make
    for wire in wires:
        wire.close()


def test_a_reply_whose_reading_raises_is_stored_and_its_line_let_go_by_the_next_run(
    make_bench: Callable[..., Bench], tmp_path: Path
) -> None:
    """No reply is known that does so: here the facts beside it cannot be read."""
    bench, whole = make_bench(), make_bench().lake
    bench.lake = Lake(tmp_path / "lake")
    shutil.copytree(whole.root, bench.lake.root)
    bench.lake.marker(REQUESTS, PLAN).unlink()
    shutil.rmtree(bench.lake.partition(REQUESTS, PLAN))
    staging = stage(bench.lake, REQUESTS)
    for part in bench.parts:
        requests = whole.read_part(REQUESTS, PLAN, part.index)
        is_damaged = (pl.int_range(pl.len()) == 0) & (part.index == 0)
        facts = pl.when(is_damaged).then(pl.lit("{")).otherwise("facts_json")
        staging.write_part(part.index, requests.with_columns(facts_json=facts))
    staging.commit(PLAN)
    (key,) = bench.lake.read_part(REQUESTS, PLAN, 0)["request_key"][:1]
    with Ledger(bench.ledger_url) as ledger:
        asyncio.run(_collect(ledger, bench, key))
        assert ledger.known([key]) == {key}


async def _collect(ledger: Ledger, bench: Bench, key: str) -> None:
    claims, said = Claims(ledger), Answer(ReplyStatus.ANSWERED, text="Score: 3")
    batch = Batch("t" * 32, "e", "K", JUDGE, BatchState.LIVE, 1, 9, holder_id=claims.owner_id)
    await claims.take([key])
    await ledger.alone(partial(declare, batch=batch, ask_indexes={key: 0}, reserved_nusd={}))
    requests, pin = PlannedRequests(bench.context(), bench.parts), ModelPin(ledger, PLAN, bench.judge())
    collector = Collector(ledger, requests, JUDGE, pin, 12, lambda _: None)
    with pytest.raises(json.JSONDecodeError):
        await collector.collect(batch.token, [(custom_id(key, 0), said)])
    assert await collector.collect(batch.token, []) == []


def test_a_batch_gets_the_replies_that_asking_online_gets(make_bench: Callable[..., Bench], tmp_path: Path) -> None:
    bench = make_bench(batch={"line_faults": {"malformed": 0.0}})
    told: list[tuple[str, bool]] = []
    price = Price(input_usd_per_million=2, output_usd_per_million=0, batch_share=0.5)
    outcome = bench.run(judge=bench.judge(price=price), on_progress=lambda *said: told.append(said))
    assert (outcome.n_requests, outcome.n_asked, outcome.n_answered, outcome.n_cached) == (N_REQUESTS, N_REQUESTS, N_REQUESTS, 0)
    assert bench.wire.n("POST /files") == bench.wire.n("POST /batches") == 1  # both rubrics, all parts
    assert told[-1][0] == f"batch 1 of 1: completed, {N_REQUESTS} of {N_REQUESTS}"
    states = [said.split(": ")[1].split(",")[0] for said, _ in told]
    assert [is_new for _, is_new in told] == [at == 0 or states[at - 1] != state for at, state in enumerate(states)]
    got = bench.replies()
    assert set(got["origin"]) == {ReplyOrigin.BATCH.value}
    assert outcome.cost_usd == pytest.approx(got["cost_usd"].sum()) == pytest.approx(got["n_input_tokens"].sum() / 1e6)
    other = f"sqlite:///{tmp_path}/online.db"
    bench.online(other)
    apart = ["origin", "cost_usd", "latency_s", "received_at"]
    assert got["reply_text"].n_unique() > 5
    assert got.drop(apart).equals(bench.replies(other).drop(apart))
    bench.check_all_is_settled()
    assert not list((bench.lake.root / "staging").glob("batch-*"))


def test_what_was_bought_online_is_not_asked_in_a_batch_nor_the_other_way_round(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench()
    half = Bench(bench.lake, bench.parts[:2], bench.ledger_url, bench.wire)
    half.online(bench.ledger_url)
    outcome = bench.run()
    assert (outcome.n_cached, outcome.n_asked, outcome.n_answered) == (N_REQUESTS // 2, N_REQUESTS // 2, N_REQUESTS // 2)
    assert set(bench.replies()["origin"]) == {ReplyOrigin.ASKED.value, ReplyOrigin.BATCH.value}
    n_calls = len(bench.wire.seen)
    again = bench.run()
    bench.online(bench.ledger_url)
    assert (again.n_cached, again.n_asked, len(bench.wire.seen)) == (N_REQUESTS, 0, n_calls)
    assert bench.wire.bills() == {1: N_REQUESTS}


def test_what_expired_goes_into_the_next_batch(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench({"in_progress_s": 0.4, "window_s": 0.25})  # in which a batch of one line is never answered
    outcome = bench.run()
    assert bench.wire.n("POST /batches") == 7
    assert dict(outcome.n_by_status) == {"answered": N_REQUESTS - 1, "not_asked": 1}
    assert bench.wire.bills() == {1: N_REQUESTS - 1}
    replies = bench.replies()
    answered, left = replies.filter(status="answered"), replies.filter(status="not_asked")
    assert set(answered["n_attempts"]) == {1}  # to wait in a queue is no attempt at an answer
    assert left["error_detail"][0].startswith("batch_expired: ")
    assert bench.rows("SELECT count(*) FROM attempts WHERE status = 'not_asked'") == [(outcome.n_asked - N_REQUESTS + 1,)]
    bench.check_all_is_settled()


def test_a_line_that_fails_means_what_it_means_online(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench({"line_faults": {"error_500": 0.3, "malformed": 0.2, "policy_400": 0.1, "object_200": 0.1}})
    outcome = bench.run()
    replies = bench.replies()
    first, second = replies.filter(ask_index=0), replies.filter(ask_index=1)
    n_filtered = first.filter(status=ReplyStatus.FILTERED.value).height
    ended = Counter(replies.group_by("request_key").agg(pl.col("status").sort_by("ask_index").last())["status"].to_list())
    assert outcome.n_by_status[ReplyStatus.FILTERED.value] == ended["filtered"] >= n_filtered > 0
    assert outcome.n_answered == ended["answered"] == N_REQUESTS - ended["filtered"]
    assert outcome.n_reasked == second.height > 0
    failed = dict(bench.rows("SELECT status, count(*) FROM attempts GROUP BY status"))
    assert failed["server_error"] > 0 < failed["bad_response"]
    assert outcome.n_asked == sum(failed.values()) - failed.get("not_asked", 0)
    assert replies["n_attempts"].sum() == outcome.n_asked
    with Ledger(bench.ledger_url) as ledger:
        assert not ledger.reasks_due(second["request_key"])
    again = bench.run()
    assert (again.n_asked, again.n_cached) == (0, N_REQUESTS)
    bench.check_all_is_settled()


def _rejecting(call: str, body: bytes) -> bytes:
    """Every line of a file of results as a rejection in the same words."""
    if not call.endswith("/content"):
        return body
    error = {"status_code": 400, "body": {"error": {"message": "max_tokens is not supported; use max_completion_tokens"}}}
    lines = [json.loads(line) | {"response": error, "error": None} for line in body.splitlines()]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def test_a_batch_rejected_whole_stops_the_next_and_is_asked_again(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench()
    wire, looked_at = bench.wire, []

    def is_early(call: str, body: bytes) -> bool:
        """The first batch is seen to have ended once the second is handed over, and no sooner or later."""
        if not call.startswith("GET /batches/"):
            return False
        looked_at.append(call)
        return call == looked_at[0] and wire.n("POST /batches") == 2 and json.loads(body)["status"] != "completed"

    def change(call: str, body: bytes) -> bytes:
        if call.startswith("GET /batches/") and not (call == looked_at[0] and wire.n("POST /batches") == 2):
            return json.dumps(json.loads(body) | {"status": "in_progress"}).encode()
        return _rejecting(call, body)

    wire.is_early, wire.change = is_early, change
    with pytest.raises(
        RejectedError,
        match=r"rejects what it is sent, each time with the same message.*max_tokens is not supported.*asks only what is missing",
    ):
        bench.run(rules={"max_lines": 8})
    assert wire.n("POST /batches") == 2, "the first came back while the second was sent; two more are not"
    assert bench.rows("SELECT count(*) FROM replies") == [(0,)], "no rejection is kept for good"
    wire.is_early, wire.change = lambda _call, _body: False, _rejecting
    with pytest.raises(RejectedError):
        bench.run()
    assert wire.n("POST /batches") == 3, "what the second brought is forgotten, and all asked once more"
    wire.change = lambda _call, body: body
    assert bench.run().n_answered == N_REQUESTS
    assert wire.n("POST /batches") == 4
    bench.check_all_is_settled()


def test_a_creation_that_is_refused_is_not_sent_again(make_bench: Callable[..., Bench]) -> None:
    """The same body would be refused in the same way; at some providers all requests are in it."""
    bench = make_bench()
    refused = b'{"error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}'
    bench.wire.answer = lambda call: (413, refused) if call == "POST /batches" else None
    with pytest.raises(RejectedError, match=r"refused to create a batch: HTTP 413.*maximum size.*the same command again") as told:
        bench.run()
    assert not told.value.may_pass
    assert bench.wire.n("POST /batches") == 1
    bench.wire.answer = lambda _call: None
    assert bench.run().n_answered == N_REQUESTS
    bench.check_all_is_settled()


def test_a_batch_of_which_one_line_is_answered_is_not_rejected_whole(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench()
    bench.wire.change = lambda call, body: b"".join([
        *body.splitlines(keepends=True)[:1], *_rejecting(call, body).splitlines(keepends=True)[1:]
    ])  # fmt: skip
    outcome = bench.run()
    assert outcome.n_by_status == {"answered": 1, "rejected": N_REQUESTS - 1}


def test_batches_that_were_too_much_at_once_are_made_smaller(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench({"n_failing": 2})
    told: list[str] = []
    assert bench.run(on_progress=lambda said, _: told.append(said)).n_answered == N_REQUESTS
    assert f"batch 1 of 1: failed, 0 of {N_REQUESTS}" in told
    sizes = [n for (n,) in bench.rows("SELECT n_lines FROM batches ORDER BY intended_at_us")]
    assert sizes[:2] == [N_REQUESTS, N_REQUESTS // 2]
    assert bench.wire.bills() == {1: N_REQUESTS}


def test_a_run_whose_smaller_batches_fail_line_by_line_does_not_blame_their_size(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench({"n_failing": 1, "line_faults": {"error_500": 1.0}})
    assert bench.run().n_by_status == {"server_error": N_REQUESTS}


def test_batches_that_keep_failing_stop_the_run_and_say_why(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench({"max_lines": 5})  # of the provider; ours believes in more
    with pytest.raises(ProviderError, match=r"failed batch batch_\w+: too_many_requests: the file has more than 5 requests"):
        bench.run()
    assert bench.wire.n("POST /batches") == RULES_DEFAULT.n_fruitless
    bench.check_all_is_settled()
    assert set(bench.replies()["status"]) == {"not_asked"}
    assert bench.run(rules={"max_lines": 5}).n_answered == N_REQUESTS


def test_a_batch_whose_creation_was_never_heard_of_is_found_not_made_again(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench({"n_lost_creations": 1})
    assert bench.run().n_answered == N_REQUESTS
    assert bench.wire.n("POST /batches") == 1
    assert bench.wire.bills() == {1: N_REQUESTS}


def test_a_creation_that_never_arrived_is_made_again_after_a_while(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench()
    bench.wire.answer = lambda call: (502, b"bad gateway") if call == "POST /batches" and bench.wire.n(call) < 2 else None
    assert bench.run().n_answered == N_REQUESTS
    assert (bench.wire.n("POST /batches"), bench.wire.n("POST /files")) == (2, 1)


KILLS = {  # moment, call, replies until then; how often files are sent and batches created in all
    "before the upload": ("before", "POST /files", 0, 2, 1),
    "after the upload": ("after", "POST /files", 0, 1, 1),
    "before the creation": ("before", "POST /batches", 0, 1, 2),
    "after the creation": ("after", "POST /batches", 0, 1, 1),
    "while it is polled": ("after", "GET /batches/", 0, 1, 1),
    "before the results are read": ("after", "GET /files/file-", 0, 1, 1),
    "in the middle of the results": ("", "", 10, 1, 1),
}


@pytest.mark.parametrize(("moment", "call", "n_replies", "n_uploads", "n_creations"), KILLS.values(), ids=KILLS)
def test_a_killed_run_goes_on_and_pays_nothing_twice(
    make_bench: Callable[..., Bench], moment: str, call: str, n_replies: int, n_uploads: int, n_creations: int
) -> None:
    bench = make_bench()
    child: list[Child] = []

    def kill(at: str, seen: str) -> object:
        if at == moment and seen.startswith(call) and child[0].process.exitcode is None:
            child[0].kill()
            return "drop"
        return None

    bench.wire.on_call = kill
    child.append(bench.start(n_replies))
    child[0].process.join(60)
    assert child[0].process.exitcode in (-signal.SIGKILL, 255)  # 255: the fork server saw it die and could not say of what
    outcome = bench.run()
    assert outcome.n_cached + outcome.n_answered == N_REQUESTS
    assert bench.replies().filter(status="answered").height == N_REQUESTS
    assert bench.wire.bills() == {1: N_REQUESTS}
    assert len(bench.wire.stats("/stats/items")) == N_REQUESTS
    assert (bench.wire.n("POST /files"), bench.wire.n("POST /batches")) == (n_uploads, n_creations)
    bench.check_all_is_settled()


def test_a_run_beside_another_waits_for_its_batch(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench({"in_progress_s": 3.0})
    other = bench.start()
    begun = threading.Event()
    bench.wire.on_call = lambda _moment, call: begun.set() if call == "POST /batches" else None
    assert begun.wait(60)
    told: list[str] = []
    outcome = bench.run(on_progress=lambda said, _: told.append(said))
    assert other.told() == [N_REQUESTS, 0, False]
    assert (outcome.n_cached, outcome.n_asked) == (N_REQUESTS, 0)
    assert told == [f"batch 1 of 1: handled by another process, {N_REQUESTS} lines"]
    assert bench.wire.n("POST /batches") == 1
    assert bench.wire.bills() == {1: N_REQUESTS}


def test_a_run_takes_over_the_batch_of_one_that_is_killed_beside_it(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench({"in_progress_s": 0.6})
    other = bench.start()
    begun = threading.Event()
    bench.wire.on_call = lambda _moment, call: begun.set() if call == "POST /batches" else None
    assert begun.wait(60)
    threading.Timer(0.15, other.kill).start()
    outcome = bench.run(parts=bench.parts[:1])  # of a plan that shares some requests alone
    assert (outcome.n_answered, outcome.n_asked) == (bench.parts[0].n_requests, 0)
    assert len(bench.rows("SELECT * FROM batch_lines")) == N_REQUESTS - outcome.n_answered  # left to who knows them
    assert bench.run().n_answered == N_REQUESTS - outcome.n_answered
    assert bench.wire.bills() == {1: N_REQUESTS}
    bench.check_all_is_settled()


def test_runs_that_begin_at_once_share_the_requests(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench()
    with ThreadPoolExecutor(3) as pool:
        outcomes = list(pool.map(lambda _: bench.run(), range(3)))
    assert sum(outcome.n_asked for outcome in outcomes) == N_REQUESTS
    assert [outcome.n_cached + outcome.n_answered for outcome in outcomes] == [N_REQUESTS] * 3
    assert bench.wire.bills() == {1: N_REQUESTS}
    bench.check_all_is_settled()


def test_files_are_cut_by_lines_and_by_bytes(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench({"max_lines": 10, "max_file_bytes": 60_000})
    told: list[str] = []
    outcome = bench.run(rules={"max_lines": 10, "max_file_bytes": 60_000}, on_progress=lambda said, _: told.append(said))
    sizes = bench.rows("SELECT n_lines, n_bytes FROM batches ORDER BY intended_at_us")
    assert outcome.n_answered == sum(n for n, _ in sizes) == N_REQUESTS
    assert all(n <= 10 and n_bytes <= 60_000 for n, n_bytes in sizes)
    assert {n for n, _ in sizes[:-1]} != {10}  # bytes were the limit at least once
    assert any(said.startswith(f"batch {len(sizes)} of {len(sizes)}: ") for said in told)
    assert bench.wire.bills() == {1: N_REQUESTS}


def test_a_request_that_fits_no_file_is_left_out_and_says_so(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench()
    outcome = bench.run(rules={"max_file_bytes": 7_000})
    left = bench.replies().filter(status="not_asked")
    assert 0 < left.height == outcome.n_by_status["not_asked"] < N_REQUESTS
    assert "do not fit into a batch file of 7000; send it online" in left["error_detail"][0]
    assert outcome.n_answered == N_REQUESTS - left.height


def test_a_stopped_run_leaves_its_batch_and_the_next_collects_it(make_bench: Callable[..., Bench]) -> None:
    bench, stop = make_bench({"in_progress_s": 0.8}), threading.Event()
    bench.wire.on_call = lambda _moment, call: stop.set() if call.startswith("GET /batches/") else None
    outcome = bench.run(stop=stop)
    assert (outcome.is_stopped, outcome.n_in_flight, outcome.n_answered) == (True, N_REQUESTS, 0)
    online = bench.judge(mode="online")
    outcome = bench.run(judge=online, is_asking=False)  # the mode may be another by then
    assert (outcome.n_answered, outcome.n_asked, outcome.n_in_flight, outcome.is_stopped) == (N_REQUESTS, 0, 0, False)
    assert outcome.n_fetched == N_REQUESTS
    assert bench.wire.bills() == {1: N_REQUESTS}


def test_a_process_that_is_told_to_end_leaves_its_batch(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench({"in_progress_s": 30})
    child = bench.start()
    polled = threading.Event()
    bench.wire.on_call = lambda _moment, call: polled.set() if call.startswith("GET /batches/") else None
    assert polled.wait(60)
    child.process.terminate()
    assert child.told(within_s=5) == [0, N_REQUESTS, True]


def test_a_run_stopped_amid_the_creation_has_its_requests_counted_once(make_bench: Callable[..., Bench]) -> None:
    bench, stop = make_bench(), threading.Event()

    def stop_amid(moment: str, call: str) -> None:
        if (moment, call) == ("after", "POST /batches"):
            stop.set()
            time.sleep(1.0)  # the answer comes after the run has ended

    bench.wire.on_call = stop_amid
    outcome = bench.run(stop=stop)
    assert (outcome.is_stopped, outcome.n_asked, outcome.n_in_flight) == (True, N_REQUESTS, N_REQUESTS)
    outcome = bench.run()
    assert (outcome.n_asked, outcome.n_fetched, outcome.n_answered) == (0, N_REQUESTS, N_REQUESTS)


def _tried_before(bench: Bench) -> set[str]:
    """What a run has handed over in a try of its that ended early."""
    stop, own = threading.Event(), set[str]()
    bench.wire.on_call = lambda _moment, call: stop.set() if call.startswith("GET /batches/") else None
    assert bench.run(stop=stop, own=own).n_in_flight == N_REQUESTS
    return own


def test_a_batch_of_the_runs_own_earlier_try_is_not_one_of_earlier_runs(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench({"in_progress_s": 0.8})
    outcome = bench.run(own=_tried_before(bench))
    assert (outcome.n_answered, outcome.n_fetched) == (N_REQUESTS, 0)


def test_a_batch_of_an_earlier_try_rejected_whole_stops_the_run(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench({"in_progress_s": 0.8})
    bench.wire.change, own = _rejecting, _tried_before(bench)
    with pytest.raises(RejectedError):
        bench.run(own=own)
    assert bench.wire.n("POST /batches") == 1


def test_a_run_whose_replies_cannot_be_stored_holds_nothing_afterwards(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench()
    path = Path(bench.ledger_url.removeprefix("sqlite:///"))

    def refuse(moment: str, call: str) -> None:
        if (moment, call) == ("after", "POST /batches"):
            with closing(sqlite3.connect(path)) as connection, connection:
                connection.execute("CREATE TRIGGER full BEFORE INSERT ON replies BEGIN SELECT RAISE(ABORT, 'no room'); END")

    bench.wire.on_call = refuse
    with pytest.raises(StoreError, match="no room"):
        bench.run()
    assert bench.rows("SELECT * FROM owners WHERE owner_id NOT IN (SELECT token FROM batches)") == []


def test_only_fetching_asks_nothing(make_bench: Callable[..., Bench]) -> None:
    bench, stop = make_bench({"in_progress_s": 0.8, "window_s": 0.5}), threading.Event()
    outcome = bench.run(is_asking=False)
    assert (outcome.n_asked, outcome.n_cached, bench.wire.seen) == (0, 0, [])
    bench.wire.on_call = lambda _moment, call: stop.set() if call.startswith("GET /batches/") else None
    bench.run(stop=stop)
    outcome = bench.run(is_asking=False)
    assert 0 < outcome.n_answered < N_REQUESTS == outcome.n_by_status.total()  # the rest expired
    assert bench.wire.n("POST /batches") == 1


def test_only_fetching_holds_no_request_that_is_in_no_batch(make_bench: Callable[..., Bench]) -> None:
    bench, stop, held = make_bench({"in_progress_s": 0.5}), threading.Event(), list[Any]()
    keys = {part: set(bench.lake.read_part(REQUESTS, PLAN, part.index)["request_key"]) for part in bench.parts}
    asked_part = max(bench.parts, key=lambda part: min(keys[part]))
    bench.wire.on_call = lambda _moment, call: stop.set() if call.startswith("GET /batches/") else None
    bench.run(parts=[asked_part], stop=stop)
    bench.wire.on_call = lambda *_: held.extend(key for (key,) in bench.rows("SELECT request_key FROM claims"))
    assert bench.run(is_asking=False).n_answered == asked_part.n_requests
    assert set(held) == keys[asked_part]


def test_an_endpoint_without_a_batch_api_is_told_apart(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench()
    bench.wire.answer = lambda call: (
        (404, b'{"error": {"message": "no such path"}}') if "/files" in call or "/batches" in call else None
    )
    with pytest.raises(InputError, match=r'has no Batch API \(HTTP 404: no such path\); set mode = "online", or "auto"'):
        bench.run()
    assert not is_by_batch(bench.judge(mode="auto"), 1_000)
    bench.check_all_is_settled()
    bench.wire.answer = lambda _call: None
    modes = [("auto", 1_000), ("auto", 10), ("online", 1_000), ("batch", 1)]
    assert [is_by_batch(bench.judge(mode=mode), n) for mode, n in modes] == [True, False, False, True]
    assert is_by_batch(bench.judge(mode="auto"), 10, at_least=10)


def test_the_query_of_the_address_is_sent_with_every_call_and_stored_with_none(make_bench: Callable[..., Bench]) -> None:
    bench, query = make_bench(), "api-version=2026-01-01&code=hidden77"
    assert bench.run(judge=bench.judge(base_url=f"{bench.wire.url}?{query}")).n_answered == N_REQUESTS
    assert {one for one in bench.wire.queries if query not in one} == set()
    assert bench.rows("SELECT DISTINCT endpoint FROM batches") == [(bench.wire.url,)]


def test_a_key_that_is_not_accepted_stops_the_run_and_is_never_shown(
    make_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "a-key-of-our-own-0815"
    monkeypatch.setenv("SALON_TEST_KEY", key)
    bench = make_bench()
    said = b'{"error": {"message": "%s is not known", "code": "invalid_api_key"}}' % key.encode()
    bench.wire.answer = lambda call: (401, said) if call.startswith("POST /batches") else None
    with pytest.raises(AccountError, match="check the key in the environment variable SALON_TEST_KEY") as stopped:
        bench.run()
    assert key not in str(stopped.value)
    bench.wire.answer = lambda _call: None
    bench.wire.change = lambda call, body: (
        body.replace(b'"content":"', b'"content":"%s ' % key.encode()) if "content" in call else body
    )
    assert bench.run().n_answered == N_REQUESTS
    assert bench.wire.n("POST /files") == 1  # what the first run had uploaded
    texts = bench.replies()["reply_text"].to_list()
    assert all(text.startswith("[key removed] ") for text in texts)


def test_a_provider_that_is_away_for_a_while_is_waited_for(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench()
    calls = ("POST /files", "GET /batches/", "GET /files/")
    bench.wire.answer = lambda call: (503, b"busy") if call.startswith(calls) and bench.wire.n(call) < 2 else None
    assert bench.run(rules={"patience_s": 30, "first_patience_s": 30}).n_answered == N_REQUESTS
    assert bench.wire.bills() == {1: N_REQUESTS}


def test_a_provider_that_stays_away_leaves_the_batch_for_later(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench()
    bench.wire.answer = lambda call: (503, b"busy") if call.startswith("GET /batches/") else None
    with pytest.raises(ProviderError, match=r"its Batch API fails, last with server_error .*HTTP 503: busy.*Check the provider"):
        bench.run(rules={"patience_s": 0.2})
    bench.wire.answer = lambda _call: None
    assert bench.run().n_answered == N_REQUESTS
    assert bench.wire.bills() == {1: N_REQUESTS}


def test_a_batch_of_another_account_is_not_given_up(make_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    bench, stop = make_bench(), threading.Event()
    bench.wire.on_call = lambda _moment, call: stop.set() if call.startswith("GET /batches/") else None
    bench.run(stop=stop)
    monkeypatch.setenv("SALON_OTHER_KEY", "k")
    with pytest.raises(InputError, match=r"32 requests of .* with the key of SALON_TEST_KEY.*set base_url and api_key_env back"):
        bench.run(judge=bench.judge(api_key_env="SALON_OTHER_KEY"))
    monkeypatch.setenv("SALON_TEST_KEY", "k")
    with pytest.raises(
        InputError, match=r"the benchmark file now has https://judge.example/v1 .*set base_url and api_key_env back"
    ):
        bench.run(judge=bench.judge(base_url="https://judge.example/v1"))
    assert bench.run().n_answered == N_REQUESTS


def test_a_batch_the_provider_has_forgotten_is_asked_again_and_counted_as_possibly_billed(
    make_bench: Callable[..., Bench],
) -> None:
    bench, stop = make_bench(), threading.Event()
    bench.wire.on_call = lambda _moment, call: stop.set() if call.startswith("GET /batches/") else None
    bench.run(stop=stop)
    other = make_bench()
    here = Bench(bench.lake, bench.parts, bench.ledger_url, other.wire)
    assert here.run(rules={"patience_s": 0.1}).n_answered == N_REQUESTS
    assert set(here.replies()["n_attempts"]) == {2}
    detail = here.rows("SELECT detail FROM attempts WHERE status = 'timed_out'")
    assert len(detail) == N_REQUESTS
    assert detail[0][0].startswith(b"the provider no longer knows batch ")
    assert detail[0][0].endswith(b"; it may have been billed")


def test_a_batch_that_is_not_known_for_a_while_is_not_bought_again(make_bench: Callable[..., Bench]) -> None:
    bench, said = make_bench(), list[str]()
    bench.wire.answer = lambda call: ABSENT if call.startswith("GET /batches/") and bench.wire.n("GET /batches/") <= 8 else None
    assert bench.run(rules={"patience_s": 60.0}, say=said.append).n_answered == N_REQUESTS
    assert bench.wire.bills() == {1: N_REQUESTS}
    assert len(said) == 1, said
    assert "the Batch API of salon-demo-judge does not know batch " in said[0]
    assert said[0].endswith("(HTTP 404: 404 page not found); looking for it, at least 60 s")


def test_after_a_batch_that_stays_unknown_no_other_is_handed_over_by_the_same_run(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench()
    bench.wire.answer = lambda call: ABSENT if call.startswith("GET /batches/") else None
    with pytest.raises(BatchLostError, match=r"no longer knows batch \S+; it may have been billed\. This run handed it over"):
        bench.run(rules={"patience_s": 0.5})
    assert bench.wire.n("POST /batches") == 1
    assert bench.wire.n("GET /batches/") > 3
    bench.wire.answer = lambda _call: None
    assert bench.run().n_answered == N_REQUESTS


def test_a_batch_api_that_does_not_answer_is_told_of_once(make_bench: Callable[..., Bench]) -> None:
    bench, said = make_bench(), list[str]()
    bench.wire.answer = lambda call: (
        (503, b"busy") if call.startswith("GET /batches/") and bench.wire.n("GET /batches/") <= 3 else None
    )
    assert bench.run(rules={"patience_s": 900.0}, say=said.append).n_answered == N_REQUESTS
    assert said == ["the Batch API of salon-demo-judge does not answer (HTTP 503: busy); waiting for it, at most 15 min"]


def test_results_that_are_not_there_yet_are_not_bought_again(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench()

    def without_files(call: str, body: bytes) -> bytes:
        return body.replace(b'"output_file_id":"file-', b'"output":"file-') if call.startswith("GET /batches/") else body

    bench.wire.change = without_files
    with pytest.raises(ProviderError, match=f"has {N_REQUESTS} replies but no file with them"):
        bench.run()
    bench.wire.change = lambda _call, body: body
    assert bench.run().n_answered == N_REQUESTS
    assert bench.wire.bills() == {1: N_REQUESTS}


def test_a_batch_whose_file_never_comes_is_given_up_after_two_days(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench()

    def without_file(call: str, body: bytes) -> bytes:
        is_first = call.startswith("GET /batches/") and bench.wire.n("POST /batches") == 1
        return body.replace(b'"output_file_id":"file-', b'"output":"file-') if is_first else body

    bench.wire.change = without_file
    with pytest.raises(ProviderError, match="Two days after it was handed over it is given up"):
        bench.run()
    with Ledger(bench.ledger_url) as ledger:
        earlier = {BATCHES.c.intended_at_us: BATCHES.c.intended_at_us - 3 * 86_400 * 10**6}
        ledger.alone_now(lambda connection: connection.execute(update(BATCHES).values(earlier)) and None)
    outcome = bench.run(judge=bench.judge(price=Price(input_usd_per_million=2.0, output_usd_per_million=8.0)))
    assert (outcome.n_answered, outcome.n_in_doubt, outcome.is_at_least) == (N_REQUESTS, N_REQUESTS, True)
    assert bench.wire.n("POST /batches") == 2
    bench.check_all_is_settled()


def test_a_batch_cancelled_at_the_provider_is_not_begun_again_by_the_same_run(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench({"in_progress_s": 1.0})
    cancelled = threading.Event()

    def cancel(moment: str, call: str) -> None:
        if moment == "after" and call.startswith("GET /batches/") and not cancelled.is_set():
            cancelled.set()
            asyncio.run_coroutine_threadsafe(bench.wire.post(f"{call.removeprefix('GET ')}/cancel"), bench.wire._loop)

    bench.wire.on_call = cancel
    with pytest.raises(ProviderError, match="was cancelled at the provider"):
        bench.run()
    assert bench.wire.n("POST /batches") == 1
    assert bench.run().n_answered + bench.replies().filter(status="answered").height >= N_REQUESTS
    assert bench.wire.bills() == {1: N_REQUESTS}


def hostile(call: str, body: bytes) -> bytes:
    """A file of results with every wrong line there is, and without three of the right ones."""
    if not call.endswith("/content"):
        return body
    lines = body.splitlines()
    unknown = lines[0].replace(b'"custom_id":"', b'"custom_id":"nobody-')
    answered_twice = lines[5].replace(b'"content":"', b'"content":"another answer')
    long = b'{"custom_id":"%s","response":"%s"}' % (b"x", b"y" * 10 * 2**20)
    wrong = [
        b"",
        b"{",
        b"null",
        b"[]",
        b"7",
        b'"a"',
        b"\xff\xfe",
        b'{"custom_id":7}',
        b'{"custom_id":null}',
        b'{"custom_id":[]}',
        b"[" * 5000,
    ]
    return b"\n".join([*wrong, unknown, *lines[3:], answered_twice, long, *wrong, unknown]) + b"\n"


def test_a_hostile_file_of_results_does_no_harm(make_bench: Callable[..., Bench], tmp_path: Path) -> None:
    bench = make_bench()
    files: list[str] = []

    def change(call: str, body: bytes) -> bytes:
        files.append(call) if call.endswith("/content") else None
        return hostile(call, body) if files[:1] == [call] else body  # however often it is fetched

    bench.wire.change = change
    price = Price(input_usd_per_million=0, output_usd_per_million=2, batch_share=0.5)
    outcome = bench.run(judge=bench.judge(price=price, parameters={"temperature": 0, "max_tokens": 1000}))
    assert (outcome.n_answered, outcome.n_asked) == (N_REQUESTS, N_REQUESTS + 3)
    assert (outcome.n_in_doubt, outcome.is_at_least) == (3, True)
    assert outcome.in_doubt_usd == pytest.approx(3 * 0.001)
    assert bench.wire.bills() == {1: N_REQUESTS - 3, 2: 3}
    lost = bench.rows("SELECT detail FROM attempts WHERE status = 'timed_out'")
    assert [row[0] for row in lost] == [b"the batch ended without a reply to this request; it may have been billed"] * 3
    assert not any("another answer" in text for text in bench.replies()["reply_text"])
    bench.check_all_is_settled()


def _long(response: dict[str, Any]) -> None:
    """A reply as long as it may be."""
    response["body"]["usage"]["completion_tokens"] = 1000


def test_a_budget_lets_so_many_through(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench()
    bench.wire.change = in_results(_long)  # each reply costs all that is set aside for it: nothing is given back
    bounded = {"temperature": 0, "max_tokens": 1000}
    price = Price(input_usd_per_million=0, output_usd_per_million=1, batch_share=1)  # at worst 0.001 a line
    outcome = bench.run(judge=bench.judge(parameters=bounded, price=price), max_usd=0.0105)
    assert dict(outcome.n_by_status) == {"answered": 10, "not_asked": N_REQUESTS - 10}
    assert (outcome.is_spent, outcome.is_out_of_reach, outcome.refused_usd) == (True, False, 0.001)
    assert bench.wire.bills() == {1: 10}
    assert bench.run(judge=bench.judge(parameters=bounded, price=price), max_usd=0.0005).is_out_of_reach
    outcome = bench.run()
    assert (outcome.n_answered, outcome.is_spent) == (N_REQUESTS - 10, False)


NASTY = {
    "an empty reply to the upload": ("POST /files", b""),
    "null for a file": ("POST /files", b"null"),
    "a file whose id is no text": ("POST /files", b'{"id": 7}'),
    "a page for a batch": ("POST /batches", b"<html>"),
    "a batch without id": ("POST /batches", b'{"status": "completed"}'),
    "nesting without end": ("GET /batches/", b"[" * 100_000),
    "another batch, failed": (
        "GET /batches/",
        b'{"id": "b", "status": "failed", "errors": [1], "request_counts": 3, "metadata": []}',
    ),
}


@pytest.mark.parametrize(("call", "body"), NASTY.values(), ids=NASTY)
def test_no_reply_of_a_broken_provider_gets_past_the_client(make_bench: Callable[..., Bench], call: str, body: bytes) -> None:
    bench = make_bench()
    bench.wire.answer = lambda seen: (200, body) if seen.startswith(call) else None
    with pytest.raises(ProviderError) as stopped:
        bench.run(rules={"patience_s": 0.05, "first_patience_s": 0.05, "settle_s": 0.0})
    assert len(str(stopped.value)) < 1000
    bench.wire.answer = lambda _call: None
    outcome = bench.run()
    assert outcome.n_cached + outcome.n_answered == N_REQUESTS
    assert bench.wire.bills() == {1: N_REQUESTS}


def test_an_online_run_waits_for_what_is_in_a_batch(make_bench: Callable[..., Bench]) -> None:
    bench, stop = make_bench({"in_progress_s": 0.5}), threading.Event()
    bench.wire.on_call = lambda _moment, call: stop.set() if call.startswith("GET /batches/") else None
    bench.run(stop=stop)
    with ThreadPoolExecutor(1) as pool:
        online = pool.submit(bench.online, bench.ledger_url)
        assert bench.run().n_answered == N_REQUESTS
        online.result(30)
    assert bench.wire.n("POST /chat") == 0
    assert bench.wire.bills() == {1: N_REQUESTS}


def test_another_model_under_the_judges_name_stops_the_run_after_its_replies_are_stored(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench({"line_faults": {"wrong_model": 0.5, "error_500": 0.2}})
    with pytest.raises(ProviderError, match="no more requests are sent"):
        bench.run()
    assert bench.wire.n("POST /batches") == 1  # the lines that failed are not asked again
    stored = bench.replies().filter(status="answered")
    assert stored.height == bench.wire.stats()["n_answers_billed"]


def test_a_creation_is_not_repeated_while_the_provider_may_still_be_at_it(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench({"n_lost_creations": 1})
    hidden = b'{"object": "list", "data": [], "has_more": false}'
    bench.wire.change = lambda call, body: hidden if call == "GET /batches" and bench.wire.n("GET /batches") <= 3 else body
    assert bench.run(rules={"settle_s": 30.0}).n_answered == N_REQUESTS
    assert bench.wire.n("POST /batches") == 1
    assert bench.wire.bills() == {1: N_REQUESTS}


def test_a_reply_that_was_stored_meanwhile_stays(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench()
    keys = bench.lake.read_part(REQUESTS, PLAN, bench.parts[0].index)["request_key"][:5]

    def store(_moment: str, call: str) -> None:
        if call.startswith("GET /batches/"):
            with Ledger(bench.ledger_url) as ledger:
                ledger.store(
                    [JudgeReply(key, 0, ReplyStatus.ANSWERED, JUDGE, ReplyOrigin.RECORDED, text="Score: 2") for key in keys]
                )

    bench.wire.on_call = store
    told: list[JudgeReply] = []
    outcome = bench.run(on_reply=told.append)
    assert (outcome.n_answered, outcome.n_cached, len(told)) == (N_REQUESTS - 5, 5, N_REQUESTS - 5)
    assert bench.replies().filter(origin="recorded").height == 5
    assert bench.rows("SELECT * FROM batch_lines") == []
