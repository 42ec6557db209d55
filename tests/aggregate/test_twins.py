"""Samples that are earlier ones again: each counts with its twin's score, and none makes an interval narrower."""

import math

import numpy as np
import pytest

from schemas.tables.nights import RELIABILITY
from tasks.aggregate.reliability.reliability import judge_tables

COUNTS = ("n_judgements", "n_images", "n_scored", "n_failed")
FIGURES = ("estimate", "se", "ci_low", "ci_high", "df", "bound_low", "bound_high", "bound_ci_low", "bound_ci_high", "n_prompts")


def _rows(n_prompts=6, n_images=3, n_repeats=1, categories=("a", "b"), *, is_split=False):
    """`is_split`: each prompt stands in all categories, with some of its images in each."""
    draw = np.random.default_rng(7)
    return [
        {"category": categories[(p + i * is_split) % len(categories)], "prompt": p, "sample": f"{p}/{i}", "repeat": r,
         "scores": {"quality": int(draw.integers(0, 11))}}
        for p in range(n_prompts) for i in range(n_images - p % 2) for r in range(n_repeats)
    ]  # fmt: skip


def _again(rows, n=1):
    """Each row and, `n` times, the same sample again. The scores are the request's, and stand there once."""
    copies = [
        row | {"sample": f"{row['sample']} again {k}", "again": row["sample"], "scores": None} for row in rows for k in range(n)
    ]
    return [*rows, *copies]


def _rounded(number):
    return number if number is None else float(f"{number:.9g}")


def _by_cell(table):
    return {tuple(row[k] for k in ("category", "estimand")): row for row in table.iter_rows(named=True)}


@pytest.mark.parametrize("n_repeats", [1, 3])
@pytest.mark.parametrize("n_copies", [1, 4])
@pytest.mark.parametrize("is_split", [False, True], ids=["one category a prompt", "prompts in two"])
def test_what_stands_there_several_times_whole_changes_no_mean_and_no_interval(
    make_rubric, all_tables, n_repeats, n_copies, is_split
):
    rows = _rows(n_images=3 + is_split, n_repeats=n_repeats, is_split=is_split)
    asked = make_rubric({None: ("quality",)}, report_by="category")
    rows[0]["scores"] = {"quality": "refusal"}
    once, again = (_by_cell(all_tables(some, asked)["benchmark_long"]) for some in (rows, _again(rows, n_copies)))
    assert once.keys() == again.keys()
    for cell, before in once.items():
        assert [again[cell][name] for name in COUNTS] == [(1 + n_copies) * before[name] for name in COUNTS]
        assert before["ci_low"] is not None
        for name in FIGURES:
            assert _rounded(again[cell][name]) == _rounded(before[name]), (cell, name)


def test_a_prompt_of_copies_keeps_its_mean_and_interval(make_rubric, all_tables):
    """Where each prompt is a category of its own; without its twins' clusters the second interval would be narrower."""
    asked = make_rubric({None: ("quality",)}, report_by="category")
    rows = _rows(2, 4)
    doubled = [*rows, *_again([row for row in rows if row["prompt"] == 0])[4:]]
    once, again = (_by_cell(all_tables(some, asked)["benchmark_long"]) for some in (rows, doubled))
    for category in ("a", "b", "__macro__"):
        before, after = once[category, "these_prompts"], again[category, "these_prompts"]
        assert before["ci_low"] is not None
        assert [_rounded(after[name]) for name in FIGURES] == [_rounded(before[name]) for name in FIGURES]
    assert again["a", "these_prompts"]["n_images"] == 8


def test_copies_of_some_samples_weigh_as_images_do(make_rubric, all_tables):
    """x, x, y is the mean (2x + y) / 3 of two draws: by hand, its variance is 2 Σ (times × deviation)² / 3²."""
    asked = make_rubric({None: ("quality",)})
    rows = [{"prompt": "p", "sample": name, "scores": {"quality": score}} for name, score in (("x", 2), ("y", 8))]
    cell = _by_cell(all_tables([*rows, {"prompt": "p", "sample": "z", "again": "x"}], asked)["benchmark_long"])[
        "__micro__", "these_prompts"
    ]
    assert (cell["n_images"], cell["estimate"], cell["df"]) == (3, 4.0, 1.0)
    assert cell["se"] == pytest.approx(math.sqrt(2 * ((2 * -2) ** 2 + 4**2)) / 3, rel=1e-12)


def test_a_copy_alone_beside_others_weighs_as_often_as_it_stands_there(make_rubric, all_tables):
    """x, x and y, z are (2x + y + z) / 4 of three draws: by hand, with the variance 18 of y and z, (2² + 1 + 1) 18 / 4²."""
    asked = make_rubric({None: ("quality",)})
    scores = {"x": 5, "y": 2, "z": 8}
    rows = [{"prompt": name == "x", "sample": name, "scores": {"quality": score}} for name, score in scores.items()]
    rows.append({"prompt": True, "sample": "w", "again": "x"})
    cell = _by_cell(all_tables(rows, asked)["benchmark_long"])["__micro__", "these_prompts"]
    assert (cell["n_images"], cell["estimate"], cell["df"]) == (4, 5.0, 1.0)
    assert cell["se"] == pytest.approx(math.sqrt(6 * 18) / 4, rel=1e-12)


def test_a_copy_alone_gives_no_interval(make_rubric, all_tables):
    """Two rows of one picture are one draw: nothing is known of how images of the prompt vary."""
    asked = make_rubric({None: ("quality",)})
    rows = _again([{"prompt": "p", "sample": "x", "scores": {"quality": 4}}])
    cells = _by_cell(all_tables(rows, asked)["benchmark_long"])
    assert {cell["ci_low"] for cell in cells.values()} == {None}
    assert cells["__micro__", "these_prompts"]["reason"] == "one_image_per_prompt"


def test_health_counts_them_and_reliability_looks_at_each_once(make_rubric, all_tables, make_frames):
    asked, rows = make_rubric({None: ("quality",)}), _rows(4, 3, 2)
    once, again = (all_tables(some, asked)["health"] for some in (rows, _again(rows)))
    assert once.filter(measure="n_again").is_empty()
    measures = {row["measure"]: row["value"] for row in again.iter_rows(named=True) if row["word"] == ""}
    assert (measures["n_judgements"], measures["n_again"], measures["n_requests"]) == (2 * len(rows), len(rows), len(rows))
    noise, same = (judge_tables(*make_frames(some, asked))[RELIABILITY] for some in (rows, _again(rows)))
    assert not noise.is_empty()
    assert same.equals(noise)
