"""The folders of exported requests and of their results: which judges can be exported, which files are which. Not their lines."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import orjson

from schemas.benchmark.file import Benchmark
from schemas.benchmark.judges import Judge
from schemas.errors import InputError, SourceError
from tasks.judge.provider.base import provider_of
from tasks.judge.provider.batch_api import BatchFiles

MANIFEST = "manifest.json"


def batch_files_of(judge: Judge) -> BatchFiles:
    """What writes and reads the judge's batch files. Raises InputError where its provider has none that others could read."""
    found = provider_of(judge).batch_files
    if found is None:
        raise InputError(
            f'judge {judge.id}: batch files for an offline engine are not available for provider = "{judge.provider}"; '
            'use a benchmark file whose judges all have provider = "openai" (the default), and run the others online'
        )
    return found


def check_exportable(judges: Iterable[Judge]) -> None:
    """Raise InputError where there is a judge that is asked, and has no batch files, or none that is asked at all."""
    asked = [judge for judge in judges if not judge.recorded]
    if not asked:
        raise InputError(
            "every judge of this file has recorded = true: import its replies with `salon import FILE --replies RECORDED`"
        )
    for judge in asked:
        batch_files_of(judge)


@dataclass(frozen=True, slots=True)
class BatchResults:
    """A folder of results, *.jsonl, in it and in folders below."""

    folder: Path

    def check(self, benchmark: Benchmark) -> None:
        """Raise what can be said before anything is ingested: InputError for a judge, SourceError where there is no file."""
        check_exportable(benchmark.judges)
        self.files()

    def files(self) -> list[Path]:
        """Every file of results; those of requests are none. Raises SourceError where there is none."""
        asked = {manifest.parent / name for manifest in self.folder.rglob(MANIFEST) for name in _listed(manifest)}
        found = sorted(file for file in self.folder.rglob("*.jsonl") if file not in asked and file.is_file())
        if not found:
            beside = f" besides the {len(asked)} exported files of requests" if asked else ""
            raise SourceError(f"{self.folder}: no results file (*.jsonl){beside}; name the folder the engine wrote its output to")
        return found


def _listed(manifest: Path) -> list[str]:
    """The names of the files an export wrote; of a file that is no manifest of ours none."""
    try:
        names = [file["name"] for file in orjson.loads(manifest.read_bytes())["files"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [name for name in names if isinstance(name, str)]
