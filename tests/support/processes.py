"""Processes of this machine, by what stands in their commands. No tests here."""

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
