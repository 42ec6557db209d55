"""Judging through a provider's Batch API. One request at a time is tasks/judge/engine.py."""
