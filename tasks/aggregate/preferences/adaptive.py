"""Which two checkpoints to ask about next, and when enough was asked: rules that hold however often one looks.

What is known is evidence.py, the published rows win_rates.py. Nothing is planned or asked here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from schemas.lineage import Checkpoint, Lineage
from schemas.statuses.cells import ComparisonVerdict, Total
from tasks.aggregate.comparisons.families import ALPHA, could_be_turned
from tasks.aggregate.preferences.cells import Cell, cells_of
from tasks.aggregate.preferences.evidence import WATCHED, Evidence, Plan, evidence_of, log_capital
from tasks.aggregate.preferences.prompts import MIDDLE, PAIR, by_prompt, opens_category, pairs_of
from tasks.aggregate.preferences.win_rates import to_correct


@dataclass(frozen=True, slots=True)
class Watch:
    """What is known of one comparison so far.

    `p` holds at any time; `value` is what one more prompt is expected to bring of the evidence that is still missing, 0 where it
    is decided or no prompt is left: ask the highest next. `is_complete`: no prompt of the plan is left; `n_prompts` have
    a verdict.
    """

    pair: tuple[Checkpoint, Checkpoint]
    is_decided: bool
    value: float
    verdict: ComparisonVerdict
    win_rate: float | None
    p: float
    n_prompts: int
    is_complete: bool


def next_comparisons(
    verdicts: pl.DataFrame,
    targets: Sequence[tuple[Checkpoint, Checkpoint]],
    plan: Plan,
    n_family: int | None = None,
    min_paired_prompts: int = 5,
    min_coverage: float = 0.0,
    failures: str = "worst_case",
) -> list[Watch]:
    """What is known of each target, in their order, from the verdicts of one rubric, judge and dimension so far.

    Take prompts in one seeded order, ask the targets with the highest `value` about the next batch, stop a target that is
    decided, and come back as often as you like: at 5 % for all `n_family` comparisons (default: the targets) at once no equal
    pair is called different. `n_family` is how many the published table will hold; with fewer than `min_paired_prompts` in a
    category, or under `min_coverage` (both the benchmark file's), nothing is decided, as nothing would be published; nor where
    missing verdicts could turn it, unless `failures` (the file's) are "at_random".
    """
    pairs = pairs_of(verdicts, None, Lineage())
    parts = by_prompt(pairs.frame, "meeting", "category")
    cells = cells_of(parts, pairs.categories, list(plan.weights))
    evidence = evidence_of(parts, pairs, plan)
    places = {frozenset({one.a, one.b}): number for number, one in enumerate(pairs.meetings)}
    alpha = ALPHA / (n_family or max(1, len(targets)))
    found = []
    for pair in targets:
        number = places.get(frozenset(pair), -1)
        is_turned = number >= 0 and pairs.meetings[number].a != pair[0]
        cell = cells.get(number, {}).get(Total.MACRO.value)
        is_enough = cell is not None and cell.fewest >= min_paired_prompts and cell.coverage >= min_coverage
        rate = alpha if is_enough else 0.0
        mean, bounds = (cell.mean, cell.bounds) if cell else (None, ())
        can_turn = failures == "worst_case" and mean is not None and could_be_turned(to_correct(mean, bounds))
        found.append(_watch(pair, cell, evidence.get(number), rate, is_turned=is_turned, can_turn=can_turn))
    return found


def _watch(
    pair: tuple[Checkpoint, Checkpoint], cell: Cell | None, evidence: Evidence | None, alpha: float,
    *, is_turned: bool, can_turn: bool,
) -> Watch:  # fmt: skip
    known = Evidence(np.zeros(0), np.zeros(0), 1.0, is_complete=False) if evidence is None else evidence
    mean = cell.mean if cell else None
    p = 1.0 if mean is None else known.p(mean)
    win_rate = None if mean is None else 1 - mean.mean if is_turned else mean.mean
    verdict = ComparisonVerdict.OPEN
    if p < alpha and win_rate is not None:
        verdict = ComparisonVerdict.HIGHER if win_rate > MIDDLE else ComparisonVerdict.LOWER
        verdict = ComparisonVerdict.FAILURES_COULD_TURN_IT if can_turn else verdict
    is_decided = verdict in (ComparisonVerdict.HIGHER, ComparisonVerdict.LOWER)
    value = 0.0 if is_decided or known.is_complete else _value(known, alpha or ALPHA)
    return Watch(pair, is_decided, value, verdict, win_rate, p, cell.n_prompts if cell else 0, known.is_complete)


_LEAST_MISSING = 0.1
"""Of the logarithm of the capital: where evidence is enough, and missing verdicts could turn it, a prompt brings no more."""


def _value(known: Evidence, alpha: float) -> float:
    """What share of the missing evidence one more prompt brings, if the win rate is as far off as it may well be.

    Capital grows by about δ²/2σ² a prompt at the best stake (Kelly 1956); δ² is the square seen and its sampling error.
    """
    values = (known.low + known.high) / 2
    n = len(values)
    missing = math.log(1 / (WATCHED * alpha)) - log_capital(known.low, known.high, MIDDLE)
    variance = (float(((values - MIDDLE) ** 2).sum()) + 1 / 4) / (n + 1)
    off = (float(values.mean()) - MIDDLE) ** 2 if n else 0.0
    return (off + variance / (n + 1)) / (2 * variance) / max(missing, _LEAST_MISSING)


def plans_of(planned: pl.DataFrame) -> dict[tuple[str, str], Plan]:
    """By rubric and judge the plan, from verdicts on all that was planned, those not asked among them (`is_asked`)."""
    found = {}
    for (rubric_id, judge), mine in planned.group_by("rubric_id", "judge_model"):
        some = mine.filter(opens_category(mine))
        by_category = (mine if some.is_empty() else some).select("category", "prompt_id").unique().group_by("category").len()
        left = mine.group_by(*PAIR).agg(pl.col("is_asked").all()).filter("is_asked")
        exhausted = [((a, x), (b, y)) for a, x, b, y in left.select(PAIR).iter_rows()]
        found[str(rubric_id), str(judge)] = Plan(dict(by_category.iter_rows()), exhausted)
    return found
