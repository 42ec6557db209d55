"""The Prefect task of planning: a rubric under one judge. The work is in dataset.py."""

from prefect import task

from tasks.plan.dataset import plan_shard
from tasks.prefect_options import OPTIONS

plan_questions = task(
    name="plan questions", task_run_name="plan questions, {shard.rubric_id} for {shard.judge_model}", **OPTIONS
)(plan_shard)
"""Write down what every sample is asked under a rubric."""
