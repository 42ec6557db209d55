"""A model of claims (claims.py, work_queue.py, engine.py): a few requests and processes, and every step that may come next.

Time is relative and bounded, so that the states are finitely many: an owner's row lasts E ticks, and every process that runs
renews its own at each tick. A state is a value; `steps` says what may happen next.
"""

from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

E = 2
"""Ticks that an owner's row lasts: EXPIRES_AFTER_S."""
GONE = -1
"""Of a row: over, however long."""
NO_ROW = -2
NOBODY = -1
NO_DOUBT = (-1, False)


Doubt = tuple[int, bool]
"""For how many ticks a row was seen to be over, and whether it was looked at in this one."""


class At(IntEnum):
    """Where a process is with a request."""

    IDLE = 0
    WAITING = 1  # another one has the claim
    READY = 2  # claimed, not handed to a worker
    HANDED = 3  # with a worker, its attempt not recorded
    BEGUN = 4  # the attempt is durable
    SENT = 5
    ANSWERED = 6  # the answer is here, and not stored
    DONE = 7
    LEFT = 8  # given up, all claims released


class Work(NamedTuple):
    """One request in one process. `is_old`: claimed before the process was last thought gone."""

    at: At = At.IDLE
    ask: int = 0
    is_old: bool = False


class Process(NamedTuple):
    """`since`: ticks since it last said that it lives, as far as it knows; `doubts`: since when it doubts each other's row."""

    machine: int
    works: tuple[Work, ...]
    doubts: tuple[Doubt, ...]
    is_known: bool = False
    is_lost: bool = False
    is_paused: bool = False
    is_dead: bool = False
    since: int = 0

    @property
    def runs(self) -> bool:
        return not (self.is_dead or self.is_paused)


class Faults(NamedTuple):
    """How often what may still happen: kills, pauses, jumps of the ledger's clock, answers that never come."""

    kills: int = 0
    pauses: int = 0
    jumps: int = 0
    losses: int = 0


class Looks(NamedTuple):
    """What a process looks at before it sends. Each of them left out is a fault of the protocol, to be found."""

    at_time: bool = True
    at_losses: bool = True


class Request(NamedTuple):
    """What the ledger and the provider have of a request. `is_due`: the re-ask's first attempt is recorded."""

    claim: int = NOBODY
    replies: tuple[bool, bool] = (False, False)  # by ask
    is_due: bool = False
    n_attempts: int = 0
    n_sent: int = 0


class World(NamedTuple):
    """`rows`: ticks until each owner's row is over. `broken`: what should never have happened."""

    processes: tuple[Process, ...]
    rows: tuple[int, ...]
    requests: tuple[Request, ...]
    faults: Faults
    looks: Looks = Looks()
    broken: frozenset[str] = frozenset()


def begin(machines: tuple[int, ...], faults: Faults, *, n_requests: int = 1, looks: Looks = Looks()) -> World:  # noqa: B008 - a value
    """Nobody has asked anything yet; one process on each of the machines named."""
    n = len(machines)
    processes = tuple(Process(machine, (Work(),) * n_requests, (NO_DOUBT,) * n) for machine in machines)
    return World(processes, (NO_ROW,) * n, (Request(),) * n_requests, faults, looks)


def steps(world: World) -> Iterator[tuple[str, World]]:
    """Everything that may happen next, with its name: `process.request what`, where it is about one."""
    yield "tick", _tick(world)
    if world.faults.jumps:
        left = world.faults._replace(jumps=world.faults.jumps - 1)
        for name, by in (("clock jumps ahead", -E - 1), ("clock jumps back", E + 1)):
            rows = tuple(row if row == NO_ROW else max(GONE, min(2 * E + 1, row + by)) for row in world.rows)
            yield name, world._replace(rows=rows, faults=left)
    for i, process in enumerate(world.processes):
        if not process.is_dead:
            yield from ((f"{i} {what}", after) for what, after in _of(world, i, process))
        if process.runs:
            for r, work in enumerate(process.works):
                yield from ((f"{i}.{r} {what}", after) for what, after in _about(world, i, r, work))


