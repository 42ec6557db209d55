"""How several judges agree on the same samples."""

import numpy as np
import polars as pl
import pytest

from schemas.statuses.nights import JuryMetric
from schemas.statuses.people import AgreementMetric
from schemas.tables.nights import JURY
from tasks.aggregate.agreement.metrics import pair_metric
from tasks.aggregate.reliability.jury import WHOLE_JURY, intraclass, jury

PUBLISHED = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]


def rows_of(values, judges="abcd"):
    """scored() rows of (samples, judges), one sample a prompt; None: not scored."""
    return pl.DataFrame([
        {
            "rubric_id": "plain", "rubric_version": "1", "judge_model": judge, "model": "north", "checkpoint": "1",
            "dimension": "q", "category": "x", "prompt_id": f"p{n:03d}", "sample_id": f"s{n:03d}", "repeat": 0,
            "score": float(score),
        }
        for n, row in enumerate(values) for judge, score in zip(judges, row, strict=False) if score is not None
    ])  # fmt: skip


def figures(table, a, b):
    found = table.filter(pl.col("judge_a") == a, pl.col("judge_b") == b)
    return {row["metric"]: row for row in found.iter_rows(named=True)}


def test_intraclass_correlations_of_the_published_example():
    """Shrout & Fleiss (1979), tables 2 to 4: six targets, four judges."""
    found = intraclass(np.array(PUBLISHED, float))
    assert {kind: round(value, 2) for kind, value in found.items()} == {
        JuryMetric.ICC_AGREEMENT: 0.29,
        JuryMetric.ICC_AGREEMENT_MEAN: 0.62,
        JuryMetric.ICC_CONSISTENCY: 0.71,
        JuryMetric.ICC_CONSISTENCY_MEAN: 0.91,
    }


def test_every_two_judges_and_the_whole_jury():
    table = jury(rows_of(PUBLISHED))
    pairs = table.filter(pl.col("judge_a") != WHOLE_JURY).select("judge_a", "judge_b").unique()
    assert pairs.height == 6
    ab = figures(table, "a", "b")
    x, y = np.array(PUBLISHED, float)[:, :2].T
    for metric in (AgreementMetric.BIAS, AgreementMetric.QUADRATIC_KAPPA, AgreementMetric.SPEARMAN):
        assert ab[metric]["estimate"] == pytest.approx(pair_metric(metric, x, y), abs=1e-12)
        assert (ab[metric]["n_judges"], ab[metric]["n_items"], ab[metric]["ci_low"]) == (2, 6, None)  # six prompts: no interval
    whole = figures(table, WHOLE_JURY, WHOLE_JURY)
    assert whole[JuryMetric.ICC_AGREEMENT]["estimate"] == pytest.approx(0.29, abs=0.005)
    assert whole["krippendorff_alpha"]["n_judges"] == 4


@pytest.mark.parametrize("names", [("category", "prompt_id", "sample_id", "1"), ("*", "^.*$", "judge", "score")])
def test_a_judge_may_have_any_name(names):
    plain, found = (jury(rows_of(PUBLISHED, judges)) for judges in ("abcd", sorted(names)))
    others = [*dict(zip("abcd", sorted(names), strict=True)).items(), (WHOLE_JURY, WHOLE_JURY)]
    renamed = plain.with_columns(pl.col("judge_a", "judge_b").replace_strict(dict(others)))
    assert found.equals(renamed.sort(JURY.key))


def test_repeats_are_averaged_and_gaps_leave_the_sample_out():
    gappy = [list(row) for row in PUBLISHED]
    gappy[2][3] = None
    table = jury(rows_of(gappy))
    whole = figures(table, WHOLE_JURY, WHOLE_JURY)
    assert whole[JuryMetric.ICC_AGREEMENT]["n_items"] == 5
    assert whole["krippendorff_alpha"]["n_items"] == 6  # alpha bears gaps
    assert figures(table, "a", "b")["bias"]["n_items"] == 6
    assert figures(table, "a", "d")["bias"]["n_items"] == 5
    twice = pl.concat([rows_of(gappy), rows_of(gappy).with_columns(repeat=pl.lit(1, pl.Int64), score=pl.col("score") + 1)])
    moved = figures(jury(twice), "a", "b")["bias"]
    assert moved["estimate"] == pytest.approx(figures(table, "a", "b")["bias"]["estimate"], abs=1e-12)
    assert moved["n_items"] == 6


def test_intervals_where_there_are_prompts_enough():
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 11, 60)
    values = np.clip(truth[:, None] + rng.integers(-1, 2, (60, 3)), 0, 10).tolist()
    table = jury(rows_of(values))
    assert set(table["metric"]) == {"bias", "quadratic_kappa", "spearman", "krippendorff_alpha", *JuryMetric}
    for row in table.iter_rows(named=True):
        assert row["ci_low"] < row["estimate"] < row["ci_high"], row["metric"]


NULLS = {
    "one judge": ([[1], [2], [3]], "a", "one_judge"),
    "no common sample": ([[1, None], [None, 2]], "ab", "too_few_items"),
    "one opinion": ([[4, 4]] * 5, "ab", "no_variation"),
}


def test_of_one_sample_there_is_no_figure():
    """Krippendorff's alpha of it is 0, whatever the two say."""
    table = jury(rows_of([[4, 7]], "ab"))
    assert set(table["reason"]) == {"too_few_items"}
    assert table["estimate"].null_count() == table.height


@pytest.mark.parametrize(("values", "judges", "reason"), NULLS.values(), ids=NULLS)
def test_no_figure_without_its_reason(values, judges, reason):
    table = jury(rows_of(values, judges))
    nulls = table.filter(pl.col("estimate").is_null())
    assert nulls.height > 0
    assert set(nulls["status"]) == {"null"}
    assert reason in set(nulls["reason"])
    assert table.filter(pl.col("estimate").is_not_null())["reason"].null_count() == table.height - nulls.height


@pytest.mark.parametrize("score", [0.5, 0.7, 0.1, 4.6, 1 / 3])
def test_judges_who_say_one_number_of_everything_agree_in_nothing_that_varies(score):
    """Means of a decimal miss it by the last digit."""
    table = jury(rows_of([[score] * 3] * 60, "abc")).filter(pl.col("metric") != "bias")
    assert set(table["reason"]) == {"no_variation"}
    assert table["estimate"].null_count() == table.height


def test_samples_of_one_mean_leave_nothing_to_be_consistent_in():
    """Two judges who contradict each other on a scale of tenths: the variance between samples is 0, not what rounding leaves."""
    turned = jury(rows_of([[n / 10, (14 - n) / 10] for n in range(1, 11)] * 3, "ab"))
    assert figures(turned, WHOLE_JURY, WHOLE_JURY)[JuryMetric.ICC_CONSISTENCY_MEAN]["reason"] == "no_variation"


def test_the_order_of_repeats_breaks_no_tie():
    """Three tenths of each sample, in other orders: their floating-point sums differ in the last digit."""
    repeats = [(1, 2, 3), (3, 2, 1), (2, 3, 1), (2, 2, 2), (6, 0, 0), (1, 2, 3)] * 2
    rows = pl.concat([
        rows_of([[one[r] / 10, n / 10] for n, one in enumerate(repeats)], "ab").with_columns(repeat=pl.lit(r, pl.Int64))
        for r in range(3)
    ])  # fmt: skip
    assert figures(jury(rows), "a", "b")["spearman"]["reason"] == "no_variation"


def test_row_order_changes_nothing():
    rows = rows_of(PUBLISHED)
    assert jury(rows.sample(fraction=1.0, shuffle=True, seed=1)).equals(jury(rows))
