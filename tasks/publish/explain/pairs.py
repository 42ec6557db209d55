"""What one published win rate is made of: its pairs, both orders' messages and replies, and the share taken again."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from schemas.statuses.cells import Total
from schemas.statuses.rows import PairOutcome, ReplyStatus, ScoreStatus
from schemas.tables.published import PREFERENCES
from schemas.tables.stored import JUDGEMENTS, SCORES
from tasks.lake.reading import Lake
from tasks.publish.explain.cells import ExplainedJudgement, explained_judgements
from tasks.publish.reading import Publication

_TOLERANCE = 1e-9
_ORDER = (PairOutcome.UNJUDGED, PairOutcome.ORDER_DEPENDENT, PairOutcome.WIN_A, PairOutcome.TIE, PairOutcome.WIN_B)
_OF_SCORE = ["score", "note", "bound_low", "bound_high", "score_span"]


@dataclass(frozen=True, slots=True)
class ExplainedPair:
    """Two samples, what both orders say together (`outcome`, of a), and each order; in `orders` scores are of what is first."""

    sample_a: str
    sample_b: str
    outcome: PairOutcome
    orders: tuple[ExplainedJudgement, ...]


@dataclass(frozen=True, slots=True)
class ExplainedWinRate:
    """A row of `preferences`, its pairs (those without a clear verdict first; at most `limit`), and the share taken again."""

    publication_id: str
    row: Mapping[str, Any]
    identities: Mapping[str, str]
    n_pairs: int
    pairs: tuple[ExplainedPair, ...]
    recomputed: float | None
    is_reproduced: bool


def find_pair(publication: Publication, address: str) -> dict[str, Any] | None:
    """The row of `preferences` whose pair_id begins so; None where there is none, or more than one."""
    path = publication.folder / f"{PREFERENCES.name}.parquet"
    if len(address) < 4 or not path.is_file():
        return None
    found = pl.read_parquet(path).filter(pl.col("pair_id").str.starts_with(address))
    return found.row(0, named=True) if found.height == 1 else None


def explain_pair(lake: Lake, publication: Publication, row: Mapping[str, Any], limit: int | None = None) -> ExplainedWinRate:
    """Everything behind one win rate. Raises StoreError where the lake no longer holds what it was made from."""
    ids: dict[str, str] = publication.provenance()["identities"]
    members = _members(lake, ids, row)
    pairs: dict[tuple[str, str, int], list[dict[str, Any]]] = defaultdict(list)
    for member in members.iter_rows(named=True):
        first, second = member["sample_id"], member["second_sample_id"]
        ends = (first, second) if member["is_a_first"] else (second, first)
        pairs[*ends, member["repeat"]].append(member)
    asked = {key: orders for key, orders in pairs.items() if any(one["reason"] != ReplyStatus.NOT_ASKED for one in orders)}
    kept = asked if row["is_stopped_early"] else pairs
    outcomes = {key: _outcome(orders) for key, orders in kept.items()}
    again = _share_again(kept, outcomes, is_macro=row["category"] == Total.MACRO)
    is_same = again is not None and abs(again - row["win_rate"]) <= _TOLERANCE if row["win_rate"] is not None else True
    shown = sorted(outcomes, key=lambda key: (_ORDER.index(outcomes[key]), key))[:limit]
    return ExplainedWinRate(
        publication.publication_id, dict(row), ids, len(kept), tuple(_pair(lake, ids, kept, outcomes, shown)), again,
        is_same and len(kept) == row["n_pairs"],
    )  # fmt: skip


def _members(lake: Lake, ids: Mapping[str, str], row: Mapping[str, Any]) -> pl.DataFrame:
    """Both orders of the row's pairs beside their scores."""

    def is_of(first: str, second: str) -> pl.Expr:
        at = {"model": f"model_{first}", "checkpoint": f"checkpoint_{first}", "second_model": f"model_{second}",
              "second_checkpoint": f"checkpoint_{second}"}  # fmt: skip
        return pl.all_horizontal(pl.col(name) == row[column] for name, column in at.items())

    mine = lake.scan(JUDGEMENTS, ids["plan_id"]).filter(
        pl.col("rubric_id") == row["rubric_id"], pl.col("judge_model") == row["judge_model"], is_of("a", "b") | is_of("b", "a")
    )
    if row["category"] not in (Total.MACRO, Total.MICRO):
        mine = mine.filter(pl.col("category").fill_null(Total.UNNAMED.value) == row["category"])
    scores = lake.scan(SCORES, ids["reading_id"]).filter(pl.col("dimension") == row["dimension"])
    scores = scores.select("request_key", *_OF_SCORE, score_status="status", score_reason="reason", ask_index_read="ask_index")
    found = mine.with_columns(is_a_first=is_of("a", "b")).join(scores, on="request_key", how="left").collect(engine="streaming")
    return found.with_columns(
        status=pl.coalesce("score_status", "status"), reason=pl.coalesce("score_reason", "reason")
    ).sort("sample_id", "second_sample_id", "repeat")  # fmt: skip


def _outcome(orders: Sequence[Mapping[str, Any]]) -> PairOutcome:
    won = [one["score"] if one["is_a_first"] else 1 - one["score"] for one in orders if one["status"] == ScoreStatus.SCORED]
    if len(won) < 2:
        return PairOutcome.UNJUDGED
    if won[0] != won[1]:
        return PairOutcome.ORDER_DEPENDENT
    return {1.0: PairOutcome.WIN_A, 0.5: PairOutcome.TIE, 0.0: PairOutcome.WIN_B}[won[0]]


def _share_again(
    pairs: Mapping[tuple[str, str, int], Sequence[Mapping[str, Any]]],
    outcomes: Mapping[tuple[str, str, int], PairOutcome],
    *,
    is_macro: bool,
) -> float | None:
    """The share a wins: of a prompt's pairs, a category's prompts, and for `__macro__` the categories, each a plain mean."""
    worth = {PairOutcome.WIN_A: 1.0, PairOutcome.WIN_B: 0.0, PairOutcome.TIE: 0.5, PairOutcome.ORDER_DEPENDENT: 0.5}
    prompts: dict[tuple[str | None, str], list[float]] = defaultdict(list)
    for key, outcome in outcomes.items():
        if outcome in worth:
            one = pairs[key][0]
            prompts[one["category"] if is_macro else None, one["prompt_id"]].append(worth[outcome])
    categories: dict[str | None, list[float]] = defaultdict(list)
    for (category, _), values in prompts.items():
        categories[category].append(_mean(values))
    return _mean([_mean(values) for values in categories.values()]) if categories else None


def _pair(
    lake: Lake,
    ids: Mapping[str, str],
    pairs: Mapping[tuple[str, str, int], Sequence[Mapping[str, Any]]],
    outcomes: Mapping[tuple[str, str, int], PairOutcome],
    shown: Sequence[tuple[str, str, int]],
) -> list[ExplainedPair]:
    rows = [dict(one) for key in shown for one in pairs[key]]
    if not rows:
        return []
    judgements = iter(list(explained_judgements(lake, ids, pl.DataFrame(rows, infer_schema_length=None))))
    return [ExplainedPair(*key[:2], outcomes[key], tuple(next(judgements) for _ in pairs[key])) for key in shown]


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)
