"""How fast a key may be asked: its limits, shared by every process, and how much is in flight. What is retried is retries.py."""
