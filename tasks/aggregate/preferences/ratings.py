"""Rows of `preference_ratings`: who has a place on the scale of points, where, the intervals, and what ranks rest on."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy  # its parts are imported where they are first used
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from schemas.lineage import Checkpoint
from schemas.statuses.cells import RatedState, RatingReason
from schemas.tables.table import Row
from tasks.aggregate.comparisons.families import Family
from tasks.aggregate.intervals import LEVEL, Counts, Floats, rounded, t_quantile
from tasks.aggregate.preferences.davidson import Fit, Tallied, fitted
from tasks.aggregate.preferences.prompts import PARTS, Pairs

Flags = npt.NDArray[np.bool_]
POINTS = 400 / float(np.log(10))
"""Points of one unit of log-odds: 400 points are odds of 10 to 1."""

_COUNTED = ("n", "n_pairs", "n_asked", "n_said", "n_win", "n_tie", "n_loss", "n_order_dependent")
MEAN_ANCHOR = "__mean__"
CI_METHOD = "sandwich_t_prompts"
_STILL = 1e-6  # of log-odds: the root of what rounding leaves of a variance that is 0


def rated(
    parts: pl.DataFrame, pairs: Pairs, expected: Sequence[str], baseline: str | None, floor: float
) -> tuple[list[Row], list[Row]]:
    """Ratings from sums by meeting, category and prompt, of one judge or all; and every two of them, not corrected yet.

    Pairs of two checkpoints that are under the coverage floor, or have no verdict in one of the `expected` categories, are left
    out, as they give no win rate either. A pair whose orders disagree counts as a tie; each category weighs the same. Points are
    those above the baseline where it is rated, else above the mean of the rated.
    """
    meetings = pairs.meetings
    met = parts["meeting"].unique().sort().to_numpy()
    names = sorted({end for one in met for end in (meetings[one].a, meetings[one].b)})
    places = {one: k for k, one in enumerate(names)}
    ends = np.array([(places.get(one.a, -1), places.get(one.b, -1)) for one in meetings], dtype=np.int64).reshape(-1, 2)
    is_counted = [name in expected for name in pairs.categories]
    is_under = _under(parts, np.array(is_counted), floor, len(meetings))
    rows = _counted(parts, names, ends, is_under)
    tallied, n_judged = _tallied(parts.filter(pl.Series(~is_under[parts["meeting"].to_numpy()])), ends)
    anchor = next((k for k, one in enumerate(names) if "/".join(one) == baseline), None)
    n = len(names)
    wins, ties = _crossed(tallied, n, tallied.win, tallied.loss), _crossed(tallied, n, tallied.tie, tallied.tie)
    reasons = rateable(wins + ties / 2, wins + wins.T + ties > 0, anchor)
    core = np.array([reason is None for reason in reasons])
    kept = core[tallied.one] & core[tallied.other]
    both = np.concatenate([tallied.one, tallied.other])
    n_counted, n_rated = (np.bincount(both, np.tile(n_judged * which, 2), n) for which in (np.ones_like(kept), kept))
    for place, reason in enumerate(reasons):
        rows[place] |= _state(reason, int(n_rated[place]), is_held_back=rows[place]["n_pairs"] != n_counted[place])
    if not core.any():
        return rows, []
    has_ties = ties_are_estimable(wins[np.ix_(core, core)] > 0, float(tallied.tie[kept].sum()))
    fit = fitted(tallied.among(kept), has_ties=has_ties)
    placed = [row for row, is_in in zip(rows, core, strict=True) if is_in]
    held = int(core[:anchor].sum()) if anchor is not None and core[anchor] else None
    _add_ratings(placed, fit, held)
    return rows, list(_compared(placed, fit, _unsaid(met, ends, is_under, n)[np.ix_(core, core)]))


def _under(parts: pl.DataFrame, is_counted: Flags, floor: float, n_meetings: int) -> Flags:
    """Whether each meeting has too few verdicts for a figure, in all or in one of the categories counted; shape (meetings,)."""
    shape = n_meetings, len(is_counted)
    place = np.ravel_multi_index((parts["meeting"].to_numpy(), parts["category"].to_numpy()), shape)
    asked, said = (np.bincount(place, parts[name], n_meetings * shape[1]).reshape(shape) for name in ("n_asked", "n_said"))
    lacks_one = ((asked > 0) & (said == 0) & is_counted).any(axis=1)
    return np.asarray(lacks_one | (said.sum(axis=1) == 0) | (said.sum(axis=1) / np.maximum(asked.sum(axis=1), 1) < floor))


def _unsaid(met: Counts, ends: Counts, is_under: Flags, n: int) -> Flags:
    """Whether every two met and are under the floor: of these no rank says which is better; shape (n, n)."""
    one, other = ends[met[is_under[met]]].T
    found = np.zeros((n, n), dtype=np.bool_)
    found[one, other] = found[other, one] = True
    return found


def _state(reason: RatingReason | None, n_pairs: int, *, is_held_back: bool) -> Row:
    """Rated, or why not: where verdicts were left out, that is why, since with them it might have had a place."""
    if reason is None:
        return {"state": RatedState.RATED.value, "n_pairs_rated": n_pairs}
    if is_held_back:
        return {"state": RatedState.BLOCKED.value, "reason": RatingReason.UNJUDGED.value}
    return {"state": RatedState.NOT_RATED.value, "reason": reason.value}


def _counted(parts: pl.DataFrame, names: Sequence[Checkpoint], ends: Counts, is_under: Flags) -> list[Row]:
    """Every checkpoint's row with the counts of all its pairs, those under the floor among them."""
    n, columns = len(names), {name: parts[name].to_numpy() for name in (*_COUNTED, "prompt")}
    one, other = ends[parts["meeting"].to_numpy()].T
    ties = columns["n_tie"] + columns["n_order_dependent"]
    found = {
        name: np.bincount(one, forth, n) + np.bincount(other, back, n)
        for name, forth, back in (
            ("n_pairs", columns["n"], columns["n"]), ("n_win", columns["n_win"], columns["n_loss"]), ("n_tie", ties, ties),
            ("n_loss", columns["n_loss"], columns["n_win"]), ("n_pairs_asked", columns["n_pairs"], columns["n_pairs"]),
            ("n_said", columns["n_said"], columns["n_said"]), ("n_asked", columns["n_asked"], columns["n_asked"]),
        )
    }  # fmt: skip
    judged, both = np.tile(columns["n"] > 0, 2), np.concatenate([one, other])
    under = np.tile(is_under[parts["meeting"].to_numpy()], 2)
    for name, values, which in (
        ("n_opponents", np.concatenate([other, one]), judged), ("n_prompts", np.tile(columns["prompt"], 2), judged),
        ("n_opponents_blocked", np.concatenate([other, one]), under),
    ):  # fmt: skip
        width = values.max(initial=0) + 1
        found[name] = np.bincount(np.unique(both[which] * width + values[which]) // width, minlength=n)
    coverage = found.pop("n_said") / found.pop("n_asked")
    return [
        {"model": model, "checkpoint": checkpoint, "ci_level": LEVEL, "coverage": float(coverage[k])}
        | {name: int(counts[k]) for name, counts in found.items()}
        for k, (model, checkpoint) in enumerate(names)
    ]


def _tallied(parts: pl.DataFrame, ends: Counts) -> tuple[Tallied, Counts]:
    """The judged pairs' sums on each prompt, and how many pairs each row is made of."""
    judged = parts.filter(pl.col("n") > 0)
    one, other = ends[judged["meeting"].to_numpy()].T
    won, tied, lost = (_category_weights(judged) * judged[name].to_numpy() for name in PARTS)
    prompt, category = judged["prompt"].to_numpy(), judged["category"].to_numpy()
    return Tallied(one, other, prompt, category, won, tied, lost), judged["n"].to_numpy().astype(np.int64)


def _category_weights(judged: pl.DataFrame) -> Floats:
    """What a pair of pictures weighs so that each category weighs the same and all together their number."""
    each = pl.col("n").sum()
    weights = judged.select(each / (pl.col("category").n_unique() * each.over("category")))
    return np.asarray(weights.to_series().to_numpy(), dtype=np.float64)


def _crossed(tallied: Tallied, n: int, forth: Floats, back: Floats) -> Floats:
    """The sums of each checkpoint (row) against each other (column)."""
    cells = np.concatenate([tallied.one * n + tallied.other, tallied.other * n + tallied.one])
    sums: Floats = np.bincount(cells, np.concatenate([forth, back]), n * n).astype(np.float64)
    return sums.reshape(n, n)


def _add_ratings(rows: Sequence[Row], fit: Fit, anchor: int | None) -> None:
    """Points, standard errors and intervals, measured from the anchor (None: from the mean of the rated)."""
    n = len(rows)
    of_anchor = n if anchor is None else anchor
    ratings = (fit.strengths - np.append(fit.strengths, 0.0)[of_anchor]) * POINTS  # the mean, which is 0, is the last
    name = MEAN_ANCHOR if anchor is None else f"{rows[anchor]['model']}/{rows[anchor]['checkpoint']}"
    for place, row in enumerate(rows):
        row |= {
            "rating": _rounded(ratings[place]),
            "anchor": name,
            "tie_parameter": None if fit.tie_parameter is None else _rounded(fit.tie_parameter),
        }
        if fit.errors is None:
            row["reason"] = RatingReason.TOO_FEW_PROMPTS.value
            continue
        se, df = _rounded(np.sqrt(fit.errors.variances[place, of_anchor]) * POINTS), _rounded(fit.errors.df[place, of_anchor])
        if se <= _STILL * POINTS and place != anchor:
            row["reason"] = RatingReason.NO_VARIATION.value
            continue
        half = t_quantile(LEVEL, df) * se
        row |= {"se": se, "df": df, "ci_low": _rounded(ratings[place] - half), "ci_high": _rounded(ratings[place] + half),
                "ci_method": CI_METHOD}  # fmt: skip


def _compared(rows: Sequence[Row], fit: Fit, is_unsaid: Flags) -> Iterator[Row]:
    """Every two ratings of which something may be said, as families.corrected() takes comparisons; none without errors."""
    if fit.errors is None:
        return
    errors = np.sqrt(fit.errors.variances)
    for i, j in combinations(range(len(rows)), 2):
        if is_unsaid[i, j]:
            continue
        delta, se = float(fit.strengths[i] - fit.strengths[j]), float(errors[i, j])
        p = 1.0 if se <= _STILL else rounded(2 * float(scipy.special.stdtr(fit.errors.df[i, j], -abs(delta) / se)))
        yield {
            "family": Family.RATINGS,
            "category": None,
            "delta": delta,
            "delta_bound_low": delta,
            "delta_bound_high": delta,
            "p": p,
        } | {f"{name}_{end}": rows[place][name] for end, place in (("a", i), ("b", j)) for name in ("model", "checkpoint")}


def _rounded(value: float) -> float:
    """To 9 digits after the point: the last ones differ between processors, published bytes may not."""
    return round(float(value), 9) + 0.0


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
