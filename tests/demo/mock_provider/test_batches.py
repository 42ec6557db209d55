"""The Batch API through the real client: round trips, faulty lines, expiry, failure, cancelling, limits, lost replies."""

import asyncio
import json

import openai
import pytest

from demo.world import JUDGE

CANNED = {"mode": "canned", "text": "Reasoning: fine.\nScore: 3"}
QUICK = {"validating_s": 0.02, "in_progress_s": 0.1, "finalizing_s": 0.02}
URL = "/v1/chat/completions"


def body(text):
    return {"model": JUDGE, "messages": [{"role": "user", "content": text}]}


def line(name, **changes):
    return {"custom_id": name, "method": "POST", "url": URL, "body": body(f"item {name}")} | changes


def jsonl(*lines):
    return b"".join(json.dumps(each).encode() + b"\n" for each in lines)


async def submit(guest, content):
    uploaded = await guest.openai.files.create(file=("requests.jsonl", content), purpose="batch")
    return await guest.openai.batches.create(
        input_file_id=uploaded.id, endpoint=URL, completion_window="24h", metadata={"run": "r1"}
    )


async def end_of(guest, batch, seen=None):
    async with asyncio.timeout(10):
        while batch.status in ("validating", "in_progress", "finalizing", "cancelling"):
            await asyncio.sleep(0.005)
            batch = await guest.openai.batches.retrieve(batch.id)
            if seen is not None and batch.status not in seen:
                seen.append(batch.status)
    return batch


async def read(guest, file_id):
    if file_id is None:
        return {}
    text = (await guest.openai.files.content(file_id)).text
    return {each["custom_id"]: each for each in map(json.loads, text.splitlines())}


def test_a_batch_goes_through_its_statuses_and_its_lines_come_back(play):
    async def script(guest):
        seen = ["validating"]
        batch = await submit(guest, jsonl(*(line(f"r{n}") for n in range(12))))
        assert batch.status == "validating"
        batch = await end_of(guest, batch, seen)
        return seen, batch, await read(guest, batch.output_file_id), await guest.stats()

    slower = {"validating_s": 0.1, "in_progress_s": 0.2, "finalizing_s": 0.2}  # for each status to be met
    seen, batch, found, stats = play({"answer": CANNED, "batch": slower}, script)
    assert seen == ["validating", "in_progress", "finalizing", "completed"]
    assert batch.request_counts.model_dump() == {"total": 12, "completed": 12, "failed": 0}
    assert (batch.error_file_id, batch.metadata, batch.model, batch.errors) == (None, {"run": "r1"}, JUDGE, None)
    assert batch.created_at <= batch.in_progress_at <= batch.finalizing_at <= batch.completed_at < batch.expires_at
    assert set(found) == {f"r{n}" for n in range(12)}
    assert list(found) != sorted(found, key=lambda name: int(name[1:]))  # an order of the provider's own
    one = found["r3"]
    assert set(one) == {"id", "custom_id", "response", "error"}
    assert (one["error"], one["response"]["status_code"]) == (None, 200)
    assert one["response"]["request_id"].startswith("req_")
    assert one["response"]["body"]["choices"][0]["message"]["content"] == CANNED["text"]
    assert (stats["n_answers_billed"], stats["n_requests"]) == (12, 0)


def test_a_line_and_the_same_request_online_are_one_item_and_the_line_costs_half(play):
    priced = {"id": JUDGE, "usd_per_million_input_tokens": 10, "usd_per_million_output_tokens": 20}

    async def script(guest):
        batch = await end_of(guest, await submit(guest, jsonl(line("a"))))
        await guest.ask("item a")
        return batch.status, await guest.stats()

    status, stats = play({"answer": CANNED, "models": [priced], "batch": QUICK}, script)
    assert (status, stats["n_items"], stats["n_items_by_times_billed"]) == ("completed", 1, {"2": 1})
    batch_usd, online_usd = (
        next(account["usd"] for account in stats["accounts"] if account["is_batch"] is is_batch) for is_batch in (True, False)
    )
    assert online_usd == pytest.approx(2 * batch_usd, rel=1e-12)
    assert stats["usd"] == pytest.approx(online_usd + batch_usd, rel=1e-12)


