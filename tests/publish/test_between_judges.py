"""What several judges of a rubric say together: where all agree, who alone finds something, who cannot tell."""

from datetime import date
from itertools import product

import polars as pl
import pytest

from schemas.tables.published import BENCHMARK_LONG
from tasks.publish.folders import PublicationName
from tasks.publish.leaderboard import leaderboard_page
from tasks.publish.standings.between_judges import best_by_each, between_judges
from tasks.publish.standings.pair_answers import pair_answers_together
from tasks.publish.standings.pair_boards import pair_boards
from tasks.publish.standings.placed_cells import placed
from tests.aggregate.preferences.conftest import said as pairs_of
from tests.aggregate.preferences.conftest import tables, verdicts
from tests.support.standing_rows import BETTER, OPEN, row

WORSE = BETTER | {"verdict_predecessor": "lower"}
TURNED = OPEN | {"verdict_predecessor": "failures_could_turn_it"}
UNTESTED = {"reason_predecessor": "blocked"}


def judged(ranks, verdicts=None):
    """Rows of 3, 2 and 1, best first, of judges a, b and c: of each judge their ranks, and the verdict of 3 against 2."""
    verdicts = verdicts or [OPEN] * len(ranks)
    return [
        row(name, place, judge_model="abc"[judge], estimate=4.0 - n, **({} if n else {"predecessor": "2", **verdicts[judge]}))
        for judge, mine in enumerate(ranks)
        for n, (name, place) in enumerate(zip("321", mine, strict=True))
    ]  # fmt: skip


FIRST = [(1, 1), (2, 3), (2, 3)]
TWO = [(1, 2), (1, 2), (3, 3)]
LAST = [(2, 3), (2, 3), (1, 1)]
OPEN_TO_ALL = [(1, 3)] * 3


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        pytest.param([FIRST] * 3, "All 3 judges find 3 the best.", id="one best by all"),
        pytest.param([FIRST] * 2, "Both judges find 3 the best.", id="one best by both"),
        pytest.param([TWO] * 3, "By all 3 judges 3 and 2 may each be the best.", id="the same two by all"),
        pytest.param([FIRST, TWO, TWO], "By all 3 judges 3 may be the best; by b and c also 2.", id="one by all, another by two"),
        pytest.param(
            [TWO, OPEN_TO_ALL], "By both judges 3 and 2 may each be the best; by b also 1.", id="one cannot tell anything"
        ),
        pytest.param(
            [FIRST, OPEN_TO_ALL, [(1, 1), (1, 3), (1, 2)]],
            "By all 3 judges 3 may be the best; by b and c also 2 and 1.",
            id="the same two in another order",
        ),
        pytest.param([OPEN_TO_ALL] * 2, "Neither judge can tell which is best.", id="neither can tell"),
        pytest.param([OPEN_TO_ALL] * 3, "None of the 3 judges can tell which is best.", id="none can tell"),
        pytest.param([FIRST, LAST], "None may be the best by both judges: by a 3; by b 1.", id="they contradict each other"),
    ],
)
def test_which_may_be_the_best_is_said_by_all_judges_and_by_some_alone(ranks, said):
    assert between_judges(judged(ranks))[0] == said


def test_a_judge_without_a_ranking_is_named():
    rows = judged([FIRST] * 3)
    for one in rows[6:]:
        one.update(state="blocked", rank_low=None, rank_high=None)
    assert between_judges(rows)[0] == "Both judges find 3 the best (c has no ranking)."


