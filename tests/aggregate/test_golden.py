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


def test_failures_are_counted_by_reason(make_rubric, aggregate, one):
    rows = [
        {"prompt": "p", "sample": "a", "scores": {"quality": "refusal"}},
        {"prompt": "p", "sample": "b", "scores": {"quality": "empty"}},
        {"prompt": "q", "sample": "c", "scores": {"quality": ("no_reply", "timed_out", None, 0.0, 10.0)}},
        {"prompt": "q", "sample": "d", "scores": {"quality": ("rule_violation", "rule_violation", 7.0, 0.0, 1.0)}},
        {"prompt": "q", "sample": "e", "status": "unusable_sample", "reason": "broken_image"},
        {"prompt": "q", "sample": "f", "status": "missing_column"},
        {"prompt": "r", "sample": "g", "scores": {"quality": 4}},
    ]
    cell = one(aggregate(rows, make_rubric({None: ("quality",)})), category="__micro__")
    reasons = '{"broken_image":1,"empty":1,"missing_column":1,"refusal":1,"rule_violation":1,"timed_out":1}'
    assert cell["failures_json"] == reasons
    assert (cell["n_judgements"], cell["n_scored"], cell["n_failed"], cell["n_rule_violations"]) == (7, 1, 6, 1)
    assert (cell["n_images"], cell["n_prompts"]) == (1, 1)
    assert cell["estimate"] == 4.0  # neither a failure nor a number that a rule forbids is averaged in
    assert cell["bound_low"] == pytest.approx((0 + 0 + 0 + 0 + 0 + 0 + 4) / 7, abs=1e-12)
    assert cell["bound_high"] == pytest.approx((10 + 10 + 10 + 1 + 10 + 10 + 4) / 7, abs=1e-12)
    assert cell["coverage"] == 1 / 7
    assert cell["fail_rate"] == 6 / 7
