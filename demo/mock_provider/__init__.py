"""The difficult provider: an OpenAI-compatible server playing a scenario (limits, faults, batches). Its judge: demo/judge.py."""
