"""What a command says on standard error: sentences for people, or with SALON_LOG_FORMAT=json one JSON object a line.

It imports the standard library alone: what is broken in an installation is said through it too.
"""

import json
import logging
import os
import sys
from datetime import UTC, datetime
from typing import Final

LOG_FORMAT: Final = "SALON_LOG_FORMAT"


def is_json() -> bool:
    """Whether the lines are for a program."""
    return os.environ.get(LOG_FORMAT, "").lower() == "json"


def complain(text: str) -> None:
    """Say why a command ends as it does."""
    print(as_json("error", text) if is_json() else f"salon: {text}", file=sys.stderr)


def as_json(level: str, message: str, logger: str = "salon") -> str:
    """One line: time (ISO, UTC), level, logger, message."""
    said = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": level, "logger": logger, "message": message}
    return json.dumps(said, ensure_ascii=False)


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """The record as one line, its traceback within the message."""
        return as_json(record.levelname.lower(), super().format(record), record.name)


def install() -> None:
    """Let log records be JSON lines, where that is wanted."""
    root = logging.getLogger()
    if is_json() and not any(isinstance(handler.formatter, _JsonLines) for handler in root.handlers):
        handler = logging.StreamHandler()
        handler.setFormatter(_JsonLines())
        handler.setLevel(logging.WARNING)  # as without it
        root.addHandler(handler)
