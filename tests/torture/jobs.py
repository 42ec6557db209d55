"""What is done to a lake and what is made of how its runs ended: the kinds of world, the faults in their seconds and calls."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from checks import Watch

STOP_LIMIT_S = 2.0  # from the last reply that was waited for to the exit


@dataclass(frozen=True)
class World:
    """What a lake is like before anything goes wrong, and how it is run.

    `is_grown`: it holds a publication of half of the samples. `is_checked`: there a run was killed between the data checks
    and the publication; the checks are most of a run's seconds, and the next run finds them done. `is_bare`: the children
    import the heavy libraries themselves. `is_on_server`: the ledger is PostgreSQL's, else a file of the lake.
    """

    n_samples: int = 40
    is_grown: bool = False
    is_checked: bool = False
    is_bare: bool = False
    is_on_server: bool = False
    reply_s: float = 0.004

    @property
    def n_before(self) -> int:
        """Samples judged before anything goes wrong."""
        return self.n_samples if self.is_checked else self.n_samples // 2 if self.is_grown else 0


@dataclass(frozen=True)
class Job:
    """Faults for one lake, one after the other. `until_done`: a run that nothing stopped is the last but one.

    `is_brief`: where an earlier job left a lake of the same shape, the run at the end is left out.
    """

    series: str
    faults: tuple[dict[str, Any], ...]
    world: World = World()
    until_done: bool = False
    is_brief: bool = False


def put_on(fault: dict[str, Any], run_s: float, counts: dict[str, int]) -> dict[str, Any]:
    """A fault whose moment is a share of an undisturbed run, in its seconds or calls."""
    said = dict(fault)
    if "share" in said:
        share = said.pop("share")
        if said.get("action") == "kill":
            said["n"] = 1 + int(share * counts[said["kind"]])
        elif said.get("action") == "full":
            said["n"] = int(share * counts["bytes"])
        else:
            said["after_s"] = share * run_s
    return said


def late_ms(arrived_ns: list[int], struck_at_ns: int) -> Iterator[float]:
    """Of the requests that came after the first call failed: how long after."""
    if struck_at_ns:
        yield from ((moment - struck_at_ns) / 1e6 for moment in arrived_ns if moment > struck_at_ns)


def drained(end: dict[str, Any], last_answer_ns: list[int]) -> dict[str, float | None]:
    """Seconds from a signal until the provider's last answer went out (0 where none did after it), and from then to the exit."""
    if end["signal_ns"] is None:
        return {"drain_s": None, "after_drain_s": None}
    drained_ns = max(end["signal_ns"], *last_answer_ns)
    return {"drain_s": (drained_ns - end["signal_ns"]) / 1e9, "after_drain_s": (end["ended_ns"] - drained_ns) / 1e9}


def not_stopped(fault: dict[str, Any], end: dict[str, Any], watch: Watch) -> Iterator[str]:
    """What is wrong with the end of a run that was told to stop. Where the machine is slow, its processor seconds count."""
    if fault.get("signal") != "SIGTERM" or not end["is_struck"]:
        return
    if end["code"] != 143:
        yield f"it ended with {end['code']}: {end['said']}"
    if end["after_drain_s"] > STOP_LIMIT_S and end["cpu_after_signal_s"] > STOP_LIMIT_S:
        yield f"it ended {end['after_drain_s']:.1f} s after the last reply, {end['cpu_after_signal_s']:.1f} s of them at work"
    if watch.n_maybe_billed:
        yield f"{watch.n_maybe_billed} attempts are left open"
