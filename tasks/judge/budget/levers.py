"""What would make a plan cheaper, priced by the rules that price the plan. The plan itself is forecast.py."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from schemas.benchmark.judges import Judge
from tasks.judge.budget.cost import Costs
from tasks.judge.budget.prices import ModelPrice, images_of
from tasks.judge.provider.base import provider_of

CACHED_AT_ONCE = 128
"""Equal tokens are billed as repeated in steps of so many (OpenAI's guide to prompt caching, 2026-11)."""


class Lever(StrEnum):
    """What a benchmark file could say instead; the last is the provider's to do."""

    BATCH = "batch"
    MAX_SIDE_1024 = "max_side_px_1024"
    MAX_SIDE_512 = "max_side_px_512"
    DETAIL_LOW = "detail_low"
    REPEATS_1 = "repeats_1"
    SHARE_HALF = "share_0.5"
    PROMPT_CACHE = "prompt_cache"


LARGEST_PX = 1_000_000  # of a picture that is sent as it is
SHOWN: Mapping[Lever, dict[str, Any]] = {
    Lever.MAX_SIDE_1024: {"max_side_px": 1024},
    Lever.MAX_SIDE_512: {"max_side_px": 512},
    Lever.DETAIL_LOW: {"detail": "low"},
}


@dataclass(frozen=True, slots=True)
class Payable:
    """What is to be paid of one judge and rubric: tokens as expected, pictures by size, equal beginnings by variant."""

    n_input: float
    n_output: float
    input_ratio: float  # what replies made of the estimate of input
    cached_share: float  # of the input, as replies said
    pictures: Counter[tuple[int | None, int | None]]  # (width_px, height_px) -> how many
    first_share: float  # of the requests, asked the first of their repeats
    beginnings: Sequence[tuple[int, int]]  # (requests, equal tokens they begin with) of each variant

    @property
    def n_requests(self) -> int:
        """How many these are."""
        return sum(n for n, _ in self.beginnings)


def priced(judge: Judge, price: ModelPrice | None, due: Payable, anew: Payable) -> dict[Lever, float]:
    """USD of what is `due` under each lever alone, in the judge's own mode.

    Pictures shown otherwise are other questions, which no stored reply answers: they are priced for all requests, `anew`.
    A lever is left out where the judge has it already, or where no price or rule says what it would cost.
    """
    is_batch = judge.mode == "batch"
    if price is None or judge.recorded:
        return {}
    found = _of_the_same(judge, price, due) if due.n_requests else {}
    for lever, shown in SHOWN.items() if images_of(judge.model) and anew.pictures else ():
        if lever is Lever.DETAIL_LOW and not provider_of(judge).has_detail:
            continue
        is_had = judge.detail == "low" or (judge.max_side_px or LARGEST_PX) <= shown.get("max_side_px", 0)
        if not is_had:
            fewer = _n_tokens(judge, anew) - _n_tokens(judge.model_copy(update=shown), anew)
            found[lever] = _usd(price, anew, anew.n_input - fewer * anew.input_ratio, anew.cached_share, is_batch=is_batch)
    return {lever: found[lever] for lever in Lever if lever in found}


def _of_the_same(judge: Judge, price: ModelPrice, due: Payable) -> dict[Lever, float]:
    """USD under the levers that leave the questions as they are."""
    is_batch = judge.mode == "batch"
    found = {} if is_batch else {Lever.BATCH: _usd(price, due, due.n_input, due.cached_share, is_batch=True)}
    fewer_asked = {Lever.REPEATS_1: due.first_share, Lever.SHARE_HALF: 1.0 if judge.share else 0.5}
    for lever, asked in fewer_asked.items():
        if asked < 1:  # each prompt is drawn by itself: half of the prompts is half of the cost, give or take a prompt
            found[lever] = asked * _usd(price, due, due.n_input, due.cached_share, is_batch=is_batch)
    least = provider_of(judge).prompt_cache_tokens(judge)
    if least is not None and not is_batch and price.cached_usd < price.input_usd and due.n_input:
        n_equal = sum((n - 1) * (equal // CACHED_AT_ONCE * CACHED_AT_ONCE) for n, equal in due.beginnings if n and equal >= least)
        share = min(1.0, max(due.cached_share, n_equal / due.n_input))
        found[Lever.PROMPT_CACHE] = _usd(price, due, due.n_input, share, is_batch=False)
    return found


def _n_tokens(judge: Judge, due: Payable) -> int:
    costs = Costs(judge, 0)
    return sum(n * costs.picture_tokens(*size_px)[0] for size_px, n in due.pictures.items())


def _usd(price: ModelPrice, due: Payable, n_input: float, cached_share: float, *, is_batch: bool) -> float:
    return price.usd(n_input, n_input * cached_share, due.n_output, n_requests=due.n_requests, is_batch=is_batch)
