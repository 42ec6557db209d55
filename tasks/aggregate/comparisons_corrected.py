"""The p of a family corrected for their number, and the rank ranges that follow. The tests are comparisons_paired.py."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import false_discovery_control

from schemas.benchmark import Statistics
from schemas.statuses import ComparisonKind, Correction

Row = dict[str, object]


def corrected(rows: Sequence[Row], statistics: Statistics) -> list[Row]:
    """The comparisons of one rubric with p_adjusted, adjustment, family and n_family; a row without p belongs to no family."""
    families: dict[str, list[Row]] = defaultdict(list)
    done = [dict(row) for row in rows]
    for row in done:
        if row.get("p") is not None:
            families[family_of(row, statistics)].append(row)
    for family, members in families.items():
        adjusted = adjust([float(str(row["p"])) for row in members], statistics.correction)
        for row, p in zip(members, adjusted, strict=True):
            row |= {
                "p_adjusted": p, "adjustment": statistics.correction.value, "family": family, "n_family": len(members),
            }  # fmt: skip
    return done


def family_of(row: Mapping[str, object], statistics: Statistics) -> str:
    """What is corrected together: each ranking for `each_other`; else a kind's whole table, or each two checkpoints alone."""
    parts = [row["comparison"], row["rubric_id"], row["judge_model"]]
    if row["comparison"] == ComparisonKind.EACH_OTHER:
        parts += [row["dimension"], row["category"]]
    elif statistics.family == "pair":
        parts += [row["model_a"], row["checkpoint_a"], row["model_b"], row["checkpoint_b"]]
    return " | ".join(str(part) for part in parts)


def adjust(p: Sequence[float], correction: Correction) -> list[float]:
    """Holm's (1979) step-down p, or Benjamini and Hochberg's (1995) step-up p, in the order given."""
    if correction is Correction.BENJAMINI_HOCHBERG:
        return [float(value) for value in false_discovery_control(list(p), method="bh")]
    order = np.argsort(p, kind="stable")
    steps = np.asarray(p)[order] * np.arange(len(p), 0, -1)
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return [float(value) for value in adjusted]


def rank_ranges(
    contestants: Sequence[tuple[str, str]], rows: Sequence[Row], alpha: float
) -> dict[tuple[str, str], tuple[int, int]]:
    """Best and worst rank of each (model, checkpoint) of one ranking that has an estimate.

    A better one counts only where the corrected comparison says so; where there is no comparison nothing is said.
    """
    n_above, n_below = dict.fromkeys(contestants, 0), dict.fromkeys(contestants, 0)
    for row in rows:
        p, delta = row.get("p_adjusted"), row.get("delta")
        if p is None or delta is None or float(str(p)) >= alpha:
            continue
        a, b = (str(row["model_a"]), str(row["checkpoint_a"])), (str(row["model_b"]), str(row["checkpoint_b"]))
        better, worse = (a, b) if float(str(delta)) > 0 else (b, a)
        n_above[worse] += 1
        n_below[better] += 1
    return {one: (1 + n_above[one], len(contestants) - n_below[one]) for one in contestants}
