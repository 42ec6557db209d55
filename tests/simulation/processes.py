"""The simulated processes: Salon's engine and batch run as a shard and a flow put them together, less lake and pictures."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Generator, Sequence
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl
from sqlalchemy.util import await_only, greenlet_spawn

from rubrics.loading import find_rubrics
from schemas.benchmark.file import Limits
from schemas.errors import SalonError
from tasks.judge.admission import open_admission
from tasks.judge.batch.collect import Collector
from tasks.judge.batch.rounds import BatchRun
from tasks.judge.batch.state import BatchRules
from tasks.judge.batch.state_machine import BatchMachine
from tasks.judge.batch.submit import Submitter
from tasks.judge.budget.cost import Costs
from tasks.judge.engine import judge_requests
from tasks.judge.model_pin import ModelPin
from tasks.judge.provider.batch_api import CallFailedError
from tasks.judge.readings import is_reask_due
from tasks.judge.session import Session
from tasks.judge.shard_requests import Shard
from tasks.judge.work_queue import QUEUED_COLUMNS, ReaskCheck
from tasks.ledger.claims import Claims
from tasks.ledger.mutex import mutex
from tests.simulation.provider import JUDGE, USD, Service, SimulatedProvider
from tests.simulation.scheduler import Node
from tests.simulation.world import World

RUBRIC = find_rubrics(["alignment"])["alignment"]
KEYS = tuple(f"{n:02}" * 32 for n in range(8))
RULES = BatchRules(max_lines=3, poll_s=20.0)
DISTURBING = {"kill", "pause", "stop", "ledger away"}
"""Faults that may leave an attempt counted that was never made."""
ROWS = {key: (key, None, '{"max_tokens":100,"temperature":0}', "{}", f'[{{"role":"user","content":"{key}"}}]') for key in KEYS}


@cache
def frame(keys: tuple[str, ...]) -> pl.DataFrame:
    """Planned requests."""
    schema = dict.fromkeys(QUEUED_COLUMNS, pl.String)
    return pl.DataFrame([ROWS[key] for key in keys], schema=schema, orient="row")


class Requests:
    """The requests of one part, which a batch run would read from the lake."""

    def __init__(self, keys: Sequence[str]) -> None:
        self.part_of = dict.fromkeys(keys, 0)

    def blocks(self, keys: Collection[str]) -> Generator[tuple[pl.DataFrame, Any], None, None]:
        yield frame(tuple(sorted(keys))), None

    def reask_checks(self, keys: Collection[str]) -> dict[str, ReaskCheck]:
        return dict.fromkeys(keys, partial(is_reask_due, RUBRIC, None, "{}"))


class Processes:
    """Starts processes in a world, and remembers how each ended."""

    def __init__(self, world: World, service: Service, folder: Path) -> None:
        self.world, self.service, self.folder = world, service, folder
        self.ended: dict[Node, str] = {}
        self.of_run: dict[str, list[Node]] = defaultdict(list)

    async def run(self, kind: str, node: Node, keys: Sequence[str], run_id: str) -> None:
        """One process from its beginning to its end. Errors that users are told of are ends; any other is raised."""
        ledger = self.world.ledger(node)
        self.of_run[run_id].append(node)
        referee, has_failed = self.service.referee, False
        try:
            match kind:
                case "batch":
                    await self._batch(ledger, keys, run_id)
                case "night":
                    await greenlet_spawn(self._night, node, ledger, keys, run_id)
                case _:
                    await self._online(node, ledger, keys, run_id)
            self.ended[node] = "ends"
        except (SalonError, CallFailedError) as error:
            has_failed = True
            self.ended[node] = f"{type(error).__name__}: {error}"
        self.world.note(self.ended[node], node)
        for sent in (sent for every in referee.sent.values() for sent in every if sent.node is node and sent.batch is None):
            if not has_failed and sent.state == "answered" and not any(key == sent.key for key, _ in referee.stored):
                referee.broken(f"I1: the reply to {sent.key[:2]} arrived, its process ends, and it is not stored")
            sent.state = "lost" if sent.state in ("flying", "answered") else sent.state

    async def _online(self, node: Node, ledger: Any, keys: Sequence[str], run_id: str) -> None:
        scenario, referee, provider = self.world.scenario, self.service.referee, SimulatedProvider(self.service, run_id)
        is_last = run_id.startswith("last")
        limits = Limits(
            requests_per_minute=scenario.given_per_minute,
            concurrency=scenario.concurrency,
            deadline_s=scenario.deadline_s,
            max_usd=None if is_last else scenario.max_usd,
            attempts_per_run=None if is_last else scenario.attempts_per_run,
        )
        stop = asyncio.Event()
        self.world.on_stop[node.name] = stop.set
        session = await Session.begin(ledger, provider, limits)  # type: ignore[arg-type] # a Provider but for its class methods
        shard = Shard(
            frame(tuple(keys)),
            _no_picture,
            ledger,
            session.provider,
            RUBRIC,
            limits,
            "plan",
            on_reply=referee.told,
            poll_s=scenario.poll_s,
        )
        async with open_admission(ledger, session, RUBRIC, limits, run_id) as admission:
            outcome = await judge_requests(shard, admission, stop)
            worst_usd = admission.costs.estimate(*ROWS[keys[0]][4:1:-2]).worst_usd or 0.0
        await session.end(ledger)
        if outcome.is_spent:
            self._check_is_spent(node, run_id, worst_usd)
        # Of a second purchase that no lease can prevent a re-ask may come, after this run was right.
        is_right = outcome.is_stopped or referee.n_excused or all(map(referee.is_done, keys))
        if outcome.n_left == 0 and not is_right:
            referee.broken("I3: a run says that nothing is left, and something is")

    def _check_is_spent(self, node: Node, run_id: str, worst_usd: float) -> None:
        """A run that says that its money is spent has spent it, or may have: but for what each of its processes holds."""
        most, sent = self.world.scenario.max_usd or 0.0, [one for every in self.service.referee.sent.values() for one in every]
        spent_usd = sum(USD if one.state == "answered" else worst_usd for one in sent if one.run_id == run_id)
        held_usd = len({node, *self.of_run[run_id]}) * (self.world.scenario.concurrency * 1.25 + 1) * worst_usd
        if "kill" not in self.world.fired and spent_usd + held_usd < most:
            self.service.referee.broken(f"money: a run says that it is spent, and {spent_usd:.6f} of {most} USD are")

    def check_leases(self) -> None:
        """What undisturbed runs took of their attempts is what they sent: nothing is counted twice, or kept at the end."""
        if self.world.scenario.attempts_per_run is None or self.world.fired.keys() & DISTURBING:
            return
        for run_id, nodes in self.of_run.items():
            name = sha256(f"attempts of {run_id}".encode()).hexdigest()
            leased = self.world.database.rows("SELECT leased FROM budgets WHERE budget_id = ?", name)
            n_sent = self.service.referee.n_sent[run_id]
            if leased and all(self.ended.get(node) == "ends" for node in nodes) and leased[0][0] != n_sent:
                self.service.referee.broken(f"attempts: {leased[0][0]} are leased in the end, and {n_sent} were sent")

    def _night(self, node: Node, ledger: Any, keys: Sequence[str], run_id: str) -> None:
        referee = self.service.referee
        with mutex(ledger, "the lake"):
            referee.enters(node)
            try:
                ledger.machine.sleep(self.world.draw.choice((0.0, 0.0, 0.0, 70.0)))
                await_only(self._online(node, ledger, keys, run_id))
            finally:
                referee.leaves(node)

    async def _batch(self, ledger: Any, keys: Sequence[str], run_id: str) -> None:
        requests: Any = Requests(keys)
        provider: Any = SimulatedProvider(self.service, run_id)
        pin, claims, costs = ModelPin(ledger, "plan", JUDGE), Claims(ledger), Costs(JUDGE, 45, is_batch=True)
        collector = Collector(ledger, requests, JUDGE.id, pin, 12, costs.cost_usd, self.service.referee.told)
        machine = BatchMachine(ledger, provider, provider.batch, collector, RULES, self.folder)
        run = BatchRun(ledger, requests, claims, Submitter(ledger, requests, claims, machine, RULES), machine, collector, RULES)
        beside = asyncio.create_task(claims.renew())
        try:
            await run.run()
        finally:
            beside.cancel()
            await collector.finish()
            await claims.release()


def _no_picture(_: str) -> Any:
    raise AssertionError("these requests have no pictures")
