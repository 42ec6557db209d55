"""A simulated world: machines with clocks of their own, processes on them, what befalls them. What must hold is referee.py's."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any

from sqlalchemy.util import await_only, greenlet_spawn
from sqlalchemy.util.concurrency import in_greenlet

from tasks.ledger.process_identity import Machine, Process
from tests.simulation.database import Database, SimulatedLedger, away
from tests.simulation.scenario import Fault, Scenario
from tests.simulation.scheduler import NODE, WORLD, Joined, Node, Scheduler, ThreadQueue, of_world, result_of, waited

EPOCH_S = 1_790_000_000
STORE_WAIT_S = 20.0
_NUMBERS = count()  # what Salon keeps by process is not to pass from one world to the next
LATENT = {"commit lost", "answer lost", "late reply", "reset", "expiry", "create lost", "duplicate line"}


class World:
    """Everything but Salon's code. `told`: what happened, (seconds, who, what); `fired`: faults that did something."""

    def __init__(self, scenario: Scenario, database: Database) -> None:
        self.scenario, self.database = scenario, database
        self.draw, self.salon_draws = (Random(f"{what} {scenario.seed}") for what in ("world", "salon"))
        self.loop = Scheduler(Random(f"order {scenario.seed}"))
        self.offsets_s = [0.0, 7.0, -40.0]  # of the machines' clocks; the last is the server's
        self.nodes: dict[int, Node] = {}  # by pid
        self.told: list[tuple[float, str, str]] = []
        self.fired: Counter[str] = Counter()
        self.server_jumped = False
        self.armed: Counter[str] = Counter()  # batches' faults that wait for a batch
        self.outage_until_s = self.refuses_until_s = 0.0
        self.limit = scenario.limit
        self.on_stop: dict[str, Callable[[], object]] = {}
        self.on_commit: Callable[[Node], None] = lambda _: None
        places = range(len(scenario.commands))
        self._waiting: dict[int | None, list[Fault]] = {
            i: [fault for fault in scenario.faults if fault.process == i and fault.effect] for i in places
        }
        self.is_healed = False
        self._number = next(_NUMBERS)

    # --- processes ------------------------------------------------------------------------------------------------
    def node(self, name: str, host: int) -> Node:
        """A new process."""
        pid = 100 + len(self.nodes)
        command = int(name.split(".", maxsplit=1)[0]) if name[0].isdigit() else None
        waiting = self._waiting.get(command, [])  # one list for all its lives
        made = Node(name, host, Process(f"machine {host}", pid, f"{self._number}.{pid}"), waiting=waiting)
        self.nodes[pid] = made
        return made

    def note(self, what: str, node: Node | None = None) -> None:
        """Keep for the history."""
        self.told.append((self.loop.now_s - 1000, (node or NODE.get()).name, what))

    def machine(self, node: Node) -> Machine:
        """What the process has of its machine."""

        def lives(other: Process) -> bool | None:
            if other.host != node.identity.host:
                return None
            found = self.nodes.get(other.pid)
            return found is not None and not found.is_dead

        draws = self.salon_draws
        return Machine(
            monotonic_s=self.loop.time,
            time_ns=lambda: self.time_ns(node.host),
            sleep=lambda seconds: await_only(asyncio.sleep(seconds)),
            uniform=draws.uniform,
            getrandbits=draws.getrandbits,
            token_hex=lambda n: f"{draws.getrandbits(8 * n):0{2 * n}x}",
            this_process=lambda: node.identity,
            lives=lives,
            is_paused=lambda other: other.pid in self.nodes and self.nodes[other.pid].is_paused,
            queue=ThreadQueue,
            start=lambda function, _: Joined(function),
            wait=waited,
            result=result_of,
            in_thread=self._in_thread,
        )

    def ledger(self, node: Node) -> SimulatedLedger:
        """The process's ledger: in a file its machine's clock is the ledger's, on a server the server's."""
        machine = self.machine(node)
        at_database = replace(machine, time_ns=lambda: self.time_ns(-1)) if self.scenario.is_server else machine
        return SimulatedLedger(self.database, machine, at_database, STORE_WAIT_S)

    def time_ns(self, host: int) -> int:
        """A machine's clock; -1 is the server."""
        return int((EPOCH_S + self.loop.now_s + self.offsets_s[host]) * 1e9)

    async def _in_thread(self, function: Callable[..., Any], *given: Any) -> Any:
        await self.effect("reads")
        return await greenlet_spawn(function, *given)

    # --- what counts, and what befalls it -------------------------------------------------------------------------
    async def effect(self, what: str) -> None:
        """Something that counts has happened to the running process; a fault may strike here, and some time goes by."""
        node = NODE.get()
        node.n_effects += 1
        self.note(what, node)
        for fault in [fault for fault in node.waiting if fault.effect is not None and fault.effect <= node.n_effects]:
            node.waiting.remove(fault)
            self.strike(fault, node)
        if node.is_dead:
            await self.loop.create_future()  # for ever
        await asyncio.sleep(self.draw.choice((0.001, 0.004, 0.004, 0.03, 0.2)))

    def strike_named(self, fault: Fault, name: str) -> None:
        """The same by the name of a process, where there is one."""
        for node in [node for node in self.nodes.values() if node.name == name]:
            self.strike(fault, node)

    def strike(self, fault: Fault, node: Node | None) -> None:
        """What a fault does. It counts where it has done it: some wait for a reply, a commit or a batch."""
        if self.is_healed or (node is not None and node.is_dead):
            return
        if fault.kind not in LATENT:
            self.fired[fault.kind] += 1
        self.note(f"! {fault}", node or WORLD)
        until_s = self.loop.now_s + fault.seconds
        if node is not None:
            self._strike_node(fault, node)
        elif fault.kind == "clock":
            self.offsets_s[self.draw.randrange(2) if self.scenario.is_server else 0] += fault.seconds
        elif fault.kind == "server clock":
            self.offsets_s[-1] += fault.seconds
            self.server_jumped = True
        elif fault.kind == "outage":
            self.outage_until_s = until_s
        elif fault.kind == "429":
            self.refuses_until_s = until_s
        elif fault.kind == "headers":
            self.limit = {None: 60, 600: 60, 60: 600, 12: 60}[self.limit]
        else:
            self.armed[fault.kind] += 1

    def _strike_node(self, fault: Fault, node: Node) -> None:
        match fault.kind:
            case "kill":
                self.loop.drop(node)
            case "pause":
                node.is_paused, node.absent_s = True, node.absent_s + fault.seconds
                self.later(fault.seconds, lambda: setattr(node, "is_paused", False))
            case "ledger away":
                node.ledger_cut, node.absent_s, node.cut_s = True, node.absent_s + fault.seconds, node.cut_s + fault.seconds
                self.later(fault.seconds, lambda: setattr(node, "ledger_cut", False))
            case "provider away":
                node.provider_cut = True
                self.later(fault.seconds, lambda: setattr(node, "provider_cut", False))
            case "stop":
                self.on_stop.get(node.name, lambda: None)()
            case _:
                node.losing.append(fault.kind)

    def later(self, seconds: float, function: Callable[[], object]) -> None:
        """Let something happen to the world after a while."""
        asyncio.get_running_loop().call_later(seconds, function, context=of_world())

    def heal(self) -> None:
        """No fault from here on, and none goes on."""
        self.is_healed = True
        self.outage_until_s = self.refuses_until_s = 0.0
        for node in self.nodes.values():
            node.is_paused = node.ledger_cut = node.provider_cut = False
            node.losing.clear()

    # --- transactions (database.Hooks) ----------------------------------------------------------------------------
    def before(self) -> None:
        """Before a transaction."""
        await_only(self.effect("begins a transaction"))
        if NODE.get().ledger_cut:
            raise away()

    def read(self) -> None:
        """Before what is only read."""
        if NODE.get().ledger_cut and in_greenlet():
            raise away()

    def loses(self) -> bool:
        """Whether this commit is not made."""
        return self.takes("commit lost")

    def after(self) -> None:
        """After a commit, before its answer."""
        node = NODE.get()
        self.on_commit(node)
        await_only(self.effect("committed"))
        if self.takes("answer lost") or node.ledger_cut:
            raise away()

    def takes_armed(self, kind: str) -> bool:
        """Whether the next batch was to suffer this, once."""
        is_one = self.armed[kind] > 0
        if is_one:
            self.armed[kind] -= 1
            self.fired[kind] += 1
        return is_one

    def takes(self, kind: str) -> bool:
        """Whether the running process was to suffer this, once."""
        losing = NODE.get().losing
        is_one = kind in losing
        if is_one:
            losing.remove(kind)
            self.fired[kind] += 1
            self.note(f"! {kind}")
        return is_one
