"""The table `standings`: who has a rank in which ranking, who has none and why, and the differences beside it.

What is compared with what is comparisons.py. Everything that is shown of ranks, colours and words is these rows.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

import numpy as np

from schemas.benchmark.file import Statistics
from schemas.lineage import Lineage
from schemas.metrics import BOARD
from schemas.statuses.cells import (
    CellReason,
    CellStatus,
    ComparisonKind,
    ComparisonReason,
    ComparisonVerdict,
    Failing,
    StandingState,
    Total,
)
from schemas.tables.table import Row
from tasks.aggregate.comparisons.comparisons import Contestant, ranking_categories, strata_names

_DIFFERENCES = {
    ComparisonKind.PREDECESSOR.value: "predecessor",
    ComparisonKind.BASELINE.value: "baseline",
}
_BESIDE = {"": "delta", "_low": "ci_low_adjusted", "_high": "ci_high_adjusted"}


def standing_rows(
    contestants: Sequence[Contestant],
    compared: Sequence[Row],
    expected: frozenset[str],
    statistics: Statistics,
    lineage: Lineage,
) -> Iterator[Row]:
    """A row for each contestant of each ranking of one dimension: its cell, its state and the means over shared prompts.

    Ranks and differences need the corrected comparisons: `ranked` adds them.
    """
    shared: dict[tuple[object, ...], dict[frozenset[Contestant], Row]] = defaultdict(dict)
    known = {(one.judge_model, one.model, one.checkpoint): one for one in contestants}
    for row in compared:
        if row["comparison"] == ComparisonKind.EACH_OTHER:
            ends = frozenset(known[row["judge_model"], row[f"model_{e}"], row[f"checkpoint_{e}"]] for e in "ab")
            shared[row["judge_model"], row["category"]][ends] = row
    for judge, found in groupby(contestants, key=lambda one: one.judge_model):
        mine = list(found)
        for place in sorted({place for one in mine for place in ranking_categories(one.cells)}):
            held = [one for one in mine if place in one.cells]
            for row in _ranking(held, place, shared[judge, place], expected, statistics):
                yield row | {"place": lineage.place((str(row["model"]), str(row["checkpoint"])))}


def _ranking(
    mine: Sequence[Contestant],
    place: str,
    pairs: Mapping[frozenset[Contestant], Row],
    expected: frozenset[str],
    statistics: Statistics,
) -> Iterator[Row]:
    """The rows of one ranking."""
    states = {one: _state(one.cells[place], statistics) for one in mine}
    candidates = [one for one in mine if states[one] is None]
    if len(mine) > statistics.max_ranked:
        states |= dict.fromkeys(candidates, (StandingState.NOT_COMPARED, ComparisonReason.TOO_MANY_TO_RANK.value))
        candidates = []
    kept = _compared_with_all(candidates, pairs)
    for one in candidates:
        if one not in kept:
            why = _why_not(one, candidates, pairs)
            if why == ComparisonReason.ALONE and StandingState.BLOCKED in {state[0] for state in states.values() if state}:
                why = ComparisonReason.BLOCKED.value
            states[one] = StandingState.NOT_COMPARED, why
    means = _over_shared_prompts(kept, place, expected)
    for one in mine:
        state, reason = states[one] or (StandingState.RANKED, None)
        n_shared = [row["n_prompts_paired"] for ends, row in pairs.items() if one in ends]
        yield one.cells[place] | {
            "state": state.value, "reason": reason, "n_prompts_needed": statistics.min_paired_prompts,
            "n_shared_prompts": max(n_shared, default=None),
        } | _weights(one, place, expected) | means.get(one, {})  # fmt: skip


def _weights(one: Contestant, place: str, expected: frozenset[str]) -> Row:
    """How many categories its total weighs the same, and how many prompts they bring; nothing where it is of one alone."""
    n_prompts = {name: part.n_prompts for name in strata_names(one, place, expected) if (part := one.part(name))}
    if place != Total.MACRO or len(n_prompts) < 2:
        return {}
    fewest, smallest = min((n, name) for name, n in n_prompts.items())
    return {
        "n_categories": len(n_prompts), "n_prompts_smallest_category": fewest, "smallest_category": smallest,
        "n_prompts_largest_category": max(n_prompts.values()),
    }  # fmt: skip


def _state(cell: Row, statistics: Statistics) -> tuple[StandingState, str] | None:
    """Why a cell is no candidate for a rank; None where it is one."""
    if cell["status"] == CellStatus.BLOCKED:
        return StandingState.BLOCKED, str(cell["reason"])
    if cell["estimate"] is None:
        return StandingState.NOT_COMPARED, str(cell["reason"])
    if cell["reason"] == CellReason.TOO_FEW_PROMPTS or cell["n_prompts"] < statistics.min_paired_prompts:
        return StandingState.TOO_FEW, CellReason.TOO_FEW_PROMPTS.value
    return None


def _compared_with_all(candidates: Sequence[Contestant], pairs: Mapping[frozenset[Contestant], Row]) -> list[Contestant]:
    """Those that were compared with one another, every two: a rank among others says something of each of them.

    While two were not, the one with the most such gaps goes (of equals the one with fewer prompts, then the later name).
    None where one alone is left.
    """
    kept = list(candidates)
    gaps = {ends for ends, row in pairs.items() if row.get("delta") is None and ends <= set(kept)}
    while gaps:
        n_gaps = Counter(one for ends in gaps for one in ends)
        first = max(n_gaps, key=lambda one: (n_gaps[one], -one.tally.n_prompts, one.model, one.checkpoint))
        kept.remove(first)
        gaps = {ends for ends in gaps if first not in ends}
    return kept if len(kept) > 1 else []


def _why_not(one: Contestant, candidates: Sequence[Contestant], pairs: Mapping[frozenset[Contestant], Row]) -> str:
    """The commonest reason among its comparisons with the other candidates; alone where there are none."""
    others = set(candidates) - {one}
    rows = [pairs[frozenset({one, other})] for other in others if frozenset({one, other}) in pairs]
    reasons = Counter(str(row["reason"]) for row in rows if row.get("delta") is None)
    return min(reasons, key=lambda reason: (-reasons[reason], reason)) if reasons else ComparisonReason.ALONE.value


def _over_shared_prompts(kept: Sequence[Contestant], place: str, expected: frozenset[str]) -> dict[Contestant, Row]:
    """For each ranked one its mean over the prompts that are scored for all of them, and whether that changes an order."""
    if not kept:
        return {}
    parts: dict[Contestant, list[float]] = {one: [] for one in kept}
    n_shared, is_whole = 0, True
    for name in strata_names(kept[0], place, expected):
        scored = {one: part.scored for one in kept if (part := one.part(name)) and part.scored is not None}
        prompts = scored[kept[0]][3] if len(scored) == len(kept) else np.empty(0)
        for one in kept[1:] if len(prompts) else ():
            prompts = np.intersect1d(prompts, scored[one][3], assume_unique=True)
        n_shared += len(prompts)
        if not len(prompts):
            is_whole = False
            continue
        for one, (sums, counts, _, mine) in scored.items():
            rows = np.isin(mine, prompts)
            parts[one].append(float(sums[rows].sum()) / int(counts[rows].sum()))
    if not is_whole:  # no mean over all categories is of prompts that all have
        return {one: {"n_shared_prompts": n_shared} for one in kept}
    shared = {one: math.fsum(means) / len(means) for one, means in parts.items()}
    own = {one: one.cells[place]["estimate"] for one in kept}
    return {
        one: {
            "n_shared_prompts": n_shared, "shared_estimate": shared[one],
            "is_reordered": any((own[one] - own[other]) * (shared[one] - shared[other]) < 0 for other in kept),
        }
        for one in kept
    }  # fmt: skip


def ranked(standings: Iterable[Row], comparisons: Sequence[Row]) -> list[Row]:
    """The rows with rank range, differences and what these were corrected with. `comparisons` are the corrected ones."""
    done = [dict(row) for row in standings]
    beside: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in comparisons:
        beside[_ranking_of(row)].append(row)
    by_ranking: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in done:
        by_ranking[_ranking_of(row)].append(row)
    for key, rows in by_ranking.items():
        _place(rows, [row for row in beside[key] if row["comparison"] == ComparisonKind.EACH_OTHER])
        _flag_failing(rows, beside[key])
        for row in rows:
            _add_differences(row, beside[key])
    return done


def _place(rows: Sequence[Row], pairs: Sequence[Row]) -> None:
    """The rank range of each ranked row."""
    placed = {_contestant(row): row for row in rows if row["state"] == StandingState.RANKED}
    for one, ranks in rank_ranges(placed, pairs).items():
        placed[one] |= ranks


def _flag_failing(rows: Sequence[Row], compared: Iterable[Row]) -> None:
    """Who fails unequally in any kind of comparison, as there are too many to rank; null where failures were not tested."""
    is_failing: dict[tuple[object, object], bool] = defaultdict(bool)
    for pair in compared:
        for end in "ab" if pair.get("has_unequal_failures") is not None else "":
            is_failing[pair[f"model_{end}"], pair[f"checkpoint_{end}"]] |= pair["failing"] in (end, Failing.BOTH)
    for row in rows:
        row["has_unequal_failures"] = is_failing.get(_contestant(row))


def rank_ranges(placed: Iterable[tuple[object, object]], pairs: Iterable[Row]) -> dict[tuple[object, object], Row]:
    """Best and worst rank of each (model, checkpoint) placed: another is above it only where a corrected comparison says so."""
    n_above = dict.fromkeys(placed, 0)
    n_below = dict.fromkeys(n_above, 0)
    for pair in pairs:
        a, b = ((pair[f"model_{end}"], pair[f"checkpoint_{end}"]) for end in "ab")
        if a in n_above and b in n_above and pair.get("verdict") in (ComparisonVerdict.HIGHER, ComparisonVerdict.LOWER):
            better, worse = (a, b) if pair["verdict"] == ComparisonVerdict.HIGHER else (b, a)
            n_above[worse] += 1
            n_below[better] += 1
    n = len(n_above)
    return {one: {"rank_low": 1 + n_above[one], "rank_high": n - n_below[one], "n_ranked": n} for one in n_above}


def _add_differences(row: Row, compared: Sequence[Row]) -> None:
    for pair in compared:
        name = _DIFFERENCES.get(str(pair["comparison"]))
        if name is None or not _is_in(row, pair, "a"):
            continue
        other = str(pair["checkpoint_b"])
        row[name] = other if name == "predecessor" else f"{pair['model_b']}/{other}"
        row |= {f"delta_{name}{end}": pair.get(column) for end, column in _BESIDE.items()}
        row |= {
            f"p_{name}": pair.get("p_adjusted"), f"verdict_{name}": pair.get("verdict"), f"reason_{name}": pair.get("reason"),
            f"n_prompts_{name}": pair["n_prompts_paired"], f"n_identical_{name}": pair.get("n_prompts_identical"),
        }  # fmt: skip
    families = [pair for pair in compared if pair.get("family") is not None]
    if len({pair["family"] for pair in families}) > 1:  # each pair is its own: that of a difference above, else of any it is in
        families = sorted((pair for pair in families if _is_in(row, pair, "ab")), key=lambda pair: not _is_beside(row, pair))
    if families:
        row |= {name: families[0][name] for name in ("adjustment", "family", "n_family")}


def _is_beside(row: Row, pair: Row) -> bool:
    return str(pair["comparison"]) in _DIFFERENCES and _is_in(row, pair, "a")


def _is_in(row: Row, pair: Row, ends: str) -> bool:
    return _contestant(row) in {(pair[f"model_{end}"], pair[f"checkpoint_{end}"]) for end in ends}


def _ranking_of(row: Row) -> tuple[object, ...]:
    return (*(row[name] for name in BOARD), row["category"])


def _contestant(row: Row) -> tuple[object, object]:
    return row["model"], row["checkpoint"]
