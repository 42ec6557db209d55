"""What a judge costs: Salon's price data, or what the benchmark file says. How many tokens there are: cost.py.

Models are listed in models.toml, by people; their figures stand in prices.toml, which `make prices` writes.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from schemas.benchmark.judges import Judge

_DATED = re.compile(r"-(\d{4}-\d{2}-\d{2}|20\d{6})$")
_ALIKE = 0.92
STANDARD: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        "service_tier": (None, "auto", "default", "flex", "standard_only"),
        "inference_geo": (None, "global"),
    }
)
"""Parameters that change the price, with the values under which nothing costs more than the price data say; "standard_only" and
the second are Anthropic's."""


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """USD per million tokens, and for each request beside them. `source` and `as_of` say who said so, when."""

    input_usd: float
    cached_usd: float
    output_usd: float
    batch_share: float
    max_output_tokens: int | None  # the longest reply the model gives; None: not known
    is_reasoning: bool  # it thinks before it answers, and that is billed as output
    source: str
    as_of: date | None
    request_usd: float = 0.0
    cache_write_usd: float | None = None  # of input that is kept for later requests; None: that of any input

    def usd(
        self, n_input: float, n_cached: float, n_output: float, *,
        n_cache_written: float = 0, n_requests: int = 1, is_batch: bool = False,
    ) -> float:  # fmt: skip
        """The price of so many requests and tokens: of the input's, `n_cached` are repeated ones, `n_cache_written` kept ones."""
        fresh = max(0.0, n_input - n_cached)
        total = (fresh * self.input_usd + n_cached * self.cached_usd + n_output * self.output_usd) / 1e6
        if self.cache_write_usd is not None:
            total += n_cache_written * (self.cache_write_usd - self.input_usd) / 1e6
        total += n_requests * self.request_usd
        return total * self.batch_share if is_batch else total

    @property
    def said_by(self) -> str:
        """The source with its date, for people."""
        return f"{self.source}, as of {self.as_of}" if self.as_of else self.source


def price_of(judge: Judge) -> ModelPrice | None:
    """The price of a judge: what the benchmark file says, else the price data's; None where neither knows one.

    The price data hold the standard tier: with a dearer one among the parameters there is none.
    """
    known = known_price(judge.model)
    given = judge.price
    if given is None:
        return None if _dearer(judge) else known
    input_usd, cached = given.input_usd_per_million or 0.0, given.cached_usd_per_million
    mine = ModelPrice(
        input_usd=input_usd,
        cached_usd=input_usd if cached is None else cached,
        output_usd=given.output_usd_per_million or 0.0,
        batch_share=given.batch_share if given.gpu_hour is None else 1.0,
        max_output_tokens=None,
        is_reasoning=False,
        source="the benchmark file",
        as_of=None,
        request_usd=(given.gpu_hour or 0.0) / (given.judgements_per_hour or 1.0),
    )
    if known is None:
        return mine
    return replace(mine, max_output_tokens=known.max_output_tokens, is_reasoning=known.is_reasoning)


def known_price(model: str) -> ModelPrice | None:
    """The price data's price of a model: by its own name, or by the name before its date."""
    prices = _prices()
    return prices.get(model) or prices.get(_DATED.sub("", model))


def _dearer(judge: Judge) -> str | None:
    """The parameter that makes a judge dearer than the price data say, with its value."""
    asked = ((name, judge.parameters.get(name), usual) for name, usual in STANDARD.items())
    return next((f'{name} = "{value}"' for name, value, usual in asked if value not in usual), None)


def why_no_price(judge: Judge) -> str:
    """Why a judge has no price, and what to do about it."""
    how = (
        "write [judges.price] below that judge, with input_usd_per_million and output_usd_per_million "
        "(and cached_usd_per_million, batch_share), 0 for what costs nothing; or gpu_hour and judgements_per_hour"
    )
    if known_price(judge.model) is not None:
        return f"the price of {judge.model} at {_dearer(judge)} is not in Salon's price data; {how}"
    return f"no price of {judge.model} is known{_meant(judge.model)}; {how}"


def _meant(model: str) -> str:
    """A listed model whose name differs in a letter or two and in no number, as a question: other numbers are other models."""
    numbers = re.findall(r"\d+", model)
    near = get_close_matches(model, [name for name in _prices() if re.findall(r"\d+", name) == numbers], n=1, cutoff=_ALIKE)
    return f" (did you mean {near[0]}?)" if near else ""


def images_of(model: str) -> Mapping[str, Any] | None:
    """How a model counts pictures, by its own name or by that of its family, whoever serves it; None where it is not known."""
    content, plain = _toml("models"), model.lower()
    listed = content["models"].get(model) or content["models"].get(_DATED.sub("", model))
    family = next((rule for pattern, rule in content["families"].items() if fnmatchcase(plain, pattern)), None)
    rule = listed["images"] if listed else family
    found: Mapping[str, Any] | None = content["images"][rule] if rule else None
    return found


@cache
def _toml(name: str) -> Mapping[str, Any]:
    return tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text(encoding="utf-8"))


@cache
def _prices() -> Mapping[str, ModelPrice]:
    figures = _toml("prices")
    return {name: _price(fields, figures[name]) for name, fields in _toml("models")["models"].items()}


def _price(model: Mapping[str, Any], figures: Mapping[str, Any]) -> ModelPrice:
    return ModelPrice(
        input_usd=float(figures["input_usd_per_million"]),
        cached_usd=float(figures.get("cached_usd_per_million", figures["input_usd_per_million"])),
        output_usd=float(figures["output_usd_per_million"]),
        batch_share=float(figures.get("batch_share", 1.0)),
        max_output_tokens=model["max_output_tokens"],
        is_reasoning=model.get("is_reasoning", False),
        source=figures["source"],
        as_of=figures["as_of"],
        cache_write_usd=figures.get("cache_write_usd_per_million"),
    )
