"""Which checkpoints pairs can put on one scale, and why the others have no place on it. The scale itself is davidson.py."""

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from schemas.statuses.cells import RatingReason
from tasks.aggregate.intervals import Floats

Flags = npt.NDArray[np.bool_]


def rateable(points: Floats, judged: Flags, anchor: int | None) -> list[RatingReason | None]:
    """For each checkpoint None where it has a finite strength beside the others that have one, else why it has none.

    `points[i, j]` is what i has won against j, ties half; `judged` whether the two were judged at all; both (n, n). A maximum of
    the likelihood exists among those from each of whom points lead to every other (Ford, Amer. Math. Monthly 64, 1957). Of
    several such groups the one with the anchor is rated, if it has two members, else the largest (of equals the first).
    """
    n = len(points)
    _, islands = connected_components(csr_array(judged), directed=False)
    _, groups = connected_components(csr_array(points > 0), directed=True, connection="strong")
    size = np.bincount(groups)[groups]
    chosen = groups[int(np.argmax(size))] if anchor is None or size[anchor] < 2 else groups[anchor]
    core: Flags = np.asarray(groups == chosen)
    if core.sum() < 2:  # nobody is rated: who won or lost everything, did so against all it met
        won, lost = (np.asarray(of.sum(axis=1) > 0).tolist() for of in (points, points.T))
        return [_why(is_judged=won[i] or lost[i], is_joined=True, is_above=not lost[i], is_below=not won[i]) for i in range(n)]
    home = islands[np.argmax(core)]
    above, below = _reaching(points > 0, core), _reaching((points > 0).T, core)
    return [
        None if core[i] else _why(is_judged=bool(judged[i].any()), is_joined=bool(islands[i] == home),
                                  is_above=bool(above[i]), is_below=bool(below[i]))
        for i in range(n)
    ]  # fmt: skip


def _why(*, is_judged: bool, is_joined: bool, is_above: bool, is_below: bool) -> RatingReason:
    if not is_judged:
        return RatingReason.NOT_JUDGED
    if not is_joined:
        return RatingReason.ISLAND
    if is_above:
        return RatingReason.WON_ALL
    return RatingReason.LOST_ALL if is_below else RatingReason.SEPARATED


def _reaching(leads: Flags, core: Flags) -> Flags:
    """From whom a chain of steps leads into the core."""
    found = core.copy()
    while True:
        more = found | (leads & found).any(axis=1)
        if (more == found).all():
            return found
        found = more


def ties_are_estimable(wins: Flags, ties: float) -> bool:
    """Whether ν has a finite estimate: someone tied, and wins (not ties) lead round in a circle.

    Without a circle strengths could part so far that every tie is explained by a ν as large: no maximum exists.
    """
    _, groups = connected_components(csr_array(wins), directed=True, connection="strong")
    return ties > 0 and bool((np.bincount(groups) > 1).any())
