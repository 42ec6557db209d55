"""The table `pooled`: several judges' scores of the same samples as one figure, beside each judge's own tables, never in them.

A sample counts where every judge scored it; else it fails, with the first such judge's reason, and does not apply where none of
them says it does. Its value is the mean over the judges of each one's mean over repeats. A sample is judged as often as by the
judge with most repeats, and fails as often as for the judge who lacks most. The rest is as in every cell: tables.py.
"""

import json
from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from rubrics.model import Rubric
from schemas.metrics import IS_OF_WHOLE, MEAN
from schemas.statuses.cells import CellStatus
from schemas.statuses.rows import NO_FAILURES, JudgementStatus, ScoreStatus
from schemas.tables.published import POOLED
from schemas.tables.table import Row
from tasks.aggregate.reliability.jury import WHOLE_JURY
from tasks.aggregate.tables import Settings, long_table

_SAMPLE = [
    "rubric_id", "rubric_version", "model", "checkpoint", "category", "prompt_id", "sample_id", "duplicate_of_sample_id",
    "first_look",
]  # fmt: skip
_CELL = ["rubric_id", "model", "checkpoint", "dimension", "category", "estimand"]
_ENDS = ("bound_low", "bound_high")
_NUMBERS = ("score", *_ENDS)
_FIGURES = ("estimate", "se", "ci_low", "ci_high", "ci_method", "df", "status", "reason")
_WITHHELD = dict.fromkeys(_FIGURES) | {"status": CellStatus.BLOCKED.value}
_NOT_BY_ALL = "not_scored_by_every_judge"
_IS_ASIDE = pl.col("status").is_in([word.value for word in NO_FAILURES])
_IS_SCORED = pl.col("status") == ScoreStatus.SCORED.value

_Cell = tuple[object, ...]
_Frames = tuple[pl.LazyFrame, pl.LazyFrame]
"""Judgements and scores."""


def pooled(
    judgements: pl.LazyFrame, scores: pl.LazyFrame, rubrics: Mapping[str, Rubric], run: Settings, cells: pl.DataFrame
) -> pl.DataFrame:
    """The POOLED table, sorted; without rows where fewer than two judges judged. Anchors are no part of it.

    `cells` is benchmark_long: where a judge's own cell is blocked, so is the jury's, for the reason of the judge who lacks most.
    """
    asked = judgements.filter(pl.col("occasion") == "")
    judges = asked.select(pl.col("judge_model").unique().sort()).collect()["judge_model"].to_list()
    is_blocked = (pl.col("metric") == MEAN) & (pl.col("status") == CellStatus.BLOCKED.value)
    blocked = cells.filter(is_blocked, pl.col("judge_model").is_in(judges)).sort("coverage", "judge_model", descending=True)
    withheld = {tuple(cell): reason for reason, *cell in blocked.select("reason", *_CELL).iter_rows()}
    rows = _rows((asked, scores), rubrics, run, judges, withheld) if len(judges) > 1 else []
    return POOLED.frame(rows).sort(POOLED.key)


def _rows(
    frames: _Frames, rubrics: Mapping[str, Rubric], run: Settings, judges: list[str], withheld: Mapping[_Cell, str]
) -> list[Row]:
    """The jury's cells; each judge's own over the same samples are made beside them, for the spread.

    Figures are of samples, each once; counts, coverage and bounds of all repeats.
    """
    own = _answers(*frames).collect()
    jury = _of_jury(own, len(judges))
    once = _means(_each_once(frames[0], own, jury, judges), rubrics, replace(run, min_coverage=0.0))
    found: list[Row] = []
    for cell, every in _means(_each_repeat(frames[0], jury), rubrics, run).get(WHOLE_JURY, {}).items():
        is_null, whole = every["status"] == CellStatus.NULL, once[WHOLE_JURY][cell]
        row = every if is_null or cell not in withheld else every | _WITHHELD | {"reason": withheld[cell]}
        is_shown = row["estimate"] is not None
        from_once = [*_FIGURES * is_shown, *_ENDS * (not row["n_failed"])]
        means = {judge: once.get(judge, {}).get(cell, {}).get("estimate") for judge in judges if is_shown}
        row |= {name: whole[name] for name in from_once} | {"n_samples": whole["n_judgements"]}
        found.append(row | _spread(means, judges))
    return found


