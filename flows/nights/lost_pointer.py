"""Publications of which none is current, because latest.json is gone: deleted, or left out of a backup that was put back."""

from datetime import date
from functools import partial
from pathlib import Path

from flows.nights.drift import standing_publications
from flows.nights.index import rewrite_index
from tasks.context import StageContext
from tasks.publish.duckdb_file import write_duckdb
from tasks.publish.folders import LAYOUT, POINTER
from tasks.publish.pointer import read_pointer, restore_pointers, would_be_current


def restored(run: StageContext) -> str | None:
    """Let a pointer that is gone name what it did; in a sentence, what is current since. None where something was."""
    root, name = run.lake.root, run.benchmark.name
    home = root / "publish" / LAYOUT / name
    if not restore_pointers(root, home, partial(_standing, root, name)):
        return None
    write_duckdb(root, name)
    rewrite_index(root)
    named = read_pointer(home) or {}
    return f"{POINTER} was gone and is made again: {named['publication_id'][:12]}, of {named['run_date']}, is current"


def nothing_current(lake_root: Path, benchmark: str) -> str | None:
    """In a clause, that nothing is current though a publication would be; None where that is not so."""
    home = lake_root / "publish" / LAYOUT / benchmark
    found = would_be_current(_standing(lake_root, benchmark)) if read_pointer(home) is None else None
    return None if found is None else f"nothing is current: {home / POINTER} is gone, and {found[0].name[:12]} is published"


def _standing(lake_root: Path, benchmark: str) -> list[tuple[Path, date]]:
    return [(one.folder, date.fromisoformat(one.run_date)) for one in standing_publications(lake_root, benchmark)]
