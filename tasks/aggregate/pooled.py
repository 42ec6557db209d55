"""The table `pooled`: several judges' scores of the same samples as one figure, beside each judge's own tables, never in them.

A sample counts where every judge scored it; else it fails, with the first such judge's reason, and does not apply where none of
them says it does. Its value is the mean over the judges of each one's mean over repeats. The rest is as in every cell: tables.py.
"""

import json
from collections.abc import Mapping

import polars as pl

from rubrics.model import Rubric
from schemas.metrics import IS_OF_WHOLE, MEAN
from schemas.statuses.rows import NO_FAILURES, JudgementStatus, ScoreStatus
from schemas.tables.published import POOLED
from tasks.aggregate.reliability.jury import WHOLE_JURY
from tasks.aggregate.tables import Settings, long_table

_SAMPLE = [
    "rubric_id", "rubric_version", "model", "checkpoint", "category", "prompt_id", "sample_id", "duplicate_of_sample_id",
    "first_look",
]  # fmt: skip
_CELL = ["rubric_id", "model", "checkpoint", "dimension", "category", "estimand"]
_NUMBERS = ("score", "bound_low", "bound_high")
_NOT_BY_ALL = "not_scored_by_every_judge"
_IS_ASIDE = pl.col("status").is_in([word.value for word in NO_FAILURES])


def pooled(judgements: pl.LazyFrame, scores: pl.LazyFrame, rubrics: Mapping[str, Rubric], run: Settings) -> pl.DataFrame:
    """The POOLED table, sorted; without rows where fewer than two judges judged. Anchors are no part of it."""
    asked = judgements.filter(pl.col("occasion") == "")
    judges = asked.select(pl.col("judge_model").unique().sort()).collect()["judge_model"].to_list()
    rows = _rows(asked, scores, rubrics, run, judges) if len(judges) > 1 else []
    return POOLED.frame(rows).sort(POOLED.key)


def _rows(
    asked: pl.LazyFrame, scores: pl.LazyFrame, rubrics: Mapping[str, Rubric], run: Settings, judges: list[str]
) -> list[dict[str, object]]:
    """The jury's cells; each judge's own over the same samples are made beside them, for the spread."""
    cells = long_table(*_pooled(asked, scores, judges), rubrics, run).filter(pl.col("metric") == MEAN)
    own: dict[tuple[object, ...], dict[str, float]] = {}
    for judge, estimate, *cell in cells.select("judge_model", "estimate", *_CELL).drop_nulls("estimate").iter_rows():
        if judge != WHOLE_JURY:
            own.setdefault(tuple(cell), {})[judge] = estimate
    return [
        row | _spread(own.get(tuple(row[name] for name in _CELL), {}), judges)
        | {"n_samples": row["n_judgements"]}
        for row in cells.filter(pl.col("judge_model") == WHOLE_JURY).iter_rows(named=True)
    ]  # fmt: skip


def _spread(means: dict[str, float], judges: list[str]) -> dict[str, object]:
    shown = {judge: means.get(judge) for judge in judges}
    return {
        "n_judges": len(judges), "judge_spread": max(means.values()) - min(means.values()) if means else None,
        "judges_json": json.dumps(shown, ensure_ascii=False, separators=(",", ":")),
    }  # fmt: skip


def _pooled(asked: pl.LazyFrame, scores: pl.LazyFrame, judges: list[str]) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    """(judgements, scores) as if the jury, and each judge on the jury's samples, had judged every sample once.

    They are frames made once: what reads them passes over them several times and needs one order.
    """
    cell = [*_SAMPLE, "dimension"]
    own = _answers(asked, scores).collect()
    jury = own.group_by(cell, maintain_order=True).agg(*_NUMBERS, *_why(len(judges))).with_columns(_means())
    of_all = jury.select(*cell, is_common=pl.col("n") == len(judges))
    both = [jury.with_columns(judge_model=pl.lit(WHOLE_JURY)), own.drop("n")]
    is_common = pl.col("is_common")
    read = pl.concat([one.join(of_all, on=cell, nulls_equal=True) for one in both], how="diagonal").select(
        "rubric_id", "dimension", "bound_low", "bound_high", _key(),
        score=pl.when(is_common).then("score"),
        status=pl.when(is_common).then(pl.lit(ScoreStatus.SCORED.value)).otherwise(pl.col("status").fill_null(_NOT_BY_ALL)),
        reason=pl.when(~is_common).then(pl.col("reason").fill_null(_NOT_BY_ALL)),
    )  # fmt: skip
    samples = _samples(asked).collect()
    judged = pl.concat([samples.with_columns(judge_model=pl.lit(name)) for name in (WHOLE_JURY, *judges)])
    alike = {"occasion": pl.lit(""), "repeat": pl.lit(0, pl.Int64), "items_json": pl.lit(None, pl.String)}
    return judged.with_columns(_key(), **alike).lazy(), read.with_columns(item=pl.lit("")).lazy()  # of whole samples alone


def _samples(asked: pl.LazyFrame) -> pl.LazyFrame:
    """Each sample once: planned where it was planned for every judge, else as for the first judge who could not be asked."""
    is_lost = pl.col("status") != JudgementStatus.PLANNED.value
    ordered = asked.sort(*_SAMPLE, "judge_model", "repeat").group_by(_SAMPLE, maintain_order=True)
    found = ordered.agg(pl.col("status", "reason").filter(is_lost).first())
    return found.with_columns(pl.col("status").fill_null(JudgementStatus.PLANNED.value))


def _answers(asked: pl.LazyFrame, scores: pl.LazyFrame) -> pl.LazyFrame:
    """Each judge's score of each sample and dimension: the mean of the repeats that were scored, null where none was.

    Its bounds are the means over all repeats of the score, or of what it can have been. It failed where a repeat failed and none
    was scored.
    """
    read = scores.filter(IS_OF_WHOLE).select(
        "request_key", "dimension", "status", "bound_low", "bound_high", reason=pl.coalesce("reason", "status"),
        score=pl.when(pl.col("status") == ScoreStatus.SCORED.value).then("score"),
    )  # fmt: skip
    by = [*_SAMPLE, "dimension", "judge_model"]
    rows = asked.select(*_SAMPLE, "judge_model", "repeat", "request_key").join(read, on="request_key")
    rows = rows.sort(*by, _IS_ASIDE, "repeat")
    found = rows.group_by(by, maintain_order=True).agg(*_NUMBERS, pl.col("status", "reason").first()).with_columns(_means())
    return found.with_columns(pl.when(pl.col("n") == 0).then(pl.col(name)).alias(name) for name in ("status", "reason"))


def _means() -> list[pl.Expr]:
    """The means of what is there, summed in the rows' order: threads change no published byte; and `n`, how many scores."""
    there = {name: pl.col(name).list.drop_nulls() for name in _NUMBERS}
    means = [pl.when(some.list.len() > 0).then(some.list.sum() / some.list.len()).alias(name) for name, some in there.items()]
    return [*means, there["score"].list.len().alias("n")]


def _why(n_judges: int) -> list[pl.Expr]:
    """Status and reason of the first judge's failure; that it does not apply where all say so; else null."""
    failed = [pl.col(name).filter(~_IS_ASIDE).first() for name in ("status", "reason")]
    agreed = [pl.when(_IS_ASIDE.sum() == n_judges).then(pl.col(name).first()) for name in ("status", "reason")]
    return [pl.coalesce(*both) for both in zip(failed, agreed, strict=True)]


def _key() -> pl.Expr:
    return pl.concat_str("judge_model", "sample_id", separator=" ").alias("request_key")