def _means(frames: _Frames, rubrics: Mapping[str, Rubric], run: Settings) -> dict[str, dict[_Cell, Row]]:
    """Each judge's cells."""
    found: dict[str, dict[_Cell, Row]] = {}
    for row in long_table(*frames, rubrics, run).filter(pl.col("metric") == MEAN).iter_rows(named=True):
        found.setdefault(row["judge_model"], {})[tuple(row[name] for name in _CELL)] = row
    return found


def _spread(means: Mapping[str, float | None], judges: list[str]) -> Row:
    known = [mean for mean in means.values() if mean is not None]
    shown = {judge: means.get(judge) for judge in judges}
    return {
        "n_judges": len(judges), "judge_spread": max(known) - min(known) if known else None,
        "judges_json": json.dumps(shown, ensure_ascii=False, separators=(",", ":")),
    }  # fmt: skip


def _each_once(asked: pl.LazyFrame, own: pl.DataFrame, jury: pl.DataFrame, judges: list[str]) -> _Frames:
    """As if the jury, and each judge on the jury's samples, had judged every sample once.

    They are frames made once: what reads them passes over them several times and needs one order.
    """
    cell = [*_SAMPLE, "dimension"]
    of_all = jury.select(*cell, is_common=pl.col("n_scored") > 0)
    both = [jury.with_columns(judge_model=pl.lit(WHOLE_JURY)), own]
    is_common, key = pl.col("is_common"), pl.concat_str("judge_model", "sample_id", separator=" ").alias("request_key")
    read = pl.concat([one.join(of_all, on=cell, nulls_equal=True) for one in both], how="diagonal").select(
        "rubric_id", "dimension", "bound_low", "bound_high", key,
        score=pl.when(is_common).then("score"),
        status=pl.when(is_common).then(pl.lit(ScoreStatus.SCORED.value)).otherwise(pl.col("status").fill_null(_NOT_BY_ALL)),
        reason=pl.when(~is_common).then(pl.col("reason").fill_null(_NOT_BY_ALL)),
    )  # fmt: skip
    samples = _samples(asked).collect()
    judged = pl.concat([samples.with_columns(judge_model=pl.lit(name)) for name in (WHOLE_JURY, *judges)])
    return _whole(judged.with_columns(key, repeat=pl.lit(0, pl.Int64)), read)


def _each_repeat(asked: pl.LazyFrame, jury: pl.DataFrame) -> _Frames:
    """As if the jury had judged every sample as often as `n_asked` says, and failed but for `n_scored` times.

    A failure can have been what makes the sample's bounds the means of its judges' bounds.
    """
    repeats = asked.select(*_SAMPLE, "repeat").unique().sort(*_SAMPLE, "repeat")
    key = pl.concat_str("sample_id", "repeat", separator=" ").alias("request_key")
    judged = repeats.join(_samples(asked), on=_SAMPLE, nulls_equal=True, maintain_order="left").collect().with_columns(key)
    n, of = pl.col("n_scored"), pl.col("n_asked")
    is_scored, is_asked = pl.col("repeat") < n, pl.col("repeat") < of
    is_failed = is_asked & ~is_scored
    status, reason = (pl.when(is_failed).then(pl.col(name).fill_null(_NOT_BY_ALL)) for name in ("status", "reason"))
    if_not = pl.when(is_scored).then(pl.lit(ScoreStatus.SCORED.value)).otherwise(pl.lit(ScoreStatus.NOT_APPLICABLE.value))
    ends = [pl.when(is_failed).then((of * pl.col(end) - n * pl.col("score").fill_null(0)) / (of - n)).alias(end) for end in _ENDS]
    read = judged.drop("status", "reason").join(jury, on=_SAMPLE, nulls_equal=True, maintain_order="left").select(
        "rubric_id", "dimension", "request_key", *ends,
        score=pl.when(is_scored).then("score"), status=pl.coalesce(status, if_not), reason=reason,
    )  # fmt: skip
    return _whole(judged.with_columns(judge_model=pl.lit(WHOLE_JURY)), read)


