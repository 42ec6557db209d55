"""What one published number is made of: samples, the exact messages, the replies verbatim, the scores, the hashes.

And which cell, or row of another table, a reader means: by its id, or a cell by the path model/checkpoint/rubric/dimension.
"""

import difflib
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from schemas.errors import InputError
from schemas.metrics import RUBRIC_CELL, TOTALS, means_for_prompts_like_these
from schemas.statuses.cells import Total
from schemas.statuses.rows import NO_FAILURES, ROW_UNUSABLE, JudgementStatus, ScoreStatus
from schemas.tables.stored import JUDGEMENTS, SCORES
from schemas.tables.table import Table
from tasks.lake.reading import Lake
from tasks.lake.request_rows import items_not_asked
from tasks.publish.explain.judgements import OUTCOME, UNSCORED, ExplainedJudgement, explained_judgements, scores_of
from tasks.publish.explain.recomputed_mean import is_reproduced, recomputed_mean
from tasks.publish.reading import Publication, checked_file, load_cells

_ADDRESS = ("model", "checkpoint", "rubric_id", "dimension", "category")


@dataclass(frozen=True, slots=True)
class Explanation:
    """A cell, its judgements (failures first, then by score; at most `limit`), and the mean taken again over all of them.

    `recomputed` is None where no mean is published: one taken again would be a number that was withheld.
    """

    publication_id: str
    cell: Mapping[str, Any]
    identities: Mapping[str, str]
    n_judgements: int
    judgements: tuple[ExplainedJudgement, ...]
    recomputed: float | None
    is_reproduced: bool


@dataclass(frozen=True, slots=True)
class ExplainedSample:
    """One sample: every judgement of it, with its scores as (dimension, score, status, reason)."""

    publication_id: str
    sample_id: str
    model: str
    checkpoint: str
    judgements: tuple[ExplainedJudgement, ...]
    judged_by: tuple[tuple[str, str], ...]  # rubric and judge of each
    scores: tuple[tuple[tuple[str, float | None, str, str | None], ...], ...]  # of each


def explain(lake: Lake, publication: Publication, cell: Mapping[str, Any], limit: int | None = None) -> Explanation:
    """Everything behind one cell. Raises StoreError where the lake no longer holds what the publication was made from."""
    said = publication.provenance()
    ids: dict[str, str] = said["identities"]
    members = members_of(lake, ids, cell, load_cells(publication))
    recomputed = recomputed_mean(members, str(cell["category"]), str(cell["metric"]))
    shown = members.head(limit) if limit is not None else members
    judgements = tuple(explained_judgements(lake, ids, shown))
    names = {name: str(value) for name, value in said.items() if name in ("benchmark_digest", "code_version")}
    return Explanation(
        publication.publication_id,
        dict(cell),
        ids | names,
        members.height,
        judgements,
        None if cell["estimate"] is None else recomputed,
        is_reproduced(cell, members, recomputed),
    )


def explain_sample(lake: Lake, publication: Publication, prefix: str) -> ExplainedSample | None:
    """Every judgement of the one judged sample whose id begins so; None where there is none, or more than one."""
    ids: dict[str, str] = publication.provenance()["identities"]
    judged = lake.scan(JUDGEMENTS, ids["plan_id"]).filter(pl.col("sample_id").str.starts_with(prefix), pl.col("occasion") == "")
    rows = judged.collect(engine="streaming").sort("rubric_id", "judge_model", "repeat")
    if rows["sample_id"].n_unique() != 1:
        return None
    wanted = pl.col("request_key").is_in(rows["request_key"].drop_nulls().to_list())
    scores: dict[str | None, list[tuple[str, float | None, str, str | None]]] = defaultdict(list)
    for row in lake.scan(SCORES, ids["reading_id"]).filter(wanted).sort("dimension").collect(engine="streaming").to_dicts():
        scores[row["request_key"]].append(
            (_named(row), row["score"], row["status"], row["note"] if row["item"] else row["reason"])
        )
    members = rows.with_columns(pl.lit(None, kind).alias(name) for name, kind in UNSCORED.items())
    return ExplainedSample(
        publication.publication_id,
        rows["sample_id"][0],
        rows["model"][0],
        rows["checkpoint"][0],
        tuple(explained_judgements(lake, ids, members)),
        tuple(rows.select("rubric_id", "judge_model").iter_rows()),
        tuple(tuple(scores[key]) for key in rows["request_key"]),
    )


def _named(row: Mapping[str, Any]) -> str:
    """A row's dimension, and its item where it is of one."""
    return f"{row['dimension']}, item {row['item']}" if row["item"] else str(row["dimension"])


