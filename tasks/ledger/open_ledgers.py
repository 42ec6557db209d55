"""The ledgers this process has open: one for all who use an address at once. What a ledger does is ledger.py."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tasks.ledger.ledger import Ledger


class _Handles:
    """The ledgers this process has open, by their address, each with how many use it now."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.open: dict[str, tuple[Ledger, int]] = {}
        self.inherited: list[object] = []

    def forget(self) -> None:
        """In a forked process: what the parent opened is neither used nor let go of, which would close its connections too."""
        self.inherited.append(self.open)
        self.lock, self.open = threading.Lock(), {}


_HANDLES = _Handles()
os.register_at_fork(after_in_child=_HANDLES.forget)


@contextmanager
def opened(url: str) -> Iterator[Ledger]:
    """The process's ledger at this address: one for all who use it now, closed after the last.

    Whoever runs stages holds it around them, so that a run opens the ledger once.
    """
    with _HANDLES.lock:
        ledger, n_users = _HANDLES.open.get(url) or (Ledger(url), 0)
        _HANDLES.open[url] = ledger, n_users + 1
    try:
        yield ledger
    finally:
        _let_go(url)


def _let_go(url: str) -> None:
    with _HANDLES.lock:
        if url not in _HANDLES.open:  # the parent's, of a process that was forked meanwhile
            return
        ledger, n_users = _HANDLES.open.pop(url)
        if n_users > 1:
            _HANDLES.open[url] = ledger, n_users - 1
        else:
            ledger.close()
