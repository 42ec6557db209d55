"""The way into the command line and out of it: signals, what nobody foresaw, exit codes. The commands are in commands/app.py.

Next to nothing is imported before `run` begins: an installation that is broken gets its sentence too.
"""

import errno
import gc
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from flows.observability.log_lines import complain
from flows.observability.standard_streams import let_readers_leave
from schemas.errors import NO_ROOM, NOT_A_FOLDER, NOT_WRITABLE, InputError, StoppedError, StoreError, remedy
from tasks.stopping import hung_up

EXIT_INTERRUPTED = 130
EXIT_FAULT = 70
_REFUSED = NO_ROOM | NOT_A_FOLDER | {errno.EROFS}
_FORBIDDEN = NOT_WRITABLE - {errno.EROFS}
_GC_THRESHOLD = 10_000
"""New objects between collections; 700 in Python. Imports make a million that stay: each collection would walk them in vain."""
ALLOCATOR = {"_RJEM_MALLOC_CONF": "muzzy_decay_ms:0"}
"""For jemalloc in Polars, before it is loaded: what is free goes back to the system, and is no longer counted as ours."""


def main() -> NoReturn:
    """The console script. Told to stop where no run is under way yet, it leaves at once, and takes what it started along.

    Without a handler Prefect's own server would stay behind, and process 1 of a container would not hear the signal at all.
    """
    is_told = False

    def leave(*_: object) -> NoReturn:
        nonlocal is_told
        is_told = True
        sys.exit(StoppedError.exit_code)

    signal.signal(signal.SIGTERM, leave)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup has it
        signal.signal(signal.SIGHUP, hung_up(leave))
    gc.set_threshold(_GC_THRESHOLD)
    os.environ.update(ALLOCATOR | os.environ)
    _leave_loopback_to_itself()
    let_readers_leave()
    code = run(sys.argv[1:])
    if is_told:  # said here: the signal may have come amid a print
        complain("stopped, nothing is in flight; run the same command again to continue")
    if _has_lost_prefect():  # its client would wait minutes at the process's end, to tell a server that is not there
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command; its exit code.

    0, or 1 (a gate or check says no), 2 (the input), 3 (a provider, a store or Prefect is down, or a budget is spent), 4 (a
    bundle of which not all could be verified), 70 (a fault of Salon's own), 130 (interrupted), 143 (told to stop).
    """
    try:
        return _command(arguments)
    except KeyboardInterrupt:
        complain("interrupted; run the same command again to continue")
        return EXIT_INTERRUPTED
    except SystemExit as stop:  # a signal's, before there was a run to stop
        return stop.code if isinstance(stop.code, int) else EXIT_FAULT if stop.code else 0
    except BaseException as error:  # noqa: BLE001 - also what is no Exception: a library in Rust that panics
        return _unforeseen(error)


def _command(arguments: Sequence[str]) -> int:
    from flows.commands.app import app
    from flows.observability import log_lines, redaction

    redaction.install()
    log_lines.install()
    try:
        app(args=list(arguments), prog_name="salon")
    except SystemExit as stop:
        if stop.code == EXIT_INTERRUPTED:  # what Typer makes of Ctrl-C, in silence
            raise KeyboardInterrupt from None
        if sys.stdout is not None:
            sys.stdout.flush()  # here, where a full disk still gets its sentence
        return stop.code if isinstance(stop.code, int) else 0
    return 0


def _unforeseen(error: BaseException) -> int:
    if isinstance(error, FileNotFoundError) and not _stands_somewhere():
        complain("the folder that this was started in is gone; cd to one that is there, then run the same command again")
        return InputError.exit_code
    if isinstance(error, OSError) and error.errno in _REFUSED:
        place = f" ({error.filename})" if error.filename else ""
        complain(f"{error.strerror}{place}: {remedy(error)}, then run the same command again; what was stored is kept")
        if error.errno in NO_ROOM:
            _forget_output()
        return StoreError.exit_code
    if isinstance(error, OSError) and error.errno in _FORBIDDEN and error.filename:  # without one it is no file's
        what = "this user may not read it, or not enter a folder above it: get the permission, or run as its owner"
        complain(f"{error.strerror} ({error.filename}): {what}, then run the same command again")
        return StoreError.exit_code
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        complain(f"{error.strerror} ({error.filename!s:.80}…): name a file or folder that can be there, of 255 bytes at most")
        return InputError.exit_code
    from flows.observability.faults import fault

    complain(fault(error))
    return EXIT_FAULT


def _stands_somewhere() -> bool:
    try:
        return bool(os.getcwd())  # noqa: PTH109 - nothing is imported for it
    except FileNotFoundError:
        return False


def _forget_output() -> None:
    """What stands in the buffer of a standard output that cannot be written: the interpreter would try again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _leave_loopback_to_itself() -> None:
    """Where the environment names proxies, none stands before this machine's own servers: Prefect's, judges, health pages."""
    if any(name.lower().endswith("_proxy") and name.lower() != "no_proxy" for name in os.environ):
        said = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
        os.environ["no_proxy"] = os.environ["NO_PROXY"] = ",".join(filter(None, (said, "127.0.0.1,localhost,::1")))


def _has_lost_prefect() -> bool:
    terminal = sys.modules.get("flows.observability.terminal")
    return terminal is not None and terminal.PREFECT_IS_AWAY.is_set()
