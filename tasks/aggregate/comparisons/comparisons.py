"""Which checkpoints are compared in which cells, and the rows of it. Tests: comparison_tests.py. Corrections: families.py."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby

from schemas.benchmark.file import Statistics
from schemas.lineage import Checkpoint
from schemas.metrics import MEAN, NO_TOTAL, TOTALS
from schemas.statuses.cells import CellStatus, ComparisonKind, ComparisonReason, ComparisonTest, Estimand, Total
from schemas.tables.table import Row
from tasks.aggregate.comparisons.comparison_tests import (
    delta_bounds,
    is_still,
    mean_of_paired,
    paired,
    sign_flip_p,
    tested,
)
from tasks.aggregate.comparisons.failure_tests import failures_tested
from tasks.aggregate.comparisons.families import Family
from tasks.aggregate.figures import strata_of
from tasks.aggregate.intervals import LEVEL
from tasks.aggregate.judged import Judged
from tasks.aggregate.looks import look_of, looked_at
from tasks.aggregate.tallies import Tally


@dataclass(frozen=True, slots=True, eq=False)
class Contestant:
    """A model's checkpoint as one judge saw it in one dimension: its tally, and its published means by category."""

    judge_model: str
    model: str
    checkpoint: str
    tally: Tally
    cells: Mapping[str, Row]

    def part(self, category: str) -> Tally | None:
        """The tally of a category, None where there is none; of all together in a total."""
        if category in (Total.MACRO, Total.MICRO):
            return self.tally
        return self.tally.by_category.get(category)


@dataclass(frozen=True, slots=True)
class Lines:
    """What each checkpoint is held against beside all others: the one directly before it, if any, and the baseline."""

    before: Mapping[Checkpoint, Checkpoint]
    baseline: str | None = None


@dataclass(frozen=True, slots=True)
class _How:
    """What all comparisons of a dimension share: the categories of its total, the settings; by checkpoint, who judged it how.

    That is its rubric versions, and the models that said they answered (none where nobody said).
    """

    expected: frozenset[str]
    statistics: Statistics
    versions: Mapping[tuple[str, ...], frozenset[str]]
    answered_by: Mapping[tuple[str, ...], frozenset[str]]
    is_headline: bool

    def family(self, a: Contestant, category: str) -> Family:
        """What a comparison in this category is corrected with."""
        if category not in ranking_categories(a.cells):
            return Family.CATEGORIES
        return Family.HEADLINE if self.is_headline else Family.ASPECTS


def comparison_rows(
    judged: Judged,
    contestants: Sequence[Contestant],
    expected: frozenset[str],
    statistics: Statistics,
    lines: Lines,
    *,
    answered_by: Mapping[tuple[str, ...], frozenset[str]],
    is_headline: bool,
) -> Iterator[Row]:
    """Every comparison of one dimension, not corrected yet: with its Family and the scale's `width`, which families.py takes.

    `answered_by`: by cell, the models that said they answered.

    `predecessor` and `baseline` in every cell; `each_other` where a ranking stands: in `__macro__`, or in the categories where
    the dimension has no total.
    """
    how = _How(expected, statistics, judged.versions, answered_by, is_headline)
    for judge, found in groupby(contestants, key=lambda one: one.judge_model):
        mine = list(found)
        yield from _against_predecessors(mine, lines.before, how)
        if lines.baseline is not None:
            yield from _against_baseline(mine, contestants, judge, lines.baseline, how)
        if len(mine) <= statistics.max_ranked:
            for a, b in combinations(mine, 2):
                ranked = ranking_categories(a.cells)
                yield from _compared(ComparisonKind.EACH_OTHER, a, b, ranked, how)


