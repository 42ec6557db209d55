"""What a page says in words where a figure alone would mislead or is left out."""

import polars as pl
import pytest

from schemas.tables.nights import RELIABILITY
from tasks.publish.report.gallery import Gallery

MEASURED = {
    "rubric_id": "small",
    "rubric_version": "1",
    "dimension": "overall_score",
    "judge_model": "eye",
    "model": "north",
    "n_prompts": 12,
    "n_images": 24,
    "n_scores": 48,
    "n_repeats_mean": 2.0,
    "n_truncated": 0,
    "status": "ok",
}
ALIKE = "all repeats are alike. At temperature 0 a judge may repeat itself word for word and still be wrong"


@pytest.mark.parametrize(
    ("found", "is_told"),
    [
        pytest.param([0.834, 1.0 - 1e-12], True, id="alike on one checkpoint"),
        pytest.param([0.834, 0.998], False, id="nearly alike"),
        pytest.param([0.834, None], False, id="none known"),
    ],
)
def test_repeats_that_are_all_alike_are_not_called_right(small, found, is_told):
    rows = [MEASURED | {"checkpoint": f"step-{n}", "icc": icc, "reliability": icc, "reason": "x"} for n, icc in enumerate(found)]
    tables = small.tables | {RELIABILITY: pl.DataFrame(rows, schema=RELIABILITY.empty().schema)}
    page = type(small)(small.lake, tables, small.provenance).page(Gallery((), 48)).decode()
    assert (ALIKE in page) == is_told


@pytest.mark.parametrize(("n", "is_drawn"), [(14, True), (15, False)])
def test_a_chart_that_is_left_out_is_told(made_of, n, is_drawn):
    made = made_of(categories=[f"c{index:02}" for index in range(n)], n_prompts=2 * n, n_per_prompt=1)
    page = made.page(Gallery((), 48)).decode()
    assert ("Mean by category</figcaption>" in page) == is_drawn
    assert page.count(f"{n} categories are too many for a chart of them; their means stand in the table below.") == (not is_drawn)
