"""The rankings beside one another, on the page and in the terminal: order, ranks, what is said of the judge and of the labels."""

from datetime import date
from typing import Any

import polars as pl
import pytest

from schemas.tables.agreement import AGREEMENT, CORRECTED, CORRECTED_COMPARISONS, CORRECTED_STANDINGS, RATINGS, VOTES
from tasks.publish.agreement_page import agreement_page, said_of, unscored
from tasks.publish.folders import PublicationName
from tasks.publish.standings.corrected_ranks import Ranking, rankings

WHERE = {
    "publication_id": "a" * 64, "benchmark": "b", "dataset_id": "d", "rubric_id": "plain", "rubric_version": "1",
    "dimension": "overall", "category": "__macro__", "n_prompts": 90, "n_prompts_labelled": 30, "n_raters": 1,
}  # fmt: skip


def frame(table: Any, rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame([{name: (WHERE | row).get(name) for name in table.columns} for row in rows], schema=table.empty().schema)


def standing(model: str, estimator: str, estimate: float | None, rank: tuple[int, int] | None, **more: Any) -> dict[str, Any]:
    of_judge = {"judge_model": "eye", "label_check": "random", "p_labels_random": 0.4} if estimator != "labels" else {}
    ends = {} if estimate is None else {"ci_low": estimate - 1, "ci_high": estimate + 1}
    low, high = rank or (None, None)
    where = {"model": model, "checkpoint": "unnamed" if model == "plain" else "2", "is_headline": True}
    place = {"rank_low": low, "rank_high": high, "n_ranked": 2 if rank else None}
    return {"estimator": estimator, "estimate": estimate} | place | where | ends | of_judge | more


def error(verdict: str, delta: float) -> dict[str, Any]:
    return {
        "judge_model": "eye", "comparison": "each_other", "estimator": "judge_error", "model_a": "dear", "checkpoint_a": "2",
        "model_b": "plain", "checkpoint_b": "unnamed", "delta": delta, "ci_low_adjusted": delta - 0.5,
        "ci_high_adjusted": delta + 0.5, "p_adjusted": 0.01, "verdict": verdict,
    }  # fmt: skip


ROWS = [
    standing("dear", "judge", 8.0, (1, 1)), standing("plain", "judge", 7.0, (2, 2)),
    standing("dear", "labels", 6.0, (1, 2)), standing("plain", "labels", 7.0, (1, 2)),
    standing("dear", "prediction_powered", 6.1, (2, 2)), standing("plain", "prediction_powered", 6.9, (1, 1)),
]  # fmt: skip


def ranking(standings: list[dict[str, Any]], compared: list[dict[str, Any]], reference: str | None = None) -> Ranking:
    (found,) = rankings(frame(CORRECTED_STANDINGS, standings), frame(CORRECTED_COMPARISONS, compared), reference)
    return found


def test_the_three_stand_side_by_side_best_corrected_first() -> None:
    found = ranking(ROWS, [error("higher", 1.8)])
    assert found.title == "plain: overall, judge eye"
    assert [line[0::2] for line in found.lines] == [
        ["plain", "rank 2 of 2", "rank 1–2 of 2", "rank 1 of 2"], ["dear/2", "rank 1 of 2", "rank 1–2 of 2", "rank 2 of 2"],
    ]  # fmt: skip
    assert [line[1::2] for line in found.lines] == [
        ["7.000 (6.000 to 8.000)", "7.000 (6.000 to 8.000)", "6.900 (5.900 to 7.900)"],
        ["8.000 (7.000 to 9.000)", "6.000 (5.000 to 7.000)", "6.100 (5.100 to 7.100)"],
    ]
    assert found.sentences == [
        "The judge is kinder to dear/2 than to plain by 1.80 (1.30 to 2.30).",
        "The labels look like a random part of the prompts (p = 0.400).",
    ]


def test_kindness_the_other_way_round_names_the_other_first() -> None:
    assert (
        ranking(ROWS, [error("lower", -1.8)]).sentences[0]
        == "The judge is kinder to plain than to dear/2 by 1.80 (1.30 to 2.30)."
    )


def test_a_judge_in_peoples_place_is_named_where_people_would_be() -> None:
    rows = [row | ({"label_check": "chosen_by_score"} if row["estimator"] != "labels" else {}) for row in ROWS]
    found = ranking(rows, [error("open", 0.1)], "sharp")
    assert found.headers == ("judge", "", "sharp", "", "corrected", "")
    assert found.sentences[0] == "For no two checkpoints is the judge kinder to one of them than sharp, beyond chance."
    assert found.sentences[1].endswith("give that judge a `share`.")


def test_the_largest_five_are_told_and_the_others_counted() -> None:
    said = ranking(ROWS, [error("higher", 1.0 + number) | {"model_b": f"m{number}"} for number in range(8)]).sentences
    assert [sentence.split(" by ")[1][:4] for sentence in said[:5]] == ["8.00", "7.00", "6.00", "5.00", "4.00"]
    assert said[5].startswith("The same holds for 3 more pairs: see")


@pytest.mark.parametrize(("uneven", "is_said"), [(True, True), (False, False), (None, False)], ids=["uneven", "even", "unknown"])
def test_it_is_said_where_the_mean_may_not_be_the_leaderboards(uneven: bool | None, is_said: bool) -> None:
    rows = [row | {"has_uneven_prompts": uneven} for row in ROWS]
    assert any("the leaderboard's all pictures" in sentence for sentence in ranking(rows, []).sentences) == is_said


@pytest.mark.parametrize("has_looks", [True, False], ids=["looks", "all at once"])
def test_it_is_said_beside_means_and_ranks_that_they_do_not_account_for_looks(has_looks: bool) -> None:
    tables = {
        CORRECTED_STANDINGS: frame(CORRECTED_STANDINGS, ROWS), CORRECTED_COMPARISONS: frame(CORRECTED_COMPARISONS, []),
        AGREEMENT: frame(AGREEMENT, [{"model": "__all__", "category": "__micro__", "subject": "eye", "metric": "spearman"}]),
        CORRECTED: frame(CORRECTED, []),
    }  # fmt: skip
    page = agreement_page(tables, PublicationName("b", "a" * 64, date(2026, 1, 2)), "sharp", has_looks=has_looks)
    assert [page.count("asked in looks"), "as if nobody had looked before" in page] == ([1, True] if has_looks else [0, False])


def test_a_kindness_that_does_not_vary_is_told_without_an_interval() -> None:
    still = {"ci_low_adjusted": None, "ci_high_adjusted": None, "n_prompts_labelled": 15}
    told = "The judge is kinder to dear/2 than to plain by 2.00 (15 labelled prompts, no variation within a category)."
    assert ranking(ROWS, [error("higher", 2.0) | still]).sentences[0] == told


def untested(reason: str, other: str) -> dict[str, Any]:
    return error("", 0.0) | {"p_adjusted": None, "verdict": None, "reason": reason, "model_b": other}


WHETHER = "pairs of checkpoints it could not be tested whether the judge is kinder to one of the two"
FEW = "they share too few labelled prompts, at least 10, and 3 of them in each category needed"
CONTRARY = "it favours one in a category and the other in another, by the same on every prompt"


@pytest.mark.parametrize(
    ("compared", "said"),
    [
        (
            [error("open", 0.1), untested("too_few_prompts", "x")],
            [
                "In the 1 pair of checkpoints that could be tested, the judge is kinder to neither than people, beyond chance.",
                f"For 1 of 2 {WHETHER}: {FEW}.",
            ],
        ),
        (
            [error("higher", 1.8), *(untested("too_few_prompts", other) for other in "xy"), untested("no_variation", "z")],
            [
                "The judge is kinder to dear/2 than to plain by 1.80 (1.30 to 2.30).",
                f"For 3 of 4 {WHETHER}: {FEW} (2); {CONTRARY} (1).",
            ],
        ),
        ([untested("no_scores", other) for other in "xy"], [f"For 2 of 2 {WHETHER}: the judge has no score for a rated sample."]),
    ],
    ids=["the others do not differ", "another does", "none was tested"],
)
def test_how_many_pairs_could_not_be_tested_is_told_and_why(compared: list[dict[str, Any]], said: list[str]) -> None:
    assert ranking(ROWS, compared).sentences[:-1] == said


def test_no_kindness_is_said_where_it_was_looked_for_and_not_where_not() -> None:
    assert ranking(ROWS, [error("open", 0.1)]).sentences[0].startswith("For no two checkpoints is the judge kinder")
    assert len(ranking(ROWS, []).sentences) == 1


@pytest.mark.parametrize(
    ("check", "p", "words"),
    [("chosen_by_score", 0.0004, "not a random part of the prompts (p = 0.0004)"), ("cannot_tell", None, "cannot be determined")],
)
def test_what_the_label_check_says(check: str, p: float | None, words: str) -> None:
    rows = [row | ({"label_check": check, "p_labels_random": p} if row["estimator"] != "labels" else {}) for row in ROWS]
    assert words in ranking(rows, []).sentences[-1]


LABELLED = [
    ((9, 9), "9 prompts of a checkpoint are"),
    ((8, 12), "8 to 12 prompts of a checkpoint are"),
    ((1, 1), "1 prompt of a checkpoint is"),
]


@pytest.mark.parametrize(("labelled", "told"), LABELLED)
def test_too_few_prompts_are_counted_and_those_needed_said(labelled: tuple[int, int], told: str) -> None:
    few = {"reason": "too_few_prompts"}
    rows = ROWS[:4] + [
        standing(model, "prediction_powered", None, None, n_prompts_labelled=n, **few)
        for model, n in zip(("dear", "plain"), labelled, strict=True)
    ]
    need = "a corrected figure needs at least 10, and 3 of them in each category."
    assert f"too few prompts: {told} labelled; {need}" in ranking(rows, []).sentences


def test_in_whose_families_the_ranks_were_corrected_is_said() -> None:
    judged = error("open", 0.1) | {"estimator": "judge", "n_family": 6}
    powered = error("open", 0.1) | {"estimator": "prediction_powered", "n_family": 3}
    said = ranking(ROWS, [judged, powered]).sentences
    told = "The judge's ranks are the leaderboard's, corrected for all 6 comparisons of its family; those of people and"
    assert any(one.startswith(told) and one.endswith(": the corrected ones for 3.") for one in said), said


def test_one_comparison_is_a_family_of_one() -> None:
    told = "The judge's ranks are the leaderboard's, corrected for the one comparison of its family;"
    assert any(
        one.startswith(told) for one in ranking(ROWS, [error("open", 0.1) | {"estimator": "judge", "n_family": 1}]).sentences
    )


def test_what_has_no_figure_shows_its_reason_and_stands_by_the_next_best_figure() -> None:
    rows = ROWS[:4] + [standing(model, "prediction_powered", None, None, reason="all_labelled") for model in ("dear", "plain")]
    found = ranking(rows, [])
    assert [line[0] for line in found.lines] == ["plain", "dear/2"]
    assert found.lines[0][-2:] == ["all labelled", ""]


def test_a_judge_that_lacks_scores_of_rated_samples_is_told_with_whose_they_are() -> None:
    eye = {"subject_kind": "judge", "subject": "eye", "against": "__raters_mean__", "category": "__micro__", "n_items": 40}
    whole, part = eye | {"model": "__all__", "checkpoint": "__all__"}, eye | {"model": "m", "checkpoint": "2", "n_items": 20}
    rows = [one | {"metric": "unscored", "estimate": share} for one, share in ((whole, 0.1), (part, 0.2))]
    of = "4 of 40 rated samples have no score of eye in overall and are in none of its figures here (m / 2: 4 of 20)"
    assert unscored(frame(AGREEMENT, rows)) == [f"{of}."]
    rows.append(whole | {"metric": "unscored_bias", "estimate": -1.675})
    assert unscored(frame(AGREEMENT, rows)) == [f"{of}; on average people rate them 1.68 lower than the others."]
    assert unscored(AGREEMENT.empty()) == []
    tables = {table: table.empty() for table in (CORRECTED, CORRECTED_COMPARISONS, CORRECTED_STANDINGS, RATINGS)}
    page = agreement_page(tables | {AGREEMENT: frame(AGREEMENT, rows)}, PublicationName("b", "a" * 64, date(2026, 11, 3)))
    assert "4 of 40 rated samples have no score" in page


def test_ratings_that_contradict_another_are_told_beside_the_figures() -> None:
    rows = [{"rater": "ann", "status": status} for status in ("ok", "conflicting", "conflicting", "missing")]
    (told,) = said_of("ratings", frame(RATINGS, rows), AGREEMENT.empty())
    assert told.startswith("2 of the 4 ratings contradict another by the same rater and are left out")
    assert said_of("ratings", frame(RATINGS, [row for row in rows if row["status"] != "conflicting"]), AGREEMENT.empty()) == []


def test_it_is_told_where_raters_are_too_many_to_be_compared_by_name() -> None:
    """Ratings that name no rubric count beside those that do."""
    row = {"kind": "rater", "status": "ok", "dimension": "overall"}
    rows = [row | {"rater": f"r{k}"} for k in range(21)]
    by_rubric = [row | {"dimension": "plain.overall"} for row in rows]
    several = "of more than 20, none is compared by name; all count in"
    (told,) = said_of("ratings", frame(RATINGS, [rows[0], *by_rubric[1:]]), AGREEMENT.empty())
    assert told == f"21 raters gave ratings of plain.overall: {several} means and alphas."
    (told,) = said_of("votes", frame(VOTES, rows), AGREEMENT.empty())
    assert told == f"21 raters gave votes of overall: {several} majorities."
    assert said_of("ratings", frame(RATINGS, by_rubric[1:]), AGREEMENT.empty()) == []


@pytest.mark.parametrize(
    ("names", "covered"),
    [
        (("ann", "bob"), "intervals take raters' biases from the named ones, and the unnamed for as few people as can"),
        (("ann", "ann"), "no interval covers raters' biases."),
    ],
)
def test_how_many_ratings_name_no_rater_is_told_and_what_intervals_make_of_them(names: tuple[str, str], covered: str) -> None:
    people = [{"rater": who, "kind": "rater", "status": "ok"} for who in (*names, "__unnamed_1__")]
    clip = {"rater": "clip", "kind": "metric", "status": "ok"}
    (told,) = said_of("ratings", frame(RATINGS, [*people, clip]), AGREEMENT.empty())
    assert told.startswith(f"1 of the 3 ratings name no rater: their raters are compared with nobody, and {covered}")
    (told,) = said_of("ratings", frame(RATINGS, [people[2], clip]), AGREEMENT.empty())
    assert told.startswith("It is unknown whose ratings these are: ")