def test_faulty_lines_stand_in_the_error_file_and_spoilt_ones_in_the_output(play):
    faults = {"error_500": 0.3, "truncated": 0.3}

    async def script(guest):
        batch = await end_of(guest, await submit(guest, jsonl(*(line(f"r{n}") for n in range(60)))))
        files = await read(guest, batch.output_file_id), await read(guest, batch.error_file_id)
        return batch, *files, await guest.stats()

    batch, good, bad, stats = play({"answer": CANNED, "batch": {**QUICK, "line_faults": faults}}, script)
    assert (len(good) + len(bad), batch.status) == (60, "completed")
    assert batch.request_counts.model_dump() == {"total": 60, "completed": len(good), "failed": len(bad)}
    assert {each["response"]["status_code"] for each in bad.values()} == {500}
    assert {each["response"]["body"]["error"]["type"] for each in bad.values()} == {"server_error"}
    n_cut = sum(each["response"]["body"]["choices"][0]["finish_reason"] == "length" for each in good.values())
    assert stats["by_fault"] == {"error_500": len(bad), "truncated": n_cut}
    assert 5 < len(bad) < 32
    assert 5 < n_cut < 32
    assert stats["n_answers_billed"] == len(good)


def test_a_window_that_ends_leaves_partial_results_and_names_the_rest(play):
    times = {"validating_s": 600, "in_progress_s": 100_000, "finalizing_s": 600, "window_s": 50_000, "time_scale": 200_000}

    async def script(guest):
        batch = await end_of(guest, await submit(guest, jsonl(*(line(f"r{n}") for n in range(20)))))
        files = await read(guest, batch.output_file_id), await read(guest, batch.error_file_id)
        return batch, *files, await guest.stats()

    batch, good, bad, stats = play({"answer": CANNED, "batch": times}, script)
    assert (batch.status, batch.completed_at) == ("expired", None)
    assert batch.expired_at is not None
    assert (len(good), len(bad)) == (9, 11)
    assert {(each["response"], each["error"]["code"]) for each in bad.values()} == {(None, "batch_expired")}
    assert stats["n_answers_billed"] == 9


