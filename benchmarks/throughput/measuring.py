"""Running a contender and measuring its whole process tree: CPU, peak memory, what is kept. Who runs: contenders.py."""

import base64
import ctypes
import json
import os
import subprocess
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

SAMPLE_S = 0.03
SHARES_EVERY = 8
"""Samples between two looks at who shares which pages: the kernel walks over all of them."""
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
PREFECT_SERVER = b"prefect.server"
_PR_SET_CHILD_SUBREAPER = 36
PICTURES = "samples"  # the table that holds the pictures, once
_SOI_AND_COMMENT = b"\xff\xd8\xff\xfe"  # how every picture of material.py begins, then two bytes of length and its comment


@dataclass(frozen=True, slots=True)
class Usage:
    """What one run used. The embedded Prefect server, where there is one, is counted apart from the client."""

    wall_s: float
    client_cpu_s: float
    prefect_server_cpu_s: float
    peak_client_bytes: int  # resident, all processes but Prefect's server; shared pages count in each
    peak_tree_bytes: int  # with Prefect's server; shared pages divided among those who share them (PSS)


class RunFailedError(Exception):
    """A contender ended with another code than 0; the message holds the end of what it printed."""


@dataclass(slots=True)
class _Seen:
    is_server: bool
    cpu_s: float = 0.0


def measure(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Usage:
    """Run a command in `folder` to its end, and the processes it leaves behind to theirs. Raises RunFailedError.

    CPU is user and system time from wait4 of every process of the tree: nothing that ended unseen is missing.
    """
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)  # what the command leaves behind becomes our child, and is counted
    with (folder / "printed.txt").open("wb") as printed:
        started = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=folder, env=os.environ | environment, stdout=printed, stderr=subprocess.STDOUT, start_new_session=True
        )
        seen: dict[int, _Seen] = {}
        peak_client_bytes = peak_tree_bytes = n_samples = 0
        cpu_s = server_cpu_s = 0.0
        code, wall_s = None, 0.0
        while True:
            client_bytes = 0
            alive = list(_tree(process.pid, seen))
            for pid in alive:
                n_bytes = _sample(pid, seen)
                client_bytes += 0 if seen[pid].is_server else n_bytes
            peak_client_bytes = max(peak_client_bytes, client_bytes)
            if n_samples % SHARES_EVERY == 0:
                peak_tree_bytes = max(peak_tree_bytes, sum(map(_share, alive)))
            n_samples += 1
            for pid in alive:
                reaped = _reap(pid)
                if reaped is None:
                    continue
                status, used_s = reaped
                if seen[pid].is_server:
                    server_cpu_s += used_s
                    seen[pid].cpu_s = 0.0
                else:
                    cpu_s += used_s
                if pid == process.pid:
                    code, wall_s = os.waitstatus_to_exitcode(status), time.perf_counter() - started
            if code is not None and not alive:
                break
            time.sleep(SAMPLE_S)
    process.returncode = code
    if code:
        raise RunFailedError(f"exit code {code}: {(folder / 'printed.txt').read_text(errors='replace')[-1500:]}")
    unreaped_s = sum(each.cpu_s for each in seen.values() if each.is_server)  # the command waited for it: in its own figure
    return Usage(wall_s, cpu_s - unreaped_s, server_cpu_s + unreaped_s, peak_client_bytes, peak_tree_bytes)


def bytes_kept(folder: Path, *, leave_out: str | None = None) -> int:
    """Bytes of the files under a folder, less those whose path holds `leave_out`."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files if leave_out is None or leave_out not in str(path.relative_to(folder)))


def _tree(root: int, seen: Mapping[int, _Seen]) -> Iterator[int]:
    """The process, its descendants, and what they left behind."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - often, while others are measured
        if name.isdigit():
            stat = _read(f"/proc/{name}/stat")
            if stat:
                parents[int(name)] = int(stat.rpartition(b")")[2].split()[1])
    tree = {pid for pid in parents if pid == root or pid in seen}
    while True:
        more = {pid for pid, parent in parents.items() if parent in tree and pid not in tree}
        if not more:
            return iter(tree)
        tree |= more


def _sample(pid: int, seen: dict[int, _Seen]) -> int:
    """Note a process's CPU so far; its resident bytes."""
    each = seen.get(pid)
    if each is None or not each.is_server:  # a new process has its parent's command line until it becomes its own
        each = seen[pid] = _Seen(PREFECT_SERVER in _read(f"/proc/{pid}/cmdline"))
    stat = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    if stat:
        each.cpu_s = (int(stat[11]) + int(stat[12])) * TICK_S
    pages = _read(f"/proc/{pid}/statm").split()
    return int(pages[1]) * PAGE_BYTES if pages else 0


def _share(pid: int) -> int:
    """Resident bytes of a process, of pages it shares with n processes an n-th."""
    lines = _read(f"/proc/{pid}/smaps_rollup").splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(b"Pss:")), 0)


def _reap(pid: int) -> tuple[int, float] | None:
    """(status, CPU seconds) of a child of ours that has ended; None where it runs on or is another's child."""
    try:
        found, status, used = os.wait4(pid, os.WNOHANG)
    except ChildProcessError:
        return None
    return (status, used.ru_utime + used.ru_stime) if found else None


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - many small reads while others are measured
            return file.read()
    except OSError:
        return b""


def said_by(base_url: str, path: str, method: str = "GET") -> Any:
    """What the mock provider's administration says at a path."""
    asked = urllib.request.Request(base_url.removesuffix("/v1") + path, method=method)
    with urllib.request.urlopen(asked, timeout=30) as response:
        return json.load(response)


def by_part(lake: Path) -> dict[str, int]:
    """Bytes by table (or file) at the top of the lake."""
    sizes: Counter[str] = Counter()
    for path in lake.rglob("*"):
        if path.is_file() and not path.is_symlink():
            sizes[path.relative_to(lake).parts[0]] += path.stat().st_size
    return dict(sizes)


def files_with_base64(folder: Path, picture: bytes) -> list[str]:
    """Files under `folder` that hold the beginning of the picture's base64; Parquet is looked into uncompressed."""
    probe = base64.b64encode(picture[:12])
    if not picture.startswith(_SOI_AND_COMMENT):
        raise ValueError("not one of the benchmark's pictures")
    return [str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if path.is_file() and probe in _plain_bytes(path)]


def _plain_bytes(path: Path) -> bytes:
    if path.suffix != ".parquet":
        return path.read_bytes()
    sink = pa.BufferOutputStream()
    table = pq.read_table(path, partitioning=None)
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    plain: bytes = sink.getvalue().to_pybytes()
    return plain
