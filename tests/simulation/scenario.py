"""What a seed stands for: who runs, what they ask, how the provider is, and the list of faults. Drawn once, before it runs."""

from dataclasses import dataclass
from itertools import accumulate
from random import Random

FAULTS = {
    # kind: (what it is, whether it is of one process, only where the ledger is on a server)
    "kill": ("a process is gone, with nothing cleaned up", True, False),
    "pause": ("a process stands still", True, False),
    "stop": ("a process is told to stop", True, False),
    "clock": ("a machine's clock is set", False, False),
    "server clock": ("the ledger server's clock is set", False, True),
    "ledger away": ("a process cannot reach the ledger", True, True),
    "provider away": ("a process cannot reach the provider", True, False),
    "commit lost": ("a commit is not made, and its answer never comes", True, True),
    "answer lost": ("a commit is made, and its answer never comes", True, True),
    "late reply": ("a reply comes after its deadline, billed", True, False),
    "reset": ("a connection is reset after the request was taken, billed", True, False),
    "outage": ("the provider answers 503", False, False),
    "429": ("the provider lets nobody through", False, False),
    "headers": ("the provider's limit changes", False, False),
    "expiry": ("a batch ends with lines nobody worked on", False, False),
    "create lost": ("a batch is made, and its answer never comes", False, False),
    "duplicate line": ("a batch's results hold a line twice", False, False),
}
OF_BATCHES = ("expiry", "create lost", "duplicate line")
SECONDS = (0.5, 3.0, 20.0, 70.0, 150.0)
N_FAULTS = (0, 1, 2, 3, 4, 6)
JUMPS_S = (-3600.0, -90.0, -5.0, 5.0, 61.0, 3600.0)


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. `effect`: when so many things that count have happened to the process; else `at_s` after the beginning."""

    kind: str
    process: int | None = None
    effect: int | None = None
    at_s: float = 0.0
    seconds: float = 0.0

    def __str__(self) -> str:
        who = "" if self.process is None else f" of process {self.process}"
        when = f"at {self.at_s:.1f} s" if self.effect is None else f"at its event {self.effect}"
        return f"{self.kind}{who} {when}, {self.seconds:g} s"


@dataclass(frozen=True, slots=True)
class Command:
    """What one process does. `run_id`: shared by the processes of one run, with its money and attempts."""

    kind: str  # online, night (online, one at a time), batch
    host: int
    run_id: str
    requests: tuple[int, ...]
    begins_s: float


@dataclass(frozen=True, slots=True)
class Scenario:
    """One world. Shares are of the provider's replies; `limit`: requests a minute that it counts, None where it does not."""

    seed: int
    is_server: bool
    commands: tuple[Command, ...]
    n_requests: int
    concurrency: int
    deadline_s: float
    given_per_minute: int | None
    limit: int | None
    tells_limit: bool
    max_usd: float | None
    attempts_per_run: int | None
    unreadable: float
    failing: float
    latency_s: float
    poll_s: float
    faults: tuple[Fault, ...]

    def __str__(self) -> str:
        who = "; ".join(
            f"{i}: {c.kind} on machine {c.host} from {c.begins_s:.1f} s, requests {list(c.requests)}"
            for i, c in enumerate(self.commands)
        )
        return (
            f"seed {self.seed}, ledger {'on a server' if self.is_server else 'in a file'}; {who}\n"
            f"limits: {self.concurrency} in flight, {self.deadline_s:g} s, {self.given_per_minute or 'no'} a minute given, "
            f"the provider's {self.limit or 'none'} ({'told' if self.tells_limit else 'not told'}), "
            f"max_usd {self.max_usd}, attempts {self.attempts_per_run}"
        )


def drawn(seed: int) -> Scenario:
    """The scenario of a seed."""
    draw = Random(f"scenario {seed}")
    is_server = draw.random() < 0.55
    n = draw.choices((2, 3, 4, 5), (66, 22, 8, 4))[0]
    n_requests = draw.choices((1, 2, 3, 4, 5), (16, 34, 28, 14, 8))[0]
    kinds = draw.choices(("online", "night", "batch"), (78, 9, 13), k=n)
    if draw.random() < 0.6:
        kinds = [kinds[0]] * n
    n_batches = list(accumulate(kind == "batch" for kind in kinds))
    kinds = [kind if n_of <= 2 else "online" for kind, n_of in zip(kinds, n_batches, strict=True)]
    commands = tuple(
        Command(
            kind,
            draw.randrange(2) if is_server else 0,
            f"run {min(i, draw.randrange(n))}",
            tuple(range(n_requests))
            if draw.random() < 0.7
            else tuple(sorted(draw.sample(range(n_requests), draw.randint(1, n_requests)))),
            draw.choice((0.0, 0.0, 0.3, 2.0, 9.0)),
        )
        for i, kind in enumerate(kinds)
    )
    limit = draw.choices((None, 600, 60, 12), (60, 15, 15, 10))[0]
    return Scenario(
        seed, is_server, commands, n_requests,
        concurrency=draw.choice((1, 2, 4, 8)),
        deadline_s=draw.choice((5.0, 15.0)),
        given_per_minute=draw.choice((limit, None)),
        limit=limit,
        tells_limit=draw.random() < 0.7,
        max_usd=draw.choices((None, 0.0012, 0.0025, 0.02), (60, 20, 12, 8))[0],
        attempts_per_run=draw.choices((None, 6, 30), (70, 15, 15))[0],
        unreadable=draw.choice((0.0, 0.1, 0.4)),
        failing=draw.choice((0.0, 0.0, 0.1, 0.4)),
        latency_s=draw.choice((0.05, 0.5, 3.0)),
        poll_s=draw.choices((0.5, 4.0, 9.0), (4, 16, 80))[0],
        faults=tuple(_fault(draw, commands, is_server) for _ in range(draw.choices(N_FAULTS, (4, 22, 28, 22, 14, 10))[0])),
    )  # fmt: skip


def _fault(draw: Random, commands: tuple[Command, ...], is_server: bool) -> Fault:
    has_batch = any(command.kind == "batch" for command in commands)
    able = [kind for kind, (_, _, needs) in FAULTS.items() if (is_server or not needs) and (has_batch or kind not in OF_BATCHES)]
    weights = [4 if kind == "kill" else 3 if kind in ("pause", "answer lost", *OF_BATCHES) else 1 for kind in able]
    kind = draw.choices(able, weights)[0]
    process = draw.randrange(len(commands)) if FAULTS[kind][1] else None
    effect = draw.randint(1, 30) if process is not None and draw.random() < 0.7 else None
    seconds = draw.choice(JUMPS_S) if kind.endswith("clock") else draw.choices(SECONDS, (30, 30, 20, 12, 8))[0]
    if kind == "server clock":
        seconds = max(-90.0, seconds)  # by as much as it is set back a claim of a machine that is gone is waited for
    return Fault(kind, process, effect, draw.choice((3.0, 20.0, 100.0)) * draw.random(), seconds)
