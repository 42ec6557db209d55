"""The cells of a small set, against a table worked out by hand (golden/working.md shows the arithmetic)."""

from pathlib import Path

import polars as pl
import pytest

GOLDEN = Path(__file__).parent / "golden"


def test_cells_equal_the_hand_computed_table(make_rubric, aggregate):
    judged = pl.read_csv(GOLDEN / "judgements.csv", schema_overrides={"score": pl.Float64})
    rows = [
        {**row, "scores": {"quality": row["score"] if row["failure"] is None else row["failure"]}}
        for row in judged.iter_rows(named=True)
    ]
    table = aggregate(rows, make_rubric({None: ("quality",)}, report_by="category"), min_coverage=0.8)
    expected = pl.read_csv(GOLDEN / "cells.csv", infer_schema_length=None)
    assert table.height == expected.height
    for found, wanted in zip(table.iter_rows(named=True), expected.iter_rows(named=True), strict=True):
        for name, value in wanted.items():
            seen = found[name]
            same = (
                seen == pytest.approx(value, abs=1e-8) if isinstance(value, float | int) and seen is not None else seen == value
            )
            assert same, (wanted["model"], wanted["category"], name, found[name], value)


def test_failures_are_counted_by_reason(make_rubric, all_tables, one):
    rows = [
        {"prompt": "p", "sample": "a", "scores": {"quality": "refusal"}},
        {"prompt": "p", "sample": "b", "scores": {"quality": "empty"}},
        {"prompt": "q", "sample": "c", "scores": {"quality": ("no_reply", "timed_out", None, 0.0, 10.0)}},
        {"prompt": "q", "sample": "d", "scores": {"quality": ("rule_violation", "rule_violation", 7.0, 0.0, 1.0)}},
        {"prompt": "q", "sample": "e", "status": "unusable_sample", "reason": "broken_image"},
        {"prompt": "q", "sample": "f", "status": "missing_column"},
        {"prompt": "r", "sample": "g", "scores": {"quality": 4}},
    ]
    tables = all_tables(rows, make_rubric({None: ("quality",)}))
    cell = one(tables["benchmark_long"], category="__micro__", estimand="prompts_like_these")
    reasons = dict.fromkeys(("broken_image", "empty", "missing_column", "refusal", "rule_violation", "timed_out"), 1)
    assert dict(tables["failures"].filter(cell_id=cell["cell_id"]).select("reason", "n_failed").rows()) == reasons
    assert (cell["n_judgements"], cell["n_scored"], cell["n_failed"], cell["n_rule_violations"]) == (7, 1, 6, 1)
    assert (cell["n_images"], cell["n_prompts"]) == (1, 1)
    assert cell["estimate"] == 4.0  # neither a failure nor a number that a rule forbids is averaged in
    assert cell["bound_low"] == pytest.approx((0 + 0 + 0 + 0 + 0 + 0 + 4) / 7, abs=1e-12)
    assert cell["bound_high"] == pytest.approx((10 + 10 + 10 + 1 + 10 + 10 + 4) / 7, abs=1e-12)
    assert cell["coverage"] == 1 / 7
    assert cell["fail_rate"] == 6 / 7


def test_a_duplicate_that_an_older_release_planned_as_none_is_neither_missing_nor_counted(make_rubric, all_tables, one):
    """An id that stands for two contents is missing, as every other row that is refused."""
    rows = [
        {"prompt": "p", "sample": "a", "scores": {"quality": 8}},
        {"prompt": "p", "sample": "a again", "status": "duplicate", "reason": "same_sample"},
        {"prompt": "q", "sample": "b", "scores": {"quality": 4}},
        {"prompt": "only twice", "sample": "c again", "status": "duplicate", "reason": "same_sample"},
    ]
    tables = all_tables(rows, make_rubric({None: ("quality",)}))
    cell = one(tables["benchmark_long"], category="__micro__", estimand="prompts_like_these")
    assert (cell["n_judgements"], cell["n_failed"], cell["coverage"], cell["n_prompts"]) == (2, 0, 1.0, 2)
    assert (cell["estimate"], cell["bound_low"], cell["bound_high"]) == (6.0, 6.0, 6.0)
    assert tables["failures"].is_empty()
    assert set(tables["health"].filter(measure="n_judgements")["value"]) == {2.0}
    refused = {"prompt": "q", "sample": "d", "status": "unusable_sample", "reason": "repeated_id"}
    cell = one(
        all_tables([*rows, refused], make_rubric({None: ("quality",)}))["benchmark_long"],
        category="__micro__",
        estimand="prompts_like_these",
    )
    assert (cell["n_judgements"], cell["n_failed"], cell["bound_low"] < 6.0 < cell["bound_high"]) == (3, 1, True)
