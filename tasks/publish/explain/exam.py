"""What one row of the exam is made of: its samples untouched, harmless and faulted, with messages and replies."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from schemas.benchmark.exam import EXAM as EXAM_MODEL
from schemas.benchmark.exam import OCCASION, PlantedFault
from schemas.tables.stored import JUDGEMENTS, SAMPLES
from tasks.lake.reading import Lake
from tasks.publish.explain.judgements import OUTCOME, ExplainedJudgement, explained_judgements, scores_of
from tasks.publish.reading import Publication


@dataclass(frozen=True, slots=True)
class ExplainedTwin:
    """A sample of the exam: its judgement untouched, that of its harmless twin and that of the faulted one."""

    sample_id: str
    judgements: tuple[ExplainedJudgement, ...]


@dataclass(frozen=True, slots=True)
class ExplainedExam:
    """A row of `exam` and its samples: whose fault went unnoticed first, who lacks a score last; at most `limit`."""

    publication_id: str
    row: Mapping[str, Any]
    identities: Mapping[str, str]
    n_samples: int
    samples: tuple[ExplainedTwin, ...]


def explain_exam(lake: Lake, publication: Publication, row: Mapping[str, Any], limit: int | None = None) -> ExplainedExam:
    """Everything behind one row. Raises StoreError where the lake no longer holds what it was made from."""
    ids: dict[str, str] = publication.provenance()["identities"]
    members = _members(lake, ids, row)
    listed = unnoticed_first(members)
    shown = listed[:limit]
    of_each = {key: members.filter(of=key).sort("place", "repeat") for key in shown}
    samples = tuple(
        ExplainedTwin(key, tuple(explained_judgements(lake, ids, mine.drop("of", "place")))) for key, mine in of_each.items()
    )
    return ExplainedExam(publication.publication_id, dict(row), ids, len(listed), samples)


def unnoticed_first(members: pl.DataFrame) -> list[str]:
    """The untouched samples that have a faulted twin, by how far its mean score fell; without a score of both, last."""
    score, place = pl.col("score"), pl.col("place")
    fall = score.filter(place == 0).mean() - score.filter(place == 2).mean()
    each = members.group_by("of").agg(fall=fall, is_whole=(place == 0).any() & (place == 2).any())
    return each.filter("is_whole").sort("fall", "of", nulls_last=True)["of"].to_list()


def _members(lake: Lake, ids: Mapping[str, str], row: Mapping[str, Any]) -> pl.DataFrame:
    """The judgements beside their scores; `of` is the untouched sample, `place` 0, 1 or 2: untouched, harmless, faulted."""
    named = lake.collect(
        SAMPLES, ids["dataset_id"],
        lambda rows: rows.filter(pl.col("model") == EXAM_MODEL).select("sample_id", "checkpoint", of="item_id"),
    )  # fmt: skip
    places = {PlantedFault.HARMLESS.value: 1, row["fault"]: 2}
    twins = named.filter(pl.col("checkpoint").is_in(list(places))).with_columns(
        place=pl.col("checkpoint").replace_strict(places, return_dtype=pl.Int64), occasion=pl.lit(OCCASION)
    )
    of = twins.filter(place=2)["of"]
    own = pl.DataFrame({"sample_id": of, "of": of}).with_columns(place=pl.lit(0, pl.Int64), occasion=pl.lit(""))
    wanted = pl.concat([own, twins.filter(pl.col("of").is_in(of.implode())).select(own.columns)])
    mine = lake.scan(JUDGEMENTS, ids["plan_id"]).filter(
        pl.col("rubric_id") == row["rubric_id"], pl.col("judge_model") == row["judge_model"]
    )
    scores = scores_of(lake, ids, row["dimension"], item=pl.col("item").fill_null("")).filter(pl.col("item") == "")
    found = mine.join(wanted.lazy(), on=["sample_id", "occasion"]).join(scores, on="request_key", how="left").collect()
    return found.with_columns(**OUTCOME)
