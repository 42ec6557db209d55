"""The text-token estimator: its error against counts of the real o200k_base vocabulary, and a bound that always holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubrics.loading import SHIPPED
from tasks.judge.budget.tokens import _n_tokens, n_text_tokens, n_text_tokens_most

# Counted once with the o200k_base vocabulary (gpt-4o and later), which is not at hand here.
TRUE_COUNTS = {
    "alignment/prompt.txt": 537,
    "caption/prompt.txt": 823,
    "composition/color_attr.txt": 328,
    "composition/colors.txt": 344,
    "composition/counting.txt": 355,
    "composition/position.txt": 340,
    "composition/single_object.txt": 361,
    "composition/two_object.txt": 345,
    "image_aspects/prompt.txt": 602,
    "interleaved/prompt.txt": 1452,
}


@pytest.mark.parametrize("name", TRUE_COUNTS)
def test_the_shipped_prompts_are_counted_within_four_percent(name: str) -> None:
    estimated = n_text_tokens((SHIPPED / name).read_text(encoding="utf-8"))
    assert estimated == pytest.approx(TRUE_COUNTS[name], rel=0.04)


@pytest.mark.parametrize(
    ("text", "n_true", "error"),
    [
        pytest.param("a photo of two red circles left of a blue square", 11, 0.05, id="a prompt"),
        pytest.param(
            "Reasoning: The picture shows the two circles, yet one of them is cut off.\nScore: 3", 22, 0.1, id="a reply"
        ),
        pytest.param('{"score": 4, "reason": "The caption names every object and its place."}', 20, 0.1, id="JSON"),
        pytest.param("Eine rote Katze sitzt auf dem blauen Stuhl neben drei Äpfeln.", 16, 0.3, id="German"),
        pytest.param("一只红色的猫坐在蓝色的椅子上。", 16, 0.3, id="Chinese"),
        pytest.param("Красная кошка сидит на синем стуле рядом с тремя яблоками.", 19, 0.5, id="Russian"),
        pytest.param("🐱🔴🪑🍎", 9, 0.4, id="emoji"),
        pytest.param("", 0, 0, id="nothing"),
    ],
)
def test_short_texts(text: str, n_true: int, error: float) -> None:
    assert n_text_tokens(text) == pytest.approx(n_true, rel=error, abs=0.5)


@given(st.lists(st.text()))
def test_no_byte_level_encoder_passes_the_bound_and_no_estimate_does(texts: list[str]) -> None:
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    assert n_text_tokens_most(texts) == sum(len(text.encode()) for text in texts)
    assert all(n_text_tokens(text) <= n_text_tokens_most([text]) + 1e-9 for text in texts)


lines = st.lists(st.sampled_from(["Look.", "", "Score: 0 to 10", "– a dash", "x" * 30, "\t- item"]), max_size=6)
endings = st.lists(lines, min_size=1, max_size=5)


@given(endings, st.integers(0, 10**9), st.booleans())
def test_what_was_counted_before_changes_no_count(ends: list[list[str]], salt: int, has_lines: bool) -> None:
    """Long texts share what they begin with; the remembered part must be whole lines, wherever they part."""
    beginning = f"{salt} " + ("You judge pictures. Be fair.\n" if has_lines else "You judge pictures. ") * 60
    for end in ends:
        text = beginning + "\n".join(end)
        assert n_text_tokens(text) == pytest.approx(_n_tokens(text))
