"""What the ledger lacks as files of batch lines, for an engine that reads such files where there is no network. Nothing is sent.

Nothing is claimed either: what comes of the lines comes back by import_results.py, and a reply that is stored first stays.
"""

import re
import uuid
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

import orjson

from schemas.benchmark.judges import Judge
from schemas.records import PlannedPart
from tasks.context import StageContext
from tasks.judge.batch.folders import MANIFEST, batch_files_of
from tasks.judge.batch.state import MAX_LINES, custom_id, keys_of, open_batches
from tasks.judge.batch.submit import RequestFile
from tasks.judge.pictures import digests_of
from tasks.judge.provider.exchange import RequestPicture
from tasks.judge.work_queue import PlannedRequests
from tasks.lake.atomic_files import place, place_folder, refuse_full, sha256_of_file, staged_beside, store_error, write_bytes
from tasks.ledger.ledger import Ledger
from tasks.stopping import check_not_stopped

_NAME_LENGTH = 60
PICTURES = "pictures"


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A file of an export: `n_requests` lines for one judge, `n_reasks` of them asked the second time."""

    name: str
    judge: str
    model: str
    n_requests: int
    n_reasks: int
    n_bytes: int
    sha256: str


@dataclass(slots=True)
class Exported:
    """What an export wrote; nothing, and no folder, where nothing is left to ask.

    `n_in_batches`: requests left out because a Batch API has them; `too_large`: by request key, the bytes of lines no file takes.
    """

    files: list[ExportedFile] = field(default_factory=list)
    n_in_batches: int = 0
    too_large: dict[str, int] = field(default_factory=dict)

    @property
    def n_requests(self) -> int:
        """Lines in all files."""
        return sum(file.n_requests for file in self.files)


def export_requests(
    context: StageContext,
    ledger: Ledger,
    parts: Sequence[PlannedPart],
    folder: Path,
    max_bytes: int,
    pictures_at: str | None = None,
) -> Exported:
    """Write what these parts are still to ask, in files of at most `max_bytes`, with a manifest; the folder appears whole.

    `pictures_at`: each picture stands once in `pictures/` of the folder, which the engine finds at this address.
    Raises InputError, StoreError, StoppedError.
    """
    refuse_full("--batch-files", folder)  # a file of an earlier export would be asked twice
    exported = Exported()
    with store_error(f"writing {folder}"), staged_beside(folder) as staged:
        for number, judge in enumerate(context.benchmark.judges, 1):
            mine = [part for part in parts if part.judge_model == judge.id]
            if mine:
                requests = PlannedRequests(context, mine)
                _JudgeFiles(judge, number, staged, max_bytes, exported, pictures_at).write(
                    requests, *_to_ask(ledger, requests, judge, exported)
                )
        if exported.files:
            said = {"benchmark": context.benchmark.name, "plan_id": context.ids.plan_id, "n_requests": exported.n_requests}
            said |= {"files": [asdict(file) for file in exported.files], "too_large": exported.too_large}
            write_bytes(orjson.dumps(said, option=orjson.OPT_INDENT_2) + b"\n", staged / MANIFEST, staged)
            place_folder(staged, folder)
    return exported


def _to_ask(ledger: Ledger, requests: PlannedRequests, judge: Judge, exported: Exported) -> tuple[set[str], set[str]]:
    """The requests without a final reply or with a re-ask that is owed, and those of them that are owed one."""
    known = ledger.known(requests.part_of)
    due = ledger.reasks_due(known)
    batches = ledger.read(partial(open_batches, judge_model=judge.id))
    in_batches = {key for batch in batches for key in ledger.read(partial(keys_of, token=batch.token))} & requests.part_of.keys()
    exported.n_in_batches += len(in_batches)
    return ((requests.part_of.keys() - known) | due) - in_batches, due


@dataclass(slots=True)
class _JudgeFiles:
    """The files of one judge, each named and whole before the next is begun."""

    judge: Judge
    number: int
    folder: Path
    max_bytes: int
    exported: Exported
    pictures_at: str | None
    _n_files: int = 0
    _file: RequestFile | None = None

    def write(self, requests: PlannedRequests, keys: set[str], due: set[str]) -> None:
        """A line for each of these requests, for those in `due` as the re-ask, in the order of the plan."""
        files, model = batch_files_of(self.judge), self.judge.model
        try:
            with closing(requests.blocks(keys)) as blocks:
                for rows, pictures in blocks:
                    check_not_stopped()
                    for key, _, parameters, _, messages in rows.iter_rows():
                        shown = [self._shown(digest, pictures(digest)) for digest in digests_of(messages)]
                        body = files.payload(model, orjson.loads(parameters), orjson.loads(messages), shown)
                        self._add(key, int(key in due), files.line(custom_id(key, int(key in due)), body))
            self._end_file()
        finally:
            if self._file is not None:
                self._file.discard()

    def _shown(self, digest: str, picture: RequestPicture) -> RequestPicture:
        if self.pictures_at is None:
            return picture
        sizes = f"-{self.number}" if picture.is_shrunk else ""  # each judge has its own size
        name = f"{digest}{sizes}.{picture.image_format.lower()}"
        path = self.folder / PICTURES / name
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(picture.read())
        return replace(picture, url=f"{self.pictures_at}/{name}")

    def _add(self, request_key: str, ask_index: int, line: bytes) -> None:
        if len(line) > self.max_bytes:
            self.exported.too_large[request_key] = len(line)
            return
        while self._file is None or not self._file.add(request_key, ask_index, line):
            self._end_file()
            self._file = RequestFile(self.folder / f"{uuid.uuid4().hex}.tmp", self.max_bytes, MAX_LINES)

    def _end_file(self) -> None:
        file, self._file = self._file, None
        if file is None:
            return
        file.finish()
        self._n_files += 1
        said = re.sub(r"[^A-Za-z0-9._-]+", "-", self.judge.id)[:_NAME_LENGTH]
        path = self.folder / f"{self.number}-{said}-{self._n_files:04d}.jsonl"
        place(file.path, path)
        n_lines, n_reasks = len(file.ask_indexes), sum(file.ask_indexes.values())
        self.exported.files.append(
            ExportedFile(path.name, self.judge.id, self.judge.model, n_lines, n_reasks, file.n_bytes, sha256_of_file(path))
        )
