"""What is corrected together: p, interval and verdict of every comparison. How two cells are compared is comparison_tests.py."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

import numpy as np

from schemas.benchmark.file import Statistics
from schemas.statuses.cells import ComparisonVerdict, Correction, Failing
from schemas.tables.table import Row
from tasks.aggregate.intervals import t_quantile
from tasks.aggregate.sequential import Look

ALPHA = 0.05
_DECIDED = (ComparisonVerdict.HIGHER.value, ComparisonVerdict.LOWER.value)


class Family(StrEnum):
    """Which comparisons are meant to be read together; the first word of the column family."""

    HEADLINE = "headline"  # primary: the rankings of primary dimensions, all that the benchmark makes claims of
    ASPECTS = "aspects"  # exploratory, as the next: the rankings of the other dimensions
    CATEGORIES = "categories"  # single categories, and means over images, of dimensions that are ranked by another figure
    PREFERENCES = "preferences"  # primary: total win rates of pairs of pictures
    RATINGS = "ratings"  # primary: every two ratings, for the ranks that rest on pairs of pictures


_PRIMARY = (Family.HEADLINE, Family.PREFERENCES, Family.RATINGS)


def corrected(rows: Sequence[Row], benchmark: str, statistics: Statistics, n_family: int = 0) -> list[Row]:
    """All comparisons of a benchmark with p, interval and failures corrected, and the verdict that follows from them.

    A row comes with its Family in `family` and leaves with the family's whole name. Two checkpoints in one cell are one
    comparison, however many kinds of rows it stands in; a row without p belongs to no family. `n_family`: how many
    tests each family has at least, where not all of them are among the rows yet.
    """
    families: dict[str, dict[tuple[object, ...], list[Row]]] = defaultdict(lambda: defaultdict(list))
    done = [dict(row) for row in rows]
    for row in done:
        families[_name(row, benchmark, statistics)][_pair(row)].append(row)
    for name, pairs in families.items():
        _correct(name, list(pairs.values()), statistics, n_family)
    return done


def _correct(name: str, pairs: Sequence[list[Row]], statistics: Statistics, n_family: int) -> None:
    tested = [rows for rows in pairs if rows[0].get("p") is not None]
    to_come = [1.0] * (n_family - len(tested))
    p_adjusted = adjust([*(rows[0]["p"] for rows in tested), *to_come], statistics.correction)
    level = interval_level(p_adjusted, statistics.correction)
    for rows, p in zip(tested, p_adjusted, strict=False):
        for row in rows:
            row.update({"p_adjusted": p, "adjustment": statistics.correction.value, "n_family": len(p_adjusted)})
            row.update(_interval(row, _at(row, level)))
            row.update(_bound_interval(row, _at(row, level)))
            row["verdict"] = _verdict(row, statistics).value
    _flag_failures([rows for rows in pairs if rows[0].get("p_failures") is not None])
    for row in (row for rows in pairs for row in rows):
        has_p = row.get("p") is not None
        row |= {"is_primary": row["family"] in _PRIMARY if has_p else None, "family": name if has_p else None}


def _flag_failures(pairs: Sequence[list[Row]]) -> None:
    """Which pairs fail unequally, or where scores are low; half of ALPHA for each question. `failing` says who.

    Failures that several dimensions share are one test, and one that could never be found, for so few failures, is none.
    """
    rates = {_rate_test(rows[0]): rows[0]["p_failures_least"] for rows in pairs}
    n_rates = n_attainable(list(rates.values()), ALPHA / 2)
    n_low = sum(rows[0]["p_failures_low"] is not None for rows in pairs)
    for rows in pairs:
        p, low = rows[0]["p_failures"], rows[0]["p_failures_low"]
        for row in rows:
            ends = {row["fails_more"]} if p * n_rates < ALPHA / 2 else set()
            ends |= {row["fails_low"]} if low is not None and low * n_low < ALPHA / 2 else set()
            row["has_unequal_failures"] = bool(ends)
            row["failing"] = Failing.BOTH.value if len(ends) == 2 else next(iter(ends), None)


def _rate_test(row: Row) -> tuple[object, ...]:
    """What makes the sign test of a pair's failures another than that of the same pair in another dimension."""
    named = (row["rubric_id"], row["judge_model"], row["category"], *sorted(_both(row)))
    return (*named, row["p_failures"], row["p_failures_least"])


def n_attainable(least: Sequence[float], alpha: float) -> int:
    """What exact p are multiplied with: the smallest K with no more than K tests that can come under alpha / K (Tarone 1990)."""
    return next(k for k in range(1, len(least) + 2) if sum(p <= alpha / k for p in least) <= k)


def adjust(p: Sequence[float], correction: Correction) -> list[float]:
    """Bonferroni's p, or Benjamini and Hochberg's (1995) step-up p, in the order given."""
    if correction is Correction.BENJAMINI_HOCHBERG and p:
        from scipy.stats import false_discovery_control  # a second to import, for this alone

        return [float(value) for value in false_discovery_control(list(p), method="bh")]
    return [float(value) for value in np.minimum(1.0, np.asarray(p) * len(p))]


