"""The harness of the crash tests: a small world, a provider that writes down what it answered, the process pool."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
N_SAMPLES = 40
COMPILER = shutil.which("cc") or shutil.which("gcc")

BENCHMARK = """
name = "torture"
lake = "lake/"
[[sources]]
reader = "manifest"
path = "pictures/manifest.jsonl"
[[rubrics]]
id = "alignment"
[[judges]]
model = "recorder"
[limits]
concurrency = 8
deadline_s = 5
shard_size = 10
"""


class Recorder:
    """A judge on loopback that answers each prompt its own way and keeps, in order, the number of each sample it billed."""

    def __init__(self, delay_s: float = 0.004) -> None:
        self.delay_s = delay_s
        self.billed: list[int] = []
        self.arrived_ns: list[int] = []  # of each, by the machine's clock
        self.answered_ns: list[int] = []  # in the order of the answers
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        assert self._ready.wait(60)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        app = web.Application(client_max_size=2**24)
        app.router.add_post("/v1/chat/completions", self._answer)
        runner = web.AppRunner(app, access_log=None)
        self._loop.run_until_complete(runner.setup())
        self._loop.run_until_complete(web.TCPSite(runner, "127.0.0.1", 0).start())
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        self._ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())
        self._loop.close()

    async def _answer(self, request: web.Request) -> web.Response:
        body = await request.text()
        number = int(re.findall(r"sample number (\d+)", body)[-1])
        self.billed.append(number)
        self.arrived_ns.append(time.time_ns())
        await asyncio.sleep(self.delay_s)
        self.answered_ns.append(time.time_ns())
        text = f"Reasoning: number {number}.\nScore: {1 + number % 5}"
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 10, "completion_tokens": 5}
        return web.json_response({"id": "r", "model": "recorder-1", "choices": [choice], "usage": usage})

    def close(self) -> None:
        """Stop serving."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)


def make_world(folder: Path, n_samples: int = N_SAMPLES) -> Path:
    """One-coloured pictures with a manifest, and the benchmark file beside them. Returns the file."""
    (folder / "pictures").mkdir(parents=True)
    add_samples(folder, range(n_samples))
    file = folder / "benchmark.toml"
    file.write_text(BENCHMARK)
    return file


def add_samples(folder: Path, numbers: range) -> None:
    """More pictures at the manifest's end."""
    pictures = folder / "pictures"
    with (pictures / "manifest.jsonl").open("a") as manifest:
        for number in numbers:
            Image.new("RGB", (16, 16), (number, 255 - number, 7)).save(pictures / f"{number}.png")
            row = {"image": f"{number}.png", "prompt": f"sample number {number}", "model": "m", "checkpoint": f"c{number % 2}"}
            manifest.write(json.dumps(row) + "\n")


@dataclass
class ProcessPool:
    """The process that forks the children.

    A child's end: code (negative: the signal), said, wall_s, cpu_s, ended_ns; is_struck, and signal_ns and cpu_after_signal_s
    where it was; counts of calls and struck_at_ns where a call was armed. Moments are nanoseconds since 1970.
    """

    scratch: Path
    _process: subprocess.Popen[str]
    n_runs: int = field(default=0)

    def run(self, file: Path, judge_url: str, **fault: Any) -> dict[str, Any]:
        """Run the benchmark in a child, with a fault or without."""
        (end,) = self.run_at_once(1, file, judge_url, **fault)
        return end

    def run_at_once(self, n_children: int, file: Path, judge_url: str, **fault: Any) -> list[dict[str, Any]]:
        """Run it in n children at once; a signal strikes the first of them."""
        self.n_runs += 1
        command: dict[str, Any] = {"file": str(file), "judge_url": judge_url, "said": str(self.scratch / f"said-{self.n_runs}")}
        command |= {"root": str(file.parent / "lake"), "n_at_once": n_children} | fault
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the process pool died"
        return list(json.loads(line))


def build(source: Path, library: Path) -> None:
    """A library to preload, from C."""
    assert COMPILER is not None
    subprocess.run([COMPILER, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"], check=True)


@contextmanager
def process_pool(scratch: Path, *, is_bare: bool = False) -> Iterator[ProcessPool]:
    """A process pool with the faults preloaded. Needs a C compiler. A bare one imports heavy libraries when a run does."""
    scratch.mkdir(parents=True, exist_ok=True)
    library = scratch / "faults.so"
    build(Path(__file__).with_name("faults.c"), library)
    environment = os.environ | {"LD_PRELOAD": str(library), "PYTHONPATH": str(ROOT), "POLARS_MAX_THREADS": "2"}
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("process_pool.py")), *(["--bare"] if is_bare else [])],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT,
    )  # fmt: skip
    try:
        yield ProcessPool(scratch, process)
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()  # which ends it
        try:
            process.wait(60)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
