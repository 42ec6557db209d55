"""What `salon plan` expects against bills made by other code: list prices and picture rules written down here from what providers
publish, tokens of texts by the mock provider's own counting. OpenAI's bills, cent by cent, are test_cost.py.
"""

import math
from dataclasses import dataclass

import pytest

from demo.mock_provider import billing
from rubrics.loading import SHIPPED, load_rubric
from schemas.benchmark.judges import Judge
from tasks.judge.budget.cost import Costs
from tests.judge.budget.test_cost import _blank, _messages, _scenes, _sent, _values

SIZES_PX = ((384, 256), (512, 512), (640, 480), (1024, 1024), (1366, 768))


@dataclass(frozen=True)
class Area:
    """Claude, as first published: a token for 750 square pixels, after fitting into a longest side and so many tokens."""

    longest_px: int
    n_most: int

    def n_tokens(self, width_px: int, height_px: int, _detail: str) -> int:
        scale = min(1.0, self.longest_px / max(width_px, height_px))
        return min(self.n_most, round(width_px * height_px * scale**2 / 750))


@dataclass(frozen=True)
class Crops:
    """Gemini 2: 258 for a picture of up to 384 px, else for each crop of two thirds of the shorter side."""

    def n_tokens(self, width_px: int, height_px: int, _detail: str) -> int:
        if max(width_px, height_px) <= 384:
            return 258
        crop_px = min(768, max(256, math.floor(min(width_px, height_px) / 1.5)))
        return 258 * math.ceil(width_px / crop_px) * math.ceil(height_px / crop_px)


@dataclass(frozen=True)
class Fixed:
    """Gemini 3 at its default resolution."""

    def n_tokens(self, _width_px: int, _height_px: int, _detail: str) -> int:
        return 1120


@dataclass(frozen=True)
class Patches:
    """Qwen-VL: a token for two by two patches of 14 or 16 px, and one at either end."""

    side_px: int

    def n_tokens(self, width_px: int, height_px: int, _detail: str) -> int:
        return round(width_px / self.side_px) * round(height_px / self.side_px) + 2


JUDGES = {
    # model: USD per million tokens in and out (list prices, November 2026), how a picture counts (None: the mock provider's own)
    "gpt-4.1": (2.00, 8.00, None),
    "gpt-4.1-mini": (0.40, 1.60, None),
    "gpt-4o-mini": (0.15, 0.60, None),
    "claude-haiku-4-5": (1.00, 5.00, Area(1568, 1600)),
    "claude-sonnet-4-5": (3.00, 15.00, Area(1568, 1600)),
    "claude-opus-4-5": (5.00, 25.00, Area(1568, 1600)),
    "claude-opus-4-7": (5.00, 25.00, Area(2576, 4784)),
    "gemini-2.5-pro": (1.25, 10.00, Crops()),
    "gemini-2.5-flash": (0.30, 2.50, Crops()),
    "gemini-2.5-flash-lite": (0.10, 0.40, Crops()),
    "gemini-3.5-flash": (1.50, 9.00, Fixed()),
    "qwen/qwen2.5-vl-72b-instruct": (0.80, 1.00, Patches(28)),
    "qwen/qwen3-vl-8b-instruct": (0.25, 0.75, Patches(32)),
    "qwen/qwen3-vl-235b-a22b-instruct": (0.21, 1.90, Patches(32)),
}


def test_there_are_twelve_judges_of_four_providers() -> None:
    assert len(JUDGES) >= 12
    assert len({name.partition("-")[0].partition("/")[0] for name in JUDGES}) >= 4


@pytest.mark.parametrize("model", JUDGES)
@pytest.mark.parametrize("rubric_id", ["alignment", "composition", "image_aspects"])
def test_what_a_plan_expects_is_within_ten_percent_of_the_bill(rubric_id: str, model: str) -> None:
    input_usd, output_usd, rule = JUDGES[model]
    rubric, known = load_rubric(SHIPPED / rubric_id), billing.published(model)
    costs = Costs(Judge(model=model, parameters={"max_tokens": 600}), rubric.n_output_tokens_expected)
    expected = billed = 0.0
    for index, (scene, size_px) in enumerate(zip(_scenes(len(SIZES_PX)), SIZES_PX, strict=True)):
        messages_json = _messages(rubric, _values(scene, index))
        sent = _sent(model, messages_json, _blank(size_px))
        n_input = billing.n_input_tokens(sent, rule or known.image)
        billed += (n_input * input_usd + rubric.n_output_tokens_expected * output_usd) / 1e6
        expected += costs.estimate(messages_json, "{}", [size_px]).expected_usd or 0.0
    assert expected == pytest.approx(billed, rel=0.10)
