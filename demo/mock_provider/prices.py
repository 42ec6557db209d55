"""What the provider charges, by the rules it publishes: prices, and how a picture counts. Counting a request is billing.py.

Prices in USD per million tokens: https://platform.openai.com/docs/pricing (the Batch API is half). Picture rules:
https://platform.openai.com/docs/guides/images-vision ("Calculating costs"). Both as quoted there in November 2026.
The difficult provider keeps this table for itself, so that a client's estimate is held against other code than its own.
"""

from dataclasses import dataclass
from math import ceil, sqrt


@dataclass(frozen=True, slots=True)
class Tiles:
    """Pictures counted in tiles of 512 px, after scaling down into 2048 px and to a shortest side of 768 px."""

    base: int = 85
    tile: int = 170

    def n_tokens(self, width_px: int, height_px: int, detail: str) -> int:
        """Tokens of one picture; detail "low" costs the base alone.

        Nothing is scaled up and sides are rounded: 128 x 64 px was billed as one tile, 2049 x 513 px as eight, 2050 x 513 px
        as four (measured bills in community.openai.com threads 1262691 and 1281361).
        """
        if detail == "low":
            return self.base
        width, height = float(width_px), float(height_px)
        for side, most in ((max, 2048), (min, 768)):
            scale = most / side(width, height)
            if scale < 1:
                width, height = max(1, round(width * scale)), max(1, round(height * scale))
        return self.base + self.tile * ceil(width / 512) * ceil(height / 512)


@dataclass(frozen=True, slots=True)
class Patches:
    """Pictures counted in patches of 32 px, at most 1536 of them, times the model's factor; detail makes no difference."""

    factor: float
    most: int = 1536

    def n_tokens(self, width_px: int, height_px: int, _detail: str) -> int:
        """Tokens of one picture; a larger one is scaled down until a whole number of patches fits both ways."""
        width, height = float(width_px), float(height_px)
        if ceil(width / 32) * ceil(height / 32) > self.most:
            scale = sqrt(32 * 32 * self.most / (width * height))
            across, down = width * scale / 32, height * scale / 32
            scale *= min(int(across) / across, int(down) / down)
            width, height = width * scale, height * scale
        return ceil(min(self.most, ceil(round(width / 32, 6)) * ceil(round(height / 32, 6))) * self.factor)


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million input and output tokens, and how a picture counts."""

    input_usd: float
    output_usd: float
    image: Tiles | Patches = Tiles()


_PUBLISHED = {
    "gpt-4.1": Price(2.00, 8.00),
    "gpt-4.1-mini": Price(0.40, 1.60, Patches(1.62)),
    "gpt-4.1-nano": Price(0.10, 0.40, Patches(2.46)),
    "gpt-4o": Price(2.50, 10.00),
    "gpt-4o-2024-05-13": Price(5.00, 15.00),
    "gpt-4o-mini": Price(0.15, 0.60, Tiles(2833, 5667)),
}


def published(model: str) -> Price | None:
    """The published price of a model: by its own name, or by its family's where a date follows. None where not known."""
    if model in _PUBLISHED:
        return _PUBLISHED[model]
    family, separator, date = model[:-11], model[-11:-10], model[-10:]
    is_dated = separator == "-" and date.replace("-", "").isdigit()
    return _PUBLISHED.get(family) if is_dated else None
