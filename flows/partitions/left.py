"""What is left to ask of partitions that were begun, as the ledger has it now: their rows say it as of their start."""

import polars as pl

from flows.partitions.table import PartitionState, find_partitions
from schemas.errors import StoreError
from tasks.context import StageContext
from tasks.plan.dataset import known_plan


def left_now(run: StageContext, rows: pl.DataFrame) -> pl.DataFrame:
    """These rows with what is left of those that run, or ended before all was asked; as written where the plan is cleared.

    Where the ledger is away all stay as they were written.
    """
    is_begun = pl.col("state").is_in([PartitionState.RUNNING.value, PartitionState.FAILED.value])
    found = [pl.DataFrame(schema={"partition_id": pl.String, "n_now": pl.Int64})]
    for dataset_id in rows.filter(is_begun, pl.col("n_left") > 0)["dataset_id"].unique():
        mine = run.having(dataset_id=dataset_id)
        plan = known_plan(mine)
        if plan is None:
            continue
        try:
            found.append(find_partitions(mine.having(plan_id=plan.plan_id)).select("partition_id", n_now="n_left"))
        except StoreError:
            return rows
    now = rows.join(pl.concat(found), on="partition_id", how="left", maintain_order="left")
    is_counted = is_begun & pl.col("n_now").is_not_null() & (pl.col("n_left") > 0)
    share = pl.col("n_now") / pl.col("n_left")
    usd = [pl.when(is_counted).then(pl.col(name) * share).otherwise(name).alias(name) for name in ("online_usd", "batch_usd")]
    return now.with_columns(*usd, n_left=pl.when(is_counted).then("n_now").otherwise("n_left")).select(rows.columns)
