"""Freezing anchors: a set of judged samples chosen once, asked about every night. How is tasks/plan/dataset.py."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from flows.nights.record import notes
from schemas.errors import InputError
from schemas.statuses.rows import NO_FAILURES, SampleStatus, ScoreStatus
from schemas.tables.stored import JUDGEMENTS, SAMPLES, SCORES
from tasks.context import StageContext
from tasks.ingest.identity import dataset_id, id_of_row
from tasks.ingest.parts import commit, copy_part, discard
from tasks.lake.notes import read_notes, write_note
from tasks.lake.pictures import StoredDataset, with_pictures
from tasks.lake.writing import stage
from tasks.plan.anchors import as_role
from tasks.publish.reading import current

N_LEVELS = 3
"""Within a category anchors are taken alike from the low, middle and high third of its scores: a judge may change at one end."""


@dataclass(frozen=True, slots=True)
class AnchorSet:
    """A frozen set: its id (the digest of its samples' ids), when and from what it was frozen."""

    anchor_set: str
    frozen_at: str  # ISO, UTC
    publication_id: str
    n_samples: int
    n_by_source: dict[str, int]


def freeze(run: StageContext, n: int, *, is_anew: bool = False) -> AnchorSet:
    """Choose `n` anchors for each set of sources that rubrics share, from the current publication, and keep them for good.

    Candidates are samples that every judge scored under every rubric for them, but those of pairs. Categories are drawn on
    alike, in each the levels of score in turn, another prompt each time as long as there is one. The same publication and `n`
    give the same set.
    Raises InputError where there is a set already (unless `is_anew`), or nothing to choose from.
    """
    frozen = anchor_sets(run.lake.root, run.benchmark.name)
    if frozen and not is_anew:
        raise InputError(
            f"{run.benchmark.name} already has anchors ({frozen[-1].anchor_set[:12]}, frozen {frozen[-1].frozen_at[:10]}); "
            "newly frozen anchors start a new baseline of 30 nights: add --anew if you want that"
        )
    publication = current(run.lake.root, run.benchmark.name)
    ids = publication.provenance()["identities"]
    by_sources: dict[tuple[str, ...], list[str]] = {}
    alone = [rubric_id for rubric_id, rubric in run.rubrics.items() if not rubric.is_of_pairs]  # nobody compares anchors
    for rubric_id in sorted(alone):
        by_sources.setdefault(tuple(run.sources_for(rubric_id)), []).append(rubric_id)
    chosen: list[str] = []
    for rubric_ids in by_sources.values():
        chosen += choose(_candidates(run, ids, rubric_ids), n)
    if not chosen:
        raise InputError(
            f"publication {publication.publication_id[:12]} has no sample that every judge scored, so there is nothing to freeze"
        )
    judged = StoredDataset(run.lake, ids["dataset_id"])
    rows = _rows(judged, chosen)
    staging = stage(run.lake, SAMPLES)
    try:
        written = copy_part(staging, 0, SAMPLES.frame(rows), judged)
        key = dataset_id([written.ids], written.of_sources)
        commit(staging, key, 1)
    finally:
        discard(staging)
    counted = pl.Series([row["source"].partition("/")[2] for row in rows]).value_counts(sort=True)
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    made = AnchorSet(key, now, publication.publication_id, len(rows), dict(sorted(counted.iter_rows())))
    write_note(run.lake.root, _folder(run.lake.root, run.benchmark.name) / f"{key}.json", made)
    return made


def anchor_sets(lake_root: Path, benchmark: str) -> list[AnchorSet]:
    """Every set frozen for a benchmark, the one in use last. Raises CorruptLakeError."""
    folder, what = _folder(lake_root, benchmark), "a valid record of frozen anchors"
    found = read_notes(lake_root, folder, lambda said: AnchorSet(**said), what, "restore it")
    return sorted(found.values(), key=lambda one: one.frozen_at)


def newest_anchor_set(lake_root: Path, benchmark: str) -> str | None:
    """The set in use, None where none was frozen."""
    found = anchor_sets(lake_root, benchmark)
    return found[-1].anchor_set if found else None


def gone_anchors(lake_root: Path, benchmark: str) -> str | None:
    """In a sentence, that the last night with anchors had some of which the record is gone; None where it is there."""
    noted = [(day, note.anchor_set) for day, note in notes(lake_root, benchmark).items() if note.anchor_set is not None]
    if not noted or noted[-1][1] in {one.anchor_set for one in anchor_sets(lake_root, benchmark)}:
        return None
    day, key = noted[-1]
    record = (_folder(lake_root, benchmark) / f"{key}.json").relative_to(lake_root).as_posix()
    return f"the night of {day} had anchors {key[:12]}, which are gone: restore {record} of the lake from a backup"


def _candidates(run: StageContext, ids: dict[str, str], rubric_ids: Sequence[str]) -> pl.DataFrame:
    """(sample_id, category, prompt_id, score) of samples wholly answered under these rubrics; score is a mean of what there is.

    What does not apply is an answer too.
    """
    judgements = run.lake.scan(JUDGEMENTS, ids["plan_id"]).filter(pl.col("occasion") == "", pl.col("rubric_id").is_in(rubric_ids))
    is_answer = pl.col("status").is_in([ScoreStatus.SCORED.value, *(word.value for word in NO_FAILURES)])
    scores = run.lake.scan(SCORES, ids["reading_id"]).group_by("request_key").agg(
        mean=pl.col("score").mean(), is_whole=is_answer.all()
    )  # fmt: skip
    asked = judgements.join(scores, on="request_key", how="left").with_columns(pl.col("is_whole").fill_null(value=False))
    each = asked.sort("rubric_id").group_by("sample_id").agg(
        pl.col("category").drop_nulls().first(), pl.col("prompt_id").first(), pl.col("is_whole").all(),
        score=pl.col("mean").mean(),
    )  # fmt: skip
    return each.filter("is_whole", pl.col("score").is_not_null()).sort("sample_id").collect()


def choose(candidates: pl.DataFrame, n: int) -> list[str]:
    """At most `n` sample ids of (sample_id, category, prompt_id, score): from each category as many, or all that it has.

    Within a category each prompt once before any twice, and the levels of score in turn. Ids are digests: their order has nothing
    to do with what they show.
    """
    place = pl.col("score").rank("ordinal").over("category") - 1
    ranked = candidates.sort("sample_id").with_columns(
        level=place * N_LEVELS // pl.len().over("category"),
        nth_of_prompt=pl.int_range(pl.len()).over("category", "prompt_id"),
    )
    turns = ranked.with_columns(turn=pl.int_range(pl.len()).over("category", "level", "nth_of_prompt"))
    drawn = turns.sort("nth_of_prompt", "turn", "level", "sample_id").with_columns(
        nth_of_category=pl.int_range(pl.len()).over("category")
    )
    return drawn.sort("nth_of_category", "category")["sample_id"].head(n).to_list()


def _rows(dataset: StoredDataset, chosen: Sequence[str]) -> list[dict[str, Any]]:
    """The SAMPLES rows of the anchors, by their own ids; two that show and ask the same are one."""
    wanted = pl.Series(chosen)
    found: dict[str, dict[str, Any]] = {}
    for scan in dataset.lake.scans(SAMPLES, dataset.id):
        mine = scan.filter(pl.col("sample_id").is_in(wanted.implode())).collect()
        for row in with_pictures(mine).iter_rows(named=True):
            role = as_role(row)
            role["sample_id"] = id_of_row(role, SampleStatus(role["status"]))
            found[role["sample_id"]] = role
    return [found[key] for key in sorted(found)]


def _folder(lake_root: Path, benchmark: str) -> Path:
    return lake_root / "anchors" / benchmark
