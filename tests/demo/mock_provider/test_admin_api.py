"""What the provider says it saw, and what it charges: exact counts, bills by its own rules, models with an end."""

import asyncio
import base64
from io import BytesIO

import openai
import pytest
from PIL import Image

from demo.mock_provider.billing import Patches, Tiles, n_text_tokens, published
from demo.world import JUDGE

CANNED = {"mode": "canned", "text": "Score: 3"}
GPT = {"id": "gpt-4.1-2025-04-14"}


def picture(width_px, height_px, format_="PNG"):
    out = BytesIO()
    Image.new("RGB", (width_px, height_px)).save(out, format=format_)
    return f"data:image/{format_.lower()};base64,{base64.b64encode(out.getvalue()).decode()}"


@pytest.mark.parametrize(
    ("size_px", "detail", "n_tokens"),
    [
        # The first three are OpenAI's own examples; the next three were measured on bills (billing.py names the threads).
        ((1024, 1024), "high", 765),
        ((2048, 4096), "high", 1105),
        ((4096, 8192), "low", 85),
        ((128, 64), "high", 255),
        ((2049, 513), "high", 85 + 8 * 170),
        ((2050, 513), "high", 765),
        ((1800, 2400), "auto", 765),
        ((512, 512), "auto", 255),
        ((513, 512), "auto", 425),
        ((1, 5000), "high", 85 + 4 * 170),
    ],
)
def test_pictures_in_tiles(size_px, detail, n_tokens):
    assert Tiles().n_tokens(*size_px, detail) == n_tokens


@pytest.mark.parametrize(
    ("size_px", "n_patches"), [((1024, 1024), 1024), ((1800, 2400), 1452), ((32, 33), 2), ((4000, 1474), 1536)]
)
def test_pictures_in_patches(size_px, n_patches):
    """1024 and 1452 are OpenAI's own examples."""
    assert Patches(1.0).n_tokens(*size_px, "high") <= 1536
    if size_px != (4000, 1474):  # scaled down to whole patches, the bill is some below the cap
        assert Patches(1.0).n_tokens(*size_px, "high") == n_patches


def test_a_dated_model_has_its_familys_price_and_an_unknown_one_none():
    assert published("gpt-4.1-2025-04-14") == published("gpt-4.1")
    assert published("gpt-4o-2024-05-13") != published("gpt-4o")
    assert published("gpt-4.1-mini-2025-04-14").input_usd == 0.40
    assert published("gpt-4.1-turbo") is published("my-gpt-4.1") is None


def test_text_tokens_are_near_four_characters_of_english_each(shipped):
    prompts = [variant.prompt for rubric in shipped.values() for variant in rubric.variants.values()]
    for prompt in prompts:
        assert 3.3 < len(prompt) / n_text_tokens(prompt) < 5.5


def test_the_bill_is_the_published_price_of_the_tokens_it_counted(play):
    async def script(guest):
        image = {"type": "image_url", "image_url": {"url": picture(600, 400), "detail": "high"}}
        content = [{"type": "text", "text": "two words"}, image]
        usage = (await guest.ask(model=GPT["id"], messages=[{"role": "user", "content": content}])).json()["usage"]
        return usage, await guest.stats()

    usage, seen = play({"answer": CANNED, "models": [GPT]}, script)
    n_input = 3 + 3 + 2 + 85 + 2 * 170
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (n_input, n_text_tokens("Score: 3"))
    assert seen["usd"] == pytest.approx((n_input * 2.00 + usage["completion_tokens"] * 8.00) / 1e6, rel=1e-12)
    assert (seen["n_input_tokens"], seen["n_output_tokens"]) == (n_input, usage["completion_tokens"])


def test_a_price_may_stand_in_the_scenario(play):
    model = {"id": JUDGE, "usd_per_million_input_tokens": 1e6, "usd_per_million_output_tokens": 0}

    async def script(guest):
        return (await guest.ask()).json()["usage"]["prompt_tokens"], (await guest.stats())["usd"]

    n_input, usd = play({"answer": CANNED, "models": [model]}, script)
    assert usd == n_input


