"""How standings read: the answer in sentences, ranks, differences, and why there is none."""

import pytest

from schemas.statuses import ComparisonVerdict, StandingState
from tasks.publish.standings import answers, difference, rank, why

BETTER = {
    "verdict_predecessor": "higher",
    "delta_predecessor": 0.4249,
    "delta_predecessor_low": 0.1,
    "delta_predecessor_high": 0.74,
}
OPEN = {"verdict_predecessor": "open", "delta_predecessor": 0.1, "delta_predecessor_low": -0.2, "delta_predecessor_high": 0.4}


def row(checkpoint, ranks=(1, 1), **changes):
    """A row of a ranking of three; `ranks` None where it has none."""
    low, high = ranks or (None, None)
    blank = dict.fromkeys(f"{name}_{other}" for name in ("delta", "verdict", "reason") for other in ("predecessor", "baseline"))
    blank |= dict.fromkeys(
        ("delta_predecessor_low", "delta_predecessor_high", "predecessor", "standing_reason", "shared_estimate")
    )
    return blank | {
        "model": "m", "checkpoint": checkpoint, "dimension": "score", "category": "__macro__", "status": "ok", "state": "ranked",
        "rank_low": low, "rank_high": high, "n_ranked": 3, "n_shared_prompts": 40, "n_prompts": 40, "n_prompts_needed": 5,
        "n_failed": 0, "n_judgements": 100, "failures_json": "{}", "coverage": 1.0, "coverage_floor": 0.8, "bound_low": 3.31,
        "bound_high": 3.52, "is_reordered": False, "n_family": 9, "adjustment": "bonferroni", "n_prompts_predecessor": 40,
        "estimate": 3.4,
    } | changes  # fmt: skip


def test_one_measure_is_answered_in_sentences():
    rows = [row("3", predecessor="2", **BETTER), row("2", (2, 3), predecessor="1", **OPEN), row("1", (2, 3))]
    assert answers(rows) == [
        "3 is the best of 3, on 40 shared prompts.",
        "3 is better than 2: +0.42 [+0.10, +0.74] on 40 prompts (at 95 % for all 9 comparisons together).",
        "No score is missing.",
    ]


def test_what_cannot_be_told_is_not_told():
    rows = [row("3", (1, 3), predecessor="2", **OPEN), row("2", (1, 3)), row("1", (1, 3), n_failed=2)]
    assert answers(rows) == [
        "40 prompts cannot tell which of 3, 2 and 1 is best.",
        "These prompts cannot tell 3 from 2: +0.10 [-0.20, +0.40] on 40 prompts (at 95 % for all 9 comparisons together).",
        "2 of 300 scores are missing.",
    ]


def test_several_measures_are_counted():
    rows = [
        one for n in range(4) for one in (
            row("2", (1, 1) if n else (1, 2), dimension=f"d{n}", predecessor="1", n_ranked=2, **(BETTER if n else OPEN)),
            row("1", (2, 2) if n else (1, 2), dimension=f"d{n}", n_ranked=2),
        )
    ]  # fmt: skip
    assert answers(rows)[:3] == [
        "2 is the best on 3 of 4 measures.",
        "On 1 of 4 measures several may be the best.",
        "2 is better than 1 on 3 of 4 measures; on 1 these prompts cannot tell (at 95 % for all 9 comparisons together).",
    ]


def test_the_newest_of_each_model_is_told_of_with_its_model():
    rows = [row("2", model=m, predecessor="1", **BETTER) for m in "ab"] + [row("1", (3, 3), model=m) for m in "ab"]
    assert [said.split(" is ")[0] for said in answers(rows)[1:3]] == ["a / 2", "b / 2"]


def test_who_has_no_rank_is_named_with_the_reason():
    rows = [row("1", None, state="not_compared", standing_reason="alone")]
    assert answers(rows) == ["1: no rank: there is no other to compare it with.", "No score is missing."]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({}, "", id="nothing to say"),
        pytest.param(
            {"n_failed": 3, "failures_json": '{"empty": 1, "refusal": 2}'},
            "3 of 100 without a score (2 refusal, 1 empty), with them 3.31 to 3.52",
            id="bounds beside what is missing",
        ),
        pytest.param(
            {"n_failed": 30, "failures_json": '{"empty": 30}', "status": "blocked", "state": "blocked", "coverage": 0.7},
            "blocked: 70.0% of the judgements have a score, 80.0% needed (gate.min_coverage): "
            "30 of 100 without a score (30 empty), with them 3.31 to 3.52",
            id="cause and remedy of a blocked cell",
        ),
        pytest.param(
            {"state": "not_compared", "standing_reason": "too_few_paired_prompts", "n_shared_prompts": 10},
            "not compared: 10 shared prompts, 5 needed in each category",
            id="too few shared prompts",
        ),
        pytest.param({"state": "too_few", "n_prompts": 3}, "no rank: 3 prompts, 5 needed", id="too few prompts"),
        pytest.param(
            {"is_reordered": True, "shared_estimate": 3.1},
            "3.10 over the 40 prompts that all have: another order than by all prompts",
            id="ragged",
        ),
    ],
)  # fmt: skip
def test_what_is_missing_or_keeps_from_a_rank(changes, said):
    assert why(row("1", **changes)) == said


def test_every_state_and_verdict_reads():
    assert [rank(row("1", one)) for one in ((1, 1), (1, 3), None)] == ["1", "1–3", "–"]
    assert difference(row("1"), "predecessor") == ""
    for verdict in ComparisonVerdict:
        assert difference(row("1", **BETTER | {"verdict_predecessor": verdict.value}), "predecessor").startswith(
            "+0.42 [+0.10, +0.74] "
        )
    for state in set(StandingState) - {StandingState.RANKED}:
        assert answers([row("1", None, state=state.value, standing_reason="alone")])
    still = {"delta_predecessor": 1.0, "reason_predecessor": "no_variation"}
    assert difference(row("1", **still), "predecessor") == "+1.00 no variation"
