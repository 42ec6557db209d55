"""How many tokens a picture is: OpenAI's rules of tiles and of patches, and what is assumed of a model whose rule is unknown."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Any

from tasks.judge.provider.base import PictureRule

TILE_PX = 512
SQUARE_PX = 2048
SHORTEST_PX = 768


@dataclass(frozen=True, slots=True)
class Tiles:
    """A base, and so many tokens for each tile of 512 px, after scaling into 2048 x 2048 px and to a shortest side of 768 px."""

    base_tokens: int
    tile_tokens: int

    def n_tokens(self, width_px: int, height_px: int, detail: str = "auto") -> int:
        """As billed: nothing is scaled up, and sides are rounded to whole pixels. Detail "low" is the base alone."""
        if detail == "low":
            return self.base_tokens
        width, height = _shrink(width_px, height_px, max(width_px, height_px), SQUARE_PX)
        width, height = _shrink(width, height, min(width, height), SHORTEST_PX)
        return self._of(width, height)

    def n_tokens_most(self, width_px: int, height_px: int, detail: str = "auto") -> int:
        """As the text reads: a smaller picture is scaled up to the shortest side of 768 px."""
        if detail == "low":
            return self.base_tokens
        width, height = _shrink(width_px, height_px, max(width_px, height_px), SQUARE_PX)
        shortest = min(width, height)
        if shortest < SHORTEST_PX:
            width, height = -(-width * SHORTEST_PX // shortest), -(-height * SHORTEST_PX // shortest)
        return max(self._of(width, height), self.n_tokens(width_px, height_px))

    def _of(self, width: int, height: int) -> int:
        return self.base_tokens + self.tile_tokens * -(-width // TILE_PX) * -(-height // TILE_PX)


@dataclass(frozen=True, slots=True)
class Patches:
    """Patches of `patch_px`, at most `n_most` of them, times the model's factor. The detail level makes no difference."""

    tokens_per_100_patches: int
    patch_px: int = 32
    n_most: int = 1536
    longest_px: int = 2048

    def n_tokens(self, width_px: int, height_px: int, _detail: str = "auto") -> int:
        """As billed: first into `longest_px`, then, if there are still too many patches, to a whole number of them one way.

        4000 x 1474 px was billed as 1536 patches, 1800 x 2400 px is published as 1452.
        """
        across, down = self._patches(width_px, height_px)
        return self._of(min(self.n_most, across * down))

    def n_tokens_most(self, width_px: int, height_px: int, _detail: str = "auto") -> int:
        """However a provider scales down: all patches of the picture as it is, at most as many as there can be."""
        n_patches = -(-width_px // self.patch_px) * -(-height_px // self.patch_px)
        return max(self._of(min(self.n_most, n_patches)), self.n_tokens(width_px, height_px))

    def _patches(self, width_px: int, height_px: int) -> tuple[int, int]:
        width, height = _shrink(width_px, height_px, max(width_px, height_px), self.longest_px)
        across, down = -(-width // self.patch_px), -(-height // self.patch_px)
        if across * down <= self.n_most:
            return across, down
        # whole patches each way when all of them just fit: floor(width · sqrt(n_most / (width · height))), in integers
        across, down = max(1, isqrt(width * self.n_most // height)), max(1, isqrt(height * self.n_most // width))
        if across * height <= down * width:  # the side that lost more sets the scale, the other follows
            return across, -(-across * height // width)
        return -(-down * width // height), down

    def _of(self, n_patches: int) -> int:
        return -(-n_patches * self.tokens_per_100_patches // 100)


NO_RULE_KNOWN = Patches(100, patch_px=28, n_most=16_384, longest_px=1_000_000)
"""For a model whose rule is not known: a token for 28 x 28 px, as open vision models of the Qwen family count."""
NO_RULE_BOUND = Patches(100, patch_px=14, n_most=65_536, longest_px=1_000_000)
"""The most such a model is taken to count; replies that report more raise the bound (budget/cost.py)."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """`billed` says what is billed as a rule, `bound` the most it can be."""

    billed: Tiles | Patches
    bound: Tiles | Patches

    def tokens(self, width_px: int, height_px: int, detail: str = "auto") -> tuple[int, int]:
        """(tokens as billed, the most they can be) at this detail."""
        return _tokens(self, width_px, height_px, detail)


def picture_rule(fields: Mapping[str, Any] | None) -> PictureRule:
    """The rule that price data state: its `kind`, "tiles" or "patches", and that one's fields."""
    if fields is None:
        return _Rule(NO_RULE_KNOWN, NO_RULE_BOUND)
    rule = stated_rule(fields)
    return _Rule(rule, rule)


def stated_rule(fields: Mapping[str, Any]) -> Tiles | Patches:
    """The same without its bound."""
    stated = {name: value for name, value in fields.items() if name != "kind"}
    return Tiles(**stated) if fields["kind"] == "tiles" else Patches(**stated)


@lru_cache(maxsize=4096)
def _tokens(rule: _Rule, width_px: int, height_px: int, detail: str) -> tuple[int, int]:
    return rule.billed.n_tokens(width_px, height_px, detail), rule.bound.n_tokens_most(width_px, height_px, detail)


def _shrink(width: int, height: int, side: int, most: int) -> tuple[int, int]:
    """Scaled down so that the side of length `side` is `most` at most; both in whole pixels (halves to even), at least one."""
    if side <= most:
        return width, height
    scale = Fraction(most, side)
    return max(1, round(width * scale)), max(1, round(height * scale))
