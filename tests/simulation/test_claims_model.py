"""Every interleaving of the model of claims, within bounds: which promise holds under which faults; nobody waits for ever."""

from collections import deque

import pytest

from tests.simulation.claims_model import At, Faults, World, begin, steps

BOUGHT_AGAIN = "I1: bought again although its reply is stored"
UNCLAIMED = "I2: sent without its claim"
UNDER_WAY = "I2: bought while another's answer is under way"
N_MOST = 400_000
HERE, APART = (0, 0), (0, 1)


def explored(first: World) -> tuple[dict[World, tuple[World | None, str]], dict[World, list[World]]]:
    """Every world that can come about, with the one before it; and what follows from each. Nothing follows what is broken."""
    before: dict[World, tuple[World | None, str]] = {first: (None, "")}
    after: dict[World, list[World]] = {}
    waiting = deque([first])
    while waiting:
        world = waiting.popleft()
        after[world] = []
        for name, following in steps(world) if not world.broken else ():
            after[world].append(following)
            if following not in before:
                before[following] = (world, name)
                waiting.append(following)
        assert len(before) < N_MOST, "the bounds are too wide"
    return before, after


def history(before: dict[World, tuple[World | None, str]], world: World | None) -> list[str]:
    """The shortest way to a world."""
    said: list[str] = []
    while world is not None:
        world, name = before[world]
        said.append(name)
    return said[-2::-1]


# (machines, faults, whether a process looks at its claim before it sends) -> what can happen
CASES = {
    "one machine, killed and paused": (HERE, Faults(kills=1, pauses=1, losses=1), True, set()),
    "one machine, the clock is set": (HERE, Faults(jumps=2), True, set()),
    "one machine, killed, and the clock is set": (HERE, Faults(kills=1, jumps=1), True, set()),
    "three on one machine": ((0, 0, 0), Faults(kills=1), True, set()),
    "two machines, killed": (APART, Faults(kills=2, losses=1), True, set()),
    "three on two machines, killed": ((0, 0, 1), Faults(kills=1), True, set()),
    # What no lease can promise: whoever has sent and then sleeps longer than its row lasts is thought gone elsewhere.
    "two machines, paused": (APART, Faults(pauses=1), True, {UNDER_WAY, BOUGHT_AGAIN}),
    "two machines, paused, and none looks": (APART, Faults(pauses=1), False, {UNDER_WAY, BOUGHT_AGAIN, UNCLAIMED}),
    "two machines, the server's clock is set": (APART, Faults(jumps=1), True, {UNDER_WAY, BOUGHT_AGAIN, UNCLAIMED}),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_can_happen_and_what_cannot(case: tuple[tuple[int, ...], Faults, bool, set[str]]) -> None:
    machines, faults, checks_lease, expected = case
    before, after = explored(begin(machines, faults, checks_lease=checks_lease))
    found = {what: history(before, world) for world in before for what in world.broken}
    assert set(found) == expected, found
    for world in before:
        for process in world.processes:
            is_bought = 0 in world.replies and (not world.is_due or 1 in world.replies)
            assert process.at not in (At.DONE, At.LEFT) or is_bought, history(before, world)
    # Nobody waits for ever: from every world one is reached in which all who run have what they wanted.
    at_rest = [world for world in before if world.broken or all(p.at is At.LEFT or not p.runs for p in world.processes)]
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
