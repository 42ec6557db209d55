"""The Prefect task of planning: a rubric under one judge. The work is in dataset.py."""

from prefect import task

from tasks.plan.dataset import plan_rubric
from tasks.prefect_options import OPTIONS

plan_questions = task(name="plan questions", task_run_name="plan questions, {rubric.id} for {judge.model}", **OPTIONS)(
    plan_rubric
)
"""Write down what every sample is asked under a rubric."""
