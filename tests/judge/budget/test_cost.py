"""Costs: held against the difficult provider's own bill under all five rubrics, corrected by replies, bounded by law."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from demo.drawing import draw_png
from demo.judge import judge as answer_of
from demo.mock_provider import billing
from demo.mock_provider import billing as double
from demo.painter import PaintedScene, painted_scenes
from rubrics.loading import SHIPPED, load_rubric
from rubrics.model import Rubric
from rubrics.rendering import render
from schemas.benchmark.judges import Judge, Price
from schemas.statuses.rows import ReplyStatus
from tasks.judge.budget.cost import Costs, Estimate, output_bound, stated_output_bound
from tasks.judge.budget.observed_usage import Observed, load_observed, store_observed
from tasks.judge.pictures import shrunk
from tasks.judge.provider.exchange import Answer, RequestPicture
from tasks.judge.provider.openai.client import make_payload
from tasks.ledger.ledger import Ledger
from tasks.plan.request_key import DIGEST_SLOT, canonical_messages

RUBRICS = ("composition", "image_aspects", "alignment", "interleaved", "caption")
MODELS = ("gpt-4.1", "gpt-4o-mini", "gpt-4.1-mini")
SIZES_PX = ((256, 256), (384, 256), (512, 512), (640, 480), (768, 768), (1024, 1024), (1366, 768), (1024, 1792), (2048, 2048))
DIGEST = "d" * 64


def _judge(model: str, **more: Any) -> Judge:
    return Judge(model=model, parameters={"max_tokens": 600}, **more)


def _messages(rubric: Rubric, values: Mapping[str, str | None]) -> str:
    return canonical_messages(render(rubric, values, True).messages)[0].decode().replace(DIGEST_SLOT, DIGEST)


def _sent(model: str, messages_json: str, png: bytes) -> list[dict[str, Any]]:
    """The messages as the provider reads them: what the engine sends."""
    body = b"".join(make_payload(model, {}, json.loads(messages_json), [RequestPicture(lambda: png, "PNG")]))
    messages: list[dict[str, Any]] = json.loads(body)["messages"]
    return messages


def _values(scene: PaintedScene, index: int) -> dict[str, str | None]:
    answer = f"I drew what you asked for: {scene.prompt.removeprefix('a photo of ')}, on a plain ground."
    return {
        "prompt": scene.prompt, "category": scene.category, "question": f"Please draw {scene.prompt}, and say what you drew.",
        "text": answer if index % 6 else None, "caption_type": ("brief", "detail", "style")[index % 3],
        "reference": f"The picture shows {scene.prompt.removeprefix('a photo of ')}.", "output": answer,
    }  # fmt: skip


def _scenes(n: int) -> list[PaintedScene]:
    listed = list(painted_scenes(3))
    return listed[:: len(listed) // n][:n]


def _blank(size_px: tuple[int, int]) -> bytes:
    out = BytesIO()
    Image.new("L", size_px).save(out, format="PNG")
    return out.getvalue()


@pytest.fixture(scope="module")
def blanks() -> dict[tuple[int, int], bytes]:
    return {size_px: _blank(size_px) for size_px in SIZES_PX}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("shown", [{"detail": "low"}, {"detail": "high"}, {"max_side_px": 512}, {"max_side_px": 1024}], ids=str)
def test_the_estimate_follows_how_pictures_are_shown(
    shown: dict[str, Any], model: str, blanks: dict[tuple[int, int], bytes]
) -> None:
    """The provider bills what is sent: the picture as a shard would send it, at the detail that stands beside it."""
    rubric, price, judge = load_rubric(SHIPPED / "alignment"), double.published(model), _judge(model, **shown)
    assert price is not None
    costs = Costs(judge, rubric.n_output_tokens_expected)
    for index, (scene, size_px) in enumerate(zip(_scenes(9), SIZES_PX, strict=True)):
        rendered = render(rubric, _values(scene, index), True).messages
        messages_json = canonical_messages(rendered, judge.shown)[0].decode().replace(DIGEST_SLOT, DIGEST)
        png = shrunk(blanks[size_px], judge.max_side_px) if judge.max_side_px else blanks[size_px]
        n_billed = billing.n_input_tokens(_sent(model, messages_json, png), price.image)
        estimate = costs.estimate(messages_json, "{}", [size_px])
        assert estimate.n_input_tokens == pytest.approx(n_billed, rel=0.02, abs=8)
        assert estimate.n_input_tokens_most >= n_billed


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("rubric_id", RUBRICS)
def test_the_estimated_price_is_within_ten_percent_of_the_bill_at_every_size(
    rubric_id: str, model: str, blanks: dict[tuple[int, int], bytes]
) -> None:
    """Each request by itself, nothing learned yet; the answers as long as the rubric declares."""
    rubric, price = load_rubric(SHIPPED / rubric_id), double.published(model)
    assert price is not None
    costs = Costs(_judge(model), rubric.n_output_tokens_expected)
    for index, (scene, size_px) in enumerate(zip(_scenes(18), SIZES_PX * 2, strict=True)):
        messages_json = _messages(rubric, _values(scene, index))
        n_billed = billing.n_input_tokens(_sent(model, messages_json, blanks[size_px]), price.image)
        billed_usd = billing.usd(price, billing.Usage(n_billed, rubric.n_output_tokens_expected))
        estimate = costs.estimate(messages_json, "{}", [size_px])
        assert estimate.expected_usd == pytest.approx(billed_usd, rel=0.10)
        assert estimate.n_input_tokens == pytest.approx(n_billed, rel=0.06)
        assert n_billed <= estimate.n_input_tokens_most


def _bills(rubric: Rubric, model: str, n: int) -> Iterator[tuple[str, tuple[int, int], billing.Usage]]:
    """Drawn scenes, judged and billed by the difficult provider's own code: (messages, size of the picture, tokens)."""
    price = double.published(model)
    assert price is not None
    for index, scene in enumerate(_scenes(n)):
        png = draw_png(scene.scene)
        messages_json = _messages(rubric, _values(scene, index))
        sent = _sent(model, messages_json, png)
        n_output = billing.n_text_tokens(answer_of(sent))
        usage = billing.Usage(billing.n_input_tokens(sent, price.image), n_output)
        yield messages_json, Image.open(BytesIO(png)).size, usage


