"""The loop that shards of a process share: gone with its last user, and what is kept in it; an interrupt ends one work alone."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path

import pytest

from schemas.errors import StoreError
from tasks.judge.runtime import SharedLoop

WHO: ContextVar[str] = ContextVar("who", default="nobody")


async def here() -> tuple[int, int]:
    """The loop and the thread this runs in, after others had time to come."""
    await asyncio.sleep(0.05)
    return id(asyncio.get_running_loop()), threading.get_ident()


def test_two_at_a_time_share_a_loop_and_the_next_has_another() -> None:
    shared = SharedLoop()
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: shared.run(here()), range(2))
    assert first == second
    assert first[1] != threading.get_ident()
    assert not [thread for thread in threading.enumerate() if thread.name == "salon-judging"], "the loop outlived its users"
    assert shared.run(here())


def test_what_is_kept_is_opened_once_and_closed_with_the_loop_which_a_holder_makes_last() -> None:
    shared, told = SharedLoop(), list[str]()

    @asynccontextmanager
    async def opened() -> AsyncIterator[int]:
        told.append("opened")
        await asyncio.sleep(0.02)
        yield len(told)
        told.append("closed")

    with shared.held():
        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(lambda _: shared.run(shared.kept("a", opened)), range(3))) == [1, 1, 1]
        assert told == ["opened"]
    assert told == ["opened", "closed"]
    assert shared.run(shared.kept("a", opened)) == 3


def test_a_loop_that_cannot_be_made_fails_and_is_made_once_there_are_descriptors_again() -> None:
    """In a process of its own, whose limit is reached."""
    script = """
import os, resource
from tasks.judge.runtime import SharedLoop

async def work():
    return 1

shared, taken = SharedLoop(), []
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
try:
    while True:
        taken.append(os.open(os.devnull, os.O_RDONLY))
except OSError:
    pass
try:
    shared.run(work())
except OSError as error:
    told = error.strerror
for one in taken:
    os.close(one)
print(told, shared.run(work()))
"""
    ended = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True, timeout=120)
    assert ended.stdout == "Too many open files 1\n", ended.stderr


def test_what_could_not_be_opened_is_tried_again() -> None:
    shared, tried = SharedLoop(), list[int]()

    @asynccontextmanager
    async def opened() -> AsyncIterator[str]:
        tried.append(len(tried))
        if len(tried) == 1:
            raise StoreError("away")
        yield "there"

    with shared.held():
        with pytest.raises(StoreError):
            shared.run(shared.kept("a", opened))
        assert shared.run(shared.kept("a", opened)) == "there"


def test_what_could_not_be_opened_after_its_only_waiter_left_is_tried_again() -> None:
    shared, tried = SharedLoop(), list[int]()

    @asynccontextmanager
    async def opened() -> AsyncIterator[str]:
        tried.append(len(tried))
        await asyncio.sleep(0.02)
        if len(tried) == 1:
            raise StoreError("away")
        yield "there"

    async def leave_and_ask() -> str:
        waiting = asyncio.create_task(shared.kept("a", opened))
        await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.sleep(0.1)
        return await shared.kept("a", opened)

    assert shared.run(leave_and_ask()) == "there"


def test_a_forked_process_has_a_loop_of_its_own() -> None:
    script = """
import asyncio, os
from tasks.judge.runtime import LOOP
async def here(): return os.getpid()
with LOOP.held():
    LOOP.run(here())
    if (child := os.fork()) == 0:
        os._exit(0 if LOOP.run(here()) == os.getpid() else 1)
    print(os.waitpid(child, 0)[1])
"""
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-W", "ignore", "-c", script]
    run = subprocess.run(command, cwd=root, check=False, capture_output=True, timeout=60, text=True)
    assert run.stdout == "0\n", run.stderr


def test_what_is_raised_reaches_its_caller_alone() -> None:
    shared = SharedLoop()

    async def failing() -> None:
        raise StoreError("the disk is full")

    with ThreadPoolExecutor(2) as pool:
        well, ill = pool.submit(lambda: shared.run(here())), pool.submit(lambda: shared.run(failing()))
        assert isinstance(ill.exception(), StoreError)
        assert well.result()


def test_each_runs_in_its_callers_context() -> None:
    shared = SharedLoop()

    async def who() -> str:
        await asyncio.sleep(0.02)
        return WHO.get()

    def called(name: str) -> str:
        WHO.set(name)
        return shared.run(who())

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(called, ["Anna", "Berta"])) == ["Anna", "Berta"]


INTERRUPTED = """
import asyncio, os, signal, threading
from tasks.judge.runtime import SharedLoop

async def under_way():
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        await asyncio.sleep(0.05)
        print("stored")
        raise

threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()
try:
    SharedLoop().run(under_way())
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_cancels_the_work_and_waits_for_its_end() -> None:
    """What is under way is stored before the interrupt is raised. In a process of its own, whose main thread waits."""
    root = str(Path(__file__).parents[2])
    env = os.environ | {"PYTHONPATH": root}
    command = [sys.executable, "-c", INTERRUPTED]
    run = subprocess.run(command, cwd=root, env=env, check=False, capture_output=True, timeout=25, text=True)
    assert run.stdout.split() == ["stored", "interrupted"], run.stderr
