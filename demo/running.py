"""Running the judge's server as a process of its own for as long as a block lasts. What it serves is in server.py."""

import json
import selectors
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from time import monotonic
from typing import IO

from schemas.errors import ProviderError

_START_LIMIT_S = 60.0
_STOP_LIMIT_S = 5.0


@contextmanager
def running_judge(scenario: Path | None = None) -> Iterator[str]:
    """Start the demo judge on a free port of loopback; yields its base_url, ending in /v1. Raises ProviderError.

    With a scenario file it plays the difficult provider.

    Its standard input is a pipe from this process: it stops when the block ends, and also when this process dies.
    A session of its own keeps Ctrl-C away from it, so that requests in flight are still answered while a run drains.
    """
    played = [] if scenario is None else ["--scenario", str(scenario.resolve())]
    command = [sys.executable, "-m", "demo.server", "--port", "0", "--until-stdin-closes", *played]
    with TemporaryFile() as errors:
        process = subprocess.Popen(
            command,
            cwd=Path(__file__).resolve().parent.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
        try:
            yield f"http://127.0.0.1:{_port(process, errors)}/v1"
        finally:
            _stop(process)


def _port(process: subprocess.Popen[bytes], errors: IO[bytes]) -> int:
    """The port the server says it listens on: one line of JSON on its standard output."""
    assert process.stdout is not None
    line, deadline = b"", monotonic() + _START_LIMIT_S
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while not line.endswith(b"\n") and selector.select(max(0.0, deadline - monotonic())):
            read = process.stdout.read1(4096)  # type: ignore[attr-defined]
            if not read:
                break
            line += read
    try:
        return int(json.loads(line)["port"])
    except (ValueError, KeyError, TypeError) as error:
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip().splitlines()
        why = said[-1] if said else f"it said nothing within {_START_LIMIT_S:.0f} s"
        raise ProviderError(f"the demo judge did not start: {why}. Try it alone: python -m demo.server") from error


def _stop(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    try:
        process.wait(_STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
