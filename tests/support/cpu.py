"""CPU time held against a yardstick measured beside it: a busy or slow machine slows both. Not: benchmarks."""

import re
import time
from collections.abc import Callable
from functools import cache

_TEXT = "lorem ipsum 12 " * 70_000
_WORD = re.compile(r"[^\W\d]++|[0-9]++|\s")


def takes_at_most(n_yardsticks: float, work: Callable[[], object]) -> bool:
    """Whether `work` takes at most so many times the CPU of cutting a megabyte into words; what does not is tried twice more.

    The CPU of all threads, not the wall: about 0.06 s a yardstick where it was measured. Work that grows with the square of its
    input takes thousands of them.
    """
    if _cpu_s(work) <= n_yardsticks * _first_yardstick_s():
        return True
    return any(_cpu_s(work) <= n_yardsticks * _yardstick_s() for _ in range(2))


@cache
def _first_yardstick_s() -> float:
    return _yardstick_s()


def _yardstick_s() -> float:
    return _cpu_s(lambda: _WORD.findall(_TEXT))


def _cpu_s(work: Callable[[], object]) -> float:
    started_s = time.process_time()
    work()
    return time.process_time() - started_s
