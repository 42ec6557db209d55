"""The tables about the judge itself that a run publishes where repeats or several judges let its noise be told apart."""

import polars as pl

from schemas.tables import DESIGNS, JURY, RELIABILITY, Table
from tasks.aggregate.reliability import designs, reliability
from tasks.aggregate.reliability_jury import jury
from tasks.aggregate.reliability_scores import scored


def judge_tables(judgements: pl.LazyFrame, scores: pl.LazyFrame) -> dict[Table, pl.DataFrame]:
    """How much of a score is the judge's noise, how far several judges agree, and which scores would be worth buying."""
    rows = scored(judgements, scores)
    return {RELIABILITY: reliability(rows), DESIGNS: designs(rows), JURY: jury(rows)}
