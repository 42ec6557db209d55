"""CPU seconds and peak memory, stage by stage, in a process of its own. What is measured is said in benchmarks/growth*.py."""

import os
import resource
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flows.cli import ALLOCATOR

_EVERY_S = 0.2


def measured_apart(module: str, **options: object) -> bool:
    """Run a benchmark's module with these options in a process of its own, as a command; whether it ended well.

    A True is a bare flag.
    """
    words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value) if word is not True]
    command, environment = [sys.executable, "-m", module, *map(str, words)], ALLOCATOR | os.environ
    return subprocess.run(command, env=environment, check=False).returncode == 0


@contextmanager
def folder_or_temporary(folder: Path | None) -> Iterator[Path]:
    """The folder, which stays; or where there is none a temporary one, gone when the block ends."""
    if folder is not None:
        yield folder
        return
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


class Usage:
    """Figures by stage: CPU seconds spent in it, and the most memory the process tree has held while it ran."""

    def __init__(self) -> None:
        self.cpu_s: dict[str, float] = {}
        self.peak_gb: dict[str, float] = {}
        self._last_s, self._peak = _cpu_s(), 0
        threading.Thread(target=self._watch, daemon=True).start()

    def say(self, stage: str) -> None:
        """End a stage."""
        now_s = _cpu_s()
        self.cpu_s[stage] = self.cpu_s.get(stage, 0.0) + now_s - self._last_s
        self.peak_gb[stage] = max(self._peak, _tree_rss()) / 2**30
        self._last_s, self._peak = now_s, 0

    @contextmanager
    def of(self, module: Any, names: Mapping[str, str]) -> Iterator[None]:
        """Tell functions of a module apart as stages; what runs between them is called "rest"."""
        there = {name: getattr(module, name) for name in names}
        try:
            for name, stage in names.items():
                setattr(module, name, self._told(there[name], stage))
            yield
        finally:
            for name, function in there.items():
                setattr(module, name, function)
            self.say("rest")

    def told(self, n_judgements: int) -> dict[str, Any]:
        """The figures, with CPU per million judgements."""
        total_s = sum(spent_s for stage, spent_s in self.cpu_s.items() if stage != "start")
        return {
            "cpu_s": {stage: round(spent_s, 1) for stage, spent_s in self.cpu_s.items()},
            "peak_gb": {stage: round(gb, 2) for stage, gb in self.peak_gb.items()},
            "total_cpu_s": round(total_s, 1), "cpu_s_per_million": round(total_s / n_judgements * 1e6, 1),
            "highest_gb": round(max(self.peak_gb.values()), 2),
        }  # fmt: skip

    def _told(self, function: Callable[..., Any], stage: str) -> Callable[..., Any]:
        def called(*given: Any, **named: Any) -> Any:
            self.say("rest")
            try:
                return function(*given, **named)
            finally:
                self.say(stage)

        return called

    def _watch(self) -> None:
        pause = threading.Event()
        while not pause.wait(_EVERY_S):
            self._peak = max(self._peak, _tree_rss())


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _tree_rss(pid: str = "self") -> int:
    """Bytes of resident memory of a process and all its children; 0 for one that is gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = {child for task in tasks for child in (task / "children").read_text().split()}
    except OSError:
        return 0
    return pages * resource.getpagesize() + sum(_tree_rss(child) for child in children)
