"""The table `exam`: figures worked out by hand, intervals against scipy, corrections, verdicts, and their coverage."""

from datetime import date

import polars as pl
import pytest
from scipy.stats import binomtest

from benchmarks.simulations.exam import SCALE, coverage
from rubrics.faults import MEANT, meant_for
from rubrics.loading import SHIPPED, find_rubrics
from rubrics.model import Dimension
from schemas.benchmark.exam import Exam, PlantedFault
from schemas.benchmark.file import Statistics
from schemas.tables.nights import EXAM
from tasks.aggregate.exam import Noticed, exam_table, figures_of, net_interval, step_of
from tasks.aggregate.intervals import ClusteredMean, Interval
from tasks.aggregate.tables import Settings

F = PlantedFault
SETTINGS = Settings("b", "d" * 64, "f" * 64, date(2026, 1, 1), 0.8, Statistics())


def _rows(*scores: tuple[str, float | None, float | None, float | None]) -> pl.DataFrame:
    return pl.DataFrame(list(scores), schema=["prompt_id", "untouched", "harmless", "faulted"], orient="row")


def test_shares_and_drop_by_hand():
    """Prompt a: 5 4 2 and 4 4 4; b: 3 3 2; c: 5 5 3. Noticed 1, 0, 1, 1; false 1, 0, 0, 0; drops 2, 0, 1, 2."""
    found = figures_of(_rows(("a", 5, 4, 2), ("a", 4, 4, 4), ("b", 3, 3, 2), ("c", 5, 5, 3)), SCALE)
    assert (found["n_samples"], found["n_prompts"], found["noticed"], found["false_notices"]) == (4, 3, 0.75, 0.25)
    assert (found["net"], found["drop"], found["step"]) == (0.5, 1.25, 1)


@pytest.mark.parametrize(
    ("scores", "told"),
    [
        pytest.param(("a", 1, 1, 1), {"n_no_room": 1, "reason": "no_room"}, id="at the lowest end"),
        pytest.param(("a", 5, 5, None), {"n_lost": 1, "reason": "no_twins"}, id="no score is counted, not averaged"),
        pytest.param(("a", 5, None, 2), {"n_lost": 0, "reason": "no_twins"}, id="without its harmless twin"),
        pytest.param(("a", None, 5, 2), {"n_lost": 0, "reason": "no_twins"}, id="without the untouched score"),
    ],
)
def test_what_says_nothing_is_left_out_and_counted(scores, told):
    found = figures_of(_rows(scores), SCALE)
    assert {name: found.get(name) for name in told} == told
    assert found["n_samples"] == 0


def test_a_score_one_step_above_the_lowest_end_has_room_to_fall():
    assert figures_of(_rows(("a", 2, 2, 1)), SCALE)["n_samples"] == 1


@pytest.mark.parametrize(
    ("dimension", "step"),
    [
        pytest.param(Dimension("d", (), 0, 10, 0.5), 0.5, id="the scale's own"),
        pytest.param(Dimension("d", (), 0, 10), 1, id="decimals: a tenth of the scale"),
        pytest.param(Dimension("d", (), 0, 1, answers=(("yes", 1), ("partly", 0.4), ("no", 0))), 0.4, id="the least gap"),
    ],
)
def test_a_step(dimension, step):
    assert step_of(dimension) == step


def test_a_fall_of_a_step_less_a_rounding_error_is_a_notice():
    decimals = Dimension("d", (), 0, 10, 0.1)
    assert figures_of(_rows(("a", 0.3, 0.3, 0.2)), decimals)["noticed"] == 1  # 0.3 - 0.2 is 0.09999999999999998


def _mean(share: float, n: int) -> ClusteredMean:
    return ClusteredMean(share, (share * (1 - share) / n) ** 0.5, n - 1.0, n, None)


@pytest.mark.parametrize(("noticed", "false"), [(900, 30), (0, 0), (1000, 0), (500, 500)])
def test_the_interval_of_net_is_newcombes_with_wilsons_ends(noticed, false):
    """Many prompts, so that t is z: against Wilson's intervals of scipy, squared and added by hand."""
    n = 1000
    p, q = noticed / n, false / n
    ends = net_interval(Noticed(_mean(p, n), _mean(q, n), 0.3))
    one, two = (binomtest(k, n).proportion_ci(method="wilson") for k in (noticed, false))

    def halves(a: float, b: float) -> float:
        return (a**2 + b**2 - 0.6 * a * b) ** 0.5

    assert isinstance(ends, Interval)
    assert ends.low == pytest.approx(max(-1, p - q - halves(p - one.low, two.high - q)), abs=2e-4)
    assert ends.high == pytest.approx(min(1, p - q + halves(one.high - p, q - two.low)), abs=2e-4)


