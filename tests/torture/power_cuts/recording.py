"""Every call of a run that changes a file, in order, as the kernel saw it, read from strace. What a cut leaves: disk.py.

At the level of system calls nothing is missed: pyarrow, polars, SQLite and DuckDB write past Python.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

STRACE = shutil.which("strace")
ROOT = Path(__file__).resolve().parents[3]
_CALLS = (
    "openat", "open", "creat", "write", "pwrite64", "writev", "pwritev", "pwritev2", "lseek", "ftruncate", "truncate", "fsync",
    "fdatasync", "sync_file_range", "fallocate", "rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat",
    "unlink", "unlinkat", "rmdir", "mkdir", "mkdirat", "copy_file_range", "sendfile", "sendto", "sendmsg",
)  # fmt: skip
_UNKNOWN = {
    "writev",
    "pwritev",
    "pwritev2",
    "sync_file_range",
    "fallocate",
    "truncate",
    "symlink",
    "symlinkat",
    "copy_file_range",
}
_UNKNOWN |= {"sendfile", "creat"}
_LINE = re.compile(
    r"(\d+) +(?:(\w+)\((.*?)(\) += (-?\d+)|<unfinished \.\.\.>$)|<\.\.\. (\w+) resumed>(.*)\) += (-?\d+))", re.DOTALL
)
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_PLACE = re.compile(r"(-?\w+)<((?:\\x[0-9a-f]{2})*)>")
_OPENED = re.compile(r"\) += (\d+)<((?:\\x[0-9a-f]{2})*)>$")
_CACHESTAT = "syscall_0x1c3"  # which changes nothing, and which this strace has no name for
_POST = b"POST "
MARK = b"acknowledged"


@dataclass(frozen=True, slots=True)
class Operation:
    """One call that succeeded. `fd` tells writes without an offset apart."""

    kind: str
    path: str
    begun: int  # lines of the trace: a sync covers what ended before it began
    ended: int
    to: str = ""
    fd: str = ""
    offset: int | None = None
    data: bytes = b""
    size: int = 0


def recorded(command: list[str], trace: Path) -> None:
    """Run a program of Python with every call written down. Raises where it fails."""
    assert STRACE is not None
    traced = [STRACE, "-f", "-y", "-xx", "-s", str(2**26), "--seccomp-bpf", "-e", f"trace={','.join(_CALLS)}", "-o", str(trace)]
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests/torture'}", "POLARS_MAX_THREADS": "2"}
    ran = subprocess.run(
        [*traced, sys.executable, *command], env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]


def operations(trace: Path, below: Path) -> list[Operation]:
    """What was done to a folder and below it, in the order in which calls ended; marks and requests sent stand between."""
    return [one for one in _operations(trace) if one.kind in ("mark", "sent") or _is_below(one, str(below))]


def _is_below(one: Operation, folder: str) -> bool:
    is_mine = one.path == folder or one.path.startswith(f"{folder}/")
    assert not one.to or one.to.startswith(f"{folder}/") == is_mine, f"{one.kind} leads out: {one.path} {one.to}"
    return is_mine


def _operations(trace: Path) -> Iterator[Operation]:
    begun: dict[str, tuple[int, str, str]] = {}
    with trace.open(encoding="ascii") as lines:
        for number, line in enumerate(lines):
            found = _LINE.match(line.rstrip("\n"))
            if not found:
                continue
            thread, name, arguments, rest, result, again, more, again_result = found.groups()
            if rest and rest.startswith("<unfinished"):
                begun[thread] = number, name, arguments
                continue
            at = number
            if again:
                at, name, arguments = begun.pop(thread)
                arguments, result = arguments + more, again_result
            if int(result) >= 0 and name != _CACHESTAT:
                yield from _read(name, arguments, int(result), (at, number), line)


def _read(name: str, arguments: str, result: int, at: tuple[int, int], line: str) -> Iterator[Operation]:
    texts = [_bytes(one) for one in _TEXT.findall(arguments)]
    places = [(fd, _bytes(one).decode(errors="replace")) for fd, one in _PLACE.findall(arguments)]
    fd, path = places[0] if places else ("", "")
    numbers = [one.strip() for one in arguments.rsplit(", ")]
    if name in ("sendto", "sendmsg"):
        if texts and texts[0].startswith(_POST):
            yield Operation("sent", "", *at)
    elif name in ("openat", "open"):
        yield from _opened(texts, places, arguments, at, line)
    elif name == "write":
        if texts and texts[0].startswith(MARK):
            yield Operation("mark", "", *at)
        else:
            yield Operation("write", path, *at, fd=fd, data=(texts or [b""])[0][:result])
    elif name == "pwrite64":
        yield Operation("write", path, *at, offset=int(numbers[-1]), data=(texts or [b""])[0][:result])
    elif name == "lseek":
        yield Operation("seek", path, *at, fd=fd, size=result)
    elif name == "ftruncate":
        yield Operation("truncate", path, *at, size=int(numbers[-1]))
    elif name in ("fsync", "fdatasync"):
        yield Operation("fsync", path, *at)
    elif name in _UNKNOWN or name.startswith("syscall_"):
        for _, one in places:
            yield Operation("unknown", one, *at, data=name.encode())
    else:
        yield from _named(name, texts, places, arguments, at)


def _opened(
    texts: list[bytes], places: list[tuple[str, str]], arguments: str, at: tuple[int, int], line: str
) -> Iterator[Operation]:
    """An open that may make or empty a file; where it is said by what was opened, links followed."""
    opened = _OPENED.findall(line.rstrip())
    if not texts or not opened:
        return
    fd, path = opened[0][0], _bytes(opened[0][1]).decode(errors="replace")
    flags = "".join(flag[0] for flag in ("CREAT", "TRUNC", "APPEND") if f"O_{flag}" in arguments)
    if "O_DIRECTORY" not in arguments and ("O_WRONLY" in arguments or "O_RDWR" in arguments):
        yield Operation("open", path, *at, to="", fd=fd, data=flags.encode())


def _named(
    name: str, texts: list[bytes], places: list[tuple[str, str]], arguments: str, at: tuple[int, int]
) -> Iterator[Operation]:
    folders = [path for _, path in places]
    paths = [Path((folders[n : n + 1] or ["/"])[0], text.decode(errors="replace")) for n, text in enumerate(texts)]
    kind = re.sub("at2?$", "", name)
    kind = "rmdir" if "AT_REMOVEDIR" in arguments else kind
    yield Operation(kind, str(paths[0]), *at, to=str(paths[1]) if len(paths) > 1 else "")


def _bytes(hexadecimal: str) -> bytes:
    return bytes.fromhex(hexadecimal.replace("\\x", ""))
