"""The campaign's series of faults: which are made, when there are enough, and the table of what became of them."""

import argparse
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from points import POINTS
from worlds import Job

Done: TypeAlias = list[dict[str, Any]]
"""What was done so far, a record for each lake; grows while a series runs."""

AT_ONCE = 8  # faults on one lake: it moves on a little with each
CALLS_WEIGHED = ("write", "write", "fsync", "fsync", "rename", "connect")
KINDS = ("connect", "rename", "fsync", "write")


def all_series(asked: argparse.Namespace, done: Done) -> Iterator[Iterator[Job]]:
    """One series after the other."""
    yield _kills(asked.kills, done)
    yield _points(asked.rounds, done)
    yield _stops(asked.stops, done)
    yield _full_disks(asked.sizes, done)
    for kind in KINDS if asked.writes_every else ():
        yield _failing_calls(kind, asked.writes_every if kind == "write" else 1, done)


def ends_of(done: Done, series: str) -> list[dict[str, Any]]:
    """Every faulted run of a series."""
    return [end for record in done if record["series"] == series for end in record["ends"]]


def _n_killed(done: Done, series: str) -> int:
    return sum(end["code"] == -9 for end in ends_of(done, series))


def _kills(n: int, done: Done) -> Iterator[Job]:
    """kill -9: half of them at a random time, half at a random call that the disk or the network sees."""
    n_lakes = 0
    while _n_killed(done, "random kill") < n:
        n_lakes += 1
        at_times = ({"share": _early(), "signal": "SIGKILL"} for _ in range(AT_ONCE))
        at_calls = ({"share": _early(), "kind": random.choice(CALLS_WEIGHED), "action": "kill"} for _ in range(AT_ONCE))
        mixed = random.sample([*at_times, *at_calls], AT_ONCE)
        yield Job("random kill", tuple(mixed), is_grown=n_lakes % 2 == 0, until_done=True)


def _early() -> float:
    """A share of a run, more often early: most of its time passes in the data checks, which write nothing readers look at."""
    return random.random() ** 2


def _points(rounds: int, done: Done) -> Iterator[Job]:
    """Every named point, in another order each time; two on one lake, since what is complete is not reached again."""
    for _ in range(4 * rounds):
        reached = _reached(done)
        missing = [point for point in POINTS if reached[point.name, point.event] < rounds]
        order = random.sample(missing, len(missing))
        for start in range(0, len(order), 2):
            faults = ({"point": point.name, "event": point.event, "nth": point.nth} for point in order[start : start + 2])
            yield Job("named point", tuple(faults))


def _reached(done: Done) -> Counter[tuple[str, str]]:
    ends = ends_of(done, "named point")
    return Counter((end["fault"]["point"], end["fault"]["event"]) for end in ends if end["code"] == -9)


def _stops(n: int, done: Done) -> Iterator[Job]:
    """SIGTERM at random times."""
    while sum(end["is_struck"] for end in ends_of(done, "SIGTERM")) < n:
        faults = ({"share": _early(), "signal": "SIGTERM"} for _ in range(AT_ONCE))
        yield Job("SIGTERM", tuple(faults), until_done=True)


def _full_disks(n: int, done: Done) -> Iterator[Job]:
    """The disk takes so many bytes more and then none, on a lake that was published before."""
    for index in range(len(ends_of(done, "full disk")), n):
        yield Job("full disk", ({"kind": "write", "action": "full", "share": (index + 0.5) / n},), is_grown=True)


def _failing_calls(kind: str, step: int, done: Done) -> Iterator[Job]:
    """The Nth call fails, for every N until a run makes fewer; wide steps first, so that half a series is a coarse one."""
    name = f"failing {kind}"
    tried = {end["fault"]["n"] for end in ends_of(done, name)}
    for stride in (64, 16, 4, 1):
        n = 1
        while n < _n_calls(kind, done):
            if n not in tried:
                tried.add(n)
                fault = {"kind": kind, "action": "fail", "n": n}
                yield Job(name, (fault,), n_samples=12, is_grown=True, is_brief=True)
            n += max(stride, step)
        if stride <= step:
            break


def _n_calls(kind: str, done: Done) -> int:
    """The least N at which a run made fewer calls and nothing failed."""
    ends = ends_of(done, f"failing {kind}")
    return min((end["fault"]["n"] for end in ends if end["counts"].get(kind, 0) < end["fault"]["n"]), default=100_000)


def told(done: Done) -> Iterator[str]:
    """The table: a line for each series, and below it what became of its replies."""
    lines: dict[str, Callable[[Done, list[dict[str, Any]]], str]] = {
        "random kill": lambda done, ends: f"{_n_killed(done, 'random kill')} kills in {len(ends)} runs",
        "named point": _points_told,
        "SIGTERM": _stops_told,
        "full disk": lambda _, ends: f"{len(ends)} sizes, {_late(ends)}",
    } | {f"failing {kind}": _calls_told for kind in KINDS}
    for name, say in lines.items():
        ends = ends_of(done, name)
        if ends:
            codes = dict(sorted(Counter(end["code"] for end in ends).items()))
            yield f"{name:<16} {say(done, ends)}; exit codes {codes}"
            yield f"{'':<16} {_found([record for record in done if record['series'] == name])}"


def _points_told(done: Done, _: list[dict[str, Any]]) -> str:
    reached = _reached(done)
    rarest = min(reached[point.name, point.event] for point in POINTS)
    return f"{_n_killed(done, 'named point')} kills at {len(POINTS)} points, the rarest {rarest} times"


def _stops_told(_: Done, ends: list[dict[str, Any]]) -> str:
    struck = [end for end in ends if end["is_struck"]]
    if not struck:  # each run was over before it was told to stop
        return "0 stopped"
    times = sorted(end["after_signal_s"] for end in struck)
    codes = dict(Counter(end["code"] for end in struck))
    cpu_s = max(end["cpu_after_signal_s"] for end in struck)
    by_clock = f"median {times[len(times) // 2]:.2f} s, longest {times[-1]:.2f} s"
    return f"{len(struck)} stopped, with {codes}, signal to exit {by_clock}, of processor time at most {cpu_s:.2f} s"


def _late(ends: list[dict[str, Any]]) -> str:
    late_ms = [moment for end in ends for moment in end["late_ms"]]
    return f"{len(late_ms)} requests after the first failure, the latest {max(late_ms, default=0):.0f} ms after"


def _calls_told(_: Done, ends: list[dict[str, Any]]) -> str:
    n_most = max(end["counts"].get(end["fault"]["kind"], 0) for end in ends)
    return f"{len({end['fault']['n'] for end in ends})} places of up to {n_most} calls, {_late(ends)}"


def _found(records: Done) -> str:
    total: Counter[str] = Counter()
    for record in records:
        total.update(record["found"])
    return (
        f"{total['acknowledged']} replies stored, {total['lost']} lost, {total['bought_again']} bought again, "
        f"{total['paid_twice']} paid twice of {total['in_flight']} in flight, {total['unreadable']} files unreadable; "
        f"{sum(record['is_resumed'] for record in records)} lakes gone on with, "
        f"{sum(len(record['wrong']) for record in records)} things wrong"
    )
