"""The process that opens pictures: it bounds itself, then answers until its socket closes. Who asks is decode.py."""

import os
import resource
import socket
import sys
from dataclasses import asdict
from pathlib import Path

import orjson

from tasks.ingest.images.decode import HEADER
from tasks.ingest.images.limits import RefusedImage
from tasks.ingest.images.open import OpenedImage, open_image, prepare_decoders


def serve(asked: socket.socket, cpu_limit_s: int) -> None:
    """Say that it is there, then answer one picture after the other."""
    asked.sendall(HEADER.pack(0, 0))
    while header := _receive(asked, HEADER.size):
        _, n_bytes = HEADER.unpack(header)
        content = _receive(asked, n_bytes)
        _allow_more_time(cpu_limit_s)
        said, shown = _answer(content, open_image(content))
        asked.sendall(HEADER.pack(len(said), len(shown)) + said)
        asked.sendall(shown)
        del content, shown  # or the next picture comes beside this one


def bound(memory_limit_bytes: int) -> None:
    """Memory, files and core dumps; what a process has mapped already is no picture's fault and is added."""
    prepare_decoders()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    statm = Path("/proc/self/statm")
    if statm.exists():  # elsewhere than on Linux address space is not bounded; time is
        n_mapped = int(statm.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (n_mapped + memory_limit_bytes, n_mapped + memory_limit_bytes))


def _allow_more_time(cpu_limit_s: int) -> None:
    """The limit counts from the process's birth: each picture moves it on."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + 1 + cpu_limit_s, resource.RLIM_INFINITY))


def _answer(content: bytes, opened: OpenedImage | RefusedImage) -> tuple[bytes, bytes]:
    if isinstance(opened, RefusedImage):
        return orjson.dumps(asdict(opened)), b""
    said = {name: value for name, value in asdict(opened).items() if name != "shown"}
    return orjson.dumps(said), b"" if opened.shown is content else opened.shown


def _receive(asked: socket.socket, n_bytes: int) -> bytes:
    """Exactly so many bytes; none where the socket closed before. Most often they come whole and are copied once."""
    received = asked.recv(n_bytes, socket.MSG_WAITALL)
    while len(received) < n_bytes:
        piece = asked.recv(n_bytes - len(received), socket.MSG_WAITALL)
        if not piece:
            return b""
        received += piece
    return received


if __name__ == "__main__":
    descriptor, cpu, memory = (int(argument) for argument in sys.argv[1:])
    bound(memory)
    serve(socket.socket(fileno=descriptor), cpu)