def test_judges_that_ranked_others_do_not_seem_to_contradict_each_other():
    rows = [one for one in judged([FIRST, [(1, 1), (1, 1), (2, 2)]]) if (one["judge_model"], one["checkpoint"]) != ("b", "3")]
    assert between_judges(rows)[0] == "None may be the best by both judges (b did not rank 3): by a 3; by b 2."


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        pytest.param([BETTER] * 3, "All 3 judges find 3 better than 2.", id="all better"),
        pytest.param([WORSE] * 2, "Both judges find 3 worse than 2.", id="both worse"),
        pytest.param([OPEN] * 2, "Neither judge can tell 3 from 2.", id="neither can tell"),
        pytest.param([BETTER, OPEN, OPEN], "Only a finds 3 better than 2; b and c cannot tell.", id="one alone"),
        pytest.param([BETTER, BETTER, OPEN], "a and b find 3 better than 2; c cannot tell.", id="two of three"),
        pytest.param([BETTER, WORSE, OPEN], "a finds 3 better than 2; b finds it worse; c cannot tell.", id="contrary"),
        pytest.param(
            [OPEN, TURNED, UNTESTED],
            "No judge finds 3 better or worse than 2; a cannot tell; by b failures could turn it; by c it was not tested.",
            id="nobody, each for another reason",
        ),
    ],
)
def test_who_finds_the_newest_better_and_who_does_not_is_one_sentence(verdicts, said):
    assert between_judges(judged([OPEN_TO_ALL] * len(verdicts), verdicts))[1:] == [said, "No score is missing."]


ALONE = "Each judge's claims stand on their own, corrected for that judge alone: where nothing differs, one in twenty is wrong."


@pytest.mark.parametrize(
    ("verdicts", "family", "is_said"),
    [
        pytest.param([BETTER, OPEN], "headline | nightly | {}", True, id="a family for each judge"),
        pytest.param([BETTER, OPEN], "headline | nightly", False, id="one family over the judges"),
        pytest.param([OPEN, OPEN], "headline | nightly | {}", False, id="nothing is claimed"),
        pytest.param([BETTER, OPEN], None, False, id="an older publication does not say"),
    ],
)
def test_claims_of_single_judges_are_said_to_stand_for_themselves(verdicts, family, is_said):
    rows = judged([OPEN_TO_ALL] * 2, verdicts)
    for one in rows:
        one["family"] = family and family.format(one["judge_model"])
    assert (ALONE in between_judges(rows)) == is_said
    assert (ALONE in between_judges([one | {"dimension": name} for one in rows for name in ("d0", "d1")])) == is_said


@pytest.mark.parametrize(
    ("n_ranked", "n_family", "is_by_pair"),
    [
        pytest.param(3, 1, True, id="each two checkpoints are a family"),
        pytest.param(3, 3, False, id="the ranking is one"),
        pytest.param(2, 1, False, id="the ranking is of two: both are the same"),
    ],
)
def test_comparisons_that_nothing_is_corrected_with_stand_for_themselves(n_ranked, n_family, is_by_pair):
    rows = judged([OPEN_TO_ALL] * 2, [BETTER, OPEN])
    rows = [one | {"n_ranked": n_ranked, "n_family": n_family, "family": f"headline | {one['judge_model']}"} for one in rows]
    told = "Each judge's comparison of two checkpoints stands on its own: where nothing differs, one in twenty is wrong."
    many = [one | {"dimension": name, "n_family": 2 * n_family} for one in rows for name in ("d0", "d1")]
    for said in (between_judges(rows), between_judges(many)):
        assert (told in said, ALONE in said) == (is_by_pair, not is_by_pair)


def ranked_by(judges, sets):
    """Rows of "0" to "5" of many judges: those of a judge's set may be the best, in turn."""
    return [
        row(name, (1, 2) if name in sets[judge % len(sets)] else (3, 6), judge_model=f"x{judge:03}", estimate=9.0 - int(name))
        for judge in range(judges) for name in "012345"
    ]  # fmt: skip


def test_of_many_judges_a_few_are_named_and_the_others_counted():
    contrary = ranked_by(90, ["01", "2", "3", "4", "5", "23", "34", "45", "12", "2"])
    assert between_judges(contrary)[0] == (
        "None may be the best by all 90 judges: by x001, x009, x011 and 15 more 2; by x000, x010, x020 and 6 more 0 and 1; "
        "by x002, x012, x022 and 6 more 3; by 54 more judges otherwise."
    )
    further = between_judges(ranked_by(90, ["0", "01", "02", "03", "04", "05", "012"]))[0]
    assert further.startswith("By all 90 judges 0 may be the best; by x001, x008, x015 and 10 more also 1; by ")
    assert further.endswith(" also 3; by 38 more judges others.")
    unlike = [one for one in ranked_by(90, ["0"]) if int(one["checkpoint"]) != 1 + int(one["judge_model"][1:]) % 6]
    assert between_judges(unlike)[0] == (
        "All 90 judges find 0 the best (x000, x006, x012 and 12 more did not rank 1; "
        "x001, x007, x013 and 12 more did not rank 2; "
        "x002, x008, x014 and 12 more did not rank 3; 30 more judges did not rank others)."
    )


