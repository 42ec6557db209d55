"""Keeping the terminal for the command: Prefect's own console logging goes quiet there, and still reaches its API and UI."""

import logging


def keep_prefect_quiet() -> None:
    """Let Prefect's console handlers speak only of what is critical; errors are printed once, by the command."""
    from prefect.logging.handlers import PrefectConsoleHandler

    for name in ("", "prefect", "prefect.flow_runs", "prefect.task_runs", "prefect.server", "prefect._internal"):
        for handler in logging.getLogger(name).handlers:
            if isinstance(handler, PrefectConsoleHandler):
                handler.setLevel(logging.CRITICAL)