def _of(world: World, i: int, process: Process) -> Iterator[tuple[str, World]]:
    """What becomes of a process as a whole."""
    faults = world.faults
    if faults.kills:
        yield "is killed", _put(world._replace(faults=faults._replace(kills=faults.kills - 1)), i, is_dead=True, is_paused=False)
    if process.is_paused:
        yield "goes on", _put(world, i, is_paused=False)
        return
    if faults.pauses:
        yield "is paused", _put(world._replace(faults=faults._replace(pauses=faults.pauses - 1)), i, is_paused=True)
    if process.is_lost:  # what was not handed out yet is claimed anew
        works = tuple(Work() if work.at in (At.READY, At.WAITING) else work for work in process.works)
        yield "starts over", _put(world, i, is_lost=False, works=works)
    if all(work.at == At.DONE for work in process.works):
        yield "leaves", _leave(world, i)


def _about(world: World, i: int, r: int, work: Work) -> Iterator[tuple[str, World]]:
    """What a running process may do about a request."""
    process, faults, request = world.processes[i], world.faults, world.requests[r]
    match work.at:
        case At.IDLE | At.WAITING if not process.is_lost:
            yield "takes", _take(world, i, r)
        case At.READY if not process.is_lost:
            yield "hands out", _work(world, i, r, at=At.HANDED)
        case At.HANDED:
            counted = _request(world, r, n_attempts=min(4, request.n_attempts + 1))
            yield "begins", _work(counted, i, r, at=At.BEGUN)
        case At.BEGUN if (world.looks.at_time and process.since >= E) or (world.looks.at_losses and work.is_old):
            yield "is not sure of its claim", _put(_work(world, i, r, at=At.IDLE, is_old=False), i, is_lost=True)
        case At.BEGUN:
            yield "sends", _send(world, i, r)
        case At.SENT:
            yield "hears", _work(world, i, r, at=At.ANSWERED)
            if faults.losses:  # a timeout: it may be billed, and the worker asks again
                lost = world._replace(faults=faults._replace(losses=faults.losses - 1))
                yield "hears nothing", _work(lost, i, r, at=At.HANDED)
        case At.ANSWERED:
            replies = (True, request.replies[1]) if work.ask == 0 else (request.replies[0], True)
            yield "stores", _work(_request(world, r, replies=replies), i, r, at=At.DONE)
            if work.ask == 0:
                due = _request(world, r, replies=replies, is_due=True, n_attempts=min(4, request.n_attempts + 1))
                yield "stores and re-asks", _work(due, i, r, at=At.BEGUN, ask=1)


def _put(world: World, i: int, **changes: object) -> World:
    processes = world.processes
    changed = processes[i]._replace(**changes)  # type: ignore[arg-type] # fields of Process
    return world._replace(processes=(*processes[:i], changed, *processes[i + 1 :]))


def _work(world: World, i: int, r: int, **changes: object) -> World:
    works = world.processes[i].works
    return _put(world, i, works=(*works[:r], works[r]._replace(**changes), *works[r + 1 :]))  # type: ignore[arg-type] # of Work


def _request(world: World, r: int, **changes: object) -> World:
    requests = world.requests
    changed = requests[r]._replace(**changes)  # type: ignore[arg-type] # fields of Request
    return world._replace(requests=(*requests[:r], changed, *requests[r + 1 :]))


def _row(world: World, i: int, row: int) -> World:
    """The owner's row written or deleted; who doubted it doubts it no more."""
    processes = tuple(p._replace(doubts=(*p.doubts[:i], NO_DOUBT, *p.doubts[i + 1 :])) for p in world.processes)
    return world._replace(processes=processes, rows=(*world.rows[:i], row, *world.rows[i + 1 :]))


def _thought_gone(world: World, i: int) -> World:
    """The process learns it: nothing that it claimed before is sure."""
    works = tuple(work._replace(is_old=At.READY <= work.at <= At.ANSWERED) for work in world.processes[i].works)
    return _put(world, i, is_lost=True, works=works)


