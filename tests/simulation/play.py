"""One seed played to its end, and a failing one shrunk to the faults it needs. A world's parts are in the other files."""

import asyncio
import gc
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from tests.simulation.database import Database
from tests.simulation.processes import KEYS, Processes
from tests.simulation.provider import Service
from tests.simulation.referee import Referee, ViolationError
from tests.simulation.scenario import Scenario, drawn
from tests.simulation.scheduler import Node, StuckError
from tests.simulation.world import World

PATIENCE_S = 150.0
"""After so long in a world with faults it is healed, and everybody must come to an end."""
ALL_IS_DONE = 0.7
"""In so many worlds nobody asks once more where nothing is left."""
RESTARTS_S = (0.2, 5.0, 65.0)


@dataclass(frozen=True)
class Played:
    """What came of a seed. `broken`: the promise that was not kept, None where all were."""

    scenario: Scenario
    broken: str | None
    told: Sequence[tuple[float, str, str]]
    fired: Counter[str]
    n_steps: int
    virtual_s: float
    n_excused: int
    n_paid: int

    @property
    def history(self) -> str:
        """What happened, in order."""
        lines = [f"{at_s:10.3f}  {who:<6}{what}" for at_s, who, what in self.told]
        return "\n".join([str(self.scenario), *(f"fault: {fault}" for fault in self.scenario.faults), *lines])


@cache
def _databases() -> dict[bool, Database]:
    return {False: Database("file"), True: Database("server")}


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="salon-simulation-")


def play(scenario: Scenario) -> Played:
    """Play a scenario. Two plays of one scenario are the same."""
    database = _databases()[scenario.is_server]
    world = World(scenario, database)
    database.empty(world)
    referee = Referee(world)
    service = Service(world, referee)
    processes = Processes(world, service, Path(_folder().name))
    broken = None
    gc.disable()  # nothing is taken apart in the middle of a world; and it would cost a tenth of the time
    try:
        world.loop.run(_main(world, processes))
        if world.loop.errors:
            raise world.loop.errors[0]  # noqa: TRY301 - of whatever kind it is
    except (ViolationError, StuckError) as error:
        broken = str(error)
    except Exception as error:  # noqa: BLE001 - what users would be told as a fault of Salon's own
        broken = f"a fault of its own: {type(error).__name__}: {error}"
    finally:
        gc.enable()
    n_paid = sum(sent.text is not None for every in referee.sent.values() for sent in every)
    return Played(
        scenario, broken, world.told, world.fired, world.loop.n_steps, world.loop.now_s - 1000.0, referee.n_excused, n_paid
    )


def play_seed(seed: int) -> Played:
    """Play what a seed stands for."""
    return play(drawn(seed))


def shrunk(played: Played) -> Played:
    """The same violation with as few faults as it needs: each is left out in turn, then processes."""
    best, has_shrunk = played, True
    while has_shrunk:
        has_shrunk = False
        for place in range(len(best.scenario.faults)):
            faults = best.scenario.faults[:place] + best.scenario.faults[place + 1 :]
            tried = play(replace(best.scenario, faults=faults))
            if tried.broken is not None and tried.broken[:4] == played.broken[:4]:  # type: ignore[index] # of a broken one
                best, has_shrunk = tried, True
                break
    return best


async def _main(world: World, processes: Processes) -> None:
    """The commands of the scenario, those of killed processes given again; then, in a healed world, all that is left."""
    scenario = world.scenario
    for fault in scenario.faults:
        if fault.effect is None and fault.process is None:
            world.later(fault.at_s, partial(world.strike, fault, None))
    running = [asyncio.create_task(_command(world, processes, place)) for place in range(len(scenario.commands))]
    await asyncio.wait(running, timeout=PATIENCE_S)
    world.heal()
    keys = KEYS[: scenario.n_requests]
    has_batch = any(command.kind == "batch" for command in scenario.commands)
    for turn in range(3):
        if has_batch:  # who asks online waits for its lines
            await _started(world, processes, f"last {turn}", "batch", 0, keys, f"last {turn} batch")
        for task in running:
            await task
        processes.check_leases()
        if all(map(processes.service.referee.is_done, keys)) and world.draw.random() < ALL_IS_DONE:
            return
        await _started(world, processes, f"last {turn}", "online", 0, keys, f"last {turn}")
        if all(map(processes.service.referee.is_done, keys)):
            return
    processes.service.referee.broken("the same command, run again and again in a world without faults, does not end it")


async def _command(world: World, processes: Processes, place: int) -> None:
    """One command until its process ends by itself; a killed one is started again, elsewhere or not."""
    command = world.scenario.commands[place]
    await asyncio.sleep(command.begins_s)
    for life in range(4):
        name = f"{place}.{life}"
        for fault in world.scenario.faults:
            if life == 0 and fault.process == place and fault.effect is None:
                world.later(fault.at_s, partial(world.strike_named, fault, name))
        keys = [KEYS[n] for n in command.requests]
        host = command.host if life == 0 or world.draw.random() < 0.7 or not world.scenario.is_server else 1 - command.host
        run_id = command.run_id if life == 0 else f"{command.run_id}.{place}.{life}"
        node = await _started(world, processes, name, command.kind, host, keys, run_id)
        if node in processes.ended or (life and world.draw.random() < 0.3):
            return
        await asyncio.sleep(world.draw.choice(RESTARTS_S))


async def _started(world: World, processes: Processes, name: str, kind: str, host: int, keys: Sequence[str], run_id: str) -> Node:
    """A process, once it has ended or is dead."""
    node = world.node(name, host)
    task = world.loop.start(node, partial(processes.run, kind, node, keys, run_id))
    await asyncio.wait({task, node.died}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        task.result()
        world.loop.drop(node)
    return node
