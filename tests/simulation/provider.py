"""The simulated provider: what it answers to requests and batches, and what it is paid for."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import orjson

from schemas.benchmark.judges import Judge, Price
from schemas.statuses.rows import ReplyStatus as S
from tasks.judge.provider.batch_api import BatchFiles, CallFailedError, ProviderBatch
from tasks.judge.provider.exchange import Answer, Ended, NotSent, Payload, SaidLimit
from tests.simulation.referee import Referee, Sent
from tests.simulation.scheduler import NODE
from tests.simulation.world import World

JUDGE = Judge(
    model="eye", base_url="http://judge.invalid/v1", parameters={"max_tokens": 100, "temperature": 0},
    price=Price(input_usd_per_million=1.0, output_usd_per_million=4.0),
)  # fmt: skip
N_INPUT, N_OUTPUT = 30, 12
USD, MOST_USD = ((N_INPUT * 1.0 + n_output * 4.0) / 1e6 for n_output in (N_OUTPUT, 100))  # who heard no end may pay for all


class SimulatedPayload:
    """The body of one request: nothing but its key."""

    def __init__(self, key: str) -> None:
        self.key, self.n_bytes = key, len(key)
        self.on_start: Callable[[], None] = lambda: None

    def __iter__(self) -> Iterator[bytes]:
        self.on_start()
        yield self.key.encode()


@dataclass(eq=False)
class MadeBatch:
    """A batch at the provider."""

    provider_id: str
    token: str
    sent: dict[str, Sent]
    made_s: float
    ends_s: float
    seen_from_s: float  # from when lists show it
    n_expired: int = 0
    has_duplicate: bool = False
    is_cancelled: bool = False
    said: list[tuple[str, str | None]] = field(default_factory=list)


class Service:
    """What is the provider's own, whichever process asks it."""

    def __init__(self, world: World, referee: Referee) -> None:
        self.world, self.referee = world, referee
        self.used_until_s = 0.0
        self.files: dict[str, tuple[str, tuple[str, ...], int]] = {}
        self.batches: list[MadeBatch] = []
        self.n_said = 0

    def says(self) -> str:
        """A reply's text, each another one."""
        self.n_said += 1
        is_readable = self.world.is_healed or self.world.draw.random() >= self.world.scenario.unreadable
        return (
            f"Reasoning: look {self.n_said}.\nScore: {1 + self.n_said % 5}"
            if is_readable
            else f"It is hard to say {self.n_said}."
        )

    def refused(self) -> Answer | None:
        """Why a request that arrives now is not worked on, None where it is. Counts it where it is."""
        world, now_s = self.world, self.world.loop.now_s
        if now_s < world.outage_until_s:
            return Answer(S.SERVER_ERROR, "HTTP 503: outage")
        if now_s < world.refuses_until_s:
            return Answer(S.RATE_LIMITED, "HTTP 429", retry_after_s=world.draw.choice((None, 2.0, 20.0)))
        if world.limit is not None:
            span_s = 60.0 / world.limit
            if self.used_until_s - now_s > 4 * span_s + 1:
                return Answer(S.RATE_LIMITED, "HTTP 429", retry_after_s=world.draw.choice((None, span_s)))
            self.used_until_s = max(self.used_until_s, now_s) + span_s
        if not world.is_healed and world.draw.random() < world.scenario.failing:
            return Answer(world.draw.choice((S.SERVER_ERROR, S.BAD_RESPONSE)), "HTTP 500: oops")
        return None

    @property
    def limits(self) -> tuple[SaidLimit | None, SaidLimit | None]:
        """What its headers say."""
        if self.world.limit is None or not self.world.scenario.tells_limit:
            return None, None
        return SaidLimit(self.world.limit), None


class SimulatedProvider:
    """The provider as one process asks it."""

    has_detail: ClassVar[bool] = False
    batch_files: ClassVar[BatchFiles | None] = None
    key_digest = "key"

    def __init__(self, service: Service, run_id: str) -> None:
        self.service, self.run_id, self.judge, self.endpoint = service, run_id, JUDGE, "http://judge.invalid/v1"
        self.batch = SimulatedBatches(service, run_id)

    def payload(self, _: Mapping[str, object], messages: Sequence[Mapping[str, Any]], __: Sequence[Any]) -> SimulatedPayload:
        return SimulatedPayload(str(messages[0]["content"]))

    async def ask(self, payload: SimulatedPayload) -> Answer:
        """Send one request and wait for its reply."""
        world, referee, node = self.service.world, self.service.referee, NODE.get()
        payload.on_start()
        if node.provider_cut:
            await asyncio.sleep(1.0)
            return Answer(S.UNREACHABLE, "no connection", is_sent=False)
        sent = referee.departs(node, payload.key, self.run_id)
        await world.effect(f"sends {payload.key[:2]}")
        scenario, started_s = world.scenario, world.loop.now_s
        latency_s = scenario.latency_s * world.draw.uniform(0.5, 2.0)
        if world.takes("late reply") or (not world.is_healed and world.draw.random() < scenario.failing / 2):
            latency_s = scenario.deadline_s + 5.0
        if world.is_healed:  # also a slow provider is heard then
            latency_s = min(latency_s, 0.9 * scenario.deadline_s)
        is_late, is_reset = latency_s >= scenario.deadline_s, world.takes("reset")
        refused = self.service.refused()
        text = None
        if refused is None:
            text = self.service.says()
            referee.pays(sent, MOST_USD if is_late or is_reset else USD, text)
        await asyncio.sleep(min(latency_s, scenario.deadline_s))
        if is_late or node.provider_cut:
            sent.state = "lost"
            return Answer(S.TIMED_OUT, "no complete reply", latency_s=world.loop.now_s - started_s)
        if is_reset:
            sent.state = "lost"
            return Answer(S.UNREACHABLE, "reset", latency_s=world.loop.now_s - started_s)
        await world.effect(f"hears of {payload.key[:2]}")
        if refused is not None:
            referee.hears_failure(node, sent, refused)
            return refused
        sent.state = "answered"
        return Answer(
            S.ANSWERED, text=text, finish_reason="stop", answered_model="eye-1", n_input_tokens=N_INPUT, n_output_tokens=N_OUTPUT,
            latency_s=world.loop.now_s - started_s, limits=self.service.limits,
        )  # fmt: skip

    async def close(self) -> None:
        """There is nothing to close."""


