"""What a request will cost and an answer did: tokens estimated, corrected by earlier replies, at most billed; and believed.

Prices are prices.py, texts tokens.py, pictures the provider's own rules, earlier replies observed_usage.py. Who may spend is
budget.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, islice, repeat
from math import ceil, inf

import orjson

from schemas.benchmark.judges import Judge
from schemas.statuses.rows import ReplyStatus
from tasks.judge.budget.observed_usage import Observed
from tasks.judge.budget.picture_rules import picture_rule
from tasks.judge.budget.prices import ModelPrice, images_of, price_of
from tasks.judge.budget.tokens import n_text_tokens, n_text_tokens_most
from tasks.judge.pictures import fitted_px, without_digests
from tasks.judge.provider.base import provider_of
from tasks.judge.provider.exchange import Answer

TOKENS_PER_MESSAGE = 3
"""And once more for the start of the answer: OpenAI's cookbook, "How to count tokens with tiktoken"."""
TOKENS_PER_MESSAGE_MOST = 16
_SIZE_UNKNOWN_PX = (2048, 2048)
_LARGEST_PX = ((5_000, 5_000), (10_000, 2_500), (2_500, 10_000), (4_096, 4_096))
"""Of a picture whose size is not known the bound is that of the dearest of these: as many pixels as a picture may have, and the
size at which a grid, which rounds down beyond it, is full."""

MAY_BE_BILLED = frozenset({ReplyStatus.TIMED_OUT, ReplyStatus.UNREACHABLE, ReplyStatus.BAD_RESPONSE})
"""Attempts that ended without an answer after they were sent: nobody knows whether they were billed, so the worst is assumed."""
CACHE_CONTROL = "cache_control"
"""The parameter that has a provider keep what it read for later requests, at a price of its own."""

# One absurd number of tokens would be the run's cost, use up its budget, and multiply what all later requests are expected to
# cost. The limits are wide: what a provider counts beside the text (pictures by rules of its own, thoughts) is believed.
NOT_BELIEVED = "the tokens it reports are not believed"
"""So begins what a reply whose usage cannot be says in its `error_detail`."""
OF_BOUND = 10
"""A picture of a model whose rule is not known may cost several times what is assumed to be the most."""
MOST_INPUT_BESIDE = 10_000
"""A gateway's own system prompt; what a tiny picture costs at the least."""
MOST_OUTPUT_BESIDE = 100_000
"""Thoughts that a server does not count against the limit of the reply."""
MOST_OUTPUT = 1_000_000
"""Where nothing bounds a reply."""
MOST_INPUT = 10_000_000
"""Where a request's own size is not at hand: no model reads as much at once."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Tokens and USD of one attempt: as expected, and at most. USD are None where no price, or no bound, is known."""

    n_input_estimated: int  # before correction by earlier replies
    n_input_bound: int  # the same
    n_input_tokens: int
    n_input_tokens_most: int
    n_output_tokens: int
    n_output_tokens_most: int | None  # None: neither the parameters nor the price data bound a reply
    expected_usd: float | None
    worst_usd: float | None