def members_of(lake: Lake, ids: Mapping[str, str], cell: Mapping[str, Any], cells: pl.DataFrame) -> pl.DataFrame:
    """The cell's judgements beside their scores: failures first, then by score.

    A total holds the categories that have a cell of their own in the publication (all, where none has): that is how the
    judgements that never were planned are told apart by dimension. It also holds unusable samples without a category, where
    these are no category of their own; under a rubric that dispatches on it, if the row itself is unusable. Duplicates
    that an older release planned as none are left out.
    """
    judgements = lake.scan(JUDGEMENTS, ids["plan_id"]).filter(
        pl.col("occasion") == "", pl.col("status") != JudgementStatus.DUPLICATE.value,
        *(pl.col(name) == cell[name] for name in RUBRIC_CELL),
    )  # fmt: skip
    named = cells.filter(dimension=cell["dimension"], **{name: cell[name] for name in RUBRIC_CELL})["category"]
    named = named.filter(~named.is_in(TOTALS))
    category = pl.col("category").fill_null(Total.UNNAMED.value)
    if cell["category"] not in TOTALS:
        judgements = judgements.filter(category == cell["category"])
    elif named.len():
        is_unknown = (category == Total.UNNAMED.value) & (pl.col("status") == JudgementStatus.UNUSABLE_SAMPLE.value)
        judgements = judgements.filter(category.is_in(named.to_list()) | is_unknown)
    scores = scores_of(lake, ids, cell["dimension"], item=pl.col("item").fill_null(""), asked_as="variant")
    joined = judgements.join(scores, on="request_key", how="left").collect()
    if (joined["asked_as"] == joined["category"]).any():
        joined = joined.filter(pl.col("category").is_not_null() | pl.col("reason").is_in(ROW_UNUSABLE))
    joined = joined.drop("asked_as")
    without = items_not_asked(joined.filter(pl.col("request_key").is_null()), str(cell["dimension"])).select(joined.columns)
    with_request = joined.filter(pl.col("request_key").is_not_null())
    if any((some["item"].fill_null("") != "").any() for some in (without, with_request)):  # of a kind: item by item
        joined = pl.concat([with_request, without])
    applies = ~pl.col("score_status").is_in([word.value for word in NO_FAILURES]).fill_null(value=False)
    asked = joined.filter(applies, pl.col("score_status").is_not_null() | pl.col("request_key").is_null())
    is_failure = pl.col("score_status").ne_missing(ScoreStatus.SCORED.value)
    found = asked.with_columns(**OUTCOME, is_failure=is_failure)
    return found.sort("is_failure", "score", "sample_id", "repeat", descending=[True, False, False, False])


def find_cell(cells: pl.DataFrame, address: str, where: str = "this publication") -> dict[str, Any]:
    """The cell with this id (a prefix of 4 characters or more) or path model/checkpoint/rubric/dimension[/category].

    A path means the mean for prompts like these; without a category, `__macro__`. Names may hold slashes: the joined
    texts are compared.
    Raises InputError that lists what it can be, and says `where` it was looked for.
    """
    joined = cells.with_columns(path=pl.concat_str(_ADDRESS, separator="/"))
    found = means_for_prompts_like_these(joined).filter(pl.col("path").is_in([address, f"{address}/{Total.MACRO.value}"]))
    if found.is_empty() and re.fullmatch(r"[0-9a-f]{4,12}", address):
        found = joined.filter(pl.col("cell_id").str.starts_with(address))
    if found.height == 1:
        return found.drop("path").row(0, named=True)
    if found.is_empty():
        close = difflib.get_close_matches(address, joined["path"].to_list(), n=5, cutoff=0.3)
        found = means_for_prompts_like_these(joined).filter(pl.col("path").is_in(close))
        raise InputError(
            f"there is no cell {address!r} in {where}; write four characters or more of a cell's id, eight of a sample's, or "
            f"model/checkpoint/rubric/dimension[/category]; similar:\n{_listed(found)}"
        )
    raise InputError(f"{address!r} matches {found.height} cells; write the id of one:\n{_listed(found)}")


def find_row(publication: Publication, table: Table, name: str, address: str) -> dict[str, Any] | None:
    """The row of a table whose `name`, its id, begins so; None where there is none, or more than one. Raises CorruptLakeError."""
    file = f"{table.name}.parquet"
    if len(address) < 4 or file not in publication.files:
        return None
    found = pl.read_parquet(checked_file(publication, file)).filter(pl.col(name).str.starts_with(address))
    return found.row(0, named=True) if found.height == 1 else None


def _listed(found: pl.DataFrame) -> str:
    rows = found.select("cell_id", "path", "judge_model").head(20).iter_rows()
    return "\n".join(f"  {cell_id}  {path}  (judge {judge})" for cell_id, path, judge in rows) or "  none"
