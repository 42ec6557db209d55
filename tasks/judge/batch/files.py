"""The files of a batch: requests written line by line up to the limits, results read line by line. Nothing is held whole."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import orjson

from schemas.statuses import ReplyStatus
from tasks.judge.batch.api import ASKED_PATH
from tasks.judge.batch.provider_batch import mapping, text
from tasks.judge.batch.state import custom_id
from tasks.judge.provider.responses import Answer, one_line, read_answer
from tasks.lake.atomic_files import store_error

MAX_RESULT_LINE_BYTES = 8 * 1024 * 1024
"""A longer line of a file of results is passed over: its request counts as one whose reply never came."""

_NOT_WORKED_ON = frozenset({"batch_expired", "batch_cancelled"})
_BEGINNING = b'{"custom_id":"%b","method":"POST","url":"' + ASKED_PATH.encode() + b'","body":'


@dataclass(slots=True)
class RequestFile:
    """A file of requests being written, to be discarded in the end. `asks`: the ask index by request key."""

    path: Path
    max_bytes: int
    max_lines: int
    asks: dict[str, int] = field(default_factory=dict)
    n_bytes: int = 0
    _file: IO[bytes] = field(init=False)

    def __post_init__(self) -> None:
        with store_error(f"writing {self.path}"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("wb")

    def add(self, request_key: str, ask_index: int, body: bytes) -> bool:
        """Write one line; False, and nothing written, where it does not fit in any more."""
        line = b"".join((_BEGINNING % custom_id(request_key, ask_index).encode(), body, b"}\n"))
        if len(self.asks) >= self.max_lines or self.n_bytes + len(line) > self.max_bytes:
            return False
        with store_error(f"writing {self.path}"):
            self._file.write(line)
        self.asks[request_key] = ask_index
        self.n_bytes += len(line)
        return True

    def finish(self) -> None:
        """Nothing more is added."""
        with store_error(f"writing {self.path}"):
            self._file.close()

    def discard(self) -> None:
        """Remove it from the disk."""
        self._file.close()
        self.path.unlink(missing_ok=True)


def read_results(path: Path, clean: Callable[[bytes], bytes] = bytes) -> Iterator[tuple[str, Answer]]:
    """(custom_id, answer) of every line of a file of results that can be told apart. Lines without that are passed over.

    `clean` takes secrets out of a line before it is read: an answer holds no more than the beginning of some texts.
    """
    with path.open("rb") as file:
        while line := file.readline(MAX_RESULT_LINE_BYTES):
            if len(line) == MAX_RESULT_LINE_BYTES and not line.endswith(b"\n"):
                _skip_line(file)
                continue
            found = _result(clean(line))
            if found is not None:
                yield found


def _skip_line(file: IO[bytes]) -> None:
    while (piece := file.readline(2**20)) and not piece.endswith(b"\n"):
        pass


def _result(line: bytes) -> tuple[str, Answer] | None:
    try:
        content = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    name = text(mapping(content).get("custom_id"))
    return None if name is None else (name, _answer(content))


def _answer(content: dict[str, Any]) -> Answer:
    """The answer a line holds, by the same reading as online: a response, or why there is none."""
    response, error = content.get("response"), mapping(content.get("error"))
    if isinstance(response, dict):
        status_code = response.get("status_code")
        if isinstance(status_code, int) and 100 <= status_code < 600:
            return read_answer(status_code, {}, orjson.dumps(response.get("body")))
        return Answer(ReplyStatus.BAD_RESPONSE, one_line(f"a line whose status_code is {status_code!r:.40}"))
    code, said = text(error.get("code")), one_line(f"{error.get('code') or 'error'}: {error.get('message') or 'no message'}")
    if code in _NOT_WORKED_ON:
        return Answer(ReplyStatus.NOT_ASKED, said, is_sent=False)
    if error:
        return Answer(ReplyStatus.SERVER_ERROR, said)
    return Answer(ReplyStatus.BAD_RESPONSE, "a line with neither a response nor an error")