@pytest.mark.parametrize("rubric_id", RUBRICS)
def test_a_forecast_is_within_ten_percent_of_the_bill_once_some_replies_are_stored(rubric_id: str) -> None:
    """Forty replies correct what the rubrics declare, and the estimator's error."""
    rubric, model = load_rubric(SHIPPED / rubric_id), "gpt-4.1"
    judge, price = _judge(model), double.published(model)
    assert price is not None
    bills = list(_bills(rubric, model, 80))
    first = Costs(judge, rubric.n_output_tokens_expected)
    for messages_json, size_px, usage in bills[::2]:
        estimate = first.estimate(messages_json, "{}", [size_px])
        first.observe(estimate, _answer(n_input_tokens=usage.n_input_tokens, n_output_tokens=usage.n_output_tokens))
    second = Costs(judge, rubric.n_output_tokens_expected, first.seen)
    rest = bills[1::2]
    forecast_usd = sum(second.estimate(messages, "{}", [size_px]).expected_usd or 0 for messages, size_px, _ in rest)
    billed_usd = sum(billing.usd(price, usage) for *_, usage in rest)
    assert forecast_usd == pytest.approx(billed_usd, rel=0.05)
    declared_usd = sum(first.estimate(messages, "{}", [size_px]).expected_usd or 0 for messages, size_px, _ in rest)
    assert abs(forecast_usd - billed_usd) < abs(declared_usd - billed_usd)


@pytest.mark.parametrize("model", ["gpt-4.1", "gpt-4o-mini"])
@pytest.mark.parametrize("rubric_id", RUBRICS)
def test_before_any_reply_the_price_is_within_ten_percent_of_the_bill_of_a_judge_that_obeys_its_prompt(
    rubric_id: str, model: str
) -> None:
    rubric, price = load_rubric(SHIPPED / rubric_id), double.published(model)
    assert price is not None
    costs = Costs(_judge(model), rubric.n_output_tokens_expected)
    bills = list(_bills(rubric, model, 24))
    expected_usd = sum(costs.estimate(messages, "{}", [size_px]).expected_usd or 0 for messages, size_px, _ in bills)
    assert expected_usd == pytest.approx(sum(billing.usd(price, usage) for *_, usage in bills), rel=0.10)


