"""What several judges say of two checkpoints over several measures, in one sentence. Over one measure: test_between_judges.py."""

import pytest

from tasks.publish.standings.between_judges import between_judges
from tests.publish.test_between_judges import FEW, TURNED, UNTESTED, WORSE
from tests.support.standing_rows import BETTER, OPEN, row


def test_of_several_measures_those_are_counted_on_which_all_judges_agree():
    """On d0 both find it better, on d1 one of them, on d2 both find it worse; d3 one judge alone has."""
    verdicts = {"d0": (BETTER, BETTER), "d1": (BETTER, OPEN), "d2": (WORSE, WORSE), "d3": (BETTER,)}
    rows = [
        row("2", dimension=dimension, judge_model="ab"[judge], predecessor="1", n_failed=judge, **verdict)
        for dimension, mine in verdicts.items()
        for judge, verdict in enumerate(mine)
    ]
    assert between_judges(rows) == [
        "Both judges find 2 better than 1 on 1 of 4 measures, worse on 1; by b they were not compared on 1.",
        "3 of 700 scores are missing.",
    ]


NOBODY = "No judge finds 2 better or worse than 1 on any of the 3 measures"
NEITHER = "On none of 3 measures do both judges find 2 better than 1, or worse"


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        ((OPEN, OPEN, OPEN), (OPEN, OPEN, OPEN), [f"{NOBODY}."]),
        ((OPEN, OPEN, UNTESTED), (OPEN, OPEN, OPEN), [f"{NOBODY}; by a they were not compared on 1."]),
        (
            (TURNED, OPEN, TURNED), (OPEN, UNTESTED, UNTESTED),
            [f"{NOBODY}; by a failures could turn it on 2; by b they were not compared on 2."],
        ),
        ((WORSE, OPEN, BETTER), (WORSE, OPEN, OPEN), ["Both judges find 2 worse than 1 on 1 of 3 measures."]),
        (
            (BETTER, OPEN, BETTER), (OPEN, WORSE, UNTESTED),
            [f"{NEITHER}; by a it is better on 2; by b it is worse on 1; by b they were not compared on 1."],
        ),
        ((UNTESTED, UNTESTED, UNTESTED), (UNTESTED, UNTESTED, UNTESTED), []),
    ],
    ids=["open", "not compared by one", "failures", "worse alone", "each another", "nobody"],
)  # fmt: skip
def test_where_judges_find_nothing_together_the_sentence_does_not_begin_with_what_they_find(a, b, told):
    rows = [
        row("2", dimension=f"d{n}", judge_model=judge, predecessor="1", **verdict)
        for judge, verdicts in (("a", a), ("b", b)) for n, verdict in enumerate(verdicts)
    ]  # fmt: skip
    assert [one for one in between_judges(rows) if "measures" in one] == told


def test_a_measure_that_no_judge_compared_them_on_counts_among_all_there_are():
    rows = [row("2", judge_model=judge, predecessor="1", **BETTER) for judge in "ab"]
    rows += [row("2", None, dimension="other", judge_model=judge, **FEW) for judge in "ab"]
    assert between_judges(rows)[:2] == [
        "Both judges find 2 better than 1 on 1 of 2 measures; by a and b they were not compared on 1.",
        "By both judges 2 in other: no rank: 1 prompt, 5 needed (statistics.min_paired_prompts).",
    ]
