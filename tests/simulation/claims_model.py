"""A model of claims (tasks/ledger/claims.py, tasks/judge/engine.py): one request, a few processes, every interleaving.

Time is relative and bounded, so that the states are finitely many: an owner's row lasts E ticks, and every process that runs
renews its own at each tick. A state is a value; `steps` says what may happen next.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

E = 2
"""Ticks that an owner's row lasts: EXPIRES_AFTER_S."""
GONE = -1
"""Of a row: over, however long."""


Doubt = tuple[int, bool]
"""For how many ticks a row was seen to be over, and whether it was looked at in this one."""


class At(StrEnum):
    """Where a process is with its request."""

    IDLE = "idle"
    WAITING = "waiting"  # another one has the claim
    READY = "ready"  # claimed, not handed to a worker
    HANDED = "handed"  # with a worker, its attempt not recorded
    BEGUN = "begun"  # the attempt is durable
    SENT = "sent"
    ANSWERED = "answered"  # the answer is here, and not stored
    DONE = "done"
    LEFT = "left"  # given up, all claims released


@dataclass(frozen=True, slots=True)
class Process:
    """`since`: ticks since it last said that it lives, as far as it knows; `doubt`: since when it doubts each other's row."""

    machine: int
    at: At = At.IDLE
    ask: int = 0
    is_known: bool = False
    is_lost: bool = False
    is_paused: bool = False
    is_dead: bool = False
    since: int = 0
    doubt: tuple[Doubt | None, ...] = ()

    @property
    def runs(self) -> bool:
        return not (self.is_dead or self.is_paused)


@dataclass(frozen=True, slots=True)
class Faults:
    """How often what may still happen: kills, pauses, jumps of the ledger's clock, answers that never come."""

    kills: int = 0
    pauses: int = 0
    jumps: int = 0
    losses: int = 0


@dataclass(frozen=True, slots=True)
class World:
    """`rows`: ticks until each owner's row is over, None where there is none. `broken`: what should never have happened."""

    processes: tuple[Process, ...]
    rows: tuple[int | None, ...]
    faults: Faults
    claim: int | None = None
    replies: frozenset[int] = frozenset()
    is_due: bool = False  # the re-ask's first attempt is recorded
    n_attempts: int = 0
    n_sent: int = 0
    checks_lease: bool = True
    broken: frozenset[str] = frozenset()


def begin(machines: tuple[int, ...], faults: Faults, *, checks_lease: bool = True) -> World:
    """Nobody has asked anything yet; one process on each of the machines named."""
    nobody = (None,) * len(machines)
    return World(tuple(Process(m, doubt=nobody) for m in machines), nobody, faults, checks_lease=checks_lease)


def steps(world: World) -> Iterator[tuple[str, World]]:
    """Everything that may happen next, with its name."""
    yield "tick", _tick(world)
    if world.faults.jumps:
        left = replace(world.faults, jumps=world.faults.jumps - 1)
        for name, by in (("clock jumps ahead", -E - 1), ("clock jumps back", E + 1)):
            rows = tuple(None if row is None else max(GONE, min(2 * E + 1, row + by)) for row in world.rows)
            yield name, replace(world, rows=rows, faults=left)
    for i, process in enumerate(world.processes):
        yield from ((f"{i} {name}", after) for name, after in _of(world, i, process))


def _of(world: World, i: int, process: Process) -> Iterator[tuple[str, World]]:
    faults = world.faults
    if process.is_dead:
        return
    if faults.kills:
        yield "is killed", _put(replace(world, faults=replace(faults, kills=faults.kills - 1)), i, is_dead=True, is_paused=False)
    if process.is_paused:
        yield "goes on", _put(world, i, is_paused=False)
        return
    if faults.pauses:
        yield "is paused", _put(replace(world, faults=replace(faults, pauses=faults.pauses - 1)), i, is_paused=True)
    match process.at:
        case At.IDLE | At.WAITING:
            yield "takes", _take(world, i)
        case At.READY if process.is_lost:
            yield "starts over", _put(world, i, at=At.IDLE, is_lost=False)
        case At.READY:
            yield "hands out", _put(world, i, at=At.HANDED)
        case At.HANDED:
            yield "begins", _put(replace(world, n_attempts=min(4, world.n_attempts + 1)), i, at=At.BEGUN)
        case At.BEGUN if world.checks_lease and process.since >= E:
            yield "is not sure of its claim", _put(world, i, at=At.IDLE)
        case At.BEGUN:
            yield "sends", _send(world, i)
        case At.SENT:
            yield "hears", _put(world, i, at=At.ANSWERED)
            if faults.losses:  # a timeout: it may be billed, and the worker asks again
                yield "hears nothing", _put(replace(world, faults=replace(faults, losses=faults.losses - 1)), i, at=At.HANDED)
        case At.ANSWERED:
            stored = replace(world, replies=world.replies | {process.ask})
            yield "stores", _put(stored, i, at=At.DONE)
            if process.ask == 0:
                yield (
                    "stores and re-asks",
                    _put(replace(stored, is_due=True, n_attempts=min(4, world.n_attempts + 1)), i, at=At.BEGUN, ask=1),
                )
        case At.DONE:
            yield "leaves", _leave(world, i)


