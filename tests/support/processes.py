"""Processes of this machine, by what stands in their commands. No tests here."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def mentioning(word: str) -> list[str]:
    """The processes whose command holds the word, less the dead."""
    found = []
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [command.parent.name] if word.encode() in command.read_bytes() else []
        except OSError:
            continue
    return found


@contextmanager
def hearing_hangups() -> Iterator[None]:
    """What is started within hears SIGHUP, also where the tests themselves run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)