class Costs:
    """The costs of one rubric and judge.

    `observed` is what the ledger knew at the start; `seen` grows with the replies counted here, and with it the bound.
    """

    def __init__(
        self,
        judge: Judge,
        n_output_tokens_declared: int,
        observed: Observed | None = None,
        *,
        is_batch: bool = False,
    ) -> None:
        self.price, self._asking = price_of(judge), price_of_asking(judge)
        self.is_batch, self.is_price_given = is_batch, judge.price is not None
        self.n_output_tokens_most = output_bound(judge)
        self.seen = Observed()
        known = observed or Observed()
        self._input_ratio = known.input_ratio
        self._bound_ratio = known.bound_ratio
        self._cached_share = known.cached_share
        expected = known.n_output_tokens(n_output_tokens_declared)
        self.n_output_tokens = ceil(min(expected, self.n_output_tokens_most or expected))
        self._detail, self._max_side_px = judge.detail or "auto", judge.max_side_px
        self._picture_rule = picture_rule(images_of(judge.model))

    def estimate(
        self, messages_json: str, parameters_json: str = "{}", sizes_px: Sequence[tuple[int | None, int | None]] = ()
    ) -> Estimate:
        """The estimate of a planned request, from its canonical messages, parameters and the sizes of its pictures."""
        n_tokens, n_most, n_images = _message_tokens(without_digests(messages_json))
        for size_px in islice(chain(sizes_px, repeat((None, None))), n_images):
            n_image, n_image_most = self.picture_tokens(*size_px)
            n_tokens, n_most = n_tokens + n_image, n_most + n_image_most
        n_beside, n_beside_most = _tokens_beside(parameters_json)
        estimated, bound = round(n_tokens + n_beside), n_most + n_beside_most
        n_input, n_input_most = round(estimated * self._input_ratio), ceil(bound * self._bound_ratio)
        n_output, n_output_most = self.n_output_tokens, self.n_output_tokens_most
        expected_usd = worst_usd = None
        if self._asking is not None:
            expected_usd = self._asking.usd(n_input, n_input * self._cached_share, n_output, is_batch=self.is_batch)
            if n_output_most is not None:
                worst_usd = self._asking.usd(n_input_most, 0, n_output_most, is_batch=self.is_batch)
        return Estimate(estimated, bound, n_input, n_input_most, n_output, n_output_most, expected_usd, worst_usd)

    def picture_tokens(self, width_px: int | None, height_px: int | None) -> tuple[int, int]:
        """(tokens as billed, the most they can be) of a picture of this size as the judge is shown it."""
        if width_px is None or height_px is None:
            most = max(self._tokens(*size_px)[1] for size_px in _LARGEST_PX)
            return self._tokens(*_SIZE_UNKNOWN_PX)[0], most
        return self._tokens(width_px, height_px)

    def _tokens(self, width_px: int, height_px: int) -> tuple[int, int]:
        return self._picture_rule.tokens(*fitted_px(width_px, height_px, self._max_side_px), self._detail)

    def believed(self, answer: Answer, estimate: Estimate | None = None, n_bytes: int = 0) -> Answer:
        """The answer to a request of this estimate and so many bytes, without tokens where it reports more than can be."""
        n_input_most, bound = MOST_INPUT, self.n_output_tokens_most
        if estimate is not None:  # pictures are among the bytes, as base64
            n_input_most = max(OF_BOUND * estimate.n_input_bound, n_bytes) + MOST_INPUT_BESIDE
        if answer.dearer_as is not None and not self.is_price_given and answer.detail is None:
            answer = replace(answer, detail=f"billed with {answer.dearer_as}, whose price is not known; write [judges.price]")
        return _believed(answer, n_input_most, MOST_OUTPUT if bound is None else OF_BOUND * bound + MOST_OUTPUT_BESIDE)

    def settled(self, answer: Answer, estimate: Estimate, n_bytes: int) -> Answer:
        """The answer as it is counted: with tokens that can be, and what it may have been billed where no tokens will say."""
        if self.price is None or answer.status not in MAY_BE_BILLED or not answer.is_sent:
            return self.believed(answer, estimate, n_bytes)
        return replace(answer, unseen_usd=inf if estimate.worst_usd is None else estimate.worst_usd)

    def cost_usd(self, answer: Answer) -> float | None:
        """What an answer cost by the tokens it reports; None where it reports none, or no price of it is known."""
        if self.price is None or answer.n_input_tokens is None or answer.n_output_tokens is None:
            return None
        if answer.dearer_as is not None and not self.is_price_given:
            return None
        n_cached = min(answer.n_cached_tokens or 0, answer.n_input_tokens)
        n_written = min(answer.n_cache_written_tokens or 0, answer.n_input_tokens - n_cached)
        return self.price.usd(
            answer.n_input_tokens, n_cached, answer.n_output_tokens, n_cache_written=n_written, is_batch=self.is_batch
        )

    def charged_usd(self, estimate: Estimate, answer: Answer) -> float:
        """What the budget is charged: the reported cost, the worst case where it may have been billed unseen, else nothing."""
        cost = self.cost_usd(answer)
        if cost is not None:
            return cost
        is_completion = answer.status == ReplyStatus.ANSWERED or answer.finish_reason is not None
        is_unknown = answer.status in MAY_BE_BILLED and answer.is_sent
        return (estimate.worst_usd or 0.0) if is_completion or is_unknown else 0.0

    def observe(self, estimate: Estimate, answer: Answer) -> None:
        """Count what an answer reports; one above its bound raises that of each request estimated later."""
        reported = (answer.n_input_tokens, answer.n_cached_tokens, answer.n_output_tokens)
        self.seen.add(estimate.n_input_estimated, estimate.n_input_bound, *reported)
        self._bound_ratio = max(self._bound_ratio, self.seen.bound_ratio)


