"""Pictures opened in a process whose memory and time are bounded: what kills it becomes a row with a status, not a dead run.

The process (decode_worker.py) lives on from picture to picture and ends with this one. It is given bytes and gives back an
OpenedImage or a RefusedImage; it has no secrets in its environment and may write no file. What it says is checked: a decoder
that was taken over could say anything, and cannot say more than that about pictures.
"""

import atexit
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import orjson

from schemas.errors import StoreError
from schemas.input_budget import PICTURE_ADDRESS_BYTES, PICTURE_BYTES, PICTURE_CPU_S, PICTURE_PIXELS
from schemas.statuses.rows import SampleStatus
from tasks.ingest.images.limits import RefusedImage
from tasks.ingest.images.open import OpenedImage, open_image
from tasks.ingest.paths import encodable

DEADLINE_S = 120.0
"""Of one picture, by the clock: only a process that stands still, or a machine that is hopelessly busy, ever meets it."""

STOPPED = "decoding was stopped: "
"""Said of a picture that the process did not survive: on a machine with less to do it might."""

HEADER = struct.Struct("<QQ")  # bytes of JSON, bytes of a picture
_MAX_SAID_BYTES = 64 * 1024
_MAX_SHOWN_BYTES = 5 * PICTURE_PIXELS  # a PNG of noise is a little larger than its three bytes a pixel
_ROOT = Path(__file__).resolve().parents[3]


class _DeadError(Exception):
    """The process ended, or said what it may not say; the text says which."""


class Decoder:
    """One decoding process."""

    def __init__(self, cpu_limit_s: int = PICTURE_CPU_S, memory_limit_bytes: int = PICTURE_ADDRESS_BYTES) -> None:
        ours, theirs = socket.socketpair()
        environment = {"PYTHONPATH": str(_ROOT), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        limits = [str(cpu_limit_s), str(memory_limit_bytes)]
        command = [sys.executable, "-P", "-m", "tasks.ingest.images.decode_worker", str(theirs.fileno()), *limits]
        try:
            # A session of its own: Ctrl-C is for this process, which then closes the socket.
            self._process = subprocess.Popen(
                command, env=environment, pass_fds=[theirs.fileno()], start_new_session=True, stdin=subprocess.DEVNULL
            )
        except OSError as error:
            ours.close()
            raise StoreError(
                f"the process that decodes pictures cannot be started: {error}; free memory, then run the same command again"
            ) from error
        finally:
            theirs.close()
        self._socket, self._cpu_limit_s = ours, cpu_limit_s
        self.is_living, self._is_there = True, False

    def open(self, content: bytes, deadline_s: float = DEADLINE_S) -> OpenedImage | RefusedImage:
        """open_image(content), or its refusal where the process did not survive it. Raises StoreError where it never began."""
        until = time.monotonic() + deadline_s
        self._wait_until_there(until)
        try:
            return self._ask(content, until)
        except _DeadError as error:
            why = str(error)
        except TimeoutError:
            why = f"it took more than {deadline_s:g} s"
        except OSError:
            why = "the process that decodes it ended"
        return RefusedImage(SampleStatus.BROKEN_IMAGE, f"{STOPPED}{self._end(why)}")

    def _wait_until_there(self, until: float) -> None:
        """What ends before the first picture was given to it is no picture's fault: each would be called broken."""
        if self._is_there:
            return
        try:
            self._receive(HEADER.size, until)
        except (OSError, _DeadError) as error:
            why = self._end("it ended" if isinstance(error, _DeadError) else str(error))
            raise StoreError(
                f"the process that decodes pictures does not start: {why}. What it said stands above: free memory, or install "
                "Salon anew, then run the same command again"
            ) from error
        self._is_there = True

    def _ask(self, content: bytes, until: float) -> OpenedImage | RefusedImage:
        self._socket.settimeout(max(0.01, until - time.monotonic()))
        self._socket.sendall(HEADER.pack(0, len(content)))
        self._socket.sendall(content)
        n_said, n_shown = HEADER.unpack(self._receive(HEADER.size, until))
        if n_said > _MAX_SAID_BYTES or n_shown > _MAX_SHOWN_BYTES:
            raise _DeadError("the process that decodes it sent more than a picture")
        said, shown = self._receive(n_said, until), self._receive(n_shown, until)
        try:
            return _checked(orjson.loads(said), content, shown)
        except (ValueError, TypeError, KeyError) as error:
            raise _DeadError(f"the process that decodes it sent no answer ({type(error).__name__})") from error

    def _receive(self, n_bytes: int, until: float) -> bytes:
        received = bytearray()
        while len(received) < n_bytes:
            self._socket.settimeout(max(0.01, until - time.monotonic()))
            piece = self._socket.recv(min(n_bytes - len(received), 1 << 20))
            if not piece:
                raise _DeadError("the process that decodes it ended")
            received += piece
        return bytes(received)

    def _end(self, why: str) -> str:
        """Close; why, with the signal that ended the process where one did."""
        self.is_living = False
        self._socket.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(0.2)
        code = self._process.returncode
        if code is None:
            self._process.kill()
            self._process.wait()
        elif code == -signal.SIGXCPU:
            return f"it took more than {self._cpu_limit_s} s of processor time"
        elif code < 0:
            return f"{why} ({signal.Signals(-code).name})"
        return why

    def close(self) -> None:
        """Let the process end."""
        self._end("")


def _checked(said: dict[str, object], content: bytes, shown: bytes) -> OpenedImage | RefusedImage:
    """What the process says, taken at its word where it has the right form. Raises ValueError, TypeError, KeyError."""
    if "status" in said:
        return RefusedImage(SampleStatus(str(said["status"])), encodable(str(said["detail"])[:2000]))
    width, height = int(str(said["width_px"])), int(str(said["height_px"]))
    image_format, treatment = str(said["format"]), str(said["treatment"])
    is_picture = image_format in {"PNG", "JPEG", "WEBP"} and 0 < width * height <= PICTURE_PIXELS
    if not is_picture or bool(shown) == (treatment == "none"):
        raise ValueError(image_format)
    return OpenedImage(shown or content, image_format, treatment[:200], width, height)


_idle: list[Decoder] = []
_lock = threading.Lock()


@contextmanager
def decoder() -> Iterator[Decoder]:
    """A decoding process for as long as the block lasts: an idle one, or a new one. One for each thread that is inside."""
    with _lock:
        one = _idle.pop() if _idle else None
    one = one or Decoder()
    try:
        yield one
    except BaseException:  # with its answer still to come, which the next picture would be given
        one.close()
        raise
    if one.is_living:
        with _lock:
            _idle.append(one)


def open_bounded(content: bytes) -> OpenedImage | RefusedImage:
    """open_image in a bounded process. Raises StoreError where none can be started; nothing else, whatever the bytes."""
    if not 0 < len(content) <= PICTURE_BYTES:
        return open_image(content)  # refused by its length alone
    with decoder() as one:
        return one.open(content)


def _close_all() -> None:
    while _idle:
        _idle.pop().close()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_idle.clear)  # a forked process must not speak on its parent's sockets
