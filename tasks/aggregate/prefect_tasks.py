"""The Prefect tasks of aggregation: the tables of one run. The work is in tables.py, pooled.py and reliability/reliability.py."""

import polars as pl
from prefect import task

from schemas.tables import JUDGEMENTS, REPLIES, SCORES, Table
from tasks.aggregate.pooled import pooled
from tasks.aggregate.reliability.reliability import judge_tables
from tasks.aggregate.tables import Settings, aggregated
from tasks.context import StageContext
from tasks.prefect_options import OPTIONS


def _judged(context: StageContext) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    """The run's judgements and scores."""
    return context.lake.scan(JUDGEMENTS, context.ids.plan_id), context.lake.scan(SCORES, context.ids.reading_id)


@task(name="compute tables", task_run_name="compute tables", **OPTIONS)
def compute_tables(context: StageContext) -> dict[Table, pl.DataFrame]:
    """Every table a run publishes, from its judgements, scores and replies."""
    replies = context.lake.scan(REPLIES, context.ids.snapshot_id)
    return aggregated(*_judged(context), replies, context.rubrics, Settings.of(context))


@task(name="weigh judges", task_run_name="weigh judges", **OPTIONS)
def weigh_judges(context: StageContext) -> dict[Table, pl.DataFrame]:
    """The judges' own noise and agreement, from repeats and from several judges."""
    return judge_tables(*_judged(context))


@task(name="pool judges", task_run_name="pool judges", **OPTIONS)
def pool_judges(context: StageContext) -> pl.DataFrame:
    """Several judges' scores of the same samples as one figure."""
    return pooled(*_judged(context), context.rubrics, Settings.of(context))
