"""Rows of `preference_ratings`: strengths on a scale of points, their intervals, and what ranks rest on."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy  # its parts are imported where they are first used

from schemas.statuses.cells import RatedState, RatingReason
from tasks.aggregate.comparisons.families import Family
from tasks.aggregate.intervals import LEVEL, Floats, rounded, t_quantile
from tasks.aggregate.preferences.davidson import Fit, Tallied, fitted
from tasks.aggregate.preferences.prompts import Checkpoint, Meeting

Row = dict[str, object]
POINTS = 400 / float(np.log(10))
"""Points of one unit of log-odds: 400 points are odds of 10 to 1."""

MEAN_ANCHOR = "__mean__"
CI_METHOD = "sandwich_t_prompts"
_STILL = 1e-6  # of log-odds: the root of what rounding leaves of a variance that is 0


def rated(parts: pl.DataFrame, meetings: Sequence[Meeting], baseline: str | None) -> tuple[list[Row], list[Row]]:
    """Ratings from sums by meeting, category and prompt, of one judge or all; and every two of them, not corrected yet.

    A pair whose orders disagree counts as a tie; each category weighs the same. Points are those above the baseline where it is
    rated, else above the mean of the rated.
    """
    names, rows, tallied = _tallied(parts, meetings)
    anchor = next((place for place, one in enumerate(names) if "/".join(one) == baseline), None)
    n = len(names)
    wins, ties = _crossed(tallied, n, tallied.win, tallied.loss), _crossed(tallied, n, tallied.tie, tallied.tie)
    reasons = rateable(wins + ties / 2, wins + wins.T + ties > 0, anchor)
    core = np.array([reason is None for reason in reasons])
    for row, reason in zip(rows, reasons, strict=True):
        state = RatedState.RATED if reason is None else RatedState.NOT_RATED
        row |= {"state": state.value, "reason": None if reason is None else reason.value}
    if not core.any():
        return rows, []
    kept = core[tallied.one] & core[tallied.other]
    has_ties = ties_are_estimable(wins[np.ix_(core, core)] > 0, float(tallied.tie[kept].sum()))
    fit = fitted(tallied.among(kept), has_ties=has_ties)
    placed = [row for row, is_in in zip(rows, core, strict=True) if is_in]
    held = int(core[:anchor].sum()) if anchor is not None and core[anchor] else None
    _add_ratings(placed, fit, held)
    return rows, list(_compared(placed, fit))


def _tallied(parts: pl.DataFrame, meetings: Sequence[Meeting]) -> tuple[list[Checkpoint], list[Row], Tallied]:
    """Every checkpoint of the parts in the order of its name, its row's counts, and the judged ones' sums on each prompt."""
    met = [meetings[number] for number in parts["meeting"].unique().sort()]
    names = sorted({end for one in met for end in (one.a, one.b)})
    judged = parts.filter(pl.col("n") > 0)
    place = {one: number for number, one in enumerate(names)}
    ends = np.array([(place.get(one.a, -1), place.get(one.b, -1)) for one in meetings], dtype=np.int64).reshape(-1, 2)
    one, other = ends[judged["meeting"].to_numpy()].T
    counts = {name: judged[name].to_numpy() for name in ("n", "n_win", "n_loss", "n_tie", "n_order_dependent", "prompt")}
    ties, weights = counts["n_tie"] + counts["n_order_dependent"], _category_weights(judged)
    tallied = Tallied(one, other, counts["prompt"], weights * counts["n_win"], weights * ties, weights * counts["n_loss"])

    n, both = len(names), np.concatenate([one, other])
    columns = {
        name: np.bincount(one, forth, n) + np.bincount(other, back, n)
        for name, forth, back in (
            ("n_pairs", counts["n"], counts["n"]), ("n_win", counts["n_win"], counts["n_loss"]), ("n_tie", ties, ties),
            ("n_loss", counts["n_loss"], counts["n_win"]),
        )
    } | {
        name: np.bincount(np.unique(both * (values.max(initial=0) + 1) + values) // (values.max(initial=0) + 1), minlength=n)
        for name, values in (("n_opponents", np.concatenate([other, one])), ("n_prompts", np.tile(counts["prompt"], 2)))
    }  # fmt: skip
    rows: list[Row] = [
        {"model": model, "checkpoint": checkpoint, "ci_level": LEVEL} | {name: int(found[k]) for name, found in columns.items()}
        for k, (model, checkpoint) in enumerate(names)
    ]
    return names, rows, tallied


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
    from_anchor = np.eye(n) - (1 / n if anchor is None else np.eye(n)[anchor])
    ratings = from_anchor @ fit.strengths * POINTS
    errors = None
    if fit.covariance is not None:
        errors = np.sqrt(np.maximum(0.0, np.einsum("ij,jk,ik->i", from_anchor, fit.covariance, from_anchor))) * POINTS
    name = MEAN_ANCHOR if anchor is None else f"{rows[anchor]['model']}/{rows[anchor]['checkpoint']}"
    for place, row in enumerate(rows):
        row |= {
            "rating": _rounded(ratings[place]),
            "anchor": name,
            "tie_parameter": None if fit.tie_parameter is None else _rounded(fit.tie_parameter),
        }
        if errors is None:
            row["reason"] = RatingReason.TOO_FEW_PROMPTS.value
            continue
        if errors[place] <= _STILL * POINTS and place != anchor:
            row["reason"] = RatingReason.NO_VARIATION.value
            continue
        df, se = float(fit.n_prompts - 1), _rounded(errors[place] if place != anchor else 0.0)
        half = t_quantile(LEVEL, df) * se
        row |= {"se": se, "df": df, "ci_low": _rounded(ratings[place] - half), "ci_high": _rounded(ratings[place] + half),
                "ci_method": CI_METHOD}  # fmt: skip


def _compared(rows: Sequence[Row], fit: Fit) -> Iterator[Row]:
    """Every two ratings, as families.corrected() takes comparisons; none where nothing is known of their errors."""
    if fit.covariance is None:
        return
    diagonal, df = np.diag(fit.covariance), float(fit.n_prompts - 1)
    errors = np.sqrt(np.maximum(0.0, diagonal[:, None] + diagonal[None, :] - 2 * fit.covariance))
    for i, j in combinations(range(len(rows)), 2):
        delta, se = float(fit.strengths[i] - fit.strengths[j]), float(errors[i, j])
        p = 1.0 if se <= _STILL else rounded(2 * float(scipy.special.stdtr(df, -abs(delta) / se)))
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


Flags = npt.NDArray[np.bool_]


def rateable(points: Floats, judged: Flags, anchor: int | None) -> list[RatingReason | None]:
    """For each checkpoint None where it has a finite strength beside the others that have one, else why it has none.

    `points[i, j]` is what i has won against j, ties half; `judged` whether the two were judged at all; both (n, n). A maximum of
    the likelihood exists among those from each of whom points lead to every other (Ford, Amer. Math. Monthly 64, 1957). Of
    several such groups the one with the anchor is rated, if it has two members, else the largest (of equals the first).
    """
    n = len(points)
    _, islands = scipy.sparse.csgraph.connected_components(scipy.sparse.csr_array(judged), directed=False)
    _, groups = scipy.sparse.csgraph.connected_components(scipy.sparse.csr_array(points > 0), directed=True, connection="strong")
    size = np.bincount(groups)[groups]
    chosen = groups[int(np.argmax(size))] if anchor is None or size[anchor] < 2 else groups[anchor]
    core: Flags = np.asarray(groups == chosen)
    if core.sum() < 2:
        return [RatingReason.SEPARATED if any_judged else RatingReason.NOT_JUDGED for any_judged in judged.sum(axis=1).tolist()]
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
    _, groups = scipy.sparse.csgraph.connected_components(scipy.sparse.csr_array(wins), directed=True, connection="strong")
    return ties > 0 and bool((np.bincount(groups) > 1).any())
