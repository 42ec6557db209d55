"""How standings read: a rank, a difference, why there is none, and the answer in a sentence. Nothing is computed here.

The rows are made in tasks/aggregate/standings.py; terminal, page, Markdown and LaTeX say what these functions say.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from schemas.metrics import ADDRESS, BOARD, natural_key
from schemas.records import UNNAMED
from schemas.statuses.cells import CellReason, CellStatus, ComparisonReason, ComparisonVerdict, Correction, StandingState, Total
from schemas.tables.published import BENCHMARK_LONG, FAILURES, STANDINGS
from schemas.tables.table import Table
from tasks.publish.exam import marks

Row = Mapping[str, Any]
DASH = "–"
EXPLORATORY = ", exploratory"
"""Behind a verdict that is corrected among its own kind alone: many such are looked at, and some are false."""
_N_NAMED = 3  # names in a sentence, models that a sentence is made for: the table has all
_OWN = [name for name in STANDINGS.columns if name not in BENCHMARK_LONG.columns]
_VERDICTS = {
    ComparisonVerdict.HIGHER: "better",
    ComparisonVerdict.LOWER: "worse",
    ComparisonVerdict.OPEN: "can't tell",
    ComparisonVerdict.FAILURES_COULD_TURN_IT: "failures could turn it",
}


def placed(tables: Mapping[Table, pl.DataFrame]) -> pl.DataFrame:
    """The cells of `benchmark_long` with what `standings` says of them (its reason as `standing_reason`), their `failures`.

    And what their judge is `blind_to` in the dimension, as its exam found.

    Null where it says nothing: in a publication from before there was such a table there are estimates and no ranks. Cells
    that are placed already stay so.
    """
    cells = with_failures(tables)
    if "standing_reason" in cells.columns:
        return cells
    known = [STANDINGS.empty(), *(tables[table] for table in (STANDINGS,) if table in tables)]  # of an older one without a column
    beside = pl.concat(known, how="diagonal").select("cell_id", *_OWN, standing_reason="reason")
    placed_ones = cells.join(beside, on="cell_id", how="left", maintain_order="left")
    return placed_ones.join(marks(tables), on=list(BOARD), how="left", maintain_order="left")


def with_failures(tables: Mapping[Table, pl.DataFrame]) -> pl.DataFrame:
    """The cells of `benchmark_long` with a column `failures`: a list of {reason, n_failed}, the commonest first.

    It is what the table `failures` says of the mean at the same address; a publication from before there was that table says
    it as JSON text in the cell.
    """
    cells = tables[BENCHMARK_LONG]
    if "failures" in cells.columns:
        return cells
    key, rows = list(ADDRESS), tables.get(FAILURES, FAILURES.empty())
    if "failures_json" in cells.columns:
        key, told = ["cell_id"], cells.select("cell_id", "failures_json").rows()
        listed = [(cell, word, n) for cell, text in told for word, n in json.loads(text).items()]
        schema = {name: rows.schema[name] for name in ("cell_id", "reason", "n_failed")}
        rows = pl.DataFrame(listed, schema=schema, orient="row")
    ordered = rows.sort("n_failed", "reason", descending=[True, False]).group_by(key, maintain_order=True)
    return cells.join(ordered.agg(failures=pl.struct("reason", "n_failed")), on=key, how="left", maintain_order="left")


def best_first(row: Row) -> tuple[object, ...]:
    """The order within a ranking, wherever rows are listed: by rank range, then by mean, the unranked last; equals by name."""
    estimate, low, high = row["estimate"], row["rank_low"], row["rank_high"]
    ranked = (low is None, low or 0, high or 0, estimate is None, -(estimate or 0.0))
    return *ranked, row["model"], natural_key(row["checkpoint"]), row["checkpoint"]


def rank(row: Row) -> str:
    """Such as "1", or "1–3" where the comparisons leave more than one rank; a dash where it has none."""
    low, high = row["rank_low"], row["rank_high"]
    if low is None:
        return DASH
    return str(low) if low == high else f"{low}–{high}"


def difference(row: Row, other: str, n_digits: int = 2) -> str:
    """The difference to `other` ("predecessor" or "baseline"), such as "+0.42 [0.10, 0.74] better"; empty where none was made."""
    if row[f"delta_{other}"] is None:
        return ""
    return f"{_delta(row, other, n_digits)} {verdict_word(row, other)}".rstrip()


def verdict_word(row: Row, other: str) -> str:
    """What the difference to `other` says, such as "better"; where it was not tested, why."""
    verdict = row[f"verdict_{other}"]
    if verdict is None:
        return str(row[f"reason_{other}"] or "").replace("_", " ")
    is_claim = verdict in (ComparisonVerdict.HIGHER, ComparisonVerdict.LOWER)
    return _VERDICTS[verdict] + (EXPLORATORY if is_claim and is_exploratory(row) else "")


def is_exploratory(row: Row) -> bool:
    """Whether its ranking is none of those that the benchmark makes claims of; unknown, and so false, in older publications."""
    return row.get("is_headline") is False


def _delta(row: Row, other: str, n_digits: int = 2) -> str:
    delta, low, high = (row[f"delta_{other}{end}"] for end in ("", "_low", "_high"))
    return _signed(delta, n_digits) + ("" if low is None else f" [{_signed(low, n_digits)}, {_signed(high, n_digits)}]")


def why(row: Row) -> str:
    """What is missing in a row or keeps it from a rank, and the remedy; empty where nothing is and does."""
    missing = _missing(row)
    if row["status"] == CellStatus.BLOCKED:
        floor = f"{row['coverage_floor']:.1%} needed (gate.min_coverage)"
        return f"blocked: {row['coverage']:.1%} of the judgements have a score, {floor}: {missing}"
    said = [missing] if missing else []
    if row["state"] in (StandingState.TOO_FEW, StandingState.NOT_COMPARED):
        said.append(_no_rank(row))
    if row["is_reordered"]:
        shared = f"{row['shared_estimate']:.2f} over the {row['n_shared_prompts']} prompts that all have"
        said.append(f"{shared}: another order than by all prompts")
    if (row.get("look") or 0) < (row.get("n_looks") or 0):  # as older publications have no looks
        said.append(f"asked up to look {row['look']} of {row['n_looks']}")
    return "; ".join(said)


def weights(rows: Sequence[Row]) -> str:
    """How the totals of a ranking weigh categories that bring unequal numbers of prompts; empty where all bring the same."""
    known = [row for row in rows if row["n_categories"]]
    fewest = min((row["n_prompts_smallest_category"] for row in known), default=0)
    most = max((row["n_prompts_largest_category"] for row in known), default=0)
    if fewest == most:
        return ""
    numbers = sorted({row["n_categories"] for row in known})
    n = str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    each = f", 1/{n} each" if len(numbers) == 1 else ""
    return f"{n} categories weigh the same{each}: the smallest brings {fewest:,} prompts, the largest {most:,}"


def failures_of(row: Row) -> list[tuple[str, int]]:
    """Reasons and how often each kept a score from the row, the commonest first."""
    return [(one["reason"], one["n_failed"]) for one in row["failures"] or ()]


def _missing(row: Row) -> str:
    if not row["n_failed"]:
        return ""
    listed = ", ".join(f"{n} {reason}" for reason, n in failures_of(row))
    bounds = "" if row["bound_low"] is None else f", with them {row['bound_low']:.2f} to {row['bound_high']:.2f}"
    return f"{row['n_failed']} of {row['n_judgements']} without a score ({listed}){bounds}"


def _no_rank(row: Row) -> str:
    reason, shared, needed = row["standing_reason"], row["n_shared_prompts"], row["n_prompts_needed"]
    if row["state"] == StandingState.BLOCKED:
        return f"blocked, {row['coverage']:.1%} of the judgements have a score"
    if row["state"] == StandingState.TOO_FEW:
        return f"no rank: {row['n_prompts']} prompts, {needed} needed"
    each = " in each category" if row["category"] == Total.MACRO else ""
    return {
        CellReason.CATEGORY_MISSING.value: (
            "no mean over categories: it has no score in one that others have; judge it there, or look at the categories alone"
        ),
        ComparisonReason.ALONE.value: "no rank: there is no other to compare it with",
        ComparisonReason.TOO_MANY_TO_RANK.value: "no rank: more checkpoints than statistics.max_ranked",
        ComparisonReason.TOO_FEW_PAIRED_PROMPTS.value: f"not compared: {shared} shared prompts, {needed} needed{each}",
        ComparisonReason.DATASET_DIFFERS.value: f"not compared: {shared or 'no'} shared prompts, {needed} needed{each}",
    }.get(reason, f"not compared: {str(reason).replace('_', ' ')}")


def answers(rows: Sequence[Row]) -> list[str]:
    """What the headline standings of one rubric and judge say: which is best, what the newest brought, what is missing."""
    ranked = [row for row in rows if row["state"] == StandingState.RANKED]
    name = namer(rows)
    said = _best(ranked, name) + _newest(ranked, name)
    unranked = [row for row in rows if row["state"] != StandingState.RANKED]
    reasons: dict[str, set[str]] = {}
    for row in unranked:
        reasons.setdefault(_no_rank(row), set()).add(name(row))
    said += [f"{_listed(sorted(names))}: {reason}." for reason, names in sorted(reasons.items())]
    n_failed, n_judgements = (sum(row[column] for row in rows) for column in ("n_failed", "n_judgements"))
    said.append(f"{n_failed:,} of {n_judgements:,} scores are missing." if n_failed else "No score is missing.")
    return said


def _best(ranked: Sequence[Row], name: Callable[[Row], str]) -> list[str]:
    """Which may be the best of each ranking: those that no other is above."""
    rankings: dict[tuple[str, str], list[Row]] = {}
    for row in ranked:
        rankings.setdefault((row["dimension"], row["category"]), []).append(row)
    firsts = {key: [name(row) for row in mine if row["rank_low"] == 1] for key, mine in rankings.items()}
    if len(rankings) == 1:
        ((key, first),) = firsts.items()
        n, prompts = len(rankings[key]), rankings[key][0]["n_shared_prompts"]
        if len(first) == n:
            return [f"{prompts or 'These'} prompts cannot tell which of {_listed(first)} is best."]
        what = f"{first[0]} is the best" if len(first) == 1 else f"{_listed(first)} may each be the best"
        on = f"on {prompts} shared prompts" if prompts else f"compared two by two: no prompt has a score of all {n}"
        return [f"{what} of {n}, {on}."]
    sole = Counter(first[0] for first in firsts.values() if len(first) == 1)
    said = [f"{one} is the best on {n} of {len(rankings)} measures." for one, n in sole.most_common(_N_NAMED)]
    n_open = len(rankings) - sum(sole.values())
    return said + ([f"On {n_open} of {len(rankings)} measures several may be the best."] if n_open else [])


def _newest(ranked: Sequence[Row], name: Callable[[Row], str]) -> list[str]:
    """Each model's newest checkpoint against the one before it."""
    before = {(row["model"], row["predecessor"]) for row in ranked}
    newest: dict[str, list[Row]] = {}
    for row in ranked:
        if row["predecessor"] is not None and (row["model"], row["checkpoint"]) not in before:
            newest.setdefault(name(row), []).append(row)
    said = []
    for one, rows in sorted(newest.items())[:_N_NAMED]:
        other, n_family = rows[0]["predecessor"], rows[0]["n_family"]
        sure = f"at 95 % for all {n_family} comparisons together"
        if rows[0]["adjustment"] == Correction.BENJAMINI_HOCHBERG:
            sure = f"of {n_family} comparisons, 5 % of those found may be false"
        if len(rows) == 1:
            verdict, prompts = rows[0]["verdict_predecessor"], rows[0]["n_prompts_predecessor"]
            is_decided = verdict in (ComparisonVerdict.HIGHER, ComparisonVerdict.LOWER)
            told = (
                f"{one} is {_VERDICTS[verdict]} than {other}" if is_decided else f"These prompts cannot tell {one} from {other}"
            )
            said.append(f"{told}: {_delta(rows[0], 'predecessor')} on {prompts} prompts ({sure}).")
            continue
        n = Counter(row["verdict_predecessor"] for row in rows)
        better, worse = n["higher"], n["lower"]
        n_open = len(rows) - better - worse
        told = f"{one} is better than {other} on {better} of {len(rows)} measures" + (f", worse on {worse}" if worse else "")
        if n_open == len(rows):
            told = f"These prompts cannot tell {one} from {other} on any of {n_open} measures"
        elif n_open:
            told += f"; on {n_open} these prompts cannot tell"
        said.append(f"{told} ({sure}).")
    return said