FAILING = {
    "not json": (b"{\n", "invalid_json_line", 1),
    "no body": (jsonl(line("a"), {"custom_id": "b"}), "invalid_request", 2),
    "no custom_id": (jsonl(line("a", custom_id=None)), "missing_required_parameter", 1),
    "another url": (jsonl(line("a", url="/v1/embeddings")), "invalid_url", 1),
    "another method": (jsonl(line("a", method="GET")), "invalid_method", 1),
    "custom_id twice": (jsonl(line("a"), line("b"), line("a")), "duplicate_custom_id", 3),
    "two models": (jsonl(line("a"), line("b", body=body("x") | {"model": "other"})), "mismatched_model", None),
    "too many lines": (jsonl(*(line(f"{n}") for n in range(21))), "too_many_requests", None),
    "empty": (b"", "empty_file", None),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_file_that_is_not_in_order_fails_as_a_whole_and_costs_nothing(play, name):
    content, code, number = FAILING[name]

    async def script(guest):
        batch = await end_of(guest, await submit(guest, content))
        return batch, (await guest.stats())["n_answers_billed"]

    batch, n_billed = play({"answer": CANNED, "batch": {**QUICK, "max_lines": 20}}, script)
    assert (batch.status, n_billed) == ("failed", 0)
    assert [(problem.code, problem.line) for problem in batch.errors.data] == [(code, number)]
    assert (batch.output_file_id, batch.error_file_id) == (None, None)
    assert batch.failed_at is not None


def test_the_first_batches_may_fail_and_the_next_does_not(play):
    async def script(guest):
        return [(await end_of(guest, await submit(guest, jsonl(line("a"))))).status for _ in range(2)]

    assert play({"answer": CANNED, "batch": {**QUICK, "n_failing": 1}}, script) == ["failed", "completed"]


def test_a_lost_creation_is_found_again_by_its_metadata(play):
    async def script(guest):
        with pytest.raises(openai.APIConnectionError):
            await submit(guest, jsonl(line("a")))
        found = [batch async for batch in guest.openai.batches.list(limit=1)]
        assert [batch.metadata for batch in found] == [{"run": "r1"}]
        return (await end_of(guest, found[0])).status, (await guest.stats())["n_answers_billed"]

    assert play({"answer": CANNED, "batch": {**QUICK, "n_lost_creations": 1}}, script) == ("completed", 1)


def test_a_cancelled_batch_keeps_what_was_answered(play):
    async def script(guest):
        batch = await submit(guest, jsonl(*(line(f"r{n}") for n in range(20))))
        while not batch.request_counts.completed:
            await asyncio.sleep(0.005)
            batch = await guest.openai.batches.retrieve(batch.id)
        cancelling = (await guest.openai.batches.cancel(batch.id)).status
        batch = await end_of(guest, batch)
        with pytest.raises(openai.ConflictError):
            await guest.openai.batches.cancel(batch.id)
        return cancelling, batch, await read(guest, batch.output_file_id), await read(guest, batch.error_file_id)

    cancelling, batch, good, bad = play({"answer": CANNED, "batch": {**QUICK, "in_progress_s": 30}}, script)
    # 30 s for 20 lines: the test ends long before, since a cancelled batch does not go on waiting
    assert (cancelling, batch.status) == ("cancelling", "cancelled")
    assert 1 <= len(good) < 20
    assert len(good) + len(bad) == 20
    assert {each["error"]["code"] for each in bad.values()} == {"batch_cancelled"}


def test_batches_are_listed_newest_first_and_page_by_page(play):
    async def script(guest):
        made = [(await submit(guest, jsonl(line("a")))).id for _ in range(5)]
        return made, [batch.id async for batch in guest.openai.batches.list(limit=2)]

    made, listed = play({"answer": CANNED, "batch": QUICK}, script)
    assert listed == made[::-1]


def test_files_are_kept_byte_for_byte_listed_and_deleted(play):
    content = jsonl(line("a", body=body("ünïcode\r\n" * 1000)))

    async def script(guest):
        stored = await guest.openai.files.create(file=("my requests.jsonl", content), purpose="batch")
        back = (await guest.openai.files.content(stored.id)).content
        listed = [file.id async for file in guest.openai.files.list()]
        deleted = (await guest.openai.files.delete(stored.id)).deleted
        with pytest.raises(openai.NotFoundError):
            await guest.openai.files.content(stored.id)
        return stored, back, listed, deleted

    stored, back, listed, deleted = play({"answer": CANNED}, script)
    assert back == content
    assert (stored.filename, stored.bytes, stored.purpose) == ("my requests.jsonl", len(content), "batch")
    assert (listed, deleted) == ([stored.id], True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda client: client.files.create(file=("a.jsonl", b"x" * 2000), purpose="batch"), "2000 bytes; .* 1000"),
        (lambda client: client.files.create(file=("a.jsonl", b"x"), purpose="user_data"), "purpose"),
        (lambda client: client.batches.create(input_file_id="x", endpoint=URL, completion_window="24h"), "input_file_id"),
        (lambda client: client.post("/files", body={"purpose": "batch"}, cast_to=dict), "multipart"),
    ],
    ids=["too large", "purpose", "no file", "no form"],
)
def test_a_call_that_cannot_be_done_gets_an_error_in_the_api_form(play, call, message):
    async def script(guest):
        with pytest.raises(openai.BadRequestError, match=message):
            await call(guest.openai)

    play({"answer": CANNED, "batch": {"max_file_bytes": 1000}}, script)


@pytest.mark.parametrize("change", [{"endpoint": "/v1/embeddings"}, {"completion_window": "1h"}])
def test_only_chat_completions_within_a_day_are_taken(play, change):
    async def script(guest):
        stored = await guest.openai.files.create(file=("a.jsonl", jsonl(line("a"))), purpose="batch")
        with pytest.raises(openai.BadRequestError, match=next(iter(change))):
            await guest.openai.batches.create(
                **({"input_file_id": stored.id, "endpoint": URL, "completion_window": "24h"} | change)
            )

    play({"answer": CANNED}, script)
