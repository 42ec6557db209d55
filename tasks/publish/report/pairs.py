"""The pairs that a page shows side by side, with the judge's words in both orders. Figures are standings/pair_boards.py's."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from schemas.identities import RunIds
from schemas.statuses.rows import PairOutcome
from schemas.tables.stored import JUDGEMENTS
from tasks.lake.pictures import StoredDataset
from tasks.lake.reading import Lake
from tasks.publish.report.asks import Ask, Said, said_of
from tasks.publish.report.gallery import texts_by_sample
from tasks.publish.report.pictures import thumbnails_of
from tasks.publish.standings.wording import made_by

PER_OUTCOME = 3
"""Pairs shown of each outcome, of a rubric and judge."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of a pair's samples."""

    sample_id: str
    model: str
    checkpoint: str
    picture: str | None


@dataclass(frozen=True, slots=True)
class PairAsk:
    """One order of a pair: who was shown first, what was said, and of each dimension who won, in words."""

    first: str
    said: Ask
    winners: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class PairCard:
    """A pair, its outcome in the rubric's headline, and both orders' answers."""

    text: str
    outcome: str
    sides: tuple[Side, Side]
    asks: tuple[PairAsk, ...]


def pair_cards(lake: Lake, ids: RunIds, headlines: Mapping[str, str]) -> dict[tuple[str, str], list[PairCard]]:
    """Some pairs of each rubric and judge and of each outcome; `headlines`: by rubric for pairs its headline dimension.

    Only the rows of the pairs that are shown leave the scan.
    """
    if not headlines:
        return {}
    judged = lake.scan(JUDGEMENTS, ids.plan_id).filter(pl.col("second_sample_id").is_not_null())
    found: dict[tuple[str, str], list[PairCard]] = {}
    judges = judged.select("rubric_id", "judge_model").unique().collect(engine="streaming").sort("rubric_id", "judge_model")
    for rubric_id, judge_model in judges.iter_rows():
        mine = judged.filter(rubric_id=rubric_id, judge_model=judge_model)
        found[rubric_id, judge_model] = list(_cards(lake, ids, mine, headlines[rubric_id]))
    return found


def _cards(lake: Lake, ids: RunIds, judged: pl.LazyFrame, headline: str) -> Iterator[PairCard]:
    some = (
        judged.filter(pl.col("repeat") == 0)
        .sort("sample_id", "second_sample_id")  # digests: from all over the dataset, and the same in each making of the page
        .head(_N_LOOKED_AT)
        .select("sample_id", "second_sample_id")
        .collect()
    )
    ends = [frozenset(row) for row in some.iter_rows()]
    wanted = pl.col("sample_id").is_in([one for pair in ends for one in pair])
    rows = judged.filter(wanted & pl.col("second_sample_id").is_in([one for pair in ends for one in pair])).collect()
    said = said_of(lake, ids, rows, {})
    pairs: dict[frozenset[str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows.sort("repeat", "sample_id", "second_sample_id").iter_rows(named=True):
        pairs[frozenset((row["sample_id"], row["second_sample_id"]))].append(row)
    shown: dict[str, list[list[dict[str, Any]]]] = defaultdict(list)
    for pair in dict.fromkeys(ends):
        outcome = _outcome(pairs[pair], said, headline)
        if len(shown[outcome]) < PER_OUTCOME:
            shown[outcome].append(pairs[pair])
    chosen = [(outcome, orders) for outcome in _ORDER for orders in shown[outcome]]
    sample_ids = {row["sample_id"] for _, orders in chosen for row in orders}
    dataset = StoredDataset(lake, ids.dataset_id)
    pictures, texts = thumbnails_of(dataset, sample_ids), texts_by_sample(dataset, pl.Series(sorted(sample_ids), dtype=pl.String))
    for outcome, orders in chosen:
        yield _card(outcome, orders, pictures, texts, said)


def _outcome(orders: list[dict[str, Any]], said: Said, headline: str) -> str:
    """Of a pair as a card says it, by the mean of its repeats: who wins is said beside the pictures."""
    repeats: dict[int, list[float | None]] = defaultdict(list)
    for row in orders:
        (won,) = [one.score for one in said.ask(row).scores if one.dimension == headline] or [None]
        is_turned = row["sample_id"] != orders[0]["sample_id"]
        repeats[row["repeat"]].append(1 - won if is_turned and won is not None else won)
    both = ([one for one in won if one is not None] for won in repeats.values())
    judged = [(won[0], won[1]) for won in both if len(won) == 2]
    worth = [one if one == other else _MIDDLE for one, other in judged]
    if not worth:
        return PairOutcome.UNJUDGED.value
    if sum(worth) != _MIDDLE * len(worth):
        return "decided"
    is_split = any(one != other for one, other in judged)
    return PairOutcome.ORDER_DEPENDENT.value if is_split else PairOutcome.TIE.value


_MIDDLE = 0.5
_ORDER = ("decided", PairOutcome.ORDER_DEPENDENT.value, PairOutcome.TIE.value, PairOutcome.UNJUDGED.value)
_N_LOOKED_AT = 400
"""Judgements looked at for these cards: a rare outcome may have none among them."""


def _card(
    outcome: str,
    orders: list[dict[str, Any]],
    pictures: Mapping[str, str],
    texts: Mapping[str, Mapping[str, str | None]],
    said: Said,
) -> PairCard:
    row = orders[0]
    own = texts.get(row["sample_id"], {})
    ends = [[row[f"{end}{name}"] for name in ("sample_id", "model", "checkpoint")] for end in ("", "second_")]
    one, other = (Side(sample_id, model, checkpoint, pictures.get(sample_id)) for sample_id, model, checkpoint in ends)
    asks = tuple(_ask(row, said.ask(row, len(orders))) for row in orders)
    return PairCard(own.get("prompt") or "", outcome, (one, other), asks)


def _ask(row: dict[str, Any], said: Ask) -> PairAsk:
    names: dict[float | None, str] = {1.0: _named(row, ""), 0.5: "tie", 0.0: _named(row, "second_")}
    winners = tuple((one.dimension, names.get(one.score, one.reason or one.status)) for one in said.scores)
    return PairAsk(_named(row, ""), said, winners)


def _named(row: Mapping[str, Any], end: str) -> str:
    return made_by(row[f"{end}model"], row[f"{end}checkpoint"], is_one_model=row["model"] == row["second_model"])
