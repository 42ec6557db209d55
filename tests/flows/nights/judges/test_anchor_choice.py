"""Which samples become anchors: as many of each category as can be, other prompts first, the levels of score in turn."""

from collections import Counter
from collections.abc import Sequence

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.nights.anchors import N_LEVELS, choose

Candidate = tuple[str | None, int, int]
"""(category, prompt, score)"""

_CANDIDATES = st.lists(
    st.tuples(st.sampled_from(["colors", "counting", "position", None]), st.integers(0, 5), st.integers(0, 3)),
    min_size=1,
    max_size=60,
)


def _frame(candidates: Sequence[Candidate]) -> pl.DataFrame:
    rows = [
        {"sample_id": f"{number:04d}", "category": category, "prompt_id": f"{category} {prompt}", "score": float(score)}
        for number, (category, prompt, score) in enumerate(candidates)
    ]
    return pl.DataFrame(rows, schema_overrides={"category": pl.String})


@given(candidates=_CANDIDATES, n=st.integers(1, 70))
def test_categories_are_as_even_and_prompts_as_many_as_can_be(candidates: list[Candidate], n: int) -> None:
    frame = _frame(candidates)
    chosen = choose(frame, n)
    assert chosen == choose(frame.reverse(), n)
    assert len(chosen) == len(set(chosen)) == min(n, len(candidates))
    there = Counter(category for category, _, _ in candidates)
    rows = [candidates[int(sample_id)] for sample_id in chosen]
    taken = Counter(category for category, _, _ in rows)
    most = max(taken.values())
    for category, n_there in there.items():
        assert taken[category] >= min(n_there, most - 1)
        n_prompts = len({prompt for other, prompt, _ in candidates if other == category})
        assert len({prompt for other, prompt, _ in rows if other == category}) == min(n_prompts, taken[category])


@pytest.mark.parametrize("n", [30, 31, 33, 60], ids=lambda n: f"{n} anchors")
def test_six_categories_of_ten_prompts_give_alike_and_of_each_level_alike(n: int) -> None:
    """Four pictures of each prompt whose levels lie as they come: ids and prompts say nothing of the scores."""
    places = [(f"c{c}", p, (7 * p + 3 * k + c) % 11) for c in range(6) for p in range(10) for k in range(4)]
    frame = _frame(places)
    level = (pl.col("score").rank("ordinal").over("category") - 1) * N_LEVELS // pl.len().over("category")
    chosen = frame.with_columns(level=level).filter(pl.col("sample_id").is_in(choose(frame, n)))
    assert set(chosen.group_by("category").len()["len"]) <= {n // 6, -(-n // 6)}
    assert chosen.group_by("category").agg(pl.col("level").n_unique())["level"].to_list() == [N_LEVELS] * 6
