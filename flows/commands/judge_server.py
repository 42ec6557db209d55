"""`salon judge-server`: the judges of a file that this machine serves, until Ctrl-C. How is flows/run/judge_servers.py."""

import signal
import time
from pathlib import Path
from typing import Annotated

import typer

from flows.observability.terminal import Console, one_line, result_console
from flows.run.context import open_run
from flows.run.judge_servers import serving
from schemas.benchmark.judges import Judge
from schemas.errors import InputError, StoppedError
from tasks.judge import local_identity
from tasks.stopping import HEED_EVERY_S, check_not_stopped, heeding_sigterm

SAY_EVERY_S = 10.0


def judge_server(
    file: Annotated[Path, typer.Argument(help="The benchmark file (TOML), with a judge that has [judges.server].")],
    judge: Annotated[
        list[str] | None,
        typer.Option(help="Only this judge; may be given several times; default: every judge that has a server."),
    ] = None,
    identity: Annotated[
        bool, typer.Option("--identity", help="Print what would be served, for `deployment` in another file; start nothing.")
    ] = False,
) -> int:
    """Start the judges that a benchmark file serves on this machine, such as vLLM, and stop them at Ctrl-C."""
    run = open_run(file)
    known = {one.id: one for one in run.benchmark.judges if one.server is not None}
    strange = next((name for name in judge or [] if name not in known), None)
    if strange or not known:
        there = ", ".join(known) or "none"
        raise InputError(f"{f'--judge {strange}' if strange else file}: no judge with [judges.server]; available: {there}")
    served = [one for name, one in known.items() if not judge or name in judge]
    console = result_console()
    if identity:
        for one in served:
            console.print(f'{one.id}: deployment = "{local_identity.of(run.benchmark, one, run.lake.root)}"', markup=False)
        return 0
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that starts us in the background has it ignored
    try:
        with heeding_sigterm(), serving(run, _Telling(console)) as servers:
            servers.start(served)
            for one in served:
                console.print(f"{one.id} answers at {one.base_url}; its output: {servers.local.log(one.id)}", markup=False)
                console.print(f"    {one_line(one.deployment or '')}", markup=False)
            console.print("Press Ctrl-C to stop.", markup=False)
            while True:
                check_not_stopped()
                time.sleep(HEED_EVERY_S)
    except KeyboardInterrupt:
        return 0
    except StoppedError as error:  # whose own sentence is a run's
        raise StoppedError("told to stop; the servers that it started are ended") from error


class _Telling:
    """A line every ten seconds of each judge's own waiting."""

    def __init__(self, console: Console) -> None:
        self.console, self.last_s = console, dict[str, float]()

    def __call__(self, judge: Judge, waited_s: float) -> None:
        if waited_s - self.last_s.get(judge.id, 0.0) >= SAY_EVERY_S:
            self.last_s[judge.id] = waited_s
            self.console.print(f"waiting for {judge.id}, {waited_s:.0f} s", markup=False)