def interval_level(p_adjusted: Sequence[float], correction: Correction) -> float:
    """The level of each interval of a family, such that it leaves 0 out exactly where p_adjusted is under ALPHA.

    Bonferroni: 1 - α/m, all m hold together in 95 % of families. Benjamini and Hochberg: 1 - Rα/m with R differences found, so
    that of the intervals of those found at most 5 % miss on average (Benjamini & Yekutieli 2005).
    """
    n_found = sum(p < ALPHA for p in p_adjusted) if correction is Correction.BENJAMINI_HOCHBERG else 1
    return 1 - ALPHA * max(1, n_found) / max(1, len(p_adjusted))


def _at(row: Row, level: float) -> float:
    """The level an interval needs where the row is of one look of several."""
    look = row.get("at")
    return look.level(level) if isinstance(look, Look) else level


def _interval(row: Row, level: float) -> Row:
    if row.get("ci_low") is None:  # an exact test has p and no interval
        return {}
    if "ends_at" in row:  # of an interval that is not delta ± t · se
        low, high = row["ends_at"](level)
        return {"ci_low_adjusted": low, "ci_high_adjusted": high}
    half = t_quantile(level, row["df"]) * row["se"]
    delta, width = row["delta"], row["width"]
    return {"ci_low_adjusted": max(-width, delta - half), "ci_high_adjusted": min(width, delta + half)}


def _bound_interval(row: Row, level: float) -> Row:
    """The corrected interval of what failures may have made of delta: of delta itself where nothing failed."""
    own = {"delta_bound_ci_low": row.get("ci_low_adjusted"), "delta_bound_ci_high": row.get("ci_high_adjusted")}
    if own["delta_bound_ci_low"] is None:  # no interval: delta never varies, and its bounds are taken as they are
        own = {"delta_bound_ci_low": row["delta_bound_low"], "delta_bound_ci_high": row["delta_bound_high"]}
    if "bounds" not in row:
        return own
    low, high = row["bounds"]
    width = row["width"]
    ends = low.mean - t_quantile(level, low.df) * low.se, high.mean + t_quantile(level, high.df) * high.se
    return {
        "delta_bound_ci_low": max(-width, min(own["delta_bound_ci_low"], ends[0])),
        "delta_bound_ci_high": min(width, max(own["delta_bound_ci_high"], ends[1])),
    }


def _verdict(row: Row, statistics: Statistics) -> ComparisonVerdict:
    delta = row["delta"]
    if row["p_adjusted"] >= ALPHA or delta == 0:
        return ComparisonVerdict.OPEN
    if statistics.failures == "worst_case" and could_be_turned(row):
        return ComparisonVerdict.FAILURES_COULD_TURN_IT
    return ComparisonVerdict.HIGHER if delta > 0 else ComparisonVerdict.LOWER


def could_be_turned(row: Mapping[str, Any]) -> bool:
    """Whether delta's sign is another, or none, where every failure is at the worse end of what it can have been for it."""
    if row["delta"] > 0:
        return bool(row["delta_bound_low"] <= 0)
    return bool(row["delta_bound_high"] >= 0)


def _name(row: Mapping[str, Any], benchmark: str, statistics: Statistics) -> str:
    parts = [row["family"]]
    if row["family"] in _PRIMARY and statistics.family == "benchmark":
        parts += [benchmark]
    else:
        parts += [row["rubric_id"], row["judge_model"]]
    if statistics.family == "pair":
        parts += sorted(_both(row))
    return " | ".join(str(part) for part in parts)


def _pair(row: Mapping[str, Any]) -> tuple[object, ...]:
    return (*(row[name] for name in ("rubric_id", "judge_model", "dimension", "category")), *sorted(_both(row)))


def _both(row: Mapping[str, Any]) -> list[str]:
    return [f"{row[f'model_{end}']}/{row[f'checkpoint_{end}']}" for end in "ab"]


def need_no_more(
    rows: Sequence[Row],
    benchmark: str,
    statistics: Statistics,
    n_family: int,
    never_comes: Callable[[Row], bool],
) -> frozenset[str]:
    """Of headline_rows() as they stand now, the checkpoints, as "model/checkpoint", whose comparisons are all decided or futile.

    `n_family`: how many comparisons the published table will correct together, at most. `never_comes`: whether a comparison
    without p will have none on all prompts either; it is not waited for. One that nobody can be compared with is asked on.
    """
    known = corrected([dict(row) for row in rows], benchmark, statistics, n_family)
    known = [row for row in known if row["comparison"] in statistics.stopping.decide]
    known = [row for row in known if row.get("p") is not None or not never_comes(row)]
    waiting = {name for row in known if not _is_over(row, statistics, n_family) for name in _both(row)}
    return frozenset({name for row in known if row.get("p") is not None for name in _both(row)} - waiting)


def _is_over(row: Mapping[str, Any], statistics: Statistics, n_family: int) -> bool:
    """Whether a comparison is decided, or most likely never will be."""
    if row.get("verdict") in _DECIDED:
        return True
    p, look = row.get("p_nominal"), row.get("at")
    if p is None or not isinstance(look, Look):
        return False
    return look.chance(p, ALPHA / max(1, n_family)) < statistics.stopping.futility