def namer(rows: Sequence[Row]) -> Callable[[Row], str]:
    """What a row is called: its checkpoint, with its model where the rows have several."""
    is_one_model = len({row["model"] for row in rows}) == 1
    return lambda row: made_by(row["model"], row["checkpoint"], is_one_model=is_one_model)


def made_by(model: str, checkpoint: str, *, is_one_model: bool) -> str:
    """Who made it, in a line: the model only where there are several, and alone where its checkpoint has no name."""
    if checkpoint == UNNAMED:
        return model
    return checkpoint if is_one_model else f"{model} / {checkpoint}"


def _listed(names: Sequence[str]) -> str:
    shown = list(names[:_N_NAMED]) if len(names) > _N_NAMED + 1 else list(names)
    rest = [f"{len(names) - len(shown)} more"] if len(shown) < len(names) else []
    return " and ".join([", ".join([*shown, *rest][:-1]), [*shown, *rest][-1]]) if len(shown) + len(rest) > 1 else shown[0]


def _signed(value: float, n_digits: int) -> str:
    text = number(value, n_digits)
    return f"+{text}" if round(value, n_digits) > 0 else text


def number(value: float, n_digits: int) -> str:
    """Rounded, in plain characters; there is no "-0.00"."""
    return f"{round(value, n_digits) + 0.0:.{n_digits}f}"
