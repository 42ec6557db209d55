"""What a judge costs: Salon's price data (prices.toml), or what the benchmark file says. How many tokens there are: cost.py."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from schemas.benchmark import Judge

_DATED = re.compile(r"-\d{4}-\d{2}-\d{2}$")
STANDARD_TIERS = (None, "auto", "default", "flex")
"""Values of the parameter service_tier under which nothing costs more than the standard tier."""


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """USD per million tokens, and how a picture counts in its provider's terms (`image` None: not known).

    `source` and `as_of` say who said so, when.
    """

    input_usd: float
    cached_usd: float
    output_usd: float
    batch_share: float
    image: Mapping[str, Any] | None
    max_output_tokens: int | None  # the longest reply the model gives; None: not known
    is_reasoning: bool  # it thinks before it answers, and that is billed as output
    source: str
    as_of: date | None

    def usd(self, n_input: float, n_cached: float, n_output: float, *, is_batch: bool = False) -> float:
        """The price of so many tokens, `n_cached` of the input's being repeated ones."""
        fresh = max(0.0, n_input - n_cached)
        total = (fresh * self.input_usd + n_cached * self.cached_usd + n_output * self.output_usd) / 1e6
        return total * self.batch_share if is_batch else total

    @property
    def said_by(self) -> str:
        """The source with its date, for people."""
        return f"{self.source}, as of {self.as_of}" if self.as_of else self.source


def price_of(judge: Judge) -> ModelPrice | None:
    """The price of a judge: what the benchmark file says, else the price data's; None where neither knows one.

    The price data hold the standard tier: with a dearer `service_tier` among the parameters there is none.
    """
    known = known_price(judge.model)
    given = judge.price
    if given is None:
        return known if judge.parameters.get("service_tier") in STANDARD_TIERS else None
    cached = given.cached_usd_per_million
    mine = ModelPrice(
        input_usd=given.input_usd_per_million,
        cached_usd=given.input_usd_per_million if cached is None else cached,
        output_usd=given.output_usd_per_million,
        batch_share=given.batch_share,
        image=None,
        max_output_tokens=None,
        is_reasoning=False,
        source="the benchmark file",
        as_of=None,
    )
    if known is None:
        return mine
    return replace(mine, image=known.image, max_output_tokens=known.max_output_tokens, is_reasoning=known.is_reasoning)


def known_price(model: str) -> ModelPrice | None:
    """The price data's price of a model: by its own name, or by the name before its date."""
    prices = _prices()
    return prices.get(model) or prices.get(_DATED.sub("", model))


def why_no_price(judge: Judge) -> str:
    """Why a judge has no price, and what to do about it."""
    how = (
        "write [judges.price] below that judge, with input_usd_per_million and output_usd_per_million "
        "(and cached_usd_per_million, batch_share)"
    )
    tier = judge.parameters.get("service_tier")
    if known_price(judge.model) is not None:
        return f'the price of {judge.model} at service_tier = "{tier}" is not in Salon\'s price data; {how}'
    return f"no price of {judge.model} is known; {how}"


@cache
def _prices() -> Mapping[str, ModelPrice]:
    content = tomllib.loads((Path(__file__).parent / "prices.toml").read_text(encoding="utf-8"))
    return {name: _price(fields, content["images"], content["pricing_page"]) for name, fields in content["models"].items()}


def _price(fields: Mapping[str, Any], rules: Mapping[str, Mapping[str, Any]], page: str) -> ModelPrice:
    return ModelPrice(
        input_usd=float(fields["input_usd_per_million"]),
        cached_usd=float(fields.get("cached_usd_per_million", fields["input_usd_per_million"])),
        output_usd=float(fields["output_usd_per_million"]),
        batch_share=float(fields.get("batch_share", 1.0)),
        image=rules[fields["images"]],
        max_output_tokens=fields["max_output_tokens"],
        is_reasoning=fields.get("is_reasoning", False),
        source=fields.get("source", page),
        as_of=fields["as_of"],
    )
