"""Whether the sources are there: each has something to read. No picture is opened; of most tables the first rows are read."""

from collections.abc import Iterator
from functools import partial

from flows.doctor.findings import Finding, guarded, ok, wrong
from schemas.benchmark.file import Benchmark, source_name
from tasks.context import StageContext
from tasks.ingest.readers import read
from tasks.ingest.sources import expand, no_rows
from tasks.publish.standings.wording import counted

SOURCES = "sources"


def check_sources(run: StageContext) -> Iterator[Finding]:
    """Each source in which there is nothing, or which cannot be read; one line where all is well."""
    sources = enumerate(run.benchmark.sources)
    named = [one.model_copy(update={"name": source_name(one, index), "where": {}}) for index, one in sources]
    alone = [run.benchmark.model_copy(update={"sources": [one]}) for one in named]
    permitted = "check the folder, its permissions and its disk"
    bad = [said for one in alone for said in guarded(SOURCES, partial(_is_empty, one, run.own_texts), permitted)]
    yield from bad or [ok(SOURCES, f"{counted(len(alone), 'source')}: there is something to read in each")]


def _is_empty(benchmark: Benchmark, own_texts: tuple[str, ...]) -> Iterator[Finding]:
    """Of a benchmark of one source: nothing where a folder of it has a row, of whatever `where` and checkpoint."""
    folders = expand(benchmark, own_texts)
    if not any(True for one in folders for _ in read(one)):
        yield wrong(SOURCES, str(no_rows(benchmark, folders[0].name)), "fix its path in the benchmark file, or mount its disk")
