"""Scores that no reply says: figures, and the items of a sample under their kinds. The closed forms are rubrics/figures.py.

A figure of a request's own dimensions stands beside them. One of items stands under the key of its judgement's list of items, and
so does each item once more for each of its kinds: a mean over a kind is one over its items.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson
import polars as pl

from rubrics.figures import Derived, Operand, derive_each, failed_parents
from rubrics.model import Dimension, Rubric, Variant
from schemas.errors import CorruptLakeError
from schemas.statuses.rows import NO_FAILURES, JudgementStatus, ParseReason, ScoreStatus
from schemas.tables.stored import JUDGEMENTS, SCORES
from tasks.lake.reading import Lake
from tasks.lake.writing import Staging
from tasks.validate.scales import of_items

Row = Mapping[str, Any]
N_LISTS_AT_ONCE = 4000
"""Judgements whose items' scores are in memory together: some hundred megabytes where each has two hundred."""
_UNSAID = dict.fromkeys(("note", "ask_index", "score_span"))


def figures_of_requests(scores: pl.DataFrame, rubrics: Mapping[str, Rubric]) -> pl.DataFrame:
    """The figures of these requests' own dimensions, as SCORES; rubrics with items have none here."""
    wanted = [r.id for r in rubrics.values() if not r.is_of_lists and any(v.derived for v in r.variants.values())]
    mine = scores.filter(pl.col("rubric_id").is_in(wanted)) if wanted else scores[:0]
    found: list[dict[str, Any]] = []
    for rows in mine.partition_by("request_key", maintain_order=True):
        read = rows.to_dicts()
        variant = _variant(rubrics, read[0])
        operands = [_operand(row, str(row["dimension"]), _named(variant, row)) for row in read]
        found += [_figure_row(read[0], one, figure) for one, figure in derive_each(variant.derived, operands)]
    return pl.DataFrame(found, schema=SCORES.empty().schema)


def write_item_scores(
    lake: Lake, plan_id: str, staging: Staging, rubrics: Mapping[str, Rubric], n_at_once: int = N_LISTS_AT_ONCE
) -> list[int]:
    """Write what follows from the items of samples as staged parts of scores, behind the last that is there; the indices written.

    Parts are numbered with gaps, where nothing is asked about a part of samples.
    The judgements of `n_at_once` lists are in memory at a time, and make a part.
    """
    wanted = of_items(rubrics)
    if not wanted:
        return []
    is_mine = pl.col("rubric_id").is_in(wanted)
    judged = lake.scan(JUDGEMENTS, plan_id).filter(is_mine, pl.col("status") == JudgementStatus.PLANNED.value)
    keys = judged.select(pl.col("request_key").unique().sort()).collect(engine="streaming")["request_key"]
    paths = list(staging.part_paths())
    scores = pl.scan_parquet(paths).filter(is_mine)
    first = 1 + max((int(path.stem.removeprefix("part-")) for path in paths), default=-1)
    written: list[int] = []
    for start in range(0, len(keys), n_at_once):
        some = keys.slice(start, n_at_once)
        lists = judged.filter(pl.col("request_key").is_in(some.implode())).select("request_key", "items_json").collect()
        items = {key: orjson.loads(text) for key, text in lists.unique("request_key").iter_rows()}
        asked = pl.Series([item["request_key"] for listed in items.values() for item in listed], dtype=pl.String).unique()
        found = scores.filter(pl.col("request_key").is_in(asked.implode())).collect(engine="streaming")
        written.append(first + len(written))
        staging.write_part(written[-1], scores_of_lists(items, found, rubrics))
    return written


def scores_of_lists(
    lists: Mapping[str, Sequence[Mapping[str, Any]]], scores: pl.DataFrame, rubrics: Mapping[str, Rubric]
) -> pl.DataFrame:
    """What follows from the scores of lists' requests, as rows of SCORES. `lists`: by request_key the items of a judgement.

    Raises CorruptLakeError where a request has no score.
    """
    said: dict[tuple[str, str], list[Row]] = {}
    for row in scores.iter_rows(named=True):
        said.setdefault((row["request_key"], row["item"]), []).append(row)
    rows = [row for key, items in lists.items() for row in _of_list(key, items, said, rubrics)]
    return pl.DataFrame(rows, schema=SCORES.empty().schema).sort(*SCORES.key)


