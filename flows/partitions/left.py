"""What is left to ask of partitions: of those begun, as the ledger has it now, and of those that looks ended, nothing."""

import polars as pl

from flows.partitions.table import PartitionState, find_partitions, read_partitions
from schemas.errors import RefusedLedgerError, StoreError
from schemas.tables.stored import SAMPLES
from tasks.context import StageContext
from tasks.plan.dataset import known_plan


def left_now(run: StageContext, rows: pl.DataFrame) -> pl.DataFrame:
    """These rows with what is left of those that run, or ended before all was asked.

    As written where the plan is cleared, or is a night's or a run's, of several checkpoints together. All are where the ledger is
    away.
    """
    is_begun = pl.col("state").is_in([PartitionState.RUNNING.value, PartitionState.FAILED.value])
    found = [pl.DataFrame(schema={"partition_id": pl.String, "n_now": pl.Int64})]
    for dataset_id in rows.filter(is_begun, pl.col("n_left") > 0)["dataset_id"].unique():
        mine = run.having(dataset_id=dataset_id)
        plan = known_plan(mine) if run.lake.is_complete(SAMPLES, dataset_id) else None
        if plan is None:
            continue
        try:
            found.append(find_partitions(mine.having(plan_id=plan.plan_id)).select("partition_id", n_now="n_left"))
        except RefusedLedgerError:
            raise
        except StoreError:
            return rows
    now = rows.join(pl.concat(found), on="partition_id", how="left", maintain_order="left")
    is_counted = is_begun & pl.col("n_now").is_not_null() & (pl.col("n_left") > 0)
    share = pl.col("n_now") / pl.col("n_left")
    usd = [pl.when(is_counted).then(pl.col(name) * share).otherwise(name).alias(name) for name in ("online_usd", "batch_usd")]
    return now.with_columns(*usd, n_left=pl.when(is_counted).then("n_now").otherwise("n_left")).select(rows.columns)


def spared_by_looks(run: StageContext, found: pl.DataFrame) -> pl.DataFrame:
    """Partitions of one checkpoint, as found: those that a run noted as done with fewer requests are done with these.

    It looked on the way, and the others need no answer; alone, the checkpoint is compared with none and would be asked in full.
    """
    if not run.benchmark.statistics.stopping.looks:
        return found
    done = read_partitions(run).filter(state=PartitionState.DONE.value).select("partition_id", n_done="n_requests")
    noted = found.join(done, on="partition_id", how="left", maintain_order="left")
    is_done = pl.col("n_requests") - pl.col("n_left") >= pl.col("n_done")  # no, where the ledger has less than it had
    nothing = {"n_left": 0, "online_usd": 0.0, "batch_usd": 0.0, "state": PartitionState.DONE.value}
    return noted.with_columns(
        pl.when(is_done).then("n_done").otherwise("n_requests").alias("n_requests"),
        *(pl.when(is_done).then(pl.lit(value)).otherwise(name).alias(name) for name, value in nothing.items()),
    ).select(found.columns)
