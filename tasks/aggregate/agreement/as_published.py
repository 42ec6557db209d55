"""What the judge alone says of checkpoints, as the leaderboard has it: one question has one answer, corrected in one family.

How the leaderboard answers is comparisons/ and standings.py; what people say, and both together, deltas.py.
"""

from collections.abc import Mapping, Sequence

import polars as pl

from schemas.statuses.people import Estimator
from schemas.tables.agreement import CORRECTED_COMPARISONS, CORRECTED_STANDINGS
from schemas.tables.published import COMPARISONS, STANDINGS
from schemas.tables.stored import JUDGEMENTS, REPLIES, SCORES
from schemas.tables.table import Table
from tasks.aggregate.tables import Settings, aggregated
from tasks.context import StageContext

_COMPARED = (
    "delta", "se", "df", "ci_low", "ci_high", "ci_low_adjusted", "ci_high_adjusted", "p", "p_adjusted", "verdict", "adjustment",
    "family", "n_family", "status", "reason",
)  # fmt: skip
_RANKED = ("state", "reason", "rank_low", "rank_high", "n_ranked", "adjustment", "family", "n_family")


def leaderboard_of(context: StageContext) -> dict[Table, pl.DataFrame]:
    """The tables a run of the same judgements publishes."""
    lake, ids = context.lake, context.ids
    of_one = lake.scan(JUDGEMENTS, ids.plan_id).filter(pl.col("second_sample_id").is_null())
    scores, replies = lake.scan(SCORES, ids.reading_id), lake.scan(REPLIES, ids.snapshot_id)
    return aggregated(of_one, scores, replies, context.rubrics, Settings.of(context))


def as_published(made: Mapping[Table, pl.DataFrame], board: Mapping[Table, pl.DataFrame]) -> dict[Table, pl.DataFrame]:
    """Both corrected tables with the leaderboard's figures, verdicts and ranks in the judge's rows. What it lacks stays."""
    return {
        CORRECTED_COMPARISONS: _from(board[COMPARISONS], COMPARISONS.key, made[CORRECTED_COMPARISONS], _COMPARED),
        CORRECTED_STANDINGS: _from(board[STANDINGS], STANDINGS.key, made[CORRECTED_STANDINGS], _RANKED),
    }


def _from(board: pl.DataFrame, key: Sequence[str], mine: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    theirs = board.select(*key, *(pl.col(name).alias(f"board_{name}") for name in columns), is_there=pl.lit(value=True))
    is_theirs = (pl.col("estimator") == Estimator.JUDGE.value) & pl.col("is_there")
    taken = {name: pl.when(is_theirs).then(f"board_{name}").otherwise(name) for name in columns}
    return mine.join(theirs, on=key, how="left", maintain_order="left").with_columns(**taken).select(mine.columns)