def price_of_asking(judge: Judge) -> ModelPrice | None:
    """The price by which requests are estimated: where the provider is to keep what it reads, all that is new is kept."""
    price = price_of(judge)
    if price is None or price.cache_write_usd is None or CACHE_CONTROL not in judge.parameters:
        return price
    return replace(price, input_usd=price.cache_write_usd)


def output_bound(judge: Judge) -> int | None:
    """The longest reply, in tokens: as the parameters say, else the model's own limit; None where neither is known."""
    price = price_of(judge)
    return stated_output_bound(judge) or (price.max_output_tokens if price else None)


def stated_output_bound(judge: Judge) -> int | None:
    """The longest reply the judge's parameters allow; None where they do not say. Limits of tokens a minute count it."""
    return provider_of(judge).output_bound(judge.parameters)


@lru_cache(maxsize=512)
def _message_tokens(messages_json: str) -> tuple[float, int, int]:
    """(tokens, the most they can be, pictures) of messages. Many pictures share a prompt: the caller cuts their digests out."""
    messages = orjson.loads(messages_json)
    texts: list[str] = []
    n_images = 0
    for message in messages:
        content = message["content"]
        if isinstance(content, str):
            texts.append(content)
        else:
            texts += [part["text"] for part in content if part["type"] == "text"]
            n_images += sum(part["type"] == "image" for part in content)
    n_messages = len(messages)
    n_tokens = sum(map(n_text_tokens, texts)) + TOKENS_PER_MESSAGE * (n_messages + 1)
    return n_tokens, n_text_tokens_most(texts) + TOKENS_PER_MESSAGE_MOST * (n_messages + 1), n_images


@lru_cache(maxsize=64)
def _tokens_beside(parameters_json: str) -> tuple[float, int]:
    """(tokens, the most they can be) of what a request's parameters have the judge read: the schema of its reply, tools."""
    read = (value for name, value in orjson.loads(parameters_json).items() if name in ("response_format", "tools"))
    texts = [orjson.dumps(value).decode() for value in read]
    return sum(map(n_text_tokens, texts)), n_text_tokens_most(texts)


def _believed(answer: Answer, n_input_most: int, n_output_most: int) -> Answer:
    """The answer, without its usage where that is more than can be: its cost is not known then, and `detail` says why."""
    n_input, n_output = answer.n_input_tokens or 0, answer.n_output_tokens or 0
    if n_input <= n_input_most and n_output <= n_output_most:
        return answer
    told = (
        f"{NOT_BELIEVED}: {n_input:,} input and {n_output:,} output, at most {n_input_most:,} and {n_output_most:,} are "
        "possible; the cost is not known"
    )
    return replace(
        answer,
        detail=f"{answer.detail}; {told}" if answer.detail else told,
        n_input_tokens=None,
        n_output_tokens=None,
        n_cached_tokens=None,
        n_cache_written_tokens=None,
    )


def is_not_believed(detail: str | None) -> bool:
    """Whether a stored reply's detail says so."""
    return detail is not None and NOT_BELIEVED in detail
