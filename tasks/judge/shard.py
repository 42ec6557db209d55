"""A shard's requests, judged: what a Prefect task or another machine's worker calls. What shards share is session.py's."""

import asyncio
import atexit
import gc
import threading
from dataclasses import dataclass
from functools import cache

from schemas.benchmark.file import Limits
from schemas.records import PlannedPart
from schemas.tables.stored import REQUESTS
from tasks.context import StageContext
from tasks.judge.admission import open_admission
from tasks.judge.engine import judge_requests
from tasks.judge.outcome import Outcome
from tasks.judge.part_pictures import part_pictures
from tasks.judge.readings import N_UNREADABLE, FirstReplies, any_readable, spread
from tasks.judge.runtime import LOOP
from tasks.judge.session import first_replies, session_of
from tasks.judge.shard_requests import OnAttempt, OnReply, Shard
from tasks.ledger.open_ledgers import opened
from tasks.ledger.unstored import Unstored

STOP_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class JudgeShard:
    """One part of a plan to ask within these limits.

    In the judging thread `on_reply` hears of each reply once it is durable, `on_attempt` how each attempt ended.
    """

    part: PlannedPart
    limits: Limits
    on_reply: OnReply | None = None
    on_attempt: OnAttempt | None = None


def judge_shard(context: StageContext, shard: JudgeShard, stop: threading.Event | None = None) -> Outcome:
    """Ask what the ledger lacks of a part's requests. Shards with one `context.ids.spends_from` share `limits.max_usd`.

    When `stop` is set, replies under way are stored and it returns. Raises MissingKeyError, ProviderError, StoreError.
    """
    part, ids = shard.part, context.ids
    requests = context.lake.read_part(REQUESTS, ids.plan_id, part.index)
    unstored = Unstored(context.lake.root)
    with opened(context.ledger_url) as ledger, unstored.told():
        unstored.take_in(ledger)  # also what an earlier try of this shard could not store
        keys = requests["request_key"]
        known = ledger.known(keys)
        if len(known) == keys.n_unique() and not ledger.reasks_due(keys):
            return Outcome(n_requests=len(known), n_cached=len(known))
        _keep_what_is_loaded()
        rubric, judge = context.rubrics[part.rubric_id], context.judge(part.judge_model)
        pictures = part_pictures(context, part, requests)

        async def work() -> Outcome:
            session = await session_of(context.ledger_url, judge, shard.limits)
            stopping = asyncio.Event()
            watcher = asyncio.create_task(_watch(stop, stopping)) if stop is not None else None
            told = shard.on_reply, shard.on_attempt
            gate = context.benchmark.gate
            first = await first_replies(ids.run_id, judge, rubric.id) if gate.stop_when_unreadable else FirstReplies(None)
            some = sorted(known)[:N_UNREADABLE] if first.is_watching else []
            if some and any_readable(rubric, requests, ledger.replies(some)):
                first.found_readable()  # it was read before, under this very rubric and its parameters
            asked = Shard(
                spread(requests) if first.is_watching else requests,
                pictures,
                ledger,
                session.provider,
                rubric,
                shard.limits,
                ids.plan_id,
                *told,
                max_missing_input=gate.max_missing_input,
                first_replies=first,
                unstored=unstored,
            )
            try:
                async with open_admission(ledger, session, rubric, shard.limits, ids.run_id, ids.spends_from) as admission:
                    return await judge_requests(asked, admission, stopping)
            finally:
                if watcher is not None:
                    watcher.cancel()

        try:
            return LOOP.run(work())
        finally:
            pictures.close()


@cache
def _keep_what_is_loaded() -> None:
    """Once in a process: the libraries' hundreds of thousands of objects stay, and a collection need not walk over them.

    Until its end: what is frozen then is never let go of, and DuckDB tells dozens of lines of leaks behind the run's last word.
    """
    gc.freeze()
    atexit.register(gc.unfreeze)


async def _watch(stop: threading.Event, stopping: asyncio.Event) -> None:
    while not stop.is_set():  # noqa: ASYNC110 - the event belongs to another thread
        await asyncio.sleep(STOP_POLL_S)
    stopping.set()