@given(st.text(), st.text(), st.integers(1, 2048), st.integers(1, 2048), st.sampled_from(MODELS))
def test_no_bill_passes_the_bound(system: str, text: str, width: int, height: int, model: str) -> None:
    system, text = (one.encode("utf-8", "replace").decode() for one in (system, text))
    price = double.published(model)
    assert price is not None
    said = [{"role": "system", "content": system}, {"role": "user", "content": [{"type": "text", "text": text}]}]
    planned = [*said[:1], {"role": "user", "content": [{"type": "text", "text": text}, {"type": "image", "sha256": DIGEST}]}]
    estimate = Costs(_judge(model), 20).estimate(json.dumps(planned), "{}", [(width, height)])
    n_billed = billing.n_input_tokens(said, price.image) + price.image.n_tokens(width, height, "auto")
    assert n_billed <= estimate.n_input_tokens_most
    assert estimate.worst_usd is not None
    assert billing.usd(price, billing.Usage(n_billed, 600)) <= estimate.worst_usd + 1e-12


def test_a_picture_counts_by_its_size_and_its_digest_not_at_all() -> None:
    rubric = load_rubric(SHIPPED / "alignment")
    costs = Costs(_judge("gpt-4.1"), 45)
    one = _messages(rubric, {"prompt": "a red circle"})
    two = one.replace(DIGEST, "0123456789abcdef" * 4)
    assert costs.estimate(one, "{}", [(512, 512)]) == costs.estimate(two, "{}", [(512, 512)])
    small, large = costs.estimate(one, "{}", [(512, 512)]), costs.estimate(one, "{}", [(1024, 1024)])
    assert large.n_input_tokens - small.n_input_tokens == 3 * 170


@pytest.mark.parametrize(
    "model", [*MODELS, "gemini-2.5-flash-lite", "claude-sonnet-4-5", "qwen/qwen2.5-vl-72b-instruct", "unknown"]
)
@pytest.mark.parametrize(
    "size_px", [(5000, 5000), (4096, 4096), (10_000, 2_500), (2_500, 10_000), (3000, 1000), (512, 512), (1, 1)]
)
def test_a_picture_of_unknown_size_is_bounded_by_the_largest_there_may_be(model: str, size_px: tuple[int, int]) -> None:
    costs = Costs(_judge(model), 45)
    assert costs.picture_tokens(None, None)[1] >= max(costs.picture_tokens(*size_px))
    assert costs.picture_tokens(None, None)[0] == costs.picture_tokens(2048, 2048)[0]


def test_what_is_sent_beside_the_messages_is_counted() -> None:
    schema = json.dumps({"type": "object", "properties": {"score": {"type": "integer"}}})
    costs, messages = Costs(_judge("gpt-4.1"), 20), json.dumps([{"role": "user", "content": "Judge this."}])
    bare = costs.estimate(messages, '{"max_tokens":600,"temperature":0}')
    held = costs.estimate(messages, json.dumps({"max_tokens": 600, "response_format": json.loads(schema)}))
    assert bare == costs.estimate(messages)
    assert held.n_input_tokens - bare.n_input_tokens > 10
    assert held.n_input_tokens_most - bare.n_input_tokens_most >= len(schema.replace(" ", ""))


def test_by_batch_everything_costs_half() -> None:
    messages = json.dumps([{"role": "user", "content": "Judge this."}])
    online, batch = (Costs(_judge("gpt-4.1"), 20, is_batch=is_batch) for is_batch in (False, True))
    assert batch.estimate(messages).worst_usd == pytest.approx((online.estimate(messages).worst_usd or 0) / 2)
    answer = _answer(n_input_tokens=1000, n_cached_tokens=600, n_output_tokens=100)
    assert online.cost_usd(answer) == pytest.approx((400 * 2 + 600 * 0.5 + 100 * 8) / 1e6)
    assert batch.cost_usd(answer) == pytest.approx((400 * 2 + 600 * 0.5 + 100 * 8) / 2e6)


