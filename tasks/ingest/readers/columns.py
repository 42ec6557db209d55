"""Which columns sources have, for a message to whom one of them is missing."""

from collections.abc import Collection, Sequence

from schemas.benchmark.file import Benchmark
from schemas.pointers import steps
from tasks.delimited import columns_told
from tasks.ingest.readers import READERS
from tasks.ingest.rows import pointers
from tasks.ingest.sources import expand

N_SOURCES = 5


def columns_there(benchmark: Benchmark, own_texts: Sequence[str], wanted: Collection[str]) -> str:
    """The columns of each source whose first row lacks one of these, and which look like it, a line each. Raises SourceError."""
    told: dict[str, str] = {}
    for source in expand(benchmark, own_texts):
        reader = READERS[source.reader]
        row = None if source.name in told or len(told) == N_SOURCES else next(iter(reader.rows(source)), None)
        if row is None:
            continue
        columns, places = row.columns or list(row.values), pointers(source, reader.columns)
        missing = [name for name in sorted(wanted) if str(steps(places.get(name, name))[0]) not in columns]
        if missing and columns:
            told[source.name] = f"\nthe columns of source {source.name}: {columns_told(columns, missing)}"
    return "".join(told.values())
