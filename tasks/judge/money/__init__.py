"""What asking costs: tokens, prices, a run's budget. What is asked is tasks/judge/plan.py."""
