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

KEY = "0" * 64


def reply(ask_index: int) -> JudgeReply:
    return JudgeReply(KEY, ask_index, ReplyStatus.ANSWERED, "eye", ReplyOrigin.ASKED, text="first")


async def follow(ledger: Ledger, choices: list[int]) -> World:
    """The drawn way through the model, made in the ledger too, and the two held against each other."""
    world, owners = begin((0, 0), Faults()), [Claims(ledger), Claims(ledger)]
    attempts = ["", ""]
    for choice in choices:
        possible = [(name, after) for name, after in steps(world) if name != "tick"]
        if not possible:
            break
        name, world = possible[choice % len(possible)]
        i, what = int(name[0]), name[2:]
        process = world.processes[i]
        match what:
            case "takes":
                taken = await owners[i].take([KEY])
                at = At.READY if taken.ours else At.DONE if taken.done else At.WAITING
                assert at == process.at, name
                assert at != At.READY or bool(taken.due) == (process.ask == 1), name
            case "begins":
                attempts[i] = await ledger.begin(KEY, process.ask, "eye")
            case "stores":
                assert await ledger.finish(attempts[i], reply(process.ask)) is None
            case "stores and re-asks":
                attempts[i] = str(await ledger.finish(attempts[i], reply(0), is_reasked=True))
            case "leaves":
                await owners[i].release()
        assert bool(ledger.known([KEY])) == bool(world.replies)
        assert bool(ledger.reasks_due([KEY])) == (world.is_due and 1 not in world.replies)
    return world


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=4, max_size=16))
def test_the_ledger_does_what_the_model_says(choices: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder, Ledger(f"sqlite:///{Path(folder)}/ledger.db") as ledger:
        assert not asyncio.run(follow(ledger, choices)).broken
