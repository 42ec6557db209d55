"""The callers of one event loop that wait for a rate limiter, in their order. When they may go is limiter.py's to say."""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import islice

SPREAD_S = 0.25
"""After a pause callers go on one by one within this time, and each holder at a moment of its own."""


_gives_way: ContextVar[bool] = ContextVar("gives_way", default=False)


@dataclass(frozen=True, slots=True)
class _Caller:
    may_go: "asyncio.Future[None]"
    n_tokens: int
    stopping: asyncio.Event
    spread_s: float


@dataclass(slots=True)
class Waiters:
    """Who waits, and how many were let go."""

    uniform: Callable[[float, float], float] = random.uniform
    _n_gone: int = 0
    _n_tokens_gone: int = 0
    _callers: deque[_Caller] = field(default_factory=deque)

    def __len__(self) -> int:
        return len(self._callers)

    def join(self, n_tokens: int, stopping: asyncio.Event) -> "asyncio.Future[None]":
        """What the caller is to wait for."""
        may_go: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._callers.append(_Caller(may_go, n_tokens, stopping, self.uniform(0, SPREAD_S)))
        return may_go

    def sizes(self, start: int, n: int) -> tuple[int, ...]:
        """The tokens of up to `n` callers from the `start`th on."""
        return tuple(caller.n_tokens for caller in islice(self._callers, start, start + n))

    def let_first_go(self) -> int | None:
        """Let the first caller go; its tokens, None where nobody is left."""
        while self._callers:
            caller = self._callers.popleft()
            if not caller.may_go.done():
                self._let_go(caller)
                return caller.n_tokens
        return None

    def let_all_go(self, since_s: float) -> None:
        """Let everyone go whose moment has come, so many seconds after a pause."""
        for caller in self._callers:
            if since_s >= caller.spread_s and not caller.may_go.done():
                self._let_go(caller)
        self._forget_done()

    def sweep(self) -> None:
        """Let go of callers that were stopped, and forget those that were cancelled."""
        for caller in self._callers:
            if caller.stopping.is_set() and not caller.may_go.done():
                caller.may_go.set_result(None)
        self._forget_done()

    def fail(self, error: Exception) -> None:
        """Everyone gets the error."""
        for caller in self._callers:
            if not caller.may_go.done():
                caller.may_go.set_exception(error)
        self._callers.clear()

    def take_count(self) -> tuple[int, int]:
        """(callers let go, their tokens) since this was last asked."""
        gone = self._n_gone, self._n_tokens_gone
        self._n_gone = self._n_tokens_gone = 0
        return gone

    def _let_go(self, caller: _Caller) -> None:
        caller.may_go.set_result(None)
        self._n_gone += 1
        self._n_tokens_gone += caller.n_tokens

    def _forget_done(self) -> None:
        self._callers = deque(caller for caller in self._callers if not caller.may_go.done())


@contextmanager
def giving_way() -> Iterator[None]:
    """Rate limiters opened in the block get only what nobody else waits for: a backfill's, beside a night's."""
    token = _gives_way.set(True)
    try:
        yield
    finally:
        _gives_way.reset(token)


def gives_way() -> bool:
    """Whether this is asked in such a block."""
    return _gives_way.get()
