"""What a plan will cost under one rubric and judge: sums over its requests, part by part. The plan's whole is in flows."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from os.path import commonprefix

import polars as pl

from schemas.benchmark.file import Limits
from schemas.benchmark.judges import Judge
from tasks.judge.budget.cost import Costs, Estimate, output_bound, price_of_asking, stated_output_bound
from tasks.judge.budget.levers import Lever, Payable, priced
from tasks.judge.budget.observed_usage import Observed
from tasks.judge.budget.prices import ModelPrice, price_of
from tasks.judge.budget.tokens import n_text_tokens
from tasks.judge.pictures import digests_of
from tasks.lake.pictures import SIZE_COLUMNS

FORECAST_COLUMNS = ["request_key", "messages_json", "parameters_json", "variant", "repeat"]
"""The columns of `requests` a forecast reads."""
_PICTURE = '{"sha256":"'
"""How a picture begins among canonical messages: what follows is another in each request."""
_BEFORE_TEXT = r'^\[\{"content":(\[\{"text":)?"'
"""A message without a picture is a text, else a list that begins with one: to a provider's cache they begin alike."""


@dataclass(slots=True)
class Tally:
    """Sums over the requests of one rubric and judge, before any correction."""

    judge: Judge
    n_output_declared: int
    n_requests: int = 0
    n_cached: int = 0
    n_input: int = 0  # estimated tokens of what is to be asked
    n_input_bound: int = 0
    n_input_cached: int = 0  # of what is stored already
    replied: Observed = field(default_factory=Observed)
    openings: dict[str | None, str] = field(default_factory=dict)  # by variant, what all its requests begin with
    n_first: int = 0  # of what is to be asked, the first of their repeats
    n_by_variant: Counter[str | None] = field(default_factory=Counter)  # of what is to be asked
    pictures: Counter[tuple[int | None, int | None]] = field(default_factory=Counter)  # of what is to be asked, by size
    pictures_stored: Counter[tuple[int | None, int | None]] = field(default_factory=Counter)  # of what is stored already

    def add(self, requests: pl.DataFrame, pictures: pl.DataFrame, known: set[str], replies: pl.DataFrame | None = None) -> None:
        """Count one part: its requests, the sizes of its pictures, the keys that have a reply, and (if wanted) those replies."""
        costs = Costs(self.judge, self.n_output_declared)
        sizes = {digest: (width, height) for digest, width, height in pictures.select(SIZE_COLUMNS).iter_rows()}
        cached: dict[str, Estimate] = {}
        self._add_openings(requests)
        for key, messages_json, parameters_json, variant, repeat in requests.select(FORECAST_COLUMNS).iter_rows():
            self.n_requests += 1
            self.n_cached += key in known
            if messages_json is None:
                continue
            sizes_px = [sizes.get(digest, (None, None)) for digest in digests_of(messages_json)]
            estimate = costs.estimate(messages_json, parameters_json, sizes_px)
            if key in known:
                self.n_input_cached += estimate.n_input_estimated
                self.pictures_stored.update(sizes_px)
                cached[key] = estimate
            else:
                self.n_input += estimate.n_input_estimated
                self.n_input_bound += estimate.n_input_bound
                self.n_by_variant[variant] += 1
                self.n_first += repeat == 0
                self.pictures.update(sizes_px)
        if replies is not None:
            self._add_replies(replies, cached)

    def _add_openings(self, requests: pl.DataFrame) -> None:
        """Of texts in order the first and the last have in common what all have."""
        text = pl.col("messages_json").str.split(_PICTURE).list.first().str.replace(_BEFORE_TEXT, "")
        found = requests.drop_nulls("messages_json").group_by("variant").agg(first=text.min(), last=text.max())
        for variant, first, last in found.iter_rows():
            texts = [self.openings.get(variant, first), first, last]
            self.openings[variant] = commonprefix(texts)  # noqa: RUF071 - characters are what is compared, not paths

    def _add_replies(self, replies: pl.DataFrame, estimates: Mapping[str, Estimate]) -> None:
        columns = ["request_key", "n_input_tokens", "n_cached_tokens", "n_output_tokens"]
        for key, *reported in replies.select(columns).iter_rows():
            estimate = estimates.get(key)
            if estimate is None:
                continue
            one = Observed()
            one.add(estimate.n_input_estimated, estimate.n_input_bound, *reported)
            if one.can_be:  # stored before such were left out
                self.replied += one


