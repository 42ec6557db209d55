"""Readers of input, each at one file in a process of its own: what it says, and what it took of the machine."""

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from rubrics.loading import find_rubrics, load_rubric
from rubrics.replies.read import parse_reply
from schemas.errors import InputError
from tasks.ingest.readers import webdataset
from tasks.ingest.readers.tables import records
from tasks.ingest.sources import ResolvedSource
from tasks.judge.provider.openai.batch_files import read_results
from tasks.judge.provider.openai.responses import read_answer
from tasks.ledger.import_replies import files
from tasks.verify.bundle_opening import open_bundle


def _archive(path: Path) -> Iterator[object]:
    return (row.detail for row in webdataset.read_rows(ResolvedSource("source", "webdataset", path)))


def _rubric(folder: Path) -> Iterator[object]:
    yield load_rubric(folder).id


def _bundle(path: Path) -> Iterator[object]:
    yield str(open_bundle(path, path.with_suffix(".unpacked")).root)


def _text(path: Path) -> Iterator[object]:
    (rubric,) = find_rubrics(["image_aspects"]).values()
    yield str(parse_reply(rubric, path.read_text(), {}).as_dict())


READERS = {
    "rows": lambda path: (values for _, values, _ in records(path, "file", {"image", "prompt"})),
    "archive": _archive,
    "recorded": lambda path: (row if isinstance(row, str) else None for _, row in files.read_rows(path)),
    "reply": lambda path: iter([read_answer(200, {}, path.read_bytes()).detail]),
    "failure": lambda path: iter([read_answer(500, {}, path.read_bytes()).detail]),
    "results": lambda path: (getattr(ended, "detail", None) for _, ended in read_results(path)),
    "text": _text,
    "rubric": _rubric,
    "bundle": _bundle,
}


def _measured(reader: str, path: Path) -> list[object]:
    """[rows, the first sentence among them, CPU seconds, MB above the beginning]."""
    n_rows, said, before_mb = 0, "", _memory_mb("VmRSS")
    try:
        for value in READERS[reader](path):
            n_rows += 1
            said = said or (value if isinstance(value, str) else "")
    except InputError as error:
        said = str(error)
    return [n_rows, said, time.process_time(), _memory_mb("VmHWM") - before_mb]


def _memory_mb(name: str) -> float:
    """Of this process alone: getrusage's figure is handed down from whoever started it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(next(line for line in status.splitlines() if line.startswith(name)).split()[1]) / 1024


def main(pairs: list[str]) -> None:
    """Print for each reader and path in turn, read by a child, a line of JSON."""
    for reader, path in zip(pairs[::2], pairs[1::2], strict=True):
        pid = os.fork()
        if pid == 0:
            print(json.dumps(_measured(reader, Path(path))), flush=True)
            os._exit(0)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main(sys.argv[1:])
