"""Rows of `preferences`: a's win rate against b, its interval, its test against one half. Corrected together: families.py."""

from collections.abc import Iterator, Mapping

from schemas.benchmark.file import Statistics
from schemas.statuses.cells import CellReason, CellStatus, ComparisonReason, ComparisonTest, PairReason, Total
from schemas.tables.table import Row
from tasks.aggregate.comparisons.families import Family
from tasks.aggregate.intervals import LEVEL, ClusteredMean
from tasks.aggregate.preferences.cells import Cell, ends, is_still, score_test
from tasks.aggregate.preferences.evidence import Evidence
from tasks.aggregate.preferences.prompts import COUNTS, MIDDLE, Meeting

CI_METHOD = "wilson_t_clustered"
CI_ANYTIME = "confidence_sequence"
_NUMBERS = ("n_prompts", "n_pairs", "n_verdicts_asked", "n_verdicts", "n_unanswered")
_BOUNDS = ("bound_low", "bound_high", "order_bound_low", "order_bound_high")


def win_rate_rows(
    meeting: Meeting, cells: Mapping[str, Cell | None], floor: float, statistics: Statistics, evidence: Evidence | None = None
) -> Iterator[Row]:
    """A row for each category and total of two checkpoints, not corrected yet: as families.corrected() takes them.

    With `evidence` (pairs asked until decided) the macro win rate has the p and the interval that hold however often one looked;
    where they stopped early nothing else is tested.
    """
    is_divided = set(cells) != {Total.UNNAMED, Total.MACRO, Total.MICRO}
    is_early = evidence is not None and not evidence.is_complete
    for category, cell in cells.items():
        if category == Total.UNNAMED and not is_divided:
            continue
        row = meeting.named | {
            "category": category, "family": Family.PREFERENCES if category == Total.MACRO else Family.CATEGORIES,
            "ci_level": LEVEL, "is_stopped_early": is_early, **dict.fromkeys(_NUMBERS, 0),
        } | dict.fromkeys(COUNTS, 0)  # fmt: skip
        if cell is None:
            whole = cells[Total.MICRO]
            row |= {} if whole is None else _counted(whole)
            if whole is not None and whole.coverage < floor:
                yield row | {"status": CellStatus.BLOCKED.value, "reason": PairReason.UNJUDGED.value}
            else:
                yield row | {"status": CellStatus.NULL.value, "reason": CellReason.CATEGORY_MISSING.value}
            continue
        row |= _counted(cell) | dict(zip(_BOUNDS, cell.bounds, strict=True))
        if cell.mean is None or cell.coverage < floor:
            yield row | {"status": CellStatus.BLOCKED.value, "reason": PairReason.UNJUDGED.value}
            continue
        row |= {"win_rate": cell.mean.mean, "win_rate_agreed": cell.agreed, "se": cell.mean.se, "df": cell.mean.df}
        is_enough = cell.fewest >= statistics.min_paired_prompts
        if evidence is not None and category == Total.MACRO and is_enough:
            yield row | _watched(cell.mean, evidence, cell.bounds)
        elif is_early:
            why = ComparisonReason.TOO_FEW_PAIRED_PROMPTS if category == Total.MACRO else PairReason.STOPPED_EARLY
            yield row | {"status": CellStatus.NO_INTERVAL.value, "reason": why.value}
        else:
            yield row | _tested(cell, cell.mean, statistics)


def _counted(cell: Cell) -> Row:
    counts = dict(zip(COUNTS, cell.counts, strict=True))
    return {
        **counts, "n_prompts": cell.n_prompts, "n_pairs": cell.n_pairs, "n_verdicts_asked": cell.n_asked,
        "n_verdicts": cell.n_said, "n_unanswered": cell.n_unanswered, "coverage": cell.coverage,
    }  # fmt: skip


def _tested(cell: Cell, mean: ClusteredMean, statistics: Statistics) -> Row:
    """Interval and p of pairs that were asked as planned."""
    found = ends(mean, LEVEL)
    if found is None:
        still = CellReason.NO_VARIATION if mean.se is not None else CellReason.TOO_FEW_PROMPTS
        row: Row = {"status": CellStatus.NO_INTERVAL.value, "reason": still.value}
    else:
        row = {"ci_low": found[0], "ci_high": found[1], "ci_method": CI_METHOD, "status": CellStatus.OK.value}
        row["ends_at"] = lambda level: ends(mean, level)
    if mean.se is not None and cell.fewest < statistics.min_paired_prompts:
        return row | {"reason": row.get("reason") or ComparisonReason.TOO_FEW_PAIRED_PROMPTS.value}
    p = score_test(mean, cell.n_signed)
    test = ComparisonTest.SIGN_FLIP if is_still(mean) else ComparisonTest.SCORE_T
    return row if p is None else row | {"p": p, "test": test.value} | to_correct(mean, cell.bounds)


def _watched(mean: ClusteredMean, evidence: Evidence, bounds: tuple[float, ...]) -> Row:
    low, high = evidence.ends(mean, LEVEL)
    return {
        "ci_low": low, "ci_high": high, "ci_method": CI_ANYTIME, "status": CellStatus.OK.value, "p": evidence.p(mean),
        "test": ComparisonTest.ANYTIME.value, "ends_at": lambda level: evidence.ends(mean, level),
    } | to_correct(mean, bounds)  # fmt: skip


def to_correct(mean: ClusteredMean, bounds: tuple[float, ...]) -> Row:
    """What families.py decides by: the distance from one half and what unjudged pairs can have made of it."""
    off = mean.mean - MIDDLE
    low, high = min(bounds[0] - MIDDLE, off), max(bounds[1] - MIDDLE, off)
    return {"delta": off, "delta_bound_low": low, "delta_bound_high": high, "width": MIDDLE}
