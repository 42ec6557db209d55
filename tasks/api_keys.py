"""API keys by the name of their environment variable: its value, else what was fetched for this process alone.

What is fetched never goes into the environment, where every child process would inherit it. Fetching is flows/executors/keys.py.
"""

import os

_fetched: dict[str, str] = {}


def key_named(name: str) -> str:
    """The key, without white space around it; empty where there is none."""
    return os.environ.get(name, "").strip() or _fetched.get(name, "")


def hold(name: str, value: str) -> None:
    """Hold a fetched key for this process."""
    _fetched[name] = value


def fetched() -> frozenset[str]:
    """Every fetched key, for who keeps secrets out of what is said."""
    return frozenset(_fetched.values())
