"""Of each judgement behind a number: its sample, what was sent, the replies verbatim, and where in them the number stands."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from schemas.tables.stored import REPLIES, REQUESTS, SAMPLES, SCORES
from tasks.lake.reading import Lake

_SAMPLE = [
    "source", "source_key", "prompt", "question", "text", "reference", "caption_type", "output", "texts_json", "image_sha256",
    "pictures",
]  # fmt: skip
_OWN = [
    "sample_id", "category", "repeat", "prompt_id", "request_key", "status", "reason", "score", "note", "bound_low", "bound_high",
    "score_span", "ask_index_read", "items_json",
]  # fmt: skip
_OF_SCORE = {
    "score": pl.Float64, "note": pl.String, "bound_low": pl.Float64, "bound_high": pl.Float64, "score_span": pl.String,
}  # fmt: skip
UNSCORED = _OF_SCORE | {"ask_index_read": pl.Int64}
"""What scores_of() says of a judgement, for those that it is not asked about."""
OUTCOME = {name: pl.coalesce(f"score_{name}", name) for name in ("status", "reason")}
"""A judgement's, where its scores stand beside it: of the score, else its own."""
_REPLY = ["ask_index", "status", "reply_text", "finish_reason", "refusal_text", "error_detail", "answered_model", "origin"]
_SENT = ["messages_json", "parameters_json", "rubric_digest"]

N_AROUND = 60
"""Characters of a reply shown before and behind a number."""

_Listed = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Ask:
    """One reply, verbatim, and how the ask ended."""

    ask_index: int
    status: str
    reply_text: str | None
    finish_reason: str | None
    refusal_text: str | None
    error_detail: str | None
    answered_model: str | None
    origin: str | None
    request_key: str


@dataclass(frozen=True, slots=True)
class Request:
    """What was sent, images by digest. `items`: the ids of the items it asks about; of one of several requests its name."""

    request_key: str
    items: tuple[str, ...]
    messages_json: str | None
    parameters_json: str | None


@dataclass(frozen=True, slots=True)
class ExplainedJudgement:
    """One judgement of the cell, or one item of it. `messages_json` is what was sent, images by digest.

    Of a list there are several `requests`, and `messages_json` is the first one's; where the row is about an `item`, its request
    is the only one. `sample`: its texts, image_sha256, and where in the source its pictures are: image_path, and so for each
    further role.
    """

    sample_id: str
    category: str | None
    repeat: int
    prompt_id: str
    request_key: str | None
    status: str
    reason: str | None
    score: float | None
    note: str | None
    bound_low: float | None
    bound_high: float | None
    score_span: str | None
    ask_index_read: int | None
    items_json: str | None
    item: str
    sample: Mapping[str, str | None]
    messages_json: str | None
    rubric_digest: str | None
    parameters_json: str | None
    requests: tuple[Request, ...]
    asks: tuple[Ask, ...]

    @property
    def sentence(self) -> tuple[str, str, str] | None:
        """The number as the reply says it, between what stands before and behind it there; None without a score."""
        texts = [ask.reply_text for ask in self.asks if ask.ask_index == self.ask_index_read]
        if self.score_span is None or not texts or texts[0] is None:
            return None
        start, end = json.loads(self.score_span)
        return texts[0][max(0, start - N_AROUND) : start], texts[0][start:end], texts[0][end : end + N_AROUND]


def scores_of(lake: Lake, ids: Mapping[str, str], dimension: object, **more: str | pl.Expr) -> pl.LazyFrame:
    """A dimension's scores by request, to stand beside judgements; `more` columns of them."""
    scores = lake.scan(SCORES, ids["reading_id"]).filter(pl.col("dimension") == dimension)
    named = {"score_status": "status", "score_reason": "reason", "ask_index_read": "ask_index"}
    return scores.select("request_key", *_OF_SCORE, **named, **more)


