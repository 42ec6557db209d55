"""The model of claims is the ledger's: what it says of a take is what `Claims` does, for drawn interleavings of two owners."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.records import JudgeReply
from schemas.statuses.rows import ReplyOrigin, ReplyStatus
from tasks.ledger.claims import Claims
from tasks.ledger.ledger import Ledger
from tests.simulation.claims_model import At, Faults, World, begin, steps

KEYS = ["0" * 64, "1" * 64]


def reply(key: str, ask_index: int) -> JudgeReply:
    return JudgeReply(key, ask_index, ReplyStatus.ANSWERED, "eye", ReplyOrigin.ASKED, text="first")


async def follow(ledger: Ledger, choices: list[int]) -> World:
    """The drawn way through the model, made in the ledger too, and the two held against each other."""
    world, owners = begin((0, 0), Faults(), n_requests=2), [Claims(ledger), Claims(ledger)]
    attempts: dict[str, str] = {}
    for choice in choices:
        possible = [(name, after) for name, after in steps(world) if name != "tick"]
        if not possible:
            break
        name, world = possible[choice % len(possible)]
        who, what = name.split(" ", 1)
        i, r = int(who[0]), int(who[2:] or 0)
        work, key = world.processes[i].works[r], KEYS[r]
        match what:
            case "takes":
                taken = await owners[i].take([key])
                at = At.READY if taken.ours else At.DONE if taken.done else At.WAITING
                assert at == work.at, name
                assert at != At.READY or bool(taken.due) == (work.ask == 1), name
            case "begins":
                attempts[who] = await ledger.begin(key, work.ask, "eye")
            case "stores":
                assert await ledger.finish(attempts[who], reply(key, work.ask)) is None
            case "stores and re-asks":
                attempts[who] = str(await ledger.finish(attempts[who], reply(key, 0), is_reasked=True))
            case "leaves":
                await owners[i].release()
        for one, request in zip(KEYS, world.requests, strict=True):
            assert bool(ledger.known([one])) == any(request.replies)
            assert bool(ledger.reasks_due([one])) == (request.is_due and not request.replies[1])
    return world


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 11), min_size=4, max_size=30))
def test_the_ledger_does_what_the_model_says(choices: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder, Ledger(f"sqlite:///{Path(folder)}/ledger.db") as ledger:
        assert not asyncio.run(follow(ledger, choices)).broken
