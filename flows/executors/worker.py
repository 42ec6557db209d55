"""What a worker process does around a shard: keys, clean words, and an eye on its flow. Where workers come from is pools.py."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import parent_process
from multiprocessing.util import Finalize
from typing import Any

from flows.executors.base import StageTask
from flows.executors.keys import fetch_keys
from flows.observability import redaction
from schemas.errors import InputError, StoppedError, StoreError
from tasks.context import StageContext
from tasks.ledger.ledger import Ledger
from tasks.ledger.mutex import has_heartbeat
from tasks.ledger.open_ledgers import opened
from tasks.publish.identity import code_version
from tasks.stopping import STOP

STAY_S = 10.0
"""How long connections, ramp and limits of a shard that asked are kept for the next one of this process."""
POLL_S = 0.5
"""How often a shard that asks looks whether its flow lives."""
_GONE = "the flow of this shard was stopped or is gone; replies in flight are stored; run the same command again to continue"

_busy = threading.Lock()  # held while a shard is worked on: a worker process has one at a time
_leaving = threading.Event()


@dataclass(frozen=True, slots=True)
class FlowLease:
    """By what a shard that spends money knows that its flow lives: a row of the ledger, under the run's id."""

    ledger_url: str
    run_id: str


@dataclass(frozen=True)
class WorkerCall:
    """A task's function as a worker calls it: by its name, since a worker has the same code.

    `code` is the flow's code version where a worker might have another, `api_url` its Prefect server, which may keep the keys.
    Raises InputError where the code is another, StoppedError where the flow has ended; other errors leave with clean texts.
    """

    module: str
    name: str
    secret_names: tuple[str, ...]
    lease: FlowLease | None = None
    code: str | None = None
    api_url: str | None = None

    def __call__(self, context: StageContext, shard: Any) -> Any:
        """Do the shard's work."""
        with _busy:
            keep_clean(self.secret_names)
            fetch_keys(self.secret_names, self.api_url)
            if self.code not in (None, code_version()):
                raise InputError(
                    "a worker of the Dask cluster runs a different version of Salon's code than the flow; bring both to one "
                    "version, restart the workers, then run the same command again"
                )
            with redaction.redacted_errors(), following(self.lease):
                return self._function()(context, shard)

    def _function(self) -> Callable[..., Any]:
        found = getattr(import_module(self.module), self.name)
        function: Callable[..., Any] = found.work if isinstance(found, StageTask) else found
        return function


def keep_clean(secret_names: tuple[str, ...]) -> None:
    """Before anything is said in a worker: no secret in it. Once is enough."""
    redaction.install()
    redaction.watch(secret_names)


def ignore_of_terminal() -> None:
    """What a terminal sends to all it started: Ctrl-C, and that it is gone. Both are the flow's, which then stops its shards."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def begin_process(secret_names: tuple[str, ...]) -> None:
    """For a process of a pool of our own: SIGTERM, or the end of the flow's process, lets it finish its shard and leave.

    Replies under way are stored first.
    """
    keep_clean(secret_names)
    ignore_of_terminal()
    signal.signal(signal.SIGTERM, lambda *_: _leave())
    threading.Thread(target=_await_parent, name="salon-parent", daemon=True).start()
    threading.Thread(target=_await_leaving, name="salon-leaving", daemon=True).start()


@contextmanager
def following(lease: FlowLease | None) -> Iterator[None]:
    """Set STOP when the flow behind `lease` ends; raises StoppedError then, after the block has stored what was under way."""
    if lease is None:
        yield
        return
    over, lost = threading.Event(), threading.Event()
    with opened(lease.ledger_url) as ledger:
        if not has_heartbeat(ledger, lease.run_id):
            raise StoppedError(_GONE)
        watching = threading.Thread(target=_watch, args=(ledger, lease, over, lost), name="salon-lease", daemon=True)
        watching.start()
        try:
            with _sessions.kept():
                yield
        finally:
            over.set()
            watching.join()
            if lost.is_set() and not _leaving.is_set():
                STOP.clear()  # for the next shard, of another run
    if lost.is_set() or _leaving.is_set():
        raise StoppedError(_GONE)


class _Sessions:
    """Holds the loop of judging (tasks/judge/session.py) from shard to shard, until STAY_S after the last or the end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holding = ExitStack()
        self._timer: threading.Timer | None = None

    @contextmanager
    def kept(self) -> Iterator[None]:
        """What the block opens stays open after it. One block at a time."""
        from tasks.judge.runtime import LOOP

        timer = threading.Timer(STAY_S, lambda: self.end(timer))
        timer.daemon = True
        with self._lock:
            if self._timer is None:
                self._holding.enter_context(LOOP.held())
                Finalize(None, self.end, exitpriority=1)
            else:
                self._timer.cancel()
            self._timer = timer
        try:
            yield
        finally:
            timer.start()

    def end(self, timer: threading.Timer | None = None) -> None:
        """Close what was kept; told by a timer, only where no shard came since that was set."""
        with self._lock:
            if timer is None or timer is self._timer:
                self._timer = None
                self._holding.close()


_sessions = _Sessions()


def _watch(ledger: Ledger, lease: FlowLease, over: threading.Event, lost: threading.Event) -> None:
    while not over.wait(POLL_S):
        with suppress(StoreError):  # a ledger that is away for a moment says nothing about the flow
            if not has_heartbeat(ledger, lease.run_id):
                lost.set()
                STOP.set()
                return


def _leave() -> None:
    STOP.set()
    _leaving.set()


def _await_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        _leave()


def _await_leaving() -> None:
    _leaving.wait()
    with _busy:
        os._exit(0)