def _table(n: int, n_noticed: int, exam: Exam, n_false: int = 0) -> pl.DataFrame:
    """An exam of `n` prompts: alignment asked of blurred and swapped twins, of which this many are noticed."""
    judged, scored, twins = [], [], []
    for number in range(n):
        sample, prompt = f"s{number}", f"p{number}"
        judged.append((sample, "", prompt, "m", "1", f"k{sample}"))
        scored.append((f"k{sample}", 5.0))
        for fault in (F.HARMLESS, F.BLURRED, F.SWAPPED_PROMPT):
            is_hit = number < (n_false if fault is F.HARMLESS else n_noticed)
            twin = f"{fault}{number}"
            twins.append((twin, sample))
            judged.append((twin, "exam", "another", "__exam__", fault.value, f"k{twin}"))
            scored.append((f"k{twin}", 3.0 if is_hit else 5.0))
    judgements = pl.DataFrame(
        judged, schema=["sample_id", "occasion", "prompt_id", "model", "checkpoint", "request_key"], orient="row"
    ).with_columns(
        rubric_id=pl.lit("alignment"), rubric_version=pl.lit("1"), judge_model=pl.lit("j"), repeat=pl.lit(0, pl.Int64),
        second_sample_id=pl.lit(None, pl.String),
    )  # fmt: skip
    scores = pl.DataFrame(scored, schema=["request_key", "score"], orient="row").with_columns(
        dimension=pl.lit("score"), status=pl.lit("scored"), item=pl.lit(None, pl.String)
    )
    links = pl.DataFrame(twins, schema=["twin_id", "sample_id"], orient="row")
    return exam_table(judgements.lazy(), scores.lazy(), links, find_rubrics(["alignment"], [SHIPPED]), SETTINGS, exam)


@pytest.mark.parametrize(
    ("n_noticed", "n_false", "verdict"), [(1, 0, "blind"), (38, 0, "sees"), (12, 0, "cannot_tell"), (38, 38, "blind")]
)
def test_verdicts(n_noticed, n_false, verdict):
    rows = _table(40, n_noticed, Exam(floor=0.3), n_false).filter(fault="swapped_prompt")
    assert rows["verdict"].to_list() == [verdict]
    assert rows["n_prompts"].to_list() == [40]  # of the untouched samples: the twins' prompts are others


def test_faults_a_dimension_is_not_meant_for_are_a_family_of_their_own():
    found = _table(40, 20, Exam())
    assert tuple(found.columns) == EXAM.columns
    assert found.select("fault", "is_meant", "family", "n_family").rows() == [
        ("blurred", False, "exam, other", 1), ("swapped_prompt", True, "exam", 1),
    ]  # fmt: skip
    both = _table(40, 20, Exam(meant={"alignment.score": [F.BLURRED, F.SWAPPED_PROMPT]}))
    assert both["n_family"].to_list() == [2, 2]
    one, two = (frame.filter(fault="swapped_prompt").row(0, named=True) for frame in (found, both))
    assert two["net_low_adjusted"] < one["net_low_adjusted"] == pytest.approx(one["net_low"])  # corrected for two looks


def test_who_is_meant_to_notice_what():
    assert meant_for("alignment", "score", F.BLURRED, {}) is False
    assert meant_for("alignment", "score", F.BLURRED, {"score": [F.BLURRED]}) is True
    assert meant_for("alignment", "score", F.BLURRED, {"score": [F.BLURRED], "alignment.score": []}) is False
    assert meant_for("mine", "score", F.BLURRED, {}) is None


@pytest.mark.parametrize("rubric_id", sorted(MEANT))
def test_every_dimension_of_a_shipped_rubric_is_spoken_of(rubric_id):
    rubric = find_rubrics([rubric_id], [SHIPPED])[rubric_id]
    assert set(MEANT[rubric_id]) == {one.key for one in rubric.dimensions}


@pytest.mark.parametrize(("share", "wavering"), [(0.05, 0.1), (0.5, 0.0)])
def test_coverage(share, wavering):
    """250 draws: a standard error of 1.4 points below 95 %; the long form is benchmarks/simulations/exam.py."""
    noticed, net, _ = coverage(30, share, wavering, 250)
    assert min(noticed, net) >= 0.91
