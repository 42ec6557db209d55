"""Partitions of a backfill: what they are, what asking them would cost, how they look. The flow is flows/backfill.py."""