@pytest.mark.parametrize(
    ("model", "parameters", "price", "bound", "stated"),
    [
        pytest.param("gpt-4.1", {"max_tokens": 600}, None, 600, 600, id="max_tokens"),
        pytest.param("o4-mini", {"max_completion_tokens": 900}, None, 900, 900, id="max_completion_tokens"),
        pytest.param("gpt-4.1", {"max_tokens": 600, "max_completion_tokens": 900}, None, 900, 900, id="both: the longer"),
        pytest.param("gpt-4.1", {}, None, 32_768, None, id="the model's own"),
        pytest.param("gpt-4.1", {"max_tokens": True}, None, 32_768, None, id="no number"),
        pytest.param("qwen-vl", {}, Price(input_usd_per_million=1, output_usd_per_million=2), None, None, id="not known"),
    ],
)
def test_the_longest_reply(model: str, parameters: dict[str, Any], price: Price | None, bound: int, stated: int) -> None:
    judge = Judge(model=model, parameters=parameters, price=price)
    assert (output_bound(judge), stated_output_bound(judge)) == (bound, stated)


def _answer(status: ReplyStatus = ReplyStatus.ANSWERED, **more: Any) -> Answer:
    return Answer(status, **more)


ESTIMATE = Estimate(900, 3000, 900, 3000, 20, 600, 0.002, 0.0108)
REPORTED = {"n_input_tokens": 1000, "n_output_tokens": 100}


@pytest.mark.parametrize(
    ("answer", "usd"),
    [
        pytest.param(_answer(**REPORTED), 0.0028, id="as reported"),
        pytest.param(_answer(), 0.0108, id="an answer without usage: the worst case"),
        pytest.param(_answer(ReplyStatus.FILTERED, finish_reason="content_filter", **REPORTED), 0.0028, id="filtered answer"),
        pytest.param(_answer(ReplyStatus.FILTERED, finish_reason="content_filter"), 0.0108, id="the same without usage"),
        pytest.param(_answer(ReplyStatus.FILTERED), 0, id="a filtered request was never run"),
        pytest.param(_answer(ReplyStatus.REJECTED), 0, id="refused"),
        pytest.param(_answer(ReplyStatus.RATE_LIMITED), 0, id="429"),
        pytest.param(_answer(ReplyStatus.SERVER_ERROR), 0, id="5xx"),
        pytest.param(_answer(ReplyStatus.UNAUTHORIZED), 0, id="401"),
        pytest.param(_answer(ReplyStatus.NO_CREDIT), 0, id="no credit"),
        pytest.param(_answer(ReplyStatus.TIMED_OUT), 0.0108, id="timed out: it may have been billed"),
        pytest.param(_answer(ReplyStatus.UNREACHABLE), 0.0108, id="reset after sending: the same"),
        pytest.param(_answer(ReplyStatus.UNREACHABLE, is_sent=False), 0, id="no connection"),
        pytest.param(_answer(ReplyStatus.BAD_RESPONSE), 0.0108, id="a 200 that cannot be read: the same"),
        pytest.param(_answer(ReplyStatus.NOT_ASKED, is_sent=False), 0, id="never sent"),
    ],
)
def test_what_an_attempt_is_charged(answer: Answer, usd: float) -> None:
    assert Costs(_judge("gpt-4.1"), 20).charged_usd(ESTIMATE, answer) == pytest.approx(usd)


@pytest.mark.parametrize(
    ("given", "usd"),
    [(None, None), (Price(input_usd_per_million=4, output_usd_per_million=16), 0.0056)],
    ids=["by the price data", "by the file's price"],
)
def test_a_reply_that_says_a_dearer_tier_costs_what_the_file_says_or_nobody_knows(given: Price | None, usd: float | None) -> None:
    costs = Costs(Judge(model="gpt-4.1", price=given), 20)
    answer = costs.settled(_answer(**REPORTED, dearer_as="service_tier = priority"), ESTIMATE, 900)
    assert costs.cost_usd(answer) == pytest.approx(usd)
    assert ("service_tier = priority, whose price is not known" in (answer.detail or "")) == (usd is None)
    assert answer.n_input_tokens == 1000