def _against_predecessors(mine: Sequence[Contestant], before: Mapping[Checkpoint, Checkpoint], how: _How) -> Iterator[Row]:
    """Each against the one directly before it; null rows where that one is not among those judged here: no other stands in."""
    there = {(one.model, one.checkpoint): one for one in mine}
    for (model, checkpoint), a in there.items():
        previous = before.get((model, checkpoint))
        if previous in there:
            yield from _compared(ComparisonKind.PREDECESSOR, a, there[previous], sorted(a.cells), how)
        elif previous is not None:
            yield from _not_here(ComparisonKind.PREDECESSOR, a, previous, ComparisonReason.PREDECESSOR_MISSING, how)


def ranking_categories(cells: Mapping[str, Row]) -> list[str]:
    """Where a dimension is ranked: over all categories, or in each where it has no total."""
    if Total.MACRO.value in cells and cells[Total.MACRO.value]["reason"] not in NO_TOTAL:
        return [Total.MACRO.value]
    return sorted(cells.keys() - set(TOTALS))


def _against_baseline(
    mine: Sequence[Contestant], everyone: Sequence[Contestant], judge: str, baseline: str, how: _How
) -> Iterator[Row]:
    """All but the baseline against it; null rows where this judge, or nobody, has judged it."""
    found = [one for one in everyone if f"{one.model}/{one.checkpoint}" == baseline]
    own = [one for one in found if one.judge_model == judge]
    for a in mine:
        if own and a is not own[0]:
            yield from _compared(ComparisonKind.BASELINE, a, own[0], sorted(a.cells), how)
        elif not own:
            model, _, checkpoint = baseline.rpartition("/")
            other = (found[0].model, found[0].checkpoint) if found else (model, checkpoint)
            reason = ComparisonReason.JUDGE_DIFFERS if found else ComparisonReason.BASELINE_MISSING
            yield from _not_here(ComparisonKind.BASELINE, a, other, reason, how)


def _not_here(kind: ComparisonKind, a: Contestant, other: Checkpoint, reason: ComparisonReason, how: _How) -> Iterator[Row]:
    """A null row for each of its cells: `other` is named, and not compared."""
    for category in sorted(a.cells):
        yield _address(kind, a, category, how) | {"model_b": other[0], "checkpoint_b": other[1]} | _null(reason)


def _compared(kind: ComparisonKind, a: Contestant, b: Contestant, categories: Sequence[str], how: _How) -> Iterator[Row]:
    one, other = ((who.judge_model, who.model, who.checkpoint) for who in (a, b))
    is_same_rubric = how.versions[one] == how.versions[other]
    answered = how.answered_by.get(one), how.answered_by.get(other)
    is_same_judge = answered[0] == answered[1] or None in answered
    failures: dict[str, Row] = {}
    for category in categories:
        row = _address(kind, a, category, how) | {"model_b": b.model, "checkpoint_b": b.checkpoint}
        cells = a.cells[category], b.cells.get(category)
        if cells[1] is None:
            yield row | _null(ComparisonReason.DATASET_DIFFERS)
            continue
        row |= {
            "cell_id_b": cells[1]["cell_id"],
            "fail_rate_a": cells[0]["fail_rate"],
            "fail_rate_b": cells[1]["fail_rate"],
        }
        if not is_same_rubric:
            yield row | _null(ComparisonReason.RUBRIC_DIFFERS)
            continue
        if not is_same_judge:
            yield row | _null(ComparisonReason.ANSWERING_MODEL_DIFFERS)
            continue
        of = Total.MACRO if category in TOTALS else category  # the totals are of the same prompts
        if of not in failures:
            failures[of] = failures_tested(a.part(of), b.part(of))
        row |= failures[of]
        reason = _why_not(cells[0], cells[1])
        yield row | (_null(reason) if reason else _figures(a, b, category, how))


