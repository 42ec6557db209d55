"""What judges said of samples: the asks on cards and pages, with their scores, words and items. Which samples: picking.py."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import polars as pl

from rubrics.items import BadItems, item_texts, items_of
from rubrics.model import Rubric
from schemas.identities import RunIds
from schemas.records import TEXT_COLUMNS, texts_of
from schemas.tables.stored import REPLIES, SAMPLES, SCORES
from tasks.lake.reading import Lake

MAX_WORDS, MAX_QUESTION = 900, 200  # letters

_Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Scored:
    """One dimension of one ask. `reason` says why there is no score that counts."""

    dimension: str
    score: float | None
    status: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class AskedItem:
    """One item of a list, or one of several requests: what was asked, what came of it, and the reply where it is its own."""

    text: str
    words: str | None
    scores: tuple[Scored, ...]


@dataclass(frozen=True, slots=True)
class Ask:
    """What one judge said on one repeat. `words` is the reply or its beginning, `n_letters` its whole length.

    Of a list `words` are the reply to all its items, where there is one.
    """

    judge_model: str
    repeat: int
    status: str
    reason: str | None
    words: str | None
    n_letters: int
    scores: tuple[Scored, ...]
    items: tuple[AskedItem, ...]

    @property
    def all_scores(self) -> tuple[Scored, ...]:
        """Those of its items too."""
        return (*self.scores, *(one for item in self.items for one in item.scores))


@dataclass(frozen=True, slots=True)
class Said:
    """Scores and replies by request; `questions`: by rubric and sample what each item asks."""

    scores: Mapping[str | None, list[_Row]]
    replies: Mapping[str | None, Mapping[int, str | None]]
    questions: Mapping[tuple[str, str], Mapping[str, str]]

    def ask(self, row: _Row, n_asks: int = 1) -> Ask:
        """What came of one judgement. Where a sample was asked often, each answer gets less room."""
        room = min(MAX_WORDS, 2 * MAX_WORDS // n_asks)
        key, listed = row["request_key"], _listed(row)
        found = self.scores.get(key, [])
        requests = {item["request_key"] for item in listed} or {key}
        is_apart = len(requests) > 1
        whole = None if is_apart else self._words(*requests)
        asked = self.questions.get((row["rubric_id"], row["sample_id"]), {})
        items = tuple(
            AskedItem(
                cut(asked.get(item["id"], item["id"]), MAX_QUESTION),
                self._words(item["request_key"], room // len(requests)) if is_apart else None,
                self._of_item(item, found),
            )
            for item in listed
        )
        scores = tuple(map(_scored, (one for one in found if not (listed and one["item"]))))
        words = None if whole is None else cut(whole, room)
        return Ask(row["judge_model"], row["repeat"], row["status"], row["reason"], words, len(whole or ""), scores, items)

    def _of_item(self, item: _Row, found: Sequence[_Row]) -> tuple[Scored, ...]:
        """Its score under each of its kinds; of none, the one of its request. A score that a parent's answer voids is none."""
        mine = [one for one in found if one["item"] == item["id"]]
        counted = [one for one in mine if one["dimension"] in item["kinds"]]
        own = (one for one in self.scores.get(item["request_key"], ()) if one["item"] == item["item"])
        return tuple(map(_scored, counted or mine or own))

    def _words(self, key: str | None, n_letters: int | None = None) -> str | None:
        """The reply the scores were read from, else the last."""
        scores, replies = self.scores.get(key, ()), self.replies.get(key, {})
        read = scores[0]["ask_index"] if scores else -1
        words = replies.get(read if read in replies else max(replies, default=0))
        return words if words is None or n_letters is None else cut(words, n_letters)


def said_of(lake: Lake, ids: RunIds, rows: pl.DataFrame, rubrics: Mapping[str, Rubric]) -> Said:
    """What was said to the requests of these judgements; `rubrics` say what the items of a sample ask."""
    keys = rows["request_key"].drop_nulls().to_list()
    keys += [item["request_key"] for row in rows.select("request_key", "items_json").to_dicts() for item in _listed(row)]
    is_wanted = pl.col("request_key").is_in(pl.Series(keys, dtype=pl.String).unique().implode())
    scores: dict[str | None, list[_Row]] = defaultdict(list)
    read = lake.scan(SCORES, ids.reading_id).filter(is_wanted).sort("request_key", "dimension", "item")
    for row in read.collect(engine="streaming").iter_rows(named=True):
        scores[row["request_key"]].append(row)
    replies: dict[str | None, dict[int, str | None]] = defaultdict(dict)
    words = lake.scan(REPLIES, ids.snapshot_id).filter(is_wanted)
    words = words.select("request_key", "ask_index", pl.coalesce(pl.col("reply_text", "refusal_text").replace("", None)))
    for key, ask_index, text in words.collect(engine="streaming").iter_rows():
        replies[key][ask_index] = text
    return Said(scores, replies, _questions(lake, ids, rows, rubrics))


def cut(text: str, n_letters: int) -> str:
    """The text, or its beginning and an ellipsis."""
    return text if len(text) <= n_letters else f"{text[:n_letters].rstrip()} …"


def _questions(
    lake: Lake, ids: RunIds, rows: pl.DataFrame, rubrics: Mapping[str, Rubric]
) -> dict[tuple[str, str], dict[str, str]]:
    with_items = [one for one in rubrics.values() if one.items]
    asked = rows.filter(pl.col("rubric_id").is_in([one.id for one in with_items])).select("rubric_id", "sample_id").unique()
    if asked.is_empty():
        return {}
    wanted = pl.col("sample_id").is_in(asked["sample_id"].unique().implode())
    samples = lake.collect(SAMPLES, ids.dataset_id, lambda rows: rows.filter(wanted).select("sample_id", *TEXT_COLUMNS))
    texts = {row["sample_id"]: texts_of(row) for row in samples.iter_rows(named=True)}
    return {(one, sample_id): _asked(rubrics[one], texts.get(sample_id, {})) for one, sample_id in asked.iter_rows()}


def _asked(rubric: Rubric, texts: Mapping[str, str | None]) -> dict[str, str]:
    """By item what a request says of it."""
    try:
        return {item.id: " ".join(item_texts(rubric, [item]).values()).strip() or item.id for item in items_of(rubric, texts)}
    except BadItems:  # no such sample is asked
        return {}


def _listed(row: _Row) -> list[dict[str, Any]]:
    """The items a judgement asks about, or its several requests."""
    return orjson.loads(row["items_json"]) if row["items_json"] and row["request_key"] else []


def _scored(row: _Row) -> Scored:
    return Scored(row["dimension"], row["score"], row["status"], row["reason"])
