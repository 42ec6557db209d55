"""What votes say where a judge's orders disagree, it is silent, or people are split; whole runs are in tests/flows."""

import numpy as np
import polars as pl
import pytest

from schemas.statuses.people import MAX_NAMED_RATERS
from tasks.aggregate.agreement.vote_agreement import majority, vote_rows

BOARD = {"rubric_id": "preference", "rubric_version": "1", "dimension": "overall_score"}
N = 12
SAID = ["win_a"] * 6 + ["order_dependent"] * 3 + ["unjudged"] * 2 + ["win_b"]


def said(outcomes: list[str], repeat: int = 0) -> pl.DataFrame:
    return pl.DataFrame([
        BOARD | {"judge_model": "eye", "repeat": repeat, "sample_a": f"a{n}", "sample_b": f"b{n}", "outcome": one}
        for n, one in enumerate(outcomes)
    ])  # fmt: skip


def people(**votes: list[float | None]) -> pl.DataFrame:
    return pl.DataFrame([
        BOARD | {"sample_a": f"a{n}", "sample_b": f"b{n}", "rater": rater, "prompt_id": f"p{n}", "category": None, "first": vote}
        for rater, mine in votes.items() for n, vote in enumerate(mine) if vote is not None
    ])  # fmt: skip


def figures(verdicts: pl.DataFrame, votes: pl.DataFrame, against: str) -> dict[str, tuple[float | None, int, str | None]]:
    """By metric the judge's estimate, n_items and the reason."""
    rows = [row for row in vote_rows(verdicts, votes) if (row["subject"], row["against"]) == ("eye", against)]
    return {str(row["metric"]): (row["estimate"], row["n_items"], row["reason"]) for row in rows}


def test_orders_that_disagree_are_ties_and_what_has_no_verdict_is_counted_apart():
    found = figures(said(SAID), people(ann=[1.0] * 6 + [0.5, 0.5, 1.0, 1.0, 1.0, 1.0]), "ann")
    assert found["vote_accuracy"][:2] == (pytest.approx(8 / 10), 10)
    assert found["vote_accuracy_without_ties"][:2] == (pytest.approx(6 / 7), 7)
    assert found["order_dependent"][:2] == (pytest.approx(3 / 10), 10)
    assert found["unjudged"][:2] == (pytest.approx(2 / 12), 12)


def test_repeats_are_one_verdict_on_the_side_of_their_mean():
    both = pl.concat([said(["win_a"] * 4 + ["win_b"] * 4), said(["tie"] * 4 + ["win_a"] * 2 + ["unjudged"] * 2, 1)])
    found = figures(both, people(ann=[1.0] * 4 + [0.5] * 2 + [0.0] * 2), "ann")
    assert found["vote_accuracy"][:2] == (1.0, 8)


def test_of_repeats_whose_mean_has_a_side_none_makes_the_pair_a_tie_by_order():
    both = pl.concat([said(["win_a"] * 3 + ["tie"]), said(["order_dependent"] * 2 + ["win_a", "order_dependent"], 1)])
    found = figures(both, people(ann=[1.0] * 3 + [0.5]), "ann")
    assert (found["vote_accuracy"][:2], found["order_dependent"][:2]) == ((1.0, 4), (0.25, 4))


def test_a_judge_without_any_verdict_has_no_figure_and_says_so():
    found = figures(said(["unjudged"] * N), people(ann=[1.0] * N), "ann")
    assert found["vote_accuracy"] == (None, 0, "no_scores")
    assert found["unjudged"][0] == 1.0


def test_of_very_many_raters_none_is_named():
    votes = people(**{f"r{k}": [1.0] * 3 for k in range(MAX_NAMED_RATERS + 1)})
    assert {(row["subject"], row["against"]) for row in vote_rows(said(SAID), votes)} == {
        ("eye", "__raters_majority__"), ("__each_rater__", "__other_raters_majority__"),
    }  # fmt: skip


def test_unnamed_votes_are_held_against_the_rest_of_their_pair_and_nobody_by_name():
    turned = [
        {"__unnamed_1__": [1.0] * 6, "__unnamed_2__": [0.0] * 6},
        {"__unnamed_1__": [1.0, 0.0] * 3, "__unnamed_2__": [0.0, 1.0] * 3},
    ]
    one, other = (list(vote_rows(said(SAID), people(ann=[1.0] * 6, **votes))) for votes in turned)
    assert {(row["subject"], row["against"]) for row in one} == {
        ("eye", "__raters_majority__"), ("eye", "ann"), ("ann", "__other_raters_majority__"),
        ("__each_rater__", "__other_raters_majority__"),
    }  # fmt: skip
    assert [row["estimate"] for row in one] == [row["estimate"] for row in other]
    alone = vote_rows(said(SAID), people(__unnamed_1__=[1.0] * 6))
    assert {(row["subject"], row["against"], row["n_raters"]) for row in alone} == {("eye", "__raters_majority__", 1)}


@pytest.mark.parametrize(
    ("counts", "label"),
    [((0, 0, 0), np.nan), ((2, 1, 0), 0.0), ((1, 0, 1), 0.5), ((0, 1, 1), 0.5), ((1, 3, 2), 0.5), ((0, 1, 2), 1.0)],
)
def test_a_majority_is_the_verdict_that_leads_and_else_a_tie(counts, label):
    assert majority(np.array([counts])) == pytest.approx([label], nan_ok=True)
