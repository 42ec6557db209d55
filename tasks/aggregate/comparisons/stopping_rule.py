"""Which checkpoints need no more prompts: those of which no comparison that is waited for is open. Looks are sequential.py's."""

from collections.abc import Mapping, Sequence

from schemas.benchmark.file import Statistics
from schemas.statuses.cells import ComparisonVerdict
from tasks.aggregate.comparisons.families import ALPHA, corrected
from tasks.aggregate.sequential import Look

_DECIDED = (ComparisonVerdict.HIGHER.value, ComparisonVerdict.LOWER.value)


def need_no_more(rows: Sequence[Mapping[str, object]], benchmark: str, statistics: Statistics, n_family: int) -> frozenset[str]:
    """Of headline_rows() as they stand now, the checkpoints, as "model/checkpoint", whose comparisons are all decided or futile.

    `n_family`: how many comparisons the published table will correct together, at most. One that nobody can be compared with is
    asked on.
    """
    known = corrected([dict(row) for row in rows], benchmark, statistics, n_family)
    known = [row for row in known if row["comparison"] in statistics.stopping.decide]
    waiting = {name for row in known if not _is_over(row, statistics, n_family) for name in _both(row)}
    return frozenset({name for row in known if row.get("p") is not None for name in _both(row)} - waiting)


def _is_over(row: Mapping[str, object], statistics: Statistics, n_family: int) -> bool:
    """Whether a comparison is decided, or most likely never will be."""
    if row.get("verdict") in _DECIDED:
        return True
    p, look = row.get("p_nominal"), row.get("at")
    if p is None or not isinstance(look, Look):
        return False
    return look.chance(float(str(p)), ALPHA / max(1, n_family)) < statistics.stopping.futility


def _both(row: Mapping[str, object]) -> list[str]:
    return [f"{row[f'model_{end}']}/{row[f'checkpoint_{end}']}" for end in "ab"]
