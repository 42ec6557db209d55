"""The Prefect tasks of aggregation: the tables of one run. The work is in tables.py, pooled.py and reliability/reliability.py."""

from prefect import task

from tasks.aggregate.pooled import pooled
from tasks.aggregate.reliability.reliability import judge_tables
from tasks.aggregate.tables import aggregated
from tasks.prefect_options import OPTIONS

compute_tables = task(name="compute tables", task_run_name="compute tables", **OPTIONS)(aggregated)
"""Every table a run publishes, from its judgements, scores and replies."""

weigh_judges = task(name="weigh judges", task_run_name="weigh judges", **OPTIONS)(judge_tables)
"""The judges' own noise and agreement, from repeats and from several judges."""

pool_judges = task(name="pool judges", task_run_name="pool judges", **OPTIONS)(pooled)
"""Several judges' scores of the same samples as one figure."""
