"""The campaign's series of faults: which are made, and when there are enough. What became of them is counted in summary.py."""

import argparse
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeAlias

from database import why_not
from jobs import Job, World
from points import POINTS

Done: TypeAlias = list[dict[str, Any]]
"""What was done so far, a record for each lake; grows while a series runs."""

AT_ONCE = 8  # faults on one lake: it moves on a little with each
CALLS_WEIGHED = ("write", "write", "fsync", "fsync", "rename", "connect", "send", "send")
KINDS = ("connect", "rename", "fsync", "write")
MANY = ("fsync", "write")  # so many that those after the data checks are made to fail where the checks are done already
WIDEST = 64
MARGIN = 120  # calls of the data checks themselves, some 100, and what one run makes more than another before them


def all_series(asked: argparse.Namespace, done: Done) -> Iterator[Iterator[Job]]:
    """One series after the other."""
    databases = (False, True) if why_not() is None else (False,)
    for is_on_server in databases:
        yield _kills(asked.kills // len(databases), done, is_on_server=is_on_server)
        yield _points(asked.rounds, done, is_on_server=is_on_server)
    yield _stops(asked.stops, done)
    yield _full_disks(asked.sizes, done)
    for kind in KINDS if asked.writes_every else ():
        for is_checked in (False, True) if kind in MANY else (False,):
            yield _failing_calls(kind, asked.writes_every if kind == "write" else 1, done, is_checked=is_checked)


def ends_of(done: Done, series: str) -> list[dict[str, Any]]:
    """Every faulted run of a series."""
    return [end for record in done if record["series"] == series for end in record["ends"]]


def n_killed(done: Done, series: str) -> int:
    """Of the runs of a series those that were killed."""
    return sum(end["code"] == -9 for end in ends_of(done, series))


def _kills(n: int, done: Done, *, is_on_server: bool) -> Iterator[Job]:
    """kill -9: half of them at a random time, half at a random call that the disk or the network sees."""
    name, n_lakes = killing("random kill", is_on_server=is_on_server), 0
    while n_killed(done, name) < n:
        n_lakes += 1
        at_times = ({"share": _early(), "signal": "SIGKILL"} for _ in range(AT_ONCE))
        at_calls = ({"share": _early(), "kind": random.choice(CALLS_WEIGHED), "action": "kill"} for _ in range(AT_ONCE))
        mixed = random.sample([*at_times, *at_calls], AT_ONCE)
        world = World(is_grown=n_lakes % 2 == 0, is_on_server=is_on_server)
        yield Job(name, tuple(mixed), world, until_done=True)


def _early() -> float:
    """A share of a run, more often early: most of its time passes in the data checks, which write nothing readers look at."""
    return random.random() ** 2


def killing(how: str, *, is_on_server: bool) -> str:
    """The name of a series of kills."""
    return f"{how}, {'PostgreSQL' if is_on_server else 'SQLite'}"


def _points(rounds: int, done: Done, *, is_on_server: bool) -> Iterator[Job]:
    """Every named point, in another order each time; two on one lake, since what is complete is not reached again."""
    name = killing("named point", is_on_server=is_on_server)
    for _ in range(4 * rounds):
        times = reached(done, name)
        missing = [point for point in POINTS if times[point.name, point.event] < rounds]
        order = random.sample(missing, len(missing))
        for start in range(0, len(order), 2):
            faults = ({"point": point.name, "event": point.event, "nth": point.nth} for point in order[start : start + 2])
            yield Job(name, tuple(faults), World(is_on_server=is_on_server))


def reached(done: Done, name: str) -> Counter[tuple[str, str]]:
    """How often a run of a series was killed at each named point."""
    ends = ends_of(done, name)
    return Counter((end["fault"]["point"], end["fault"]["event"]) for end in ends if end["code"] == -9)


def _stops(n: int, done: Done) -> Iterator[Job]:
    """SIGTERM at random times of runs that import what they need, later and later on one lake.

    Half of the lakes have a judge that takes half a second.
    """
    n_lakes = 0
    while sum(end["is_struck"] for end in ends_of(done, "SIGTERM")) < n:
        n_lakes += 1
        faults = ({"share": share, "signal": "SIGTERM"} for share in sorted(random.random() for _ in range(AT_ONCE)))
        world = World(is_bare=True, reply_s=0.5 if n_lakes % 2 else 0.004)
        yield Job("SIGTERM", tuple(faults), world, until_done=True)


def _full_disks(n: int, done: Done) -> Iterator[Job]:
    """The disk takes so many bytes more and then none, on a lake that was published before."""
    for index in range(len(ends_of(done, "full disk")), n):
        yield Job("full disk", ({"kind": "write", "action": "full", "share": (index + 0.5) / n},), World(is_grown=True))


def _failing_calls(kind: str, step: int, done: Done, *, is_checked: bool) -> Iterator[Job]:
    """The Nth call fails, for every N until a run makes fewer; wide steps first, so that half a series is a coarse one.

    Of MANY calls those before the data checks all fail on one lake, and of those after them every 64th; on the other lake,
    where the checks are done, all.
    """
    name = failing(kind, is_checked=is_checked)
    world = World(12, is_grown=True, is_checked=is_checked)
    tried = {end["fault"]["n"] for end in ends_of(done, name)}
    for stride in (WIDEST, 16, 4, 1):
        n = 1
        while n < _n_calls(name, kind, done):
            is_elsewhere = kind in MANY and not is_checked and stride < WIDEST and n > _n_before_checks(name, kind, done)
            if n not in tried and not is_elsewhere:
                tried.add(n)
                yield Job(name, ({"kind": kind, "action": "fail", "n": n},), world, is_brief=True)
            n += max(stride, step)
        if stride <= step:
            break


def failing(kind: str, *, is_checked: bool = False) -> str:
    """The name of a series of failing calls."""
    return f"failing {kind}{' after the checks' if is_checked else ''}"


def _n_before_checks(name: str, kind: str, done: Done) -> int:
    return MARGIN + max(record["before_checks"][kind] for record in done if record["series"] == name)


def _n_calls(name: str, kind: str, done: Done) -> int:
    """The least N at which a run made fewer calls and nothing failed."""
    ends = ends_of(done, name)
    return min((end["fault"]["n"] for end in ends if end["counts"].get(kind, 0) < end["fault"]["n"]), default=100_000)
