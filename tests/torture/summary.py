"""The table of a campaign: a line for each series of faults, and what became of its replies."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from points import POINTS
from series import KINDS, Done, ends_of, failing, killing, n_killed, reached


def summary(done: Done) -> Iterator[str]:
    """The table: a line for each series, and below it what became of its replies."""
    lines: dict[str, Callable[[Done, list[dict[str, Any]]], str]] = {}
    for how, said in (("random kill", _kills), ("named point", _points)):
        lines |= {(name := killing(how, is_on_server=each)): partial(said, name=name) for each in (False, True)}
    lines |= {"SIGTERM": _stops, "full disk": lambda _, ends: f"{len(ends)} sizes, {_late(ends)}"}
    lines |= {failing(kind, is_checked=is_checked): _calls for kind in KINDS for is_checked in (False, True)}
    for name, say in lines.items():
        ends = ends_of(done, name)
        if ends:
            codes = dict(sorted(Counter(end["code"] for end in ends).items()))
            yield f"{name:<31} {say(done, ends)}; exit codes {codes}"
            yield f"{'':<31} {_found([record for record in done if record['series'] == name])}"


def _kills(done: Done, ends: list[dict[str, Any]], *, name: str) -> str:
    return f"{n_killed(done, name)} kills in {len(ends)} runs"


def _points(done: Done, _: list[dict[str, Any]], *, name: str) -> str:
    times = reached(done, name)
    rarest = min(times[point.name, point.event] for point in POINTS)
    return f"{n_killed(done, name)} kills at {len(POINTS)} points, the rarest {rarest} times"


def _stops(_: Done, ends: list[dict[str, Any]]) -> str:
    struck = [end for end in ends if end["is_struck"]]
    if not struck:  # each run was over before it was told to stop
        return "0 stopped"
    codes = dict(Counter(end["code"] for end in struck))
    n_drained = sum(end["drain_s"] > 0 for end in struck)
    drain_s, cpu_s = (max(end[name] for end in struck) for name in ("drain_s", "cpu_after_signal_s"))
    times = sorted(end["after_drain_s"] for end in struck)
    after = f"median {times[len(times) // 2]:.2f} s, longest {times[-1]:.2f} s"
    return (
        f"{len(struck)} stopped, with {codes}; {n_drained} waited for replies, at most {drain_s:.2f} s; from the last reply, "
        f"or the signal, to the exit {after}; processor time after the signal at most {cpu_s:.2f} s"
    )


def _late(ends: list[dict[str, Any]]) -> str:
    late_ms = [moment for end in ends for moment in end["late_ms"]]
    return f"{len(late_ms)} requests after the first failure, the latest {max(late_ms, default=0):.0f} ms after"


def _calls(_: Done, ends: list[dict[str, Any]]) -> str:
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