def _whole(judged: pl.DataFrame, read: pl.DataFrame) -> _Frames:
    """Of whole samples alone, which no occasion sets apart."""
    alike = {"occasion": pl.lit(""), "items_json": pl.lit(None, pl.String)}
    return judged.with_columns(**alike).lazy(), read.with_columns(item=pl.lit("")).lazy()


def _samples(asked: pl.LazyFrame) -> pl.LazyFrame:
    """Each sample once: planned where it was planned for every judge, else as for the first judge who could not be asked."""
    is_lost = pl.col("status") != JudgementStatus.PLANNED.value
    ordered = asked.sort(*_SAMPLE, "judge_model", "repeat").group_by(_SAMPLE, maintain_order=True)
    found = ordered.agg(pl.col("status", "reason").filter(is_lost).first())
    return found.with_columns(pl.col("status").fill_null(JudgementStatus.PLANNED.value))


def _answers(asked: pl.LazyFrame, scores: pl.LazyFrame) -> pl.LazyFrame:
    """Each judge's score of each sample and dimension: the mean of the repeats that were scored, null where none was.

    Its bounds are the means over the repeats to which the dimension applies (`n_asked`) of the score, or what it can have been.
    Status and reason are those of the first repeat that failed; where it applies to none, of the first; else null.
    """
    read = scores.filter(IS_OF_WHOLE).select(
        "request_key", "dimension", "status", "bound_low", "bound_high", reason=pl.coalesce("reason", "status"),
        score=pl.when(_IS_SCORED).then("score"),
    )  # fmt: skip
    by = [*_SAMPLE, "dimension", "judge_model"]
    rows = asked.select(*_SAMPLE, "judge_model", "repeat", "request_key").join(read, on="request_key")
    why = [
        pl.coalesce(pl.col(name).filter(~_IS_SCORED & ~_IS_ASIDE).first(), pl.when(_IS_ASIDE.all()).then(pl.col(name).first()))
        for name in ("status", "reason")
    ]
    found = rows.sort(*by, "repeat").group_by(by, maintain_order=True).agg(
        pl.col(*_NUMBERS).filter(~_IS_ASIDE | _IS_ASIDE.all()), *why,
        n_asked=(~_IS_ASIDE).sum(), n_scored=_IS_SCORED.sum(),
    )  # fmt: skip
    return found.with_columns(_mean_values())


def _of_jury(own: pl.DataFrame, n_judges: int) -> pl.DataFrame:
    """The jury's score of each sample and dimension, and how many of its judgements have one: as few as of a judge.

    Status and reason are of the first failure of those who lack most; that it does not apply where all judges say so; else null.
    """
    n, of = pl.col("n_scored"), pl.col("n_asked")
    share = (n / of).filter(~_IS_ASIDE)
    failed = [pl.col(name).filter(~_IS_ASIDE).sort_by(share, maintain_order=True).first() for name in ("status", "reason")]
    agreed = [pl.when(_IS_ASIDE.sum() == n_judges).then(pl.col(name).first()) for name in ("status", "reason")]
    why = [pl.coalesce(*both) for both in zip(failed, agreed, strict=True)]
    found = own.group_by([*_SAMPLE, "dimension"], maintain_order=True).agg(
        *_NUMBERS, *why, n_asked=of.max(),
        n_scored=pl.when((n > 0).sum() == n_judges).then((of.max() * n // of.clip(1)).min()).otherwise(0),
    )  # fmt: skip
    return found.with_columns(_mean_values())


def _mean_values() -> list[pl.Expr]:
    """The means of what is there, summed in the rows' order: threads change no published byte."""
    there = {name: pl.col(name).list.drop_nulls() for name in _NUMBERS}
    return [pl.when(some.list.len() > 0).then(some.list.sum() / some.list.len()).alias(name) for name, some in there.items()]
