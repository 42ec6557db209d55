"""Rows of `preference_ratings`: strengths on a scale of points, their intervals, and what ranks rest on."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
import polars as pl
import scipy  # its parts are imported where they are first used

from schemas.statuses import RatedState, RatingReason
from tasks.aggregate.families import Family
from tasks.aggregate.intervals import LEVEL, Floats, t_quantile
from tasks.aggregate.preferences.connected import rateable, ties_are_estimable
from tasks.aggregate.preferences.davidson import Fit, Tallied, fitted
from tasks.aggregate.preferences.prompts import PAIR, Checkpoint, by_prompt

Row = dict[str, object]
POINTS = 400 / float(np.log(10))
"""Points of one unit of log-odds: 400 points are odds of 10 to 1."""

MEAN_ANCHOR = "__mean__"
CI_METHOD = "sandwich_t_prompts"
_TINY = 1e-9


def rated(pairs: pl.DataFrame, baseline: str | None) -> tuple[list[Row], list[Row]]:
    """Ratings from the valued pairs of one rubric and judge (or all its judges), and every two of them, not corrected yet.

    A pair whose orders disagree counts as a tie; each category weighs the same. Points are those above the baseline where it is
    rated, else above the mean of the rated.
    """
    names, rows, tallied = _tallied(pairs)
    anchor = next((place for place, one in enumerate(names) if "/".join(one) == baseline), None)
    wins, ties = _crossed(tallied, tallied.win, tallied.loss), _crossed(tallied, tallied.tie, tallied.tie)
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


def _tallied(pairs: pl.DataFrame) -> tuple[list[Checkpoint], list[Row], Tallied]:
    """Every checkpoint of the pairs in the order of its name, its row's counts, and the judged ones' sums on each prompt."""
    sums = by_prompt(pairs, *PAIR, "category")
    ends = [pl.struct(model=f"model_{end}", checkpoint=f"checkpoint_{end}") for end in "ab"]
    known = pl.concat([sums.select(name=end) for end in ends]).unique().sort("name")["name"]
    names: list[Checkpoint] = [(one["model"], one["checkpoint"]) for one in known]
    rows: list[Row] = [{"model": one[0], "checkpoint": one[1], "ci_level": LEVEL} for one in names]
    numbers = pl.DataFrame({"name": known, "place": range(len(names))}, schema_overrides={"place": pl.Int64})
    judged = sums.filter(pl.col("n") > 0)
    places = [
        judged.select(name=end).join(numbers, on="name", how="left", maintain_order="left")["place"].to_numpy() for end in ends
    ]
    counts = {name: judged[name].to_numpy() for name in ("n", "n_win", "n_loss", "n_tie", "n_order_dependent")}
    ties = counts["n_tie"] + counts["n_order_dependent"]
    prompts = judged["prompt_id"].rank("dense").to_numpy().astype(np.int64) - 1
    weights = _category_weights(judged)
    tallied = Tallied(places[0], places[1], prompts, weights * counts["n_win"], weights * ties, weights * counts["n_loss"])
    for turn, mine in enumerate(places):
        won, lost = ("n_win", "n_loss") if not turn else ("n_loss", "n_win")
        for column, values in (("n_pairs", counts["n"]), ("n_win", counts[won]), ("n_tie", ties), ("n_loss", counts[lost])):
            for row, total in zip(rows, np.bincount(mine, values, len(names)), strict=True):
                row[column] = int(str(row.get(column, 0))) + int(total)
    for column, values in (("n_opponents", places[::-1]), ("n_prompts", (prompts, prompts))):
        found = np.unique(np.stack([np.concatenate(places), np.concatenate(values)]), axis=1)
        for row, total in zip(rows, np.bincount(found[0], minlength=len(names)), strict=True):
            row[column] = int(total)
    return names, rows, tallied


def _category_weights(judged: pl.DataFrame) -> Floats:
    """What a pair of pictures weighs so that each category weighs the same and all together their number."""
    each = pl.col("n").sum()
    weights = judged.select(each / (pl.col("category").n_unique() * each.over("category")))
    return np.asarray(weights.to_series().to_numpy(), dtype=np.float64)


def _crossed(tallied: Tallied, forth: Floats, back: Floats) -> Floats:
    """The sums of each checkpoint (row) against each other (column)."""
    n = int(max(tallied.one.max(initial=-1), tallied.other.max(initial=-1))) + 1
    found = np.zeros((n, n))
    np.add.at(found, (tallied.one, tallied.other), forth)
    np.add.at(found, (tallied.other, tallied.one), back)
    return found


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
        row |= {"rating": _rounded(ratings[place]), "anchor": name, "tie_parameter": fit.tie_parameter}
        if errors is None:
            row["reason"] = RatingReason.TOO_FEW_PROMPTS.value
            continue
        df, se = float(fit.n_prompts - 1), _rounded(errors[place])
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
        p = 1.0 if se <= _TINY else float(f"{2 * float(scipy.special.stdtr(df, -abs(delta) / se)):.12g}")
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