@dataclass(frozen=True, slots=True)
class Forecast:
    """Tokens and USD of what is still to be asked of one judge by one rubric; USD are None where no price is known."""

    price: ModelPrice | None
    observed: Observed
    n_requests: int
    n_cached: int
    n_to_ask: int
    n_input_tokens: int
    n_output_tokens: int
    n_limited_tokens: int  # what a limit of tokens a minute counts: the input, and the longest replies where they are stated
    online_usd: float | None
    batch_usd: float | None
    worst_usd: float | None  # online, each request asked once; None also where nothing bounds a reply
    saved_usd: float | None  # what the stored replies would cost online
    latency_s: float | None = None  # of a reply, as the last run saw it
    n_equal_tokens: tuple[int, int] = (0, 0)  # all requests of a variant begin with: the fewest and the most
    worst_batch_usd: float | None = None  # the same by batch: what batches set aside, of which nothing is given back
    lever_usd: Mapping[Lever, float] = field(
        default_factory=dict
    )  # what is left under each that there is a price of; all anew where it asks otherwise

    def minutes(self, limits: Limits) -> float | None:
        """Minutes the asking takes at these limits and places in flight, the slowest of them; None where none is known."""
        rpm, tpm = limits.requests_per_minute, limits.tokens_per_minute
        by_requests = self.n_to_ask / rpm if rpm else None
        by_tokens = self.n_limited_tokens / tpm if tpm else None
        by_latency = self.n_to_ask * self.latency_s / limits.concurrency / 60 if self.latency_s is not None else None
        return max((minutes for minutes in (by_requests, by_tokens, by_latency) if minutes is not None), default=None)


def forecast(tally: Tally, stored: Observed | None, latency_s: float | None = None) -> Forecast:
    """The forecast from a part-by-part tally, corrected by what the ledger knows of this rubric and judge."""
    observed = stored or tally.replied
    judge, price = tally.judge, price_of_asking(tally.judge)
    n_to_ask = 0 if judge.recorded else tally.n_requests - tally.n_cached
    bound, stated = output_bound(judge), stated_output_bound(judge)
    n_output_each = observed.n_output_tokens(tally.n_output_declared)
    n_output_each = min(n_output_each, bound or n_output_each)
    n_input = tally.n_input * observed.input_ratio if n_to_ask else 0.0
    n_output = n_to_ask * n_output_each

    def usd(n: int, n_in: float, n_out: float, *, is_batch: bool = False) -> float | None:
        return price.usd(n_in, n_in * observed.cached_share, n_out, n_requests=n, is_batch=is_batch) if price else None

    equal = {variant: _n_equal(opening) for variant, opening in tally.openings.items()}
    beginnings = [(n, equal.get(variant, 0)) for variant, n in tally.n_by_variant.items()]
    first_share = tally.n_first / max(1, tally.n_by_variant.total())
    due = Payable(n_input, n_output, observed.input_ratio, observed.cached_share, tally.pictures, first_share, beginnings)
    n_input_anew = (tally.n_input + tally.n_input_cached) * observed.input_ratio
    anew = replace(
        due, n_input=n_input_anew, n_output=tally.n_requests * n_output_each, pictures=tally.pictures + tally.pictures_stored,
        beginnings=[(tally.n_requests, 0)],
    )  # fmt: skip
    n_bound = tally.n_input_bound * observed.bound_ratio if n_to_ask else 0.0
    worst_usd, worst_batch_usd = (
        price.usd(n_bound, 0, n_to_ask * bound, n_requests=n_to_ask, is_batch=is_batch) if price and bound is not None else None
        for is_batch in (False, True)
    )
    return Forecast(
        price=price_of(judge),
        observed=observed,
        n_requests=tally.n_requests,
        n_cached=tally.n_cached,
        n_to_ask=n_to_ask,
        n_input_tokens=round(n_input),
        n_output_tokens=round(n_output),
        n_limited_tokens=round(n_input + n_to_ask * (stated or n_output_each)),
        online_usd=usd(n_to_ask, n_input, n_output),
        batch_usd=usd(n_to_ask, n_input, n_output, is_batch=True),
        worst_usd=worst_usd,
        worst_batch_usd=worst_batch_usd,
        saved_usd=usd(tally.n_cached, tally.n_input_cached * observed.input_ratio, tally.n_cached * n_output_each),
        latency_s=latency_s,
        n_equal_tokens=(min(equal.values(), default=0), max(equal.values(), default=0)),
        lever_usd=priced(judge, price, due, anew),
    )


def _n_equal(opening: str) -> int:
    """Estimated tokens of a text as JSON writes it."""
    return round(n_text_tokens(opening.replace("\\n", "\n")))


def total_usd(values: Iterable[float | None]) -> float | None:
    """The sum; None where one is not known."""
    listed = list(values)
    return None if any(value is None for value in listed) else sum(value for value in listed if value is not None)