def _put(world: World, i: int, **changes: object) -> World:
    processes = list(world.processes)
    processes[i] = replace(processes[i], **changes)  # type: ignore[arg-type] # fields of Process
    return replace(world, processes=tuple(processes))


def _row(world: World, i: int, row: int | None) -> World:
    """The owner's row written or deleted; who doubted it doubts it no more."""
    rows = (*world.rows[:i], row, *world.rows[i + 1 :])
    doubts = [(*p.doubt[:i], None, *p.doubt[i + 1 :]) for p in world.processes]
    processes = tuple(replace(p, doubt=doubt) for p, doubt in zip(world.processes, doubts, strict=True))
    return replace(world, rows=rows, processes=processes)


def _tick(world: World) -> World:
    """Time goes by, then everyone who runs says that it lives; who finds its row gone knows that it was thought gone."""
    rows = tuple(None if row is None else max(GONE, row - 1) for row in world.rows)
    older = [
        replace(p, since=min(E, p.since + 1), doubt=tuple((min(E + 1, d[0] + 1), False) if d and d[1] else None for d in p.doubt))
        for p in world.processes
    ]
    world = replace(world, rows=rows, processes=tuple(older))
    for i, process in enumerate(world.processes):
        if process.runs and process.is_known:
            world = _put(world, i, is_known=False, is_lost=True) if rows[i] is None else _put(_row(world, i, E), i, since=0)
    return world


def _take(world: World, i: int) -> World:
    """One transaction: `Claims._take`."""
    is_new, was_known = world.rows[i] is None, world.processes[i].is_known
    world = _put(_row(world, i, E), i, since=0, is_known=True, is_lost=world.processes[i].is_lost or (was_known and is_new))
    holder = world.claim
    if holder is not None and holder != i:
        is_gone, world = _is_gone(world, i, holder)
        if is_gone:
            world = replace(_row(world, holder, None), claim=None)
    if world.claim is None:
        world = replace(world, claim=i)
    is_due = world.is_due and 0 in world.replies and 1 not in world.replies
    if 0 in world.replies and not is_due:
        return _put(world, i, at=At.DONE)
    if world.claim != i:
        return _put(world, i, at=At.WAITING)
    return _put(world, i, at=At.READY, ask=int(is_due))


def _is_gone(world: World, i: int, holder: int) -> tuple[bool, World]:
    """`Doubts.is_gone`: elsewhere the row says it; on this machine a dead process is seen, a living one doubted for long."""
    me, other, row = world.processes[i], world.processes[holder], world.rows[holder]
    if row is None:
        return True, world
    if other.machine != me.machine:
        return row < 0, world
    if other.is_dead:
        return True, world
    doubt = me.doubt[holder]
    if row >= 0:
        doubt = None
    elif doubt is None or other.is_paused:
        doubt = (0, True)
    elif doubt[0] > E:
        return True, world
    else:
        doubt = (doubt[0], True)
    return False, _put(world, i, doubt=(*me.doubt[:holder], doubt, *me.doubt[holder + 1 :]))


def _send(world: World, i: int) -> World:
    """The one step that costs money, and what must hold there."""
    ask, broken = world.processes[i].ask, set(world.broken)
    if ask in world.replies:
        broken.add("I1: bought again although its reply is stored")
    others = [p for n, p in enumerate(world.processes) if n != i and not p.is_dead]
    if any(p.at in (At.SENT, At.ANSWERED) and p.ask == ask for p in others):
        broken.add("I2: bought while another's answer is under way")
    if world.claim != i:
        broken.add("I2: sent without its claim")
    if world.n_attempts <= world.n_sent and world.n_sent < 4:  # counted up to four
        broken.add("I5: sent without a record")
    return _put(replace(world, n_sent=min(4, world.n_sent + 1), broken=frozenset(broken)), i, at=At.SENT)


def _leave(world: World, i: int) -> World:
    """`Claims.release`."""
    world = _put(_row(world, i, None), i, at=At.LEFT, is_known=False)
    return replace(world, claim=None) if world.claim == i else world
