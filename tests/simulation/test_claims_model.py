"""Every interleaving of the model of claims, within bounds: which promise holds under which faults; nobody waits for ever."""

import os
from collections import deque

import pytest

from tests.simulation.claims_model import NOBODY, At, Faults, Looks, World, begin, steps

BOUGHT_AGAIN = "I1: bought again although its reply is stored"
UNCLAIMED = "I2: sent without its claim"
UNDER_WAY = "I2: bought while another's answer is under way"
N_MOST = 400_000
HERE, APART = (0, 0), (0, 1)
NO_TIME, NO_LOSSES = Looks(at_time=False), Looks(at_losses=False)


def explored(first: World) -> tuple[dict[World, tuple[World | None, str]], dict[World, list[World]]]:
    """All worlds that may come about, one of those alike, each with one before it and those that follow. A broken one ends it."""
    first = alike(first)
    before: dict[World, tuple[World | None, str]] = {first: (None, "")}
    after: dict[World, list[World]] = {}
    waiting = deque([first])
    while waiting:
        world = waiting.popleft()
        after[world] = []
        for name, stepped in steps(world) if not world.broken else ():
            following = alike(stepped)
            after[world].append(following)
            if following not in before:
                before[following] = (world, name)
                waiting.append(following)
        assert len(before) < N_MOST, "the bounds are too wide"
    return before, after


def alike(world: World) -> World:
    """One of the worlds that differ from this one only by who is called first: of requests, and of processes on one machine."""
    processes, n_requests = world.processes, len(world.requests)
    order = sorted(range(n_requests), key=lambda r: (world.requests[r][1:], sorted(p.works[r] for p in processes)))
    places = sorted(range(len(processes)), key=lambda i: _looks_like(world, i, order))
    now_at = [*sorted(range(len(places)), key=places.__getitem__), NOBODY]  # the last is for NOBODY
    return world._replace(
        processes=tuple(
            p._replace(works=tuple(p.works[r] for r in order), doubts=tuple(p.doubts[i] for i in places))
            for p in (processes[i] for i in places)
        ),
        rows=tuple(world.rows[i] for i in places),
        requests=tuple(r._replace(claim=now_at[r.claim]) for r in (world.requests[n] for n in order)),
    )


def _looks_like(world: World, i: int, order: list[int]) -> tuple[object, ...]:
    process = world.processes[i]
    holds = tuple(world.requests[r].claim == i for r in order)
    return process.machine, tuple(process.works[r] for r in order), process[3:], world.rows[i], holds, sorted(process.doubts)


def history(before: dict[World, tuple[World | None, str]], world: World | None) -> list[str]:
    """The shortest way to a world. Who is called first may change from one line to the next."""
    said: list[str] = []
    while world is not None:
        world, name = before[world]
        said.append(name)
    return said[-2::-1]


# (machines, requests, faults, what a process looks at before it sends) -> what can happen
CASES = {
    "one machine, killed and paused": (HERE, 1, Faults(kills=1, pauses=1, losses=1), Looks(), set()),
    "one machine, the clock is set": (HERE, 1, Faults(jumps=2), Looks(), set()),
    "one machine, killed, and the clock is set": (HERE, 1, Faults(kills=1, jumps=1), Looks(), set()),
    "three on one machine": ((0, 0, 0), 1, Faults(kills=1), Looks(), set()),
    "two machines, killed": (APART, 1, Faults(kills=2, losses=1), Looks(), set()),
    "three on two machines, killed": ((0, 0, 1), 1, Faults(kills=1), Looks(), set()),
    "two requests, the clock is set": (HERE, 2, Faults(jumps=2), Looks(), set()),
    "two requests, two machines, killed": (APART, 2, Faults(kills=1), Looks(), set()),
    # What no lease can promise: whoever has sent and then sleeps longer than its row lasts is thought gone elsewhere.
    "two machines, paused": (APART, 1, Faults(pauses=1), Looks(), {UNDER_WAY, BOUGHT_AGAIN}),
    "two machines, the server's clock is set": (APART, 1, Faults(jumps=1), Looks(), {UNDER_WAY, BOUGHT_AGAIN, UNCLAIMED}),
    # Faults of the protocol. The second one shows with two requests alone: one that is claimed anew hides that all were lost.
    "paused, and none looks at the time": (APART, 1, Faults(pauses=1), NO_TIME, {UNDER_WAY, BOUGHT_AGAIN, UNCLAIMED}),
    "paused, and none looks what was lost": (APART, 1, Faults(pauses=1), NO_LOSSES, {UNDER_WAY, BOUGHT_AGAIN}),
}
LARGE = {
    "three processes, two requests, the clock is set twice": ((0, 0, 0), 2, Faults(jumps=2), Looks(), set()),
    "two requests, killed and paused": (HERE, 2, Faults(kills=1, pauses=1), Looks(), set()),
    "two requests, two machines, paused": (APART, 2, Faults(pauses=1), Looks(), {UNDER_WAY, BOUGHT_AGAIN}),
    "the same, and none looks what was lost": (APART, 2, Faults(pauses=1), NO_LOSSES, {UNDER_WAY, BOUGHT_AGAIN, UNCLAIMED}),
}
TOO_LONG = pytest.mark.skipif(not os.environ.get("SALON_TORTURE"), reason="minutes: make torture")


@pytest.mark.parametrize(
    ("machines", "n_requests", "faults", "looks", "expected"),
    [
        *(pytest.param(*case, id=name) for name, case in CASES.items()),
        *(pytest.param(*case, id=name, marks=TOO_LONG) for name, case in LARGE.items()),
    ],
)
def test_what_can_happen_and_what_cannot(
    machines: tuple[int, ...], n_requests: int, faults: Faults, looks: Looks, expected: set[str]
) -> None:
    before, after = explored(begin(machines, faults, n_requests=n_requests, looks=looks))
    found = {what: history(before, world) for world in before for what in world.broken}
    assert set(found) == expected, found
    for world in before:
        for process in world.processes:
            for work, request in zip(process.works, world.requests, strict=True):
                is_bought = request.replies[0] and (not request.is_due or request.replies[1])
                assert work.at not in (At.DONE, At.LEFT) or is_bought, history(before, world)
    # Nobody waits for ever: from every world one is reached in which all who run have what they wanted.
    at_rest = [world for world in before if world.broken or all(p.works[0].at == At.LEFT or not p.runs for p in world.processes)]
    leads: dict[World, list[World]] = {}
    for world, following in after.items():
        for one in following:
            leads.setdefault(one, []).append(world)
    reached, waiting = set(at_rest), deque(at_rest)
    while waiting:
        for world in leads.get(waiting.popleft(), ()):
            if world not in reached:
                reached.add(world)
                waiting.append(world)
    assert not (stuck := before.keys() - reached), history(before, min(stuck, key=lambda world: len(history(before, world))))