def test_without_a_price_tokens_are_estimated_and_usd_are_not_known() -> None:
    costs = Costs(_judge("qwen-vl"), 20)
    estimate = costs.estimate(json.dumps([{"role": "user", "content": "Judge this."}]))
    assert estimate.n_input_tokens > 0
    assert (estimate.expected_usd, estimate.worst_usd, costs.cost_usd(_answer(**REPORTED))) == (None, None, None)


def test_a_reply_above_its_bound_raises_the_bound_of_all_that_follow_once() -> None:
    costs = Costs(_judge("gpt-4.1"), 20)
    messages = json.dumps([{"role": "user", "content": "Judge this."}])
    before = [costs.estimate(messages) for _ in range(5)]
    for estimate in before:  # five under way at once, each twice its bound
        costs.observe(estimate, _answer(n_input_tokens=2 * estimate.n_input_tokens_most, n_output_tokens=1))
    assert costs.estimate(messages).n_input_tokens_most == pytest.approx(2.5 * before[0].n_input_tokens_most, rel=0.02)
    later = Costs(_judge("gpt-4.1"), 20, costs.seen)
    for _ in range(2):
        assert later.estimate(messages).n_input_tokens_most == costs.estimate(messages).n_input_tokens_most
        later.observe(before[0], _answer(n_input_tokens=1, n_output_tokens=1))  # one below its bound lowers none


def test_the_worst_case_is_that_nothing_is_read_from_a_cache() -> None:
    messages = json.dumps([{"role": "user", "content": "Judge this."}])
    half_cached = Observed(1000, 1_000_000, 1_000_000, 500_000, 20_000, 0.5)
    found = [Costs(_judge("gpt-4.1"), 20, seen).estimate(messages) for seen in (None, half_cached)]
    assert found[0].worst_usd == found[1].worst_usd
    assert (found[1].expected_usd or 0) < (found[0].expected_usd or 0)


@pytest.mark.parametrize(
    ("cached", "written", "usd"),
    [(60, 100, 60 * 0.3 + 40 * 3.75), (200, 0, 100 * 0.3), (200, 50, 100 * 0.3), (0, 200, 100 * 3.75)],
)
def test_no_more_is_read_from_a_cache_or_kept_in_it_than_the_input(cached: int, written: int, usd: float) -> None:
    answer = _answer(n_input_tokens=100, n_output_tokens=0, n_cached_tokens=cached, n_cache_written_tokens=written)
    assert Costs(Judge(model="claude-sonnet-4-5", provider="anthropic"), 20).cost_usd(answer) == pytest.approx(usd / 1e6)


def test_what_replies_reported_is_kept_by_rubric_version_and_judge(ledger: Ledger) -> None:
    one, other = Observed(), Observed()
    one.add(1000, 4000, 1100, 200, 30)
    one.add(1000, 4000, None, None, None)  # says nothing
    other.add(500, 2000, 600, None, 10)
    about = ("alignment", "1", "gpt-4.1")

    async def store() -> None:
        for seen in (one, other, Observed()):
            await store_observed(ledger, about, seen)
        await store_observed(ledger, ("alignment", "2", "gpt-4.1"), other)

    asyncio.run(store())
    known = load_observed(ledger)
    assert known[about] == one + other == Observed(2, 1500, 1700, 200, 40, 0.3)
    assert set(known) == {about, ("alignment", "2", "gpt-4.1")}


def test_a_few_replies_move_an_estimate_a_little_and_many_all_the_way() -> None:
    few, many = Observed(1, 1000, 2000, 0, 100, 0.5), Observed(10_000, 10_000_000, 20_000_000, 0, 1_000_000, 0.5)
    assert few.input_ratio == pytest.approx(4 / 3)
    assert many.input_ratio == pytest.approx(2, abs=0.01)
    assert few.n_output_tokens(45) == pytest.approx(190 / 3)
    assert many.n_output_tokens(45) == pytest.approx(100, abs=0.1)
    assert Observed().input_ratio == Observed().bound_ratio == 1
    assert Observed().n_output_tokens(45) == 45
