"""Standard output and error of a command, whose reader, such as `head`, may leave: the command goes on and ends as it would."""

import os
import sys
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import Any

_LEFT = set[int]()


class _Leavable(FileIO):
    """What is written after its reader has left goes nowhere: a run still publishes, and `gate` still says no."""

    def write(self, content: Any, /) -> int:
        """Write, or forget where nobody reads."""
        try:
            return super().write(content)
        except BrokenPipeError:
            _LEFT.add(self.fileno())
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            return memoryview(content).nbytes


def let_readers_leave() -> None:
    """From here on. A terminal of another encoding shows all that it can."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, TextIOWrapper):  # and not None
            raw = _Leavable(stream.fileno(), "w", closefd=False)
            below = raw if stream.write_through else BufferedWriter(raw)  # as python -u has it
            leavable = TextIOWrapper(
                below, encoding=stream.encoding, errors="backslashreplace", write_through=stream.write_through
            )
            leavable.reconfigure(line_buffering=stream.line_buffering)
            setattr(sys, name, leavable)


def has_reader() -> bool:
    """Whether anybody still reads standard output, as far as is known: for what could go on for ever."""
    return 1 not in _LEFT