def test_each_items_bills_are_counted_whatever_the_order_of_its_keys(play):
    async def script(guest):
        for text, n in (("a", 1), ("b", 2), ("c", 3)):
            for _ in range(n):
                await guest.ask(text)
        messages = [{"content": "a", "role": "user"}]
        await guest.openai.post("/chat/completions", body={"messages": messages, "model": JUDGE}, cast_to=dict)
        return await guest.stats(), await guest.get("/stats/items")

    seen, items = play({"answer": CANNED}, script)
    assert sorted(item["n_billed"] for item in items.values()) == [2, 2, 3]
    assert (seen["n_items"], seen["n_items_by_times_billed"]) == (3, {"2": 2, "3": 1})


def test_counts_are_exact_and_start_anew_on_reset(play):
    async def script(guest):
        await asyncio.gather(*(guest.ask(f"{n}") for n in range(30)))
        before = await guest.stats()
        await guest.reset()
        empty = await guest.stats()
        await guest.ask("0")
        return before, empty, await guest.stats()

    scenario = {"answer": CANNED, "latency": {"median_s": 0.5}, "faults": {"shares": {"error_500": 0.3}}}
    before, empty, after = play(scenario, script)
    n_struck = before["by_fault"]["error_500"]
    assert 0 < n_struck < 30
    assert before["by_status"] == {"200": 30 - n_struck, "500": n_struck}
    assert (before["n_requests"], before["n_items"], before["peak_in_flight"]) == (30, 30, 30)
    assert before["n_answers_billed"] == 30 - n_struck
    assert before["last_answer_s"] - before["first_request_s"] >= 0.49
    assert sum(admitted for _, admitted, _ in before["by_second"]) == 30
    assert (empty["n_requests"], empty["by_status"], empty["first_request_s"]) == (0, {}, None)
    assert (after["n_requests"], after["n_items"]) == (1, 1)


def test_an_answer_whose_client_left_is_made_and_billed(play):
    async def script(guest):
        with pytest.raises(openai.APITimeoutError):
            await guest.openai.with_options(timeout=0.05).chat.completions.create(
                model=JUDGE, messages=[{"role": "user", "content": "x"}]
            )
        early = await guest.stats()
        return early, await guest.stats_when(lambda stats: stats["n_in_flight"] == 0)

    early, late = play({"answer": CANNED, "latency": {"median_s": 1.0}}, script)
    assert (early["n_answers_billed"], early["n_in_flight"]) == (0, 1)
    assert (late["n_answers_billed"], late["n_in_flight"], late["n_abandoned"]) == (1, 0, 1)


def test_latency_is_drawn_and_grows_with_what_is_in_flight(play):
    async def took_s(guest, n_at_once):
        loop = asyncio.get_running_loop()
        started = loop.time()
        await asyncio.gather(*(guest.ask(f"{n}") for n in range(n_at_once)))
        return loop.time() - started

    async def script(guest):
        return await took_s(guest, 1), await took_s(guest, 20)

    alone_s, crowded_s = play({"answer": CANNED, "latency": {"median_s": 0.05, "full_speed_in_flight": 4}}, script)
    assert alone_s >= 0.049
    assert crowded_s >= max(0.24, alone_s)


def test_models_are_listed_with_their_end(play):
    async def script(guest):
        listed = [(model.id, model.shutdown_date) async for model in guest.openai.models.list()]
        one = await guest.openai.models.retrieve(GPT["id"])
        with pytest.raises(openai.NotFoundError):
            await guest.openai.models.retrieve("nobody")
        wrong = await guest.ask(model="nobody")
        return listed, one.shutdown_date, wrong.status_code, wrong.json()["error"]["code"]

    models = [{**GPT, "shutdown_date": "2026-12-31"}, {"id": "gpt-4o"}]
    listed, one, *wrong = play({"answer": CANNED, "models": models}, script)
    assert listed == [(GPT["id"], "2026-12-31"), ("gpt-4o", None)]
    assert one == "2026-12-31"
    assert wrong == [404, "model_not_found"]
