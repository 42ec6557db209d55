"""Several judges as one, of which some repeats failed: the figure stands, and coverage, bounds and blocking say what it lacks."""

from collections.abc import Sequence
from fractions import Fraction as F  # noqa: N817
from itertools import product
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.aggregate.test_pooled import ASIDE, KEYS, Make, both, cell, row, run

REFUSED, JUDGES = "refusal", ("one", "two")


def repeated(**judges: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Of each judge the repeats of each sample, in order."""
    return [
        row(judge, sample, score, repeat=n)
        for judge, samples in judges.items() for sample, scores in samples.items() for n, score in enumerate(scores)
    ]  # fmt: skip


FAILED_REPEATS = {
    # one refused repeat of two: the sample counts, half of its judgements do; one's bounds are 4/2 and 14/2, two's 8
    "one of two": (repeated(one={"a": [4, REFUSED]}, two={"a": [8, 8]}), F(4 + 8, 2), 2, 1, (F(2 + 8, 2), F(7 + 8, 2))),
    # a judge without repeats is half of the sample, whether it was scored or not
    "once beside twice": (repeated(one={"a": [4, REFUSED]}, two={"a": [8]}), F(4 + 8, 2), 2, 1, (F(2 + 8, 2), F(7 + 8, 2))),
    "a refusal beside two scores": (
        repeated(one={"a": [4, 6], "b": [2, 2]}, two={"a": [REFUSED], "b": [4]}),
        F(2 + 4, 2), 4, 2, (F(F(5 + 0, 2) + 3, 2), F(F(5 + 10, 2) + 3, 2)),
    ),
    # b counts; one lacks a third of its judgements, two two thirds, three nothing
    "three judges": (
        repeated(
            one={"a": [3, 3, 3], "b": [6, REFUSED, 6]}, three={"a": [0], "b": [3]},
            two={"a": [6, 6, 6], "b": [9, REFUSED, REFUSED]},
        ),
        F(3 + 6, 2), 6, 2, (F(3 + F(4 + 3 + 3, 3), 2), F(3 + F(F(22, 3) + F(29, 3) + 3, 3), 2)),
    ),
    # each lacks another half: as the judge who lacks most, not the sum of both
    "another repeat of each": (
        repeated(one={"a": [4, REFUSED]}, two={"a": [REFUSED, 8]}), F(4 + 8, 2), 2, 1, (F(2 + 4, 2), F(7 + 9, 2)),
    ),
    # half of three judgements is one and a half: two of them lack a score
    "no whole share": (
        repeated(one={"a": [4, REFUSED]}, two={"a": [8, 8, 8]}), F(4 + 8, 2), 3, 2, (F(2 + 8, 2), F(7 + 8, 2)),
    ),
    # what does not apply is no judgement: one was asked for one score, and gave it
    "a repeat aside": (
        repeated(one={"a": [4, ASIDE], "b": [4, REFUSED, ASIDE]}, two={"a": [8, 8], "b": [8, 8]}),
        F(4 + 8, 2), 4, 1, (F(6 + F(2 + 8, 2), 2), F(6 + F(7 + 8, 2), 2)),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "mean", "n", "n_failed", "bounds"), FAILED_REPEATS.values(), ids=FAILED_REPEATS)
def test_repeats_that_failed_fail_no_sample_but_count(
    make_rubric: Make, make_frames: Make, rows: list[dict[str, Any]], mean: F, n: int, n_failed: int, bounds: tuple[F, F]
) -> None:
    asked = make_rubric(KEYS)
    found = cell(both(*make_frames(rows, asked), asked, run())[1])
    assert found["estimate"] == pytest.approx(float(mean), abs=1e-12)
    assert (found["n_judgements"], found["n_failed"], found["coverage"]) == (n, n_failed, (n - n_failed) / n)
    assert (found["bound_low"], found["bound_high"]) == pytest.approx([float(end) for end in bounds], abs=1e-12)


def test_where_the_cell_of_one_judge_is_blocked_so_is_that_of_all(make_rubric: Make, make_frames: Make) -> None:
    """The judge two refuses three of four repeats of every sample, one answers all: 4.5 of two and 3.5 of both were withheld."""
    asked = make_rubric(KEYS)
    refused = {f"s{n}": [4 + n % 2, *[REFUSED] * 3] for n in range(4)}
    rows = repeated(one={f"s{n}": [2 + n % 2] * 4 for n in range(4)}, two=refused)
    cells, table = both(*make_frames(rows, asked), asked, run(0.8))
    found, own = cell(table), cell(cells, judge_model="two")
    assert (own["status"], own["coverage"], own["bound_low"], own["bound_high"]) == ("blocked", 0.25, 1.125, 8.625)
    assert (found["status"], found["reason"], found["estimate"], found["ci_low"]) == ("blocked", REFUSED, None, None)
    assert (found["coverage"], found["n_failed"], found["n_samples"], found["n_images"]) == (0.25, 12, 4, 4)
    assert (found["bound_low"], found["bound_high"]) == ((2.5 + 1.125) / 2, (2.5 + 8.625) / 2)
    assert (found["judges_json"], found["judge_spread"]) == ('{"one":null,"two":null}', None)


def test_it_is_blocked_for_the_reason_of_the_judge_that_is(make_rubric: Make, make_frames: Make) -> None:
    """All samples that two refuses but one one lacks too, of what it has enough: the jury lacks most for one's reason."""
    asked = make_rubric(KEYS)
    one = {f"s{n}": ["empty" if n < 2 else 5] for n in range(10)}
    two = {f"s{n}": [REFUSED if n < 3 else 5] for n in range(10)}
    _, table = both(*make_frames(repeated(one=one, two=two), asked), asked, run(0.8))
    assert (cell(table)["status"], cell(table)["reason"]) == ("blocked", REFUSED)


def test_a_sample_lacks_scores_for_the_reason_of_the_judge_who_lacks_most_of_it(make_rubric: Make, make_frames: Make) -> None:
    """Neither judge is blocked: one has 6 of 8, two 4 of 8; all together have 3 of 8."""
    asked = make_rubric(KEYS)
    one = {"a": [5, "empty"], "b": [5, "empty"], "c": [5, 5], "d": [5, 5]}
    two = {"a": [REFUSED] * 2, "b": [5, 5], "c": [REFUSED] * 2, "d": [5, 5]}
    _, table = both(*make_frames(repeated(one=one, two=two), asked), asked, run(0.45))
    assert (cell(table)["status"], cell(table)["reason"], cell(table)["coverage"]) == ("blocked", REFUSED, 3 / 8)


@settings(max_examples=40)
@given(st.data())
def test_the_bounds_hold_whatever_the_failures_were(make_rubric: Make, make_frames: Make, data: st.DataObject) -> None:
    """They are the judges' own, averaged; of all ways to score the failures the worst and the best are they."""
    asked = make_rubric(KEYS)
    n_repeats = [data.draw(st.integers(1, 2)) for _ in JUDGES]
    scores = [data.draw(st.integers(0, 10) | st.just(REFUSED)) for n in n_repeats for _ in "ab" for _ in range(n)]

    def made(drawn: Sequence[Any]) -> list[dict[str, Any]]:
        each = iter(drawn)
        return repeated(**{j: {s: [next(each) for _ in range(n)] for s in "ab"} for j, n in zip(JUDGES, n_repeats, strict=True)})

    def of(drawn: Sequence[Any]) -> tuple[dict[str, Any], pl.DataFrame]:
        cells, table = both(*make_frames(made(drawn), asked), asked, run())
        return cell(table), cells.filter(category="__macro__", estimand="prompts_like_these")

    found, own = of(scores)
    ends = found["bound_low"], found["bound_high"]
    assert ends == pytest.approx([own["bound_low"].mean(), own["bound_high"].mean()], abs=1e-12)
    assert found["coverage"] <= own["coverage"].min()
    assert (found["n_failed"] == 0) == (REFUSED not in scores)
    weights = [F(1, 4 * n) for n in n_repeats for _ in range(2 * n)]  # a judge and a sample weigh the same, repeats share that
    means = []
    for filled in product(*[(0, 10) if score == REFUSED else (score,) for score in scores]):
        means.append(float(sum(weight * score for weight, score in zip(weights, filled, strict=True))))
    assert ends == pytest.approx([min(means), max(means)], abs=1e-12)
    assert of(filled)[0]["estimate"] == pytest.approx(means[-1], abs=1e-12)
