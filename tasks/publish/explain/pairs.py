"""What one published win rate is made of: its pairs, both orders' messages and replies, and the share taken again."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from schemas.statuses.cells import CellStatus, Total
from schemas.statuses.rows import PairOutcome, ReplyStatus, ScoreStatus
from schemas.tables.stored import JUDGEMENTS
from tasks.lake.reading import Lake
from tasks.publish.explain.judgements import OUTCOME, ExplainedJudgement, explained_judgements, scores_of
from tasks.publish.explain.recomputed_mean import TOLERANCE, mean
from tasks.publish.reading import Publication

_ORDER = (PairOutcome.UNJUDGED, PairOutcome.ORDER_DEPENDENT, PairOutcome.WIN_A, PairOutcome.TIE, PairOutcome.WIN_B)
_COUNTED = {
    PairOutcome.WIN_A: "n_win", PairOutcome.TIE: "n_tie", PairOutcome.WIN_B: "n_loss",
    PairOutcome.ORDER_DEPENDENT: "n_order_dependent", PairOutcome.UNJUDGED: "n_unjudged",
}  # fmt: skip
_HALF = 0.5


@dataclass(frozen=True, slots=True)
class ExplainedPair:
    """Two samples, what both orders say together (`outcome`, of a), and each order; in `orders` scores are of what is first.

    Of repeats all orders stand there; `value` is their mean, what the pair is worth to a, None where none has a verdict.
    """

    sample_a: str
    sample_b: str
    outcome: PairOutcome
    orders: tuple[ExplainedJudgement, ...]
    value: float | None = None


@dataclass(frozen=True, slots=True)
class ExplainedWinRate:
    """A row of `preferences`, its pairs (those without a clear verdict first; at most `limit`), and the share taken again.

    `recomputed` is of the `n_judged` pairs that have a verdict; None where no share is published. `is_reproduced`: the row has
    that share, or rightly none, and the counts and the coverage of these pairs.
    """

    publication_id: str
    row: Mapping[str, Any]
    identities: Mapping[str, str]
    n_pairs: int
    pairs: tuple[ExplainedPair, ...]
    recomputed: float | None
    is_reproduced: bool
    n_judged: int = 0


@dataclass(frozen=True, slots=True)
class _Pair:
    """Both orders of each repeat of two samples."""

    repeats: tuple[Sequence[Mapping[str, Any]], ...]

    @property
    def verdicts(self) -> list[float]:
        """What each repeat with a verdict is worth to a."""
        return [worth for orders in self.repeats if (worth := _worth(orders)) is not None]

    @property
    def value(self) -> float | None:
        return mean(self.verdicts) if self.verdicts else None

    @property
    def outcome(self) -> PairOutcome:
        value = self.value
        if value is None:
            return PairOutcome.UNJUDGED
        if value != _HALF:
            return PairOutcome.WIN_A if value > _HALF else PairOutcome.WIN_B
        is_split = any(len(set(_won(orders))) == 2 for orders in self.repeats)
        return PairOutcome.ORDER_DEPENDENT if is_split else PairOutcome.TIE


def explain_pair(lake: Lake, publication: Publication, row: Mapping[str, Any], limit: int | None = None) -> ExplainedWinRate:
    """Everything behind one win rate. Raises StoreError where the lake no longer holds what it was made from."""
    ids: dict[str, str] = publication.provenance()["identities"]
    repeats: dict[tuple[str, str], dict[int, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for member in _members(lake, ids, row).iter_rows(named=True):
        first, second = member["sample_id"], member["second_sample_id"]
        repeats[(first, second) if member["is_a_first"] else (second, first)][member["repeat"]].append(member)
    is_kept = _is_asked if row["is_stopped_early"] else bool
    found = {ends: _Pair(tuple(filter(is_kept, mine.values()))) for ends, mine in repeats.items()}
    pairs = {ends: pair for ends, pair in found.items() if pair.repeats}
    again = _share_again(pairs.values(), is_macro=row["category"] == Total.MACRO)
    outcomes = {ends: pair.outcome for ends, pair in pairs.items()}
    shown = sorted(outcomes, key=lambda ends: (_ORDER.index(outcomes[ends]), ends))[:limit]
    n_judged = sum(outcome is not PairOutcome.UNJUDGED for outcome in outcomes.values())
    is_same = _is_counted_so(row, pairs.values()) and _is_share(row, again)
    listed = tuple(_pair(lake, ids, {ends: pairs[ends] for ends in shown}))
    shown_again = None if row["win_rate"] is None else again
    return ExplainedWinRate(publication.publication_id, dict(row), ids, len(pairs), listed, shown_again, is_same, n_judged)


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
    scores = scores_of(lake, ids, row["dimension"])
    found = mine.with_columns(is_a_first=is_of("a", "b")).join(scores, on="request_key", how="left").collect(engine="streaming")
    return found.with_columns(**OUTCOME).sort("sample_id", "second_sample_id", "repeat")


def _is_asked(orders: Sequence[Mapping[str, Any]]) -> bool:
    return any(one["reason"] != ReplyStatus.NOT_ASKED for one in orders)


def _won(orders: Sequence[Mapping[str, Any]]) -> list[float]:
    return [one["score"] if one["is_a_first"] else 1 - one["score"] for one in orders if one["status"] == ScoreStatus.SCORED]


def _worth(orders: Sequence[Mapping[str, Any]]) -> float | None:
    """What one repeat is worth to a: half where its orders disagree, None where one cannot be read."""
    won = _won(orders)
    return None if len(won) < 2 else won[0] if won[0] == won[1] else _HALF


def _is_counted_so(row: Mapping[str, Any], pairs: Collection[_Pair]) -> bool:
    """Whether the pairs are as many of each outcome as the row says, and their verdicts the share of those asked for."""
    found = Counter(pair.outcome for pair in pairs)
    if any(row[column] != found[outcome] for outcome, column in _COUNTED.items()) or row["n_pairs"] != len(pairs):
        return False
    n_asked = sum(len(pair.repeats) for pair in pairs)
    return not n_asked or abs(row["coverage"] - sum(len(pair.verdicts) for pair in pairs) / n_asked) <= TOLERANCE


def _is_share(row: Mapping[str, Any], again: float | None) -> bool:
    """Whether the share is the row's; a row without one has to say why, and be under the floor where it says blocked."""
    if row["win_rate"] is None:
        is_blocked = row["status"] == CellStatus.BLOCKED
        return bool(row["reason"]) and (not is_blocked or again is None or row["coverage"] < row["coverage_floor"])
    return again is not None and abs(again - row["win_rate"]) <= TOLERANCE


def _share_again(pairs: Iterable[_Pair], *, is_macro: bool) -> float | None:
    """The share a wins: of a category's pairs, and for `__macro__` of the categories, a plain mean; None where one has none.

    Pairs of no category that nobody could be asked about are of none.
    """
    categories: dict[str | None, list[float]] = defaultdict(list)
    for pair in pairs:
        one = pair.repeats[0][0]
        if not is_macro or one["category"] is not None or one["request_key"] is not None:
            categories[one["category"] if is_macro else None] += [] if pair.value is None else [pair.value]
    return mean([mean(values) for values in categories.values()]) if categories and all(categories.values()) else None


def _pair(lake: Lake, ids: Mapping[str, str], pairs: Mapping[tuple[str, str], _Pair]) -> Iterator[ExplainedPair]:
    rows = {ends: [dict(one) for orders in pair.repeats for one in orders] for ends, pair in pairs.items()}
    if not rows:
        return
    frame = pl.DataFrame([one for listed in rows.values() for one in listed], infer_schema_length=None)
    judgements = iter(list(explained_judgements(lake, ids, frame)))
    for ends, pair in pairs.items():
        yield ExplainedPair(*ends, pair.outcome, tuple(next(judgements) for _ in rows[ends]), pair.value)
