"""What one published number is made of: samples, the exact messages, the replies verbatim, the scores, the hashes."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from schemas.tables import REPLIES, REQUESTS, SAMPLES
from tasks.lake.reading import Lake
from tasks.publish.members import is_reproduced, mean_again, members_of
from tasks.publish.reading import Publication, load_cells

_SAMPLE = ["source", "source_key", "prompt", "question", "text", "reference", "caption_type", "output", "image_sha256"]
_REPLY = ["ask_index", "status", "reply_text", "finish_reason", "refusal_text", "error_detail", "answered_model", "origin"]


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


@dataclass(frozen=True, slots=True)
class ExplainedJudgement:
    """One judgement of the cell. `messages_json` is what was sent, images by digest; `sample` its texts and image_sha256."""

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
    sample: Mapping[str, str | None]
    messages_json: str | None
    rubric_digest: str | None
    parameters_json: str | None
    asks: tuple[Ask, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """A cell, its judgements (failures first, then by score; at most `limit`), and the mean taken again over all of them."""

    publication_id: str
    cell: Mapping[str, Any]
    identities: Mapping[str, str]
    n_judgements: int
    judgements: tuple[ExplainedJudgement, ...]
    recomputed: float | None
    is_reproduced: bool


def explain(lake: Lake, publication: Publication, cell: Mapping[str, Any], limit: int | None = None) -> Explanation:
    """Everything behind one cell. Raises StoreError where the lake no longer holds what the publication was made from."""
    said = publication.provenance()
    ids: dict[str, str] = said["identities"]
    members = members_of(lake, ids, cell, load_cells(publication))
    recomputed = mean_again(members, str(cell["category"]), str(cell["metric"]))
    shown = members.head(limit) if limit is not None else members
    judgements = tuple(_explained(lake, ids, shown))
    names = {name: str(value) for name, value in said.items() if name in ("benchmark_digest", "code_version")}
    return Explanation(
        publication.publication_id,
        dict(cell),
        ids | names,
        members.height,
        judgements,
        recomputed,
        is_reproduced(cell, members, recomputed),
    )


def _explained(lake: Lake, ids: Mapping[str, str], members: pl.DataFrame) -> Iterable[ExplainedJudgement]:
    keys, sample_ids = members["request_key"].drop_nulls().to_list(), members["sample_id"].to_list()
    samples = lake.scan(SAMPLES, ids["dataset_id"]).filter(pl.col("sample_id").is_in(sample_ids)).select("sample_id", *_SAMPLE)
    texts = {row.pop("sample_id"): row for row in samples.collect().to_dicts()}
    asked = lake.scan(REQUESTS, ids["plan_id"]).filter(pl.col("request_key").is_in(keys))
    asked = asked.select("request_key", "messages_json", "rubric_digest", "parameters_json")
    requests = {row.pop("request_key"): row for row in asked.unique("request_key").collect().to_dicts()}
    asks: dict[str, list[Ask]] = defaultdict(list)
    replies = lake.scan(REPLIES, ids["snapshot_id"]).filter(pl.col("request_key").is_in(keys)).select("request_key", *_REPLY)
    for row in replies.sort("request_key", "ask_index").collect().to_dicts():
        asks[row.pop("request_key")].append(Ask(**row))
    unasked = {"messages_json": None, "rubric_digest": None, "parameters_json": None}
    own = [
        "sample_id",
        "category",
        "repeat",
        "prompt_id",
        "request_key",
        "status",
        "reason",
        "score",
        "note",
        "bound_low",
        "bound_high",
    ]
    for row in members.select(own).to_dicts():
        key = row["request_key"]
        yield ExplainedJudgement(
            **row, **requests.get(key, unasked), sample=texts.get(row["sample_id"], {}), asks=tuple(asks.get(key, []))
        )