def _tick(world: World) -> World:
    """Time goes by, then everyone who runs says that it lives; who finds its row gone knows that it was thought gone."""
    rows = tuple(row if row == NO_ROW else max(GONE, row - 1) for row in world.rows)
    older = [p._replace(since=min(E, p.since + 1), doubts=tuple(map(_older, p.doubts))) for p in world.processes]
    world = world._replace(rows=rows, processes=tuple(older))
    for i, process in enumerate(world.processes):
        if process.runs and process.is_known:
            is_gone = rows[i] == NO_ROW
            world = _put(_thought_gone(world, i), i, is_known=False) if is_gone else _put(_row(world, i, E), i, since=0)
    return world


def _older(doubt: Doubt) -> Doubt:
    """One that was not looked at in this tick is none any more."""
    n, is_new = doubt
    return (min(E + 1, n + 1), False) if is_new else NO_DOUBT


def _take(world: World, i: int, r: int) -> World:
    """One transaction: `Claims._take`."""
    if world.processes[i].is_known and world.rows[i] == NO_ROW:
        world = _thought_gone(world, i)
    world = _put(_row(world, i, E), i, since=0, is_known=True)
    holder = world.requests[r].claim
    if holder not in (NOBODY, i):
        is_gone, world = _is_gone(world, i, holder)
        if is_gone:
            world = _freed(_row(world, holder, NO_ROW), holder)
    request = world.requests[r]
    if request.claim == NOBODY:
        world = _request(world, r, claim=i)
    is_due = request.is_due and request.replies == (True, False)
    if request.replies[0] and not is_due:
        return _work(world, i, r, at=At.DONE, is_old=False)
    if world.requests[r].claim != i:
        return _work(world, i, r, at=At.WAITING, is_old=False)
    return _work(world, i, r, at=At.READY, ask=int(is_due), is_old=False)


def _is_gone(world: World, i: int, holder: int) -> tuple[bool, World]:
    """`Doubts.is_gone`: elsewhere the row says it; on this machine a dead process is seen, a living one doubted for long."""
    me, other, row = world.processes[i], world.processes[holder], world.rows[holder]
    if row == NO_ROW:
        return True, world
    if other.machine != me.machine:
        return row < 0, world
    if other.is_dead:
        return True, world
    doubt = me.doubts[holder]
    if row >= 0:
        doubt = NO_DOUBT
    elif doubt == NO_DOUBT or other.is_paused:
        doubt = (0, True)
    elif doubt[0] > E:
        return True, world
    else:
        doubt = (doubt[0], True)
    return False, _put(world, i, doubts=(*me.doubts[:holder], doubt, *me.doubts[holder + 1 :]))


def _send(world: World, i: int, r: int) -> World:
    """The one step that costs money, and what must hold there."""
    ask, request, broken = world.processes[i].works[r].ask, world.requests[r], set(world.broken)
    if request.replies[ask]:
        broken.add("I1: bought again although its reply is stored")
    others = [p.works[r] for n, p in enumerate(world.processes) if n != i and not p.is_dead]
    if any(work.at in (At.SENT, At.ANSWERED) and work.ask == ask for work in others):
        broken.add("I2: bought while another's answer is under way")
    if request.claim != i:
        broken.add("I2: sent without its claim")
    if request.n_attempts <= request.n_sent and request.n_sent < 4:  # counted up to four
        broken.add("I5: sent without a record")
    counted = _request(world._replace(broken=frozenset(broken)), r, n_sent=min(4, request.n_sent + 1))
    return _work(counted, i, r, at=At.SENT)


def _freed(world: World, i: int) -> World:
    """All claims of a process, let go."""
    return world._replace(requests=tuple(r._replace(claim=NOBODY) if r.claim == i else r for r in world.requests))


def _leave(world: World, i: int) -> World:
    """`Claims.release`."""
    works = tuple(work._replace(at=At.LEFT) for work in world.processes[i].works)
    return _freed(_put(_row(world, i, NO_ROW), i, works=works, is_known=False), i)