def _of_list(
    key: str, items: Sequence[Mapping[str, Any]], said: Mapping[tuple[str, str], list[Row]], rubrics: Mapping[str, Rubric]
) -> Iterator[dict[str, Any]]:
    """The rows of one sample: each item under its kinds, and the figures."""
    rows: list[Row] = []
    for item in items:
        found = said.get((item["request_key"], item["item"]))
        if found is None:
            raise CorruptLakeError(
                f"item {item['id']} of the judgement {key[:12]} has no score of its request {item['request_key'][:12]}; the "
                "scores belong to another plan; run the benchmark again, which rereads the replies"
            )
        rows += found
    rubric = rubrics[rows[0]["rubric_id"]]
    if rubric.requests:
        whole = rubric.variants[None]
        of_all = [_operand(row, str(row["dimension"]), _named(whole, row)) for row in rows]
        about = {**rows[0], "request_key": key, "variant": None}
        yield from (_figure_row(about, one, figure) for one, figure in derive_each(whole.derived, of_all))
        return
    variant = _variant(rubrics, rows[0])
    (dimension,) = variant.dimensions
    operands = [
        _operand(row, item["id"], dimension, item["weight"], tuple(item["depends_on"]))
        for row, item in zip(rows, items, strict=True)
    ]
    figures = [one for one in variant.derived if one.figure]
    is_gated = any(one.figure and one.figure.when_parent_fails for one in figures)
    voided = failed_parents(operands) if is_gated else {}
    for row, item in zip(rows, items, strict=True):
        shown = {**row, **_UNSAID, "request_key": key, "item": item["id"]}
        parent = voided.get(item["id"])
        if parent is not None:  # whatever was answered: under the dimension too, so that items of no kind are told
            shown |= _not_asked_for(dimension, parent)
            yield {**shown, "dimension": dimension.key}
        yield from ({**shown, "dimension": kind} for kind in item["kinds"])
    about = {**rows[0], "request_key": key}
    yield from (_figure_row(about, one, figure) for one, figure in derive_each(figures, operands))


def _operand(row: Row, name: str, dimension: Dimension, weight: float = 1.0, parents: tuple[str, ...] = ()) -> Operand:
    is_scored = row["status"] == ScoreStatus.SCORED.value
    return Operand(
        name, row["score"] if is_scored else None, row["bound_low"], row["bound_high"], row["reason"] or row["status"],
        row["status"] not in NO_FAILURES, weight, parents, dimension.minimum,
    )  # fmt: skip


def _not_asked_for(dimension: Dimension, parent: str) -> dict[str, Any]:
    word = ScoreStatus.NOT_ASKED_FOR.value
    return {
        "score": None, "status": word, "reason": word, "note": f"the item it depends on, {parent}, failed", "is_in_range": None,
        "is_on_step": None, "is_rule_kept": None, "bound_low": dimension.minimum, "bound_high": dimension.maximum,
    }  # fmt: skip


def _figure_row(about: Row, dimension: Dimension, figure: Derived) -> dict[str, Any]:
    """A row of SCORES; `about` is one of what the figure is made of."""
    verdict = None if figure.score is None else True
    status, reason = ScoreStatus.SCORED.value, None
    if figure.score is None:
        status = ScoreStatus.MISSING_OPERAND.value if figure.reason else ScoreStatus.NOT_APPLICABLE.value
        reason = figure.reason or ParseReason.NOT_APPLICABLE.value
    return {
        **about, **_UNSAID, "dimension": dimension.key, "item": "", "score": figure.score, "status": status, "reason": reason,
        "note": figure.note, "bound_low": figure.low, "bound_high": figure.high, "is_in_range": verdict, "is_on_step": verdict,
        "is_rule_kept": verdict,
    }  # fmt: skip


def _variant(rubrics: Mapping[str, Rubric], row: Row) -> Variant:
    variant = rubrics[row["rubric_id"]].variant(row["variant"])
    assert variant is not None
    return variant


def _named(variant: Variant, row: Row) -> Dimension:
    return next(one for one in variant.dimensions if one.key == row["dimension"])