def _figures(a: Contestant, b: Contestant, category: str, how: _How) -> Row:
    names = strata_names(a, category, how.expected)
    width = a.cells[category]["scale_high"] - a.cells[category]["scale_low"]
    both = [(a.part(name), b.part(name)) for name in names]
    found = [paired(one, other, width) for one, other in both if one is not None and other is not None]
    strata = [one for one in found if one is not None]
    if not strata:
        return _null(ComparisonReason.DATASET_DIFFERS)
    joint = mean_of_paired(strata) if category == Total.MACRO else strata[0]
    counts: Row = {"n_prompts_paired": joint.n_prompts, "win": joint.win, "tie": joint.tie, "loss": joint.loss}
    counts["n_prompts_identical"] = joint.n_identical
    counts |= looked_at(a.tally.reached, b.tally.reached)
    floor = how.statistics.min_paired_prompts
    planned = names if category != Total.MICRO else [*(how.expected | a.tally.categories.keys())]
    look = look_of(a.tally.reached, b.tally.reached, planned, floor, is_pooled=category == Total.MICRO)
    too_few = len(strata) < len(names) or min(stratum.n_prompts for stratum in strata) < floor
    if too_few or look is None or joint.se is None or joint.df is None:
        return _null(ComparisonReason.TOO_FEW_PAIRED_PROMPTS) | counts
    row: Row = counts | {"delta": joint.delta, "se": joint.se, "df": joint.df, "width": width, "at": look}
    row |= _bounds(a, b, category, joint.delta, both)
    if is_still(joint, width):
        p = sign_flip_p([(stratum.delta, stratum.n_prompts) for stratum in strata], width)
        test = None if p is None else ComparisonTest.SIGN_FLIP.value
        return row | {
            "p": None if p is None else look.p(p), "p_nominal": p, "test": test,
            "status": CellStatus.NO_INTERVAL.value, "reason": ComparisonReason.NO_VARIATION.value,
        }  # fmt: skip
    return row | tested(joint, width, look)


def _bounds(a: Contestant, b: Contestant, category: str, delta: float, both: Sequence[tuple[Tally | None, Tally | None]]) -> Row:
    """What delta can have been: itself where no judgement of either failed, else the mean of its parts' bounds.

    With failures `bounds` are the two with their errors, for the corrected interval that families.py makes of them.
    """
    if not a.cells[category]["n_failed"] and not b.cells[category]["n_failed"]:
        return {"delta_bound_low": delta, "delta_bound_high": delta}
    unknown = [a.tally.unknown, b.tally.unknown] if category in TOTALS else []
    low, high = delta_bounds([(one, other) for one, other in both if one and other], unknown)
    return {"delta_bound_low": min(low.mean, delta), "delta_bound_high": max(high.mean, delta), "bounds": (low, high)}


def strata_names(a: Contestant, category: str, expected: frozenset[str]) -> list[str]:
    """The parts a cell is a mean of: itself, or for `__macro__` the categories."""
    if category != Total.MACRO:
        return [category]
    return [name for stratum in strata_of(a.tally, expected) for name in stratum.categories]


def _why_not(a: Row, b: Row) -> ComparisonReason | None:
    statuses = {a["status"], b["status"]}
    if CellStatus.NULL.value in statuses:
        return ComparisonReason.NO_SUCH_TOTAL
    return ComparisonReason.BLOCKED if CellStatus.BLOCKED.value in statuses else None


def _address(kind: ComparisonKind, a: Contestant, category: str, how: _How) -> Row:
    cell = a.cells[category]
    return {
        "family": how.family(a, category), "comparison": kind.value, "judge_model": a.judge_model, "dimension": cell["dimension"],
        "category": category, "metric": MEAN,
        "estimand": Estimand.PROMPTS_LIKE_THESE.value, "model_a": a.model, "checkpoint_a": a.checkpoint,
        "cell_id_a": cell["cell_id"], "cell_id_b": None, "ci_level": LEVEL, "n_prompts_paired": 0, "win": 0, "tie": 0, "loss": 0,
    }  # fmt: skip


def _null(reason: ComparisonReason) -> Row:
    return {"status": CellStatus.NULL.value, "reason": reason.value}