class SimulatedBatches:
    """Its Batch API as one process calls it."""

    def __init__(self, service: Service, run_id: str) -> None:
        self.service, self.run_id = service, run_id

    async def _call(self, what: str) -> None:
        world, node = self.service.world, NODE.get()
        await world.effect(what)
        if node.provider_cut or world.loop.now_s < world.outage_until_s:
            raise CallFailedError(Answer(S.SERVER_ERROR, "HTTP 503: outage"))

    async def is_offered(self) -> bool:
        return True

    async def upload(self, path: Path, name: str, n_bytes: int) -> str:
        names = tuple(orjson.loads(line)["custom_id"] for line in path.read_bytes().splitlines())  # noqa: ASYNC240 - some bytes
        await self._call("uploads a file")
        file_id = f"file-{len(self.service.files)}"
        self.service.files[file_id] = name, names, n_bytes
        return file_id

    async def find_file(self, name: str, n_bytes: int) -> str | None:
        await self._call("looks for a file")
        return next((file_id for file_id, (of, _, n) in self.service.files.items() if (of, n) == (name, n_bytes)), None)

    async def create(self, file_id: str, token: str) -> ProviderBatch:
        service, world, node = self.service, self.service.world, NODE.get()
        names = service.files[file_id][1]
        if node.provider_cut or world.loop.now_s < world.outage_until_s:
            raise CallFailedError(Answer(S.UNREACHABLE, "no connection", is_sent=False))
        sent = {name: service.referee.departs(node, name.rpartition("-")[0], self.run_id, batch=token) for name in names}
        is_lost, is_short, has_duplicate = (world.takes_armed(kind) for kind in ("create lost", "expiry", "duplicate line"))
        now_s, n = world.loop.now_s, len(service.batches)
        made = MadeBatch(
            f"batch-{n}", token, sent, now_s, now_s + world.draw.choice((5.0, 40.0, 120.0)), now_s + 20.0 * is_lost,
            n_expired=int(is_short), has_duplicate=has_duplicate,
        )  # fmt: skip
        service.batches.append(made)
        for place, (name, one) in enumerate(sent.items()):
            if place < made.n_expired:
                one.state = "failed"
            else:
                made.said.append((name, service.says()))
                service.referee.pays(one, USD / 2, made.said[-1][1] or "")
        await world.effect("creates a batch")
        if is_lost:
            raise CallFailedError(Answer(S.TIMED_OUT, "no reply"))
        return self._seen(made)

    async def find(self, token: str, since_s: int, n_lines: int) -> list[ProviderBatch]:  # noqa: ARG002 - the token is enough
        await self._call("looks for a batch")
        now_s = self.service.world.loop.now_s
        return [self._seen(made) for made in self.service.batches if made.token == token and now_s >= made.seen_from_s]

    async def look(self, provider_id: str) -> ProviderBatch:
        await self._call("looks at a batch")
        return self._seen(next(made for made in self.service.batches if made.provider_id == provider_id))

    async def cancel(self, provider_id: str) -> None:
        await self._call("cancels a batch")
        made = next(made for made in self.service.batches if made.provider_id == provider_id)
        made.is_cancelled = True
        for sent in made.sent.values():
            sent.state = "lost"

    async def download(self, file_id: str, path: Path) -> None:
        await self._call("fetches results")
        made = next(made for made in self.service.batches if f"out-{made.provider_id}" == file_id)
        rows: list[tuple[str, str | None]] = [*made.said, *((name, None) for name in list(made.sent)[: made.n_expired])]
        if made.has_duplicate and made.said:
            rows.append((made.said[0][0], "Score: 1"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"\n".join(map(orjson.dumps, rows)))  # noqa: ASYNC240 - some bytes
        for sent in made.sent.values():
            sent.node = NODE.get()  # it is this process's to store now

    def line(self, custom_id: str, payload: Payload) -> bytes:  # noqa: ARG002 - its name is all that counts
        return orjson.dumps({"custom_id": custom_id}) + b"\n"

    def results(self, path: Path) -> Iterator[tuple[str, Ended]]:
        answer = partial(
            Answer, S.ANSWERED, finish_reason="stop", answered_model="eye-1", n_input_tokens=N_INPUT, n_output_tokens=N_OUTPUT
        )
        for name, text in map(orjson.loads, path.read_bytes().splitlines()):
            yield name, NotSent("expired") if text is None else answer(text=text)

    def _seen(self, made: MadeBatch) -> ProviderBatch:
        is_ended = made.is_cancelled or self.service.world.loop.now_s >= made.ends_s
        return ProviderBatch(
            made.provider_id, "completed" if is_ended else "in_progress", int(made.made_s),
            f"out-{made.provider_id}" if is_ended else None, None, len(made.said), len(made.said), "", is_ended,
            is_failed=False, is_cancelled=made.is_cancelled, is_over_capacity=False,
        )  # fmt: skip