BLOCKED = {"state": "blocked", "standing_reason": "not_found", "coverage": 0.5}
TOO_FEW = "no rank: 1 prompt, 5 needed (statistics.min_paired_prompts)."
FEW = {"state": "too_few", "standing_reason": "too_few_prompts", "n_prompts": 1}
ALONE_ONE = {"state": "not_compared", "standing_reason": "alone"}


def unranked(*by_judge):
    """Rows of 1 and 2 of judges a, b, …: what each judge's pair of rows says."""
    return [
        row(name, judge_model=judge, **why)
        for judge, mine in zip("abcde", by_judge, strict=False) for name, why in zip("12", mine, strict=True)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        pytest.param(
            unranked((FEW, FEW), (FEW, FEW)),
            ["By both judges 1 and 2: no rank: 1 prompt, 5 needed (statistics.min_paired_prompts)."],
            id="too few",
        ),
        pytest.param(
            [row("1", judge_model=judge, **ALONE_ONE) for judge in "ab"],
            ["By both judges 1: no rank: there is no other checkpoint to compare it with."],
            id="one checkpoint",
        ),
        pytest.param(
            unranked((FEW, FEW), (BLOCKED, BLOCKED), (BLOCKED, BLOCKED)),
            [
                "By b and c 1 and 2: blocked, 50.0 % of the judgements have a score.",
                f"By a 1 and 2: {TOO_FEW}",
            ],
            id="judges for different reasons",
        ),
        pytest.param(
            unranked(*(({**BLOCKED, "coverage": n / 10}, FEW) for n in range(5)))[:9],
            [
                f"By a, b, c and d 2: {TOO_FEW}",
                "By a 1: blocked, 0.0 % of the judgements have a score.",
                "By b 1: blocked, 10.0 % of the judgements have a score.",
                "Why others have no rank, each judge's own answer says: 3 more reasons.",
            ],
            id="many reasons",
        ),
    ],
)
def test_why_some_have_no_rank_is_said_as_one_judges_answer_says_it(rows, said):
    assert between_judges(rows) == [*said, "No score is missing."]


def test_one_judge_is_told_by_its_own_answer_alone():
    assert between_judges([row(name, judge_model="a") for name in "12"]) == []
    assert between_judges([row(name, judge_model=judge) for name, judge in product("12", "ab")])


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (
            {"x": [], "y": "a", "z": "a"},
            "Both judges find a the best (by x each is worse than another).",
        ),
        ({"x": [], "y": "a"}, "By x none is the best: each is worse than another."),
        ({"x": [], "y": []}, "By x and y none is the best: each is worse than another."),
    ],
    ids=["one of three", "one of two", "both"],
)
def test_a_judge_by_whom_each_is_worse_than_another_is_named(first, said):
    assert best_by_each(dict.fromkeys(first, "abc"), first) == [said]


def test_what_the_judges_of_pairs_find_is_said_together_and_first():
    """Judges a and b find 3 better than 2, c cannot tell; of one judge nothing is said together."""
    words = {"a": "a " * 39 + "?", "b": "a " * 40, "c": "a b " * 20}
    made = tables(
        pl.concat(verdicts([*pairs_of("3", "2", mine), *pairs_of("2", "1", "a " * 40)], judge) for judge, mine in words.items())
    )
    together = pair_answers_together(pair_boards(made))
    best, newest = "By all 3 judges 3 may be the best; by c also 2.", "a and b find 3 better than 2; c cannot tell."
    assert together == {"pairs": [best, newest, "1 of 240 pairs lacks a verdict."]}
    cells, name = placed({BENCHMARK_LONG: BENCHMARK_LONG.empty()}), PublicationName("bench", "f" * 64, date(2026, 1, 1))
    page = leaderboard_page(cells, name, pair_boards(made))
    assert page.index(f"pairs, all judges: {best} {newest}") < page.index("pairs judged by a")
    assert pair_answers_together(pair_boards(tables(verdicts(pairs_of("3", "2", words["a"]), "a")))) == {}