def explained_judgements(lake: Lake, ids: Mapping[str, str], members: pl.DataFrame) -> Iterator[ExplainedJudgement]:
    """What was asked and answered of each of these judgements, in their order. With a column `item` they may be of one each."""
    item = pl.col("item").fill_null("") if "item" in members.columns else pl.lit("").alias("item")
    rows = members.select(*_OWN, item).to_dicts()
    listed = [_asked_by(row) for row in rows]
    keys = list({item["request_key"] for mine in listed for item in mine})
    samples, asks = _samples(lake, ids, members["sample_id"].to_list()), _asks(lake, ids, keys)
    asked = lake.scan(REQUESTS, ids["plan_id"]).filter(pl.col("request_key").is_in(keys)).select("request_key", *_SENT)
    requests = {row.pop("request_key"): row for row in asked.unique("request_key").collect().to_dicts()}
    places = _places(lake, ids, keys) if any(row["item"] for row in rows) else {}
    for row, mine in zip(rows, listed, strict=True):
        is_read = row["item"] and mine and row["score"] is not None
        place = places.get((mine[0]["request_key"], mine[0]["item"]), {}) if is_read else {}  # its own row says nothing of it
        of_each: dict[str, list[str]] = defaultdict(list)
        for one in mine:
            of_each[one["request_key"]] += [one["id"]] if one["id"] else []
        sent = {key: requests.get(key, dict.fromkeys(_SENT)) for key in of_each}
        yield ExplainedJudgement(
            **row | place, **next(iter(sent.values()), dict.fromkeys(_SENT)), sample=samples.get(row["sample_id"], {}),
            requests=tuple(Request(key, tuple(of_each[key]), *(one[name] for name in _SENT[:2])) for key, one in sent.items()),
            asks=tuple(ask for key in of_each for ask in asks.get(key, [])),
        )  # fmt: skip


def _asked_by(row: Mapping[str, Any]) -> _Listed:
    """`request_key`, `id` and `item` of what was asked: of a list each of its items, or the one the row is about."""
    if row["request_key"] is None:
        return []
    if not row["items_json"]:
        return [{"request_key": row["request_key"], "id": "", "item": ""}]
    listed: _Listed = json.loads(row["items_json"])
    return [one for one in listed if row["item"] in ("", one["id"])]


def _places(lake: Lake, ids: Mapping[str, str], keys: list[str]) -> dict[tuple[str, str], dict[str, Any]]:
    """Where in which reply the score of each item stands, by its request and its name there."""
    read = lake.scan(SCORES, ids["reading_id"]).filter(pl.col("request_key").is_in(keys), pl.col("score_span").is_not_null())
    rows = read.select("request_key", pl.col("item").fill_null(""), "score_span", ask_index_read="ask_index").collect()
    return {(row.pop("request_key"), row.pop("item")): row for row in rows.to_dicts()}


def _samples(lake: Lake, ids: Mapping[str, str], sample_ids: list[str]) -> dict[str, dict[str, str | None]]:
    is_wanted, columns = pl.col("sample_id").is_in(sample_ids), ["sample_id", *_SAMPLE]
    samples = lake.collect(SAMPLES, ids["dataset_id"], lambda rows: rows.filter(is_wanted).select(columns))
    found: dict[str, dict[str, str | None]] = {}
    for row in samples.to_dicts():
        sample_id, own = row.pop("sample_id"), json.loads(row.pop("texts_json") or "{}")
        found[sample_id] = _paths(row.pop("pictures")) | row | own
    return found


def _asks(lake: Lake, ids: Mapping[str, str], keys: list[str]) -> dict[str, list[Ask]]:
    found: dict[str, list[Ask]] = defaultdict(list)
    replies = lake.scan(REPLIES, ids["snapshot_id"]).filter(pl.col("request_key").is_in(keys)).select("request_key", *_REPLY)
    for row in replies.sort("request_key", "ask_index").collect().to_dicts():
        found[row["request_key"]].append(Ask(**row))
    return found


def _paths(pictures: Iterable[Mapping[str, str | None]] | None) -> dict[str, str]:
    """The files of a sample's pictures, by role; a picture that a row or an archive carries may have none."""
    found: dict[str, list[str]] = defaultdict(list)
    for one in pictures or ():
        if one["path"]:
            found[f"{one['role']}_path"].append(one["path"])
    return {name: ", ".join(paths) for name, paths in found.items()}
