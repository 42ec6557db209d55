"""How many tokens a picture is, by each family of models, and what is assumed of one whose rule is unknown. Prices: prices.py."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, isqrt, sqrt
from typing import Any

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


@dataclass(frozen=True, slots=True)
class Blocks:
    """Claude: a token for each block of `block_px`, shrunk into `longest_px` and `n_most` of them, as little as may be."""

    block_px: int
    n_most: int
    longest_px: int

    def n_tokens(self, width_px: int, height_px: int, _detail: str = "auto") -> int:
        """Blocks that the picture reaches into, the last ones padded. Bills of large pictures: 1558 to 1561 of 1568."""
        width, height = _shrink(width_px, height_px, max(width_px, height_px), self.longest_px)
        whole = self._across(width), self._across(height)
        if whole[0] * whole[1] <= self.n_most:
            return whole[0] * whole[1]
        # the largest scale that fits is one at which one of the sides is whole blocks
        wide = ((n, self._across(n * self.block_px * height / width)) for n in range(1, whole[0] + 1))
        tall = ((self._across(n * self.block_px * width / height), n) for n in range(1, whole[1] + 1))
        return max(across * down for across, down in (*wide, *tall) if across * down <= self.n_most)

    n_tokens_most = n_tokens

    def _across(self, side_px: float) -> int:
        return max(1, ceil(side_px / self.block_px - 1e-9))


@dataclass(frozen=True, slots=True)
class Crops:
    """Gemini 2: so many tokens for each crop; a picture no larger than `small_px` is one. The detail makes no difference."""

    crop_tokens: int
    small_px: int
    least_px: int
    most_px: int

    def n_tokens(self, width_px: int, height_px: int, _detail: str = "auto") -> int:
        """Crops of a side of two thirds of the shorter one, as the text's rough formula has it."""
        if max(width_px, height_px) <= self.small_px:
            return self.crop_tokens
        return self._of(width_px, height_px, min(self.most_px, max(self.least_px, min(width_px, height_px) * 2 // 3)))

    def n_tokens_most(self, width_px: int, height_px: int, detail: str = "auto") -> int:
        """Of the formula, and of crops of `most_px` each, which the text gives as well."""
        return max(self.n_tokens(width_px, height_px, detail), self._of(width_px, height_px, self.most_px))

    def _of(self, width_px: int, height_px: int, side_px: int) -> int:
        return self.crop_tokens * -(-width_px // side_px) * -(-height_px // side_px)


@dataclass(frozen=True, slots=True)
class Fixed:
    """Gemini 3: as many as the resolution asked for allows, whatever the picture's size."""

    tokens: int

    def n_tokens(self, _width_px: int, _height_px: int, _detail: str = "auto") -> int:
        """The most there can be: smaller pictures were seen to take a few less."""
        return self.tokens

    n_tokens_most = n_tokens


@dataclass(frozen=True, slots=True)
class Grid:
    """Qwen-VL: a token for each cell of a grid that both sides are rounded to, and one on either side of the picture."""

    grid_px: int
    n_least: int = 4
    n_most: int = 16_384

    def n_tokens(self, width_px: int, height_px: int, _detail: str = "auto") -> int:
        """As smart_resize of qwen-vl-utils has it: rounded, then shrunk or enlarged where cells are too many or few."""
        grid, sides = self.grid_px, (width_px, height_px)
        across, down = (max(1, round(side / grid)) for side in sides)
        if across * down > self.n_most:
            scale = sqrt(width_px * height_px / (self.n_most * grid * grid))
            across, down = (max(1, floor(side / scale / grid)) for side in sides)
        elif across * down < self.n_least:
            scale = sqrt(self.n_least * grid * grid / (width_px * height_px))
            across, down = (ceil(side * scale / grid) for side in sides)
        return across * down + 2

    n_tokens_most = n_tokens


Rule = Tiles | Patches | Blocks | Crops | Fixed | Grid
_KINDS: Mapping[str, type[Rule]] = {
    "tiles": Tiles,
    "patches": Patches,
    "blocks": Blocks,
    "crops": Crops,
    "fixed": Fixed,
    "grid": Grid,
}

NO_RULE_KNOWN = Patches(100, patch_px=28, n_most=16_384, longest_px=1_000_000)
"""For a model whose rule is not known: a token for 28 x 28 px, as open vision models of the Qwen family count."""
NO_RULE_BOUND = Patches(100, patch_px=14, n_most=65_536, longest_px=1_000_000)
"""The most such a model is taken to count; replies that report more raise the bound (cost.py)."""


@dataclass(frozen=True, slots=True)
class PictureRule:
    """`billed` says what is billed as a rule, `bound` the most it can be."""

    billed: Rule
    bound: Rule

    def tokens(self, width_px: int, height_px: int, detail: str = "auto") -> tuple[int, int]:
        """(tokens as billed, the most they can be) at a detail of `judges.detail`."""
        return _tokens(self, width_px, height_px, detail)


def picture_rule(fields: Mapping[str, Any] | None) -> PictureRule:
    """The rule that models.toml states: its `kind`, and that one's fields; None: that of a model whose rule is not known."""
    if fields is None:
        return PictureRule(NO_RULE_KNOWN, NO_RULE_BOUND)
    rule = stated_rule(fields)
    return PictureRule(rule, rule)


def stated_rule(fields: Mapping[str, Any]) -> Rule:
    """The same without its bound."""
    return _KINDS[fields["kind"]](**{name: value for name, value in fields.items() if name != "kind"})


@lru_cache(maxsize=4096)
def _tokens(rule: PictureRule, width_px: int, height_px: int, detail: str) -> tuple[int, int]:
    return rule.billed.n_tokens(width_px, height_px, detail), rule.bound.n_tokens_most(width_px, height_px, detail)


def _shrink(width: int, height: int, side: int, most: int) -> tuple[int, int]:
    """Scaled down so that the side of length `side` is `most` at most; both in whole pixels (halves to even), at least one."""
    if side <= most:
        return width, height
    scale = Fraction(most, side)
    return max(1, round(width * scale)), max(1, round(height * scale))
